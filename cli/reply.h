/*
 * One answer as it grows, token by token, among others that grow beside it: its sampler, its text
 * with the stop strings, what ends it. Touches nothing but itself, so that replies may take their
 * tokens on different threads.
 */
#ifndef CLI_REPLY_H
#define CLI_REPLY_H

#include "cli/load.h"
#include "cli/stream.h"

enum reply_end {
    REPLY_OPEN,
    REPLY_LENGTH,
    REPLY_STOP,
    REPLY_NOT_FINITE /* the logits say nothing, and so there is no answer */
};

/* What is to be answered; all of it borrowed and there as long as the reply. */
struct reply_request {
    const struct options *o; /* special, ignore_eos */
    const struct loaded *loaded;
    const struct sample_params *sampling;
    const struct option_list *stop;
    const struct ids *prompt;
    size_t limit; /* tokens of the answer at most */
    bool wants_logprobs;
    int n_likeliest;
};

struct reply {
    struct reply_request request;
    struct sampler *sampler;
    struct decoder *decoder; /* NULL without a tokenizer: there is no text */
    struct stream stream;    /* collects the text */
    struct ids ids;          /* of the answer, without the one that ended it */
    enum reply_end end;
    struct reply_chances *chances; /* NULL unless logprobs are wanted */
};

/* Begins the answer to a prompt, which penalties and the decoder look back into. False without
 * memory, or, here and below, where the decoder gives up (ERR_LOAD). */
bool reply_begin(struct reply *r, const struct reply_request *request, struct err *e);

/* Draws the token at `position` (those of the prompt count too) from the logits behind the one
 * before it. r->end then tells whether it was the last; otherwise the model must be given the last
 * of r->ids. */
bool reply_take(struct reply *r, const float *logits, size_t position, struct err *e);

/* Appends OpenAI's member "logprobs", null where none are wanted. */
void reply_write_logprobs(const struct reply *r, struct buffer *out);

void reply_free(struct reply *r);

#endif
