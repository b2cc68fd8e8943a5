/*
 * Who computes: a persistent pool of threads and the table of kernels that they call.
 *
 * The pool runs one function on all of its threads at once (single program, multiple data): each
 * worker takes its share of every step and waits for the others with worker_sync, or goes through
 * steps of its own for a while, apart. How a sum is cut never depends on how many workers there
 * are, and so no result does.
 */
#ifndef CORE_COMPUTE_H
#define CORE_COMPUTE_H

#include "core/base.h"
#include "core/err.h"

struct compute;
struct deals;
struct kernels;

/* Bytes from what one thread writes to what another does, or readers of the one would wait for
 * writers of the other: cache lines are fetched in pairs. */
enum { COMPUTE_APART = 128 };

/* One thread inside compute_run. */
struct worker {
    struct compute *compute;
    const struct kernels *kernels;
    struct deals *deals; /* core/deal.h's */
    int index;           /* 0 .. n_workers - 1: selects its share of a step */
    int n_workers;
    int thread, n_threads; /* the same in the whole run, even while apart; thread 0: its caller */
};

/* n_threads 0: as many as the CPUs this process may use. level NULL: $TGEN_CPU, else the best that
 * the machine has. Fails with ERR_USAGE for a level that is unknown or that this machine lacks. */
struct compute *compute_open(int n_threads, const char *level, struct err *e);
void compute_close(struct compute *c);

int compute_n_threads(const struct compute *c);
const struct kernels *compute_kernels(const struct compute *c);

/* Runs task on every worker, or on the caller as the only one where the CPUs are busy, and returns
 * when all have finished. Not reentrant. The caller's stack must be as large as core/thread.h makes
 * them. */
void compute_run(struct compute *c, void (*task)(struct worker *w, void *context), void *context);

/* The same on every worker in any case, for what is about the threads and not about a result. */
void compute_run_together(struct compute *c, void (*task)(struct worker *w, void *context),
                          void *context);

/* Waits until every worker has come here; what each wrote before is visible to all behind it. */
void worker_sync(struct worker *w);

/* worker_apart: the same thread as the only worker of steps of its own, which meets the others only
 * in worker_meet; all threads must call that. worker_together: again as one of those that share
 * steps. */
struct worker worker_apart(const struct worker *w);
struct worker worker_together(const struct worker *w);

/* As worker_sync, for all threads of the run, whether they share steps or not. */
void worker_meet(struct worker *w);

/* How many syncs the pool has passed: between two of them the same for every worker. */
unsigned worker_phase(const struct worker *w);

/* This worker's part of n items, in whole multiples of `grain`: [*begin, *end). Always the same for
 * the same n. */
void worker_share(const struct worker *w, size_t n, size_t grain, size_t *begin, size_t *end);

#endif
