/*
 * The lines of a job that remain to be answered: those of the input that are this process's part
 * and have no answer yet. Checks that custom_ids are unique, and that the answers in the output
 * belong to this input.
 */
#ifndef CLI_BATCH_SOURCE_H
#define CLI_BATCH_SOURCE_H

#include "cli/batch_index.h"
#include "cli/batch_input.h"
#include "cli/batch_line.h"
#include "cli/batch_output.h"
#include "cli/batch_shard.h"

struct batch_source {
    const struct options *o; /* borrowed, as `input` is */
    enum batch_task task;
    struct batch_shard shard;
    struct batch_input *input;
    const struct batch_output *output; /* borrowed; what `answers` are from, where there are any */
    struct batch_index lines;          /* custom_ids so far, with the numbers of their lines */
    /* Names of answers already in the output. Value: the kind of answer, until its line is met;
     * then 0. Errors are 0 from the start: no line has to exist for them. */
    struct batch_index answers;
    size_t n_lines;    /* so far, empty ones not counted: the count that deals out parts */
    size_t n_mine;     /* lines so far that are this process's part */
    size_t n_answered; /* of those, the ones that have an answer already */
    size_t n_errors;   /* and of those, the ones for which it is an error */
};

/* The next line that is to be answered, with line->error where it is a bad one. The caller frees
 * *line after BATCH_INPUT_LINE. */
enum batch_input_state batch_source_next(struct batch_source *s, bool wait, struct batch_line *line,
                                         struct err *e);

/* Reads a file through, counts into *n_mine, and begins anew. ERR_RUNTIME where an answer matches
 * no line. Does nothing for a pipe, whose lines are counted as they come. */
bool batch_source_survey(struct batch_source *s, size_t *n_mine, struct err *e);

/* At the end: ERR_RUNTIME where answers are there that match no line. */
bool batch_source_check_end(const struct batch_source *s, struct err *e);

void batch_source_free(struct batch_source *s);

#endif
