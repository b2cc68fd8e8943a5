/*
 * What a job tells while it runs, off a terminal; and that the time left is guessed from the lines
 * that this process has answered, not from those that it found answered.
 */
#include "tests/check.h"

#include "cli/batch_progress.c"
#include "cli/terminal.c"

/* What batch_progress_tell prints 100 seconds after the beginning. */
static void assert_tells(size_t n_before, size_t n_done, size_t n_total, const char *expected)
{
    struct batch_progress p;
    char name[] = "/tmp/tgen_progress_XXXXXX", text[256] = "";
    const int file = mkstemp(name), before = dup(STDERR_FILENO);
    assert_true(file >= 0 && before >= 0);
    unlink(name);
    dup2(file, STDERR_FILENO);
    batch_progress_begin(&p, false);
    batch_progress_tell(&p, n_before, n_done, n_total, 0); /* too soon */
    p.began -= 100;
    p.next -= 100;
    batch_progress_tell(&p, n_before, n_done, n_total, 0);
    batch_progress_tell(&p, n_before, n_done, n_total, 0); /* too soon again */
    batch_progress_end(&p);
    dup2(before, STDERR_FILENO);
    close(before);
    assert_true(pread(file, text, sizeof text - 1, 0) >= 0);
    close(file);
    assert_string_equal(text, expected);
}

static void time_left(void **state)
{
    (void)state;
    assert_tells(0, 50, 100, "tgen: 50/100 lines, 0.0 tokens/s, 1:40 left\n");
    assert_tells(900, 50, 1000, "tgen: 950/1000 lines, 0.0 tokens/s, 1:40 left\n");
    assert_tells(900, 0, 1000, "tgen: 900/1000 lines, 0.0 tokens/s\n");
    assert_tells(900, 100, 1000, "tgen: 1000/1000 lines, 0.0 tokens/s\n");
    assert_tells(0, 50, 0, "tgen: 50 lines, 0.0 tokens/s\n"); /* a pipe */
}

static void times(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(write_time(0.4, text, sizeof text), "0:00");
    assert_string_equal(write_time(599.6, text, sizeof text), "10:00");
    assert_string_equal(write_time(7265, text, sizeof text), "2:01:05");
    assert_string_equal(write_time(1e300, text, sizeof text), "100000:00:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(time_left), cmocka_unit_test(times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
