/*
 * Mistral (Jiang et al. 2023): llama whose every layer sees a sliding window, in the first version.
 * Source: transformers/models/mistral/configuration_mistral.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    const int absent = json_get(c->root, "sliding_window") ? 0 : 4096; /* null says "none" */
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, absent), 0);
}

/* As AutoConfig names a mistral with layer_types. */
static const char *const aliases[] = {"ministral", NULL};

const struct family family_mistral = {
    .model_type = "mistral",
    .defaults = FAMILY_JSON({
        "vocab_size" : 32000,
        "hidden_size" : 4096,
        "intermediate_size" : 14336,
        "num_hidden_layers" : 32,
        "num_attention_heads" : 32,
        "num_key_value_heads" : 8,
        "max_position_embeddings" : 131072
    }),
    .aliases = aliases,
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
