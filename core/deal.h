/*
 * Steps that take long, dealt out among the workers: where they were seen to wait for each other,
 * whoever is done with most of its share takes from the rest of the others', so that a worker on a
 * slower core, or one that is held up, keeps nobody waiting. Who computes what differs from run to
 * run then; how a sum is cut does not, and so no result does.
 */
#ifndef CORE_DEAL_H
#define CORE_DEAL_H

#include "core/compute.h"

/* What a pool of threads remembers about its deals. NULL: no memory. */
struct deals *deals_new(int n_threads);
void deals_free(struct deals *deals);

/* After each run: decides how much is dealt out in the next. */
void deals_judge(struct deals *deals);

/*
 *     struct deal d = deal_begin(w, n, grain, is_long);
 *     while (deal_next(w, &d, &begin, &end))
 *         ... items [begin, end), maybe none
 * shares n items out in whole multiples of `grain`, as worker_share does where the step is not long
 * enough to be worth more. All workers must come, and go on until there is no more, with no sync
 * of their own in between: that ends with one, and what others computed can be read.
 */
struct deal {
    size_t n, grain;
    bool is_long;
    double began;   /* seconds, where it is long */
    unsigned phase; /* of the pool */
    int n_rest;     /* of each share, the part that is dealt out, as in struct deals */
    int n_seen;     /* shares, its own first, of which nothing is left; -1: it has had none yet */
};
struct deal deal_begin(const struct worker *w, size_t n, size_t grain, bool is_long);
bool deal_next(struct worker *w, struct deal *d, size_t *begin, size_t *end);

#endif
