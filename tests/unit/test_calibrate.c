/*
 * What a calibration gathers against the same sums in double, for the one input that is easily had
 * from the tensors: what the first layer's queries are made from. And that it does not depend on
 * threads, and ends when it is told to.
 */
#include "tests/check.h"

#include "core/kernels/kernels.h"
#include "core/quantize.h"
#include "models/calibrate.h"
#include "models/session.h"

#include <math.h>
#include <stdlib.h>

enum { HIDDEN = 48, N_IDS = 7 };

static const char dir[] = "tests/golden/llama-bf16_shards";

struct opened {
    struct checkpoint *checkpoint;
    struct model *model;
    struct compute *compute;
};

static struct opened open_all(int n_threads)
{
    struct err e;
    struct opened o = {.checkpoint = checkpoint_open(dir, &e)};
    o.model = o.checkpoint ? model_open(o.checkpoint, &e) : NULL;
    o.compute = o.model ? compute_open(n_threads, NULL, &e) : NULL;
    if (!o.compute)
        fail_msg("%s", e.text);
    return o;
}

static void close_all(struct opened *o)
{
    compute_close(o->compute);
    model_close(o->model);
    checkpoint_close(o->checkpoint);
}

/* Row `row` of a tensor of HIDDEN columns. */
static void read_row(const struct opened *o, const char *name, int32_t row, float *out)
{
    const struct tensor *const t = checkpoint_tensor(o->checkpoint, name);
    assert_non_null(t);
    const size_t at = (size_t)row * HIDDEN * dtype_size(t->dtype);
    kernels_for("scalar")->to_f32[t->dtype](out, (const unsigned char *)t->data + at, HIDDEN);
}

/* sums += x xT for x = norm(embedding[id]). */
static void add_expected(const struct opened *o, int32_t id, double sums[HIDDEN][HIDDEN])
{
    float x[HIDDEN], weight[HIDDEN];
    double square = 0, normed[HIDDEN];
    read_row(o, "model.embed_tokens.weight", id, x);
    read_row(o, "model.layers.0.input_layernorm.weight", 0, weight);
    for (int i = 0; i < HIDDEN; i++)
        square += (double)x[i] * (double)x[i];
    for (int i = 0; i < HIDDEN; i++)
        normed[i] = (double)x[i] / sqrt(square / HIDDEN + 1e-5) * (double)weight[i];
    for (int i = 0; i < HIDDEN; i++)
        for (int j = 0; j < HIDDEN; j++)
            sums[i][j] += normed[i] * normed[j];
}

/* Two passes of up to four tokens. */
static void test_sums(void **state)
{
    static const int32_t ids[N_IDS] = {1, 17, 3, 99, 17, 40, 127};
    double sums[HIDDEN][HIDDEN] = {{0}}, trace = 0;
    struct opened o = open_all(3);
    struct err e;
    (void)state;
    struct moments *const moments = moments_new(o.model, 4, &e);
    const struct session_params params = {
        .n_context = 16, .n_batch = 4, .precision = PRECISION_F32, .moments = moments};
    struct session *const s = session_new(o.model, o.compute, &params, &e);
    assert_true(moments && s && session_prompt(s, ids, N_IDS, &e));
    moments_factor(moments, o.compute);
    const float *const l = moments_factors(moments, ROLE_KEY, 0);
    assert_non_null(l);
    for (int i = 0; i < N_IDS; i++)
        add_expected(&o, ids[i], sums);
    for (int i = 0; i < HIDDEN; i++)
        trace += sums[i][i];
    for (int i = 0; i < HIDDEN; i++)
        for (int j = 0; j < HIDDEN; j++) {
            double found = i == j ? -0.01 * trace / HIDDEN : 0;
            for (int k = i > j ? i : j; k < HIDDEN; k++)
                found += (double)l[k * HIDDEN + i] * (double)l[k * HIDDEN + j];
            assert_true(fabs(found - sums[i][j]) <= 1e-5 * trace);
        }
    assert_null(moments_factors(moments, ROLE_ROUTER, 0));
    session_free(s);
    moments_free(moments);
    close_all(&o);
}

/* The factors of a role in the last layer, after a whole calibration; a copy. */
static float *calibrated(int n_threads, enum role role, size_t n_in)
{
    struct opened o = open_all(n_threads);
    struct err e;
    size_t done = 0, total = 1;
    struct calibrate *const x = calibrate_begin(o.model, o.compute, NULL, &e);
    assert_non_null(x);
    while (done < total)
        assert_true(calibrate_step(x, &done, &total, &e));
    const size_t n_bytes = n_in * quantize_block(n_in) * sizeof(float);
    float *const copy = malloc(n_bytes);
    const float *const factors = moments_factors(calibrate_finish(x), role, 2);
    assert_true(copy && factors);
    memcpy(copy, factors, n_bytes);
    calibrate_free(x);
    close_all(&o);
    return copy;
}

static void test_threads(void **state)
{
    static const struct {
        enum role role;
        size_t n_in;
    } cases[] = {{ROLE_DOWN, 96}, {ROLE_HEAD, HIDDEN}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        float *const one = calibrated(1, cases[i].role, cases[i].n_in);
        float *const three = calibrated(3, cases[i].role, cases[i].n_in);
        assert_memory_equal(one, three, cases[i].n_in * cases[i].n_in * sizeof *one);
        assert_true(one[0] > 0);
        free(one);
        free(three);
    }
}

static void test_stop(void **state)
{
    atomic_int stop = 0;
    struct opened o = open_all(2);
    struct err e = {0};
    size_t done = 0, total = 0;
    (void)state;
    struct calibrate *const x = calibrate_begin(o.model, o.compute, &stop, &e);
    assert_true(x && calibrate_step(x, &done, &total, &e));
    assert_true(done > 0 && done < total);
    stop = 1;
    assert_false(calibrate_step(x, &done, &total, &e));
    assert_int_equal(e.code, ERR_INTERRUPTED);
    calibrate_free(x);
    close_all(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests_name("calibrate", tests, NULL, NULL);
}
