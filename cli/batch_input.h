/*
 * Lines of a file or a pipe, one after another, whatever their number and length: only the line
 * that is being read is held. Knows nothing of JSON.
 */
#ifndef CLI_BATCH_INPUT_H
#define CLI_BATCH_INPUT_H

#include "cli/buffer.h"

struct batch_input {
    int fd;           /* borrowed */
    const char *name; /* for sentences; borrowed */
    int64_t start; /* where the file stood when it was handed over; -1: it cannot be read twice */
    struct buffer data;
    size_t at;       /* of the next line in `data` */
    size_t searched; /* no newline before this */
    size_t number;   /* of the line that came last; the first is 1 */
    uint64_t offset; /* bytes from the start up to `at` */
    bool end;        /* the file has no more bytes */
};

/* Begins where fd stands. */
void batch_input_begin(struct batch_input *in, int fd, const char *name);

/* The same for a file, whose descriptor the caller closes. ERR_USAGE for an empty path,
 * ERR_RUNTIME, or ERR_INTERRUPTED while nobody wrote into a pipe. */
bool batch_input_open(struct batch_input *in, const char *path, struct err *e);

/* ERR_USAGE where `path` (NULL: standard output) is the very file that the lines come from. */
bool batch_input_check_output(const struct batch_input *in, const char *path, struct err *e);

enum batch_input_state {
    BATCH_INPUT_LINE,
    BATCH_INPUT_WAIT, /* nothing yet, and the caller would not wait; or a signal came */
    BATCH_INPUT_END,
    BATCH_INPUT_FAILED
};

/* The next line, without its newline, valid until the next call; `whole` is false where the file
 * ends without one. With `wait` a pipe may take its time, until stream_interrupted. ERR_RUNTIME
 * where it cannot be read, or a line is longer than 1 GiB. */
enum batch_input_state batch_input_next(struct batch_input *in, bool wait, struct bytes *line,
                                        bool *whole, struct err *e);

/* Whether there is nothing in the line but blanks. */
bool batch_input_is_blank(struct bytes line);

/* Back to where it began, with nothing read; ERR_RUNTIME where start is -1. */
bool batch_input_rewind(struct batch_input *in, struct err *e);

void batch_input_free(struct batch_input *in);

#endif
