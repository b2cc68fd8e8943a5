/*
 * OPT (Zhang et al. 2022) and Galactica: learned positions that begin at 2, ReLU; the 350M model
 * has its norms outside and a narrower table of embeddings. Source:
 * transformers/models/opt/{configuration,modeling}_opt.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_PROJECT_IN, "project_in", LAYOUT_OUT_IN},
    {ROLE_POSITIONS, "embed_positions", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.self_attn_layer_norm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.out_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.final_layer_norm", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.fc1", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.fc2", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "final_layer_norm", LAYOUT_OUT_IN},
    {ROLE_PROJECT_OUT, "project_out", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"dropout", "activation_dropout", "prefix", "init_std",
                                        NULL};
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "hidden_size", CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, "num_hidden_layers", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings =
        config_size_or(c, "max_position_embeddings", CONFIG_MAX_SIZE, 2048);
    spec->embedding_size =
        config_size_or(c, "word_embed_proj_dim", CONFIG_MAX_SIZE, spec->hidden_size);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->positions = POSITIONS_LEARNED;
    spec->position_offset = 2;
    spec->norm = NORM_LAYER;
    spec->norm_eps = 1e-5f;
    spec->norm_plain = !config_bool_or(c, "layer_norm_elementwise_affine", true);
    spec->biases = config_roles(c, "enable_bias", ROLES_ATTENTION | ROLES_FFN, true) |
                   (spec->norm_plain ? 0 : ROLES_NORM);
    const bool before = config_bool_or(c, "do_layer_norm_before", true);
    spec->norm_place = before ? NORM_BEFORE : NORM_OUTSIDE;
    spec->no_final_norm = config_bool_or(c, "_remove_final_layer_norm", false) || !before;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "activation_function", ACT_RELU);
    spec->intermediate_size = config_size(c, "ffn_dim", CONFIG_MAX_SIZE);
    config_heads(c, spec, "num_attention_heads");
    config_skip(c, notes);
    config_layers(c, spec);
}

const struct family family_opt = {
    .model_type = "opt",
    .configure = configure,
    .prefix = "model.decoder.",
    .tensors = tensors,
    .ignored = NULL,
};
