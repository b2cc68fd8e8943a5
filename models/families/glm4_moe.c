/*
 * GLM-4.5 and 4.6 (Zhipu 2025): ordinary attention, half of each head rotates, with the experts of
 * deepseek_v3. Source: transformers/models/glm4_moe/{configuration,modular}_glm4_moe.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_norm", LAYOUT_OUT_IN},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_norm", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_GATE, "layers.{}.mlp.gate_proj", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.mlp.up_proj", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.mlp.down_proj", LAYOUT_OUT_IN},
    {ROLE_ROUTER, "layers.{}.mlp.gate", LAYOUT_OUT_IN},
    {ROLE_EXPERT_GATE, "layers.{}.mlp.experts.{}.gate_proj", LAYOUT_OUT_IN},
    {ROLE_EXPERT_UP, "layers.{}.mlp.experts.{}.up_proj", LAYOUT_OUT_IN},
    {ROLE_EXPERT_DOWN, "layers.{}.mlp.experts.{}.down_proj", LAYOUT_OUT_IN},
    {ROLE_ROUTER_CORRECTION, "layers.{}.mlp.gate.e_score_correction_bias", LAYOUT_BARE},
    {ROLE_SHARED_GATE, "layers.{}.mlp.shared_experts.gate_proj", LAYOUT_OUT_IN},
    {ROLE_SHARED_UP, "layers.{}.mlp.shared_experts.up_proj", LAYOUT_OUT_IN},
    {ROLE_SHARED_DOWN, "layers.{}.mlp.shared_experts.down_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    family_deepseek_experts(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_QKV, false);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.5});
    spec->moe.router = ROUTER_SIGMOID;
    spec->moe.correction = true;
    spec->moe.group_by_two = true;
    if (config_bool_or(c, "use_qk_norm", false))
        spec->qk_norm = QK_NORM_HEAD;
}

const struct family family_glm4_moe = {
    .model_type = "glm4_moe",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = NULL,
};
