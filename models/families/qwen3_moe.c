/*
 * Qwen3 MoE (Yang et al. 2025): qwen3 with experts.
 * Source: transformers/models/qwen3_moe/{configuration,modular}_qwen3_moe.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const unused[] = {"max_window_layers", NULL};
    family_qwen_moe_base(c, spec);
    config_windows(c, spec, family_qwen_window(c), 0); /* in every layer, unlike qwen3 */
    config_skip(c, unused);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    config_require_bool(c, "use_qk_norm", true);
    spec->qk_norm = QK_NORM_HEAD;
}

const struct family family_qwen3_moe = {
    .model_type = "qwen3_moe",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
