/*
 * The text of a session, token by token: draws one, and runs the model for the next. Where the text
 * repeats itself it does so in few passes: guesses go through the model together with the token
 * that is sure, each row of logits draws its token, and the guesses that are not what was drawn are
 * taken back. Since a row's logits are the same in company as alone, and a draw is a function of
 * seed and position, the text is that of plain decoding, bit for bit; guesses change nothing but
 * the speed.
 */
#ifndef MODELS_GENERATOR_H
#define MODELS_GENERATOR_H

#include "core/sample.h"
#include "models/session.h"

enum {
    GENERATOR_MOST_DRAFT = 16, /* guesses in a pass */
    GENERATOR_DRAFT_AUTO = -1  /* as many as pay, by what passes take on this machine */
};

struct generator_params {
    int n_vocab;
    int n_context; /* of the session */
    int draft;     /* guesses in a pass: 0 none, N whenever there is a guess, or AUTO */
};

struct generator;

/* The rows of logits that the session needs (session_params.n_rows, and n_batch at least as many).
 */
int generator_n_rows(int draft);

/* The bytes that generator_new takes. */
size_t generator_bytes(const struct generator_params *params);

/* Session and sampler are borrowed, and from here on used by nobody else. */
struct generator *generator_new(struct session *s, struct sampler *sampler,
                                const struct generator_params *params, struct err *e);
void generator_free(struct generator *g);

/* n more tokens of the prompt (1 or more); at least once before the first generator_next. As
 * session_prompt fails, so does this. */
bool generator_prompt(struct generator *g, const int32_t *ids, int n, struct err *e);

/* The next token into *id. The caller will ask for `most` tokens, this one included, unless it ends
 * before: they fit the context. Draws first, and runs the model when the next token is asked for:
 * no pass is made for a token that nobody wants. ERR_RUNTIME where the logits are not finite. */
bool generator_next(struct generator *g, int most, int32_t *id, struct err *e);

struct generator_counts {
    size_t n_passes;   /* through the model, the prompt's not counted */
    size_t n_drafted;  /* guesses in them */
    size_t n_accepted; /* of these, what was drawn indeed */
};
struct generator_counts generator_counts(const struct generator *g);

#endif
