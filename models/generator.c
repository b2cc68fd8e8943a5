/*
 * A pass carries the token that was drawn last and some guesses of what comes behind it:
 *
 *   through the model   last     guess 0  guess 1  guess 2
 *   rows of logits      row 0    row 1    row 2    row 3
 *   draws               guess 0  guess 1  other            -> back to behind guess 1
 *
 * Rows are used one a call, so that a caller sees tokens come one by one, as without guesses. The
 * clock decides how many guesses a pass carries, never what is drawn.
 */
#include "models/generator.h"

#include "core/clock.h"
#include "core/draft.h"
#include "core/pace.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert((int)GENERATOR_MOST_DRAFT + 1 == (int)PACE_MOST_ROWS, "the pace knows every pass");
_Static_assert((int)GENERATOR_MOST_DRAFT <= (int)SESSION_REWIND, "wrong guesses are taken back");

struct generator {
    struct session *session;
    struct sampler *sampler;
    struct generator_params params;
    struct draft *draft; /* NULL: no guesses */
    struct pace pace;
    struct generator_counts counts;
    int32_t last;        /* the token drawn last */
    const float *logits; /* [n_rows, n_vocab] of the last pass */
    int n_rows;
    int row;      /* the next to be used; n_rows: none is left */
    int position; /* of the token that row 0 draws */
    int match;    /* the length of the match that the guesses come from; 0: there are none */
    int32_t guess[GENERATOR_MOST_DRAFT + 1]; /* what row i may draw */
};

int generator_n_rows(int draft)
{
    return 1 + (draft == GENERATOR_DRAFT_AUTO ? GENERATOR_MOST_DRAFT : draft);
}

/* The last token is drawn, but need not fit the context. */
static int most_ids(const struct generator_params *params)
{
    return params->draft ? params->n_context + 1 : 0;
}

size_t generator_bytes(const struct generator_params *params)
{
    return params->draft ? draft_bytes(most_ids(params)) : 0;
}

struct generator *generator_new(struct session *s, struct sampler *sampler,
                                const struct generator_params *params, struct err *e)
{
    assert(params->draft >= GENERATOR_DRAFT_AUTO && params->draft <= GENERATOR_MOST_DRAFT);
    struct generator *g = calloc(1, sizeof *g);
    if (!g) {
        err_no_memory(e);
        return NULL;
    }
    g->session = s;
    g->sampler = sampler;
    g->params = *params;
    pace_init(&g->pace);
    if (params->draft && !(g->draft = draft_new(most_ids(params), e))) {
        generator_free(g);
        return NULL;
    }
    return g;
}

void generator_free(struct generator *g)
{
    if (g) {
        draft_free(g->draft);
        free(g);
    }
}

/* A token of the text, for what the penalties and the guesses look back on. */
static void remember(struct generator *g, int32_t id)
{
    sampler_accept(g->sampler, id);
    if (g->draft)
        draft_push(g->draft, id);
}

bool generator_prompt(struct generator *g, const int32_t *ids, int n, struct err *e)
{
    g->logits = session_prompt(g->session, ids, n, e);
    if (!g->logits)
        return false;
    for (int i = 0; i < n; i++)
        remember(g, ids[i]);
    g->n_rows = 1;
    g->row = 0;
    g->position = session_position(g->session);
    return true;
}

/* Fills in the guesses; how many of them the next pass should carry. */
static int look_up(struct generator *g, int most)
{
    if (!g->draft)
        return 0;
    g->match = draft_guess(g->draft, g->guess, (int)ARRAY_LEN(g->guess));
    const int n_wanted = min_int(generator_n_rows(g->params.draft), most);
    const int n = session_at_once(g->session, n_wanted) - 1;
    if (g->match == 0 || n <= 0)
        return 0;
    return g->params.draft == GENERATOR_DRAFT_AUTO ? pace_guesses(&g->pace, g->match, n) : n;
}

/* The last token and what may come behind it go through the model. */
static bool run_pass(struct generator *g, int most, struct err *e)
{
    int32_t ids[GENERATOR_MOST_DRAFT + 1] = {g->last};
    const int n_guesses = look_up(g, most);
    for (int i = 0; i < n_guesses; i++)
        ids[i + 1] = g->guess[i];
    const double began = clock_seconds();
    g->logits = session_score(g->session, ids, 1 + n_guesses, e);
    if (!g->logits)
        return false;
    pace_saw_pass(&g->pace, 1 + n_guesses, clock_seconds() - began);
    g->n_rows = 1 + n_guesses;
    g->row = 0;
    g->position = session_position(g->session) - n_guesses;
    g->counts.n_passes++;
    g->counts.n_drafted += (size_t)n_guesses;
    return true;
}

/* The row has drawn an id. The rows behind it count only if their tokens begin with that. */
static void leave_row(struct generator *g, int32_t id)
{
    const bool right = g->match > 0 && g->guess[g->row] == id;
    if (g->match > 0)
        pace_saw_guess(&g->pace, g->match + g->row, right);
    g->row++;
    if (g->row == g->n_rows)
        return;
    if (right) {
        g->counts.n_accepted++;
        return;
    }
    const bool went = session_rewind(g->session, g->position + g->row - 1);
    assert(went);
    (void)went;
    g->n_rows = g->row;
}

bool generator_next(struct generator *g, int most, int32_t *id, struct err *e)
{
    assert(g->logits && most > 0);
    if (g->row == g->n_rows && !run_pass(g, most, e))
        return false;
    const float *const row = g->logits + (size_t)g->row * (size_t)g->params.n_vocab;
    g->last = sampler_next(g->sampler, row, (uint64_t)(g->position + g->row));
    if (!sample_is_sound(row, g->last))
        return sample_not_finite(e);
    leave_row(g, g->last);
    remember(g, g->last);
    *id = g->last;
    return true;
}

struct generator_counts generator_counts(const struct generator *g)
{
    return g->counts;
}
