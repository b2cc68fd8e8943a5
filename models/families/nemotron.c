/*
 * Nemotron (NVIDIA 2024): LayerNorm stored minus one, a squared-ReLU feed-forward without a gate,
 * half of each head rotates. Source:
 * transformers/models/nemotron/{configuration,modeling}_nemotron.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_require_number(c, "kv_channels", spec->head_dim); /* Minitron */
    spec->biases = ROLES_NORM | config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "norm_eps", 1e-5);
    spec->norm_plus_one = true;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_RELU2);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.5});
}

const struct family family_nemotron = {
    .model_type = "nemotron",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
