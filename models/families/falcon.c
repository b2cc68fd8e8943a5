/*
 * Falcon (TII 2023), 7B, 11B, 40B and RW, under the names of its first publication too.
 * Source: transformers/models/falcon/{configuration,modeling}_falcon.py.
 */
#include "models/family.h"

#include <math.h>

/* Heads and the form of a layer: each generation has its own. */
static void read_heads(struct config *c, struct model_spec *spec)
{
    const bool parallel = config_bool_or(c, "parallel_attn", true);
    const bool multi_query = config_bool_or(c, "multi_query", true);
    const int old_kv_heads = config_size_or(c, "n_head_kv", CONFIG_MAX_SIZE, 0);
    const int kv_heads = config_size_or(c, "num_kv_heads", CONFIG_MAX_SIZE, old_kv_heads);
    const bool newer = config_bool_or(c, "new_decoder_architecture", old_kv_heads > 0);
    const int n_norms = config_size_or(c, "num_ln_in_parallel_attn", 2, newer ? 2 : 1);
    config_heads(c, spec, json_get(c->root, "n_head") ? "n_head" : "num_attention_heads");
    if (newer) { /* 40B, 11B: [q .. q k v] for each key and value head */
        spec->num_key_value_heads = kv_heads ? kv_heads : spec->num_attention_heads;
        spec->qkv_groups = spec->num_key_value_heads;
    } else if (multi_query) { /* 7B */
        spec->num_key_value_heads = 1;
    } else { /* RW */
        spec->qkv_groups = spec->num_attention_heads;
    }
    if (spec->num_attention_heads % spec->num_key_value_heads)
        config_fail(c, "%d heads do not divide into %d groups", spec->num_attention_heads,
                    spec->num_key_value_heads);
    if (newer || parallel)
        spec->residual = n_norms == 2 ? RESIDUAL_PARALLEL : RESIDUAL_PARALLEL_SHARED;
    if (config_bool_or(c, "apply_residual_connection_post_layernorm", false))
        config_fail(c, "\"apply_residual_connection_post_layernorm\": true is not supported");
}

static void read_positions(struct config *c, struct model_spec *spec)
{
    if (config_bool_or(c, "alibi", false)) {
        spec->positions = POSITIONS_ALIBI;
        spec->alibi_scale =
            (float)(1 / sqrt(spec->head_dim)); /* added before the scores are scaled */
    } else {
        spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 1});
    }
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "word_embeddings", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "h.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "h.{}.ln_attn", LAYOUT_OUT_IN},
    {ROLE_QUERY, "h.{}.self_attention.query_key_value", LAYOUT_OUT_IN},
    {ROLE_KEY, "h.{}.self_attention.query_key_value", LAYOUT_OUT_IN},
    {ROLE_VALUE, "h.{}.self_attention.query_key_value", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "h.{}.self_attention.dense", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "h.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "h.{}.ln_mlp", LAYOUT_OUT_IN},
    {ROLE_UP, "h.{}.mlp.dense_h_to_4h", LAYOUT_OUT_IN},
    {ROLE_DOWN, "h.{}.mlp.dense_4h_to_h", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "ln_f", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "hidden_size", CONFIG_MAX_SIZE);
    const char *const layers = json_get(c->root, "n_layer") ? "n_layer" : "num_hidden_layers";
    spec->num_hidden_layers = config_size(c, layers, CONFIG_MAX_LAYERS);
    spec->max_position_embeddings =
        config_size_or(c, "max_position_embeddings", CONFIG_MAX_SIZE, 2048);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_epsilon", 1e-5);
    spec->biases = ROLES_NORM | config_roles(c, "bias", ROLES_ATTENTION | ROLES_FFN, false);
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "activation", ACT_GELU);
    const int factor = config_size_or(c, "ff_factor", 1024, 4);
    spec->intermediate_size = config_size_or(c, "ffn_hidden_size", CONFIG_MAX_SIZE,
                                             min_int(factor * spec->hidden_size, CONFIG_MAX_SIZE));
    read_heads(c, spec);
    read_positions(c, spec);
    config_layers(c, spec);
}

static const char *const aliases[] = {"RefinedWeb", "RefinedWebModel", NULL};

const struct family family_falcon = {
    .model_type = "falcon",
    .aliases = aliases,
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = NULL,
};
