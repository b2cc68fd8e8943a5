/*
 * CTRL (Keskar et al. 2019): sinusoidal positions, embeddings times sqrt(hidden_size), a tied head
 * with a bias. Source: transformers/models/ctrl/{configuration,modeling}_ctrl.py.
 */
#include "models/family.h"

#include <math.h>

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "w"},
    {ROLE_ATTENTION_NORM, "h.{}.layernorm1"},
    {ROLE_QUERY, "h.{}.multi_head_attention.Wq"},
    {ROLE_KEY, "h.{}.multi_head_attention.Wk"},
    {ROLE_VALUE, "h.{}.multi_head_attention.Wv"},
    {ROLE_ATTENTION_OUT, "h.{}.multi_head_attention.dense"},
    {ROLE_FFN_NORM, "h.{}.layernorm2"},
    {ROLE_UP, "h.{}.ffn.0"},
    {ROLE_DOWN, "h.{}.ffn.2"},
    {ROLE_FINAL_NORM, "layernorm"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"from_tf", NULL};
    family_gpt2_base(c, spec);
    config_skip(c, notes);
    spec->positions = POSITIONS_SINUSOIDAL;
    spec->embedding_scale = sqrtf((float)spec->hidden_size);
    spec->final_norm_eps = spec->norm_eps;
    spec->norm_eps = 1e-6f;
    spec->biases |= ROLE_BIT(ROLE_HEAD);
    spec->hidden_act = ACT_RELU;
    spec->intermediate_size = config_size(c, "dff", CONFIG_MAX_SIZE);
}

const struct family family_ctrl = {
    .model_type = "ctrl",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
};
