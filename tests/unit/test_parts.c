/*
 * How many rows a pass has, and how they are dealt out: each belongs to one part and is told of
 * there as in the whole, no part touches memory of another, and all parts cost about the same.
 */
#include "tests/check.h"

#include "models/parts.h"
#include "tests/random.h"

#include <stdlib.h>

enum { MOST_PARTS = 5, MANY_ROWS = 128, MOST_ROWS = 1000, MOST_POSITION = 3000, WINDOW = 100 };

/* A pass of random runs, of one row or of many, and its memory. */
struct fixture {
    struct model_spec spec;
    struct layer_spec layers[2];
    int32_t ids[MOST_ROWS];
    int positions[MOST_ROWS], sequences[MOST_ROWS], n;
    struct kv_run runs[MOST_ROWS], part_runs[MOST_ROWS];
    struct pass pass, parts[MOST_PARTS];
    char *memory;
};

static int random_below(int n)
{
    return (int)(random_bits() % (uint64_t)n);
}

static struct model_spec plain_spec(struct layer_spec *layers)
{
    struct model_spec spec = {.hidden_size = 40,
                              .embedding_size = 24,
                              .num_hidden_layers = 2,
                              .layers = layers,
                              .num_attention_heads = 4,
                              .num_key_value_heads = 2,
                              .head_dim = 8,
                              .intermediate_size = 100,
                              .vocab_size = 50,
                              .ffn = FFN_GATED,
                              .norm_place = NORM_AFTER};
    spec.ropes[0].n_dims = 8;
    layers[1].window = WINDOW;
    return spec;
}

static void add_run(struct fixture *f, int n)
{
    const int position = random_below(MOST_POSITION), sequence = f->pass.n_runs;
    f->runs[f->pass.n_runs++] =
        (struct kv_run){.sequence = sequence, .position = position, .row = f->n, .n = n};
    for (int i = 0; i < n; i++, f->n++) {
        f->ids[f->n] = random_below(50);
        f->positions[f->n] = position + i;
        f->sequences[f->n] = sequence;
    }
}

/* As many rows of answers, then prompts. */
static void open_fixture(struct fixture *f, int n_threads, int n_answers)
{
    *f = (struct fixture){.n = 0};
    f->spec = plain_spec(f->layers);
    const int n = MANY_ROWS * n_threads + random_below(MOST_ROWS - MANY_ROWS * n_threads);
    const struct pass_size size = {MOST_ROWS, n_threads, MANY_ROWS, true, 32};
    while (f->n < n)
        add_run(f, f->n < n_answers ? 1 : 1 + random_below(min_int(n - f->n, 300)));
    struct cutter measure = {.base = NULL}, cutter = {.base = NULL};
    pass_cut(&measure, &f->spec, &size, &f->pass);
    f->memory = aligned_alloc(CACHE_LINE, measure.used);
    assert_non_null(f->memory);
    cutter.base = f->memory;
    pass_cut(&cutter, &f->spec, &size, &f->pass);
    assert_false(cutter.overflow);
    assert_int_equal(cutter.used, measure.used);
    f->pass.spec = &f->spec;
    f->pass.n = f->n;
    f->pass.ids = f->ids;
    f->pass.positions = f->positions;
    f->pass.sequences = f->sequences;
    f->pass.runs = f->runs;
}

/* What a part is told of its rows, which are [first, first + n) of the whole. */
static void check_rows(const struct fixture *f, const struct pass *part, int first)
{
    int row = 0;
    assert_true(part->n > 0 && first + part->n <= f->n);
    assert_ptr_equal(part->ids, f->ids + first);
    assert_ptr_equal(part->positions, f->positions + first);
    assert_ptr_equal(part->sequences, f->sequences + first);
    assert_ptr_equal(part->x, f->pass.x + first * f->spec.hidden_size);
    assert_ptr_equal(part->rope_cos[0], f->pass.rope_cos[0] + first * 4);
    for (int i = 0; i < part->n_runs; i++) {
        const struct kv_run *const run = &part->runs[i];
        assert_int_equal(run->row, row);
        for (int r = 0; r < run->n; r++, row++) {
            assert_int_equal(run->sequence, part->sequences[row]);
            assert_int_equal(run->position + r, part->positions[row]);
        }
    }
    assert_int_equal(row, part->n);
}

/* Sets every float that a part may write, or counts those that are not so. Halves of a layer lie in
 * one place. */
static int each_float(const struct pass *p, const struct model_spec *spec, float value, bool set)
{
    const size_t n = (size_t)p->n, heads = 4 * 8, kv = 2 * 8;
    const struct {
        float *at;
        size_t n;
    } all[] = {{p->embedded, n * (size_t)spec->embedding_size},
               {p->normed, (n + PASS_FEW_ROWS) * (size_t)spec->hidden_size},
               {p->branch, n * (size_t)spec->hidden_size},
               {p->query, n * heads},
               {p->key, n * kv},
               {p->value, n * kv},
               {p->attn_output, n * heads},
               {p->attend_scratch, p->size.n_attend_scratch},
               {p->gate, p->n_gate},
               {p->up, n * (size_t)spec->intermediate_size},
               {(float *)(void *)p->room.base, n * p->room.row_bytes / sizeof(float)},
               {p->room.sums, 2 * p->room.n_sums}};
    int n_wrong = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t k = 0; k < all[i].n; k++)
            if (set)
                all[i].at[k] = value;
            else
                n_wrong += all[i].at[k] != value;
    return n_wrong;
}

static double seen(int position)
{
    return (position + 1 + min_int(position + 1, WINDOW)) / 2.0;
}

/* No part costs more than the mean by more than the two rows at its ends, and none is empty. */
static void check_costs(const struct fixture *f, int n_parts, const struct parts_price *price)
{
    double cost[MOST_PARTS] = {0}, all = 0, dearest = 0;
    const struct pass *part = f->parts;
    for (int i = 0, row = 0; i < f->pass.n_runs; i++)
        for (int r = 0; r < f->runs[i].n; r++, row++) {
            const double look = price->look * seen(f->positions[row]);
            const double read = price->read * seen(f->positions[row]) / f->runs[i].n;
            const double own = price->row + look + read;
            while (row >= part->ids - f->ids + part->n)
                part++;
            cost[part - f->parts] += own;
            all += own;
            dearest = own > dearest ? own : dearest;
        }
    for (int i = 0; i < n_parts; i++)
        assert_true(cost[i] <= all / n_parts + 2 * dearest);
}

static void check_deal(int n_threads, int n_answers, const struct parts_price *price)
{
    static struct fixture f;
    open_fixture(&f, n_threads, n_answers);
    parts_deal(&f.pass, price, f.parts, f.part_runs);
    int first = 0;
    for (int i = 0; i < n_threads; i++) {
        check_rows(&f, &f.parts[i], first);
        assert_ptr_equal(f.parts[i].whole, &f.pass);
        first += f.parts[i].n;
        each_float(&f.parts[i], &f.spec, (float)i, true);
    }
    assert_int_equal(first, f.n);
    for (int i = 0; i < n_threads; i++)
        assert_int_equal(each_float(&f.parts[i], &f.spec, (float)i, false), 0);
    check_costs(&f, n_threads, price);
    free(f.memory);
}

static void test_deal(void **state)
{
    (void)state;
    for (int n_threads = 2; n_threads <= MOST_PARTS; n_threads++)
        for (int n_answers = 0; n_answers <= 64; n_answers += 8) {
            check_deal(n_threads, n_answers, &(struct parts_price){.row = 1});
            check_deal(n_threads, n_answers, &(struct parts_price){1000, 0.1, 4});
        }
}

/* Where one row costs as much as all others, parts are not empty for that. */
static void test_dear_row(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f, 4, 1);
    parts_deal(&f.pass, &(struct parts_price){1, 0, 1e6}, f.parts, f.part_runs);
    for (int i = 0, first = 0; i < 4; first += f.parts[i++].n)
        check_rows(&f, &f.parts[i], first);
    free(f.memory);
}

/* Passes grow with the threads as long as each has enough rows, where layers are not too large. */
static void test_rows(void **state)
{
    (void)state;
    static const struct {
        int n_in, n_threads, window, experts, pass, each;
    } cases[] = {
        {1000, 1, 0, 0, 256, 128},   {1000, 2, 0, 0, 256, 128},    {1000, 3, 0, 0, 384, 128},
        {1000, 8, 0, 0, 1024, 128},  {1000, 9, 0, 0, 1152, 64},    {1000, 16, 0, 0, 2048, 64},
        {1000, 32, 0, 0, 2048, 64},  {1000, 33, 0, 0, 256, 64},    {20000, 16, 0, 0, 2048, 128},
        {20000, 17, 0, 0, 256, 128}, {50000, 16, 0, 0, 256, 128},  {1000, 16, 9, 0, 256, 64},
        {1000, 16, 0, 8, 256, 128},  {1000, 16, 0, 32, 1024, 128},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct layer_spec layer = {.window = cases[i].window};
        struct layer_weights matrices = {.up = {.n_out = 1000, .n_in = cases[i].n_in}};
        const struct weights weights = {.layers = &matrices};
        struct model_spec spec = {.num_hidden_layers = 1, .layers = &layer};
        spec.moe.num_experts = cases[i].experts;
        spec.moe.num_experts_per_tok = cases[i].experts ? 2 : 0;
        const struct parts_rows rows = parts_rows_of(&spec, &weights, cases[i].n_threads);
        assert_int_equal(rows.pass, cases[i].pass);
        assert_int_equal(rows.each, cases[i].each);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deal), cmocka_unit_test(test_dear_row),
                                       cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
