/*
 * The roles that tensors play in a model, and sets of them. A role is what a tensor is for,
 * whatever a family calls it; families give names, roles.c the rest.
 */
#ifndef MODELS_ROLE_H
#define MODELS_ROLE_H

#include "core/base.h"

enum role {
    ROLE_EMBEDDING,      /* [vocab_size, embedding_size] */
    ROLE_PROJECT_IN,     /* [hidden_size, embedding_size] */
    ROLE_POSITIONS,      /* [max_position_embeddings + position_offset, hidden_size] */
    ROLE_TOKEN_TYPES,    /* [type_vocab_size, hidden_size] */
    ROLE_EMBEDDING_NORM, /* [hidden_size] */
    ROLE_FINAL_NORM,     /* [hidden_size] */
    ROLE_HEAD_DENSE,     /* [hidden_size, hidden_size] */
    ROLE_HEAD_NORM,      /* [hidden_size] */
    ROLE_PROJECT_OUT,    /* [embedding_size, hidden_size] */
    ROLE_HEAD,           /* [vocab_size, embedding_size] */

    /* a layer's own from here on */
    ROLE_ATTENTION_NORM,      /* [hidden_size] */
    ROLE_ATTENTION_POST_NORM, /* [hidden_size] */
    ROLE_QUERY,               /* [num_attention_heads * head_dim, hidden_size] */
    ROLE_KEY,                 /* [num_key_value_heads * head_dim, hidden_size] */
    ROLE_VALUE,               /* the same */
    ROLE_QUERY_NORM,          /* by enum qk_norm */
    ROLE_KEY_NORM,            /* likewise */
    ROLE_ATTENTION_OUT,       /* [hidden_size, num_attention_heads * head_dim] */
    ROLE_FFN_NORM,            /* [hidden_size] */
    ROLE_FFN_POST_NORM,       /* [hidden_size] */
    ROLE_GATE,                /* [intermediate_size, hidden_size] */
    ROLE_UP,                  /* the same */
    ROLE_DOWN,                /* [hidden_size, intermediate_size] */
    ROLE_XIELU_P,             /* [1] */
    ROLE_XIELU_N,             /* [1] */
    ROLE_SINKS,               /* [num_attention_heads] */

    /* latent attention, in the place of query, key and value */
    ROLE_QUERY_A,      /* [q_lora_rank, hidden_size] */
    ROLE_QUERY_A_NORM, /* [q_lora_rank] */
    ROLE_QUERY_B,      /* [num_attention_heads * head_dim, q_lora_rank or hidden_size] */
    ROLE_KV_A,         /* [kv_lora_rank + qk_rope_head_dim, hidden_size] */
    ROLE_KV_A_NORM,    /* [kv_lora_rank] */
    ROLE_KV_B,         /* [num_attention_heads * (qk_nope_head_dim + v_head_dim), kv_lora_rank] */

    /* a mixture of experts, in the place of gate, up and down */
    ROLE_ROUTER,             /* [num_experts, hidden_size] */
    ROLE_ROUTER_CORRECTION,  /* [num_experts] */
    ROLE_SHARED_GATE,        /* [shared_intermediate_size, hidden_size] */
    ROLE_SHARED_UP,          /* the same */
    ROLE_SHARED_DOWN,        /* [hidden_size, shared_intermediate_size] */
    ROLE_SHARED_EXPERT_GATE, /* [1, hidden_size] */

    /* one for each expert from here on */
    ROLE_EXPERT_GATE,    /* [moe_intermediate_size, hidden_size] */
    ROLE_EXPERT_UP,      /* the same */
    ROLE_EXPERT_GATE_UP, /* [2 * moe_intermediate_size, hidden_size]: gate, up, gate, up, ... */
    ROLE_EXPERT_DOWN,    /* [hidden_size, moe_intermediate_size] */
    ROLE_COUNT
};

typedef uint64_t role_set; /* a bit for each role */

#define ROLE_BIT(role) ((role_set)1 << (role))

/* The sets that configs switch on and off together. */
#define ROLES_QKV       (ROLE_BIT(ROLE_QUERY) | ROLE_BIT(ROLE_KEY) | ROLE_BIT(ROLE_VALUE))
#define ROLES_ATTENTION (ROLES_QKV | ROLE_BIT(ROLE_ATTENTION_OUT))
#define ROLES_FFN       (ROLE_BIT(ROLE_GATE) | ROLE_BIT(ROLE_UP) | ROLE_BIT(ROLE_DOWN))
#define ROLES_NORM                                                                                 \
    (ROLE_BIT(ROLE_EMBEDDING_NORM) | ROLE_BIT(ROLE_FINAL_NORM) | ROLE_BIT(ROLE_HEAD_NORM) |        \
     ROLE_BIT(ROLE_ATTENTION_NORM) | ROLE_BIT(ROLE_ATTENTION_POST_NORM) |                          \
     ROLE_BIT(ROLE_FFN_NORM) | ROLE_BIT(ROLE_FFN_POST_NORM))

#endif
