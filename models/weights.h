/*
 * The tensors of a model, by role. Matrices are views into the
 * checkpoint; norms and biases are f32 copies that the model owns.
 */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "core/act.h"
#include "core/linear.h"
#include "core/norm.h"
#include "models/role.h"

/* How a line's tensor is stored; or'ed together. */
enum tensor_layout {
    LAYOUT_OUT_IN = 0, /* [out, in]: torch.nn.Linear */
    LAYOUT_IN_OUT = 1, /* [in, out]: transformers' Conv1D */
    LAYOUT_BARE = 2    /* the stem is the whole name */
};

/*
 * One line of a family's table: the stem of the tensor's name without the family's prefix, with {}
 * for the number of the layer; ".weight" and, where the spec says so, ".bias" follow it.
 * Neighbouring lines with the same stem share one fused tensor: their outputs lie in it one behind
 * the other, for queries, keys and values perhaps in groups (model_spec.qkv_groups). A second {}
 * counts heads in the stem of a norm and experts in that of an expert's matrix; without it all
 * experts lie in one tensor, [num_experts, ...].
 */
struct tensor_entry {
    enum role role;
    const char *stem;
    unsigned layout;
};

struct expert {
    struct linear gate, up, gate_up, down;
};

struct layer_weights {
    struct norm attention_norm, attention_post_norm, query_norm, key_norm, ffn_norm, ffn_post_norm;
    struct linear query, key, value, attention_out;
    struct linear gate, up, down;
    const float *xielu_p, *xielu_n; /* [1] as stored, or NULL */
    struct act_xielu xielu;
    const float *sinks; /* [num_attention_heads] or NULL */

    struct linear query_a, query_b, kv_a, kv_b;
    struct norm query_a_norm, kv_a_norm;

    struct linear router;
    const float *router_correction; /* [num_experts] or NULL */
    struct expert *experts;         /* [num_experts] */
    struct expert shared;
    struct linear shared_expert_gate;
};

struct weights {
    struct linear embedding; /* rows are looked up, as in the next two */
    struct linear positions;
    struct linear token_types;
    struct linear project_in;
    struct norm embedding_norm;
    struct norm final_norm;
    struct linear head_dense;
    struct norm head_norm;
    struct linear project_out;
    struct linear head;
    const float *alibi_slopes;    /* [num_attention_heads] or NULL */
    struct layer_weights *layers; /* [num_hidden_layers] */
};

#endif
