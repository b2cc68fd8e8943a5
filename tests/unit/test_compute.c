/*
 * The pool: every share of the work is done once, all workers meet, runs follow runs however long
 * the pool slept, a caller whom others keep waiting goes on alone for a while, and a level that is
 * not there is refused.
 */
#include "tests/check.h"

#include "core/compute.h"
#include "core/kernels/kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void test_share(void **state)
{
    (void)state;
    for (int n_workers = 1; n_workers <= 5; n_workers++) {
        for (size_t n = 0; n < 70; n++) {
            for (size_t grain = 1; grain <= 16; grain *= 4) {
                size_t next = 0;
                for (int i = 0; i < n_workers; i++) {
                    const struct worker w = {.index = i, .n_workers = n_workers};
                    size_t begin, end;
                    worker_share(&w, n, grain, &begin, &end);
                    assert_int_equal(begin, next);
                    assert_true(end >= begin && (begin % grain == 0 || begin == n));
                    next = end;
                }
                assert_int_equal(next, n);
            }
        }
    }
}

enum { N_ROUNDS = 200, MAX_WORKERS = 5 };

/* Each round adds up what the round before left: a worker that ran ahead would read a stale number.
 */
struct rounds {
    int cells[MAX_WORKERS];
    int n_wrong[MAX_WORKERS];
};

static void add_rounds(struct worker *w, void *context)
{
    struct rounds *const r = context;
    for (int round = 0; round < N_ROUNDS; round++) {
        r->cells[w->index] = round;
        worker_sync(w);
        for (int i = 0; i < w->n_workers; i++)
            r->n_wrong[w->index] += r->cells[i] != round;
        worker_sync(w);
    }
}

static void test_sync(void **state)
{
    (void)state;
    struct err e;
    for (int n_workers = 1; n_workers <= MAX_WORKERS; n_workers++) {
        struct compute *const c = compute_open(n_workers, NULL, &e);
        assert_non_null(c);
        assert_int_equal(compute_n_threads(c), n_workers);
        for (int run = 0; run < 20; run++) {
            struct rounds r = {{0}, {0}};
            compute_run_together(c, add_rounds, &r);
            for (int i = 0; i < n_workers; i++)
                assert_int_equal(r.n_wrong[i], 0);
        }
        compute_close(c);
    }
}

/* The same by workers that are alone, for whom a sync is nothing. */
static void add_rounds_alone(struct worker *w, void *context)
{
    struct rounds *const r = context;
    struct worker alone = worker_apart(w);
    for (int round = 0; round < N_ROUNDS; round++) {
        for (int i = 0; i < w->index; i++)
            worker_sync(&alone);
        r->cells[w->index] = round;
        worker_meet(&alone);
        for (int i = 0; i < w->n_workers; i++)
            r->n_wrong[w->index] += r->cells[i] != round;
        worker_meet(&alone);
    }
    const struct worker again = worker_together(&alone);
    r->n_wrong[w->index] += alone.n_workers != 1 || alone.index != 0 || again.index != w->index ||
                            again.n_workers != w->n_workers;
}

static void test_alone(void **state)
{
    (void)state;
    struct err e;
    for (int n_workers = 1; n_workers <= MAX_WORKERS; n_workers++) {
        struct compute *const c = compute_open(n_workers, NULL, &e);
        struct rounds r = {{0}, {0}};
        assert_non_null(c);
        compute_run_together(c, add_rounds_alone, &r);
        for (int i = 0; i < n_workers; i++)
            assert_int_equal(r.n_wrong[i], 0);
        compute_close(c);
    }
}

static void count(struct worker *w, void *context)
{
    (void)w;
    atomic_fetch_add((atomic_int *)context, 1);
}

static void pause_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000 * 1000};
    nanosleep(&pause, NULL);
}

/* Long pauses send the threads to sleep; they must wake for the next run. */
static void test_sleep(void **state)
{
    (void)state;
    struct err e;
    atomic_int n = 0;
    struct compute *const c = compute_open(3, NULL, &e);
    assert_non_null(c);
    for (int run = 1; run <= 5; run++) {
        pause_ms(5);
        compute_run_together(c, count, &n);
        assert_int_equal(n, 3 * run);
    }
    compute_close(c);
}

/* The other one begins to work when the caller waits for it. */
static void come_late(struct worker *w, void *context)
{
    count(w, context);
    if (w->index == 0)
        return;
    while (atomic_load((atomic_int *)context) < 2)
        pause_ms(1);
    pause_ms(200);
}

static int n_workers_of(struct compute *c, void (*task)(struct worker *w, void *context))
{
    atomic_int n = 0;
    compute_run(c, task, &n);
    return n;
}

/* A caller that was kept waiting makes the next runs alone for a while, but for those that want all
 * workers. A machine that holds up the test itself may need it told twice. */
static void test_late(void **state)
{
    (void)state;
    struct err e;
    struct compute *const c = compute_open(2, NULL, &e);
    assert_non_null(c);
    int n_tries = 0;
    do {
        assert_int_equal(n_workers_of(c, come_late), 2);
        n_tries++;
    } while (n_workers_of(c, count) == 2 && n_tries < 10);
    assert_true(n_tries < 10);
    atomic_int n = 0;
    compute_run_together(c, count, &n);
    assert_int_equal(n, 2);
    while (n_workers_of(c, count) == 1)
        pause_ms(100);
    compute_close(c);
}

static void test_levels(void **state)
{
    (void)state;
    struct err e;
    assert_null(compute_open(1, "abacus", &e));
    assert_int_equal(e.code, ERR_USAGE);
    assert_non_null(strstr(e.text, "abacus"));
    assert_non_null(strstr(e.text, "scalar"));
    assert_null(compute_open(-1, NULL, &e));
    assert_int_equal(e.code, ERR_USAGE);
    for (int i = 0; kernels_levels[i]; i++) {
        struct compute *const c = compute_open(1, kernels_levels[i], &e);
        assert_int_equal(c != NULL, kernels_for(kernels_levels[i]) != NULL);
        if (!c)
            assert_int_equal(e.code, ERR_USAGE);
        compute_close(c);
    }
    setenv("TGEN_CPU", "scalar", 1);
    struct compute *const c = compute_open(1, NULL, &e);
    assert_string_equal(compute_kernels(c)->level, "scalar");
    compute_close(c);
    unsetenv("TGEN_CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share), cmocka_unit_test(test_sync), cmocka_unit_test(test_alone),
        cmocka_unit_test(test_sleep), cmocka_unit_test(test_late), cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests_name("compute", tests, NULL, NULL);
}
