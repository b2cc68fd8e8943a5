/*
 * The limits of the machine are taken right before and right after what stands against them, the
 * better of both, because a machine that others use too changes its mind. What a limit allows is
 * the longer of two times: to read what has to be read, and to do the arithmetic with the fastest
 * dots that the form of the weights admits.
 */
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>

#include "cli/run.h"
#include "cli/terminal.h"
#include "models/work.h"

enum { WARM_STEPS = 16 };

static struct session_params params_of(const struct bench *b, const struct bench_test *test)
{
    const int most = test->is_prompt && test->n > test->depth ? test->n : test->depth;
    return (struct session_params){
        .n_context = test->depth + test->n,
        .n_batch = most < RUN_BATCH ? most : RUN_BATCH,
        .n_rows = 1,
        .n_threads = test->n_threads,
        .kv = b->kv,
    };
}

bool bench_check(const struct bench *b, const struct bench_test *test, struct err *e)
{
    const struct session_params params = params_of(b, test);
    struct session_bytes unused;
    return session_measure(b->model, &params, &unused, e);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The text up to the test's depth; that part of it which a rewound session has lost. */
static bool fill(const struct bench *b, const struct bench_test *test, struct session *s,
                 struct err *e)
{
    if (!session_rewind(s, test->depth < session_position(s) ? test->depth : 0))
        session_rewind(s, 0);
    const int there = session_position(s);
    return there == test->depth ||
           session_prompt(s, b->ids + there, test->depth - there, e) != NULL;
}

static bool run_tokens(const struct bench *b, const struct bench_test *test, int n,
                       struct session *s, double *seconds, struct err *e)
{
    if (!fill(b, test, s, e))
        return false;
    const int32_t *ids = b->ids + test->depth;
    const double began = terminal_clock();
    bool ok = true;
    if (test->is_prompt)
        ok = session_prompt(s, ids, n, e) != NULL;
    for (int i = 0; ok && !test->is_prompt && i < n; i++)
        ok = session_step(s, ids[i], e) != NULL;
    *seconds = terminal_clock() - began;
    return ok;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorted seconds of each run. */
static bool time_runs(const struct bench *b, const struct bench_test *test, struct session *s,
                      double *seconds, struct err *e)
{
    const int warm = test->is_prompt || test->n < WARM_STEPS ? test->n : WARM_STEPS;
    session_expect(s, test->depth + test->n);
    bool ok = run_tokens(b, test, warm, s, seconds, e);
    for (int i = 0; ok && i < b->n_repetitions; i++)
        ok = run_tokens(b, test, test->n, s, &seconds[i], e);
    qsort(seconds, (size_t)b->n_repetitions, sizeof *seconds, compare);
    return ok;
}

static double median(const double *sorted, int n)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* What the cache takes for a position, from what it takes for as many as may share a page. */
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
static void add_pass(const struct model *m, int position, int n, struct work *total)
{
    struct work w;
    work_of_pass(m, position, n, &w);
    total->weight_bytes += w.weight_bytes;
    total->kv_positions += w.kv_positions;
    for (int form = 0; form < N_WORK_FORMS; form++)
        total->operations[form] += w.operations[form];
}

/* The seconds that the limits leave for the test. */
static double least_seconds(const struct bench *b, const struct bench_test *test,
                            const struct machine_limits *limits)
{
    const struct session_params params = params_of(b, test);
    const double speed[N_WORK_FORMS] = {
        [WORK_F32] = limits->f32_per_s,
        [WORK_BF16] = fmax(limits->f32_per_s, limits->bf16_per_s),
        [WORK_INT8] = fmax(limits->f32_per_s, limits->int8_per_s),
    };
    struct work work = {.weight_bytes = 0};
    double arithmetic = 0;
    if (test->is_prompt)
        add_pass(b->model, test->depth, test->n, &work);
    for (int i = 0; !test->is_prompt && i < test->n; i++)
        add_pass(b->model, test->depth + i, 1, &work);
    for (int form = 0; form < N_WORK_FORMS; form++)
        arithmetic += work.operations[form] / speed[form];
    const double bytes = work.weight_bytes + work.kv_positions * kv_bytes(b->model, &params);
    return fmax(bytes / limits->read_bytes_per_s, arithmetic);
}

static bool measure(const struct bench *b, const struct bench_test *test, struct compute *c,
                    double *seconds, struct machine_limits *limits, struct err *e)
{
    const struct session_params params = params_of(b, test);
    struct session *s = session_new(b->model, c, &params, e);
    if (s == NULL)
        return false;
    machine_measure(b->machine, c, limits);
    const bool ok = time_runs(b, test, s, seconds, e);
    machine_measure(b->machine, c, limits);
    session_free(s);
    return ok;
}

bool bench_measure(const struct bench *b, const struct bench_test *test, struct compute *c,
                   struct bench_result *result, struct err *e)
{
    struct machine_limits limits = {.read_bytes_per_s = 0};
    const int n = b->n_repetitions;
    double *seconds = calloc((size_t)n, sizeof *seconds);
    if (seconds == NULL)
        return err_no_memory(e);
    const bool ok = measure(b, test, c, seconds, &limits, e);
    if (ok) {
        *result = (struct bench_result){
            .test = *test,
            .rate = test->n / median(seconds, n),
            .least = test->n / seconds[n - 1],
            .most = test->n / seconds[0],
            .fraction = least_seconds(b, test, &limits) / median(seconds, n),
            .limits = limits,
        };
    }
    result->test.n_threads = compute_n_threads(c);
    free(seconds);
    return ok;
}
