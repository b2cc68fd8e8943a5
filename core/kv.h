/*
 * The keys and values of one layer's past: a view into memory that the session owns.
 * Positions of one head lie together, because attention walks a head's past from end to end.
 */
#ifndef CORE_KV_H
#define CORE_KV_H

#include "core/base.h"

struct kv {
    float *k; /* [n_kv_heads, n_context, head_dim] */
    float *v; /* the same */
    int n_kv_heads;
    int n_context;
    int head_dim;
};

/* Floats that k and v take together; false on overflow. */
bool kv_floats(int n_kv_heads, int n_context, int head_dim, size_t *out);

/* Writes the key and value of one head, [head_dim] each, at a position. */
void kv_put(const struct kv *kv, int head, int position, const float *k, const float *v);

/* A head's keys and values from a position on; the next position is head_dim floats behind. */
const float *kv_keys(const struct kv *kv, int head, int position);
const float *kv_values(const struct kv *kv, int head, int position);

#endif
