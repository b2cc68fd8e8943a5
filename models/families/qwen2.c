/*
 * Qwen2 and Qwen2.5 (Yang et al. 2024): llama with biases on queries, keys and values, and a window
 * in the upper layers where the config switches it on. Source:
 * transformers/models/qwen2/configuration_qwen2.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {
        "attention_bias",              /* there are biases whatever it says */
        "dual_chunk_attention_config", /* for vLLM alone */
        NULL,
    };
    family_llama_base(c, spec);
    config_skip(c, notes);
    spec->biases = ROLES_QKV;
    family_qwen_windows(c, spec);
}

int family_qwen_window(struct config *c)
{
    const bool on = config_bool_or(c, "use_sliding_window", false);
    config_any(c, "sliding_window"); /* where it is off, any number or null; newer qwen2_moe: 0 */
    return on ? config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 4096) : 0;
}

void family_qwen_windows(struct config *c, struct model_spec *spec)
{
    const int first = config_count_or(c, "max_window_layers", CONFIG_MAX_LAYERS, 28);
    config_windows(c, spec, family_qwen_window(c), first);
}

const struct family family_qwen2 = {
    .model_type = "qwen2",
    .defaults = FAMILY_JSON({"num_key_value_heads" : 32, "max_position_embeddings" : 32768}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
