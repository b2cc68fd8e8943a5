/*
 * The keys and values of one layer's past: a view into memory that the session owns.
 * Positions of one head lie together, because attention walks a head's past from end to end.
 */
#ifndef CORE_KV_H
#define CORE_KV_H

#include "core/base.h"

struct kv {
    float *k; /* [n_kv_heads, n_context, k_dim] */
    float *v; /* [n_kv_heads, n_context, v_dim], or k: values are the first v_dim of each key */
    int n_kv_heads;
    int n_context;
    int k_dim;
    int v_dim;
};

/* Writes the key [k_dim] and value [v_dim] of one head at a position; v is not read where values
 * are keys. */
void kv_put(const struct kv *kv, int head, int position, const float *k, const float *v);

/* A head's keys and values from a position on, and the floats from one position to the next. */
const float *kv_keys(const struct kv *kv, int head, int position);
const float *kv_values(const struct kv *kv, int head, int position);
size_t kv_value_stride(const struct kv *kv);

#endif
