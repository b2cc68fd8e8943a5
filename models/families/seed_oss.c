/*
 * Seed-OSS (ByteDance 2025): llama with a switch of its own for the bias of each projection.
 * Source: transformers/models/seed_oss/{configuration,modular}_seed_oss.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"residual_dropout", NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
    spec->biases = config_roles(c, "attention_bias", ROLES_QKV, true) |
                   config_roles(c, "attention_out_bias", ROLE_BIT(ROLE_ATTENTION_OUT), false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
}

const struct family family_seed_oss = {
    .model_type = "seed_oss",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
