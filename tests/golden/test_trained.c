/*
 * Real trained models against independent float64 passes: the bundled model
 * (models/tales/expected.json) and, where it is there, ../shared/checkpoints/stories260K, whose
 * greedy text is also what its own program prints.
 */
#include "tests/golden/golden.h"

#include "core/kernels/kernels.h"
#include "models/session.h"

#include <math.h>

/* One session at one level, with the model open under it. */
struct run {
    struct checkpoint *checkpoint;
    struct model *model;
    struct compute *compute;
    struct session *session;
    size_t n_vocab;
};

static struct run begin(const char *dir, const char *level, int n_context)
{
    struct err e;
    struct run r = {.checkpoint = checkpoint_open(dir, &e)};
    r.model = r.checkpoint ? model_open(r.checkpoint, &e) : NULL;
    r.compute = r.model ? compute_open(2, level, &e) : NULL;
    const struct session_params params = {
        .n_context = n_context, .n_batch = 64, .n_rows = n_context, .precision = PRECISION_F32};
    r.session = r.compute ? session_new(r.model, r.compute, &params, &e) : NULL;
    if (!r.session)
        fail_msg("%s", e.text);
    r.n_vocab = (size_t)model_info(r.model)->vocab_size;
    return r;
}

static void end(struct run *r)
{
    session_free(r->session);
    compute_close(r->compute);
    model_close(r->model);
    checkpoint_close(r->checkpoint);
}

/* `logits` follow the prompt; each next token must be the expected one. */
static void check_greedy(struct run *r, const float *logits, const int32_t *expected, int n)
{
    struct err e;
    for (int i = 0; i < n; i++) {
        assert_non_null(logits);
        assert_int_equal(golden_largest(logits, r->n_vocab), expected[i]);
        logits = i + 1 < n ? session_step(r->session, expected[i], &e) : NULL;
    }
}

/* top5_logits_per_position: [[id, logit], ...] for each token of the prompt, rounded to 4 digits.
 */
static void check_top5(const struct run *r, const struct json *positions, const float *logits)
{
    for (const struct json *p = json_first(positions); p; p = json_next(p)) {
        const struct json *const best = json_first(json_first(p));
        assert_int_equal(golden_largest(logits, r->n_vocab), (int32_t)json_number(best, -1));
        for (const struct json *pair = json_first(p); pair; pair = json_next(pair)) {
            const int id = (int)json_number(json_first(pair), -1);
            const double expected = json_number(json_next(json_first(pair)), NAN);
            assert_true(id >= 0 && (size_t)id < r->n_vocab);
            assert_true(fabs(logits[id] - expected) < 2e-3);
        }
        logits += r->n_vocab;
    }
}

static void test_tales(void **state)
{
    static const char dir[] = "models/tales";
    struct err e;
    (void)state;
    struct json *const cases = golden_read_json(dir, "expected.json");
    for (int level = 0; kernels_levels[level]; level++) {
        if (!kernels_for(kernels_levels[level]))
            continue;
        for (const struct json *j = json_first(cases); j; j = json_next(j)) {
            const struct golden_ids prompt = golden_read_ids(json_get(j, "prompt_ids"));
            const struct golden_ids greedy = golden_read_ids(json_get(j, "greedy_ids"));
            const struct json *const top5 = json_get(j, "top5_logits_per_position");
            struct run r = begin(dir, kernels_levels[level], prompt.n + greedy.n);
            const float *const rows = session_score(r.session, prompt.id, prompt.n, &e);
            assert_non_null(rows);
            assert_int_equal(json_count(top5), prompt.n);
            check_top5(&r, top5, rows);
            check_greedy(&r, rows + (size_t)(prompt.n - 1) * r.n_vocab, greedy.id, greedy.n);
            end(&r);
        }
    }
    json_free(cases);
}

static void test_stories260K(void **state)
{
    static const char dir[] = "../shared/checkpoints/stories260K";
    struct err e;
    (void)state;
    if (!file_is_directory(dir)) {
        print_message("SKIP %s is not there\n", dir);
        skip();
    }
    struct json *const expected = golden_read_json(dir, "expected_greedy.json");
    const struct golden_ids all = golden_read_ids(json_get(expected, "greedy_ids"));
    struct run r = begin(dir, NULL, all.n);
    check_greedy(&r, session_prompt(r.session, all.id, 1, &e), all.id + 1, all.n - 1);
    end(&r);
    json_free(expected);
}

/* All threads leave a stopped pass behind the same layer; where they do not, this hangs. */
static void test_stop(void **state)
{
    (void)state;
    struct err e;
    struct checkpoint *const checkpoint = checkpoint_open("models/tales", &e);
    struct model *const model = model_open(checkpoint, &e);
    assert_non_null(model);
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        static const int32_t ids[] = {1, 2, 3};
        atomic_int stop = 0;
        struct compute *const c = compute_open(n_threads, NULL, &e);
        const struct session_params params = {.n_context = 8, .n_batch = 8, .stop = &stop};
        struct session *const s = session_new(model, c, &params, &e);
        assert_non_null(session_prompt(s, ids, 3, &e));
        stop = 1;
        assert_null(session_prompt(s, ids, 3, &e));
        assert_int_equal(e.code, ERR_INTERRUPTED);
        session_free(s);
        compute_close(c);
    }
    model_close(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tales),
        cmocka_unit_test(test_stories260K),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests_name("trained", tests, NULL, NULL);
}
