/* Splits the outputs of a matrix over the workers and hands each part to the kernel of its dtype.
 */
#include "core/linear.h"

#include "core/kernels/kernels.h"

#include <assert.h>

_Static_assert((int)DTYPE_F32 == WEIGHT_F32 && (int)DTYPE_F16 == WEIGHT_F16 &&
                   (int)DTYPE_BF16 == WEIGHT_BF16,
               "kernels index their tables by dtype");

/* Outputs per share: whole cache lines of y, and whole tiles of every kernel. */
enum { GRAIN = 16 };

bool linear_supports(enum dtype dtype)
{
    return (int)dtype < N_WEIGHT_TYPES;
}

void linear_share(const struct worker *w, int n_out, size_t *begin, size_t *end)
{
    worker_share(w, (size_t)n_out, GRAIN, begin, end);
}

/* The outputs [begin, end), which lie in one block. */
static void apply_block(const struct kernels *kernels, const struct linear *l, const float *x,
                        size_t x_stride, size_t n, float *y, size_t y_stride,
                        enum linear_store store, size_t begin, size_t end)
{
    const size_t block = (size_t)l->block;
    const size_t row = begin / block * (size_t)l->block_stride + begin % block;
    const size_t first = l->transposed ? row : row * l->stride;
    struct linear_args args = {
        .y = y + begin,
        .y_stride = y_stride,
        .x = x,
        .x_stride = x_stride,
        .n_x = n,
        .n_w = end - begin,
        .n_k = (size_t)l->n_in,
        .bias = l->bias ? l->bias + begin : NULL,
        .scale = l->scale,
        .add = store == LINEAR_ADD,
    };
    if (l->quant && l->transposed) {
        quant_apply_transposed(kernels, l->quant, l->quant_first, row, &args);
        return;
    }
    if (l->quant) {
        quant_apply(kernels, l->quant, l->quant_first + row, &args);
        return;
    }
    args.w = (const unsigned char *)l->w + first * dtype_size(l->dtype);
    args.w_stride = l->stride;
    (l->transposed ? kernels->linear_cols : kernels->linear_rows)[l->dtype](&args);
}

/* The outputs [begin, end), block by block. */
static void apply_range(const struct kernels *kernels, const struct linear *l, const float *x,
                        size_t x_stride, size_t n, float *y, size_t y_stride,
                        enum linear_store store, size_t begin, size_t end)
{
    assert((l->quant || linear_supports(l->dtype)) && l->block > 0);
    while (begin < end) {
        const size_t block_end = (begin / (size_t)l->block + 1) * (size_t)l->block;
        const size_t stop = block_end < end ? block_end : end;
        apply_block(kernels, l, x, x_stride, n, y, y_stride, store, begin, stop);
        begin = stop;
    }
}

void linear_apply(struct worker *w, const struct linear *l, const float *x, size_t x_stride,
                  size_t n, float *y, size_t y_stride, enum linear_store store)
{
    size_t begin, end;
    linear_share(w, l->n_out, &begin, &end);
    apply_range(w->kernels, l, x, x_stride, n, y, y_stride, store, begin, end);
}

void linear_apply_alone(const struct kernels *kernels, const struct linear *l, const float *x,
                        size_t x_stride, size_t n, float *y, size_t y_stride,
                        enum linear_store store)
{
    apply_range(kernels, l, x, x_stride, n, y, y_stride, store, 0, (size_t)l->n_out);
}

void linear_row(const struct kernels *kernels, const struct linear *l, int row, float *out)
{
    assert(!l->transposed && l->block == l->n_out && row >= 0 && row < l->n_out);
    if (l->quant) {
        quant_row(kernels, l->quant, l->quant_first + (size_t)row, out);
        return;
    }
    const size_t offset = (size_t)row * l->stride * dtype_size(l->dtype);
    kernels->to_f32[l->dtype](out, (const unsigned char *)l->w + offset, (size_t)l->n_in);
}
