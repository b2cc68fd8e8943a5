/*
 * BERT (Devlin et al. 2019) as a causal decoder, BertLMHeadModel.
 * Source: transformers/models/bert/{configuration,modeling}_bert.py.
 */
#include "models/family.h"

#include <string.h>

void family_bert_base(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"attention_probs_dropout_prob", NULL};
    if (!config_bool_or(c, "is_decoder", false))
        config_fail(c, "only a causal decoder (\"is_decoder\": true) is supported");
    config_require_bool(c, "add_cross_attention", false);
    const char *const type = json_text(config_any(c, "position_embedding_type"), "absolute");
    if (strcmp(type, "absolute") != 0)
        config_fail(c, "\"position_embedding_type\": \"%s\" is not supported", type);
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "hidden_size", CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, "num_hidden_layers", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings =
        config_size_or(c, "max_position_embeddings", CONFIG_MAX_SIZE, 512);
    spec->type_vocab_size = config_size_or(c, "type_vocab_size", CONFIG_MAX_SIZE, 2);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->embedding_norm = true;
    spec->positions = POSITIONS_LEARNED;
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_eps", 1e-12);
    spec->norm_place = NORM_OUTSIDE;
    spec->no_final_norm = true;
    spec->biases =
        ROLES_ATTENTION | ROLES_FFN | ROLES_NORM | ROLE_BIT(ROLE_HEAD_DENSE) | ROLE_BIT(ROLE_HEAD);
    spec->head_transform = true;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_GELU);
    spec->intermediate_size = config_size(c, "intermediate_size", CONFIG_MAX_SIZE);
    config_heads(c, spec, "num_attention_heads");
    config_skip(c, notes);
    config_layers(c, spec);
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embeddings.word_embeddings", LAYOUT_OUT_IN},
    {ROLE_POSITIONS, "embeddings.position_embeddings", LAYOUT_OUT_IN},
    {ROLE_TOKEN_TYPES, "embeddings.token_type_embeddings", LAYOUT_OUT_IN},
    {ROLE_EMBEDDING_NORM, "embeddings.LayerNorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "encoder.layer.{}.attention.self.query", LAYOUT_OUT_IN},
    {ROLE_KEY, "encoder.layer.{}.attention.self.key", LAYOUT_OUT_IN},
    {ROLE_VALUE, "encoder.layer.{}.attention.self.value", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "encoder.layer.{}.attention.output.dense", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "encoder.layer.{}.attention.output.LayerNorm", LAYOUT_OUT_IN},
    {ROLE_UP, "encoder.layer.{}.intermediate.dense", LAYOUT_OUT_IN},
    {ROLE_DOWN, "encoder.layer.{}.output.dense", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "encoder.layer.{}.output.LayerNorm", LAYOUT_OUT_IN},
    {ROLE_HEAD_DENSE, "cls.predictions.transform.dense", LAYOUT_OUT_IN},
    {ROLE_HEAD_NORM, "cls.predictions.transform.LayerNorm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "cls.predictions", LAYOUT_OUT_IN},
    {0},
};

static const char *const ignored[] = {
    "embeddings.position_ids",
    "cls.predictions.decoder.weight", /* tied */
    "cls.predictions.decoder.bias",   /* the same as cls.predictions.bias */
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_bert_base(c, spec);
}

const struct family family_bert = {
    .model_type = "bert",
    .configure = configure,
    .prefix = "bert.",
    .tensors = tensors,
    .ignored = ignored,
};
