/*
 * Quantises one matrix: F32, F16 or BF16 in, the tensors of a format of quant.h out, in exactly the
 * layout that compressed-tensors stores and quant_init takes, or woven for this machine's kernels.
 *
 * With eight bits the largest value of a row gets the last code: what other scales gained did not
 * show in a model's guesses. With four each group gets the scale of least squares for the best of a
 * few sets of codes, errors weighing as much as the caller says of their columns. Rows are
 * independent of each other, and the kernels behind this are EXACT: the bits depend neither on
 * threads nor on the machine.
 *
 * With four bits, a caller that knows what the matrix is applied to can have more (factors):
 * columns that come later make good what rounding has done to earlier ones (Frantar et al. 2022,
 * "GPTQ"), within blocks of columns, so that the work grows with the matrix and not with its
 * square.
 */
#ifndef CORE_QUANTIZE_H
#define CORE_QUANTIZE_H

#include "core/quant.h"
#include "core/tensor.h"

struct kernels;

enum quantize_form {
    QUANTIZE_8, /* int8, a scale for each row: 8 bits and 16 / n_in a weight */
    QUANTIZE_4  /* int4 in groups of 64 where 64 divides n_in: 4.25 bits a weight */
};

/* Matrices as they are stored, one behind the other (experts) or a single one. */
struct quantize_source {
    const void *data;
    enum dtype dtype;
    size_t n_matrices, n_out, n_in;
    bool transposed; /* each is [n_in, n_out], as GPT-2 has it, and not [n_out, n_in] */
    const float
        *importance; /* [n_in]: the mean square of each column's inputs, or NULL: all alike */

    /* The factors of all blocks of columns, one behind the other, as quantize_factor makes them
     * from sums over the columns' inputs; or NULL. Not for transposed ones. */
    const float *factors;
};

/* What becomes of them: tensors whose shape and size are known and whose data the caller provides.
 * Their names stay NULL. */
struct quantized {
    struct quant_format format; /* woven is the caller's to set */
    struct tensor codes;        /* I8 or I32, [n_matrices * n_out, ...] */
    struct tensor scales; /* [n_matrices * n_out, groups]; F16 of an F16 matrix, for programs that
                             compute in the type of the scales, else BF16. F16 holds less of those
                             below 2^-14: up to 2 % are lost of rows of at most 1e-4. */
};

/*
 * Fills in the format and the tensors but for their data. Where 64 does not divide n_in, QUANTIZE_4
 * takes groups of 32, a single group for a row of at most 128 that is a multiple of 8, and else 8
 * bits (QUANT_PACKED8) with a scale for each row. False where the sizes overflow.
 */
bool quantize_plan(const struct quantize_source *from, enum quantize_form form,
                   struct quantized *to);

/* Whether such a matrix can be woven and the kernels have use for it. */
bool quantize_can_weave(const struct kernels *kernels, const struct quantized *to);

/* Columns of a block, for factors: all but the last have as many. A multiple of 64 below n_in, or
 * n_in; never more than QUANTIZE_BLOCK. */
enum { QUANTIZE_BLOCK = 512 };
size_t quantize_block(size_t n_in);

/* Sums h(i, j) of x[i] * x[j], [n, n] with rows `stride` floats apart, of which the lower triangle
 * is read. It becomes l(i, j), lower triangular, with h + damping = l^T l; above it the sums stay.
 * The damping, a hundredth of the mean of h(i, i), keeps from mattering what few rows leave
 * undetermined. */
void quantize_factor(const struct kernels *kernels, float *h, size_t n, size_t stride);

/* Floats that quantize_rows works in; a multiple of 16, so that what several threads work in can
 * lie side by side and be aligned. */
size_t quantize_scratch(const struct quantize_source *from);

/* Writes rows [begin, end) of to->codes and to->scales, whose data must be writable memory. Threads
 * may share a matrix by rows, a woven one by whole strips, except for its last rows. A woven one
 * has no factors. False where a weight in them is NaN or infinite: what was written means nothing
 * then. */
bool quantize_rows(const struct kernels *kernels, const struct quantize_source *from,
                   const struct quantized *to, size_t begin, size_t end, float *scratch);

#endif
