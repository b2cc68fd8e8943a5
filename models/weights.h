/*
 * The roles that tensors play, and the tensors in those roles. Matrices are views into the
 * checkpoint; norms and biases are f32 copies that the model owns.
 */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "core/linear.h"
#include "core/norm.h"

enum role {
    ROLE_EMBEDDING,      /* [vocab_size, hidden_size] */
    ROLE_POSITIONS,      /* [max_position_embeddings, hidden_size] */
    ROLE_FINAL_NORM,     /* [hidden_size] */
    ROLE_HEAD,           /* [vocab_size, hidden_size] */
    ROLE_ATTENTION_NORM, /* a layer's own from here on: [hidden_size] */
    ROLE_QUERY,          /* [num_attention_heads * head_dim, hidden_size] */
    ROLE_KEY,            /* [num_key_value_heads * head_dim, hidden_size] */
    ROLE_VALUE,          /* the same */
    ROLE_QUERY_NORM,     /* [head_dim] */
    ROLE_KEY_NORM,       /* [head_dim] */
    ROLE_ATTENTION_OUT,  /* [hidden_size, num_attention_heads * head_dim] */
    ROLE_FFN_NORM,       /* [hidden_size] */
    ROLE_GATE,           /* [intermediate_size, hidden_size] */
    ROLE_UP,             /* the same */
    ROLE_DOWN,           /* [hidden_size, intermediate_size] */
    ROLE_COUNT
};

enum tensor_layout {
    LAYOUT_OUT_IN, /* torch.nn.Linear */
    LAYOUT_IN_OUT  /* transformers' Conv1D */
};

/*
 * One line of a family's table: the stem of the tensor's name without the family's prefix, with {}
 * for the number of the layer; ".weight" and, where the spec says so, ".bias" follow it.
 * Neighbouring lines with the same stem share one fused tensor and lie in it one behind the other
 * along the outputs.
 */
struct tensor_entry {
    enum role role;
    const char *stem;
    enum tensor_layout layout;
};

struct layer_weights {
    struct norm attention_norm, query_norm, key_norm, ffn_norm;
    struct linear query, key, value, attention_out;
    struct linear gate, up, down;
};

struct weights {
    struct linear embedding; /* rows are looked up */
    struct linear positions; /* likewise */
    struct norm final_norm;
    struct linear head;
    struct layer_weights *layers; /* [num_hidden_layers] */
};

#endif
