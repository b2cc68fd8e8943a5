/*
 * One block of memory cut into parts, each on a cache line of its own. The same calls without a
 * block say how large it must be.
 */
#ifndef CORE_CUT_H
#define CORE_CUT_H

#include "core/base.h"

struct cutter {
    char *base; /* on a cache line; NULL: it only adds up, and parts are NULL */
    size_t used;
    bool overflow;
};

/* n elements of size bytes. */
void *cut_bytes(struct cutter *c, size_t n, size_t size);

/* [n_rows, n_columns] */
float *cut_floats(struct cutter *c, size_t n_rows, size_t n_columns);
int *cut_ints(struct cutter *c, size_t n_rows, size_t n_columns);

#endif
