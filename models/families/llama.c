/*
 * LLaMA (Touvron et al. 2023) and everything that kept its shape: Llama 1 to 3, SmolLM, TinyLlama,
 * Yi, Vicuna. Source: transformers/models/llama/{configuration,modeling}_llama.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
}

const struct family family_llama = {
    .model_type = "llama",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
