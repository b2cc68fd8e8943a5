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

    float *x;        /* [n, hidden_size]: the residual stream */
    float *embedded; /* [n, embedding_size], only where that is not hidden_size */
    float *normed;   /* [n, hidden_size]: what a half of a layer reads */
    float *branch;   /* [n, hidden_size]: what it brings, where a norm comes behind it; or what a
                        parallel   feed-forward reads; only where one of the two is so */
    float *query;    /* [n, num_attention_heads, head_dim] */
    float *key;      /* [n, num_key_value_heads, head_dim] */
    float *value;    /* the same */
    float *mixed;    /* [n, num_attention_heads, head_dim]: what attention brings */
    float *gate;     /* [n, intermediate_size], only where the feed-forward is gated */
    float *up;       /* [n, intermediate_size] */
    float *scores;   /* [n_workers, n_context + 1] */
    int n_context;

    const double *inv_freq[SPEC_MAX_ROPES]; /* each [n_dims / 2] of its rope */
    float *rope_cos[SPEC_MAX_ROPES];        /* each [n, n_dims / 2] */
    float *rope_sin[SPEC_MAX_ROPES];        /* the same */

    int n_rows;    /* the last n_rows tokens get logits */
    float *logits; /* [n_rows, vocab_size] */
};

/* The whole trip; `pass` is a struct pass *. A task for compute_run. */
void forward_run(struct worker *w, void *pass);

/* One layer: p->x becomes what the next one reads. Like the next two it ends with a sync. */
void block_run(struct worker *w, const struct pass *p, int layer);

/* out (= or +=) attention(in) and ffn(in), both [n, hidden_size]; in and out may be the same. */
void attention_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
                   enum linear_store store);
void ffn_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store);

#endif
