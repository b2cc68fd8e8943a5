/*
 * RoBERTa (Liu et al. 2019) as a causal decoder: bert whose positions begin behind the padding id.
 * Source: transformers/models/roberta/{configuration,modeling}_roberta.py.
 */
#include "models/family.h"

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
    {ROLE_HEAD_DENSE, "lm_head.dense", LAYOUT_OUT_IN},
    {ROLE_HEAD_NORM, "lm_head.layer_norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static const char *const ignored[] = {
    "embeddings.position_ids",
    "lm_head.decoder.weight", /* tied */
    "lm_head.decoder.bias",   /* the same as lm_head.bias */
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_bert_base(c, spec);
    spec->position_offset = config_count_or(c, "pad_token_id", CONFIG_MAX_SIZE, 1) + 1;
    spec->max_position_embeddings -= spec->position_offset;
    if (spec->max_position_embeddings < 1)
        config_fail(c, "\"max_position_embeddings\" leaves no position behind \"pad_token_id\"");
}

const struct family family_roberta = {
    .model_type = "roberta",
    .configure = configure,
    .prefix = "roberta.",
    .tensors = tensors,
    .ignored = ignored,
};
