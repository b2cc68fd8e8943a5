/*
 * What stands between a name and a text: checkpoint, tokenizer, model, compute, opened in this
 * order as far as a command needs them, and given back together.
 */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include "cli/options.h"
#include "core/checkpoint.h"
#include "core/compute.h"
#include "models/model.h"
#include "tokenizer/tokenizer.h"

struct load_job;

/* All zero is nothing opened. */
struct loaded {
    struct checkpoint *checkpoint;
    struct tokenizer *tokenizer;
    struct model *model;
    struct compute *compute;
    struct load_job *job; /* a tokenizer on its way */
};

/* Finds the directory that -m (or its defaults) mean, and opens it. */
bool load_checkpoint(struct loaded *l, const struct options *o, struct err *e);

/* ERR_LOAD for a tokenizer that cannot be used, and where it is `needed` for none at all; otherwise
 * l->tokenizer stays NULL then. */
bool load_tokenizer(struct loaded *l, bool needed, struct err *e);

/* Loads the tokenizer as load_tokenizer does, beside what the caller does next: each start must be
 * followed by load_tokenizer_finish, or load_free, before the checkpoint's small files are asked
 * for again. A start that fails leaves nothing to finish. */
bool load_tokenizer_start(struct loaded *l, bool needed, struct err *e);
bool load_tokenizer_finish(struct loaded *l, struct err *e);

/* Binds the model, its weights as they are stored, and starts the threads. */
bool load_stored_model(struct loaded *l, const struct options *o, struct err *e);

/* Binds the model, its weights as -w asks for, and starts the threads. */
bool load_model(struct loaded *l, const struct options *o, struct err *e);

/* Notes what generation_config.json asks for and tgen does not do; for commands that draw. */
void load_tell_defaults(const struct loaded *l, bool quiet);

void load_free(struct loaded *l);

#endif
