/*
 * Blocks from calloc, filled from the front and chained newest first. Blocks double up to a limit,
 * so an arena of a few pieces stays small and one of 300,000 takes few calls. A piece that is large
 * beside a block gets one of its own, behind the newest, whose rest stays in use.
 */
#include "core/arena.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* As malloc's: what any type wants. */
enum { ALIGNMENT = alignof(max_align_t) };

struct arena_block {
    struct arena_block *next; /* older */
    size_t used, capacity;    /* of data, in bytes */
    alignas(ALIGNMENT) unsigned char data[];
};

#ifdef __SANITIZE_ADDRESS__
/* A block per piece: so that the sanitizer sees who steps over the end of one. */
enum { FIRST_BLOCK = 0, LAST_BLOCK = 0 };
#else
enum { FIRST_BLOCK = 4 << 10, LAST_BLOCK = 1 << 20 };
#endif

static struct arena_block *new_block(size_t capacity)
{
    size_t size;
    if (!checked_add(sizeof(struct arena_block), capacity, &size))
        return NULL;
    struct arena_block *b = calloc(1, size);
    if (b)
        b->capacity = capacity;
    return b;
}

/* A block with room for n more bytes, chained in. */
static struct arena_block *block_for(struct arena *a, size_t n)
{
    struct arena_block *newest = a->block;
    if (newest && newest->capacity - newest->used >= n)
        return newest;
    size_t capacity = newest ? newest->capacity * 2 : FIRST_BLOCK;
    if (capacity > LAST_BLOCK)
        capacity = LAST_BLOCK;
    bool alone = n > capacity / 4;
    struct arena_block *b = new_block(alone ? n : capacity);
    if (!b)
        return NULL;
    if (alone && newest) {
        b->next = newest->next;
        newest->next = b;
    } else {
        b->next = newest;
        a->block = b;
    }
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > SIZE_MAX - ALIGNMENT)
        return NULL;
    /* A piece of 0 bytes has an address of its own as well. */
    size_t size = round_up(n ? n : 1, ALIGNMENT);
    struct arena_block *b = block_for(a, size);
    if (!b)
        return NULL;
    void *piece = b->data + b->used;
    b->used += size;
    return piece;
}

void *arena_array(struct arena *a, size_t n_items, size_t item_size)
{
    size_t n;
    return checked_mul(n_items, item_size, &n) ? arena_alloc(a, n) : NULL;
}

char *arena_text(struct arena *a, const char *text, size_t n)
{
    size_t size;
    char *copy = checked_add(n, 1, &size) ? arena_alloc(a, size) : NULL;
    if (copy && n)
        memcpy(copy, text, n);
    return copy;
}

void arena_free(struct arena *a)
{
    struct arena_block *next;
    for (struct arena_block *b = a->block; b; b = next) {
        next = b->next;
        free(b);
    }
    a->block = NULL;
}
