/*
 * Phi-3, 3.5, 4 and 4-mini (Microsoft 2024): llama with fused matrices, windows, and factors for
 * long texts. Source: transformers/models/phi3/{configuration,modular}_phi3.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_require_bool(c, "attention_bias", false);
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_phi3 = {
    .model_type = "phi3",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
