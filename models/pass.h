/*
 * What a trip of some tokens through a model reads and writes, and how it is shared out.
 *
 * Of a pass of few rows, all workers take every step together: each computes some outputs, or some
 * heads, of all rows, so that a weight is read once. A pass of many is dealt out: each worker takes
 * rows of its own through the layers as a pass of their own, alone, and what it makes stays in its
 * caches from step to step. It waits for the others once in a layer, where attention is about to
 * read what they have stored.
 */
#ifndef MODELS_PASS_H
#define MODELS_PASS_H

#include "core/attend.h"
#include "core/compute.h"
#include "core/kv.h"
#include "core/cut.h"
#include "models/moments.h"
#include "models/spec.h"
#include "models/weights.h"

/* A mixture of experts at work: each token takes n_k slots, and slots are sorted by expert. */
struct moe_scratch {
    float *logits;  /* [n, num_experts] */
    float *left;    /* the same: what is still to be chosen from */
    int *chosen;    /* [n, n_k]: experts, best first */
    float *weights; /* [n, n_k] */
    int *first;     /* [num_experts + 1]: an expert's slots are first[e] .. first[e + 1] - 1 */
    int *token;     /* [n * n_k]: whose slot it is */
    int *slot;      /* [n, n_k]: the slot of a token's choice */
    float *in;      /* [n * n_k, hidden_size] */
    float *gate;    /* [n * n_k, moe_intermediate_size, twice where gate and up are one] */
    float *up;      /* [n * n_k, moe_intermediate_size] */
    float *out;     /* [n * n_k, hidden_size] */
    float *shared_gate, *shared_up; /* [n, shared_intermediate_size] */
    float *shared_out;              /* [n, hidden_size] */
    float *shared_expert_gate;      /* [n] */
};

/* A gated feed-forward is computed in chunks of columns, multiples of this: whole tiles of every
 * kernel. n_gate floats hold one worker's chunk of all n tokens. */
enum { PASS_GATE_GRAIN = 64 };

/* Up to so many rows every worker normalises for itself, which is cheaper than waiting. */
enum { PASS_FEW_ROWS = 4 };

/* The largest pass that memory is cut for. */
struct pass_size {
    int n_most; /* tokens */
    int n_threads;
    int n_each;              /* the fewest rows for each worker in a pass that is dealt out */
    bool rounds;             /* products have room for rows in other forms than f32 */
    size_t n_attend_scratch; /* floats of one worker, in any layer */
};

/* All memory is the session's. n is the number of tokens. */
struct pass {
    const struct model_spec *spec;
    const struct weights *weights;
    const struct kv *kv; /* [num_hidden_layers] */

    int n;
    const int32_t *ids;        /* [n] */
    const int *positions;      /* [n] */
    const int *sequences;      /* [n] */
    const struct kv_run *runs; /* [n_runs]: the same, told by stretches of one sequence */
    int n_runs;

    float *x;                                  /* [n, hidden_size]: the residual stream */
    const double *inv_freq[SPEC_MAX_ROPES];    /* each [n_sequences, n_dims / 2] */
    const double *rope_factor[SPEC_MAX_ROPES]; /* each [n_sequences]: multiplies cos and sin */
    float *rope_cos[SPEC_MAX_ROPES];           /* each [n, n_dims / 2] */
    float *rope_sin[SPEC_MAX_ROPES];           /* the same */

    /* all from here to the moments is cut out of the memory; parts cut theirs out of the whole's */
    struct pass_size size;
    char *memory;
    size_t n_memory;
    struct operand_room room; /* for what products read */
    float *embedded;          /* [n, embedding_size], only where that is not hidden_size */
    float *normed; /* [n, hidden_size]: what a half of a layer reads; behind them each worker's
                      own [PASS_FEW_ROWS, hidden_size], after size.n_most */
    float *branch; /* [n, hidden_size]: the result of a half, where a norm comes behind it; or what
                      a parallel feed-forward reads; only where one of the two is so */
    float *query;  /* [n, num_attention_heads, head_dim]; with latents: kv_lora_rank +
                      qk_rope_head_dim a head */
    float *key;    /* [n, num_key_value_heads, head_dim] */
    float *value;  /* the same; with latents: queries as projected, then the values of heads */
    float *query_latent; /* [n, q_lora_rank], only with latents */
    float *attn_output;  /* [n, num_attention_heads, head_dim]: the result of attention */
    float *gate; /* [size.n_threads, n_gate]: of a gated feed-forward, [n, columns] at a time */
    size_t n_gate;
    float *up;              /* [n, intermediate_size] */
    struct moe_scratch moe; /* only where there are experts */
    float *attend_scratch;  /* [size.n_threads, size.n_attend_scratch] */

    struct moments *moments; /* NULL, or the collector that receives the input rows of products */

    int n_rows;            /* tokens that get logits */
    const int *logit_rows; /* [n_rows]: which, ascending */
    float *logits;         /* [n_rows, vocab_size] */

    /* In the last layer, tokens without logits need keys and values in the cache and no more. This
     * is a pass of just those that get logits: their rows are brought to the front of the same
     * memory (collect_wanted in forward.c) and go through the rest of that layer and the head. Its
     * ids, sequences and logit_rows are NULL. NULL itself: all tokens get logits. */
    const struct pass *wanted;
    bool kv_stored; /* this is such a pass: keys and values are in the cache already */

    /* [size.n_threads]: each worker's part of the rows, in their order; NULL: they are not dealt
     * out. A part has `whole` set, which alone tells who gets logits. */
    const struct pass *parts;
    const struct pass *whole;
};

/* Rows that products read: [n, n_k], one behind the other. */
static inline struct operand pass_rows(const struct pass *p, const float *x, size_t n, size_t n_k)
{
    return operand_rows(x, n_k, n, n_k, &p->room);
}

/* Whether l rounds its rows: then attention beside it may round, too. */
static inline bool pass_rounds(const struct worker *w, const struct pass *p, const struct linear *l)
{
    return p->room.base && linear_form(w->kernels, l) != OPERAND_F32;
}

/* What this worker's attention works in. */
static inline float *pass_attend_scratch(const struct worker *w, const struct pass *p)
{
    return p->attend_scratch + (size_t)w->index * p->size.n_attend_scratch;
}

/* Shows the moments, if there are any, the rows [n, the matrices' n_in] that matrices of a layer
 * are about to be applied to. All workers come here, and the rows stay until they have synced. */
static inline void pass_show(const struct worker *w, const struct pass *p, int layer,
                             enum moments_input input, const float *x, size_t n)
{
    if (p->moments)
        moments_add(w, p->moments, layer, input, x, n);
}

/* Cuts all memory of passes of at most so many rows. */
void pass_cut(struct cutter *c, const struct model_spec *spec, const struct pass_size *size,
              struct pass *p);

/* Whether n rows are many enough to be dealt out. */
bool pass_is_large(const struct pass_size *size, int n);

/* Rows [first, first + n) of the whole as a part. It keeps `runs`, which has room for n, and takes
 * memory behind the first *used bytes, which other parts have. Not with moments, which want all
 * rows together. */
void pass_part(const struct pass *whole, int first, int n, size_t *used, struct kv_run *runs,
               struct pass *part);

/* norm(x) of n rows. Few are made in each worker's own place, without a sync: x stays as it is
 * until the next one. */
const float *pass_norm(struct worker *w, const struct pass *p, const struct norm *norm,
                       const float *x, size_t n);

#endif
