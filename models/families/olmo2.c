/*
 * OLMo 2 (Ai2 2024): llama with its norms behind the halves, and queries and keys normalised over
 * all heads together. Source: transformers/models/olmo2/{configuration,modular}_olmo2.py.
 */
#include "models/family.h"

const struct tensor_entry family_olmo2_tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_norm"},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_norm"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj"},
    {ROLE_ATTENTION_POST_NORM, "layers.{}.post_attention_layernorm"},
    {ROLE_GATE, "layers.{}.mlp.gate_proj"},
    {ROLE_UP, "layers.{}.mlp.up_proj"},
    {ROLE_DOWN, "layers.{}.mlp.down_proj"},
    {ROLE_FFN_POST_NORM, "layers.{}.post_feedforward_layernorm"},
    {ROLE_FINAL_NORM, "norm"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

void family_olmo2_base(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    spec->norm_place = NORM_AFTER;
    spec->qk_norm = QK_NORM_FULL;
}

const struct family family_olmo2 = {
    .model_type = "olmo2",
    .defaults = FAMILY_JSON({"rms_norm_eps" : 1e-5}),
    .configure = family_olmo2_base,
    .prefix = "model.",
    .tensors = family_olmo2_tensors,
};
