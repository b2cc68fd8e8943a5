/*
 * Some texts side by side, each token drawn from what the model gives, as it is. A text that has
 * ended is followed by a new one.
 */
#include "models/calibrate.h"

#include "core/philox.h"
#include "core/sample.h"
#include "models/internal.h"
#include "models/session.h"

#include <stdlib.h>

/* 8192 tokens: with twice as many the bundled model loses hardly less. */
enum { N_TEXTS = 32, N_STEPS = 256 };

struct calibrate {
    const struct model *model;
    struct compute *compute;
    struct session *session;
    struct sampler **samplers; /* one for each thread */
    const float *logits;       /* [N_TEXTS, vocab_size], of this step */
    struct moments *moments;
    struct session_row rows[N_TEXTS];
    int step;
    bool factored;
};

/* What a text begins with: the token for it, or what stands between texts, or anything. */
static int32_t first_token(const struct calibrate *x, int text)
{
    const struct generation_config *const generation = &x->model->generation;
    const int vocab_size = x->model->info.vocab_size;
    if (generation->bos >= 0 && generation->bos < vocab_size)
        return generation->bos;
    if (generation->n_eos > 0 && generation->eos[0] < vocab_size)
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

/* Each thread draws for its part of the texts. */
static bool take_samplers(struct calibrate *x, struct err *e)
{
    static const struct sample_params as_it_is = {
        .temperature = 1, .top_p = 1, .typical_p = 1, .repetition_penalty = 1};
    const int n = compute_n_threads(x->compute);
    x->samplers = (struct sampler **)calloc((size_t)n, sizeof *x->samplers);
    if (!x->samplers)
        return err_no_memory(e);
    for (int i = 0; i < n; i++)
        if (!(x->samplers[i] = sampler_new(&as_it_is, x->model->info.vocab_size, 1, e)))
            return false;
    return true;
}

static void draw(struct worker *w, void *context)
{
    struct calibrate *const x = context;
    const size_t n_vocab = (size_t)x->model->info.vocab_size;
    size_t begin, end;
    worker_share(w, N_TEXTS, 1, &begin, &end);
    for (size_t i = begin; i < end; i++)
        x->rows[i].id = sampler_next(x->samplers[w->index], x->logits + i * n_vocab,
                                     (uint64_t)x->step * N_TEXTS + i);
}

struct calibrate *calibrate_begin(const struct model *m, struct compute *c,
                                  const volatile sig_atomic_t *stop, struct err *e)
{
    struct calibrate *const x = calloc(1, sizeof *x);
    const int most = m->info.max_positions;
    struct session_params params = {.n_context = N_STEPS < most ? N_STEPS : most,
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
    x->moments = moments_new(m, N_TEXTS, e);
    params.moments = x->moments;
    if (!x->moments || !(x->session = session_new(m, c, &params, e)) || !take_samplers(x, e)) {
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
            if (is_end(x, x->rows[i].id) || session_sequence_position(x->session, i) == most)
                begin_text(x, i);
        x->step++;
    }
    *done = (size_t)x->step * N_TEXTS;
    *total = (size_t)N_STEPS * N_TEXTS;
    return true;
}

const struct moments *calibrate_finish(struct calibrate *x)
{
    if (!x->factored)
        moments_factor(x->moments, x->compute);
    x->factored = true;
    return x->moments;
}

void calibrate_free(struct calibrate *x)
{
    if (!x)
        return;
    session_free(x->session);
    for (int i = 0; x->samplers && i < compute_n_threads(x->compute); i++)
        sampler_free(x->samplers[i]);
    free((void *)x->samplers);
    moments_free(x->moments);
    free(x);
}
