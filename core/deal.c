/*
 * A worker begins with most of its share, in one piece, as if nothing were dealt out. Of the rest
 * it takes half, and half again, while others, once their own rest is gone, take quarters. A
 * counter for each share tells what is left; it holds the phase of the deal, too, so that nobody
 * need reset it.
 */
#include "core/deal.h"

#include "core/clock.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    PARTS = 16, /* of a share */
    HELPED = 4, /* others that a worker takes from */
};

/* A thread's part in deals. */
struct part {
    /* The next grain of its share to be dealt out, and in the upper half the phase of that deal; in
     * any other phase nobody has taken any. */
    alignas(COMPUTE_APART) atomic_uint_least64_t next;
    double dealt;  /* seconds of this run in long deals */
    double waited; /* of these, at their ends, beyond what a barrier takes */
};

struct deals {
    int n_threads;
    int n_rest;   /* of PARTS parts of a share, those that are dealt out: 0 or LEAST .. MOST */
    double waits; /* the part of the time in long deals that is waiting, smoothed */
    int n_hold;   /* runs until less is dealt out */
    struct part parts[];
};

struct deals *deals_new(int n_threads)
{
    const size_t n = (size_t)n_threads;
    struct deals *const deals =
        aligned_alloc(alignof(struct deals), sizeof *deals + n * sizeof *deals->parts);
    if (!deals)
        return NULL;
    *deals = (struct deals){.n_threads = n_threads};
    for (size_t i = 0; i < n; i++)
        deals->parts[i] = (struct part){.next = UINT64_MAX};
    return deals;
}

void deals_free(struct deals *deals)
{
    free(deals);
}

/* Of the time of all threads in the long deals of a run, the part that they waited; negative: there
 * were none. */
static double reset_waits(struct deals *deals)
{
    const double dealt = deals->parts[0].dealt * deals->n_threads;
    double waited = 0;
    for (int i = 0; i < deals->n_threads; i++) {
        waited += deals->parts[i].waited;
        deals->parts[i].dealt = deals->parts[i].waited = 0;
    }
    return dealt > 0 ? waited / dealt : -1;
}

/* Dealing out costs some percent where all threads are equally fast, as each begins to read in more
 * places. So it begins when they wait for more than `many` of the time, with twice as much while
 * they still do; after HOLD runs it is halved, and they show whether they wait then. One run in
 * which a thread did not run at all says little. */
void deals_judge(struct deals *deals)
{
    enum { LEAST = PARTS / 8, MOST = PARTS / 2, HOLD = 64, SMOOTH = 16 };
    const double many = 1. / 32, usual = 1. / 64, most = 1. / 8;
    const double waits = reset_waits(deals);
    if (waits < 0)
        return;
    deals->waits += ((waits < most ? waits : most) - deals->waits) / SMOOTH;
    if (deals->waits > many && deals->n_rest < MOST)
        deals->n_rest = max_int(LEAST, 2 * deals->n_rest);
    else if (deals->n_rest > 0 && --deals->n_hold == 0)
        deals->n_rest = deals->n_rest > LEAST ? deals->n_rest / 2 : 0;
    else
        return;
    deals->waits = usual;
    deals->n_hold = HOLD;
}

struct deal deal_begin(const struct worker *w, size_t n, size_t grain, bool is_long)
{
    struct deal d = {.n = n, .grain = grain, .phase = worker_phase(w), .n_seen = -1};
    assert(n / grain < UINT32_MAX);
    d.is_long = is_long && w->n_workers > 1;
    if (d.is_long) {
        d.n_rest = w->deals->n_rest;
        d.began = clock_seconds();
    }
    return d;
}

/* The share of worker i, in grains: [*first, *last), dealt out from *rest on. */
static void share_of(const struct worker *w, const struct deal *d, int i, size_t *first,
                     size_t *rest, size_t *last)
{
    struct worker owner = *w;
    owner.index = i;
    worker_share(&owner, (d->n + d->grain - 1) / d->grain, 1, first, last);
    *rest = *last - (*last - *first) * (size_t)d->n_rest / PARTS;
}

/* Takes grains from the rest of worker i's share. */
static bool take(const struct worker *w, const struct deal *d, int i, size_t *begin, size_t *end)
{
    atomic_uint_least64_t *const next = &w->deals->parts[i].next;
    uint64_t old = atomic_load_explicit(next, memory_order_relaxed), new;
    size_t first, rest, last;
    share_of(w, d, i, &first, &rest, &last);
    const size_t least = 1 + (last - first) / (2 * PARTS);
    do {
        *begin = old >> 32 == d->phase ? (size_t)(old & UINT32_MAX) : rest;
        if (*begin >= last)
            return false;
        const size_t left = last - *begin;
        *end = *begin + min_size(left, max_size(least, left / (i == w->index ? 2 : 4)));
        new = (uint64_t)d->phase << 32 | *end;
    } while (!atomic_compare_exchange_weak_explicit(next, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static void end_deal(struct worker *w, const struct deal *d)
{
    const double barrier = 2e-6;
    struct part *const part = &w->deals->parts[w->thread];
    const double arrived = d->is_long ? clock_seconds() : 0;
    worker_sync(w);
    if (d->is_long) {
        const double now = clock_seconds();
        part->dealt += now - d->began;
        part->waited += now - arrived > barrier ? now - arrived - barrier : 0;
    }
}

/* Whose share is the n-th that a worker takes from: its own, and then some of the others', far
 * apart; to look at all of many would take longer than they bring. */
static int nth_share(const struct worker *w, int n)
{
    const int n_others = w->n_workers - 1, n_helped = min_int(n_others, HELPED);
    return n == 0 ? w->index : (w->index + 1 + n_others * (n - 1) / n_helped) % w->n_workers;
}

bool deal_next(struct worker *w, struct deal *d, size_t *begin, size_t *end)
{
    const int n_shares = d->n_rest > 0 ? min_int(w->n_workers, 1 + HELPED) : 0;
    bool found = d->n_seen < 0;
    if (found) {
        size_t last;
        share_of(w, d, w->index, begin, end, &last);
        d->n_seen = 0;
    }
    while (!found && d->n_seen < n_shares) {
        found = take(w, d, nth_share(w, d->n_seen), begin, end);
        d->n_seen += !found;
    }
    if (found) {
        *begin = min_size(*begin * d->grain, d->n);
        *end = min_size(*end * d->grain, d->n);
    } else {
        end_deal(w, d);
    }
    return found;
}
