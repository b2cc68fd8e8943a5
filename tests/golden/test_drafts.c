/*
 * Guesses change the speed of a text, never the text: what a generator gives is compared, token by
 * token, with a session that is asked for one token after the other; greedy and sampled, with
 * penalties, for any number of guesses and threads, up to the last position of the context, for
 * every kind of model in tests/golden.
 */
#include "tests/golden/list.h"

#include "models/generator.h"

enum { N_ANSWER = 32, PIECE = 5 };

static const struct sample_params samplings[] = {
    {.top_p = 1, .typical_p = 1, .repetition_penalty = 1},
    {.temperature = 0.3f,
     .top_k = 20,
     .top_p = 0.9f,
     .typical_p = 1,
     .repetition_penalty = 1,
     .seed = 5},
    {.temperature = 1,
     .top_p = 1,
     .typical_p = 1,
     .repetition_penalty = 1.2f,
     .frequency_penalty = 0.1f,
     .repeat_last_n = 7,
     .seed = 6},
};

static const struct {
    int draft, n_threads;
} cases[] = {{0, 1}, {1, 1}, {2, 1}, {5, 3}, {GENERATOR_MOST_DRAFT, 2}, {GENERATOR_DRAFT_AUTO, 1}};

static struct generator_counts total; /* of all models' greedy texts */

struct text {
    int32_t id[GOLDEN_MAX_IDS];
    int n_prompt, n;
};

struct timeline {
    struct checkpoint *checkpoint;
    struct model *model;
    struct compute *compute;
    struct session *session;
    struct sampler *sampler;
};

static void close_model(struct timeline *t)
{
    model_close(t->model);
    checkpoint_close(t->checkpoint);
}

/* The context is as long as the text, and a pass as wide as the guesses need. */
static void start(struct timeline *t, const struct text *text, const struct sample_params *sampling,
                  int n_threads, int draft)
{
    struct err e;
    const int n_rows = generator_n_rows(draft);
    const struct session_params params = {
        .n_context = text->n, .n_batch = n_rows, .n_rows = n_rows, .n_threads = n_threads};
    t->compute = compute_open(n_threads, NULL, &e);
    assert_non_null(t->compute);
    t->session = session_new(t->model, t->compute, &params, &e);
    assert_non_null(t->session);
    t->sampler = sampler_new(sampling, model_info(t->model)->vocab_size, text->n, &e);
    assert_non_null(t->sampler);
    session_expect(t->session, text->n_prompt);
}

static void stop(struct timeline *t)
{
    sampler_free(t->sampler);
    session_free(t->session);
    compute_close(t->compute);
}

/* Fills in text->id behind the prompt, in the plain way. */
static void answer_plainly(struct timeline *t, struct text *text,
                           const struct sample_params *sampling)
{
    struct err e;
    start(t, text, sampling, 1, 0);
    const float *logits = session_prompt(t->session, text->id, text->n_prompt, &e);
    for (int i = 0; i < text->n_prompt; i++)
        sampler_accept(t->sampler, text->id[i]);
    for (int i = text->n_prompt; i < text->n; i++) {
        assert_non_null(logits);
        text->id[i] = sampler_next(t->sampler, logits, (uint64_t)i);
        sampler_accept(t->sampler, text->id[i]);
        logits = session_step(t->session, text->id[i], &e);
    }
    stop(t);
}

static struct generator_counts check_drafts(struct timeline *t, const struct text *text,
                                            const struct sample_params *sampling, int n_threads,
                                            int draft)
{
    struct err e;
    const struct generator_params params = {
        .n_vocab = model_info(t->model)->vocab_size, .n_context = text->n, .draft = draft};
    start(t, text, sampling, n_threads, draft);
    struct generator *const g = generator_new(t->session, t->sampler, &params, &e);
    assert_non_null(g);
    for (int i = 0; i < text->n_prompt; i += PIECE)
        assert_true(generator_prompt(g, text->id + i, min_int(PIECE, text->n_prompt - i), &e));
    for (int i = text->n_prompt; i < text->n; i++) {
        int32_t id;
        if (!generator_next(g, text->n - i, &id, &e))
            fail_msg("%s", e.text);
        if (id != text->id[i])
            fail_msg("%d guesses, %d threads: token %d is %d, not %d", draft, n_threads, i, id,
                     text->id[i]);
    }
    const struct generator_counts counts = generator_counts(g);
    /* A pass gives one token and what was accepted; the first token needs none. */
    assert_int_equal(counts.n_passes + counts.n_accepted, text->n - text->n_prompt - 1);
    assert_true(counts.n_accepted <= counts.n_drafted);
    generator_free(g);
    stop(t);
    return counts;
}

/* A prompt that repeats itself. */
static struct text read_prompt(const char *dir, const struct model *m)
{
    struct json *const expected = golden_read_json(dir, "expected.json");
    const struct golden_ids ids = golden_read_ids(json_get(json_get(expected, "greedy"), "prompt"));
    struct text text = {.n_prompt = 0};
    const int most = model_info(m)->max_positions;
    while (text.n_prompt < 2 * ids.n && text.n_prompt < most / 2) {
        text.id[text.n_prompt] = ids.id[text.n_prompt % ids.n];
        text.n_prompt++;
    }
    text.n = min_int(text.n_prompt + N_ANSWER, most);
    json_free(expected);
    return text;
}

static void test_same_text(void **state)
{
    struct timeline t = {.model = NULL};
    t.model = golden_open_model(*state, &t.checkpoint);
    struct text text = read_prompt(*state, t.model);
    for (size_t s = 0; s < ARRAY_LEN(samplings); s++) {
        answer_plainly(&t, &text, &samplings[s]);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            const struct generator_counts counts =
                check_drafts(&t, &text, &samplings[s], cases[i].n_threads, cases[i].draft);
            assert_true(cases[i].draft != 0 || counts.n_drafted == 0);
            total.n_passes += counts.n_passes;
            total.n_drafted += counts.n_drafted;
            total.n_accepted += counts.n_accepted;
        }
    }
    close_model(&t);
}

/* The tests above have seen guesses come true and fail in numbers. */
static void test_guesses_were_made(void **state)
{
    (void)state;
    print_message("%zu passes, %zu of %zu guesses right\n", total.n_passes, total.n_accepted,
                  total.n_drafted);
    assert_true(total.n_accepted > 1000);
    assert_true(total.n_drafted - total.n_accepted > 1000);
}

/* A model whose rotation follows the length of the text takes tokens one by one where that would
 * show; elsewhere it does as others do. */
static void test_growing_rotation(void **state)
{
    (void)state;
    static const struct {
        const char *dir;
        int n_prompt, n;
        bool drafts;
    } texts[] = {{"tests/golden/llama-rope_dynamic_growing", 30, 96, false}, /* grows from 24 on */
                 {"tests/golden/llama-rope_dynamic_growing", 12, 24, true},
                 {"tests/golden/llama-rope_dynamic_growing", 12, 96, true},
                 {"tests/golden/llama-rope_longrope", 20, 38, true}, /* another one from 38 on */
                 {"tests/golden/llama-rope_longrope", 30, 100, true},
                 {"tests/golden/llama-rope_longrope", 60, 100, true}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct timeline t = {.model = NULL};
        struct text text = {.n_prompt = texts[i].n_prompt, .n = texts[i].n};
        t.model = golden_open_model(texts[i].dir, &t.checkpoint);
        for (int at = 0; at < text.n_prompt; at++)
            text.id[at] = 3 + at % 6;
        answer_plainly(&t, &text, &samplings[0]);
        const struct generator_counts counts = check_drafts(&t, &text, &samplings[0], 2, 8);
        assert_int_equal(counts.n_drafted > 0, texts[i].drafts);
        close_model(&t);
    }
}

/* ---- the list of tests ----------------------------------------------------------------------- */

static void add_dir(const char *dir)
{
    list_add("the same text", dir, test_same_text);
}

int main(void)
{
    list_walk("tests/golden", "expected.json", add_dir);
    list_walk("tests/golden/quantised", "expected.json", add_dir);
    list_add("guesses were made", "", test_guesses_were_made);
    list_add("growing rotation", "", test_growing_rotation);
    return list_run("drafts");
}
