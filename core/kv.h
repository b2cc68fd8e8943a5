/*
 * The keys and values of one layer's past: a view into memory that the session owns.
 * Positions of one head lie together, because attention walks a head's past from end to end. A
 * layer with a window keeps little more than the window: when the slots are used up, what is still
 * seen moves to the front.
 */
#ifndef CORE_KV_H
#define CORE_KV_H

#include "core/base.h"

struct kv {
    float *k; /* [n_kv_heads, n_slots, k_dim] */
    float *v; /* [n_kv_heads, n_slots, v_dim], or k: values are the first v_dim of each key */
    int n_kv_heads;
    int n_slots;
    int k_dim;
    int v_dim;
    int first; /* the position in slot 0 */
};

/* Writes the key [k_dim] and value [v_dim] of one head at a position; v is not read where values
 * are keys. */
void kv_put(const struct kv *kv, int head, int position, const float *k, const float *v);

/* A head's keys and values from a position on, and the floats from one position to the next. */
const float *kv_keys(const struct kv *kv, int head, int position);
const float *kv_values(const struct kv *kv, int head, int position);
size_t kv_value_stride(const struct kv *kv);

/* Makes room for positions up to `end`, of which those before `begin` are the last to keep
 * `n_kept`. */
void kv_make_room(struct kv *kv, int begin, int end, int n_kept);

#endif
