/*
 * write(2) without stdio in between: a token that is printed is a token that was written, and a
 * full disk or a closed pipe is known at that moment.
 *
 *   stream_put -> undecided -> ready -> stdout
 *                 (stop strings) (characters)
 */
#include "cli/stream.h"

#include "core/clock.h"
#include "core/utf8.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 200, TOGETHER_MS = 1000 };

/* Set by a signal's handler, and read by all threads. */
static atomic_int interrupted;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a handler may use no other");

/* Waits until write(2) would take something; false where a watched signal came while nobody read.
 * Not left to EINTR alone: the signal may come before the call that would have to wait. */
static bool wait_for_reader(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLOUT};
    for (;;) {
        const int n = poll(&asked, 1, interrupted ? 0 : PATIENCE_MS);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true; /* an error too: write will tell which */
        if (interrupted)
            return false;
    }
}

bool stream_write(int fd, const char *name, const void *data, size_t n, struct err *e)
{
    const char *bytes = data;
    while (n > 0) {
        if (!wait_for_reader(fd))
            return err_interrupted(e);
        /* A descriptor that polls as writable takes up to PIPE_BUF bytes without waiting. */
        const ssize_t written = write(fd, bytes, interrupted && n > PIPE_BUF ? PIPE_BUF : n);
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        } else if (written == 0 || (errno != EINTR && errno != EAGAIN)) {
            /* EAGAIN: someone who shares the terminal has made it non-blocking. */
            return err_set(e, ERR_RUNTIME, "cannot write to %s: %s", name,
                           strerror(written == 0 ? ENOSPC : errno));
        }
    }
    return true;
}

bool stream_print(const struct buffer *t, struct err *e)
{
    return buffer_ok(t, e) && stream_write(STREAM_STDOUT, "standard output", t->data, t->n, e);
}

/* The first n bytes of `ready` leave. */
static bool leave(struct stream *s, size_t n, struct err *e)
{
    if (!buffer_ok(&s->ready, e) || !buffer_ok(&s->undecided, e))
        return false;
    if (n == 0)
        return true;
    s->mid_line = s->ready.data[n - 1] != '\n';
    if (s->fd == STREAM_COLLECT) {
        buffer_add(&s->collected, s->ready.data, n);
        if (!buffer_ok(&s->collected, e))
            return false;
    } else if (!stream_write(s->fd, "standard output", s->ready.data, n, e)) {
        return false;
    }
    buffer_drop(&s->ready, n);
    return true;
}

/* How much of t is decided. With *found, the stop string that is complete first begins there (first
 * by its end, so that it does not matter how the text is cut into tokens); without, what follows
 * may be the beginning of one. */
static size_t decide(const struct stream *s, const struct buffer *t, bool *found)
{
    size_t may_begin = t->n, begin = t->n, end = t->n + 1;
    for (size_t at = 0; at < t->n; at++) {
        for (size_t i = 0; i < s->n_stops; i++) {
            const size_t length = strlen(s->stops[i]), left = t->n - at;
            if (memcmp(t->data + at, s->stops[i], min_size(length, left)) != 0)
                continue;
            if (length > left && at < may_begin) {
                may_begin = at;
            } else if (length <= left && at + length < end) {
                begin = at;
                end = at + length;
            }
        }
    }
    *found = end <= t->n;
    return *found ? begin : may_begin;
}

bool stream_echo(struct stream *s, const char *data, size_t n, struct err *e)
{
    buffer_add(&s->ready, data, n);
    return leave(s, utf8_whole(s->ready.data, s->ready.n), e);
}

bool stream_put(struct stream *s, const char *data, size_t n, struct err *e)
{
    if (s->stopped)
        return true;
    if (s->n_stops == 0)
        return stream_echo(s, data, n, e);

    buffer_add(&s->undecided, data, n);
    const size_t decided = decide(s, &s->undecided, &s->stopped);
    buffer_add(&s->ready, s->undecided.data, decided);
    buffer_drop(&s->undecided, s->stopped ? s->undecided.n : decided);
    return leave(s, utf8_whole(s->ready.data, s->ready.n), e);
}

bool stream_end(struct stream *s, bool keep_cut, struct err *e)
{
    buffer_add(&s->ready, s->undecided.data, s->undecided.n);
    buffer_drop(&s->undecided, s->undecided.n);
    if (!leave(s, keep_cut ? s->ready.n : utf8_whole(s->ready.data, s->ready.n), e))
        return false;
    if (s->fd != STREAM_COLLECT && s->mid_line && isatty(s->fd))
        return stream_write(s->fd, "standard output", "\n", 1, e);
    return true;
}

void stream_free(struct stream *s)
{
    buffer_free(&s->undecided);
    buffer_free(&s->ready);
    buffer_free(&s->collected);
}

/* A key is pressed twice, and timeout(1) signals the process and its group: what comes together is
 * one wish. What comes later finds the system's own way to end the process. */
static void note_interrupt(int signal_number)
{
    static atomic_int first_ms; /* on the clock, which may go round */
    const unsigned now_ms = (unsigned)(uint64_t)(clock_seconds() * 1e3);
    if (interrupted && (int)(now_ms - (unsigned)first_ms) > TOGETHER_MS) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    } else if (!interrupted) {
        first_ms = (int)now_ms;
        interrupted = 1;
    }
}

static void watch(int signal_number)
{
    struct sigaction before;
    if (sigaction(signal_number, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return;
    /* No SA_RESTART is needed: every call that can wait is in stream_write, buffer_read or
     * batch_input_next. */
    struct sigaction note = {.sa_handler = note_interrupt};
    sigfillset(&note.sa_mask); /* one at a time */
    sigaction(signal_number, &note, NULL);
}

void stream_watch_interrupt(void)
{
    watch(SIGINT);
}

void stream_watch_termination(void)
{
    watch(SIGTERM);
    watch(SIGHUP);
}

bool stream_interrupted(void)
{
    return interrupted != 0;
}

const atomic_int *stream_interrupt(void)
{
    return &interrupted;
}
