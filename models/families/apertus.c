/*
 * Apertus (Swiss AI 2025): normalised queries and keys, a plain feed-forward with the trained
 * activation xIELU. Source: transformers/models/apertus/modular_apertus.py,
 * transformers/activations.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_require_rope(c);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    config_require_bool(c, "mlp_bias", false);
    config_require_bool(c, "qk_norm", true); /* noted by the makers' saves, fixed in the code */
    config_require_bool(c, "post_norm", false);
    spec->qk_norm = QK_NORM_HEAD;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_XIELU);
}

const struct family family_apertus = {
    .model_type = "apertus",
    .defaults = FAMILY_JSON(
        {"rms_norm_eps" : 1e-5, "max_position_embeddings" : 65536, "rope_theta" : 12e6}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
