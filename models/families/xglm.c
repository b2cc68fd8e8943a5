/*
 * XGLM (Lin et al. 2021): sinusoidal positions that begin at 2, embeddings times sqrt(hidden_size).
 * Source: transformers/models/xglm/{configuration,modeling}_xglm.py.
 */
#include "models/family.h"

#include <math.h>

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_ATTENTION_NORM, "layers.{}.self_attn_layer_norm"},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.out_proj"},
    {ROLE_FFN_NORM, "layers.{}.final_layer_norm"},
    {ROLE_UP, "layers.{}.fc1"},
    {ROLE_DOWN, "layers.{}.fc2"},
    {ROLE_FINAL_NORM, "layer_norm"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static const char *const ignored[] = {
    "embed_positions.weights", /* the sinusoids, saved as a buffer */
    NULL,
};

static const struct classic_keys keys = {
    .hidden_size = "d_model",
    .num_hidden_layers = "num_layers",
    .num_attention_heads = "attention_heads",
    .intermediate_size = "ffn_dim",
    .max_positions = "max_position_embeddings",
    .default_max_positions = 2048,
    .hidden_act = "activation_function",
    .default_hidden_act = ACT_GELU,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"dropout", "activation_dropout", "init_std", NULL};
    family_classic_base(c, spec, &keys);
    if (config_bool_or(c, "scale_embedding", true))
        spec->embedding_scale = sqrtf((float)spec->hidden_size);
    spec->positions = POSITIONS_SINUSOIDAL;
    spec->sinusoid_inclusive = true;
    spec->position_offset = 2;
    config_skip(c, notes);
}

const struct family family_xglm = {
    .model_type = "xglm",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = ignored,
};
