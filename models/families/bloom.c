/*
 * BLOOM (BigScience 2022): ALiBi, a norm behind the embedding, queries, keys and values fused head
 * by head. Source: transformers/models/bloom/{configuration,modeling}_bloom.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "word_embeddings"},
    {ROLE_EMBEDDING_NORM, "word_embeddings_layernorm"},
    {ROLE_ATTENTION_NORM, "h.{}.input_layernorm"},
    {ROLE_QUERY, "h.{}.self_attention.query_key_value"},
    {ROLE_KEY, "h.{}.self_attention.query_key_value"},
    {ROLE_VALUE, "h.{}.self_attention.query_key_value"},
    {ROLE_ATTENTION_OUT, "h.{}.self_attention.dense"},
    {ROLE_FFN_NORM, "h.{}.post_attention_layernorm"},
    {ROLE_UP, "h.{}.mlp.dense_h_to_4h"},
    {ROLE_DOWN, "h.{}.mlp.dense_4h_to_h"},
    {ROLE_FINAL_NORM, "ln_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"attention_softmax_in_fp32",
                                        "bias_dropout_fusion",
                                        "masked_softmax_fusion",
                                        "offset_alibi",
                                        "skip_bias_add",
                                        "skip_bias_add_qkv",
                                        "slow_but_exact",
                                        "n_inner",
                                        NULL};
    const struct classic_keys keys = {
        .hidden_size = json_get(c->root, "hidden_size") ? "hidden_size" : "n_embed",
        .num_hidden_layers = "n_layer",
        .num_attention_heads = json_get(c->root, "n_head") ? "n_head" : "num_attention_heads",
        .max_positions = "seq_length",
        .default_max_positions = 2048,
        .norm_eps = "layer_norm_epsilon",
        .default_hidden_act = ACT_GELU_TANH,
    };
    family_classic_base(c, spec, &keys);
    spec->embedding_norm = true;
    spec->positions = POSITIONS_ALIBI;
    if (config_bool_or(c, "apply_residual_connection_post_layernorm", false))
        spec->residual = RESIDUAL_FROM_NORM;
    spec->num_key_value_heads = spec->num_attention_heads;
    spec->qkv_groups = spec->num_attention_heads;
    config_skip(c, notes);
}

const struct family family_bloom = {
    .model_type = "bloom",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
};
