/*
 * y = x W^T + b over weights where they lie: a matrix as a checkpoint stores it, or some rows of a
 * fused one. Owns nothing; W is a view into the checkpoint, b belongs to the model.
 */
#ifndef CORE_LINEAR_H
#define CORE_LINEAR_H

#include "core/compute.h"
#include "core/deal.h"
#include "core/operand.h"
#include "core/quant.h"
#include "core/tensor.h"

struct linear {
    const void *w; /* transposed ? [n_in, n_out] : [n_out, n_in], rows `stride` elements apart */
    enum dtype dtype;
    int n_out;
    int n_in;
    size_t stride;
    bool transposed;   /* GPT-2's Conv1D */
    const float *bias; /* [n_out] or NULL */
    float scale;       /* y = scale * (W x + b) */

    /* A part of a fused matrix whose outputs lie in blocks: output r is block_stride * (r / block)
     * + r % block outputs behind w. block = n_out: all in one piece. */
    int block;
    int block_stride;

    /* NULL, or how W is stored quantised. W, or where transposed is set W^T, begins with row
     * `quant_first` of it; w, dtype and stride have no meaning. */
    const struct quant *quant;
    size_t quant_first;
};

enum linear_store { LINEAR_SET, LINEAR_ADD };

/* Outputs are shared out in multiples of so many: whole cache lines of y, and whole tiles of every
 * kernel. */
enum { LINEAR_GRAIN = 16 };

/* Bytes of weights, and of scales, that an output reads. */
double linear_row_bytes(const struct linear *l);

/* True for the dtypes that the kernels read in place. */
bool linear_supports(enum dtype dtype);

/* y[i, :] = scale * (W x[i, :] + b) for the rows of x, in the form that suits the weights best
 * where x has room for it. Each worker computes its part (linear_share); sync before more of y is
 * read. All workers come here. */
void linear_apply(struct worker *w, const struct linear *l, struct operand *x, float *y,
                  size_t y_stride);

/* The same, or y +=, dealt out where W is large (core/deal.h), and with a sync at the end. */
void linear_apply_dealt(struct worker *w, const struct linear *l, struct operand *x, float *y,
                        size_t y_stride, enum linear_store store);

/* How that deals out the outputs, for whoever goes on with those that it has computed: of n
 * matrices of one shape, each of which begins with a new grain. Behind linear_prepare, as pieces
 * must not wait for each other. */
struct deal linear_deal(const struct worker *w, const struct linear *l, size_t n);

/* Whether it shares out sums in two halves instead (GPT-2's long matrices), which no pieces of
 * outputs replace at the same speed. */
bool linear_shares_sums(const struct worker *w, const struct linear *l, const struct operand *x);

/* y[i] [x->n, n_out of all[i]] = all[i] x for n matrices, in their order. For few rows of x,
 * matrices that are parts of one transposed matrix become one product, which reads whole rows: a
 * third faster than pieces of them. */
void linear_apply_all(struct worker *w, const struct linear *const *all, int n, struct operand *x,
                      float *const *y);

/* y = or y += as linear_apply, for the outputs [begin, end) of the caller's own choice, the first
 * of which goes to y[i, 0]. The first call, which makes the form of x, must be made by all workers.
 */
void linear_apply_part(struct worker *w, const struct linear *l, struct operand *x, size_t begin,
                       size_t end, float *y, size_t y_stride, enum linear_store store);

/* The form that linear_apply gives x, where there is room for it. */
enum operand_form linear_form(const struct kernels *kernels, const struct linear *l);

/* Makes the form that linear_apply would make, ahead of products with parts of x. */
void linear_prepare(struct worker *w, const struct linear *l, struct operand *x);

/* The outputs that linear_apply gives this worker. A worker that goes on with its own results alone
 * need not sync. */
void linear_share(const struct worker *w, int n_out, size_t *begin, size_t *end);

/* Whether n_out outputs, cut into n_parts equal parts, are shared out so that every worker gets the
 * same number of whole parts. */
bool linear_shares_parts(const struct worker *w, int n_out, int n_parts);

/* y[i, :] = scale * (W x[i, :] + b) for x [n, n_in] in f32, all outputs by the caller alone. */
void linear_apply_alone(const struct kernels *kernels, const struct linear *l, const float *x,
                        size_t x_stride, size_t n, float *y, size_t y_stride);

/* out[n_in] = row `row` of a matrix that is not transposed, as f32: an embedding look-up. */
void linear_row(const struct kernels *kernels, const struct linear *l, int row, float *out);

#endif
