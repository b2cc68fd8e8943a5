/*
 * Open addressing with linear steps, at most half full. The two hashes are FNV-1a (Fowler, Noll and
 * Vo) from two beginnings, each stirred by the finalizer of SplitMix64 (Steele et al. 2014).
 */
#include "cli/batch_index.h"

#include <stdlib.h>

enum { SMALLEST = 64 };

static uint64_t stir(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static void hash_name(const char *name, size_t n, uint64_t hash[2])
{
    uint64_t b = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < n; i++)
        b = stir(b + (unsigned char)name[i] + 1);
    hash[0] = stir(fnv1a(name, n) + n);
    hash[1] = b | 1; /* never both 0 */
}

/* Where the name is, or the free place where it belongs. */
static struct batch_index_entry *place_of(const struct batch_index *index, const uint64_t hash[2])
{
    for (size_t i = hash[0];; i++) {
        struct batch_index_entry *at = &index->entries[i & (index->capacity - 1)];
        if (at->hash[1] == 0 || (at->hash[0] == hash[0] && at->hash[1] == hash[1]))
            return at;
    }
}

struct batch_index_entry *batch_index_find(const struct batch_index *index, const char *name,
                                           size_t n)
{
    uint64_t hash[2];
    if (index->n == 0)
        return NULL;
    hash_name(name, n, hash);
    struct batch_index_entry *at = place_of(index, hash);
    return at->hash[1] != 0 ? at : NULL;
}

static bool grow(struct batch_index *index, struct err *e)
{
    struct batch_index larger = {.capacity = index->capacity ? index->capacity * 2 : SMALLEST,
                                 .n = index->n};
    larger.entries = calloc(larger.capacity, sizeof *larger.entries);
    if (!larger.entries)
        return err_no_memory(e);
    for (size_t i = 0; i < index->capacity; i++)
        if (index->entries[i].hash[1] != 0)
            *place_of(&larger, index->entries[i].hash) = index->entries[i];
    free(index->entries);
    *index = larger;
    return true;
}

bool batch_index_add(struct batch_index *index, const char *name, size_t n, uint64_t value,
                     struct err *e)
{
    struct batch_index_entry entry = {.value = value};
    if (2 * (index->n + 1) > index->capacity && !grow(index, e))
        return false;
    hash_name(name, n, entry.hash);
    *place_of(index, entry.hash) = entry;
    index->n++;
    return true;
}

void batch_index_free(struct batch_index *index)
{
    free(index->entries);
    *index = (struct batch_index){.entries = NULL};
}
