/*
 * Qwen3 (Yang et al. 2025): llama with an RMSNorm on every query and key head before they rotate,
 * and heads whose size is not hidden_size / num_attention_heads. Source:
 * transformers/models/qwen3/{configuration,modeling}_qwen3.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    spec->qk_norm = QK_NORM_HEAD;
    family_qwen_windows(c, spec);
}

const struct family family_qwen3 = {
    .model_type = "qwen3",
    .defaults = FAMILY_JSON(
        {"num_key_value_heads" : 32, "head_dim" : 128, "max_position_embeddings" : 32768}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
