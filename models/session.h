/*
 * Timelines over a model: the KV cache, the scratch of the forward pass and the logits. The only
 * thing in this program that changes while tokens flow. All of its memory is announced by
 * session_measure and taken by session_new; afterwards nothing allocates, and nothing fails but
 * "the context is full" or "no pages are free".
 *
 * A session holds n_sequences texts, each at a position of its own. One text needs no more than the
 * plain calls (prompt, score, step, position, rewind), which mean sequence 0. Many go on together
 * with session_run, whose rows of one pass belong to any sequences: prompts in pieces beside single
 * tokens. What a row gets does not depend on the others, bit for bit.
 */
#ifndef MODELS_SESSION_H
#define MODELS_SESSION_H

#include <stdatomic.h>

#include "core/compute.h"
#include "core/err.h"
#include "models/model.h"

struct moments;
struct session;

enum precision {
    PRECISION_AUTO, /* whatever kernel of the level is fastest for the stored weights */
    PRECISION_F32   /* activations and sums stay f32, to compare with references */
};

/* How keys and values are kept: as f16, or with PRECISION_F32 as f32; or as told. */
enum session_kv { SESSION_KV_AUTO, SESSION_KV_F32, SESSION_KV_F16, SESSION_KV_Q8 };

enum {
    SESSION_PAGE = 64,  /* positions of a page of the cache */
    SESSION_REWIND = 64 /* how far session_rewind always reaches back */
};

/* From n_batch on, zero stands for what one text needs. */
struct session_params {
    int n_context; /* positions that a sequence can have */
    int n_batch;   /* most tokens that go through the layers at once; a longer prompt is cut */
    int n_rows;    /* most rows of logits that one call gives: 1 to generate, more to score */
    int n_threads; /* of the compute that it will run on; session_new sees for itself */
    int n_sequences;
    int n_pages; /* of the pool that sequences share; 0: every sequence can fill its context */
    enum precision precision;
    enum session_kv kv;
    struct moments *moments; /* NULL, or the collector that receives the input rows of matrix
                                products (calibration) */
    const atomic_int *stop;  /* NULL, or what a signal handler sets: see session_prompt */
};

struct session_bytes {
    size_t kv, scratch, logits;
    size_t kv_page; /* of one page of the pool, in all layers: kv grows by it with n_pages */
};

/* What session_new would take. ERR_CONTEXT where n_context exceeds what the model can do,
 * ERR_RUNTIME where sizes overflow. */
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
 * changed then. Also NULL, as all that runs the model, with ERR_INTERRUPTED within a layer's time
 * after *params.stop is no longer 0; the session is then good for nothing but session_free. */
const float *session_prompt(struct session *s, const int32_t *ids, int n, struct err *e);

/* The same with the logits behind each token, [n, vocab_size]; n <= n_rows. */
const float *session_score(struct session *s, const int32_t *ids, int n, struct err *e);

/* How many of n tokens may be appended at once and give, token for token, the logits that they
 * would give one by one: all, but for models whose rotation follows the length of the text. */
int session_at_once(const struct session *s, int n);

/* Appends one token: session_prompt with n = 1. */
const float *session_step(struct session *s, int32_t id, struct err *e);

/* Tokens so far. */
int session_position(const struct session *s);

/* Goes back to an earlier position and forgets what came behind it. To the beginning always, and
 * SESSION_REWIND positions back from the longest that the text, or the one that it shares with, has
 * been; elsewhere false where a layer with a window no longer has what it would see from there. */
bool session_rewind(struct session *s, int position);

/* ---- many sequences -------------------------------------------------------------------------- */

/* One token of one sequence. */
struct session_row {
    int32_t id;
    int sequence;      /* below n_sequences */
    bool wants_logits; /* behind this token */
};

/*
 * Appends n tokens (1 to n_batch) to their sequences, in one pass; rows of one sequence in the
 * order of its text. Gives the logits of the rows that want them (at most n_rows), in the order of
 * the rows, [n_wanted, vocab_size]; not NULL even where none do. NULL: ERR_CONTEXT where a sequence
 * would outgrow n_context or the free pages do not suffice, ERR_RUNTIME for an id or a sequence
 * that there is not; no sequence has changed then, though one may have got its copy of a page.
 */
const float *session_run(struct session *s, const struct session_row *rows, int n, struct err *e);

/* As their namesakes above, for any sequence. */
void session_sequence_expect(struct session *s, int sequence, int n);
int session_sequence_position(const struct session *s, int sequence);
bool session_sequence_rewind(struct session *s, int sequence, int position);

/* Ends a text: its pages are free, the sequence is empty and expects nothing. */
void session_sequence_reset(struct session *s, int sequence);

/*
 * The empty sequence `to` begins with the first n tokens of `from`, without computing them: both
 * use the same pages until one of them writes into one, which then takes a page for its copy. What
 * layers with windows remember is copied. `to` may have been told before what to expect. False,
 * with nothing changed, where a layer with a window no longer has what is seen from there, or where
 * the model rotates by the length of the text and one of the two is longer than its original
 * context: `to` computes them for itself then.
 */
bool session_share(struct session *s, int from, int to, int n);

/* Pages of the pool that are free, and those that it takes to append n tokens to a sequence: what
 * it lacks, and copies of what it shares. A run succeeds where the sum over its sequences is at
 * most what is free. */
int session_free_pages(const struct session *s);
int session_wanted_pages(const struct session *s, int sequence, int n);

#endif
