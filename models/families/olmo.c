/*
 * OLMo (Ai2 2024): llama with LayerNorms that have no weights, and clipped queries, keys and
 * values. Source: transformers/models/olmo/{configuration,modular}_olmo.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    spec->norm = NORM_LAYER;
    spec->norm_plain = true;
    spec->norm_eps = 1e-5f;
    spec->clip_qkv = (float)config_positive_or(c, "clip_qkv", 0);
}

const struct family family_olmo = {
    .model_type = "olmo",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
