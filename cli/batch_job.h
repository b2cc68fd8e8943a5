/*
 * A job from its first line to its last: what tgen batch does, and tgen score with --jsonl.
 */
#ifndef CLI_BATCH_JOB_H
#define CLI_BATCH_JOB_H

#include "cli/batch_line.h"

/* Lines of the file that o->words names (or standard input) -> answers in o->output (or standard
 * output). ERR_RUNTIME also where some lines could only be answered with an error, ERR_INTERRUPTED
 * after SIGINT, SIGTERM or SIGHUP. */
bool batch_job_run(const struct options *o, enum batch_task task, struct err *e);

#endif
