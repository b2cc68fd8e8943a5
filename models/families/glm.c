/*
 * GLM-4-9B (Zhipu 2024): half of each head rotates, in pairs of neighbours; gate and up are one
 * matrix. Source: transformers/models/glm/{configuration,modular}_glm.py.
 */
#include "models/family.h"

const struct tensor_entry family_glm_tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_POST_NORM, "layers.{}.post_self_attn_layernorm", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_GATE, "layers.{}.mlp.gate_up_proj", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.mlp.gate_up_proj", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.mlp.down_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_POST_NORM, "layers.{}.post_mlp_layernorm", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

void family_glm_base(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_QKV, false);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.5});
    spec->ropes[0].interleaved = true;
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_glm_base(c, spec);
}

const struct family family_glm = {
    .model_type = "glm",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_glm_tensors,
    .ignored = NULL,
};
