/*
 * Which names have occurred, each with a number: the custom_ids of an input with their lines, or
 * those of answers. Holds 128 bits of hash instead of the names, so that millions of lines fit: two
 * different names that look the same are less likely than a disk that lies.
 */
#ifndef CLI_BATCH_INDEX_H
#define CLI_BATCH_INDEX_H

#include "core/base.h"
#include "core/err.h"

struct batch_index_entry {
    uint64_t hash[2]; /* both 0: free */
    uint64_t value;
};

/* All zero is an empty one. */
struct batch_index {
    struct batch_index_entry *entries; /* [capacity], a power of two */
    size_t capacity, n;
};

/* The entry of name[0..n), or NULL. Its value may be changed; valid until the next add. */
struct batch_index_entry *batch_index_find(const struct batch_index *index, const char *name,
                                           size_t n);

/* Adds a name that is not there yet. */
bool batch_index_add(struct batch_index *index, const char *name, size_t n, uint64_t value,
                     struct err *e);

void batch_index_free(struct batch_index *index);

#endif
