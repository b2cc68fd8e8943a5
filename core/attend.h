/*
 * Causal attention over a KV cache: softmax(scale * q k^T) v, for many queries at once (Vaswani et
 * al. 2017, with the grouped heads of Ainslie et al. 2023), block by block of the past with a
 * running maximum (Dao et al. 2022). Each (head, query) is computed whole by one worker, over
 * blocks at fixed positions in one order: neither threads, nor other queries of the call, nor the
 * cutting of a prompt change a bit.
 */
#ifndef CORE_ATTEND_H
#define CORE_ATTEND_H

#include "core/compute.h"
#include "core/kv.h"

struct attend {
    int n_heads; /* query heads; a multiple of the cache's n_kv_heads */
    float scale;
    int window;                /* positions a query sees, itself included; 0: all */
    float softcap;             /* scores become cap * tanh(score / cap); 0: they stay */
    const float *alibi_slopes; /* [n_heads]: scores fall by slope * distance; NULL: they do not */
    const float *sinks; /* [n_heads]: one more logit in the softmax, which takes a share and adds no
                           value; NULL: none */
    bool rounded;       /* over a cache in fewer bits than f32 the products may be of bf16, as
                           those of the matrices are */
    bool own_heads;     /* each worker attends its share of the key heads, with the query heads that
                           read them; else heads and rows are dealt out */
};

/* slopes[n_heads] of Press et al. 2022, whose largest exponent is bias_max (8 in the paper). */
void attend_alibi_slopes(int n_heads, float bias_max, float *slopes);

/* Floats that each worker of attend_rows needs to work in. */
size_t attend_scratch(const struct kv *kv);

/*
 * out[i, h, :] for the queries q[i, h, :] of n_runs runs, [n, n_heads, v_dim] and [n, n_heads,
 * k_dim]. Each sees its sequence's cache up to its own position. scratch: this worker's own.
 */
void attend_rows(struct worker *w, const struct attend *a, const struct kv *kv,
                 const struct kv_run *runs, int n_runs, const float *q, float *scratch, float *out);

#endif
