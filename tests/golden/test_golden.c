/*
 * Models against what their original definitions compute (float64 logits, see README.md), at every
 * kernel level of this machine; and the promise that a result depends neither on threads nor on how
 * a prompt is cut, bit for bit.
 *
 * Walks tests/golden/ and, where it is there, the whole set in ../shared/golden.
 */
#include "tests/golden/list.h"

#include "core/kernels/kernels.h"
#include "models/export.h"
#include "models/family.h"
#include "models/session.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

struct opened {
    struct checkpoint *checkpoint;
    struct model *model;
    struct json *expected;
    enum precision precision;
};

static struct opened open_dir(const char *dir)
{
    struct opened o = {.precision = PRECISION_F32};
    o.model = golden_open_model(dir, &o.checkpoint);
    o.expected = golden_read_json(dir, "expected.json");
    return o;
}

static void close_dir(struct opened *o)
{
    json_free(o->expected);
    model_close(o->model);
    checkpoint_close(o->checkpoint);
}

static struct compute *open_compute(int n_threads, const char *level)
{
    struct err e;
    struct compute *const c = compute_open(n_threads, level, &e);
    if (!c)
        fail_msg("%s", e.text);
    return c;
}

static struct session *open_session(const struct opened *o, struct compute *c, int n_context,
                                    int n_batch, int n_rows)
{
    struct err e;
    const struct session_params params = {
        .n_context = n_context, .n_batch = n_batch, .n_rows = n_rows, .precision = o->precision};
    struct session *const s = session_new(o->model, c, &params, &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

static size_t n_vocab(const struct opened *o)
{
    return (size_t)model_info(o->model)->vocab_size;
}

/* Logits of all of the ids in one piece, [n, vocab], in malloc'ed memory. */
static float *score(const struct opened *o, struct compute *c, const struct golden_ids *ids,
                    int n_batch)
{
    struct err e;
    struct session *const s = open_session(o, c, ids->n, n_batch, ids->n);
    const size_t n_bytes = (size_t)ids->n * n_vocab(o) * sizeof(float);
    const float *const logits = session_score(s, ids->id, ids->n, &e);
    if (!logits)
        fail_msg("%s", e.text);
    float *const copy = malloc(n_bytes);
    assert_non_null(copy);
    memcpy(copy, logits, n_bytes);
    session_free(s);
    return copy;
}

/* The same, a token at a time. */
static float *score_stepwise(const struct opened *o, struct compute *c,
                             const struct golden_ids *ids)
{
    struct err e;
    struct session *const s = open_session(o, c, ids->n, 1, 1);
    session_expect(s, ids->n);
    float *const all = malloc((size_t)ids->n * n_vocab(o) * sizeof(float));
    assert_non_null(all);
    for (int i = 0; i < ids->n; i++) {
        const float *const logits = session_step(s, ids->id[i], &e);
        if (!logits)
            fail_msg("%s", e.text);
        memcpy(all + (size_t)i * n_vocab(o), logits, n_vocab(o) * sizeof(float));
    }
    session_free(s);
    return all;
}

/* Sanitizers take their time: the definition and what users get is enough for them. */
static bool is_tested(const char *level)
{
    const struct kernels *const k = kernels_for(level);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return k && (k == kernels_best() || k == kernels_for("scalar"));
#else
    return k != NULL;
#endif
}

static void check_logits(const float *found, const unsigned char *expected, size_t n,
                         const char *what)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        float reference;
        memcpy(&reference, expected + i * sizeof reference, sizeof reference);
        assert_true(isfinite(found[i]));
        largest = fmax(largest, fabs(reference));
        worst = fmax(worst, fabs((double)found[i] - reference));
    }
    if (!(worst <= 1e-4 * largest))
        fail_msg("%s: logits are off by %g, the largest is %g", what, worst, largest);
}

static void test_logits(void **state)
{
    const char *const dir = *state;
    struct opened o = open_dir(dir);
    for (int i = 0; kernels_levels[i]; i++) {
        if (!is_tested(kernels_levels[i]))
            continue;
        struct compute *const c = open_compute(2, kernels_levels[i]);
        const struct json *sequence = json_first(json_get(o.expected, "sequences"));
        assert_non_null(sequence);
        for (; sequence; sequence = json_next(sequence)) {
            const struct golden_ids ids = golden_read_ids(json_get(sequence, "ids"));
            const char *const file = json_text(json_get(sequence, "logits_f32_file"), "");
            struct bytes expected = golden_map(dir, file);
            const size_t n = (size_t)ids.n * n_vocab(&o);
            assert_int_equal(expected.size, n * sizeof(float));
            float *const found = score(&o, c, &ids, ids.n);
            check_logits(found, expected.data, n, kernels_levels[i]);
            free(found);
            file_unmap(expected);
        }
        compute_close(c);
    }
    close_dir(&o);
}

static void test_greedy(void **state)
{
    struct err e;
    struct opened o = open_dir(*state);
    const struct json *const greedy = json_get(o.expected, "greedy");
    const struct golden_ids prompt = golden_read_ids(json_get(greedy, "prompt"));
    const struct golden_ids expected = golden_read_ids(json_get(greedy, "ids"));
    for (int level = 0; kernels_levels[level]; level++) {
        if (!is_tested(kernels_levels[level]))
            continue;
        struct compute *const c = open_compute(1, kernels_levels[level]);
        struct session *const s = open_session(&o, c, prompt.n + expected.n, prompt.n, 1);
        const float *logits = session_prompt(s, prompt.id, prompt.n, &e);
        for (int i = 0; i < expected.n; i++) {
            assert_non_null(logits);
            assert_int_equal(golden_largest(logits, n_vocab(&o)), expected.id[i]);
            logits = session_step(s, expected.id[i], &e);
        }
        session_free(s);
        compute_close(c);
    }
    close_dir(&o);
}

static void check_same(const float *found, const float *expected, size_t n, const char *level,
                       const char *what, int n_threads)
{
    if (memcmp(found, expected, n * sizeof *found) != 0)
        fail_msg("%s: %d threads, %s", level, n_threads, what);
}

/* One thread and one piece is the measure for other numbers of threads and sizes of pieces. */
static void check_pieces(const struct opened *o, const struct golden_ids *ids, const char *level)
{
    static const struct {
        int n_threads, piece;
    } cases[] = {{1, 7}, {2, 1}, {2, GOLDEN_MAX_IDS}, {3, 3}};
    const size_t n = (size_t)ids->n * n_vocab(o);
    struct compute *const one = open_compute(1, level);
    float *const expected = score(o, one, ids, ids->n);
    compute_close(one);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct compute *const c = open_compute(cases[i].n_threads, level);
        float *const found = score(o, c, ids, cases[i].piece);
        check_same(found, expected, n, level, "in pieces", cases[i].n_threads);
        free(found);
        compute_close(c);
    }
    free(expected);
}

/* The same for single steps. */
static void check_steps(const struct opened *o, const struct golden_ids *ids, const char *level)
{
    struct compute *const c = open_compute(2, level);
    float *const expected = score(o, c, ids, ids->n);
    float *const found = score_stepwise(o, c, ids);
    check_same(found, expected, (size_t)ids->n * n_vocab(o), level, "token by token", 2);
    free(found);
    free(expected);
    compute_close(c);
}

/* Where a rounding chooses other experts, no bound holds. */
static bool has_experts(const struct opened *o)
{
    int n;
    const struct model_fact *const facts = model_facts(o->model, &n);
    for (int i = 0; i < n; i++)
        if (strstr(facts[i].key, "experts"))
            return true;
    return false;
}

/* Activations that are rounded, to bf16 or int8, change the logits by what rounding explains: these
 * are tiny models of random weights, in which few errors cancel. One, with a single group to a row,
 * changes by 0.12; test_quant holds its kind of products to the same sums as others'. */
static void check_rounding(struct opened *o, const struct golden_ids *ids, const char *level)
{
    struct compute *const c = open_compute(2, level);
    const size_t n = (size_t)ids->n * n_vocab(o);
    const double limit = strstr(checkpoint_dir(o->checkpoint), "gptq-v2") ? 0.13 : 0.1;
    double error = 0, size = 0;
    o->precision = PRECISION_F32;
    float *const exact = score(o, c, ids, ids->n);
    o->precision = PRECISION_AUTO;
    float *const rounded = score(o, c, ids, ids->n);
    for (size_t i = 0; i < n; i++) {
        error += pow((double)rounded[i] - (double)exact[i], 2);
        size += pow((double)exact[i], 2);
    }
    if (!(sqrt(error) <= limit * sqrt(size)))
        fail_msg("%s: rounding changes logits by %g of their size", level, sqrt(error / size));
    free(exact);
    free(rounded);
    compute_close(c);
}

static void test_invariance(void **state)
{
    struct opened o = open_dir(*state);
    const struct json *const sequence = json_first(json_get(o.expected, "sequences"));
    const struct golden_ids ids = golden_read_ids(json_get(json_next(sequence), "ids"));
    for (int level = 0; kernels_levels[level]; level++) {
        if (!is_tested(kernels_levels[level]))
            continue;
        o.precision = PRECISION_F32;
        check_pieces(&o, &ids, kernels_levels[level]);
        o.precision = PRECISION_AUTO;
        check_pieces(&o, &ids, kernels_levels[level]);
        check_steps(&o, &ids, kernels_levels[level]);
        if (!has_experts(&o))
            check_rounding(&o, &ids, kernels_levels[level]);
    }
    close_dir(&o);
}

/* Going back and on again gives what going on at once gave. */
static void test_rewind(void **state)
{
    struct err e;
    struct opened o = open_dir(*state);
    const struct golden_ids ids =
        golden_read_ids(json_get(json_get(o.expected, "greedy"), "prompt"));
    struct compute *const c = open_compute(1, NULL);
    struct session *const s = open_session(&o, c, ids.n, ids.n, 1);
    const size_t n_bytes = n_vocab(&o) * sizeof(float);
    float *const first = malloc(n_bytes);
    assert_non_null(first);
    memcpy(first, session_prompt(s, ids.id, ids.n, &e), n_bytes);
    assert_null(session_step(s, 0, &e));
    assert_int_equal(e.code, ERR_CONTEXT);
    assert_true(session_rewind(s, ids.n / 2));
    assert_int_equal(session_position(s), ids.n / 2);
    const float *const again = session_prompt(s, ids.id + ids.n / 2, ids.n - ids.n / 2, &e);
    assert_non_null(again);
    assert_memory_equal(first, again, n_bytes);
    assert_true(session_rewind(s, 0));
    const int32_t outside = (int32_t)n_vocab(&o);
    assert_null(session_step(s, outside, &e));
    assert_int_equal(session_position(s), 0);
    free(first);
    session_free(s);
    compute_close(c);
    close_dir(&o);
}

/* ---- weights in 8 and 4 bits ----------------------------------------------------------------- */

/* How far the logits may move, relative rms: these miniatures are noise, which nothing averages
 * out, and their rows are too short for a group; a router may choose another expert. Uncorrelated
 * logits would be 1.4 off. The middle is the geometric mean of all miniatures, which moves less
 * than one of them. */
static const struct {
    enum model_weights weights;
    double dense, experts, middle;
} quantised_limits[] = {{MODEL_Q8, 0.12, 0.4, 0.035}, {MODEL_Q4, 0.7, 0.9, 0.28}};

static double quantised_logs[ARRAY_LEN(quantised_limits)];
static int n_quantised[ARRAY_LEN(quantised_limits)];

/* The logits of a fresh model that is quantised, unless it is to be as stored, and run by n_threads
 * with kernels of a level, NULL: the best. */
static float *score_quantised(const char *dir, enum model_weights weights, int n_threads,
                              const char *level, const struct golden_ids *ids)
{
    struct err e;
    struct opened o = {.precision = PRECISION_AUTO};
    o.model = golden_open_model(dir, &o.checkpoint);
    struct compute *const c = open_compute(n_threads, level);
    size_t done = 0, total = 0;
    if (!model_quantize_measure(o.model, weights, c, &total, &e))
        fail_msg("%s", e.text);
    if (total && !model_quantize_begin(o.model, weights, c, &e))
        fail_msg("%s", e.text);
    while (done < total)
        assert_true(model_quantize_step(o.model, c, &done, &total, &e));
    float *const logits = score(&o, c, ids, ids->n);
    compute_close(c);
    close_dir(&o);
    return logits;
}

/* A directory that `tgen quantize` writes: true where all was quantised that -w would quantise.
 * NULL in *out where the model has no such form. */
static bool export_dir(const struct opened *o, enum model_weights weights, char **out)
{
    static char path[64];
    struct err e;
    size_t done = 0, total = 1;
    struct compute *const c = open_compute(2, NULL);
    snprintf(path, sizeof path, "/tmp/tgen_export_%ld", (long)getpid());
    struct exporter *const x = export_begin(o->model, weights, path, &e);
    *out = x ? path : NULL;
    if (!x && e.code != ERR_LOAD)
        fail_msg("%s", e.text);
    while (x && done < total)
        if (!export_step(x, c, &done, &total, &e))
            fail_msg("%s", e.text);
    if (x && !export_finish(x, &e))
        fail_msg("%s", e.text);
    const bool whole = x && export_result(x)->n_others == 0;
    export_free(x);
    compute_close(c);
    return whole;
}

static void remove_dir(const char *path)
{
    DIR *const dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

/* A level at which -w weaves weights, beside the best one; no directory is woven but with -w. */
static const char *woven_level(void)
{
    const struct kernels *const avx2 = kernels_for("avx2");
    return avx2 && avx2 != kernels_best() ? "avx2" : NULL;
}

/* What is written and opened again computes what -w computes, bit for bit, with and without -w. */
static void test_exported(void **state)
{
    const char *const levels[] = {NULL, woven_level()};
    const char *const dir = *state;
    struct opened o = open_dir(dir);
    const struct json *const sequence = json_first(json_get(o.expected, "sequences"));
    const struct golden_ids ids = golden_read_ids(json_get(sequence, "ids"));
    for (int weights = MODEL_Q8; weights <= MODEL_Q4; weights++) {
        char *path;
        const bool whole = export_dir(&o, (enum model_weights)weights, &path);
        if (!path)
            continue;
        for (size_t i = 0; i < (levels[1] ? 2 : 1); i++) {
            float *const found = score_quantised(path, MODEL_STORED, 2, levels[i], &ids);
            float *const expected =
                score_quantised(dir, (enum model_weights)weights, 1, levels[i], &ids);
            float *const woven =
                score_quantised(path, (enum model_weights)weights, 3, levels[i], &ids);
            if (whole) {
                check_same(found, expected, (size_t)ids.n * n_vocab(&o), "exported", path, weights);
                check_same(woven, expected, (size_t)ids.n * n_vocab(&o), "woven", path, weights);
            }
            free(found);
            free(woven);
            free(expected);
        }
        remove_dir(path);
    }
    close_dir(&o);
}

static double relative_rms(const float *found, const unsigned char *expected, size_t n)
{
    double squares = 0, reference_squares = 0;
    for (size_t i = 0; i < n; i++) {
        float reference;
        memcpy(&reference, expected + i * sizeof reference, sizeof reference);
        squares += pow((double)found[i] - (double)reference, 2);
        reference_squares += pow((double)reference, 2);
    }
    return sqrt(squares / reference_squares);
}

static void test_quantised(void **state)
{
    const char *const dir = *state;
    struct opened o = open_dir(dir);
    const struct json *const sequence = json_first(json_get(o.expected, "sequences"));
    const struct golden_ids ids = golden_read_ids(json_get(sequence, "ids"));
    const struct bytes expected =
        golden_map(dir, json_text(json_get(sequence, "logits_f32_file"), ""));
    const size_t n = (size_t)ids.n * n_vocab(&o);
    const bool experts = has_experts(&o);
    for (size_t i = 0; i < ARRAY_LEN(quantised_limits); i++) {
        const double limit = experts ? quantised_limits[i].experts : quantised_limits[i].dense;
        float *const one = score_quantised(dir, quantised_limits[i].weights, 1, NULL, &ids);
        float *const three = score_quantised(dir, quantised_limits[i].weights, 3, NULL, &ids);
        check_same(three, one, n, "quantised", "at once", 3);
        const double off = relative_rms(one, expected.data, n);
        if (!(off <= limit))
            fail_msg("%d: logits are off by %g, relative rms", (int)i, off);
        quantised_logs[i] += log(fmax(off, 1e-9));
        n_quantised[i]++;
        free(one);
        free(three);
    }
    file_unmap(expected);
    close_dir(&o);
}

static void test_quantised_middle(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(quantised_limits); i++) {
        const double middle = exp(quantised_logs[i] / n_quantised[i]);
        if (!(middle <= quantised_limits[i].middle))
            fail_msg("%d: logits are off by %g in the middle", (int)i, middle);
    }
}

/* ---- the list of tests ----------------------------------------------------------------------- */

/* True where the directory is a causal model of a family that is in the table. */
static bool is_supported(const char *dir)
{
    struct err e;
    struct json *const expected = golden_read_json(dir, "expected.json");
    const char *const kind = json_text(json_get(expected, "kind"), "causal-lm");
    const bool causal = strcmp(kind, "causal-lm") == 0;
    json_free(expected);
    if (!causal)
        return false;
    struct bytes bytes;
    char *const path = file_join(dir, "config.json");
    bool known = false;
    if (file_exists(path) && file_map(path, &bytes, &e)) {
        struct json *const config = json_parse((const char *)bytes.data, bytes.size, &e);
        const struct json *const text = json_get(config, "text_config");
        const struct json *const type = json_get(text ? text : config, "model_type");
        known = family_find(json_text(type, "")) != NULL;
        json_free(config);
        file_unmap(bytes);
    }
    free(path);
    return known;
}

static int n_left_out;

static void add_dir(const char *dir)
{
    if (!is_supported(dir)) {
        n_left_out++;
        return;
    }
    list_add("logits", dir, test_logits);
    list_add("greedy", dir, test_greedy);
    list_add("invariance", dir, test_invariance);
    list_add("rewind", dir, test_rewind);
    list_add("quantised", dir, test_quantised);
    list_add("exported", dir, test_exported);
}

int main(void)
{
    list_walk("tests/golden", "expected.json", add_dir);
    list_walk("tests/golden/quantised", "expected.json", add_dir);
    list_walk("../shared/golden", "expected.json", add_dir);
    if (n_left_out)
        print_message("SKIP %d directories are of other families\n", n_left_out);
    list_add("quantised", "all", test_quantised_middle);
    return list_run("golden");
}
