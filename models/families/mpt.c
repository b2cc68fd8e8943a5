/*
 * MPT (MosaicML 2023): ALiBi, no biases at all.
 * Source: transformers/models/mpt/{configuration,modeling}_mpt.py.
 */
#include "models/family.h"

static void read_attention(struct config *c, struct model_spec *spec)
{
    const struct json *const attention = config_any(c, "attn_config");
    if (!json_bool(json_get(attention, "alibi"), true))
        config_fail(c, "\"attn_config\": models without \"alibi\" are not supported");
    if (json_bool(json_get(attention, "qk_ln"), false) ||
        json_bool(json_get(attention, "prefix_lm"), false) ||
        json_bool(json_get(attention, "attn_uses_sequence_id"), false))
        config_fail(
            c, "\"attn_config\": qk_ln, prefix_lm and attn_uses_sequence_id are not supported");
    spec->alibi_bias_max = (float)config_positive(c, attention, "alibi_bias_max", 8);
    spec->clip_qkv = (float)config_positive(c, attention, "clip_qkv", 0);
    const double scale = config_positive(c, attention, "softmax_scale", 0);
    for (int i = 0; scale > 0 && i < spec->num_hidden_layers; i++)
        spec->layers[i].attention_scale = (float)scale;
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "blocks.{}.norm_1", LAYOUT_OUT_IN},
    {ROLE_QUERY, "blocks.{}.attn.Wqkv", LAYOUT_OUT_IN},
    {ROLE_KEY, "blocks.{}.attn.Wqkv", LAYOUT_OUT_IN},
    {ROLE_VALUE, "blocks.{}.attn.Wqkv", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "blocks.{}.attn.out_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "blocks.{}.norm_2", LAYOUT_OUT_IN},
    {ROLE_UP, "blocks.{}.ffn.up_proj", LAYOUT_OUT_IN},
    {ROLE_DOWN, "blocks.{}.ffn.down_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm_f", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {
        "emb_pdrop",       "embedding_fraction", "init_config", "init_device",
        "learned_pos_emb", "norm_type",          "verbose",     NULL};
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "d_model", CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, "n_layers", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings = config_size_or(c, "max_seq_len", CONFIG_MAX_SIZE, 2048);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->positions = POSITIONS_ALIBI;
    spec->norm = NORM_LAYER;
    spec->norm_eps = 1e-5f;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = ACT_GELU;
    spec->intermediate_size =
        config_size_or(c, "expansion_ratio", 64, 4) * min_int(spec->hidden_size, 1 << 18);
    config_require_bool(c, "no_bias", true);
    config_heads(c, spec, "n_heads");
    config_skip(c, notes);
    if (config_layers(c, spec))
        read_attention(c, spec);
}

const struct family family_mpt = {
    .model_type = "mpt",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = NULL,
};
