/*
 * The model at work on many lines at once. The caller adds lines while there is room, asks for
 * steps, and takes away what is finished:
 *
 *     while (batch_engine_has_room(e)) batch_engine_add(e, next line);
 *     batch_engine_step(e, err);
 *     while ((work = batch_engine_finished(e)) != NULL) answer it;
 *
 * What comes of a line does not depend on its neighbours.
 */
#ifndef CLI_BATCH_ENGINE_H
#define CLI_BATCH_ENGINE_H

#include "cli/batch_work.h"

struct batch_engine;

struct batch_engine_counts {
    size_t n_prompt; /* tokens of prompts ... */
    size_t n_shared; /* ... of which so many were not computed, as another line had them */
    size_t n_answer; /* tokens drawn */
    size_t n_steps;  /* passes through the weights */
    size_t n_rows;   /* tokens that went through them, all steps together */
    size_t n_lines;  /* lines at work, all steps together */
};

struct batch_engine *batch_engine_new(const struct batch_tools *tools, struct err *e);

/* Frees the lines that are still in its hands, too. */
void batch_engine_free(struct batch_engine *e);

bool batch_engine_has_room(const struct batch_engine *e);

/* Nothing to step, and nothing finished. */
bool batch_engine_is_idle(const struct batch_engine *e);

/* Takes over a work that has no error; it gets one if it needs more pages than there are in all.
 * False where memory ran out. */
bool batch_engine_add(struct batch_engine *e, struct batch_work *work, struct err *err);

/* One pass through the weights, and what follows from it. False where memory ran out, or
 * (ERR_INTERRUPTED) where a signal came in its midst: the lines at work are lost then, those that
 * are finished are not, and no other step can follow. */
bool batch_engine_step(struct batch_engine *e, struct err *err);

/* The next line that has its answer, in the order in which they got them; the caller owns it. NULL:
 * none. */
struct batch_work *batch_engine_finished(struct batch_engine *e);

const struct batch_engine_counts *batch_engine_counts(const struct batch_engine *e);

#endif
