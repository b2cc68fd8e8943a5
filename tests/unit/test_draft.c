/*
 * The index of a text against a search of the whole text: what matches best, and what follows it.
 */
#include "tests/check.h"

#include "core/draft.h"
#include "core/philox.h"

#include <stdlib.h>

enum { N_OUT = 8 };

static struct draft *make(int max_ids)
{
    struct err e;
    struct draft *const d = draft_new(max_ids, &e);
    assert_non_null(d);
    return d;
}

static void push_all(struct draft *d, const int32_t *ids, int n)
{
    for (int i = 0; i < n; i++)
        draft_push(d, ids[i]);
}

/* How many ids before `a` and `b` are the same, of those that are compared. */
static int common(const int32_t *ids, int a, int b)
{
    int n = 0;
    while (n < DRAFT_LONGEST && n < a && ids[a - 1 - n] == ids[b - 1 - n])
        n++;
    return n;
}

/* Where the last of the longest matches goes on; *length 0: nowhere. */
static int search(const int32_t *ids, int n, int *length)
{
    int best = 0;
    *length = 0;
    for (int next = DRAFT_SHORTEST; next < n; next++) {
        const int found = common(ids, next, n);
        if (found >= DRAFT_SHORTEST && found >= *length) {
            *length = found;
            best = next;
        }
    }
    return best;
}

/* After every id, the guess must be what the search finds. Texts of few words, so short that no
 * pair has more places than are looked at. */
static void check_text(int n_words, int n, uint64_t seed)
{
    int32_t *const ids = malloc((size_t)n * sizeof *ids), out[N_OUT];
    assert_non_null(ids);
    struct draft *const d = make(n);
    for (int i = 0; i < n; i++) {
        ids[i] = (int32_t)(philox_uniform(seed, (uint64_t)i) * n_words) * 1000003;
        draft_push(d, ids[i]);
        int length;
        const int next = search(ids, i + 1, &length);
        assert_int_equal(draft_guess(d, out, N_OUT), length);
        for (int k = 0; length && k < N_OUT; k++) /* round and round where the text ends */
            assert_int_equal(out[k], ids[next + k % (i + 1 - next)]);
    }
    draft_free(d);
    free(ids);
}

static void finds_what_a_search_finds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        check_text(2, 30, seed);
        check_text(4, 80, seed);
        check_text(30, 1000, seed);
    }
}

static void nothing_to_guess(void **state)
{
    (void)state;
    static const int32_t ids[] = {1, 2, 3, 4, 1, 3, 2, 4};
    int32_t out[N_OUT] = {7, 7};
    struct draft *const d = make(100);
    assert_int_equal(draft_guess(d, out, N_OUT), 0);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        draft_push(d, ids[i]);
        assert_int_equal(draft_guess(d, out, N_OUT), 0); /* no pair comes twice */
    }
    assert_int_equal(out[0], 7);
    draft_free(d);
}

static void goes_round_in_a_loop(void **state)
{
    (void)state;
    static const int32_t ids[] = {9, 1, 2, 3, 1, 2, 3, 1}, expected[] = {2, 3, 1, 2, 3, 1, 2, 3};
    int32_t out[N_OUT];
    struct draft *const d = make(100);
    push_all(d, ids, ARRAY_LEN(ids));
    assert_int_equal(draft_guess(d, out, N_OUT), 4);
    assert_memory_equal(out, expected, sizeof expected);
    draft_free(d);
}

/* A pair that has stood in more places than are looked at: a part that is being repeated is found
 * again at every id, though later places share the pair; the last place is taken by one who comes
 * anew. */
static void follows_a_part(void **state)
{
    (void)state;
    static const int32_t part[] = {50, 51, 1, 2, 52, 53, 1, 2, 54, 55};
    int32_t out[1];
    struct draft *const d = make(1000);
    push_all(d, part, ARRAY_LEN(part));
    for (int i = 0; i < 3 * DRAFT_PLACES; i++) {
        draft_push(d, 1);
        draft_push(d, 2);
        draft_push(d, 100 + i);
    }
    push_all(d, part, 2);
    for (size_t i = 2; i < ARRAY_LEN(part); i++) {
        assert_int_equal(draft_guess(d, out, 1), i);
        assert_int_equal(out[0], part[i]);
        draft_push(d, part[i]);
    }
    static const int32_t anew[] = {60, 1, 2};
    push_all(d, anew, ARRAY_LEN(anew));
    assert_int_equal(draft_guess(d, out, 1), 2);
    assert_int_equal(out[0], 54); /* of the part's second time, which came last */
    draft_free(d);
}

static void a_full_index_is_silent(void **state)
{
    (void)state;
    int32_t out[N_OUT];
    struct draft *const d = make(6);
    for (int i = 0; i < 6; i++)
        draft_push(d, i % 2);
    assert_int_equal(draft_guess(d, out, N_OUT), 4);
    draft_push(d, 0);
    assert_int_equal(draft_guess(d, out, N_OUT), 0);
    draft_free(d);
    draft_free(make(0));
    draft_free(NULL);
}

static void takes_what_it_says(void **state)
{
    (void)state;
    assert_true(draft_bytes(1000) >= 2 * 1000 * sizeof(int32_t));
    assert_true(draft_bytes(1000) <= 24 * 1000);
    assert_true(draft_bytes(1 << 20) <= (size_t)16 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_a_search_finds), cmocka_unit_test(nothing_to_guess),
        cmocka_unit_test(goes_round_in_a_loop),      cmocka_unit_test(follows_a_part),
        cmocka_unit_test(a_full_index_is_silent),    cmocka_unit_test(takes_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
