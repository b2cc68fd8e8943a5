/*
 * The vocabulary of differences between models: plain data that a family's configure function fills
 * in and that the one forward pass obeys. Every field names the config.json key it comes from (or
 * "constant" where the family fixes it) and the first family that needs it. A field that is left
 * zero says "as in llama", so a configure function sets only what differs.
 */
#ifndef MODELS_SPEC_H
#define MODELS_SPEC_H

#include "core/act.h"
#include "core/norm.h"
#include "core/rope.h"
#include "models/role.h"

enum positions {
    POSITIONS_ROPE,       /* llama: queries and keys are rotated */
    POSITIONS_LEARNED,    /* gpt2: a row of a table is added to the embedding */
    POSITIONS_SINUSOIDAL, /* xglm, ctrl: a row of sines and cosines is (Vaswani et al. 2017) */
    POSITIONS_ALIBI,      /* bloom: scores fall with the distance (Press et al. 2022) */
};

/* Where a half of a layer, f, has its norms. */
enum norm_place {
    NORM_BEFORE,  /* llama: x + f(norm(x)) */
    NORM_AFTER,   /* olmo2: x + norm(f(x)) */
    NORM_BOTH,    /* gemma2: x + norm'(f(norm(x))) */
    NORM_OUTSIDE, /* openai-gpt: norm(x + f(x)), as in 2017 */
};

enum residual {
    RESIDUAL_SEQUENTIAL,      /* llama: attention, then the feed-forward on its result */
    RESIDUAL_PARALLEL,        /* gpt_neox: both on x, each with a norm of its own */
    RESIDUAL_PARALLEL_SHARED, /* gptj: both on the same norm(x) */
    RESIDUAL_FROM_NORM, /* bloom, apply_residual_connection_post_layernorm: norm(x) + f(norm(x)) */
};

enum qk_norm {
    QK_NORM_NONE,     /* llama */
    QK_NORM_HEAD,     /* qwen3: every head by the same weight [head_dim] */
    QK_NORM_OWN_HEAD, /* cohere: every head by a weight of its own, [heads, head_dim] */
    QK_NORM_FULL,     /* olmo2: all heads together, [heads * head_dim] */
};

enum ffn_type {
    FFN_GATED, /* llama: down(act(gate(x)) * up(x)), Shazeer 2020 */
    FFN_PLAIN, /* gpt2: down(act(up(x))) */
};

/* How a router turns its logits into the weights of the chosen experts. */
enum router {
    ROUTER_SOFTMAX,        /* qwen2_moe: softmax over all, then the best */
    ROUTER_SOFTMAX_CHOSEN, /* mixtral: the best, then softmax over them */
    ROUTER_SIGMOID, /* deepseek_v3: sigmoid of each; a correction helps to choose, not to weigh */
    ROUTER_SPARSEMIXER, /* phimoe: two by turns, each a softmax over its close rivals (Liu et al.
                           2023) */
};

/* A mixture of experts in the place of the feed-forward. */
struct moe_spec {
    int num_experts;              /* mixtral: num_local_experts; qwen2_moe: num_experts; 0: dense */
    int num_experts_per_tok;      /* mixtral: num_experts_per_tok */
    int moe_intermediate_size;    /* mixtral: intermediate_size; qwen2_moe: moe_intermediate_size */
    enum router router;           /* mixtral: constant */
    bool norm_topk_prob;          /* qwen3_moe: norm_topk_prob; weights are made to sum to 1 */
    float routed_scaling_factor;  /* deepseek_v2: routed_scaling_factor, else 1 */
    float router_jitter_noise;    /* phimoe: router_jitter_noise */
    bool correction;              /* deepseek_v3: constant; ROLE_ROUTER_CORRECTION is there */
    int n_group;                  /* deepseek_v2: n_group; 0: no groups */
    int topk_group;               /* deepseek_v2: topk_group */
    bool group_by_two;            /* deepseek_v3: a group counts by its two best, not its best */
    int shared_intermediate_size; /* qwen2_moe: shared_expert_intermediate_size; 0: no shared expert
                                   */
    bool shared_expert_gate;      /* qwen2_moe: constant; the shared expert's sigmoid gate */
    bool gate_up_interleaved;     /* gpt_oss: constant; ROLE_EXPERT_GATE_UP holds both */
    float swiglu_limit;           /* gpt_oss: swiglu_limit; its clamped gate; 0: the usual one */
};

/* Latent attention (DeepSeek-AI 2024): keys and values come from one short vector a token. */
struct mla_spec {
    int kv_lora_rank;      /* deepseek_v2: kv_lora_rank; 0: ordinary attention */
    int q_lora_rank;       /* deepseek_v2: q_lora_rank; 0: queries are projected at once */
    int qk_nope_head_dim;  /* deepseek_v2: qk_nope_head_dim */
    int qk_rope_head_dim;  /* deepseek_v2: qk_rope_head_dim */
    int v_head_dim;        /* deepseek_v2: v_head_dim */
    float latent_norm_eps; /* deepseek_v2: constant; rms_norm_eps is not for the latents' norms */
};

enum { MOE_MAX_GROUPS = 64 };

enum { SPEC_MAX_ROPES = 2, SPEC_NO_ROPE = -1 };

/* What may differ from layer to layer. */
struct layer_spec {
    float attention_scale; /* llama: 1 / sqrt(head_dim); granite: attention_multiplier */
    int window;            /* mistral: sliding_window; 0: sees everything */
    int rope;              /* gemma3: which of the ropes; smollm3: SPEC_NO_ROPE in some layers */
    bool moe;              /* qwen2_moe: decoder_sparse_step; deepseek_v2: first_k_dense_replace */
};

struct model_spec {
    int vocab_size;              /* llama: vocab_size */
    int hidden_size;             /* llama: hidden_size, gpt2: n_embd */
    int num_hidden_layers;       /* llama: num_hidden_layers, gpt2: n_layer */
    int max_position_embeddings; /* llama: max_position_embeddings, gpt2: n_positions */
    role_set biases;             /* llama: attention_bias, mlp_bias; gpt2: constant */

    /* embedding: norm(project_in(table[id]) * scale + position + token type 0) */
    int embedding_size;                /* opt: word_embed_proj_dim, else hidden_size */
    float embedding_scale;             /* gemma: sqrt(hidden_size), else 1 */
    bool embedding_norm;               /* bloom: constant */
    int type_vocab_size;               /* bert: type_vocab_size; 0: no token types */
    enum positions positions;          /* gpt2: constant */
    int position_offset;               /* opt: constant 2; roberta: pad_token_id + 1 */
    bool sinusoid_inclusive;           /* xglm: constant; the last frequency is 1 / 10000 itself */
    float alibi_scale;                 /* falcon: 1 / sqrt(head_dim), else 1 */
    float alibi_bias_max;              /* mpt: attn_config.alibi_bias_max, else 8 */
    struct rope ropes[SPEC_MAX_ROPES]; /* llama: rope_theta, rope_scaling; gemma3: two */

    /* norms */
    enum norm_type norm;        /* gpt2: constant */
    float norm_eps;             /* llama: rms_norm_eps, gpt2: layer_norm_epsilon */
    float final_norm_eps;       /* ctrl: layer_norm_epsilon, else norm_eps */
    bool norm_plus_one;         /* gemma: constant; weights are stored minus one */
    bool norm_plain;            /* olmo: constant; no weights at all */
    enum norm_place norm_place; /* olmo2: constant */
    bool no_final_norm;         /* openai-gpt: constant */

    /* layers */
    enum residual residual;    /* gptj: constant, gpt_neox: use_parallel_residual */
    float residual_multiplier; /* granite: residual_multiplier, else 1 */
    int num_attention_heads;   /* llama: num_attention_heads, gpt2: n_head */
    int num_key_value_heads;   /* llama: num_key_value_heads */
    int head_dim;              /* llama: head_dim, else hidden_size / num_attention_heads */
    int qkv_groups; /* gpt_neox: num_attention_heads; a fused q, k, v is cut into so many groups
                       of [q k v], else one */
    float clip_qkv; /* olmo: clip_qkv; 0: none */
    float llama_4_scaling_beta;   /* ministral3: of the rope; queries times 1 + it * log(1 +
                                     floor(position / original_max_position_embeddings)) */
    enum qk_norm qk_norm;         /* qwen3: constant */
    bool qk_norm_after_rope;      /* hunyuan_v1_dense: constant */
    float attn_logit_softcapping; /* gemma2: attn_logit_softcapping; 0: none */
    bool sinks;                   /* gpt_oss: constant; a logit of its own for each head */
    struct mla_spec mla;          /* deepseek_v2 */
    struct moe_spec moe;          /* mixtral */
    int num_nextn_predict_layers; /* deepseek_v3: layers behind the last that decoding has no use
                                     for */
    enum ffn_type ffn;            /* gpt2: constant */
    enum act hidden_act;          /* llama: hidden_act, gpt2: activation_function */
    int intermediate_size;        /* llama: intermediate_size, gpt2: n_inner */
    struct layer_spec *layers;    /* [num_hidden_layers] */

    /* head: softcap(scale * (head(project_out(transform(x))) + bias)) */
    bool tie_word_embeddings;      /* llama: tie_word_embeddings; the head is the embedding */
    bool head_transform;           /* bert: constant; norm(act(dense(x))) in front of the head */
    float logit_scale;             /* cohere: logit_scale; granite: 1 / logits_scaling, else 1 */
    float final_logit_softcapping; /* gemma2: final_logit_softcapping; 0: none */
};

#endif
