/*
 * BLOOM (BigScience 2022): ALiBi, a norm behind the embedding, queries, keys and values fused head
 * by head. Source: transformers/models/bloom/{configuration,modeling}_bloom.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "word_embeddings", LAYOUT_OUT_IN},
    {ROLE_EMBEDDING_NORM, "word_embeddings_layernorm", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "h.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "h.{}.self_attention.query_key_value", LAYOUT_OUT_IN},
    {ROLE_KEY, "h.{}.self_attention.query_key_value", LAYOUT_OUT_IN},
    {ROLE_VALUE, "h.{}.self_attention.query_key_value", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "h.{}.self_attention.dense", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "h.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_UP, "h.{}.mlp.dense_h_to_4h", LAYOUT_OUT_IN},
    {ROLE_DOWN, "h.{}.mlp.dense_4h_to_h", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "ln_f", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
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
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    const int hidden = config_size_or(c, "n_embed", CONFIG_MAX_SIZE, 64);
    spec->hidden_size = config_size_or(c, "hidden_size", CONFIG_MAX_SIZE, hidden);
    spec->num_hidden_layers = config_size(c, "n_layer", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings = config_size_or(c, "seq_length", CONFIG_MAX_SIZE, 2048);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->embedding_norm = true;
    spec->positions = POSITIONS_ALIBI;
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_epsilon", 1e-5);
    spec->biases = ROLES_ATTENTION | ROLES_FFN | ROLES_NORM;
    if (config_bool_or(c, "apply_residual_connection_post_layernorm", false))
        spec->residual = RESIDUAL_FROM_NORM;
    config_heads(c, spec, json_get(c->root, "n_head") ? "n_head" : "num_attention_heads");
    spec->qkv_groups = spec->num_attention_heads;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = ACT_GELU_TANH;
    spec->intermediate_size = 4 * spec->hidden_size;
    config_skip(c, notes);
    config_layers(c, spec);
}

const struct family family_bloom = {
    .model_type = "bloom",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = NULL,
};
