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
    {ROLE_EMBEDDING, "wte", LAYOUT_OUT_IN},
    {ROLE_POSITIONS, "wpe", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1", LAYOUT_OUT_IN},
    {ROLE_QUERY, "h.{}.attn.attention.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "h.{}.attn.attention.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "h.{}.attn.attention.v_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "h.{}.attn.attention.out_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "h.{}.ln_2", LAYOUT_OUT_IN},
    {ROLE_UP, "h.{}.mlp.c_fc", LAYOUT_OUT_IN},
    {ROLE_DOWN, "h.{}.mlp.c_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "ln_f", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static const char *const ignored[] = {
    "h.{}.attn.attention.bias",
    "h.{}.attn.attention.masked_bias",
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"attention_types", "embed_dropout", "resid_dropout", NULL};
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "hidden_size", CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, "num_layers", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings =
        config_size_or(c, "max_position_embeddings", CONFIG_MAX_SIZE, 2048);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->positions = POSITIONS_LEARNED;
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_epsilon", 1e-5);
    spec->biases = ROLE_BIT(ROLE_ATTENTION_OUT) | ROLES_FFN | ROLES_NORM;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "activation_function", ACT_GELU_TANH);
    spec->intermediate_size =
        config_size_or(c, "intermediate_size", CONFIG_MAX_SIZE, 4 * spec->hidden_size);
    config_heads(c, spec, "num_heads");
    config_skip(c, notes);
    if (config_layers(c, spec))
        read_layers(c, spec);
}

const struct family family_gpt_neo = {
    .model_type = "gpt_neo",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
};
