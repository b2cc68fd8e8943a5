/*
 * Granite 3 MoE (IBM 2024): granite with experts, all in one tensor.
 * Source: transformers/models/granitemoe/{configuration,modular}_granitemoe.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_granite_base(c, spec);
    config_experts(c, spec, "num_local_experts");
    spec->moe.moe_intermediate_size = spec->intermediate_size;
    spec->moe.router = ROUTER_SOFTMAX_CHOSEN;
    config_require_text(c, "position_embedding_type", "rope");
}

const struct family family_granitemoe = {
    .model_type = "granitemoe",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
