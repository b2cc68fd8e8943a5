/*
 * A hash table finds the last place where a pair of ids stood, `before` leads from each place to
 * the one before it that holds the same pair. A place is the index of the pair's second id. The
 * table is open and at most half full, and a place names its pair exactly: the ids themselves are
 * there. Both an id and a guess cost the same however long the text is.
 */
#include "core/draft.h"

#include "core/arena.h"

#include <assert.h>
#include <stdlib.h>

struct draft {
    int max_ids;
    int n;           /* ids so far */
    bool full;       /* more than max_ids have come */
    int following;   /* the id behind the match of the last guess; 0: none, or it was wrong */
    int32_t *ids;    /* [max_ids] */
    int32_t *before; /* [max_ids] the place before with the same pair; 0: none */
    int32_t *last;   /* [n_slots] the last place of a pair; 0: empty */
    size_t n_slots;  /* a power of two */
    struct arena arena;
};

static size_t count_slots(int max_ids)
{
    size_t n = 16;
    while (n < 2 * (size_t)max_ids)
        n *= 2;
    return n;
}

size_t draft_bytes(int max_ids)
{
    assert(max_ids >= 0);
    return (2 * (size_t)max_ids + count_slots(max_ids)) * sizeof(int32_t);
}

struct draft *draft_new(int max_ids, struct err *e)
{
    assert(max_ids >= 0);
    struct draft *d = calloc(1, sizeof *d);
    if (!d) {
        err_no_memory(e);
        return NULL;
    }
    d->max_ids = max_ids;
    d->n_slots = count_slots(max_ids);
    d->ids = arena_array(&d->arena, (size_t)max_ids, sizeof *d->ids);
    d->before = arena_array(&d->arena, (size_t)max_ids, sizeof *d->before);
    d->last = arena_array(&d->arena, d->n_slots, sizeof *d->last);
    if (!d->ids || !d->before || !d->last) {
        err_no_memory(e);
        draft_free(d);
        return NULL;
    }
    return d;
}

void draft_free(struct draft *d)
{
    if (d) {
        arena_free(&d->arena);
        free(d);
    }
}

/* The slot of the pair that ends at `place`; an empty one where the pair is new. */
static int32_t *slot(struct draft *d, int place)
{
    const int32_t a = d->ids[place - 1], b = d->ids[place];
    uint64_t hash = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 32) & (d->n_slots - 1);
    for (int32_t p; (p = d->last[at]) != 0; at = (at + 1) & (d->n_slots - 1))
        if (d->ids[p - 1] == a && d->ids[p] == b)
            break;
    return &d->last[at];
}

void draft_push(struct draft *d, int32_t id)
{
    if (d->n == d->max_ids) {
        d->full = true;
        return;
    }
    const int place = d->n++;
    d->ids[place] = id;
    if (d->following)
        d->following = d->ids[d->following] == id ? d->following + 1 : 0;
    if (place == 0)
        return;
    int32_t *const last = slot(d, place);
    d->before[place] = *last;
    *last = place;
}

/* How many ids up to `place` are the same as those up to the end of the text. */
static int match(const struct draft *d, int place)
{
    const int end = d->n - 1, most = min_int(place + 1, DRAFT_LONGEST);
    int n = 0;
    while (n < most && d->ids[place - n] == d->ids[end - n])
        n++;
    return n;
}

int draft_guess(struct draft *d, int32_t *out, int n)
{
    if (d->n < DRAFT_SHORTEST || d->full)
        return 0;
    const int end = d->n - 1;
    int longest = 0, best = 0;
    for (int i = 0, place = d->before[end]; i < DRAFT_PLACES && place; i++) {
        const int length = match(d, place);
        if (length > longest) {
            longest = length;
            best = place;
        }
        place = d->before[place];
    }
    /* A part that is being repeated is not lost where others share a pair with it. */
    if (d->following && match(d, d->following - 1) > longest) {
        best = d->following - 1;
        longest = match(d, best);
    }
    d->following = longest ? best + 1 : 0;
    for (int i = 0; longest && i < n; i++)
        out[i] = best + 1 + i < d->n ? d->ids[best + 1 + i] : out[best + 1 + i - d->n];
    return longest;
}
