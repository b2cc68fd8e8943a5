/*
 * GPT-NeoX and Pythia (Black et al. 2022): attention and feed-forward in parallel, each from a norm
 * of its own, a part of each head rotates. Source:
 * transformers/models/gpt_neox/{configuration,modular}_gpt_neox.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_in"},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm"},
    {ROLE_QUERY, "layers.{}.attention.query_key_value"},
    {ROLE_KEY, "layers.{}.attention.query_key_value"},
    {ROLE_VALUE, "layers.{}.attention.query_key_value"},
    {ROLE_ATTENTION_OUT, "layers.{}.attention.dense"},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm"},
    {ROLE_UP, "layers.{}.mlp.dense_h_to_4h"},
    {ROLE_DOWN, "layers.{}.mlp.dense_4h_to_h"},
    {ROLE_FINAL_NORM, "final_layer_norm"},
    {ROLE_HEAD, "embed_out"},
    {0},
};

static const char *const ignored[] = {
    "layers.{}.attention.bias",
    "layers.{}.attention.masked_bias",
    "layers.{}.attention.rotary_emb.inv_freq",
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"num_steps", NULL}; /* of training: Polyglot */
    family_llama_base(c, spec);
    config_skip(c, notes);
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_eps", 1e-5);
    spec->biases =
        ROLES_FFN | ROLES_NORM | config_roles(c, "attention_bias", ROLES_ATTENTION, true);
    spec->num_key_value_heads = spec->num_attention_heads;
    spec->qkv_groups = spec->num_attention_heads;
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 0.25});
    if (config_bool_or(c, "use_parallel_residual", true))
        spec->residual = RESIDUAL_PARALLEL;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_GELU);
}

const struct family family_gpt_neox = {
    .model_type = "gpt_neox",
    .configure = configure,
    .prefix = "gpt_neox.",
    .tensors = tensors,
    .ignored = ignored,
};
