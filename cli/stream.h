/*
 * The answer on its way to stdout. What goes in are the bytes of one token after another; what
 * comes out at once are whole characters that no stop string can claim any more. Two things are
 * held back: a character that has not fully arrived, and text that may yet turn out to be the
 * beginning of a stop string. Nothing is replaced. Also owns the watch for Ctrl-C.
 */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include <stdatomic.h>

#include "cli/buffer.h"

enum {
    STREAM_STDOUT = 1,
    STREAM_COLLECT = -1 /* as fd: writes nothing, `collected` grows instead */
};

struct stream {
    int fd;
    const char *const *stops; /* [n_stops], none empty; borrowed */
    size_t n_stops;
    struct buffer undecided; /* may be the beginning of a stop string */
    struct buffer ready;     /* decided; all but an incomplete character leaves at once */
    struct buffer collected; /* STREAM_COLLECT: all that has left */
    bool mid_line;           /* something has left, and no newline behind it */
    bool stopped;            /* a stop string has come; it and all behind it are dropped */
};

/* Bytes that are no part of the answer (an echoed prompt): stop strings in them do not count. */
bool stream_echo(struct stream *s, const char *data, size_t n, struct err *e);

/* Bytes of the answer. False and ERR_RUNTIME where stdout takes no more. */
bool stream_put(struct stream *s, const char *data, size_t n, struct err *e);

/* No more will come: what was held back for a stop string leaves. A character cut short by the end
 * leaves only where keep_cut says so. On a terminal the line is ended. */
bool stream_end(struct stream *s, bool keep_cut, struct err *e);

void stream_free(struct stream *s);

/* All of data[0..n) to fd, which the sentence calls `name`. ERR_RUNTIME, or ERR_INTERRUPTED once
 * stream_interrupted and nobody takes it: from then on nothing waits for a reader. */
bool stream_write(int fd, const char *name, const void *data, size_t n, struct err *e);

/* A finished text (JSON, a table) to stdout; fails, too, where the text has lacked memory. */
bool stream_print(const struct buffer *t, struct err *e);

/* From here on the first SIGINT only raises stream_interrupted; another one, more than a second
 * later, ends the process. Does nothing where SIGINT is ignored, as in a background job. */
void stream_watch_interrupt(void);

/* Watches SIGTERM and SIGHUP as stream_watch_interrupt does SIGINT, for jobs that a scheduler may
 * end, or a terminal that closes. */
void stream_watch_termination(void);

bool stream_interrupted(void);

/* For session_params.stop: not 0 once stream_interrupted. */
const atomic_int *stream_interrupt(void);

#endif
