/*
 * StarCoder2 (BigCode 2024): llama with LayerNorms, biases, a plain feed-forward and a window.
 * Source: transformers/models/starcoder2/{configuration,modular}_starcoder2.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.mlp.c_fc", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.mlp.c_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"activation_function", "mlp_type", "norm_type",
                                        "residual_dropout", NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
    spec->norm = NORM_LAYER;
    spec->norm_eps = (float)config_positive_or(c, "norm_epsilon", 1e-5);
    spec->biases = ROLES_NORM | config_roles(c, "use_bias", ROLES_ATTENTION | ROLES_FFN, true);
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_GELU_TANH);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    config_windows(c, spec, config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, 0), 0);
}

const struct family family_starcoder2 = {
    .model_type = "starcoder2",
    .configure = configure,
    .prefix = "model.",
    .tensors = tensors,
    .ignored = family_llama_ignored,
};
