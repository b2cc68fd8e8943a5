/*
 * Gemma (Google 2024): norms stored minus one, embeddings times sqrt(hidden_size), a gate by GELU.
 * Source: transformers/models/gemma/{configuration,modular}_gemma.py.
 */
#include "models/family.h"

#include <math.h>
#include <string.h>

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
    const float scale = sqrtf((float)hidden_size);
    if (strcmp(json_text(dtype, ""), "bfloat16") != 0)
        return scale;
    uint32_t bits; /* to nearest even; a small positive number needs no care */
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
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
