/*
 * Arcee AFM (Arcee AI 2025): llama with a squared-ReLU feed-forward without a gate.
 * Source: transformers/models/arcee/{configuration,modular}_arcee.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
    spec->ffn = FFN_PLAIN;
}

const struct family family_arcee = {
    .model_type = "arcee",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
