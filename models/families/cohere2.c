/*
 * Command R7B and A (Cohere 2025): cohere with windows in three of four layers and no positions in
 * the fourth. Source: transformers/models/cohere2/{configuration,modular}_cohere2.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"layer_switch",
                                        "order_of_interleaved_layers",
                                        "use_embedding_sharing",
                                        "position_embedding_type",
                                        "cache_implementation",
                                        "use_parallel_embedding",
                                        NULL};
    family_cohere_base(c, spec);
    config_require_bool(c, "use_gated_activation", true);
    config_require_bool(c, "use_parallel_block", true);
    config_require_bool(c, "use_qk_norm", false);
    config_skip(c, notes);
    config_window_pattern(c, spec, 4096, 4);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].rope = spec->layers[i].window ? 0 : SPEC_NO_ROPE;
}

const struct family family_cohere2 = {
    .model_type = "cohere2",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
