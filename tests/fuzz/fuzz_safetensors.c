/*
 * Any bytes as a safetensors file: no crash; and where it is accepted, tensors that lie within the
 * file, side by side, each as large as its shape says, and together the whole buffer.
 */
#include "core/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct tensor *tensors, size_t n, const uint8_t *data, size_t size)
{
    const uint8_t *next = n > 0 ? tensors[0].data : data + size;
    for (size_t i = 0; i < n; i++) {
        const struct tensor *t = &tensors[i];
        size_t expected = (size_t)tensor_count(t) * dtype_size(t->dtype);
        if (!t->name || t->data != next || t->n_bytes != expected)
            abort();
        next += t->n_bytes;
    }
    if (next != data + size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    struct arena arena = {0};
    struct tensor *tensors;
    size_t n;
    if (safetensors_parse((struct bytes){data, size}, &arena, &tensors, &n, &e))
        check(tensors, n, data, size);
    else if (e.code == ERR_NONE || !*e.text || strlen(e.text) >= sizeof e.text)
        abort();
    arena_free(&arena);
    return 0;
}
