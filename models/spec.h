/*
 * The vocabulary of differences between models: plain data that a family's configure function fills
 * in and that the one forward pass obeys. Every field names the config.json key it comes from (or
 * "constant" where the family fixes it) and the first family that needs it.
 */
#ifndef MODELS_SPEC_H
#define MODELS_SPEC_H

#include "core/act.h"
#include "core/norm.h"
#include "core/rope.h"

enum positions {
    POSITIONS_ROPE,   /* llama: queries and keys are rotated */
    POSITIONS_LEARNED /* gpt2: a row of a table is added to the embedding */
};

enum ffn_type {
    FFN_GATED, /* llama: down(act(gate(x)) * up(x)), Shazeer 2020 */
    FFN_PLAIN  /* gpt2: down(act(up(x))) */
};

/* What may differ from layer to layer. */
struct layer_spec {
    float attention_scale; /* 1 / sqrt(head_dim); gpt2: scale_attn_weights,
                              scale_attn_by_inverse_layer_idx */
    int window; /* mistral: sliding_window, qwen2: max_window_layers; 0: sees everything */
};

struct model_spec {
    int vocab_size;              /* llama: vocab_size */
    int hidden_size;             /* llama: hidden_size, gpt2: n_embd */
    int num_hidden_layers;       /* llama: num_hidden_layers, gpt2: n_layer */
    int max_position_embeddings; /* llama: max_position_embeddings, gpt2: n_positions */
    bool tie_word_embeddings;    /* llama: tie_word_embeddings; the head is the embedding */

    enum positions positions; /* gpt2: constant */
    struct rope rope;         /* llama: rope_theta, rope_scaling, rope_parameters */

    enum norm_type norm; /* gpt2: constant */
    float norm_eps;      /* llama: rms_norm_eps, gpt2: layer_norm_epsilon */

    int num_attention_heads; /* llama: num_attention_heads, gpt2: n_head */
    int num_key_value_heads; /* llama: num_key_value_heads */
    int head_dim;            /* llama: head_dim, else hidden_size / num_attention_heads */
    bool qkv_bias;           /* llama: attention_bias; qwen2: constant */
    bool attention_out_bias; /* llama: attention_bias */
    bool qk_norm;            /* qwen3: constant; RMSNorm of every query and key head */

    enum ffn_type ffn;     /* gpt2: constant */
    enum act hidden_act;   /* llama: hidden_act, gpt2: activation_function */
    int intermediate_size; /* llama: intermediate_size, gpt2: n_inner */
    bool mlp_bias;         /* llama: mlp_bias; gpt2: constant */

    struct layer_spec *layers; /* [num_hidden_layers] */
};

#endif
