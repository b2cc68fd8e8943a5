/*
 * The answers of all parts of a job -> one file in the order of the input, where each line has
 * exactly one.
 */
#ifndef CLI_BATCH_MERGE_H
#define CLI_BATCH_MERGE_H

#include "cli/batch_line.h"

/* Joins the parts of o->output, which are found beside it by their names (where there are none,
 * o->output itself is the only one), for the lines of the file that o->words names. The result
 * takes its place at once or not at all. ERR_RUNTIME where a part, a line or an answer is missing
 * or one too many. */
bool batch_merge_run(const struct options *o, enum batch_task task, struct err *e);

#endif
