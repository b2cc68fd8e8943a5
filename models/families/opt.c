/*
 * OPT (Zhang et al. 2022) and Galactica: learned positions that begin at 2, ReLU; the 350M model
 * has its norms outside and a narrower table of embeddings. Source:
 * transformers/models/opt/{configuration,modeling}_opt.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_PROJECT_IN, "project_in"},
    {ROLE_POSITIONS, "embed_positions"},
    {ROLE_ATTENTION_NORM, "layers.{}.self_attn_layer_norm"},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.out_proj"},
    {ROLE_FFN_NORM, "layers.{}.final_layer_norm"},
    {ROLE_UP, "layers.{}.fc1"},
    {ROLE_DOWN, "layers.{}.fc2"},
    {ROLE_FINAL_NORM, "final_layer_norm"},
    {ROLE_PROJECT_OUT, "project_out"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static const struct classic_keys keys = {
    .hidden_size = "hidden_size",
    .num_hidden_layers = "num_hidden_layers",
    .num_attention_heads = "num_attention_heads",
    .intermediate_size = "ffn_dim",
    .max_positions = "max_position_embeddings",
    .default_max_positions = 2048,
    .hidden_act = "activation_function",
    .default_hidden_act = ACT_RELU,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"dropout",           "activation_dropout",
                                        "init_std",          "learned_embeddings",
                                        "output_projection", NULL};
    family_classic_base(c, spec, &keys);
    spec->embedding_size =
        config_size_or(c, "word_embed_proj_dim", CONFIG_MAX_SIZE, spec->hidden_size);
    spec->position_offset = 2;
    spec->norm_plain = !config_bool_or(c, "layer_norm_elementwise_affine", true);
    spec->biases = config_roles(c, "enable_bias", ROLES_ATTENTION | ROLES_FFN, true) |
                   (spec->norm_plain ? 0 : ROLES_NORM);
    const bool before = config_bool_or(c, "do_layer_norm_before", true);
    spec->norm_place = before ? NORM_BEFORE : NORM_OUTSIDE;
    spec->no_final_norm = config_bool_or(c, "_remove_final_layer_norm", false) || !before;
    config_skip(c, notes);
}

const struct family family_opt = {
    .model_type = "opt",
    .configure = configure,
    .prefix = "model.decoder.",
    .tensors = tensors,
};
