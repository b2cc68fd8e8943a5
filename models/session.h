/*
 * One timeline over a model: the KV cache, the scratch of the forward pass and the logits. The only
 * thing in this program that changes while tokens flow. All of its memory is announced by
 * session_bytes and taken by session_new; afterwards nothing allocates, and nothing fails but "the
 * context is full".
 */
#ifndef MODELS_SESSION_H
#define MODELS_SESSION_H

#include "core/compute.h"
#include "core/err.h"
#include "models/model.h"

struct session;

enum precision {
    PRECISION_AUTO, /* whatever kernel of the level is fastest for the stored weights */
    PRECISION_F32   /* activations and sums stay f32, to compare with references */
};

struct session_params {
    int n_context; /* positions that the KV cache holds */
    int n_batch;   /* most tokens that go through the layers at once; a longer prompt is cut */
    int n_rows;    /* most rows of logits that one call gives: 1 to generate, more to score */
    int n_threads; /* of the compute that it will run on; session_new sees for itself */
    enum precision precision;
};

struct session_bytes {
    size_t kv, scratch, logits;
};

/* What session_new would take. False (ERR_LOAD, or ERR_CONTEXT where n_context exceeds what the
 * model can do). */
bool session_measure(const struct model *m, const struct session_params *params,
                     struct session_bytes *out, struct err *e);

/* The model and the compute are borrowed and must outlive the session. */
struct session *session_new(const struct model *m, struct compute *c,
                            const struct session_params *params, struct err *e);
void session_free(struct session *s);

/* Tells that the text will be at least n tokens long before anything else is asked of it. Models
 * whose rotation follows the length of the text (longrope, dynamic) need to know where a prompt is
 * handed over in pieces. */
void session_expect(struct session *s, int n);

/* Appends n tokens (1 or more) and gives the logits [vocab_size] behind the last one. NULL:
 * ERR_CONTEXT where they do not fit, ERR_RUNTIME for an id outside the vocabulary; nothing has
 * changed then. */
const float *session_prompt(struct session *s, const int32_t *ids, int n, struct err *e);

/* The same with the logits behind each token, [n, vocab_size]; n <= n_rows. */
const float *session_score(struct session *s, const int32_t *ids, int n, struct err *e);

/* Appends one token: session_prompt with n = 1. */
const float *session_step(struct session *s, int32_t id, struct err *e);

/* Tokens so far. */
int session_position(const struct session *s);

/* Goes back to an earlier position and forgets what came behind it. To the beginning always;
 * elsewhere false where a layer with a window no longer has what it would see from there. */
bool session_rewind(struct session *s, int position);

#endif
