/*
 * One trip of some tokens through a model. Prompt and decode are the same trip, with many rows and
 * with one. Every worker runs forward_run at the same time: with the others, who share each step,
 * or alone with its part of the rows (pass.h). They wait for each other where one reads what
 * another wrote.
 */
#ifndef MODELS_FORWARD_H
#define MODELS_FORWARD_H

#include "models/pass.h"

#include <stdatomic.h>

struct trip {
    const struct pass *pass;
    const atomic_int *stop; /* as session_params.stop */
    atomic_int n_layers;    /* that it goes through: all, unless it is stopped */
};

/* The whole trip; `trip` is a struct trip *. A task for compute_run. */
void forward_run(struct worker *w, void *trip);

/* One layer: p->x becomes what the next one reads; behind it, and behind each of its halves, every
 * worker that shares p may read all of x. All threads, those apart too, meet once in a layer at
 * least: attention must see what the others have stored, and goes_on (forward.c) relies on it
 * that everybody hears of a stop before the next layer. */
void block_run(struct worker *w, const struct pass *p, int layer);

/* What other tokens will see of these in a layer, and no more: keys and values in the cache. p->x
 * stays as it is. Ends with a worker_meet. */
void block_store_kv(struct worker *w, const struct pass *p, int layer);

/* out (= or +=) attention(in) and ffn(in), both [n, hidden_size]; in and out may be the same. */
void attention_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
                   enum linear_store store);
void ffn_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store);

/* What may stand in the place of the two: latent attention and a mixture of experts. */
void mla_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store);
void moe_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store);

/* The part of either attention that block_store_kv needs; in as above. */
void attention_store_kv(struct worker *w, const struct pass *p, int layer, const float *in);
void mla_store_kv(struct worker *w, const struct pass *p, int layer, const float *in);

/* act(gate) * up, or what the family has for it, over n values; the result is in up. */
void ffn_activate(const struct worker *w, const struct pass *p, int layer, float *gate, float *up,
                  size_t n);

#endif
