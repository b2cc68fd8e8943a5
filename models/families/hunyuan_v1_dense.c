/*
 * Hunyuan dense (Tencent 2025): llama whose queries and keys are normalised after they have
 * rotated. Source:
 * transformers/models/hunyuan_v1_dense/{configuration,modular}_hunyuan_v1_dense.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.query_layernorm", LAYOUT_OUT_IN},
    {ROLE_KEY_NORM, "layers.{}.self_attn.key_layernorm", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_GATE, "layers.{}.mlp.gate_proj", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.mlp.up_proj", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.mlp.down_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"eod_token_id", NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    config_require_bool(c, "use_qk_norm", true);
    spec->qk_norm = QK_NORM_HEAD;
    spec->qk_norm_after_rope = true;
}

const struct family family_hunyuan_v1_dense = {
    .model_type = "hunyuan_v1_dense",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = family_llama_ignored,
};
