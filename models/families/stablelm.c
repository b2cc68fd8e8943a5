/*
 * StableLM 2 and 3B (Stability AI 2023): llama with LayerNorms, a quarter of each head rotates.
 * Source: transformers/models/stablelm/{configuration,modeling}_stablelm.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"hidden_dropout", NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
    config_require_number(c, "num_heads", spec->num_attention_heads);
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_eps", 1e-5);
    spec->biases = ROLES_NORM | config_roles(c, "use_qkv_bias", ROLES_QKV, false);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.25});
    if (config_bool_or(c, "use_parallel_residual", false))
        spec->residual = RESIDUAL_PARALLEL_SHARED;
    if (config_bool_or(c, "qk_layernorm", false))
        spec->qk_norm = QK_NORM_OWN_HEAD;
}

const struct family family_stablelm = {
    .model_type = "stablelm",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
