/*
 * GLM-4-0414 (Zhipu 2025): glm with norms on both sides of the halves.
 * Source: transformers/models/glm4/{configuration,modular}_glm4.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_glm_base(c, spec);
    spec->norm_place = NORM_BOTH;
}

const struct family family_glm4 = {
    .model_type = "glm4",
    .defaults = FAMILY_JSON({
        "num_key_value_heads" : 2,
        "head_dim" : 128,
        "rms_norm_eps" : 1.5625e-07,
        "attention_bias" : true
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
