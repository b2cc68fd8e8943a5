/*
 * Granite 3 MoE (IBM 2024): granite with experts, all in one tensor.
 * Source: transformers/models/granitemoe/{configuration,modular}_granitemoe.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_ROUTER, "layers.{}.block_sparse_moe.router.layer", LAYOUT_OUT_IN},
    {ROLE_EXPERT_GATE, "layers.{}.block_sparse_moe.input_linear", LAYOUT_OUT_IN},
    {ROLE_EXPERT_UP, "layers.{}.block_sparse_moe.input_linear", LAYOUT_OUT_IN},
    {ROLE_EXPERT_DOWN, "layers.{}.block_sparse_moe.output_linear", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_granite_base(c, spec);
    config_experts(c, spec, "num_local_experts");
    spec->moe.moe_intermediate_size = spec->intermediate_size;
    spec->moe.router = ROUTER_SOFTMAX_CHOSEN;
}

const struct family family_granitemoe = {
    .model_type = "granitemoe",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = NULL,
};
