/*
 * Gemma 2 (Google 2024): gemma with norms on both sides of the halves, soft caps on scores and
 * logits, and windows in every other layer. Source:
 * transformers/models/gemma2/{configuration,modular}_gemma2.py.
 */
#include "models/family.h"

#include <math.h>

const struct tensor_entry family_gemma2_tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm"},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_norm"},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_norm"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj"},
    {ROLE_ATTENTION_POST_NORM, "layers.{}.post_attention_layernorm"},
    {ROLE_FFN_NORM, "layers.{}.pre_feedforward_layernorm"},
    {ROLE_GATE, "layers.{}.mlp.gate_proj"},
    {ROLE_UP, "layers.{}.mlp.up_proj"},
    {ROLE_DOWN, "layers.{}.mlp.down_proj"},
    {ROLE_FFN_POST_NORM, "layers.{}.post_feedforward_layernorm"},
    {ROLE_FINAL_NORM, "norm"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

void family_gemma2_base(struct config *c, struct model_spec *spec)
{
    family_gemma_base(c, spec);
    config_require_bool(c, "attention_bias", false);
    spec->norm_place = NORM_BOTH;
    const double scalar = config_positive_or(c, "query_pre_attn_scalar", 256);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].attention_scale = (float)(1 / sqrt(scalar));
}

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"sliding_window_size", NULL}; /* not read: 9B, 27B */
    family_gemma2_base(c, spec);
    config_skip(c, notes);
    spec->attn_logit_softcapping = config_softcap(c, "attn_logit_softcapping", 50);
    spec->final_logit_softcapping = config_softcap(c, "final_logit_softcapping", 30);
    config_window_pattern(c, spec, 4096, 2);
}

const struct family family_gemma2 = {
    .model_type = "gemma2",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_gemma2_tensors,
};
