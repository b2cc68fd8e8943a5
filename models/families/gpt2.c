/*
 * GPT-2 (Radford et al. 2019): learned positions, LayerNorm, a plain feed-forward, matrices stored
 * [in, out]. Source: transformers/models/gpt2/{configuration,modeling}_gpt2.py.
 */
#include "models/family.h"

#include <math.h>

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte", LAYOUT_OUT_IN},
    {ROLE_POSITIONS, "wpe", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1", LAYOUT_OUT_IN},
    {ROLE_QUERY, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_KEY, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_VALUE, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_ATTENTION_OUT, "h.{}.attn.c_proj", LAYOUT_IN_OUT},
    {ROLE_FFN_NORM, "h.{}.ln_2", LAYOUT_OUT_IN},
    {ROLE_UP, "h.{}.mlp.c_fc", LAYOUT_IN_OUT},
    {ROLE_DOWN, "h.{}.mlp.c_proj", LAYOUT_IN_OUT},
    {ROLE_FINAL_NORM, "ln_f", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
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
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "n_embd", CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, "n_layer", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings = config_size_or(c, "n_positions", CONFIG_MAX_SIZE, 1024);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->positions = POSITIONS_LEARNED;
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_epsilon", 1e-5);
    config_heads(c, spec, "n_head");
    spec->biases = ROLES_ATTENTION | ROLES_FFN | ROLES_NORM;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "activation_function", ACT_GELU_TANH);
    spec->intermediate_size = config_size_or(c, "n_inner", CONFIG_MAX_SIZE, 4 * spec->hidden_size);
    config_layers(c, spec);
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
