/*
 * A cursor over one block. Every part begins on a cache line, every size is overflow-checked, and
 * an overflow is remembered instead of returned, so that a layout reads as a list and is checked
 * once. Owns nothing: the block is the caller's, and a dry run without one measures it.
 */
#include "core/cut.h"

void *cut_bytes(struct cutter *c, size_t n, size_t size)
{
    size_t bytes;
    void *const part = c->base ? c->base + c->used : NULL;
    if (!checked_mul(n, size, &bytes) || !checked_add(bytes, CACHE_LINE - 1, &bytes) ||
        !checked_add(c->used, bytes / CACHE_LINE * CACHE_LINE, &c->used))
        c->overflow = true;
    return part;
}

float *cut_floats(struct cutter *c, size_t n_rows, size_t n_columns)
{
    size_t n;
    if (!checked_mul(n_rows, n_columns, &n)) {
        c->overflow = true;
        return NULL;
    }
    return cut_bytes(c, n, sizeof(float));
}

int *cut_ints(struct cutter *c, size_t n_rows, size_t n_columns)
{
    _Static_assert(sizeof(int) == sizeof(float), "both are cut in the same way");
    return (int *)(void *)cut_floats(c, n_rows, n_columns);
}
