/*
 * BERT (Devlin et al. 2019) as a causal decoder, BertLMHeadModel.
 * Source: transformers/models/bert/{configuration,modeling}_bert.py.
 */
#include "models/family.h"

static const struct classic_keys keys = {
    .hidden_size = "hidden_size",
    .num_hidden_layers = "num_hidden_layers",
    .num_attention_heads = "num_attention_heads",
    .intermediate_size = "intermediate_size",
    .max_positions = "max_position_embeddings",
    .default_max_positions = 512,
    .hidden_act = "hidden_act",
    .default_hidden_act = ACT_GELU,
};

void family_bert_base(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"attention_probs_dropout_prob", NULL};
    if (!config_bool_or(c, "is_decoder", false))
        config_fail(c, "only a causal decoder (\"is_decoder\": true) is supported");
    config_require_bool(c, "add_cross_attention", false);
    config_require_text(c, "position_embedding_type", "absolute");
    family_classic_base(c, spec, &keys);
    spec->type_vocab_size = config_size_or(c, "type_vocab_size", CONFIG_MAX_SIZE, 2);
    spec->embedding_norm = true;
    spec->norm_eps = (float)config_positive_or(c, "layer_norm_eps", 1e-12);
    spec->norm_place = NORM_OUTSIDE;
    spec->no_final_norm = true;
    spec->biases =
        ROLES_ATTENTION | ROLES_FFN | ROLES_NORM | ROLE_BIT(ROLE_HEAD_DENSE) | ROLE_BIT(ROLE_HEAD);
    spec->head_transform = true;
    config_skip(c, notes);
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embeddings.word_embeddings"},
    {ROLE_POSITIONS, "embeddings.position_embeddings"},
    {ROLE_TOKEN_TYPES, "embeddings.token_type_embeddings"},
    {ROLE_EMBEDDING_NORM, "embeddings.LayerNorm"},
    {ROLE_QUERY, "encoder.layer.{}.attention.self.query"},
    {ROLE_KEY, "encoder.layer.{}.attention.self.key"},
    {ROLE_VALUE, "encoder.layer.{}.attention.self.value"},
    {ROLE_ATTENTION_OUT, "encoder.layer.{}.attention.output.dense"},
    {ROLE_ATTENTION_NORM, "encoder.layer.{}.attention.output.LayerNorm"},
    {ROLE_UP, "encoder.layer.{}.intermediate.dense"},
    {ROLE_DOWN, "encoder.layer.{}.output.dense"},
    {ROLE_FFN_NORM, "encoder.layer.{}.output.LayerNorm"},
    {ROLE_HEAD_DENSE, "cls.predictions.transform.dense"},
    {ROLE_HEAD_NORM, "cls.predictions.transform.LayerNorm"},
    {ROLE_HEAD, "cls.predictions"},
    {0},
};

static const char *const ignored[] = {
    "embeddings.position_ids",
    "cls.predictions.decoder.weight", /* tied */
    "cls.predictions.decoder.bias",   /* the same as cls.predictions.bias */
    NULL,
};

const struct family family_bert = {
    .model_type = "bert",
    .configure = family_bert_base,
    .prefix = "bert.",
    .tensors = tensors,
    .ignored = ignored,
};
