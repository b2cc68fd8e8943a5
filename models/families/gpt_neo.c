/*
 * GPT-Neo (Black et al. 2021): gpt2 whose scores are not scaled, with a window in every other
 * layer. Source: transformers/models/gpt_neo/{configuration,modeling}_gpt_neo.py.
 */
#include "models/family.h"

#include <string.h>

/* attention_layers: "global" or "local" for each layer; without it they alternate. */
static void read_layers(struct config *c, struct model_spec *spec)
{
    const int window = config_size_or(c, "window_size", CONFIG_MAX_SIZE, 256);
    const struct json *const list = config_any(c, "attention_layers");
    const struct json *j = json_first(list);
    if (list && json_count(list) != (size_t)spec->num_hidden_layers)
        config_fail(c, "\"attention_layers\" must be a list of %d types", spec->num_hidden_layers);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++) {
        const bool local = j ? strcmp(json_text(j, ""), "local") == 0 : i % 2 == 1;
        spec->layers[i].window = local ? window : 0;
        spec->layers[i].attention_scale = 1;
        j = j ? json_next(j) : NULL;
    }
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte"},
    {ROLE_POSITIONS, "wpe"},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1"},
    {ROLE_QUERY, "h.{}.attn.attention.q_proj"},
    {ROLE_KEY, "h.{}.attn.attention.k_proj"},
    {ROLE_VALUE, "h.{}.attn.attention.v_proj"},
    {ROLE_ATTENTION_OUT, "h.{}.attn.attention.out_proj"},
    {ROLE_FFN_NORM, "h.{}.ln_2"},
    {ROLE_UP, "h.{}.mlp.c_fc"},
    {ROLE_DOWN, "h.{}.mlp.c_proj"},
    {ROLE_FINAL_NORM, "ln_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static const char *const ignored[] = {
    "h.{}.attn.attention.bias",
    "h.{}.attn.attention.masked_bias",
    NULL,
};

static const struct classic_keys keys = {
    .hidden_size = "hidden_size",
    .num_hidden_layers = "num_layers",
    .num_attention_heads = "num_heads",
    .intermediate_size = "intermediate_size",
    .max_positions = "max_position_embeddings",
    .default_max_positions = 2048,
    .norm_eps = "layer_norm_epsilon",
    .hidden_act = "activation_function",
    .default_hidden_act = ACT_GELU_TANH,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"attention_types", "embed_dropout", "resid_dropout", NULL};
    family_classic_base(c, spec, &keys);
    spec->biases = ROLE_BIT(ROLE_ATTENTION_OUT) | ROLES_FFN | ROLES_NORM;
    config_skip(c, notes);
    if (!c->failed)
        read_layers(c, spec);
}

const struct family family_gpt_neo = {
    .model_type = "gpt_neo",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
};
