/*
 * How one matrix is stored quantised, and products with it where it lies. Each format is codes,
 * scales and perhaps zero points, w(r, k) = (code(r, k) - zero) * scale, in an order of its own.
 * For products in f32, codes are decoded tile by tile on the stack (FP8 is taken as it lies for few
 * rows), and code times scale is rounded once: originals that compute in f16 or bf16 round it once
 * more, and so do products of FP8 in bf16. For products in whole numbers, codes are taken as they
 * lie or, from formats in columns, block by block; activations are in int8. No copy of the matrix
 * is made, unless somebody asks for one (quant_weave.h).
 *
 * Owns nothing: all are views into the checkpoint, aligned to nothing. quant_init alone reads what
 * a file may have wrong; behind it nothing fails.
 */
#ifndef CORE_QUANT_H
#define CORE_QUANT_H

#include "core/err.h"
#include "core/tensor.h"

struct kernels;
struct linear_args;
struct linear_i8_args;
struct quant_layout;

enum quant_type {
    QUANT_F8,      /* F8_E4M3 [n_out, n_in]: "fp8", and compressed-tensors "float-quantized" */
    QUANT_MXFP4,   /* U8 [..., n_in / 32, 16]: gpt-oss; two E2M1 a byte, the first one low */
    QUANT_INT8,    /* I8 [n_out, n_in]: compressed-tensors "int-quantized" */
    QUANT_PACKED8, /* I32 [n_out, n_in / 4 rounded up]: compressed-tensors "pack-quantized", ... */
    QUANT_PACKED4, /* I32 [n_out, n_in / 8 rounded up]: ... value + 128 or + 8, the first one low */
    QUANT_GPTQ,    /* I32 [n_in / 8, n_out]: 8 inputs of an output in a word, the first one low */
    QUANT_AWQ,     /* I32 [n_in, n_out / 8]: 8 outputs of an input, in the order of AWQ "gemm" */
    QUANT_TYPE_COUNT
};

/* What a checkpoint's quantization_config says of its matrices. */
struct quant_format {
    enum quant_type type;
    int block_out; /* rows and columns that share a scale, 0: all of them. Per tensor 0, 0; per */
    int block_in;  /* row 1, 0; groups of 128 1, 128; blocks of 128 x 128 128, 128. MXFP4: unused */
    bool zeros_less_one; /* GPTQ's checkpoint_format "gptq": each stored zero point is 1 too low */
    bool needs_zeros, needs_g_idx; /* the file says that there are such tensors */
    bool woven; /* as no file is: INT8 or PACKED4 the way kernels.h's linear_woven wants them, up to
                   the last whole strip; rows of whole words, neither zero points nor g_idx */
};

/* The tensors of one matrix; NULL where there is none, which codes and scales must not be. */
struct quant_parts {
    const struct tensor *codes;  /* weight, weight_packed, X_blocks, qweight */
    const struct tensor *scales; /* weight_scale, weight_scale_inv, X_scales, scales */
    const struct tensor *zeros;  /* weight_zero_point, qzeros */
    const struct tensor *g_idx;  /* weight_g_idx, g_idx: I32 [n_in], the group of each column */
    const struct tensor *shape;  /* weight_shape: {n_out, n_in} */
};

/* What quant_init has made of them, for the files that compute with it. */
struct quant {
    enum quant_type type;
    const struct quant_layout *layout; /* what is the same in all matrices of the type */
    size_t n_out, n_in;
    size_t block_out, block_in, n_groups; /* n_groups: scales along a row */
    size_t row_bytes;                     /* of codes that a row takes; not in columns */
    const unsigned char *codes, *scales, *zeros, *g_idx;
    enum dtype scale_dtype;
    size_t n_woven;        /* rows of whole strips that are woven, the first ones */
    bool zeros_packed;     /* as codes are, else I8 */
    uint32_t zeros_add;    /* to each packed word */
    const uint32_t *order; /* [n_in]: where weaving sorted columns, which input each was; NULL */
    const struct quant *stored; /* if weaving reordered the columns: the matrix as stored, which f32
                                   products still use because their x is not reordered */
};

/* Checks the parts of a matrix [n_out, n_in] against each other and fills in *q. Tensors of more
 * than two dimensions (experts in one) count as one matrix, all but the last dimension multiplied.
 * ERR_LOAD names the tensor that is wrong and what was expected. */
bool quant_init(struct quant *q, const struct quant_format *format, const struct quant_parts *parts,
                size_t n_out, size_t n_in, struct err *e);

/* Bytes of a row: its codes and its share of scales and zero points. */
double quant_row_bytes(const struct quant *q);

/* kernels->linear_rows with rows [row, row + a->n_w) of *q for weights; a->n_k is n_in, w and
 * w_stride are not used. The same promise holds: an output's sum has one order. */
void quant_apply(const struct kernels *kernels, const struct quant *q, size_t row,
                 const struct linear_args *a);

/* Whether quant_apply_bf16 can take its place where activations are rounded to bf16. */
bool quant_meets_bf16(const struct kernels *kernels, const struct quant *q);

/* kernels->linear_rows_f8 likewise. */
void quant_apply_bf16(const struct kernels *kernels, const struct quant *q, size_t row,
                      const struct linear_args *a);

/* kernels->linear_cols with rows [row, row + a->n_k) of *q, from a column on that is a multiple of
 * 8: y[i, c] sums over rows. For whoever multiplies with the matrix transposed. */
void quant_apply_transposed(const struct kernels *kernels, const struct quant *q, size_t row,
                            size_t column, const struct linear_args *a);

/* The bits of a code, without its share of scales. */
unsigned quant_bits(const struct quant *q);

/* The groups in which activations must be rounded to int8 for quant_apply_i8; 0: this matrix has no
 * whole-numbered product. */
size_t quant_i8_group(const struct quant *q);

/* Whether quant_apply_i8 wants the activations' codes in the split order (kernels.h). */
bool quant_is_split(const struct quant *q);

/* kernels->linear_i8 with rows [row, row + a->n_w) of *q for weights: *a holds all but the weights;
 * the values of x are in q->order. A woven matrix takes kernels of a level that has linear_woven.
 */
void quant_apply_i8(const struct kernels *kernels, const struct quant *q, size_t row,
                    const struct linear_i8_args *a);

/* out[n_in] = that row as f32. */
void quant_row(const struct kernels *kernels, const struct quant *q, size_t row, float *out);

#endif
