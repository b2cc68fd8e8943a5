/*
 * How likely the tokens of an answer were, and what was likeliest in their places, as OpenAI's
 * completions tell it.
 */
#ifndef CLI_REPLY_CHANCES_H
#define CLI_REPLY_CHANCES_H

#include "cli/buffer.h"
#include "tokenizer/tokenizer.h"

struct reply_chances;

/* n_likeliest: of each place, 0 for none. `last` is the token before the answer, -1 without one.
 * The tokenizer is borrowed. */
struct reply_chances *reply_chances_new(const struct tokenizer *t, int n_likeliest, int32_t last,
                                        struct err *e);
void reply_chances_free(struct reply_chances *c);

/* One more token of the answer, the logits that it was drawn from, and its text. */
bool reply_chances_add(struct reply_chances *c, const float *logits, int n_vocab, int32_t id,
                       struct bytes text, struct err *e);

/* Appends {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. */
void reply_chances_write(const struct reply_chances *c, const char *key, struct buffer *out);

#endif
