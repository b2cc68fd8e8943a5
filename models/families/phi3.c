/*
 * Phi-3, 3.5, 4 and 4-mini (Microsoft 2024): llama with fused matrices, windows, and factors for
 * long texts. Source: transformers/models/phi3/{configuration,modular}_phi3.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.qkv_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.qkv_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.qkv_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_GATE, "layers.{}.mlp.gate_up_proj", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.mlp.gate_up_proj", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.mlp.down_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_require_bool(c, "attention_bias", false);
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_phi3 = {
    .model_type = "phi3",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = family_llama_ignored,
};
