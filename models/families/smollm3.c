/*
 * SmolLM3 (Hugging Face 2025): llama without positions in every fourth layer. Windows, where they
 * are switched on, belong to the layers without positions.
 * Source: transformers/models/smollm3/{configuration,modular}_smollm3.py.
 */
#include "models/family.h"

/* no_rope_layers says 1 where a layer rotates; without it every no_rope_layer_interval-th does not.
 */
static void drop_positions(struct config *c, struct model_spec *spec)
{
    const int interval = config_size_or(c, "no_rope_layer_interval", CONFIG_MAX_LAYERS, 4);
    const struct json *const list = config_any(c, "no_rope_layers");
    const struct json *j = json_first(list);
    if (list && json_count(list) != (size_t)spec->num_hidden_layers)
        config_fail(c, "\"no_rope_layers\" must be a list of %d numbers", spec->num_hidden_layers);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++) {
        const bool rotates = j ? json_number(j, 1) != 0 : (i + 1) % interval != 0;
        spec->layers[i].rope = rotates ? 0 : SPEC_NO_ROPE;
        j = j ? json_next(j) : NULL;
    }
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    family_qwen_windows(c, spec);
    drop_positions(c, spec);
    const int window = family_qwen_window(c);
    for (int i = 0; !c->failed && !config_has_layer_types(c) && i < spec->num_hidden_layers; i++)
        spec->layers[i].window = spec->layers[i].rope == SPEC_NO_ROPE ? window : 0;
}

const struct family family_smollm3 = {
    .model_type = "smollm3",
    .defaults = FAMILY_JSON(
        {"num_key_value_heads" : 4, "max_position_embeddings" : 32768, "rope_theta" : 2e6}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
