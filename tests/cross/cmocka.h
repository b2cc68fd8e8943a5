/*
 * The few words of cmocka that the kernels' checker uses, for machines that cmocka is not installed
 * for: builds with CROSS= find this header in its place. Tests run in turn and report in TAP; an
 * assertion that fails ends its test, or, outside of one, the program.
 */
#ifndef TESTS_CROSS_CMOCKA_H
#define TESTS_CROSS_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    void *setup_func, *teardown_func; /* never called */
    void *initial_state;
};

static jmp_buf *cmocka_test; /* the one that runs */

static inline void cmocka_fail(void)
{
    if (!cmocka_test)
        abort();
    longjmp(*cmocka_test, 1);
}

#define cmocka_unit_test(function)                                                                 \
    {                                                                                              \
#function, function, NULL, NULL, NULL                                                      \
    }
#define fail_msg(...)                                                                              \
    (printf("# %s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"), cmocka_fail())
#define assert_true(c)            ((c) ? (void)0 : fail_msg("%s", #c))
#define assert_null(p)            assert_true((p) == NULL)
#define assert_int_equal(a, b)    assert_true((a) == (b))
#define assert_ptr_equal(a, b)    assert_true((a) == (b))
#define assert_string_equal(a, b) assert_true(strcmp(a, b) == 0)

/* The number of tests that failed. */
static inline int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests,
                                          size_t n, void *setup, void *teardown)
{
    volatile int n_failed = 0;
    (void)setup;
    (void)teardown;
    printf("1..%zu\n# %s\n", n, name);
    for (volatile size_t i = 0; i < n; i++) {
        void *state = tests[i].initial_state;
        jmp_buf here;
        cmocka_test = &here;
        if (setjmp(here) == 0) {
            tests[i].test_func(&state);
            printf("ok %zu - %s\n", i + 1, tests[i].name);
        } else {
            printf("not ok %zu - %s\n", i + 1, tests[i].name);
            n_failed++;
        }
        cmocka_test = NULL;
    }
    return n_failed;
}

#endif
