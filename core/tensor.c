/*
 * The table of dtypes and what can be said of a tensor without looking at its bytes. What a value
 * of a dtype means is the business of the kernels.
 */
#include "core/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names and sizes of safetensors' enum Dtype, without the types below one byte. */
static const struct {
    const char *name;
    size_t size;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_F32] = {"F32", 4},         [DTYPE_F16] = {"F16", 2},
    [DTYPE_BF16] = {"BF16", 2},       [DTYPE_F64] = {"F64", 8},
    [DTYPE_BOOL] = {"BOOL", 1},       [DTYPE_U8] = {"U8", 1},
    [DTYPE_I8] = {"I8", 1},           [DTYPE_I16] = {"I16", 2},
    [DTYPE_U16] = {"U16", 2},         [DTYPE_I32] = {"I32", 4},
    [DTYPE_U32] = {"U32", 4},         [DTYPE_I64] = {"I64", 8},
    [DTYPE_U64] = {"U64", 8},         [DTYPE_C64] = {"C64", 8},
    [DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [DTYPE_F8_E5M2] = {"F8_E5M2", 1},
    [DTYPE_F8_E8M0] = {"F8_E8M0", 1},
};

size_t dtype_size(enum dtype dtype)
{
    return dtypes[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    return dtypes[dtype].name;
}

bool dtype_parse(const char *name, enum dtype *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *out = (enum dtype)i;
            return true;
        }
    }
    return false;
}

int64_t tensor_count(const struct tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++)
        n *= t->shape[i];
    return n;
}

char *tensor_shape_text(const int64_t *shape, int n_dims, char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < n_dims && used < size; i++) {
        const char *before = i == 0 ? "[" : ", ";
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, before, shape[i]);
    }
    if (used < size)
        snprintf(out + used, size - used, n_dims == 0 ? "[]" : "]");
    return out;
}
