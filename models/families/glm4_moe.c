/*
 * GLM-4.5 and 4.6 (Zhipu 2025): ordinary attention, half of each head rotates, with the experts of
 * deepseek_v3. Source: transformers/models/glm4_moe/{configuration,modular}_glm4_moe.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    family_deepseek_experts(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_QKV, false);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.5});
    spec->moe.router = ROUTER_SIGMOID;
    spec->moe.correction = true;
    spec->moe.group_by_two = true;
    if (config_bool_or(c, "use_qk_norm", false))
        spec->qk_norm = QK_NORM_HEAD;
}

const struct family family_glm4_moe = {
    .model_type = "glm4_moe",
    .defaults = FAMILY_JSON({
        "norm_topk_prob" : true,
        "num_key_value_heads" : 8,
        "max_position_embeddings" : 131072,
        "rms_norm_eps" : 1e-5,
        "n_group" : 1,
        "topk_group" : 1,
        "n_shared_experts" : 1,
        "first_k_dense_replace" : 1
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
