/*
 * What generate and score have in common: a prompt that has become ids, everything opened that a
 * forward pass needs, and how long it took.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli/buffer.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "models/session.h"

/* How much a run depends on a tokenizer. */
enum run_tokenizer {
    RUN_TOKENIZER_UNUSED,
    RUN_TOKENIZER_OPTIONAL, /* --ids: without one, there is no text */
    RUN_TOKENIZER_NEEDED
};

struct run {
    const struct options *o;
    struct loaded loaded;
    struct buffer prompt; /* as it came; empty with --ids */
    struct ids ids;       /* of the prompt; at least one */
    struct session *session;
    int n_context;
    double began; /* on clock_seconds, the prompt being read */
    double load_seconds, prompt_seconds, decode_seconds;
    size_t n_steps; /* tokens of the answer that a pass through the model was made for */
};

/* Reads the prompt, opens all but the session, makes the ids and checks them against the model.
 * `command` is for the help that is shown where there is no prompt. */
bool run_load(struct run *r, const struct options *o, const char *command,
              enum run_tokenizer tokenizer, struct err *e);

/* Tokens of the prompt that go through the layers at once. */
int run_pass_rows(const struct run *r);

/* Opens the session for the prompt and n_more tokens, or as -c says, with room for n_rows rows of
 * logits. ERR_CONTEXT, with both numbers, where the prompt does not fit. */
bool run_open_session(struct run *r, size_t n_more, int n_rows, struct err *e);

/* The progress line for reading the prompt. */
struct terminal_progress run_begin_progress(const struct run *r);

/* Tokens of the prompt that the model has read: fewer than there are where a signal came. */
size_t run_n_read(const struct run *r);

/* n tokens in that many seconds; no number where no time has passed. */
double run_rate(size_t n, double seconds);

/* --stats: times, speeds and peak memory. */
void run_print_stats(const struct run *r);

void run_free(struct run *r);

#endif
