/*
 * Command R (Cohere 2024): LayerNorm without a bias, attention and feed-forward in parallel from
 * one norm, pairs of neighbours rotate, logits are scaled. Source:
 * transformers/models/cohere/{configuration,modeling}_cohere.py.
 */
#include "models/family.h"

void family_cohere_base(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_eps", 1e-5);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    spec->residual = RESIDUAL_PARALLEL_SHARED;
    spec->ropes[0].interleaved = true;
    spec->logit_scale = (float)config_positive_or(c, "logit_scale", 0.0625);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    /* Command R's max_position_embeddings is not what it was trained with. */
    const int trained = config_size_or(c, "model_max_length", CONFIG_MAX_SIZE, 1);
    spec->max_position_embeddings = max_int(spec->max_position_embeddings, trained);
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_cohere_base(c, spec);
    if (config_bool_or(c, "use_qk_norm", false))
        spec->qk_norm = QK_NORM_OWN_HEAD;
}

const struct family family_cohere = {
    .model_type = "cohere",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
