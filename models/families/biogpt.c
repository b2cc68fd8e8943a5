/*
 * BioGPT (Luo et al. 2022): learned positions that begin at 2, embeddings times sqrt(hidden_size).
 * Source: transformers/models/biogpt/{configuration,modular}_biogpt.py.
 */
#include "models/family.h"

#include <math.h>

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_POSITIONS, "embed_positions"},
    {ROLE_ATTENTION_NORM, "layers.{}.self_attn_layer_norm"},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.out_proj"},
    {ROLE_FFN_NORM, "layers.{}.final_layer_norm"},
    {ROLE_UP, "layers.{}.fc1"},
    {ROLE_DOWN, "layers.{}.fc2"},
    {ROLE_FINAL_NORM, "layer_norm"},
    {ROLE_HEAD, "output_projection"},
    {0},
};

static const struct classic_keys keys = {
    .hidden_size = "hidden_size",
    .num_hidden_layers = "num_hidden_layers",
    .num_attention_heads = "num_attention_heads",
    .intermediate_size = "intermediate_size",
    .max_positions = "max_position_embeddings",
    .default_max_positions = 1024,
    .norm_eps = NULL, /* layer_norm_eps stands in the file and is not used */
    .hidden_act = "hidden_act",
    .default_hidden_act = ACT_GELU,
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"activation_dropout", "attention_probs_dropout_prob",
                                        "layer_norm_eps", NULL};
    family_classic_base(c, spec, &keys);
    if (config_bool_or(c, "scale_embedding", true))
        spec->embedding_scale = sqrtf((float)spec->hidden_size);
    spec->position_offset = 2;
    config_skip(c, notes);
}

const struct family family_biogpt = {
    .model_type = "biogpt",
    .configure = configure,
    .prefix = "biogpt.",
    .tensors = tensors,
};
