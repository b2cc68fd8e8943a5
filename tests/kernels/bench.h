/*
 * Speed of every slot beside what this machine could do at best, one thread: multiply-adds per
 * second with vectors of the level's width, and bytes per second read from memory. Included by
 * check_kernels.c, whose table of slots it walks. The two limits are measured before each level,
 * since a shared machine changes its mind; only ratios of one run mean something.
 */
#ifndef TESTS_KERNELS_BENCH_H
#define TESTS_KERNELS_BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/kernels/kernels.h"

enum { BENCH_WEIGHT_BYTES = 192 << 20, BENCH_X = 256, BENCH_K = 2048, BENCH_ELEMENTS = 4096 };

struct bench {
    const struct kernels *k;
    const char *slot;
    char *w;      /* [BENCH_WEIGHT_BYTES], larger than any cache; halves that are small numbers */
    float *x;     /* [BENCH_X, BENCH_K] */
    float *y;     /* [BENCH_WEIGHT_BYTES / 64] */
    double flops; /* limit, multiply and add counted as two; */
    double bytes; /* limit */
};

static double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs the statement for about a quarter of a second, at least 3 times: the shortest run. */
#define BENCH_BEST(seconds, statement)                                                             \
    do {                                                                                           \
        const double bench_end = bench_now() + 0.25;                                               \
        (seconds) = 1e9;                                                                           \
        for (int bench_i = 0; bench_i < 3 || bench_now() < bench_end; bench_i++) {                 \
            const double bench_start = bench_now();                                                \
            statement;                                                                             \
            const double bench_took = bench_now() - bench_start;                                   \
            (seconds) = bench_took < (seconds) ? bench_took : (seconds);                           \
        }                                                                                          \
    } while (0)

static double bench_peak(double (*peak)(size_t n_steps))
{
    double seconds, done = 0;
    BENCH_BEST(seconds, done = peak(100000));
    return done / seconds;
}

static double bench_read(const struct kernels *k, const char *bytes, size_t n)
{
    double seconds;
    BENCH_BEST(seconds, k->read_all(bytes, n));
    return (double)n / seconds;
}

static void bench_line(const struct bench *b, const char *what, double seconds, double flops,
                       double bytes)
{
    printf("%-7s %-17s %-26s %8.2f GFLOP/s", b->k->level, b->slot, what, 1e-9 * flops / seconds);
    printf(" %4.0f %% %8.2f GB/s %4.0f %%\n", 100 * flops / seconds / b->flops,
           1e-9 * bytes / seconds, 100 * bytes / seconds / b->bytes);
}

static void bench_linear(const struct bench *b, void (*f)(const struct linear_args *), bool cols,
                         int type)
{
    static const struct {
        size_t n_x, n_k, n_w; /* n_w 0: as many as there is memory for */
    } shapes[] = {{1, 2048, 0},     {1, 768, 0},      {1, 288, 768},    {2, 2048, 0},
                  {4, 288, 768},    {4, 2048, 0},     {8, 2048, 16384}, {24, 2048, 16384},
                  {256, 256, 1024}, {256, 768, 1024}, {256, 2048, 1024}};
    const size_t size = type == WEIGHT_F32 ? 4 : 2;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const size_t n_x = shapes[i].n_x, n_k = shapes[i].n_k;
        const size_t n_w = shapes[i].n_w ? shapes[i].n_w : BENCH_WEIGHT_BYTES / size / n_k / n_x;
        const struct linear_args a = {.y = b->y,
                                      .y_stride = n_w,
                                      .x = b->x,
                                      .x_stride = n_k,
                                      .n_x = n_x,
                                      .w = b->w,
                                      .w_stride = cols ? n_w : n_k,
                                      .n_w = n_w,
                                      .n_k = n_k,
                                      .scale = 1};
        char what[64];
        double seconds;
        snprintf(what, sizeof what, "%zu x [%zu, %zu]", n_x, cols ? n_k : n_w, cols ? n_w : n_k);
        BENCH_BEST(seconds, f(&a));
        const double products = (double)n_x * (double)n_k * (double)n_w;
        bench_line(b, what, seconds, 2 * products, (double)(n_k * n_w * size));
    }
}

static void bench_to_f32(const struct bench *b, void (*f)(float *, const void *, size_t), int type)
{
    double seconds;
    BENCH_BEST(seconds, f(b->y, b->w, BENCH_ELEMENTS));
    bench_line(b, "", seconds, BENCH_ELEMENTS, (type == WEIGHT_F32 ? 4. : 2.) * BENCH_ELEMENTS);
}

/* Groups of 32, the smallest in use. */
static void bench_decode(const struct bench *b,
                         void (*f)(float *, const void *, size_t, size_t, const float *,
                                   const float *),
                         bool half)
{
    enum { GROUP = 32 };
    double seconds;
    BENCH_BEST(seconds, f(b->y, b->w, BENCH_ELEMENTS, GROUP, b->x, b->x));
    bench_line(b, "groups of 32", seconds, 2. * BENCH_ELEMENTS, BENCH_ELEMENTS / (half ? 2. : 1.));
}

/* The result is the next call's input: an element costs the same whatever its value. */
static void bench_elements(const struct bench *b, void (*f)(float *, size_t))
{
    double seconds;
    BENCH_BEST(seconds, f(b->y, BENCH_ELEMENTS));
    bench_line(b, "", seconds, BENCH_ELEMENTS, 4. * BENCH_ELEMENTS);
}

static void bench_pairs(const struct bench *b, void (*f)(float *, const float *, size_t))
{
    double seconds;
    BENCH_BEST(seconds, f(b->y, b->x, BENCH_ELEMENTS));
    bench_line(b, "", seconds, BENCH_ELEMENTS, 8. * BENCH_ELEMENTS);
}

static void bench_scale(const struct bench *b)
{
    double seconds;
    BENCH_BEST(seconds, b->k->scale(b->y, b->x, 0.5f, BENCH_ELEMENTS));
    bench_line(b, "", seconds, BENCH_ELEMENTS, 8. * BENCH_ELEMENTS);
}

/* One head's past in memory, as long as that of a text of many heads, read by as many rows as share
 * a head when decoding; then one block under the rows of a prompt. */
static void bench_attend(const struct bench *b, void (*f)(const struct attend_args *), size_t size)
{
    enum { DIM = 128, ROWS = 96 };
    static const size_t row_counts[] = {1, 4, 7, ROWS};
    struct attend_row rows[ROWS];
    static unsigned char room[DIM * ATTEND_BLOCK * 4] __attribute__((aligned(64)));
    const size_t half = DIM * ATTEND_BLOCK * size;
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++) {
        const size_t n = row_counts[i], n_blocks = n == ROWS ? 8 : BENCH_WEIGHT_BYTES / 2 / half;
        struct attend_args a = {
            .rows = rows, .n_rows = n, .k_dim = DIM, .v_dim = DIM, .scale = 1, .room = room};
        char what[64];
        double seconds;
        for (size_t r = 0; r < n; r++)
            rows[r] = (struct attend_row){
                .q = b->x + r * DIM, .acc = b->y + r * DIM, .position = ATTEND_BLOCK};
        snprintf(what, sizeof what, "%zu rows of %d%s", n, DIM, n == ROWS ? ", one block" : "");
        BENCH_BEST(
            seconds, for (size_t j = 0; j < n_blocks; j++) {
                a.k = b->w + (n == ROWS ? 0 : j) * 2 * half;
                a.v = (const char *)a.k + half;
                f(&a);
            });
        bench_line(b, what, seconds, 4. * DIM * ATTEND_BLOCK * (double)(n * n_blocks),
                   2. * (double)(half * n_blocks));
    }
}

/* A key. */
static void bench_cache_store(const struct bench *b,
                              float (*f)(void *, size_t, const float *, size_t), size_t size)
{
    enum { DIM = 128 };
    double seconds;
    BENCH_BEST(seconds, f(b->y, ATTEND_BLOCK, b->x, DIM));
    bench_line(b, "a key of 128", seconds, DIM, (4. + (double)size) * DIM);
}

static void bench_cache_store_keys(const struct bench *b,
                                   void (*f)(uint16_t *, const float *, size_t, size_t))
{
    enum { DIM = 128 };
    double seconds;
    BENCH_BEST(seconds, f((uint16_t *)(void *)b->y, b->x, DIM, DIM));
    bench_line(b, "16 keys of 128", seconds, DIM * ATTEND_LANES, 6. * DIM * ATTEND_LANES);
}

static void bench_rope(const struct bench *b)
{
    enum { DIM = 128 };
    double seconds;
    BENCH_BEST(seconds, b->k->rope_half(b->y, b->x, b->x + DIM / 2, DIM));
    bench_line(b, "one head of 128", seconds, 3. * DIM, 8. * DIM);
}

static void bench_quant_row(const struct bench *b)
{
    double seconds;
    BENCH_BEST(seconds, b->k->quant_row((int8_t *)b->y, b->x, BENCH_ELEMENTS));
    bench_line(b, "", seconds, 2. * BENCH_ELEMENTS, 5. * BENCH_ELEMENTS);
}

static void bench_quant_scales(const struct bench *b)
{
    static const int16_t tries[QUANT_TRIES] = {120, 128, 136, 144};
    static int16_t weights[BENCH_ELEMENTS];
    double seconds;
    for (size_t i = 0; i < BENCH_ELEMENTS; i++)
        weights[i] = (int16_t)(1 + i % QUANT_WEIGHT);
    BENCH_BEST(seconds, b->k->quant_scales(b->y, b->x, weights, BENCH_ELEMENTS, 64, tries));
    bench_line(b, "groups of 64", seconds, 4. * QUANT_TRIES * BENCH_ELEMENTS, 6. * BENCH_ELEMENTS);
}

static void bench_quant_codes(const struct bench *b)
{
    double seconds;
    unsigned char *const codes = (unsigned char *)b->y;
    BENCH_BEST(seconds, b->k->quant_codes(codes, b->x, b->x + 1, BENCH_ELEMENTS, 64));
    bench_line(b, "groups of 64", seconds, 2. * BENCH_ELEMENTS, 4.5 * BENCH_ELEMENTS);
}

static void bench_norm(const struct bench *b, bool layer)
{
    double seconds;
    const float *w = b->x + BENCH_K;
    if (layer)
        BENCH_BEST(seconds, b->k->norm_layer(b->y, b->x, w, w, BENCH_K, 1e-5f));
    else
        BENCH_BEST(seconds, b->k->norm_rms(b->y, b->x, w, BENCH_K, 1e-5f));
    bench_line(b, "row of 2048", seconds, 4. * BENCH_K, 8. * BENCH_K);
}

/* Weights are the same small number throughout, as f32, f16 and bf16 alike. */
static struct bench bench_new(void)
{
    struct bench b = {.w = malloc(BENCH_WEIGHT_BYTES),
                      .x = malloc(sizeof(float) * BENCH_X * BENCH_K),
                      .y = calloc(BENCH_WEIGHT_BYTES / 64, sizeof(float))};
    if (!b.w || !b.x || !b.y)
        abort();
    memset(b.w, 0x3c, BENCH_WEIGHT_BYTES);
    for (size_t i = 0; i < (size_t)BENCH_X * BENCH_K; i++)
        b.x[i] = (float)(i % 64) / 64;
    return b;
}

static void bench_free(struct bench *b)
{
    free(b->y);
    free(b->x);
    free(b->w);
}

static void bench_limits(struct bench *b)
{
    b->flops = bench_peak(b->k->peak[PEAK_F32]);
    b->bytes = bench_read(b->k, b->w, BENCH_WEIGHT_BYTES);
    printf("%s: limits of one thread: %.1f GFLOP/s multiply-add, %.1f GB/s read from memory\n",
           b->k->level, 1e-9 * b->flops, 1e-9 * b->bytes);
}

#endif
