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
    if (newer) { /* 40B, 11B: [q .. q k v] for each key and value head */
        spec->num_key_value_heads = kv_heads ? kv_heads : spec->num_attention_heads;
        spec->qkv_groups = spec->num_key_value_heads;
    } else if (multi_query) { /* 7B */
        spec->num_key_value_heads = 1;
    } else { /* RW */
        spec->num_key_value_heads = spec->num_attention_heads;
        spec->qkv_groups = spec->num_attention_heads;
    }
    if (spec->num_attention_heads % spec->num_key_value_heads)
        config_fail(c, "%d heads do not divide into %d groups", spec->num_attention_heads,
                    spec->num_key_value_heads);
    if (newer || parallel)
        spec->residual = n_norms == 2 ? RESIDUAL_PARALLEL : RESIDUAL_PARALLEL_SHARED;
    config_require_bool(c, "apply_residual_connection_post_layernorm", false);
}

static void read_positions(struct config *c, struct model_spec *spec)
{
    static const char *const unused[] = {"rope_theta", "rope_scaling", "rope_parameters", NULL};
    if (config_bool_or(c, "alibi", false)) {
        config_skip(c, unused); /* saved all the same */
        spec->positions = POSITIONS_ALIBI;
        spec->alibi_scale =
            (float)(1 / sqrt(spec->head_dim)); /* added before the scores are scaled */
    } else {
        spec->positions = POSITIONS_ROPE;
        spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 1});
    }
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "word_embeddings"},
    {ROLE_ATTENTION_NORM, "h.{}.input_layernorm"},
    {ROLE_ATTENTION_NORM, "h.{}.ln_attn"},
    {ROLE_QUERY, "h.{}.self_attention.query_key_value"},
    {ROLE_KEY, "h.{}.self_attention.query_key_value"},
    {ROLE_VALUE, "h.{}.self_attention.query_key_value"},
    {ROLE_ATTENTION_OUT, "h.{}.self_attention.dense"},
    {ROLE_FFN_NORM, "h.{}.post_attention_layernorm"},
    {ROLE_FFN_NORM, "h.{}.ln_mlp"},
    {ROLE_UP, "h.{}.mlp.dense_h_to_4h"},
    {ROLE_DOWN, "h.{}.mlp.dense_4h_to_h"},
    {ROLE_FINAL_NORM, "ln_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    const struct classic_keys keys = {
        .hidden_size = "hidden_size",
        .num_hidden_layers = json_get(c->root, "n_layer") ? "n_layer" : "num_hidden_layers",
        .num_attention_heads = json_get(c->root, "n_head") ? "n_head" : "num_attention_heads",
        .intermediate_size = "ffn_hidden_size",
        .max_positions = "max_position_embeddings",
        .default_max_positions = 2048,
        .norm_eps = "layer_norm_epsilon",
        .hidden_act = "activation",
        .default_hidden_act = ACT_GELU,
    };
    family_classic_base(c, spec, &keys);
    spec->biases = ROLES_NORM | config_roles(c, "bias", ROLES_ATTENTION | ROLES_FFN, false);
    if (config_size_or(c, "ff_factor", 1024, 4) != 4 && !json_get(c->root, "ffn_hidden_size"))
        config_fail(c, "\"ff_factor\" without \"ffn_hidden_size\" is not supported");
    read_heads(c, spec);
    read_positions(c, spec);
}

static const char *const aliases[] = {"RefinedWeb", "RefinedWebModel", NULL};

const struct family family_falcon = {
    .model_type = "falcon",
    .aliases = aliases,
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .linear_class = "FalconLinear",
};
