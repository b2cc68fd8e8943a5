/*
 * Apertus (Swiss AI 2025): normalised queries and keys, a plain feed-forward with the trained
 * activation xIELU. Source: transformers/models/apertus/modular_apertus.py,
 * transformers/activations.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_norm", LAYOUT_OUT_IN},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_norm", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.feedforward_layernorm", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.mlp.up_proj", LAYOUT_OUT_IN},
    {ROLE_XIELU_P, "layers.{}.mlp.act_fn.alpha_p", LAYOUT_BARE},
    {ROLE_XIELU_N, "layers.{}.mlp.act_fn.alpha_n", LAYOUT_BARE},
    {ROLE_DOWN, "layers.{}.mlp.down_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static const char *const ignored[] = {
    "layers.{}.mlp.act_fn.beta", /* constants, saved as buffers */
    "layers.{}.mlp.act_fn.eps",
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    config_require_bool(c, "mlp_bias", false);
    config_require_bool(c, "qk_norm", true); /* noted by the makers' saves, fixed in the code */
    config_require_bool(c, "post_norm", false);
    spec->qk_norm = QK_NORM_HEAD;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_XIELU);
}

const struct family family_apertus = {
    .model_type = "apertus",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = ignored,
};
