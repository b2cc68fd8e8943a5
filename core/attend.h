/*
 * Causal attention over a KV cache: softmax(scale * q k^T) v, for many queries at once (Vaswani et
 * al. 2017, with the grouped heads of Ainslie et al. 2023). Each (head, query) is computed whole by
 * one worker in one order, so neither threads nor the cutting of a prompt change a bit.
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
    const float *sinks; /* [n_heads]: one more logit in the softmax, which takes its share and
                           brings nothing; NULL: none */
};

/* slopes[n_heads] of Press et al. 2022, whose largest exponent is bias_max (8 in the paper). */
void attend_alibi_slopes(int n_heads, float bias_max, float *slopes);

/*
 * out[i, h, :] for n queries q[i, h, :], [n, n_heads, v_dim] and [n, n_heads, k_dim]; query i
 * stands at positions[i] and sees the cache up to there. scores: this worker's own working memory,
 * [n_context].
 */
void attend_rows(struct worker *w, const struct attend *a, const struct kv *kv, const float *q,
                 const int *positions, size_t n, float *scores, float *out);

#endif
