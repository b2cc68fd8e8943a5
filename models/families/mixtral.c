/*
 * Mixtral (Jiang et al. 2024): mistral with a few of many feed-forwards for each token.
 * Source: transformers/models/mixtral/{configuration,modular}_mixtral.py.
 */
#include "models/family.h"

const struct tensor_entry family_mixtral_tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_ROUTER, "layers.{}.block_sparse_moe.gate", LAYOUT_OUT_IN},
    {ROLE_EXPERT_GATE, "layers.{}.block_sparse_moe.experts.{}.w1", LAYOUT_OUT_IN},
    {ROLE_EXPERT_UP, "layers.{}.block_sparse_moe.experts.{}.w3", LAYOUT_OUT_IN},
    {ROLE_EXPERT_DOWN, "layers.{}.block_sparse_moe.experts.{}.w2", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_experts(c, spec, "num_local_experts");
    spec->moe.moe_intermediate_size = spec->intermediate_size;
    spec->moe.router = ROUTER_SOFTMAX_CHOSEN;
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_mixtral = {
    .model_type = "mixtral",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_mixtral_tensors,
    .ignored = NULL,
};
