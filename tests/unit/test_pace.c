/*
 * How many guesses a pass carries, against machines and texts that are made up: what a pass costs
 * and how often guesses are right is given, what must come out is that it pays.
 */
#include "tests/check.h"

#include "core/base.h"
#include "core/pace.h"
#include "core/philox.h"

enum { MATCH = 5, MOST = PACE_MOST_ROWS - 1 };

struct machine {
    double row;   /* what each row behind the first costs, in passes of one */
    double tile;  /* rows that cost no more than the first of them; 1: none */
    double noise; /* of passes take up to five times as long */
};

static double seconds(const struct machine *m, int n_rows, uint64_t seed, uint64_t pass)
{
    const int n_tiles = (n_rows - 1 + (int)m->tile - 1) / (int)m->tile;
    const double exact = 1e-3 * (1 + m->row * m->tile * n_tiles);
    const double late = philox_uniform(seed, 2 * pass);
    return late < m->noise ? exact * (1 + 4 * late / m->noise) : exact;
}

/* A text of n tokens in which a guess is right that often: the plain time divided by the time that
 * it takes. What a pass takes by accident does not count. */
static double speed(const struct machine *m, double right, int n, uint64_t seed)
{
    const struct machine quiet = {m->row, m->tile, 0};
    struct pace p;
    double spent = 0;
    uint64_t n_passes = 0;
    pace_init(&p);
    for (int at = 0; at < n; n_passes++) {
        const int k = pace_guesses(&p, MATCH, MOST);
        assert_in_range(k, 0, MOST);
        spent += seconds(&quiet, k + 1, seed, n_passes);
        pace_saw_pass(&p, k + 1, seconds(m, k + 1, seed, n_passes));
        for (int row = 0; row <= k; row++, at++) {
            const bool hit = philox_uniform(seed + 1, (uint64_t)at) < right;
            pace_saw_guess(&p, MATCH + row, hit);
            if (!hit) {
                at++;
                break;
            }
        }
    }
    return n * 1e-3 / spent;
}

/* The least speed over some seeds. */
static double least_speed(struct machine m, double right, int n)
{
    double least = 1e9;
    for (uint64_t seed = 0; seed < 20; seed++) {
        const double found = speed(&m, right, n, 10 * seed);
        least = found < least ? found : least;
    }
    return least;
}

static void quotations_are_fast(void **state)
{
    (void)state;
    assert_true(least_speed((struct machine){0.03, 1, 0}, 0.97, 500) > 5);
    assert_true(least_speed((struct machine){0.1, 1, 0}, 0.95, 500) > 3);
    assert_true(least_speed((struct machine){0.1, 5, 0}, 0.95, 500) > 2);
    assert_true(least_speed((struct machine){0.1, 1, 0.1}, 0.95, 500) > 2);
}

/* Rows at full price, guesses that are always wrong, and both. */
static void never_much_slower(void **state)
{
    (void)state;
    static const double rights[] = {0, 0.1, 0.3, 0.6, 0.9, 0.98};
    for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
        assert_true(least_speed((struct machine){1, 1, 0}, rights[i], 400) > 0.98);
        assert_true(least_speed((struct machine){0.5, 1, 0}, rights[i], 400) > 0.98);
        assert_true(least_speed((struct machine){0.1, 6, 0}, rights[i], 400) > 0.98);
        assert_true(least_speed((struct machine){0.05, 1, 0}, rights[i], 400) > 0.98);
        assert_true(least_speed((struct machine){0.5, 1, 0.1}, rights[i], 400) > 0.96);
    }
}

/* A pass that took long by accident does not end guessing for good. */
static void accidents_are_forgotten(void **state)
{
    (void)state;
    struct pace p;
    pace_init(&p);
    for (int i = 0; i < 10; i++) {
        pace_saw_pass(&p, 1, 1e-3);
        for (int row = 2; row <= PACE_MOST_ROWS; row++)
            pace_saw_pass(&p, row, 1); /* a thousand times as long */
        for (int length = 1; length < 20; length++)
            pace_saw_guess(&p, length, true);
    }
    int n_tries = 0;
    for (int i = 0; i < 300000 && n_tries < 1; i++) {
        const int k = pace_guesses(&p, 20, MOST);
        pace_saw_pass(&p, k + 1, 1e-3 * (1 + 0.05 * k));
        n_tries += k > 0;
    }
    assert_int_equal(n_tries, 1);
    assert_true(pace_guesses(&p, 20, MOST) > 0);
}

static void no_more_than_asked(void **state)
{
    (void)state;
    struct pace p;
    pace_init(&p);
    assert_int_equal(pace_guesses(&p, 20, MOST), 0); /* nothing is known yet */
    for (int i = 0; i < 100; i++) {
        for (int row = 1; row <= PACE_MOST_ROWS; row++)
            pace_saw_pass(&p, row, 1e-3);
        pace_saw_guess(&p, 16, true);
    }
    for (int most = 0; most <= MOST; most++)
        assert_int_equal(pace_guesses(&p, 100, most), most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotations_are_fast),
        cmocka_unit_test(never_much_slower),
        cmocka_unit_test(accidents_are_forgotten),
        cmocka_unit_test(no_more_than_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
