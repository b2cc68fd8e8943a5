/*
 * What an output already holds: the names of its answers, and where its last whole line ends.
 */
#ifndef CLI_BATCH_RESUME_H
#define CLI_BATCH_RESUME_H

#include "cli/batch_index.h"
#include "cli/batch_output.h"

/* Reads the answers of a regular output into *answers, as batch_source has them, and cuts a torn
 * last line off. ERR_RUNTIME for a file that is no output of a job, which stays as it is. */
bool batch_resume(struct batch_output *out, struct batch_index *answers, struct err *e);

/* Whether a regular file that is to be emptied or replaced holds answers: its first line, if it has
 * any, must be one, or what is left of one. Else ERR_RUNTIME. */
bool batch_resume_check(int fd, const char *name, struct err *e);

#endif
