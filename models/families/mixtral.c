/*
 * Mixtral (Jiang et al. 2024): mistral with a few of many feed-forwards for each token.
 * Source: transformers/models/mixtral/{configuration,modular}_mixtral.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_experts(c, spec, "num_local_experts");
    spec->moe.moe_intermediate_size = spec->intermediate_size;
    spec->moe.router = ROUTER_SOFTMAX_CHOSEN;
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_mixtral = {
    .model_type = "mixtral",
    .defaults = FAMILY_JSON({
        "num_key_value_heads" : 8,
        "max_position_embeddings" : 131072,
        "rms_norm_eps" : 1e-5,
        "rope_theta" : 1e6
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
