/*
 * XGLM (Lin et al. 2021): sinusoidal positions that begin at 2, embeddings times sqrt(hidden_size).
 * Source: transformers/models/xglm/{configuration,modeling}_xglm.py.
 */
#include "models/family.h"

#include <math.h>

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.self_attn_layer_norm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.out_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.final_layer_norm", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.fc1", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.fc2", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "layer_norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static const char *const ignored[] = {
    "embed_positions.weights", /* the sinusoids, saved as a buffer */
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"dropout", "activation_dropout", "init_std", NULL};
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "d_model", CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, "num_layers", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings =
        config_size_or(c, "max_position_embeddings", CONFIG_MAX_SIZE, 2048);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    if (config_bool_or(c, "scale_embedding", true))
        spec->embedding_scale = sqrtf((float)spec->hidden_size);
    spec->positions = POSITIONS_SINUSOIDAL;
    spec->sinusoid_inclusive = true;
    spec->position_offset = 2;
    spec->norm = NORM_LAYER;
    spec->norm_eps = 1e-5f;
    spec->biases = ROLES_ATTENTION | ROLES_FFN | ROLES_NORM;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "activation_function", ACT_GELU);
    spec->intermediate_size = config_size(c, "ffn_dim", CONFIG_MAX_SIZE);
    config_heads(c, spec, "attention_heads");
    config_skip(c, notes);
    config_layers(c, spec);
}

const struct family family_xglm = {
    .model_type = "xglm",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = ignored,
};
