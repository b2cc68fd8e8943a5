/*
 * The limits of the machine are taken around each repetition, and their mean is what it stands
 * against, because the speed of a machine that others use too changes from one second to the next.
 * What a limit allows is the longer of two times: to read what has to be read, and to do the
 * arithmetic with the fastest dots that the form of the weights admits.
 */
#include "cli/bench.h"

#include "cli/stream.h"
#include "core/clock.h"
#include "models/work.h"

#include <math.h>
#include <stdlib.h>

enum { WARM_STEPS = 16 };

static struct session_params params_of(const struct bench *b, const struct bench_test *test)
{
    const int most = test->is_prompt && test->n > test->depth ? test->n : test->depth;
    return (struct session_params){
        .n_context = test->depth + test->n,
        .n_batch = min_int(most, model_pass_rows(b->model, test->n_threads)),
        .n_rows = 1,
        .n_threads = test->n_threads,
        .kv = b->kv,
        .stop = stream_interrupt(),
    };
}

bool bench_check(const struct bench *b, const struct bench_test *test, struct err *e)
{
    const struct session_params params = params_of(b, test);
    struct session_bytes unused;
    return session_measure(b->model, &params, &unused, e);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Brings the session to the test's depth: rewinds, or reads what is missing of the text. */
static bool fill(const struct bench *b, const struct bench_test *test, struct session *s,
                 struct err *e)
{
    if (!session_rewind(s, test->depth < session_position(s) ? test->depth : 0))
        session_rewind(s, 0);
    const int there = session_position(s);
    return there == test->depth || session_prompt(s, b->ids + there, test->depth - there, e);
}

static bool run_tokens(const struct bench *b, const struct bench_test *test, int n,
                       struct session *s, double *seconds, struct err *e)
{
    if (!fill(b, test, s, e))
        return false;
    const int32_t *ids = b->ids + test->depth;
    const double began = clock_seconds();
    bool ok = true;
    if (test->is_prompt)
        ok = session_prompt(s, ids, n, e) != NULL;
    for (int i = 0; ok && !test->is_prompt && i < n; i++)
        ok = session_step(s, ids[i], e) != NULL;
    *seconds = clock_seconds() - began;
    return ok;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Bytes that the cache takes for a position: those of a few positions, divided. */
static double kv_bytes(const struct model *m, const struct session_params *params)
{
    enum { SOME = 64 };
    struct session_params few = *params;
    struct session_bytes bytes = {.kv = 0};
    struct err unused;
    few.n_context = min_int(SOME, model_info(m)->max_positions);
    few.n_batch = few.n_context;
    session_measure(m, &few, &bytes, &unused);
    return (double)bytes.kv / few.n_context;
}

/* The work of n tokens at once behind `position` others. */
static void add_pass(const struct bench *b, int position, int n, struct work *total)
{
    struct work w;
    work_of_pass(b->model, position, n, b->kv == SESSION_KV_F32, &w);
    total->weight_bytes += w.weight_bytes;
    total->kv_positions += w.kv_positions;
    for (int form = 0; form < N_WORK_FORMS; form++)
        total->operations[form] += w.operations[form];
}

static void add_work(const struct bench *b, const struct bench_test *test, struct work *total)
{
    if (test->is_prompt)
        add_pass(b, test->depth, test->n, total);
    for (int i = 0; !test->is_prompt && i < test->n; i++)
        add_pass(b, test->depth + i, 1, total);
}

/* The least seconds that the work takes by these limits. */
static double least_seconds(const struct work *work, double kv_position_bytes,
                            const struct machine_limits *limits)
{
    const double speed[N_WORK_FORMS] = {
        [WORK_F32] = limits->f32_per_s,
        [WORK_BF16] = fmax(limits->f32_per_s, limits->bf16_per_s),
        [WORK_INT8] = fmax(limits->f32_per_s, limits->int8_per_s),
    };
    double arithmetic = 0;
    for (int form = 0; form < N_WORK_FORMS; form++)
        arithmetic += work->operations[form] / speed[form];
    const double bytes = work->weight_bytes + work->kv_positions * kv_position_bytes;
    return fmax(bytes / limits->read_bytes_per_s, arithmetic);
}

static struct machine_limits mean_limits(const struct machine_limits *a,
                                         const struct machine_limits *b)
{
    return (struct machine_limits){
        .read_bytes_per_s = (a->read_bytes_per_s + b->read_bytes_per_s) / 2,
        .f32_per_s = (a->f32_per_s + b->f32_per_s) / 2,
        .bf16_per_s = (a->bf16_per_s + b->bf16_per_s) / 2,
        .int8_per_s = (a->int8_per_s + b->int8_per_s) / 2,
    };
}

/* ---- repetitions ----------------------------------------------------------------------------- */

/* What repetitions gave, each in a place of its own. */
struct times {
    double *seconds, *fractions; /* [n_repetitions] */
    struct machine_limits best;
};

/* Seconds and fractions of the runs, each after a token that brings the weights back into caches
 * which measuring has emptied. */
static bool time_runs(const struct bench *b, const struct bench_test *test, struct compute *c,
                      struct session *s, struct times *t, struct err *e)
{
    const struct session_params params = params_of(b, test);
    const double kv = kv_bytes(b->model, &params);
    const int warm = test->is_prompt || test->n < WARM_STEPS ? test->n : WARM_STEPS;
    struct machine_limits before, after, mean;
    struct work work = {.weight_bytes = 0};
    double unused;
    add_work(b, test, &work);
    session_expect(s, test->depth + test->n);
    if (!run_tokens(b, test, warm, s, &unused, e))
        return false;
    machine_measure(b->machine, c, &before);
    machine_raise(&t->best, &before);
    for (int i = 0; i < b->n_repetitions; i++, before = after) {
        if (!run_tokens(b, test, 1, s, &unused, e) ||
            !run_tokens(b, test, test->n, s, &t->seconds[i], e))
            return false;
        machine_measure(b->machine, c, &after);
        machine_raise(&t->best, &after);
        mean = mean_limits(&before, &after);
        t->fractions[i] = least_seconds(&work, kv, &mean) / t->seconds[i];
    }
    return true;
}

static bool measure(const struct bench *b, const struct bench_test *test, struct compute *c,
                    struct times *t, struct err *e)
{
    const struct session_params params = params_of(b, test);
    struct session *s = session_new(b->model, c, &params, e);
    if (!s)
        return false;
    const bool ok = time_runs(b, test, c, s, t, e);
    session_free(s);
    return ok;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x[0..n). */
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

bool bench_measure(const struct bench *b, const struct bench_test *test, struct compute *c,
                   struct bench_result *result, struct err *e)
{
    const int n = b->n_repetitions;
    struct times t = {
        .seconds = calloc((size_t)n, sizeof *t.seconds),
        .fractions = calloc((size_t)n, sizeof *t.fractions),
    };
    bool ok = t.seconds && t.fractions;
    if (!ok)
        err_no_memory(e);
    ok = ok && measure(b, test, c, &t, e);
    if (ok) {
        const double seconds = median(t.seconds, n); /* sorts, and what follows counts on it */
        *result = (struct bench_result){
            .test = *test,
            .rate = test->n / seconds,
            .least = test->n / t.seconds[n - 1],
            .most = test->n / t.seconds[0],
            .fraction = median(t.fractions, n),
            .limits = t.best,
        };
    }
    result->test.n_threads = compute_n_threads(c);
    free(t.seconds);
    free(t.fractions);
    return ok;
}
