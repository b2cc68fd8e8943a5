/*
 * OLMoE (Muennighoff et al. 2024): llama with experts, queries and keys normalised over all heads
 * together. Source: transformers/models/olmoe/{configuration,modular}_olmoe.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_experts(c, spec, "num_experts");
    spec->moe.moe_intermediate_size = spec->intermediate_size;
    spec->moe.norm_topk_prob = config_bool_or(c, "norm_topk_prob", false);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    spec->qk_norm = QK_NORM_FULL;
    spec->clip_qkv = (float)config_positive_or(c, "clip_qkv", 0);
}

const struct family family_olmoe = {
    .model_type = "olmoe",
    .defaults = FAMILY_JSON({"rms_norm_eps" : 1e-5, "max_position_embeddings" : 4096}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
