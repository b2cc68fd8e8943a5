/*
 * Gemma (Google 2024): norms stored minus one, embeddings times sqrt(hidden_size), a gate by GELU.
 * Source: transformers/models/gemma/{configuration,modular}_gemma.py.
 */
#include "models/family.h"

#include <math.h>
#include <string.h>

/* To nearest even without the lowest bits; a small positive number needs no care. */
static float rounded(float x, int n_bits)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += (UINT32_C(1) << (n_bits - 1)) - 1 + (bits >> n_bits & 1);
    bits = bits >> n_bits << n_bits;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The factor in the precision of the weights, as the original rounds it. */
static float embedding_scale(struct config *c, int hidden_size)
{
    const struct json *dtype = config_any(c, "torch_dtype");
    if (!dtype)
        dtype = config_any(c, "dtype");
    if (!dtype)
        dtype = json_get(c->outer, "torch_dtype");
    if (!dtype)
        dtype = json_get(c->outer, "dtype");
    const char *const type = json_text(dtype, "");
    const float scale = sqrtf((float)hidden_size);
    return strcmp(type, "bfloat16") == 0  ? rounded(scale, 16)
           : strcmp(type, "float16") == 0 ? rounded(scale, 13)
                                          : scale;
}

void family_gemma_base(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"hidden_act", "cache_implementation", NULL};
    family_llama_base(c, spec);
    config_skip(c, notes); /* "gelu" in early files, which meant the tanh form all the same */
    spec->norm_plus_one = true;
    spec->embedding_scale = embedding_scale(c, spec->hidden_size);
    spec->hidden_act = config_act_or(c, "hidden_activation", ACT_GELU_TANH);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_gemma_base(c, spec);
    const char *const act = config_text(c, c->root, "hidden_act", "gelu");
    if (strcmp(act, "gelu") != 0 && strcmp(act, "gelu_pytorch_tanh") != 0)
        config_fail(c, "\"hidden_act\": \"%s\" is not supported", act);
    config_require_bool(c, "attention_bias", false);
}

const struct family family_gemma = {
    .model_type = "gemma",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
