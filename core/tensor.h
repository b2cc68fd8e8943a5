/*
 * A tensor as a checkpoint stores it: a name, a type, a shape and a view into mapped bytes. Owns
 * nothing.
 */
#ifndef CORE_TENSOR_H
#define CORE_TENSOR_H

#include "core/base.h"

/* The dtypes of the safetensors format. The first three are those of plain weights, as kernels
 * number them; some of the others hold the codes of quantised ones; of the rest only the size is
 * known. */
enum dtype {
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_F64,
    DTYPE_BOOL,
    DTYPE_U8,
    DTYPE_I8,
    DTYPE_I16,
    DTYPE_U16,
    DTYPE_I32,
    DTYPE_U32,
    DTYPE_I64,
    DTYPE_U64,
    DTYPE_C64,
    DTYPE_F8_E4M3,
    DTYPE_F8_E5M2,
    DTYPE_F8_E8M0,
    DTYPE_COUNT
};

enum { TENSOR_MAX_DIMS = 8 };

struct tensor {
    const char *name; /* as in the file */
    enum dtype dtype;
    int n_dims;
    int64_t shape[TENSOR_MAX_DIMS];
    const void *data; /* row-major, little-endian, aligned to nothing */
    size_t n_bytes;   /* product of shape * dtype_size */
};

/* Bytes per element. */
size_t dtype_size(enum dtype dtype);

/* The name that safetensors uses: "BF16". */
const char *dtype_name(enum dtype dtype);

/* The dtype of that name; false where the format has none such. */
bool dtype_parse(const char *name, enum dtype *out);

/* Product of the shape; 1 for a scalar. */
int64_t tensor_count(const struct tensor *t);

/* "[4096, 256]" into out[0..size), cut where it does not fit. Returns out. */
char *tensor_shape_text(const int64_t *shape, int n_dims, char *out, size_t size);

#endif
