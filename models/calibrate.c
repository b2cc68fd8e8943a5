/*
 * Some texts side by side, each token drawn from what the model gives, as it is. A text that has
 * ended is followed by a new one.
 */
#include "models/calibrate.h"

#include "core/kernels/kernels.h"
#include "core/philox.h"
#include "core/sample.h"
#include "models/internal.h"
#include "models/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 8192 tokens: with twice as many the bundled model loses hardly less. 32 texts of 256 are no
 * better and 128 of 64 worse. */
enum { N_TEXTS = 64, N_STEPS = 128 };

enum { CHUNK = 64, N_SUMS = 8 }; /* probabilities that are looked at together, and added */

struct calibrate {
    const struct model *model;
    struct compute *compute;
    struct session *session;
    float *probabilities; /* [n_threads, vocab_size] */
    const float *logits;  /* [N_TEXTS, vocab_size], of this step */
    struct moments *moments;
    struct session_row rows[N_TEXTS];
    bool finite[N_TEXTS]; /* whether the last token was drawn from finite logits */
    int step;
};

/* What a text begins with: the token for it, or what stands between texts, or anything. */
static int32_t first_token(const struct calibrate *x, int text)
{
    const struct generation_config *const generation = &x->model->generation;
    const int vocab_size = x->model->info.vocab_size;
    if (generation->bos >= 0 && generation->bos < vocab_size)
        return generation->bos;
    if (generation->n_eos > 0 && generation->eos[0] >= 0 && generation->eos[0] < vocab_size)
        return generation->eos[0];
    const uint64_t turn = (uint64_t)(x->step * N_TEXTS + text);
    return (int32_t)(philox_uniform(1, turn) * vocab_size);
}

static bool is_end(const struct calibrate *x, int32_t id)
{
    for (int i = 0; i < x->model->generation.n_eos; i++)
        if (x->model->generation.eos[i] == id)
            return true;
    return false;
}

static void begin_text(struct calibrate *x, int text)
{
    session_sequence_reset(x->session, text);
    x->rows[text] =
        (struct session_row){.id = first_token(x, text), .sequence = text, .wants_logits = true};
}

/* The sum of n probabilities, N_SUMS side by side. */
static float sum_of(const float *p, size_t n)
{
    float sums[N_SUMS] = {0}, sum = 0;
    size_t i = 0;
    for (; i + N_SUMS <= n; i += N_SUMS)
        for (size_t j = 0; j < N_SUMS; j++)
            sums[j] += p[i + j];
    for (; i < n; i++)
        sum += p[i];
    for (size_t j = 0; j < N_SUMS; j++)
        sum += sums[j];
    return sum;
}

/* The first id at which the sum of the probabilities exceeds `at`; where rounding keeps them from
 * that, the last one that is possible. */
static int32_t pick(const float *p, size_t n, double at)
{
    double total = 0, before = 0;
    size_t first = 0, id;
    for (size_t i = 0; i < n && total <= at; i += CHUNK) {
        const double sum = (double)sum_of(p + i, min_size(n - i, CHUNK));
        first = sum > 0 ? i : first;
        before = sum > 0 ? total : before;
        total += sum;
    }
    id = first;
    for (size_t i = first; i < n && i < first + CHUNK && before <= at; i++) {
        id = p[i] > 0 ? i : id;
        before += (double)p[i];
    }
    return (int32_t)id;
}

/* Each thread draws for its part of the texts. Samplers would do, but look at whole vocabularies
 * value by value. */
static void draw(struct worker *w, void *context)
{
    struct calibrate *const x = context;
    const size_t n_vocab = (size_t)x->model->info.vocab_size;
    float *const p = x->probabilities + (size_t)w->index * n_vocab;
    size_t begin, end;
    worker_share(w, N_TEXTS, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        memcpy(p, x->logits + i * n_vocab, n_vocab * sizeof *p);
        w->kernels->softmax(p, n_vocab);
        const int32_t id = pick(p, n_vocab, philox_uniform(1, (uint64_t)x->step * N_TEXTS + i));
        x->finite[i] = isfinite(p[id]) && isfinite(x->logits[i * n_vocab + (size_t)id]);
        x->rows[i].id = id;
    }
}

struct calibrate *calibrate_begin(const struct model *m, struct compute *c, const atomic_int *stop,
                                  struct err *e)
{
    struct calibrate *const x = calloc(1, sizeof *x);
    const int most = m->info.max_positions;
    struct session_params params = {.n_context = min_int(N_STEPS, most),
                                    .n_batch = N_TEXTS,
                                    .n_rows = N_TEXTS,
                                    .n_sequences = N_TEXTS,
                                    .stop = stop};
    if (!x) {
        err_no_memory(e);
        return NULL;
    }
    x->model = m;
    x->compute = c;
    x->probabilities = malloc((size_t)compute_n_threads(c) * (size_t)m->info.vocab_size *
                              sizeof *x->probabilities);
    if (!x->probabilities)
        err_no_memory(e);
    else
        x->moments = moments_new(m, N_TEXTS, e);
    params.moments = x->moments;
    if (!x->moments || !(x->session = session_new(m, c, &params, e))) {
        calibrate_free(x);
        return NULL;
    }
    for (int i = 0; i < N_TEXTS; i++)
        begin_text(x, i);
    return x;
}

bool calibrate_step(struct calibrate *x, size_t *done, size_t *total, struct err *e)
{
    const int most = x->model->info.max_positions;
    if (x->step < N_STEPS) {
        x->logits = session_run(x->session, x->rows, N_TEXTS, e);
        if (!x->logits)
            return false;
        compute_run(x->compute, draw, x);
        for (int i = 0; i < N_TEXTS; i++)
            if (!x->finite[i])
                return sample_not_finite(e);
            else if (is_end(x, x->rows[i].id) || session_sequence_position(x->session, i) == most)
                begin_text(x, i);
        x->step++;
    }
    *done = (size_t)x->step * N_TEXTS;
    *total = (size_t)N_STEPS * N_TEXTS;
    return true;
}

const struct moments *calibrate_finish(struct calibrate *x)
{
    moments_factor(x->moments, x->compute);
    return x->moments;
}

void calibrate_free(struct calibrate *x)
{
    if (!x)
        return;
    session_free(x->session);
    free(x->probabilities);
    moments_free(x->moments);
    free(x);
}
