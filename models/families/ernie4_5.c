/*
 * ERNIE 4.5 (Baidu 2025), the dense ones: llama whose pairs of neighbours rotate.
 * Source: transformers/models/ernie4_5/{configuration,modular}_ernie4_5.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "use_bias", ROLES_ATTENTION | ROLES_FFN, false);
    spec->ropes[0].interleaved = true;
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
}

const struct family family_ernie4_5 = {
    .model_type = "ernie4_5",
    .defaults = FAMILY_JSON({
        "num_key_value_heads" : 2,
        "head_dim" : 128,
        "max_position_embeddings" : 131072,
        "rms_norm_eps" : 1e-5,
        "rope_theta" : 500000
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
