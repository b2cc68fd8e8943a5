/*
 * How far a job is, for whoever waits: a line that overwrites itself on a terminal, elsewhere one a
 * minute.
 */
#ifndef CLI_BATCH_PROGRESS_H
#define CLI_BATCH_PROGRESS_H

#include "core/base.h"

struct batch_progress {
    bool quiet, on_terminal, visible;
    double began, next; /* on clock_seconds: the next line not before */
};

void batch_progress_begin(struct batch_progress *p, bool quiet);

/* Of n_total lines (0: not known yet) n_before had answers before this process began, and n_done
 * have got theirs since, by n_tokens read or drawn. */
void batch_progress_tell(struct batch_progress *p, size_t n_before, size_t n_done, size_t n_total,
                         size_t n_tokens);

/* Takes the line on the terminal away. */
void batch_progress_end(struct batch_progress *p);

#endif
