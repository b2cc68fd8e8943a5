/*
 * GLM-4-9B (Zhipu 2024): half of each head rotates, in pairs of neighbours; gate and up are one
 * matrix. Source: transformers/models/glm/{configuration,modular}_glm.py.
 */
#include "models/family.h"

void family_glm_base(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_QKV, false);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.5});
    spec->ropes[0].interleaved = true;
}

const struct family family_glm = {
    .model_type = "glm",
    .defaults = FAMILY_JSON({
        "num_key_value_heads" : 2,
        "head_dim" : 128,
        "rms_norm_eps" : 1.5625e-07,
        "attention_bias" : true
    }),
    .configure = family_glm_base,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
