/*
 * One trip of some tokens through a model. Prompt and decode are the same trip, with many rows and
 * with one. Every worker runs forward_run at the same time: each step is shared by rows or heads,
 * and workers wait for each other where one reads what another wrote.
 */
#ifndef MODELS_FORWARD_H
#define MODELS_FORWARD_H

#include "core/compute.h"
#include "core/kv.h"
#include "models/spec.h"
#include "models/weights.h"

/* What a trip reads and writes; all memory is the session's. n is the number of tokens. */
struct pass {
    const struct model_spec *spec;
    const struct weights *weights;
    const struct kv *kv; /* [num_hidden_layers] */

    int n;
    const int32_t *ids;   /* [n] */
    const int *positions; /* [n] */

    float *x;      /* [n, hidden_size]: the residual stream */
    float *normed; /* [n, hidden_size] */
    float *query;  /* [n, num_attention_heads, head_dim] */
    float *key;    /* [n, num_key_value_heads, head_dim] */
    float *value;  /* the same */
    float *mixed;  /* [n, num_attention_heads, head_dim]: what attention brings */
    float *gate;   /* [n, intermediate_size], only where the feed-forward is gated */
    float *up;     /* [n, intermediate_size] */
    float *scores; /* [n_workers, n_context] */
    int n_context;

    const double *inv_freq; /* [rope.n_dims / 2] */
    float *rope_cos;        /* [n, rope.n_dims / 2] */
    float *rope_sin;        /* the same */

    int n_rows;    /* the last n_rows tokens get logits */
    float *logits; /* [n_rows, vocab_size] */
};

/* The whole trip; `pass` is a struct pass *. A task for compute_run. */
void forward_run(struct worker *w, void *pass);

/* Its parts, each of which leaves its result ready for every worker: p->x becomes x + f(norm(x)).
 */
void block_run(struct worker *w, const struct pass *p, int layer);
void attention_run(struct worker *w, const struct pass *p, int layer);
void ffn_run(struct worker *w, const struct pass *p, int layer);

#endif
