/*
 * EXAONE 4.0 (LG AI Research 2025): norms behind the halves, queries and keys normalised by head;
 * where there are windows, the layers without one have no positions. Source:
 * transformers/models/exaone4/{configuration,modular}_exaone4.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->norm_place = NORM_AFTER;
    spec->qk_norm = QK_NORM_HEAD;
    config_window_pattern(c, spec, 0, 4);
    const bool windows = config_any(c, "sliding_window");
    for (int i = 0; windows && !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].rope = spec->layers[i].window ? 0 : SPEC_NO_ROPE;
}

const struct family family_exaone4 = {
    .model_type = "exaone4",
    .defaults = FAMILY_JSON({"rms_norm_eps" : 1e-5, "sliding_window" : 4096}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_olmo2_tensors,
};
