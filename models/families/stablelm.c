/*
 * StableLM 2 and 3B (Stability AI 2023): llama with LayerNorms, a quarter of each head rotates.
 * Source: transformers/models/stablelm/{configuration,modeling}_stablelm.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_layernorm.norms.{}", LAYOUT_OUT_IN},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_layernorm.norms.{}", LAYOUT_OUT_IN},
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
    static const char *const notes[] = {"hidden_dropout", NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
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
    .tensors = tensors,
    .ignored = family_llama_ignored,
};
