/*
 * DeepSeek-V3, R1 and Kimi K2 (DeepSeek-AI 2024): deepseek_v2 with a sigmoid router whose
 * correction chooses and does not weigh. Source: deepseek-ai/DeepSeek-V3, modeling_deepseek.py;
 * transformers/models/deepseek_v3.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"ep_size", "aux_loss_alpha", "seq_aux", NULL};
    family_deepseek_base(c, spec);
    config_skip(c, notes);
    config_require_text(c, "scoring_func", "sigmoid");
    config_require_text(c, "topk_method", "noaux_tc");
    spec->moe.router = ROUTER_SIGMOID;
    spec->moe.correction = true;
    spec->moe.group_by_two = true;
}

static const char *const aliases[] = {"kimi_k2", NULL};

const struct family family_deepseek_v3 = {
    .model_type = "deepseek_v3",
    .defaults = FAMILY_JSON({
        "max_position_embeddings" : 4096,
        "norm_topk_prob" : true,
        "routed_scaling_factor" : 2.5,
        "n_group" : 8,
        "topk_group" : 4,
        "n_shared_experts" : 1,
        "first_k_dense_replace" : 3
    }),
    .aliases = aliases,
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
