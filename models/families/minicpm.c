/*
 * MiniCPM (OpenBMB 2024): llama with the scales of its tensor programs.
 * Source: openbmb/MiniCPM-2B-sft-bf16, modeling_minicpm.py.
 */
#include "models/family.h"

#include <math.h>

static const char *const skipped[] = {
    "mup_denominator", /* scales the heads of a speculative decoder */
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_skip(c, skipped);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    spec->embedding_scale = (float)config_positive_or(c, "scale_emb", 1);
    const double neutral = sqrt(spec->num_hidden_layers); /* what null says in transformers 5 */
    const double depth =
        config_positive_or(c, "scale_depth", json_get(c->root, "scale_depth") ? neutral : 1);
    spec->residual_multiplier = (float)(depth / neutral);
    const double base = config_positive_or(
        c, "dim_model_base", json_get(c->root, "dim_model_base") ? spec->hidden_size : 1);
    spec->logit_scale = (float)(base / spec->hidden_size);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
}

const struct family family_minicpm = {
    .model_type = "minicpm",
    .class = "MiniCPMForCausalLM",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
