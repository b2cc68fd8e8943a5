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
    .defaults = FAMILY_JSON(
        {"hidden_act" : "relu2", "rms_norm_eps" : 1e-5, "max_position_embeddings" : 4096}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
