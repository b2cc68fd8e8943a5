/*
 * What all lines of a job share: the model, the tokenizer and how long a line may be.
 */
#ifndef CLI_BATCH_TOOLS_H
#define CLI_BATCH_TOOLS_H

#include "cli/batch_line.h"
#include "cli/load.h"

/* All zero is nothing opened. */
struct batch_tools {
    const struct options *o; /* borrowed */
    enum batch_task task;
    struct loaded loaded;
    struct encoder *encoder;
    int n_context; /* tokens that a line may have, prompt and answer together */
};

/* A context that is too long for the model is refused by batch_engine_new, not here. */
bool batch_tools_open(struct batch_tools *tools, const struct options *o, enum batch_task task,
                      struct err *e);

void batch_tools_close(struct batch_tools *tools);

#endif
