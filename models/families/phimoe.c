/*
 * Phi-3.5-MoE (Microsoft 2024): mixtral with LayerNorms, biases, and a router that picks its two
 * experts by turns. Source: transformers/models/phimoe/{configuration,modeling}_phimoe.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"input_jitter_noise", NULL};
    family_llama_base(c, spec);
    config_experts(c, spec, "num_local_experts");
    config_skip(c, notes);
    spec->moe.moe_intermediate_size = spec->intermediate_size;
    spec->moe.router = ROUTER_SPARSEMIXER;
    spec->moe.router_jitter_noise = (float)config_positive_or(c, "router_jitter_noise", 0.01);
    spec->norm = NORM_LAYER;
    spec->biases = ROLES_NORM | config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "lm_head_bias", ROLE_BIT(ROLE_HEAD), false);
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_phimoe = {
    .model_type = "phimoe",
    .defaults = FAMILY_JSON({
        "num_key_value_heads" : 8,
        "max_position_embeddings" : 131072,
        "rms_norm_eps" : 1e-5,
        "rope_theta" : 1e6
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
