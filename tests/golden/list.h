/* The list of tests of a program that has some for every directory. */
#ifndef TESTS_GOLDEN_LIST_H
#define TESTS_GOLDEN_LIST_H

#include "tests/golden/golden.h"

#include <dirent.h>
#include <stdio.h>

enum { LIST_MAX_TESTS = 2048 };

static struct CMUnitTest list_tests[LIST_MAX_TESTS];
static size_t list_n;

static inline void list_add(const char *name, const char *dir, void (*function)(void **state))
{
    char full[512];
    snprintf(full, sizeof full, "%s %s", name, dir);
    assert_true(list_n < LIST_MAX_TESTS);
    list_tests[list_n].name = strdup(full);
    list_tests[list_n].test_func = function;
    list_tests[list_n++].initial_state = strdup(dir);
}

/* Calls `add` for each directory in `root` that holds `file`, in order. */
static inline void list_walk(const char *root, const char *file, void (*add)(const char *dir))
{
    struct dirent **entries;
    const int n = scandir(root, &entries, NULL, alphasort);
    if (n < 0) {
        print_message("SKIP %s is not there\n", root);
        return;
    }
    for (int i = 0; i < n; i++) {
        char *const dir = file_join(root, entries[i]->d_name);
        char *const path = file_join(dir, file);
        if (file_exists(path))
            add(dir);
        free(path);
        free(dir);
        free(entries[i]);
    }
    free(entries);
}

/* The status of the program. */
static inline int list_run(const char *name)
{
    const int n_failed = _cmocka_run_group_tests(name, list_tests, list_n, NULL, NULL);
    for (size_t i = 0; i < list_n; i++) {
        free(list_tests[i].initial_state);
        free((void *)(uintptr_t)list_tests[i].name);
    }
    return n_failed != 0;
}

#endif
