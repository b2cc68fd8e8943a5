/*
 * The thread pool. Threads are made once. A thread that waits, for the next run or at a barrier,
 * spins for a moment, since most waits are short, and then sleeps, since a longer one means that
 * somebody else has the CPU. With more threads than CPUs it sleeps almost at once: it would spin
 * on the CPU that the thread it waits for needs.
 */
#include "core/compute.h"

#include "core/clock.h"
#include "core/cpus.h"
#include "core/deal.h"
#include "core/kernels/kernels.h"
#include "core/thread.h"

#include <limits.h>
#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_THREADS = 1024,
    MOMENT = 1 << 6,             /* spins */
    SPINS_AT_BARRIER = 1 << 12,  /* the others are mostly a kernel behind, or not running at all */
    SPINS_BETWEEN_RUNS = 1 << 13 /* about the time that sampling and writing take */
};

/* FUTEX_WAIT and FUTEX_WAKE, both with FUTEX_PRIVATE_FLAG, of linux/futex.h. That header comes with
 * the kernel's headers, which are not everywhere. */
enum { WAIT_PRIVATE = 0 | 128, WAKE_PRIVATE = 1 | 128 };

/* Used by many threads at once. */
struct counter {
    alignas(COMPUTE_APART) atomic_uint n;
};

struct compute {
    struct counter run;        /* counts runs; a change is the signal to begin */
    struct counter phase;      /* counts barriers passed */
    struct counter n_arrived;  /* at the barrier */
    struct counter n_sleeping; /* over run or phase */

    const struct kernels *kernels;
    int n_threads;
    bool has_cpus; /* one for each thread, if nobody else wants them */
    int n_started;
    struct worker *workers; /* [n_threads] */
    pthread_t *threads;     /* [n_threads], the first unused */
    struct deals *deals;

    void (*task)(struct worker *w, void *context);
    void *context;
    atomic_bool closing;

    /* of the caller alone */
    bool slept;         /* in this run, at a barrier */
    double waited;      /* seconds of this run at barriers; waits within MOMENT do not count */
    double alone_until; /* on the clock: runs that begin before are made alone */
    double saved;       /* seconds that runs of late took less than they would have taken alone */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleepers wait in the kernel for the counter itself: they need no mutex that all of them, once
 * awake, would have to hold one after the other. */
static void futex(atomic_uint *counter, int operation, unsigned value)
{
#ifndef SYS_futex
#define SYS_futex SYS_futex_time64
#endif
    syscall(SYS_futex, counter, operation, value, NULL, NULL, 0);
}

/* Whether *counter is not `old` any more, within so many spins. */
static bool spin_change(atomic_uint *counter, unsigned old, int max_spins)
{
    for (int spins = 0; spins < max_spins; spins++) {
        if (atomic_load_explicit(counter, memory_order_acquire) != old)
            return true;
        relax();
    }
    return false;
}

/* Waits until *counter is not `old` any more, spinning at first and then asleep. Returns whether it
 * slept. */
static bool wait_change(struct compute *c, atomic_uint *counter, unsigned old, int max_spins)
{
    if (spin_change(counter, old, c->has_cpus ? max_spins : 0))
        return false;
    atomic_fetch_add(&c->n_sleeping.n, 1);
    while (atomic_load(counter) == old)
        futex(counter, WAIT_PRIVATE, old);
    atomic_fetch_sub(&c->n_sleeping.n, 1);
    return true;
}

/* The same for the caller at a barrier, timed; a wait within MOMENT is not worth two looks at the
 * clock. */
static void wait_timed(struct compute *c, unsigned phase)
{
    if (spin_change(&c->phase.n, phase, MOMENT))
        return;
    const double began = clock_seconds();
    if (wait_change(c, &c->phase.n, phase, SPINS_AT_BARRIER))
        c->slept = true;
    c->waited += clock_seconds() - began;
}

/* Changes *counter and wakes whoever sleeps over it. No change slips past a sleeper: either its
 * count is seen here, or the kernel, which looks at *counter after the sleeper has counted itself,
 * does not put it to sleep. All four accesses are sequentially consistent. */
static void change(struct compute *c, atomic_uint *counter)
{
    atomic_fetch_add(counter, 1);
    if (atomic_load(&c->n_sleeping.n) > 0)
        futex(counter, WAKE_PRIVATE, INT_MAX);
}

static void *thread_main(void *arg)
{
    struct worker *const w = arg;
    struct compute *const c = w->compute;
    for (unsigned run = 0;; run++) {
        wait_change(c, &c->run.n, run, SPINS_BETWEEN_RUNS);
        if (atomic_load_explicit(&c->closing, memory_order_relaxed))
            return NULL;
        c->task(w, c->context);
        worker_sync(w);
    }
}

static const struct kernels *choose_kernels(const char *level, struct err *e)
{
    const char *const source = level ? "--cpu" : "TGEN_CPU";
    if (!level) {
        level = getenv("TGEN_CPU");
        if (!level || !*level)
            return kernels_best();
    }
    const struct kernels *k = kernels_for(level);
    if (k)
        return k;
    char known[128] = "";
    for (int i = 0; kernels_levels[i]; i++) {
        if (strcmp(kernels_levels[i], level) == 0) {
            err_set(e, ERR_USAGE, "%s: this machine cannot run the level \"%s\"", source, level);
            return NULL;
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", kernels_levels[i]);
    }
    err_set(e, ERR_USAGE, "%s: \"%s\" is no level; there are %s", source, level, known);
    return NULL;
}

static struct worker worker_of(struct compute *c, int thread, int n_threads)
{
    return (struct worker){.compute = c,
                           .kernels = c->kernels,
                           .deals = c->deals,
                           .index = thread,
                           .n_workers = n_threads,
                           .thread = thread,
                           .n_threads = n_threads};
}

static bool start_threads(struct compute *c, struct err *e)
{
    for (int i = 0; i < c->n_threads; i++)
        c->workers[i] = worker_of(c, i, c->n_threads);
    for (int i = 1; i < c->n_threads; i++) {
        const int error = thread_start(&c->threads[i], thread_main, &c->workers[i]);
        if (error)
            return err_set(e, ERR_RUNTIME, "thread %d of %d cannot be started: %s", i + 1,
                           c->n_threads, strerror(error));
        c->n_started++;
    }
    return true;
}

struct compute *compute_open(int n_threads, const char *level, struct err *e)
{
    const struct kernels *kernels = choose_kernels(level, e);
    if (!kernels)
        return NULL;
    if (n_threads < 0 || n_threads > MAX_THREADS) {
        err_set(e, ERR_USAGE, "%d threads: there can be 1 to %d", n_threads, MAX_THREADS);
        return NULL;
    }
    struct compute *c = aligned_alloc(alignof(struct compute), sizeof *c);
    if (!c) {
        err_no_memory(e);
        return NULL;
    }
    const int n_cpus = min_int(cpus_usable(), MAX_THREADS);
    *c = (struct compute){.kernels = kernels, .n_threads = n_threads ? n_threads : n_cpus};
    c->has_cpus = c->n_threads <= n_cpus;
    c->workers = calloc((size_t)c->n_threads, sizeof *c->workers);
    c->threads = calloc((size_t)c->n_threads, sizeof *c->threads);
    c->deals = deals_new(c->n_threads);
    if (!c->workers || !c->threads || !c->deals)
        err_no_memory(e);
    else if (start_threads(c, e))
        return c;
    compute_close(c);
    return NULL;
}

void compute_close(struct compute *c)
{
    if (!c)
        return;
    atomic_store_explicit(&c->closing, true, memory_order_relaxed);
    change(c, &c->run.n);
    for (int i = 1; i <= c->n_started; i++)
        pthread_join(c->threads[i], NULL);
    deals_free(c->deals);
    free(c->threads);
    free(c->workers);
    free(c);
}

int compute_n_threads(const struct compute *c)
{
    return c->n_threads;
}

const struct kernels *compute_kernels(const struct compute *c)
{
    return c->kernels;
}

void compute_run_together(struct compute *c, void (*task)(struct worker *w, void *context),
                          void *context)
{
    c->task = task;
    c->context = context;
    change(c, &c->run.n);
    task(&c->workers[0], context);
    worker_sync(&c->workers[0]);
    deals_judge(c->deals);
}

/* If other programs hold the CPUs, every barrier waits for a thread that is not scheduled. Alone,
 * the caller would need n_threads times as long as it worked in a run, or somewhat less, as it then
 * has the memory to itself. When a run lost time against that, and those of late have lost on
 * balance, the next ones are made alone for `longer` times the loss of late, so that trying again
 * costs little; more than `beside` times this run's own loss does not count. Time counts, and not
 * runs, as one of a prompt may take as long as a hundred tokens; a process that was stopped for an
 * hour has not lost more than `most` seconds. Results are the same. */
static void judge(struct compute *c, double elapsed, double worked, double now)
{
    const double somewhat = 1.25, fade = 1. / 32, longer = 4, beside = 8, most = 1;
    const double saved = c->n_threads * worked - somewhat * elapsed;
    c->saved = fmax(-most, fmin(c->saved - fade * c->saved + saved, most));
    if (c->slept && saved < 0 && c->saved < 0)
        c->alone_until = now - longer * fmax(c->saved, beside * saved);
}

/* With more threads than CPUs the caller may wait for a CPU in the midst of its work. */
static double working_seconds(const struct compute *c)
{
    return c->has_cpus ? clock_seconds() - c->waited : clock_on_cpu();
}

void compute_run(struct compute *c, void (*task)(struct worker *w, void *context), void *context)
{
    const double began = clock_seconds();
    if (began < c->alone_until) {
        struct worker alone = worker_of(c, 0, 1);
        task(&alone, context);
        return;
    }
    c->waited = 0;
    c->slept = false;
    const double work_began = working_seconds(c);
    compute_run_together(c, task, context);
    const double work_ended = working_seconds(c), ended = clock_seconds();
    judge(c, ended - began, work_ended - work_began, ended);
}

struct worker worker_apart(const struct worker *w)
{
    struct worker apart = *w;
    apart.index = 0;
    apart.n_workers = 1;
    return apart;
}

struct worker worker_together(const struct worker *w)
{
    return worker_of(w->compute, w->thread, w->n_threads);
}

void worker_sync(struct worker *w)
{
    if (w->n_workers > 1)
        worker_meet(w);
}

void worker_meet(struct worker *w)
{
    struct compute *const c = w->compute;
    if (w->n_threads == 1)
        return;
    const unsigned phase = worker_phase(w);
    const unsigned n_others = (unsigned)w->n_threads - 1;
    if (atomic_fetch_add_explicit(&c->n_arrived.n, 1, memory_order_acq_rel) == n_others) {
        atomic_store_explicit(&c->n_arrived.n, 0, memory_order_relaxed);
        change(c, &c->phase.n);
    } else {
        if (w->thread == 0)
            wait_timed(c, phase);
        else
            wait_change(c, &c->phase.n, phase, SPINS_AT_BARRIER);
    }
}

unsigned worker_phase(const struct worker *w)
{
    return atomic_load_explicit(&w->compute->phase.n, memory_order_relaxed);
}

void worker_share(const struct worker *w, size_t n, size_t grain, size_t *begin, size_t *end)
{
    const size_t n_grains = (n + grain - 1) / grain;
    const size_t first = n_grains * (size_t)w->index / (size_t)w->n_workers;
    const size_t last = n_grains * (size_t)(w->index + 1) / (size_t)w->n_workers;
    *begin = min_size(first * grain, n);
    *end = min_size(last * grain, n);
}
