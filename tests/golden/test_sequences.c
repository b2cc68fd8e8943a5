/*
 * Many texts in one session: each gets the logits that it gets alone, bit for bit, whichever rows
 * share its passes, whatever it shares with other texts, however often it goes back. Walks
 * tests/golden, whose weights and families are there already, with texts of random ids that are
 * longer than pages and windows.
 */
#include "tests/golden/list.h"

#include "models/session.h"
#include "tests/random.h"

#include <math.h>
#include <stdatomic.h>

enum { N_TEXTS = 7, N_SEQUENCES = 5, MOST = 330, N_BATCH = 48 };

struct text {
    int32_t id[MOST];
    int n;
    int n_like_first; /* ids at the beginning that it has in common with text 0 */
    float *logits;    /* [n, vocab]: of the text alone */
};

struct fixture {
    struct checkpoint *checkpoint;
    struct model *model;
    size_t n_vocab;
    int n_context;
    struct text texts[N_TEXTS];
};

static int random_below(int n)
{
    return (int)(random_bits() % (uint64_t)n);
}

static struct session *open_session(const struct fixture *f, struct compute *c,
                                    const struct session_params *params)
{
    struct err e;
    struct session *const s = session_new(f->model, c, params, &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

/* The text alone, in one piece, by one thread. */
static void score_alone(const struct fixture *f, struct text *t, enum session_kv kv,
                        enum precision precision)
{
    struct err e;
    struct compute *const c = compute_open(1, NULL, &e);
    const struct session_params params = {.n_context = f->n_context,
                                          .n_batch = t->n,
                                          .n_rows = t->n,
                                          .kv = kv,
                                          .precision = precision};
    struct session *const s = open_session(f, c, &params);
    const size_t n_bytes = (size_t)t->n * f->n_vocab * sizeof(float);
    const float *const logits = session_score(s, t->id, t->n, &e);
    if (!logits)
        fail_msg("%s", e.text);
    t->logits = realloc(t->logits, n_bytes);
    assert_non_null(t->logits);
    memcpy(t->logits, logits, n_bytes);
    session_free(s);
    compute_close(c);
}

static struct fixture open_fixture(const char *dir)
{
    struct fixture f = {.n_context = 0};
    f.model = golden_open_model(dir, &f.checkpoint);
    f.n_vocab = (size_t)model_info(f.model)->vocab_size;
    f.n_context = min_int(MOST, model_info(f.model)->max_positions);
    random_state = 7;
    for (int i = 0; i < N_TEXTS; i++) {
        struct text *const t = &f.texts[i];
        t->n = i < 2 ? f.n_context : 1 + random_below(f.n_context);
        t->n_like_first = i == 0       ? t->n
                          : i % 3 == 0 ? 0
                                       : random_below(min_int(t->n, f.texts[0].n));
        for (int k = 0; k < t->n; k++)
            t->id[k] = k < t->n_like_first ? f.texts[0].id[k] : random_below((int)f.n_vocab);
    }
    return f;
}

static void close_fixture(struct fixture *f)
{
    for (int i = 0; i < N_TEXTS; i++)
        free(f->texts[i].logits);
    model_close(f->model);
    checkpoint_close(f->checkpoint);
}

/* ---- at random ------------------------------------------------------------------------------- */

/* Sequence q holds the beginning of text[q]; -1: it is empty. */
struct batch {
    const struct fixture *f;
    struct session *s;
    int text[N_SEQUENCES];
    int longest[N_SEQUENCES]; /* that the text has been, rewinds or not */
    int n_left;               /* texts that have not begun */
    int n_shared;
};

static bool is_done(const struct batch *b, int q)
{
    return b->text[q] >= 0 && session_sequence_position(b->s, q) == b->f->texts[b->text[q]].n;
}

/* The next text takes an empty sequence, with what it can share of a text 0 that is under way. */
static void begin_text(struct batch *b, int q)
{
    const int text = N_TEXTS - b->n_left--;
    b->text[q] = text;
    session_sequence_reset(b->s, q);
    b->longest[q] = 0;
    session_sequence_expect(b->s, q, b->f->texts[text].n);
    for (int from = 0; from < N_SEQUENCES; from++) {
        if (from == q || b->text[from] < 0)
            continue;
        const int alike = b->text[from] == 0 ? b->f->texts[text].n_like_first
                                             : min_int(b->f->texts[text].n_like_first,
                                                       b->f->texts[b->text[from]].n_like_first);
        const int n = min_int(alike, session_sequence_position(b->s, from));
        if (n > 0 && session_share(b->s, from, q, n)) {
            assert_int_equal(session_sequence_position(b->s, q), n);
            b->longest[q] = b->longest[from];
            b->n_shared++;
            return;
        }
        assert_int_equal(session_sequence_position(b->s, q), 0);
    }
}

/* Some rows of some sequences, each in its order; returns how many. */
static int choose_rows(struct batch *b, struct session_row *rows)
{
    int n = 0, next[N_SEQUENCES];
    for (int q = 0; q < N_SEQUENCES; q++)
        next[q] = session_sequence_position(b->s, q);
    for (int tries = 0; tries < 6; tries++) {
        const int q = random_below(N_SEQUENCES);
        if (b->text[q] < 0)
            continue;
        const struct text *const t = &b->f->texts[b->text[q]];
        const int piece = random_below(3) ? 1 : 1 + random_below(30);
        for (int i = 0; i < piece && next[q] < t->n && n < N_BATCH; i++)
            rows[n++] = (struct session_row){
                .id = t->id[next[q]++], .sequence = q, .wants_logits = random_below(4) > 0};
    }
    return n;
}

/* One pass; the logits of each row must be those of the text alone. */
static void run_some(struct batch *b)
{
    struct err e;
    struct session_row rows[N_BATCH];
    int position[N_SEQUENCES];
    const int n = choose_rows(b, rows);
    if (n == 0)
        return;
    for (int q = 0; q < N_SEQUENCES; q++) {
        position[q] = session_sequence_position(b->s, q);
        b->longest[q] = position[q] > 0 ? max_int(b->longest[q], position[q]) : 0;
    }
    const float *logits = session_run(b->s, rows, n, &e);
    if (!logits)
        fail_msg("%s", e.text);
    for (int i = 0; i < n; i++) {
        const int q = rows[i].sequence;
        const size_t at = (size_t)position[q]++;
        b->longest[q] = max_int(b->longest[q], position[q]);
        if (!rows[i].wants_logits)
            continue;
        const struct text *const t = &b->f->texts[b->text[q]];
        if (memcmp(logits, t->logits + at * b->f->n_vocab, b->f->n_vocab * sizeof *logits) != 0)
            fail_msg("text %d differs at %zu from what it is alone", b->text[q], at);
        logits += b->f->n_vocab;
    }
}

static void go_back(struct batch *b)
{
    const int q = random_below(N_SEQUENCES), position = session_sequence_position(b->s, q);
    if (b->text[q] < 0 || position == 0)
        return;
    const int back = random_below(min_int(position, random_below(4) ? 17 : 200)) + 1;
    if (!session_sequence_rewind(b->s, q, position - back))
        assert_true(b->longest[q] - (position - back) > SESSION_REWIND);
}

static void check_batch(const struct fixture *f, int n_threads, enum session_kv kv)
{
    struct err e;
    struct compute *const c = compute_open(n_threads, NULL, &e);
    const struct session_params params = {.n_context = f->n_context,
                                          .n_batch = N_BATCH,
                                          .n_rows = N_BATCH,
                                          .n_sequences = N_SEQUENCES,
                                          .kv = kv};
    struct batch b = {.f = f, .s = open_session(f, c, &params), .n_left = N_TEXTS};
    const int n_pages = session_free_pages(b.s);
    int n_running = 0;
    for (int q = 0; q < N_SEQUENCES; q++)
        b.text[q] = -1;
    random_state = (uint64_t)(100 + n_threads);
    do {
        const int q = random_below(N_SEQUENCES);
        if ((b.text[q] < 0 || is_done(&b, q)) && b.n_left > 0 && random_below(4) == 0)
            begin_text(&b, q);
        run_some(&b);
        if (random_below(6) == 0)
            go_back(&b);
        n_running = 0;
        for (int i = 0; i < N_SEQUENCES; i++)
            n_running += b.text[i] >= 0 && !is_done(&b, i);
    } while (b.n_left > 0 || n_running > 0);
    for (int q = 0; q < N_SEQUENCES; q++)
        session_sequence_reset(b.s, q);
    assert_int_equal(session_free_pages(b.s), n_pages);
    session_free(b.s);
    compute_close(c);
}

static void test_batch(void **state)
{
    struct fixture f = open_fixture(*state);
    static const enum session_kv kvs[] = {SESSION_KV_F32, SESSION_KV_F16, SESSION_KV_Q8};
    for (size_t i = 0; i < ARRAY_LEN(kvs); i++) {
        for (int t = 0; t < N_TEXTS; t++)
            score_alone(&f, &f.texts[t], kvs[i], PRECISION_AUTO);
        check_batch(&f, 1 + (int)i, kvs[i]);
    }
    close_fixture(&f);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Text 0 in each of N_SEQUENCES, n_batch rows to a pass: so many that they are dealt out. Every
 * `each`th row gets logits. */
struct passes {
    int n_threads, each, n_batch;
    enum session_kv kv;
};

static void check_passes(const struct fixture *f, const struct passes *o)
{
    struct err e;
    const struct text *const t = &f->texts[0];
    struct session_row rows[N_SEQUENCES * MOST];
    struct compute *const c = compute_open(o->n_threads, NULL, &e);
    const int n = N_SEQUENCES * t->n, n_batch = min_int(n, o->n_batch);
    const struct session_params params = {.n_context = f->n_context,
                                          .n_batch = n_batch,
                                          .n_rows = n_batch,
                                          .n_sequences = N_SEQUENCES,
                                          .kv = o->kv};
    struct session *const s = open_session(f, c, &params);
    const float *logits = NULL;
    for (int q = 0; q < N_SEQUENCES; q++)
        session_sequence_expect(s, q, t->n);
    for (int i = 0; i < n; i++)
        rows[i] = (struct session_row){
            .id = t->id[i % t->n], .sequence = i / t->n, .wants_logits = i % o->each == 0};
    for (int i = 0; i < n; i++) {
        if (i % n_batch == 0)
            logits = session_run(s, rows + i, min_int(n_batch, n - i), &e);
        if (!logits)
            fail_msg("%s", e.text);
        if (!rows[i].wants_logits)
            continue;
        if (memcmp(logits, t->logits + (size_t)(i % t->n) * f->n_vocab,
                   f->n_vocab * sizeof *logits) != 0)
            fail_msg("row %d of %d, %d to a pass, each %dth: other logits with %d threads", i, n,
                     n_batch, o->each, o->n_threads);
        logits += f->n_vocab;
    }
    session_free(s);
    compute_close(c);
}

/* A pass that is dealt out stops behind a layer, for all workers the same one. */
static void test_stop(void **state)
{
    struct err e = {.code = ERR_NONE};
    struct fixture f = open_fixture(*state);
    const atomic_int stop = 1;
    const struct text *const t = &f.texts[0];
    struct session_row rows[N_SEQUENCES * MOST];
    struct compute *const c = compute_open(2, NULL, &e);
    const int n = N_SEQUENCES * t->n;
    const struct session_params params = {
        .n_context = f.n_context, .n_batch = n, .n_sequences = N_SEQUENCES, .stop = &stop};
    struct session *const s = open_session(&f, c, &params);
    for (int i = 0; i < n; i++)
        rows[i] = (struct session_row){.id = t->id[i % t->n], .sequence = i / t->n};
    assert_null(session_run(s, rows, n, &e));
    assert_int_equal(e.code, ERR_INTERRUPTED);
    session_free(s);
    compute_close(c);
    close_fixture(&f);
}

static void test_threads(void **state)
{
    enum { ALL = N_SEQUENCES * MOST };
    static const struct passes passes[] = {
        {2, 1, ALL, SESSION_KV_AUTO},
        {3, 1, ALL, SESSION_KV_AUTO},
        {4, 1, ALL, SESSION_KV_AUTO},
        {9, 1, 900, SESSION_KV_AUTO}, /* of many threads, each needs fewer rows */
        {2, 7, ALL, SESSION_KV_AUTO},
        {3, 400, ALL, SESSION_KV_AUTO},
        {2, 5, 270, SESSION_KV_AUTO}, /* windows have rings, and texts take several passes */
        {2, 3, 300, SESSION_KV_F32},
        {3, 9, 400, SESSION_KV_Q8},
    };
    struct fixture f = open_fixture(*state);
    for (size_t i = 0; i < ARRAY_LEN(passes); i++) {
        if (i == 0 || passes[i].kv != passes[i - 1].kv)
            score_alone(&f, &f.texts[0], passes[i].kv, PRECISION_AUTO);
        check_passes(&f, &passes[i]);
    }
    close_fixture(&f);
}

/* ---- the pool -------------------------------------------------------------------------------- */

static int run_n(struct session *s, const struct text *t, int q, int n)
{
    struct err e = {0};
    struct session_row rows[N_BATCH];
    const int position = session_sequence_position(s, q);
    assert_true(n <= N_BATCH);
    for (int i = 0; i < n; i++)
        rows[i] = (struct session_row){.id = t->id[position + i], .sequence = q};
    const float *const logits = session_run(s, rows, n, &e);
    assert_int_equal(session_sequence_position(s, q), logits ? position + n : position);
    return logits ? ERR_NONE : e.code;
}

/* Three pages for four texts. */
static void test_pool(void **state)
{
    struct err e;
    struct fixture f = open_fixture(*state);
    const struct text *const t = &f.texts[0];
    struct compute *const c = compute_open(2, NULL, &e);
    const struct session_params params = {
        .n_context = 256, .n_batch = N_BATCH, .n_sequences = 4, .n_pages = 3};
    struct session *const s = open_session(&f, c, &params);
    assert_int_equal(session_free_pages(s), 3);
    assert_int_equal(run_n(s, t, 2, 40), ERR_NONE);
    assert_int_equal(session_wanted_pages(s, 2, 24), 0);
    assert_int_equal(session_wanted_pages(s, 2, 25), 1);
    assert_int_equal(run_n(s, t, 2, 40), ERR_NONE);
    assert_int_equal(session_free_pages(s), 1);

    /* shared pages cost nothing until one of the two writes into the last */
    assert_true(session_share(s, 2, 0, 70));
    assert_int_equal(session_free_pages(s), 1);
    assert_int_equal(session_wanted_pages(s, 0, 1), 1);
    assert_int_equal(session_wanted_pages(s, 2, 1), 1);
    assert_int_equal(run_n(s, t, 0, 1), ERR_NONE);
    assert_int_equal(session_free_pages(s), 0);
    assert_int_equal(session_wanted_pages(s, 2, 1), 0);
    assert_int_equal(run_n(s, t, 2, 1), ERR_NONE);

    assert_int_equal(run_n(s, t, 3, 1), ERR_CONTEXT);
    assert_true(session_sequence_rewind(s, 2, 64));
    assert_int_equal(session_free_pages(s), 1);
    session_sequence_reset(s, 0);
    assert_int_equal(session_free_pages(s), 2);
    assert_int_equal(run_n(s, t, 3, 1), ERR_NONE);

    const struct session_row outside[] = {{.id = 1, .sequence = 4}, {.id = -1, .sequence = 0}};
    assert_null(session_run(s, &outside[0], 1, &e));
    assert_null(session_run(s, &outside[1], 1, &e));
    assert_null(session_run(s, outside, 0, &e));
    const struct session_row wanting[] = {{.id = 1, .wants_logits = true},
                                          {.id = 1, .wants_logits = true}};
    assert_null(session_run(s, wanting, 2, &e));
    assert_non_null(session_run(s, wanting, 1, &e));
    session_free(s);
    compute_close(c);
    close_fixture(&f);
}

/* ---- rounding of the cache, alone ------------------------------------------------------------ */

/* The largest difference of logits between two kinds of cache, as a part of the largest logit. */
static double difference(const struct fixture *f, const struct text *a, const struct text *b)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < (size_t)a->n * f->n_vocab; i++) {
        largest = fmax(largest, fabs((double)a->logits[i]));
        worst = fmax(worst, fabs((double)a->logits[i] - (double)b->logits[i]));
    }
    return worst / largest;
}

static void test_rounding(void **state)
{
    struct fixture f = open_fixture(*state);
    struct text rounded = f.texts[0];
    score_alone(&f, &f.texts[0], SESSION_KV_F32, PRECISION_F32);
    score_alone(&f, &rounded, SESSION_KV_F16, PRECISION_F32);
    const double f16 = difference(&f, &f.texts[0], &rounded);
    score_alone(&f, &rounded, SESSION_KV_Q8, PRECISION_F32);
    const double q8 = difference(&f, &f.texts[0], &rounded);
    if (getenv("TGEN_SHOW"))
        print_message("# %s: f16 %.1e, q8 %.1e\n", (const char *)*state, f16, q8);
    assert_true(f16 > 0 && f16 < 5e-3);
    assert_true(q8 > 0 && q8 < 5e-2);
    free(rounded.logits);
    close_fixture(&f);
}

/* ---- the list of tests ----------------------------------------------------------------------- */

static void add_quantised(const char *dir)
{
    list_add("threads", dir, test_threads);
}

static void add_dir(const char *dir)
{
    list_add("threads", dir, test_threads);
    list_add("batch", dir, test_batch);
    list_add("rounding", dir, test_rounding);
}

int main(void)
{
    list_walk("tests/golden", "config.json", add_dir);
    list_walk("tests/golden/quantised", "config.json", add_quantised);
    list_add("pool", "tests/golden/llama-bias", test_pool);
    list_add("stop", "tests/golden/llama-bias", test_stop);
    list_add("stop", "tests/golden/mixtral", test_stop);
    return list_run("sequences");
}
