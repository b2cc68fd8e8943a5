/*
 * Deals: every item is computed once, however much is dealt out, a worker that is held up has less
 * to do before long, and a product with a large matrix is, bit for bit, what one worker computes.
 */
#include "tests/check.h"

#include "core/deal.h"
#include "core/linear.h"
#include "tests/random.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_WORKERS = 5, N_ITEMS = 2000, GRAIN = 16 };

struct step {
    size_t n, grain;
    long pause; /* nanoseconds that thread 0 takes for an item */
    atomic_int n_done[N_ITEMS];
    size_t n_of_0; /* items that thread 0 has taken */
};

static void run_step(struct worker *w, void *context)
{
    struct step *const s = context;
    struct deal d = deal_begin(w, s->n, s->grain, true);
    size_t begin, end;
    while (deal_next(w, &d, &begin, &end)) {
        const struct timespec pause = {.tv_nsec = s->pause * (long)(end - begin)};
        for (size_t i = begin; i < end; i++)
            atomic_fetch_add_explicit(&s->n_done[i], 1, memory_order_relaxed);
        if (w->thread != 0)
            continue;
        s->n_of_0 += end - begin;
        if (s->pause > 0)
            nanosleep(&pause, NULL);
    }
}

/* Returns how many items thread 0 took. */
static size_t deal_out(struct compute *c, size_t n, size_t grain, long pause)
{
    struct step s = {.n = n, .grain = grain, .pause = pause};
    compute_run_together(c, run_step, &s);
    for (size_t i = 0; i < N_ITEMS; i++)
        assert_int_equal(atomic_load(&s.n_done[i]), i < n);
    return s.n_of_0;
}

/* A pool that deals out: thread 0 is so slow that the others take a quarter of its share. */
static struct compute *pool_that_deals(int n_workers)
{
    struct err e;
    struct compute *const c = compute_open(n_workers, NULL, &e);
    const size_t share = N_ITEMS / (size_t)n_workers;
    assert_non_null(c);
    for (int run = 0; n_workers > 1 && deal_out(c, N_ITEMS, GRAIN, 1000) > share * 3 / 4; run++)
        assert_true(run < 200);
    return c;
}

static void test_items(void **state)
{
    (void)state;
    for (int n_workers = 1; n_workers <= MAX_WORKERS; n_workers++) {
        struct compute *const c = pool_that_deals(n_workers);
        for (size_t grain = 1; grain <= GRAIN; grain *= 4)
            for (size_t n = 0; n < N_ITEMS; n += 1 + n / 2)
                deal_out(c, n, grain, 0);
        compute_close(c);
    }
}

enum { N_X = 3, N_IN = 1000, N_OUT = 1500 }; /* f32: 6 MB, long for MAX_WORKERS */

static float *random_floats(size_t n)
{
    float *const x = calloc(n, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(random_bits() >> 40) / (1 << 24) - 0.5f;
    return x;
}

struct product {
    struct linear l;
    const float *x;
    float *y;
};

static void run_product(struct worker *w, void *context)
{
    const struct product *const p = context;
    struct operand x = operand_rows(p->x, N_IN, N_X, N_IN, NULL);
    linear_apply_dealt(w, &p->l, &x, p->y, N_OUT, LINEAR_SET);
    linear_apply_dealt(w, &p->l, &x, p->y, N_OUT, LINEAR_ADD);
}

static void test_product(void **state)
{
    (void)state;
    enum { N_Y = N_X * N_OUT };
    float *const w = random_floats((size_t)N_OUT * N_IN);
    float *const x = random_floats((size_t)N_X * N_IN);
    float *const alone = calloc(2 * N_Y, sizeof *alone), *const dealt = alone + N_Y;
    assert_non_null(alone);
    for (int n_workers = 1; n_workers <= MAX_WORKERS; n_workers++) {
        struct compute *const c = pool_that_deals(n_workers);
        struct product p = {.x = x, .y = n_workers == 1 ? alone : dealt};
        p.l = (struct linear){.w = w,
                              .dtype = DTYPE_F32,
                              .n_out = N_OUT,
                              .n_in = N_IN,
                              .stride = N_IN,
                              .scale = 1,
                              .block = N_OUT};
        for (int run = 0; run < 20; run++) {
            memset(p.y, 0xff, N_Y * sizeof *p.y);
            compute_run_together(c, run_product, &p);
            if (n_workers > 1)
                assert_memory_equal(dealt, alone, N_Y * sizeof *alone);
        }
        compute_close(c);
    }
    free(alone);
    free(x);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_product),
    };
    return cmocka_run_group_tests_name("deal", tests, NULL, NULL);
}
