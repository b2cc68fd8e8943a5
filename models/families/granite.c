/*
 * Granite 3 (IBM 2024): llama with four multipliers.
 * Source: transformers/models/granite/{configuration,modular}_granite.py.
 */
#include "models/family.h"

void family_granite_base(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
    spec->embedding_scale = (float)config_positive_or(c, "embedding_multiplier", 1);
    spec->residual_multiplier = (float)config_positive_or(c, "residual_multiplier", 1);
    spec->logit_scale = (float)(1 / config_positive_or(c, "logits_scaling", 1));
    const double scale = config_positive_or(c, "attention_multiplier", 1);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].attention_scale = (float)scale;
}

const struct family family_granite = {
    .model_type = "granite",
    .configure = family_granite_base,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
