/*
 * Products with stored matrices, either way round, long enough for two sums: held to the sum in
 * double, and bit for bit to themselves, whatever the number of threads and of rows of x, and
 * whether outputs are computed together or in parts, and windows of one matrix each for itself or
 * all at once.
 */
#include "tests/check.h"

#include "core/kernels/kernels.h"
#include "core/linear.h"
#include "tests/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEW_X = 6, SOME_X = 66, MANY_X = 261 };

/* ---- random numbers -------------------------------------------------------------------------- */

/* The 16 bits of a bf16 with a magnitude from 2^-4 to 1: exact in f16, too. */
static uint16_t random_bf16(void)
{
    const uint64_t bits = random_bits();
    return (uint16_t)((bits & 0x8000) | ((123 + (bits >> 16) % 4) << 7) | (bits & 0x7f));
}

static float of_bf16(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- a product ------------------------------------------------------------------------------- */

struct shape {
    const char *name;
    int n_out, n_in;
    bool transposed;
    int block, block_stride; /* of the outputs; 0: all in one piece */
};

static const struct shape shapes[] = {
    {"rows", 70, 800, false, 0, 0},
    {"short columns", 70, 511, true, 0, 0},
    {"columns", 136, 768, true, 0, 0},
    {"odd columns", 77, 831, true, 0, 0},
    {"few columns", 5, 1025, true, 0, 0},
    {"wide columns", 1100, 514, true, 0, 0},
    {"blocks of columns", 48, 640, true, 8, 24},
};

struct matrix {
    uint16_t *codes; /* bf16 */
    void *w;
    size_t n, n_columns;
};

static void store(struct matrix *m, enum dtype dtype)
{
    for (size_t i = 0; i < m->n; i++) {
        const float value = of_bf16(m->codes[i]);
        const uint16_t half =
            (uint16_t)((m->codes[i] & 0x8000) | (((m->codes[i] & 0x7fff) << 3) - (112 << 10)));
        if (dtype == DTYPE_F32)
            ((float *)m->w)[i] = value;
        else
            ((uint16_t *)m->w)[i] = dtype == DTYPE_F16 ? half : m->codes[i];
    }
}

static struct matrix matrix_make(const struct shape *s)
{
    const int last = s->n_out - 1;
    const int n_columns = s->block ? last / s->block * s->block_stride + s->block : s->n_out;
    struct matrix m = {.n = (size_t)n_columns * (size_t)s->n_in, .n_columns = (size_t)n_columns};
    m.codes = calloc(m.n, sizeof *m.codes);
    m.w = calloc(m.n, sizeof(float));
    for (size_t i = 0; i < m.n; i++)
        m.codes[i] = random_bf16();
    return m;
}

static void matrix_free(struct matrix *m)
{
    free(m->codes);
    free(m->w);
}

static double weight_of(const struct matrix *m, const struct linear *l, int r, int k)
{
    const int column = r / l->block * l->block_stride + r % l->block;
    const size_t at = l->transposed ? (size_t)k * l->stride + (size_t)column
                                    : (size_t)column * l->stride + (size_t)k;
    return (double)of_bf16(m->codes[at]);
}

struct job {
    const struct linear *l;
    const float *x;
    float *y;
    size_t n;
    enum linear_store store;
    bool with_room;
    int n_threads;
    struct operand_room room;
    float *before; /* NULL, or [2, n, n_out]: products of 2 W and 4 W, no sync between the three */
    int cut;       /* 0, or linear_apply_part does the outputs before and behind it */
};

static void apply(struct worker *w, const struct linear *l, struct operand *x, float *y,
                  enum linear_store store)
{
    if (store == LINEAR_ADD)
        linear_apply_dealt(w, l, x, y, (size_t)l->n_out, store);
    else
        linear_apply(w, l, x, y, (size_t)l->n_out);
}

static void task(struct worker *w, void *context)
{
    const struct job *j = context;
    const size_t n_in = (size_t)j->l->n_in, n_out = (size_t)j->l->n_out, cut = (size_t)j->cut;
    struct operand x = operand_rows(j->x, n_in, j->n, n_in, j->with_room ? &j->room : NULL);
    for (size_t i = 0; j->before && i < 2; i++) {
        struct linear l = *j->l;
        l.scale *= (float)(2 << i);
        apply(w, &l, &x, j->before + i * j->n * n_out, j->store);
    }
    if (j->cut == 0) {
        apply(w, j->l, &x, j->y, j->store);
        return;
    }
    linear_prepare(w, j->l, &x);
    if (w->index == 0) {
        linear_apply_part(w, j->l, &x, 0, cut, j->y, n_out, j->store);
        linear_apply_part(w, j->l, &x, cut, n_out, j->y + cut, n_out, j->store);
    }
}

static void run(struct job *j, const char *level)
{
    struct err e;
    struct compute *const c = compute_open(j->n_threads, level, &e);
    size_t bytes;
    assert_true(operand_room_bytes(j->n, (size_t)j->l->n_in, j->n_threads, &bytes));
    void *const base = aligned_alloc(64, bytes);
    j->room = operand_room(base, j->n, (size_t)j->l->n_in, j->n_threads);
    compute_run(c, task, j);
    free(base);
    compute_close(c);
}

/* ---- what is expected ------------------------------------------------------------------------ */

static void expect_sums(const struct matrix *m, const struct job *j, const float *y0,
                        const char *what)
{
    const int n_out = j->l->n_out, n_in = j->l->n_in;
    for (int i = 0; i < (int)j->n; i += 7) {
        for (int r = 0; r < n_out; r++) {
            double sum = (double)j->l->bias[r];
            for (int k = 0; k < n_in; k++)
                sum += (double)j->x[i * n_in + k] * weight_of(m, j->l, r, k);
            const double before = j->store == LINEAR_ADD ? (double)y0[i * n_out + r] : 0;
            const double expected = before + (double)j->l->scale * sum;
            const double found = (double)j->y[i * n_out + r];
            if (!(fabs(found - expected) <= 2e-5))
                fail_msg("%s: [%d, %d] is %g, not %g", what, i, r, found, expected);
        }
    }
}

static void expect_same(const float *found, const float *expected, size_t n, const char *what,
                        const char *with)
{
    if (memcmp(found, expected, n * sizeof *found) != 0)
        fail_msg("%s: other bits with %s", what, with);
}

struct rows {
    float *x, *y0, *first, *y; /* of the last three n_y values each for W, 2 W and 4 W */
    size_t n_y;
};

static void check_threads(struct job job, const struct rows *rows, const char *level,
                          const char *what)
{
    static const int n_threads[] = {2, 3, 5};
    for (size_t i = 0; i < ARRAY_LEN(n_threads); i++) {
        job.n_threads = n_threads[i];
        job.before = job.y + rows->n_y;
        memcpy(job.y, rows->y0, 3 * rows->n_y * sizeof *job.y);
        run(&job, level);
        expect_same(job.y, rows->first, 3 * rows->n_y, what, "more threads");
    }
}

/* Few rows of x at a time, and as many threads as rows. */
static void check_chunks(struct job job, const struct rows *rows, const char *level,
                         const char *what)
{
    const size_t n = job.n, n_in = (size_t)job.l->n_in, n_out = (size_t)job.l->n_out;
    memcpy(job.y, rows->y0, rows->n_y * sizeof *job.y);
    for (size_t i = 0, step = 1; i < n; i += step, step = step % 4 + 1) {
        struct job few = job;
        few.n = i + step < n ? step : n - i;
        few.x += i * n_in;
        few.y += i * n_out;
        few.n_threads = (int)step;
        run(&few, level);
    }
    expect_same(rows->y, rows->first, rows->n_y, what, "few rows of x at a time");
}

static void check(const struct matrix *m, struct job job, const char *level, const char *what)
{
    const size_t n_y = job.n * (size_t)job.l->n_out, n_x = job.n * (size_t)job.l->n_in;
    struct rows rows = {.n_y = n_y};
    float *const memory = malloc((9 * n_y + n_x) * sizeof *memory);
    rows.y0 = memory;
    rows.first = memory + 3 * n_y;
    rows.y = memory + 6 * n_y;
    rows.x = memory + 9 * n_y;
    for (size_t i = 0; i < n_x; i++)
        rows.x[i] = of_bf16(random_bf16()) / 64;
    for (size_t i = 0; i < 3 * n_y; i++)
        rows.y0[i] = rows.first[i] = of_bf16(random_bf16()) / 3;
    job.x = rows.x;
    job.y = rows.first;
    job.before = job.y + n_y;
    job.n_threads = 1;
    run(&job, level);
    job.before = NULL;
    expect_sums(m, &job, rows.y0, what);
    job.y = rows.y;
    check_threads(job, &rows, level, what);
    check_chunks(job, &rows, level, what);
    memcpy(rows.y, rows.y0, n_y * sizeof *rows.y);
    job.cut = job.l->n_out / 2;
    job.n_threads = 2;
    run(&job, level);
    expect_same(rows.y, rows.first, n_y, what, "outputs in two parts");
    free(memory);
}

static void check_shape(const struct shape *s, enum dtype dtype, const char *level)
{
    struct matrix m = matrix_make(s);
    float *const bias = malloc((size_t)s->n_out * sizeof *bias);
    for (int r = 0; r < s->n_out; r++)
        bias[r] = of_bf16(random_bf16());
    store(&m, dtype);
    const struct linear l = {.w = m.w,
                             .dtype = dtype,
                             .n_out = s->n_out,
                             .n_in = s->n_in,
                             .stride = s->transposed ? m.n_columns : (size_t)s->n_in,
                             .transposed = s->transposed,
                             .bias = bias,
                             .scale = 0.3f,
                             .block = s->block ? s->block : s->n_out,
                             .block_stride = s->block_stride};
    static const size_t n_rows[] = {1, FEW_X, SOME_X, MANY_X};
    for (size_t i = 0; i < ARRAY_LEN(n_rows); i++) {
        char what[96];
        (void)snprintf(what, sizeof what, "%s, %s, %s, %zu rows of x", level, s->name,
                       dtype_name(dtype), n_rows[i]);
        if (n_rows[i] == MANY_X && dtype != DTYPE_BF16)
            continue; /* once is enough */
        struct job job = {.l = &l, .n = n_rows[i], .store = i % 2 ? LINEAR_SET : LINEAR_ADD};
        job.with_room = true;
        check(&m, job, level, what);
        job.with_room = false;
        if (n_rows[i] <= FEW_X)
            check(&m, job, level, what);
    }
    free(bias);
    matrix_free(&m);
}

static void test_products(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    for (const char *const *level = kernels_levels; *level; level++)
        for (size_t i = 0; kernels_for(*level) && i < ARRAY_LEN(shapes); i++)
            for (size_t j = 0; j < ARRAY_LEN(dtypes); j++)
                check_shape(&shapes[i], dtypes[j], *level);
}

/* ---- windows --------------------------------------------------------------------------------- */

enum { WINDOWS = 3, WINDOW_ALL = 104, WINDOW_OUT = 96, WINDOW_IN = 640 };

struct windows {
    struct linear l[WINDOWS];
    const float *x;
    size_t n;
    float *y[2 * WINDOWS]; /* of W and of 2 W, one behind the other */
    bool together;
    struct operand_room room;
};

static void windows_task(struct worker *w, void *context)
{
    const struct windows *j = context;
    struct operand x = operand_rows(j->x, WINDOW_IN, j->n, WINDOW_IN, &j->room);
    const struct linear *all[WINDOWS];
    for (int i = 0; i < WINDOWS; i++)
        all[i] = &j->l[i];
    if (j->together) {
        linear_apply_all(w, all, WINDOWS, &x, j->y);
        /* no sync between them */
        linear_apply_all(w, all, 1, &x, j->y + WINDOWS);
        linear_apply_all(w, all + 1, WINDOWS - 1, &x, j->y + WINDOWS + 1);
        return;
    }
    for (int i = 0; i < 2 * WINDOWS; i++)
        linear_apply(w, all[i % WINDOWS], &x, j->y[i], (size_t)all[i % WINDOWS]->n_out);
}

static void run_windows(struct windows *j, float *y, int n_threads, const char *level)
{
    struct err e;
    struct compute *const c = compute_open(n_threads, level, &e);
    size_t bytes;
    assert_true(operand_room_bytes(j->n, WINDOW_IN, n_threads, &bytes));
    void *const base = aligned_alloc(64, bytes);
    j->room = operand_room(base, j->n, WINDOW_IN, n_threads);
    for (int i = 0; i < 2 * WINDOWS; i++) {
        j->y[i] = y;
        y += j->n * (size_t)j->l[i % WINDOWS].n_out;
    }
    compute_run(c, windows_task, j);
    free(base);
    compute_close(c);
}

/* Side by side, or with a gap before the last. */
static void check_windows(const struct matrix *m, enum dtype dtype, bool gap, const char *level)
{
    static const int n_outs[WINDOWS] = {40, 24, 32};
    static const size_t n_rows[] = {1, 5, SOME_X};
    float bias[WINDOW_ALL], *const x = malloc(SOME_X * WINDOW_IN * sizeof *x);
    struct windows j = {.x = x};
    const size_t size = dtype_size(dtype);
    for (size_t i = 0; i < WINDOW_ALL; i++)
        bias[i] = of_bf16(random_bf16());
    for (size_t i = 0; i < SOME_X * WINDOW_IN; i++)
        x[i] = of_bf16(random_bf16());
    for (size_t i = 0, at = 0; i < WINDOWS; at += (size_t)n_outs[i++]) {
        at += gap && i == 2 ? WINDOW_ALL - WINDOW_OUT : 0;
        j.l[i] = (struct linear){.w = (const char *)m->w + at * size,
                                 .dtype = dtype,
                                 .n_out = n_outs[i],
                                 .n_in = WINDOW_IN,
                                 .stride = WINDOW_ALL,
                                 .transposed = true,
                                 .bias = dtype == DTYPE_F16 ? NULL : bias + at,
                                 .scale = 0.3f,
                                 .block = n_outs[i]};
    }
    for (size_t i = 0; i < ARRAY_LEN(n_rows); i++) {
        j.n = n_rows[i];
        const size_t n_y = 2 * j.n * WINDOW_OUT;
        float *const expected = malloc(n_y * sizeof(float)), *const y = malloc(n_y * sizeof(float));
        j.together = false;
        run_windows(&j, expected, 1, level);
        j.together = true;
        for (int n_threads = 1; n_threads <= 5; n_threads++) {
            memset(y, 0xff, n_y * sizeof *y);
            run_windows(&j, y, n_threads, level);
            expect_same(y, expected, n_y, level, "windows together");
        }
        free(expected);
        free(y);
    }
    free(x);
}

static void test_windows(void **state)
{
    (void)state;
    static const struct shape shape = {"windows", WINDOW_ALL, WINDOW_IN, true, 0, 0};
    struct matrix m = matrix_make(&shape);
    for (const char *const *level = kernels_levels; *level; level++)
        for (int dtype = DTYPE_F32; kernels_for(*level) && dtype <= DTYPE_BF16; dtype++) {
            store(&m, (enum dtype)dtype);
            check_windows(&m, (enum dtype)dtype, false, *level);
            check_windows(&m, (enum dtype)dtype, true, *level);
        }
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
