/*
 * RoBERTa (Liu et al. 2019) as a causal decoder: bert whose positions begin behind the padding id.
 * Source: transformers/models/roberta/{configuration,modeling}_roberta.py.
 */
#include "models/family.h"

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
    {ROLE_HEAD_DENSE, "lm_head.dense"},
    {ROLE_HEAD_NORM, "lm_head.layer_norm"},
    {ROLE_HEAD, "lm_head"},
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
    if (spec->hidden_act != ACT_GELU) /* the head's, whatever the layers have */
        config_fail(c, "\"hidden_act\" other than \"gelu\" is not supported");
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
