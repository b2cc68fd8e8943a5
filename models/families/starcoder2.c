/*
 * StarCoder2 (BigCode 2024): llama with LayerNorms, biases, a plain feed-forward and a window.
 * Source: transformers/models/starcoder2/{configuration,modular}_starcoder2.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"activation_function",
                                        "attention_softmax_in_fp32",
                                        "layer_norm_epsilon",
                                        "mlp_type",
                                        "norm_type",
                                        "residual_dropout",
                                        "scale_attention_softmax_in_fp32",
                                        NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
    config_require_bool(c, "scale_attn_weights", true);
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
    .defaults = FAMILY_JSON({"num_key_value_heads" : 2}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
