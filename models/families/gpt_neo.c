/*
 * GPT-Neo (Black et al. 2021): gpt2 whose scores are not scaled, with a window in every other
 * layer. Source: transformers/models/gpt_neo/{configuration,modeling}_gpt_neo.py.
 */
#include "models/family.h"

#include <string.h>

/* The layers from i on, as a list of "global" and "local" says. The number of the next. */
static int read_layers(struct model_spec *spec, const struct json *list, int window, int i)
{
    const struct json *j = json_first(list);
    for (; j && i < spec->num_hidden_layers; j = json_next(j), i++)
        spec->layers[i].window = strcmp(json_text(j, ""), "local") == 0 ? window : 0;
    return i + (j != NULL);
}

/* attention_layers has a type for each layer; attention_types says the same in short, as
 * [[["global", "local"], 12]], or with more such pairs. Without either they alternate. */
static void choose_windows(struct config *c, struct model_spec *spec)
{
    const int window = config_size_or(c, "window_size", CONFIG_MAX_SIZE, 256);
    const struct json *const layers = config_any(c, "attention_layers");
    const struct json *const types = config_any(c, "attention_types");
    int n = layers ? read_layers(spec, layers, window, 0) : 0;
    for (const struct json *j = json_first(types); !layers && j; j = json_next(j)) {
        const struct json *const list = json_first(j);
        int64_t times = 0;
        if (!json_integer(list ? json_next(list) : NULL, 0, CONFIG_MAX_LAYERS, &times))
            break;
        while (times-- > 0 && n <= spec->num_hidden_layers)
            n = read_layers(spec, list, window, n);
    }
    for (int i = 0; !layers && !types && i < spec->num_hidden_layers; i++, n++)
        spec->layers[i].window = i % 2 == 1 ? window : 0;
    if (n != spec->num_hidden_layers)
        config_fail(c, "\"attention_layers\" or \"attention_types\" must have %d layers",
                    spec->num_hidden_layers);
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
    static const char *const notes[] = {"embed_dropout", "resid_dropout", NULL};
    family_classic_base(c, spec, &keys);
    spec->biases = ROLE_BIT(ROLE_ATTENTION_OUT) | ROLES_FFN | ROLES_NORM;
    config_skip(c, notes);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].attention_scale = 1;
    if (!c->failed)
        choose_windows(c, spec);
}

const struct family family_gpt_neo = {
    .model_type = "gpt_neo",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
};
