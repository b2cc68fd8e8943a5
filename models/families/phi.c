/*
 * Phi-1, 1.5 and 2 (Microsoft 2023): attention and feed-forward in parallel from one norm, biases
 * everywhere, a part of each head rotates. Source:
 * transformers/models/phi/{configuration,modular}_phi.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm"},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_layernorm"},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_layernorm"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.dense"},
    {ROLE_UP, "layers.{}.mlp.fc1"},
    {ROLE_DOWN, "layers.{}.mlp.fc2"},
    {ROLE_FINAL_NORM, "final_layernorm"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_eps", 1e-5);
    spec->biases = ROLES_ATTENTION | ROLES_FFN | ROLES_NORM | ROLE_BIT(ROLE_HEAD) |
                   ROLE_BIT(ROLE_QUERY_NORM) | ROLE_BIT(ROLE_KEY_NORM);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.5});
    spec->residual = RESIDUAL_PARALLEL_SHARED;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_GELU_TANH);
    if (config_bool_or(c, "qk_layernorm", false))
        spec->qk_norm = QK_NORM_HEAD;
}

const struct family family_phi = {
    .model_type = "phi",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = family_llama_ignored,
};
