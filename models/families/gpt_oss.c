/*
 * gpt-oss (OpenAI 2025): experts with a clamped gate, a sink in every softmax, windows in every
 * other layer. Source: transformers/models/gpt_oss/{configuration,modular}_gpt_oss.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm"},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj"},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm"},
    {ROLE_SINKS, "layers.{}.self_attn.sinks", LAYOUT_BARE},
    {ROLE_ROUTER, "layers.{}.mlp.router"},
    {ROLE_EXPERT_GATE_UP, "layers.{}.mlp.experts.gate_up_proj", LAYOUT_IN_OUT | LAYOUT_BARE},
    {ROLE_EXPERT_DOWN, "layers.{}.mlp.experts.down_proj", LAYOUT_IN_OUT | LAYOUT_BARE},
    {ROLE_FINAL_NORM, "norm"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"experts_per_token", "initial_context_length", NULL};
    family_llama_base(c, spec);
    config_require_rope(c);
    config_experts(c, spec, "num_local_experts");
    config_skip(c, notes);
    spec->moe.moe_intermediate_size = spec->intermediate_size;
    spec->moe.router = ROUTER_SOFTMAX_CHOSEN;
    spec->moe.gate_up_interleaved = true;
    config_require_number(c, "swiglu_alpha", 1.702);
    spec->moe.swiglu_limit = (float)config_positive_or(c, "swiglu_limit", 7);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, true) |
                   ROLE_BIT(ROLE_ROUTER) | ROLE_BIT(ROLE_EXPERT_GATE_UP) |
                   ROLE_BIT(ROLE_EXPERT_DOWN);
    spec->sinks = true;
    config_window_pattern(c, spec, 128, 2);
}

const struct family family_gpt_oss = {
    .model_type = "gpt_oss",
    .defaults = FAMILY_JSON({
        "num_key_value_heads" : 8,
        "head_dim" : 64,
        "max_position_embeddings" : 131072,
        "rope_theta" : 150000,
        "rms_norm_eps" : 1e-5
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
};
