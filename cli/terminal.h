/*
 * Talk to the person at stderr: errors, notes, progress, statistics. The answer never passes here.
 * Progress and colour appear only where a terminal can show them.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "core/base.h"
#include "core/err.h"

/* "tgen: SENTENCE". Says nothing where there is no sentence. */
void terminal_error(const struct err *e);

/* What stands before the sentence, in colour where stderr shows it. */
const char *terminal_error_label(void);

/* A sentence of the same form that is no error; unless `quiet`. */
void terminal_note(bool quiet, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* "load      3.1 ms ...": one line of --stats. */
void terminal_stat(const char *label, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A line that overwrites itself: done of total. Shown only on a terminal, and not before a
 * moment has passed unless it is `slow`, that is, known to take more than that.
 * terminal_progress_end takes it away again. */
struct terminal_progress {
    const char *what; /* the label, "prompt" */
    bool enabled, visible;
    double from; /* on clock_seconds: not before */
};
struct terminal_progress terminal_progress_begin(bool quiet, bool slow, const char *what);
void terminal_progress(struct terminal_progress *p, size_t done, size_t total);
void terminal_progress_end(struct terminal_progress *p);

/* True where colour may go to fd: a terminal, no $NO_COLOR (no-color.org), $TERM not "dumb". */
bool terminal_has_colour(int fd);

/* "8.6 MiB" into out[0..size); returns out. */
char *terminal_bytes(size_t n, char *out, size_t size);

#endif
