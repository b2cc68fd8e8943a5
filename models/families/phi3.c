/*
 * Phi-3, 3.5, 4 and 4-mini (Microsoft 2024): llama with fused matrices, windows, and factors for
 * long texts. Source: transformers/models/phi3/{configuration,modular}_phi3.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_require_bool(c, "attention_bias", false);
    config_require_bool(c, "mlp_bias", false);
    config_require_bool(c, "lm_head_bias", false);
    config_require_number(c, "full_attn_mod", 1); /* Phi-4-mini */
    config_require_number(c, "interpolate_factor", 1);
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_phi3 = {
    .model_type = "phi3",
    .defaults = FAMILY_JSON({"rms_norm_eps" : 1e-5, "max_position_embeddings" : 4096}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
