/*
 * Memory with one lifetime: many small pieces taken one after another, all given back at once.
 * Pieces are zeroed, aligned for any type, and never move. Not for more than one thread at a time.
 */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include "core/base.h"

struct arena_block;

struct arena {
    struct arena_block *block; /* newest first */
};

/* n zeroed bytes, or NULL where there is no memory. An arena that is all zero is a valid empty one.
 */
void *arena_alloc(struct arena *a, size_t n);

/* n_items * item_size zeroed bytes; NULL on overflow too. */
void *arena_array(struct arena *a, size_t n_items, size_t item_size);

/* A terminated copy of text[0..n). NULL where there is no memory. */
char *arena_text(struct arena *a, const char *text, size_t n);

/* Gives everything back; the arena is empty and usable afterwards. */
void arena_free(struct arena *a);

#endif
