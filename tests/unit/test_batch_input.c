/*
 * A pipe of lines that somebody else reads as well: what poll has promised may be gone. Then
 * nothing spins, and a signal is heard.
 */
#include "tests/check.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/* In place of libc's: its first answer is one that holds no more when the caller reads. */
static int poll_stale(struct pollfd *asked, nfds_t n, int timeout);
#define poll poll_stale
#include "cli/batch_input.c"
#undef poll

#define READ_SIZE READ_SIZE_OF_BUFFER /* a constant of each file */
#include "cli/buffer.c"

static bool stale, with_signal, interrupted;

bool stream_interrupted(void)
{
    return interrupted;
}

static int poll_stale(struct pollfd *asked, nfds_t n, int timeout)
{
    if (!stale)
        return poll(asked, n, timeout);
    stale = false;
    if (with_signal)
        interrupted = true;
    asked->revents = POLLIN;
    return 1;
}

static void what_another_reader_took(bool signal, bool wait)
{
    struct err e = {.code = ERR_NONE};
    struct batch_input in;
    struct bytes line;
    bool whole;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    batch_input_begin(&in, ends[0], "the pipe");
    stale = true;
    with_signal = signal;
    alarm(10); /* whoever spins */
    assert_int_equal(batch_input_next(&in, wait, &line, &whole, &e), BATCH_INPUT_WAIT);
    interrupted = false;
    assert_int_equal(write(ends[1], "line\n", 5), 5);
    assert_int_equal(batch_input_next(&in, wait, &line, &whole, &e), BATCH_INPUT_LINE);
    assert_true(whole && bytes_equal(line, "line"));
    alarm(0);
    batch_input_free(&in);
    close(ends[0]);
    close(ends[1]);
}

static void nothing_spins(void **state)
{
    (void)state;
    what_another_reader_took(false, false);
}

static void a_signal_is_heard(void **state)
{
    (void)state;
    what_another_reader_took(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_spins),
        cmocka_unit_test(a_signal_is_heard),
    };
    return cmocka_run_group_tests_name("batch_input", tests, NULL, NULL);
}
