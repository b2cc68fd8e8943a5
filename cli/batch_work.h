/*
 * A line on its way to its answer: the ids that it comes to, and what is known of the answer.
 */
#ifndef CLI_BATCH_WORK_H
#define CLI_BATCH_WORK_H

#include "cli/batch_tools.h"
#include "cli/reply.h"

struct batch_work {
    struct batch_line line;
    struct ids ids;  /* of the prompt; BATCH_SCORE: of the completion too, behind it */
    size_t n_prompt; /* leading ids that belong to the prompt; the completion's begin here */
    struct sample_params sampling;
    struct reply reply;      /* BATCH_GENERATE */
    double logprob;          /* BATCH_SCORE: of all tokens from n_prompt on, one after another */
    struct batch_work *next; /* in whatever list it is */
    struct batch_order_slot *slot; /* its place in the output; NULL where the order is free */
};

/* Takes over *line, which is empty then, and makes it ready for the model. What is wrong with the
 * line is in work->line.error; without memory NULL. */
struct batch_work *batch_work_new(const struct batch_tools *tools, struct batch_line *line,
                                  struct err *e);
void batch_work_free(struct batch_work *work);

/* Most tokens that the model may be given for it. */
size_t batch_work_most_tokens(const struct batch_work *work);

#endif
