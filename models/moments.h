/*
 * What the matrices of a model are applied to, gathered while texts pass through it: for every
 * input the sums of x[i] * x[j] over its rows, for columns i and j of the same block. They tell
 * which errors of a quantised matrix do harm (core/quantize.h).
 *
 * Inputs of experts and of latent attention are not gathered: a few thousand tokens say too little
 * about what each expert reads.
 */
#ifndef MODELS_MOMENTS_H
#define MODELS_MOMENTS_H

#include "core/compute.h"
#include "core/err.h"
#include "models/role.h"

enum moments_input {
    MOMENTS_ATTENTION,   /* of query, key and value */
    MOMENTS_ATTN_OUTPUT, /* of what projects heads back */
    MOMENTS_FFN,         /* of gate and up */
    MOMENTS_ACTIVATED,   /* of down */
    MOMENTS_PER_LAYER,
    MOMENTS_HEAD = MOMENTS_PER_LAYER
};

struct model;
struct moments;

/* n_batch: the most rows that are added at once. NULL: no memory. */
struct moments *moments_new(const struct model *m, size_t n_batch, struct err *e);
void moments_free(struct moments *m);

/* Adds rows of an input, x [n, its columns]. All workers of a pass come here, each for its share of
 * the sums, whose order is that of the rows. The layer counts for nothing with MOMENTS_HEAD. */
void moments_add(const struct worker *w, struct moments *m, int layer, enum moments_input input,
                 const float *x, size_t n);

/* Turns all sums into factors; nothing can be added afterwards. */
void moments_factor(struct moments *m, struct compute *c);

/* The factors for the matrix of a role, as struct quantize_source wants them; NULL where nothing
 * has been gathered. Borrowed. */
const float *moments_factors(const struct moments *m, enum role role, int layer);

#endif
