/*
 * One line after another through one session, which grows where a line needs more than those before
 * it.
 */
#include "cli/batch_engine.h"

#include <stdlib.h>

#include "cli/logprob.h"
#include "cli/run.h"

struct batch_engine {
    const struct batch_tools *tools;
    struct session *session;
    size_t n_context; /* of the session */
    struct batch_work *work, *finished;
    size_t n_read; /* ids of the work's that the model has */
    struct batch_engine_counts counts;
};

struct batch_engine *batch_engine_new(const struct batch_tools *tools, struct err *e)
{
    struct batch_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL)
        err_no_memory(e);
    else
        engine->tools = tools;
    return engine;
}

void batch_engine_free(struct batch_engine *e)
{
    if (e == NULL)
        return;
    batch_work_free(e->work);
    batch_work_free(e->finished);
    session_free(e->session);
    free(e);
}

bool batch_engine_has_room(const struct batch_engine *e)
{
    return e->work == NULL && e->finished == NULL;
}

bool batch_engine_is_idle(const struct batch_engine *e)
{
    return batch_engine_has_room(e);
}

void batch_engine_add(struct batch_engine *e, struct batch_work *work)
{
    e->work = work;
    e->n_read = 0;
    if (work->reply.end != REPLY_OPEN) {
        e->finished = work;
        e->work = NULL;
    }
}

static bool prepare_session(struct batch_engine *e, struct err *err)
{
    const struct loaded *l = e->tools->loaded;
    const size_t needed = batch_work_most_tokens(e->work);
    if (needed > e->n_context) {
        const bool score = e->tools->task == BATCH_SCORE;
        session_free(e->session);
        const struct session_params params = {
            .n_context = (int)needed,
            .n_batch = RUN_BATCH,
            .n_rows = score ? 16 : 1,
            .n_threads = compute_n_threads(l->compute),
            .precision = (enum precision)e->tools->o->precision,
        };
        e->session = session_new(l->model, l->compute, &params, err);
        e->n_context = needed;
    }
    if (e->session == NULL)
        return false;
    session_rewind(e->session, 0);
    session_expect(e->session, (int)e->work->ids.n);
    return true;
}

static void finish(struct batch_engine *e)
{
    e->finished = e->work;
    e->work = NULL;
}

static bool step_score(struct batch_engine *e, struct err *err)
{
    struct batch_work *w = e->work;
    const int n_vocab = model_info(e->tools->loaded->model)->vocab_size;
    const int n = w->ids.n - e->n_read < 16 ? (int)(w->ids.n - e->n_read) : 16;
    const float *rows = session_score(e->session, w->ids.id + e->n_read, n, err);
    if (rows == NULL)
        return false;
    for (int i = 0; i < n; i++) {
        const size_t next = e->n_read + (size_t)i + 1;
        if (next >= w->n_prompt && next < w->ids.n)
            w->logprob += logprob_of(rows + (size_t)i * (size_t)n_vocab, n_vocab, w->ids.id[next]);
    }
    e->n_read += (size_t)n;
    if (e->n_read == w->ids.n)
        finish(e);
    return true;
}

static bool step_answer(struct batch_engine *e, struct err *err)
{
    struct batch_work *w = e->work;
    const float *logits;
    if (e->n_read < w->ids.n) {
        const size_t left = w->ids.n - e->n_read;
        const size_t n = left < RUN_BATCH ? left : RUN_BATCH;
        logits = session_prompt(e->session, w->ids.id + e->n_read, (int)n, err);
        e->n_read += n;
        e->counts.n_prompt += n;
        e->counts.n_rows += n;
    } else {
        logits = session_step(e->session, w->reply.ids.id[w->reply.ids.n - 1], err);
        e->counts.n_rows++;
    }
    if (logits == NULL)
        return false;
    if (e->n_read < w->ids.n)
        return true;
    if (!reply_take(&w->reply, logits, (size_t)session_position(e->session), err))
        return false;
    e->counts.n_answer++;
    if (w->reply.end != REPLY_OPEN)
        finish(e);
    return true;
}

bool batch_engine_step(struct batch_engine *e, struct err *err)
{
    if (e->work == NULL)
        return true;
    if (e->n_read == 0 && !prepare_session(e, err))
        return false;
    e->counts.n_steps++;
    e->counts.n_lines++;
    return e->tools->task == BATCH_SCORE ? step_score(e, err) : step_answer(e, err);
}

struct batch_work *batch_engine_finished(struct batch_engine *e)
{
    struct batch_work *work = e->finished;
    e->finished = NULL;
    return work;
}

const struct batch_engine_counts *batch_engine_counts(const struct batch_engine *e)
{
    return &e->counts;
}
