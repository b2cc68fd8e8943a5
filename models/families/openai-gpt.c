/*
 * GPT (Radford et al. 2018): the decoder of 2017, with learned positions and norms around the sums.
 * Source: transformers/models/openai/{configuration,modeling}_openai.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "tokens_embed"},
    {ROLE_POSITIONS, "positions_embed"},
    {ROLE_QUERY, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_KEY, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_VALUE, "h.{}.attn.c_attn", LAYOUT_IN_OUT},
    {ROLE_ATTENTION_OUT, "h.{}.attn.c_proj", LAYOUT_IN_OUT},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1"},
    {ROLE_UP, "h.{}.mlp.c_fc", LAYOUT_IN_OUT},
    {ROLE_DOWN, "h.{}.mlp.c_proj", LAYOUT_IN_OUT},
    {ROLE_FFN_NORM, "h.{}.ln_2"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_gpt2_base(c, spec);
    spec->hidden_act = config_act_or(c, "afn", ACT_GELU);
    if (spec->hidden_act == ACT_GELU) /* "gelu" there is the tanh form */
        spec->hidden_act = ACT_GELU_TANH;
    spec->norm_place = NORM_OUTSIDE;
    spec->no_final_norm = true;
}

const struct family family_openai_gpt = {
    .model_type = "openai-gpt",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = family_gpt2_ignored,
};
