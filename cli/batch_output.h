/*
 * Where answers go: a file that only ever holds whole lines, or a pipe. What was put is in the file
 * when batch_output_put returns; a process that is killed leaves at most one torn line, which the
 * next one cuts off. A lock keeps two processes from one file.
 */
#ifndef CLI_BATCH_OUTPUT_H
#define CLI_BATCH_OUTPUT_H

#include "cli/buffer.h"

struct batch_output {
    int fd; /* -1: closed */
    const char *name;
    bool regular;  /* a file that can be resumed, as opposed to a pipe or a device */
    bool created;  /* which was not there before */
    bool has_name; /* when it was opened: /dev/stdout may lead to a file without one */
    uint64_t size; /* regular: of its whole lines */
    double synced; /* when the disk was last asked to keep them */
    bool unsynced;
};

/* Opens, creates and locks the file at `path`, which is borrowed; NULL is standard output. What the
 * file holds stays as it is. ERR_RUNTIME, also where another process has the lock. `out` may be
 * closed in any case. */
bool batch_output_open(struct batch_output *out, const char *path, struct err *e);

/* Cuts a regular file off behind its first `size` bytes and goes on from there. */
bool batch_output_trim(struct batch_output *out, uint64_t size, struct err *e);

/* Appends one whole line, which has lacked no memory. Where it cannot be written whole, what there
 * is of it is taken back. */
bool batch_output_put(struct batch_output *out, const struct buffer *line, struct err *e);

/* Asks the disk to keep what was written: now, or (without `now`) if the last time is long ago.
 * Also ERR_RUNTIME where the file has lost its name meanwhile, so that nobody would see further
 * answers, or where it is not as long as what was put there. */
bool batch_output_sync(struct batch_output *out, bool now, struct err *e);

/* Takes a file away again that batch_output_open has created and nothing was put into, if it still
 * has its name. */
void batch_output_discard(const struct batch_output *out);

void batch_output_close(struct batch_output *out);

#endif
