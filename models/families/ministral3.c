/*
 * Ministral 3 (Mistral AI 2025): mistral whose queries grow with the logarithm of far positions.
 * Source: transformers/models/ministral3/{configuration,modular}_ministral3.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_require_rope(c);
    const struct json *const rope = json_get(c->root, "rope_parameters");
    if (!config_says_nothing(json_get(rope, "llama_4_scaling_beta"))) /* 0: none */
        spec->llama_4_scaling_beta = (float)config_positive(c, rope, "llama_4_scaling_beta", 0);
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_ministral3 = {
    .model_type = "ministral3",
    .defaults = FAMILY_JSON({
        "vocab_size" : 131072,
        "hidden_size" : 4096,
        "intermediate_size" : 14336,
        "num_hidden_layers" : 34,
        "num_attention_heads" : 32,
        "num_key_value_heads" : 8,
        "head_dim" : 128,
        "max_position_embeddings" : 262144,
        "rms_norm_eps" : 1e-5
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
