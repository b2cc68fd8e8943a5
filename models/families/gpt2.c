/*
 * GPT-2 (Radford et al. 2019): learned positions, LayerNorm, a plain feed-forward, matrices stored
 * [in, out]. Source: transformers/models/gpt2/{configuration,modeling}_gpt2.py.
 */
#include "models/family.h"

#include <math.h>

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte"},
    {ROLE_POSITIONS, "wpe"},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1"},
    {ROLE_QUERY, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_KEY, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_VALUE, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_ATTENTION_OUT, "h.{}.attn.c_proj", LAYOUT_IN_OUT},
    {ROLE_FFN_NORM, "h.{}.ln_2"},
    {ROLE_UP, "h.{}.mlp.c_fc", LAYOUT_IN_OUT},
    {ROLE_DOWN, "h.{}.mlp.c_proj", LAYOUT_IN_OUT},
    {ROLE_FINAL_NORM, "ln_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

const char *const family_gpt2_ignored[] = {
    "h.{}.attn.bias",        /* the causal mask, saved as a buffer */
    "h.{}.attn.masked_bias", /* its minus infinity */
    NULL,
};

static void scale_attention(struct config *c, struct model_spec *spec)
{
    const bool by_head = config_bool_or(c, "scale_attn_weights", true);
    const bool by_layer = config_bool_or(c, "scale_attn_by_inverse_layer_idx", false);
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        const double scale = by_head ? 1 / sqrt(spec->head_dim) : 1;
        spec->layers[i].attention_scale = (float)(by_layer ? scale / (i + 1) : scale);
    }
}

void family_gpt2_base(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"n_special", "predict_special_tokens", NULL};
    static const struct classic_keys keys = {
        .hidden_size = "n_embd",
        .num_hidden_layers = "n_layer",
        .num_attention_heads = "n_head",
        .intermediate_size = "n_inner",
        .max_positions = "n_positions",
        .default_max_positions = 1024,
        .norm_eps = "layer_norm_epsilon",
        .hidden_act = "activation_function",
        .default_hidden_act = ACT_GELU_TANH,
    };
    family_classic_base(c, spec, &keys);
    config_skip(c, notes);
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_gpt2_base(c, spec);
    if (!c->failed)
        scale_attention(c, spec);
}

const struct family family_gpt2 = {
    .model_type = "gpt2",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = family_gpt2_ignored,
};
