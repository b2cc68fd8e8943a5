/*
 * Arenas: every piece zeroed, aligned, apart from the others, and where it was until the end.
 */
#include "tests/check.h"

#include "core/arena.h"

#include <stdalign.h>

static void pieces_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    enum { N = 3000 };
    static unsigned char *piece[N];
    struct arena a = {0};
    for (size_t i = 0; i < N; i++) {
        size_t size = i * 7 % 501;
        piece[i] = arena_alloc(&a, size);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < size; j++)
            assert_int_equal(piece[i][j], 0);
        memset(piece[i], (int)(i % 255) + 1, size);
    }
    /* Had two pieces overlapped, the later one would have overwritten the earlier. */
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < i * 7 % 501; j++)
            assert_int_equal(piece[i][j], i % 255 + 1);
    arena_free(&a);
}

static void a_large_piece_leaves_the_block_in_use(void **state)
{
    (void)state;
    struct arena a = {0};
    char *small = arena_alloc(&a, 16);
    unsigned char *large = arena_alloc(&a, 5 << 20);
    char *next = arena_alloc(&a, 16);
    assert_non_null(large);
    assert_int_equal(large[0] | large[(5 << 20) - 1], 0);
#ifndef __SANITIZE_ADDRESS__ /* where every piece has a block of its own */
    assert_ptr_equal(next, small + 16);
#endif
    assert_ptr_not_equal(next, small);
    arena_free(&a);
}

static void empty_pieces_have_addresses_of_their_own(void **state)
{
    (void)state;
    struct arena a = {0};
    void *first = arena_alloc(&a, 0);
    void *second = arena_alloc(&a, 0);
    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
    arena_free(&a);
}

static void sizes_that_overflow_give_nothing(void **state)
{
    (void)state;
    struct arena a = {0};
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 16));
    assert_null(arena_array(&a, SIZE_MAX / 8, 9));
    assert_null(arena_array(&a, 3, SIZE_MAX / 2));
    assert_null(arena_text(&a, "", SIZE_MAX));
    assert_non_null(arena_array(&a, 0, SIZE_MAX));
    arena_free(&a);
}

static void text_is_copied_and_terminated(void **state)
{
    (void)state;
    struct arena a = {0};
    char word[] = {'w', 'o', 'r', 'd'};
    const char *copy = arena_text(&a, word, sizeof word);
    word[0] = 'l';
    assert_string_equal(copy, "word");
    assert_string_equal(arena_text(&a, NULL, 0), "");
    arena_free(&a);
}

static void an_arena_can_be_used_again(void **state)
{
    (void)state;
    struct arena a = {0};
    arena_free(&a);
    memset(arena_alloc(&a, 100), 0xff, 100);
    arena_free(&a);
    assert_null(a.block);
    const unsigned char *again = arena_alloc(&a, 100);
    assert_int_equal(again[0] | again[99], 0);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(a_large_piece_leaves_the_block_in_use),
        cmocka_unit_test(empty_pieces_have_addresses_of_their_own),
        cmocka_unit_test(sizes_that_overflow_give_nothing),
        cmocka_unit_test(text_is_copied_and_terminated),
        cmocka_unit_test(an_arena_can_be_used_again),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
