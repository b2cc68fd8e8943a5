/*
 * OLMo 3 (Ai2 2025): olmo2 with windows in three of four layers, whose positions are not scaled.
 * Source: transformers/models/olmo3/{configuration,modular}_olmo3.py (4.57, 5.15).
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_olmo2_base(c, spec);
    config_window_pattern(c, spec, 4096, 4);
    spec->ropes[1] = config_rope_sliding(c, spec, spec->ropes[0].theta);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].rope = spec->layers[i].window ? 1 : 0;
}

const struct family family_olmo3 = {
    .model_type = "olmo3",
    .defaults = FAMILY_JSON({"rms_norm_eps" : 1e-5}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_olmo2_tensors,
};
