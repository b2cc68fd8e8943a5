/*
 * MPT (MosaicML 2023): ALiBi, no biases at all.
 * Source: transformers/models/mpt/{configuration,modeling}_mpt.py.
 */
#include "models/family.h"

#include <string.h>

static const char multihead[] = "multihead_attention";

static void read_attention(struct config *c, struct model_spec *spec)
{
    static const char *const off[] = {
        "qk_ln", "qk_gn", "prefix_lm", "attn_uses_sequence_id", "rope", "attn_logit_softcapping",
        NULL};
    const struct json *const attention = config_any(c, "attn_config");
    for (const char *const *key = off; *key; key++)
        if (!config_says_nothing(json_get(attention, *key)))
            config_fail(c, "\"attn_config\": \"%s\" is not supported", *key);
    if (strcmp(config_text(c, attention, "attn_type", multihead), multihead) != 0 ||
        json_number(json_get(attention, "sliding_window_size"), -1) > 0)
        config_fail(c,
                    "\"attn_config\": only attention of all heads to all positions is supported");
    if (!json_bool(json_get(attention, "alibi"), true))
        config_fail(c, "\"attn_config\": models without \"alibi\" are not supported");
    spec->alibi_bias_max = (float)config_positive(c, attention, "alibi_bias_max", 8);
    spec->clip_qkv = (float)config_positive(c, attention, "clip_qkv", 0);
    const double scale = config_positive(c, attention, "softmax_scale", 0);
    for (int i = 0; scale > 0 && i < spec->num_hidden_layers; i++)
        spec->layers[i].attention_scale = (float)scale;
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte"},
    {ROLE_ATTENTION_NORM, "blocks.{}.norm_1"},
    {ROLE_QUERY, "blocks.{}.attn.Wqkv"},
    {ROLE_KEY, "blocks.{}.attn.Wqkv"},
    {ROLE_VALUE, "blocks.{}.attn.Wqkv"},
    {ROLE_ATTENTION_OUT, "blocks.{}.attn.out_proj"},
    {ROLE_FFN_NORM, "blocks.{}.norm_2"},
    {ROLE_UP, "blocks.{}.ffn.up_proj"},
    {ROLE_DOWN, "blocks.{}.ffn.down_proj"},
    {ROLE_FINAL_NORM, "norm_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static const struct classic_keys keys = {
    .hidden_size = "d_model",
    .num_hidden_layers = "n_layers",
    .num_attention_heads = "n_heads",
    .max_positions = "max_seq_len",
    .default_max_positions = 2048,
    .norm_eps = "layer_norm_epsilon",
    .default_hidden_act = ACT_GELU,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"emb_pdrop",   "embedding_fraction", "init_config",
                                        "init_device", "learned_pos_emb",    "norm_type",
                                        "verbose",     "tokenizer_name",     NULL};
    family_classic_base(c, spec, &keys);
    spec->positions = POSITIONS_ALIBI;
    spec->biases = 0;
    spec->intermediate_size =
        config_size_or(c, "expansion_ratio", 64, 4) * min_int(spec->hidden_size, 1 << 18);
    config_require_bool(c, "no_bias", true);
    config_skip(c, notes);
    if (!c->failed)
        read_attention(c, spec);
}

const struct family family_mpt = {
    .model_type = "mpt",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
};
