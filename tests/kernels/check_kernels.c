/*
 * Walks the dispatcher's own tables: every level that this machine has, every slot of it. The
 * scalar level is the truth, itself held to known values; a slot's class (kernels.h) says how close
 * a rung must come. Data lie right behind or right before an unmapped page, at any alignment, with
 * a canary where there is room for one. Besides closeness, the promise of kernels.h is tested: a
 * row of activations alone, elsewhere in memory, against a window of the weights, gives the same
 * bits.
 *
 *     check_kernels [SEED]    checks; a failure prints the seed and the parameters
 *     check_kernels --bench   measures speed (bench.h)
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/kernels/kernels.h"
#include "core/kernels/rungs.h"
#include "tests/kernels/bench.h"
#include "tests/random.h"

#if defined(CASES)
enum { N_CASES = CASES };
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { N_CASES = 60 };
#else
enum { N_CASES = 400 };
#endif

static const struct kernels *scalar;
static unsigned long seed = 20240229;
static char parameters[256]; /* of the case that runs now */

/* ---- random numbers ---- */

/* In [0, n). */
static size_t random_below(size_t n)
{
    return (size_t)(random_bits() % n);
}

/* Mostly small and odd, sometimes around the sizes at which the kernels cut. */
static size_t random_size(size_t large)
{
    const size_t kind = random_below(20);
    return kind < 6 ? random_below(10) : kind < 18 ? random_below(71) : random_below(large + 1);
}

/* What the values look like: WIDE spans the magnitudes whose products stay finite, SPECIAL holds
 * infinities and NaNs here and there. */
enum kind { PLAIN, WIDE, SPECIAL, N_KINDS };

static float random_value(enum kind kind)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, FLT_MIN, 1e-45f};
    if (kind == WIDE)
        return random_unit() * powf(10, 15 - (float)random_below(55));
    if (kind == SPECIAL && random_below(100) == 0)
        return specials[random_below(sizeof specials / sizeof *specials)];
    return random_unit();
}

/* ---- memory with a cliff on either side ---- */

enum { AREA_BYTES = 2 << 20, CANARY_BYTES = 64, CANARY = 0xa5 };

struct area {
    unsigned char *body;  /* [AREA_BYTES], unmapped pages around it */
    unsigned char *begin; /* what was placed last */
    size_t n_bytes;
};

static struct area areas[7];

static void areas_map(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
        unsigned char *all = mmap(NULL, AREA_BYTES + 2 * page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(all != MAP_FAILED);
        assert_int_equal(mprotect(all, page, PROT_NONE), 0);
        assert_int_equal(mprotect(all + page + AREA_BYTES, page, PROT_NONE), 0);
        areas[i].body = all + page;
    }
}

/* The part of the body that the canary covers on either side of what was placed. */
static void area_canary(const struct area *a, unsigned char **before, unsigned char **after,
                        size_t *n_before, size_t *n_after)
{
    const size_t head = (size_t)(a->begin - a->body), tail = AREA_BYTES - head - a->n_bytes;
    *n_before = head < CANARY_BYTES ? head : CANARY_BYTES;
    *n_after = tail < CANARY_BYTES ? tail : CANARY_BYTES;
    *before = a->begin - *n_before;
    *after = a->begin + a->n_bytes;
}

/* Room for n_bytes at the end of area number i, at its beginning, or a few units behind that. */
static void *area_place(size_t i, size_t n_bytes, size_t unit)
{
    struct area *a = &areas[i];
    const size_t where = random_below(3);
    assert_true(n_bytes + 16 * unit <= AREA_BYTES);
    a->n_bytes = n_bytes;
    a->begin = where == 0   ? a->body + AREA_BYTES - n_bytes
               : where == 1 ? a->body
                            : a->body + unit * (1 + random_below(15));
    unsigned char *before, *after;
    size_t n_before, n_after;
    area_canary(a, &before, &after, &n_before, &n_after);
    memset(before, CANARY, n_before);
    memset(after, CANARY, n_after);
    return a->begin;
}

static float *area_floats(size_t i, size_t n)
{
    return area_place(i, n * sizeof(float), sizeof(float));
}

static void areas_check(void)
{
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
        if (!areas[i].begin)
            continue;
        unsigned char *before, *after;
        size_t n_before, n_after;
        area_canary(&areas[i], &before, &after, &n_before, &n_after);
        for (size_t j = 0; j < n_before + n_after; j++)
            if ((j < n_before ? before[j] : after[j - n_before]) != CANARY)
                fail_msg("wrote outside of buffer %zu: %s, seed %lu", i, parameters, seed);
    }
}

static void on_fault(int signal)
{
    static const char text[] = "not ok - read or wrote outside of a buffer: ";
    ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
    ignored += write(STDOUT_FILENO, parameters, strlen(parameters));
    ignored += write(STDOUT_FILENO, "\n", 1);
    (void)ignored;
    _exit(128 + signal);
}

/* ---- comparing ---- */

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Which of two NaNs an addition passes on is left to the compiler. */
static bool same_bits(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

static void expect_same(const float *found, const float *expected, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!same_bits(found[i], expected[i]))
            fail_msg("%s: [%zu] is %a, not %a: %s, seed %lu", what, i, (double)found[i],
                     (double)expected[i], parameters, seed);
}

/* Within tolerance; or both NaN, or the same infinity. */
static void expect_close(float found, float expected, double tolerance, size_t i)
{
    const bool close = fabs((double)found - (double)expected) <= tolerance;
    if (!close && !(isnan(found) && isnan(expected)) && found != expected)
        fail_msg("[%zu] is %.9g, not %.9g within %.3g: %s, seed %lu", i, (double)found,
                 (double)expected, tolerance, parameters, seed);
}

static const double ulp = 0x1p-24; /* half a unit in the last place of 1 */
static const double least = 0x1p-149;

/* n additions in any order are off by n ulp at the very most and by about sqrt(n) in practice. */
static double sum_tolerance(size_t n, double sum_of_magnitudes)
{
    return (8 + 4 * sqrt((double)n)) * ulp * sum_of_magnitudes + (double)(n + 8) * least;
}

/* ---- the slots ---- */

struct slot {
    const char *name;
    size_t offset; /* in struct kernels */
    void (*check)(const struct slot *slot, const struct kernels *k);
    void (*bench)(const struct slot *slot, const struct bench *b);
    int type; /* of weights */
    bool cols;
    bool may_be_null;
};

typedef void linear_fn(const struct linear_args *a);
typedef void convert_fn(float *out, const void *in, size_t n);
typedef void decode_fn(float *out, const void *in, size_t n, size_t group, const float *scales,
                       const float *zeros);
typedef float store_fn(void *out, size_t stride, const float *x, size_t n);
typedef void keys_fn(uint16_t *out, const float *x, size_t x_stride, size_t n);
typedef void attend_fn(const struct attend_args *a);
typedef void one_fn(float *x, size_t n);
typedef void two_fn(float *y, const float *x, size_t n);

/* The function in that slot, through a pointer of any function type. */
static void slot_get(const struct slot *slot, const struct kernels *k, void *function)
{
    memcpy(function, (const char *)k + slot->offset, sizeof(void (*)(void)));
}

static bool slot_is_null(const struct slot *slot, const struct kernels *k)
{
    void (*function)(void);
    slot_get(slot, k, &function);
    return !function;
}

static size_t weight_size(int type)
{
    return type == WEIGHT_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* A weight of a kind; as f16 simply random bits, finite where the kind is. */
static void random_weight(unsigned char *at, int type, enum kind kind)
{
    const float f = random_value(kind);
    uint32_t bits = bits_of(f);
    uint16_t half = (uint16_t)(bits >> 16);
    if (type == WEIGHT_F16) {
        half = (uint16_t)random_bits();
        if (!isfinite(f))
            half |= 0x7c00;
        else if ((half & 0x7c00) == 0x7c00)
            half ^= 0x4000;
        if (kind != WIDE && isfinite(f) && (half & 0x7c00) > 0x3c00)
            half ^= 0x4000;
    }
    if (type == WEIGHT_F32)
        memcpy(at, &bits, sizeof bits);
    else
        memcpy(at, &half, sizeof half);
}

static void random_weights(unsigned char *w, size_t n, int type, enum kind kind)
{
    for (size_t i = 0; i < n; i++)
        random_weight(w + i * weight_size(type), type, kind);
}

static void random_floats(float *x, size_t n, enum kind kind)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_value(kind);
}

/* ---- linear ---- */

static size_t linear_n_weights(const struct linear_args *a, bool cols)
{
    const size_t rows = cols ? a->n_k : a->n_w, row = cols ? a->n_w : a->n_k;
    return rows ? (rows - 1) * a->w_stride + row : 0;
}

static size_t rows_floats(size_t n, size_t stride, size_t row)
{
    return n ? (n - 1) * stride + row : 0;
}

/* How memory is asked for goes with loops of its own, and no machine takes both: here every product
 * may, also one that must have the bits of another. */
static void ask_anyhow(void)
{
    kernels_asks_early = random_below(2);
}

/* Shapes whose truth is affordable and fits the areas; sometimes large in one direction. */
static struct linear_args linear_random_shape(bool cols)
{
    ask_anyhow();
    struct linear_args a = {.n_x = random_size(140), .n_w = random_size(1100), .n_k = 1};
    a.n_k = random_size(2100);
    while (a.n_x * a.n_w * a.n_k > 400000 || a.n_w * a.n_k > 200000 || a.n_x * a.n_k > 200000) {
        a.n_x = (a.n_x + 1) / 2;
        a.n_w = (a.n_w + 1) / 2;
    }
    if (random_below(16) == 0) /* more rows of x than a kernel takes at a time */
        a = (struct linear_args){
            .n_x = 504 + random_below(24), .n_w = random_below(20), .n_k = 1 + random_below(36)};
    if (a.n_x >= 500 && random_below(2)) /* and more of k */
        a.n_k = 860 + random_below(46);
    if (random_below(24) == 0) /* so many weights that few rows of x ask for them */
        a = (struct linear_args){.n_x = 1 + random_below(17),
                                 .n_w = 260 + random_below(200),
                                 .n_k = 1010 + random_below(90)};
    if (random_below(24) == 0) /* more columns than a strip has */
        a = (struct linear_args){.n_x = 1 + random_below(3),
                                 .n_w = 4090 + random_below(4200),
                                 .n_k = 1 + random_below(60)};
    a.x_stride = a.n_k + random_below(4);
    a.y_stride = a.n_w + random_below(4);
    a.w_stride = (cols ? a.n_w : a.n_k) + random_below(4);
    a.add = random_below(2);
    a.scale = random_below(3) ? 1 : random_unit() * 4;
    return a;
}

/* The sums of |x w|, from the definition on operands without their signs. */
static void linear_magnitudes(const struct slot *slot, const struct linear_args *a, float *out)
{
    const size_t n_w = linear_n_weights(a, slot->cols), size = weight_size(slot->type);
    const size_t n_x = rows_floats(a->n_x, a->x_stride, a->n_k);
    unsigned char *w = malloc(n_w * size + 1);
    float *x = malloc(n_x * sizeof *x + 1);
    memcpy(w, a->w, n_w * size);
    for (size_t i = 0; i < n_w; i++)
        w[(i + 1) * size - 1] &= 0x7f;
    for (size_t i = 0; i < n_x; i++)
        x[i] = fabsf(((const float *)a->x)[i]);
    linear_fn *truth;
    slot_get(slot, scalar, &truth);
    truth(&(struct linear_args){.y = out,
                                .y_stride = a->y_stride,
                                .x = x,
                                .x_stride = a->x_stride,
                                .n_x = a->n_x,
                                .w = w,
                                .w_stride = a->w_stride,
                                .n_w = a->n_w,
                                .n_k = a->n_k,
                                .scale = 1});
    free(x);
    free(w);
}

static void linear_compare(const struct slot *slot, const struct linear_args *a, const float *y0)
{
    const size_t n_y = rows_floats(a->n_x, a->y_stride, a->n_w);
    float *expected = malloc(n_y * sizeof *expected + 1);
    float *magnitudes = malloc(n_y * sizeof *magnitudes + 1);
    memcpy(expected, y0, n_y * sizeof *y0);
    struct linear_args truth_args = *a;
    truth_args.y = expected;
    linear_fn *truth;
    slot_get(slot, scalar, &truth);
    truth(&truth_args);
    linear_magnitudes(slot, a, magnitudes);
    for (size_t at = 0; at < n_y; at++) {
        const size_t r = at % a->y_stride;
        if (r >= a->n_w) {
            expect_same(a->y + at, y0 + at, 1, "between rows");
            continue;
        }
        const double bias = a->bias ? fabs((double)a->bias[r]) : 0;
        const double scaled = fabs((double)a->scale) *
                              (sum_tolerance(a->n_k, (double)magnitudes[at]) + 4 * ulp * bias);
        const double last = 4 * ulp * (fabs((double)y0[at]) + fabs((double)expected[at]));
        expect_close(a->y[at], expected[at], isfinite(scaled) ? scaled + last + 8 * least : 0, at);
    }
    free(magnitudes);
    free(expected);
}

/* Rows [i, i + n) of x and a window of the weights, somewhere else in memory, with the same
 * bits. */
static void linear_again(const struct slot *slot, linear_fn *f, const struct linear_args *a,
                         const float *y0, size_t i, size_t n)
{
    if (i + n > a->n_x || a->n_w == 0)
        return;
    const size_t first = random_below(a->n_w), n_w = 1 + random_below(a->n_w - first);
    const size_t size = weight_size(slot->type);
    const size_t skip = slot->cols ? first : first * a->w_stride;
    struct linear_args b = *a;
    b.n_x = n;
    b.n_w = n_w;
    b.y_stride = n_w;
    b.bias = a->bias ? a->bias + first : NULL;
    const size_t n_weights = linear_n_weights(&b, slot->cols);
    unsigned char *w = area_place(4, n_weights * size, 1);
    memcpy(w, (const unsigned char *)a->w + skip * size, n_weights * size);
    b.w = w;
    b.x = (const float *)a->x + i * a->x_stride;
    b.y = area_floats(5, n * n_w);
    for (size_t j = 0; j < n; j++)
        memcpy(b.y + j * n_w, y0 + (i + j) * a->y_stride + first, n_w * sizeof *b.y);
    ask_anyhow();
    f(&b);
    for (size_t j = 0; j < n; j++)
        expect_same(b.y + j * n_w, a->y + (i + j) * a->y_stride + first, n_w,
                    "rows cut differently");
}

static void check_linear(const struct slot *slot, const struct kernels *k)
{
    linear_fn *f;
    slot_get(slot, k, &f);
    for (int n = 0; n < N_CASES; n++) {
        struct linear_args a = linear_random_shape(slot->cols);
        const enum kind kind = random_below(N_KINDS);
        const size_t n_x = rows_floats(a.n_x, a.x_stride, a.n_k);
        const size_t n_y = rows_floats(a.n_x, a.y_stride, a.n_w);
        const size_t n_w = linear_n_weights(&a, slot->cols);
        float *x = area_floats(0, n_x), *y = area_floats(1, n_y), *bias = area_floats(2, a.n_w);
        unsigned char *w = area_place(3, n_w * weight_size(slot->type), 1);
        random_floats(x, n_x, kind);
        random_floats(y, n_y, PLAIN);
        random_floats(bias, a.n_w, PLAIN);
        random_weights(w, n_w, slot->type, kind);
        float *y0 = malloc(n_y * sizeof *y0 + 1);
        memcpy(y0, y, n_y * sizeof *y);
        a.x = x;
        a.y = y;
        a.w = w;
        a.bias = random_below(2) ? bias : NULL;
        snprintf(parameters, sizeof parameters,
                 "%s %s n_x %zu n_w %zu n_k %zu strides x %zu y %zu w %zu scale %g%s%s kind %d",
                 k->level, slot->name, a.n_x, a.n_w, a.n_k, a.x_stride, a.y_stride, a.w_stride,
                 (double)a.scale, a.bias ? " bias" : "", a.add ? " add" : "", (int)kind);
        f(&a);
        linear_compare(slot, &a, y0);
        if (a.n_x) {
            linear_again(slot, f, &a, y0, random_below(a.n_x), 1);
            linear_again(slot, f, &a, y0, random_below(a.n_x), 2);
            linear_again(slot, f, &a, y0, random_below(a.n_x), 1 + random_below(a.n_x));
        }
        areas_check();
        free(y0);
    }
}

/* ---- conversions ---- */

/* Every bit pattern, cut into pieces of odd sizes. */
static void check_to_f32(const struct slot *slot, const struct kernels *k)
{
    convert_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    uint32_t next = 0;
    for (size_t done = 0; done < 65536;) {
        const size_t n = random_size(1000);
        unsigned char *in = area_place(0, n * weight_size(slot->type), 1);
        for (size_t i = 0; i < n; i++, next++) {
            const uint32_t bits = slot->type == WEIGHT_F32 ? (uint32_t)random_bits() : next;
            memcpy(in + i * weight_size(slot->type), &bits, weight_size(slot->type));
        }
        float *out = area_floats(1, n), *expected = area_floats(2, n);
        snprintf(parameters, sizeof parameters, "%s %s n %zu", k->level, slot->name, n);
        f(out, in, n);
        truth(expected, in, n);
        for (size_t i = 0; i < n; i++)
            if (bits_of(out[i]) != bits_of(expected[i]))
                fail_msg("[%zu] is 0x%08x, not 0x%08x: %s, seed %lu", i, bits_of(out[i]),
                         bits_of(expected[i]), parameters, seed);
        areas_check();
        done += n;
    }
}

/* Every code with scales of every size, in groups of any size, the last one cut short. */
static void check_decode(const struct slot *slot, const struct kernels *k)
{
    const bool half = slot->type == CODE_U4 || slot->type == CODE_F4_E2M1;
    decode_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 4 * N_CASES; c++) {
        const size_t n = random_size(3000), group = (1 + random_size(200)) * (half ? 2 : 1);
        const size_t n_groups = (n + group - 1) / group, n_bytes = half ? (n + 1) / 2 : n;
        const enum kind kind = random_below(N_KINDS);
        unsigned char *in = area_place(0, n_bytes, 1);
        float *scales = area_floats(1, n_groups), *zeros = area_floats(2, n_groups);
        float *out = area_floats(3, n), *expected = area_floats(4, n);
        for (size_t i = 0; i < n_bytes; i++)
            in[i] = (unsigned char)random_bits();
        random_floats(scales, n_groups, kind);
        for (size_t i = 0; i < n_groups; i++)
            zeros[i] = (float)random_below(300) - 20;
        if (random_below(2))
            zeros = NULL;
        snprintf(parameters, sizeof parameters, "%s %s n %zu group %zu kind %d%s", k->level,
                 slot->name, n, group, (int)kind, zeros ? " zeros" : "");
        f(out, in, n, group, scales, zeros);
        truth(expected, in, n, group, scales, zeros);
        expect_same(out, expected, n, "differs from the definition");
        areas_check();
    }
}

/* ---- element by element ---- */

/* Numbers of every size, those where the functions bend more often than others. */
static void random_arguments(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t kind = random_below(4);
        const uint32_t bits = (uint32_t)random_bits();
        if (kind == 0)
            memcpy(&x[i], &bits, sizeof bits);
        else
            x[i] = random_unit() * (kind == 1 ? 1.0f : kind == 2 ? 12.0f : 120.0f);
    }
}

/*
 * An exponential is off by the rounding of its exponent: half an ulp for every unit of it. The
 * exponents here are at most |x| + x^2 / 2 as far as a result differs from 0, which is up to 110.
 * The last term is what 1 + tanh() loses in double.
 */
static double function_tolerance(double x, double expected)
{
    const double size = fabs(x), exponent = fmin(size + size * size / 2, 110);
    return fabs(expected) * (8 + 4 * exponent) * ulp + fmin(size, 110) * 0x1p-52;
}

static void check_one_operand(const struct slot *slot, const struct kernels *k)
{
    one_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 4 * N_CASES; c++) {
        const size_t n = random_size(3000);
        float *x = area_floats(0, n), *y = area_floats(1, n), *expected = area_floats(2, n);
        random_arguments(x, n);
        memcpy(y, x, n * sizeof *y);
        memcpy(expected, x, n * sizeof *expected);
        snprintf(parameters, sizeof parameters, "%s %s n %zu", k->level, slot->name, n);
        f(y, n);
        truth(expected, n);
        for (size_t i = 0; i < n; i++)
            expect_close(y[i], expected[i], function_tolerance((double)x[i], (double)expected[i]),
                         i);
        const size_t from = n ? random_below(n) : 0;
        const size_t n_part = n ? random_below(n - from) + 1 : 0;
        float *part = area_floats(3, n_part);
        memcpy(part, x + from, n_part * sizeof *part);
        f(part, n_part);
        expect_same(part, y + from, n_part, "array cut differently");
        areas_check();
    }
}

static void check_two_operands(const struct slot *slot, const struct kernels *k)
{
    two_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < N_CASES; c++) {
        const size_t n = random_size(3000);
        float *x = area_floats(0, n), *y = area_floats(1, n), *expected = area_floats(2, n);
        random_arguments(x, n);
        random_arguments(y, n);
        memcpy(expected, y, n * sizeof *y);
        snprintf(parameters, sizeof parameters, "%s %s n %zu", k->level, slot->name, n);
        f(y, x, n);
        truth(expected, x, n);
        expect_same(y, expected, n, "differs from the definition");
        areas_check();
    }
}

static void check_scale(const struct slot *slot, const struct kernels *k)
{
    (void)slot;
    for (int c = 0; c < N_CASES; c++) {
        const size_t n = random_size(3000);
        float *x = area_floats(0, n), *y = area_floats(1, n), *expected = area_floats(2, n);
        float factor;
        random_arguments(x, n);
        random_arguments(&factor, 1);
        float *const out = random_below(2) ? x : y;
        snprintf(parameters, sizeof parameters, "%s scale n %zu", k->level, n);
        scalar->scale(expected, x, factor, n);
        k->scale(out, x, factor, n);
        expect_same(out, expected, n, "differs from the definition");
        areas_check();
    }
}

static void check_rope(const struct slot *slot, const struct kernels *k)
{
    for (int c = 0; c < N_CASES; c++) {
        const size_t half = random_size(200), n = 2 * half;
        const enum kind kind = random_below(N_KINDS);
        float *x = area_floats(0, n), *cosines = area_floats(1, half),
              *sines = area_floats(2, half);
        float *y = area_floats(3, n), *expected = area_floats(4, n);
        random_floats(x, n, kind);
        random_floats(cosines, half, PLAIN);
        random_floats(sines, half, PLAIN);
        memcpy(y, x, n * sizeof *x);
        memcpy(expected, x, n * sizeof *x);
        snprintf(parameters, sizeof parameters, "%s %s n %zu", k->level, slot->name, n);
        k->rope_half(y, cosines, sines, n);
        scalar->rope_half(expected, cosines, sines, n);
        for (size_t i = 0; i < n; i++) {
            const double size =
                fabs((double)x[i]) + fabs((double)x[i < half ? i + half : i - half]);
            expect_close(y[i], expected[i], isfinite(size) ? 4 * ulp * size + 4 * least : 0, i);
        }
        areas_check();
    }
}

/* ---- norms, softmax ---- */

static void norm(const struct slot *slot, const struct kernels *k, float *out, const float *x,
                 const float *weight, const float *bias, size_t n)
{
    const float eps = 1e-5f;
    if (slot->offset == offsetof(struct kernels, norm_rms))
        k->norm_rms(out, x, weight, n, eps);
    else
        k->norm_layer(out, x, weight, bias, n, eps);
}

static void check_norm(const struct slot *slot, const struct kernels *k)
{
    for (int c = 0; c < N_CASES; c++) {
        const size_t n = 1 + random_size(3000);
        const float size = powf(10, 4 - (float)random_below(8)), offset = random_unit() * size;
        float *x = area_floats(0, n), *weight = area_floats(1, n), *bias = area_floats(2, n);
        float *y = area_floats(3, n), *expected = area_floats(4, n), *place = area_floats(5, n);
        double squares = 0, largest = 0, mean = 0;
        random_floats(x, n, random_below(10) ? PLAIN : SPECIAL);
        random_floats(weight, n, PLAIN);
        random_floats(bias, n, PLAIN);
        for (size_t i = 0; i < n; i++) {
            x[i] = x[i] * size + offset;
            mean += (double)x[i] / (double)n;
            largest = fmax(largest, fabs((double)x[i]));
        }
        if (slot->offset == offsetof(struct kernels, norm_rms))
            mean = 0;
        for (size_t i = 0; i < n; i++)
            squares += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
        snprintf(parameters, sizeof parameters, "%s %s n %zu size %g offset %g", k->level,
                 slot->name, n, (double)size, (double)offset);
        const float *b = random_below(2) ? bias : NULL;
        norm(slot, k, y, x, weight, b, n);
        norm(slot, scalar, expected, x, weight, b, n);
        const double tolerance = sum_tolerance(n, largest / sqrt(squares + 1e-5)) + 16 * ulp;
        for (size_t i = 0; i < n; i++)
            expect_close(y[i], expected[i], isfinite(tolerance) ? tolerance : 0, i);
        memcpy(place, x, n * sizeof *x);
        norm(slot, k, place, place, weight, b, n);
        expect_same(place, y, n, "in place");
        areas_check();
    }
}

static void check_softmax(const struct slot *slot, const struct kernels *k)
{
    for (int c = 0; c < N_CASES; c++) {
        const size_t n = random_size(3000), holes = random_below(4);
        float *x = area_floats(0, n), *y = area_floats(1, n), *expected = area_floats(2, n);
        float *again = area_floats(3, n);
        const float size = powf(10, (float)random_below(5) - 2);
        double max = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            const bool hole = holes == 3 || (holes == 2 && random_below(3) == 0);
            x[i] = hole ? -INFINITY : random_unit() * size;
            max = fmax(max, (double)x[i]);
        }
        if (n && random_below(20) == 0)
            x[random_below(n)] = random_below(2) ? NAN : INFINITY;
        memcpy(y, x, n * sizeof *x);
        memcpy(expected, x, n * sizeof *x);
        memcpy(again, x, n * sizeof *x);
        snprintf(parameters, sizeof parameters, "%s %s n %zu size %g holes %zu", k->level,
                 slot->name, n, (double)size, holes);
        k->softmax(y, n);
        scalar->softmax(expected, n);
        for (size_t i = 0; i < n; i++) {
            const double below = fmin(max - (double)x[i], 110);
            const double relative = (16 + 4 * sqrt((double)n) + 2 * below) * ulp;
            expect_close(y[i], expected[i],
                         isfinite(x[i]) ? relative * (double)expected[i] + 4 * least : 0, i);
        }
        k->softmax(again, n);
        expect_same(again, y, n, "elsewhere in memory");
        areas_check();
    }
}

/* ---- the cache ---- */

static const size_t cache_bytes[] = {[CACHE_F32] = 4, [CACHE_F16] = 2, [CACHE_I8] = 1};

/* Every size of number: those that a half holds as they are, the ties between two, and the rest. */
static float random_element(enum kind kind)
{
    const uint16_t half = (uint16_t)random_bits();
    float f;
    scalar->to_f32[WEIGHT_F16](&f, &half, 1);
    switch (random_below(4)) {
    case 0:
        return kind == SPECIAL || isfinite(f) ? f : 0;
    case 1:
        return isfinite(f) ? f * (1 + 0x1p-11f) : 1e6f;
    case 2:
        return random_unit() * 0x1p-14f;
    default:
        return random_value(kind);
    }
}

static void check_cache_store(const struct slot *slot, const struct kernels *k)
{
    store_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 4 * N_CASES; c++) {
        const size_t n = random_size(600), stride = 1 + random_below(70);
        const size_t n_bytes = rows_floats(n, stride, 1) * cache_bytes[slot->type];
        const enum kind kind = random_below(N_KINDS);
        float *x = area_floats(0, n);
        for (size_t i = 0; i < n; i++)
            x[i] = random_below(2) ? random_element(kind) : random_value(kind);
        unsigned char *out = area_place(1, n_bytes, 4), *expected = area_place(2, n_bytes, 4);
        memset(out, CANARY, n_bytes);
        memset(expected, CANARY, n_bytes);
        snprintf(parameters, sizeof parameters, "%s %s n %zu stride %zu kind %d", k->level,
                 slot->name, n, stride, (int)kind);
        const float scale = f(out, stride, x, n), expected_scale = truth(expected, stride, x, n);
        expect_same(&scale, &expected_scale, 1, "scale");
        for (size_t i = 0; i < n_bytes; i++)
            if (out[i] != expected[i])
                fail_msg("byte %zu is 0x%02x, not 0x%02x: %s, seed %lu", i, out[i], expected[i],
                         parameters, seed);
        areas_check();
    }
}

/* Keys side by side: what cache_store writes, one after the other. */
static void check_cache_store_keys(const struct slot *slot, const struct kernels *k)
{
    keys_fn *f;
    slot_get(slot, k, &f);
    for (int c = 0; c < 4 * N_CASES; c++) {
        const size_t n = random_size(200), x_stride = n + random_below(70);
        const size_t n_out = n ? (n - 1) * ATTEND_BLOCK + ATTEND_LANES : 0;
        const enum kind kind = random_below(N_KINDS);
        float *x = area_floats(0, rows_floats(ATTEND_LANES, x_stride, n));
        uint16_t *out = area_place(1, n_out * 2, 2), *expected = area_place(2, n_out * 2, 2);
        for (size_t i = 0; i < rows_floats(ATTEND_LANES, x_stride, n); i++)
            x[i] = random_below(2) ? random_element(kind) : random_value(kind);
        memset(out, CANARY, n_out * 2);
        memset(expected, CANARY, n_out * 2);
        snprintf(parameters, sizeof parameters, "%s %s n %zu stride %zu kind %d", k->level,
                 slot->name, n, x_stride, (int)kind);
        f(out, x, x_stride, n);
        for (size_t i = 0; i < ATTEND_LANES; i++)
            scalar->cache_store[CACHE_F16](expected + i, ATTEND_BLOCK, x + i * x_stride, n);
        for (size_t i = 0; i < n_out; i++)
            if (out[i] != expected[i])
                fail_msg("half %zu is 0x%04x, not 0x%04x: %s, seed %lu", i, out[i], expected[i],
                         parameters, seed);
        areas_check();
    }
}

/* ---- attention ---- */

enum { MAX_ROWS = 110 };

/* A call and what it is made of; rows keep their state as it was before the call. */
struct attention {
    struct attend_args a;
    struct attend_row rows[MAX_ROWS];
    float *acc; /* [n_rows, v_dim] */
    int type;
    bool rounded; /* queries are bf16 */
};

static void random_elements(unsigned char *at, size_t n, int type)
{
    if (type == CACHE_I8)
        for (size_t i = 0; i < n; i++)
            at[i] = (unsigned char)random_bits();
    else
        random_weights(at, n, type == CACHE_F16 ? WEIGHT_F16 : WEIGHT_F32, PLAIN);
}

static float *random_scales(size_t area)
{
    float *const scales = area_floats(area, ATTEND_BLOCK);
    for (size_t j = 0; j < ATTEND_BLOCK; j++)
        scales[j] = (1.1f + random_unit()) / 127;
    return scales;
}

/* Rows before, in and behind the block, mostly one behind the other, some of which have seen
 * something already. */
static void random_rows(struct attention *t, const float *q)
{
    int position = t->a.position - 1 - (int)random_below(30);
    const int window = random_below(2) ? 0 : 1 + (int)random_below(100);
    const bool slopes = random_below(3) == 0;
    for (size_t i = 0; i < t->a.n_rows; i++) {
        struct attend_row *const row = &t->rows[i];
        position += (int)random_below(random_below(8) ? 3 : 30) - 60 * !random_below(8);
        position = position < 0 ? 0 : position;
        const bool fresh = random_below(2);
        *row =
            (struct attend_row){.q = q + i * t->a.k_dim,
                                .acc = t->acc + i * t->a.v_dim,
                                .max = fresh ? -INFINITY : random_unit() * 4,
                                .sum = fresh ? 0 : 1 + (float)random_below(20),
                                .slope = slopes ? random_unit() : 0,
                                .position = position,
                                .first = window && position >= window ? position - window + 1 : 0};
        for (size_t d = 0; d < t->a.v_dim; d++)
            row->acc[d] = fresh ? 0 : random_unit() * 3;
    }
}

/* A value as bf16, and what that is. */
static float round_to_bf16(uint16_t *half, float x)
{
    float out;
    uint16_t whole[32];
    scalar->to_bf16(whole, &x, 1);
    scalar->to_f32[WEIGHT_BF16](&out, whole, 1);
    *half = whole[0];
    return out;
}

/* Queries in bf16, each with a zero behind an odd number of values. */
static void round_queries(struct attention *t)
{
    const size_t stride = (t->a.k_dim + 1) / 2 * 2;
    uint16_t *const halves = area_place(2, t->a.n_rows * stride * sizeof *halves, sizeof *halves);
    for (size_t i = 0; i < t->a.n_rows; i++) {
        uint16_t *const q = halves + i * stride;
        q[stride - 1] = 0;
        for (size_t d = 0; d < t->a.k_dim; d++)
            round_to_bf16(&q[d], random_unit());
        t->rows[i].q = q;
    }
    t->a.room = area_place(6, kernels_attend_room(t->a.k_dim, t->a.v_dim), 64);
}

static void random_attention(struct attention *t, int type, bool rounded)
{
    const size_t k_dim = 1 + random_size(280), n_rows = 1 + random_size(MAX_ROWS - 1);
    const size_t v_dim = ATTEND_LANES * (1 + random_below(9));
    *t = (struct attention){.type = type, .rounded = rounded};
    unsigned char *const k = area_place(0, k_dim * ATTEND_BLOCK * cache_bytes[type], 4);
    unsigned char *const v = area_place(1, v_dim * ATTEND_BLOCK * cache_bytes[type], 4);
    float *const q = area_floats(2, n_rows * k_dim);
    random_elements(k, k_dim * ATTEND_BLOCK, type);
    random_elements(v, v_dim * ATTEND_BLOCK, type);
    random_floats(q, n_rows * k_dim, PLAIN);
    t->acc = area_floats(3, n_rows * v_dim);
    t->a = (struct attend_args){.n_rows = n_rows,
                                .k = k,
                                .v = v,
                                .k_dim = k_dim,
                                .v_dim = v_dim,
                                .position = ATTEND_BLOCK * (int)random_below(40),
                                .scale = (0.1f + fabsf(random_unit())) / sqrtf((float)k_dim),
                                .softcap = random_below(3) ? 0 : 1 + 50 * fabsf(random_unit())};
    ask_anyhow();
    if (random_below(2)) {
        t->a.next_k = k;
        t->a.next_v = v;
    }
    if (type == CACHE_I8 || random_below(4) == 0) {
        t->a.k_scales = random_scales(4);
        t->a.v_scales = random_scales(5);
    }
    random_rows(t, q);
    if (rounded)
        round_queries(t);
}

/* The rows [first, first + n) go over the block; the results are in rows and acc. */
static void attention_run(const struct attention *t, attend_fn *f, struct attend_row *rows,
                          float *acc, size_t first, size_t n)
{
    struct attend_args a = t->a;
    memcpy(rows, t->rows + first, n * sizeof *rows);
    memcpy(acc, t->acc + first * a.v_dim, n * a.v_dim * sizeof *acc);
    for (size_t i = 0; i < n; i++)
        rows[i].acc = acc + i * a.v_dim;
    a.rows = rows;
    a.n_rows = n;
    f(&a);
}

static float element(const struct attention *t, const void *cache, size_t i)
{
    float f;
    if (t->type == CACHE_I8)
        return ((const int8_t *)cache)[i];
    scalar->to_f32[t->type == CACHE_F16 ? WEIGHT_F16 : WEIGHT_F32](
        &f, (const unsigned char *)cache + i * cache_bytes[t->type], 1);
    return f;
}

static double query(const struct attention *t, const struct attend_row *row, size_t d)
{
    float f;
    scalar->to_f32[t->rounded ? WEIGHT_BF16 : WEIGHT_F32](
        &f, (const unsigned char *)row->q + d * (t->rounded ? 2 : 4), 1);
    return (double)f;
}

/* n elements of a cache, rounded to bf16, in malloc'ed memory. */
static float *rounded_elements(const struct attention *t, const void *cache, size_t n)
{
    uint16_t unused;
    float *const out = malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = round_to_bf16(&unused, element(t, cache, i));
    return out;
}

/* The definition on what the slot sees: where it rounds, on rounded operands. */
static void attention_truth(const struct attention *t, struct attend_row *rows, float *acc)
{
    if (!t->rounded) {
        attention_run(t, scalar->attend[t->type], rows, acc, 0, t->a.n_rows);
        return;
    }
    static struct attention exact;
    exact = *t;
    float *const k = rounded_elements(t, t->a.k, t->a.k_dim * ATTEND_BLOCK);
    float *const v = rounded_elements(t, t->a.v, t->a.v_dim * ATTEND_BLOCK);
    float *const q = malloc(t->a.n_rows * t->a.k_dim * sizeof *q);
    for (size_t i = 0; i < t->a.n_rows; i++) {
        exact.rows[i].q = q + i * t->a.k_dim;
        for (size_t d = 0; d < t->a.k_dim; d++)
            q[i * t->a.k_dim + d] = (float)query(t, &t->rows[i], d);
    }
    exact.a.k = k;
    exact.a.v = v;
    attention_run(&exact, scalar->attend[CACHE_F32], rows, acc, 0, t->a.n_rows);
    free(k);
    free(v);
    free(q);
}

static bool is_seen(const struct attention *t, const struct attend_row *row, size_t j)
{
    const int position = t->a.position + (int)j;
    return position >= row->first && position <= row->position;
}

/* How far a score of the row may be off. */
static double score_tolerance(const struct attention *t, const struct attend_row *row)
{
    double largest = 0;
    for (size_t j = 0; j < ATTEND_BLOCK; j++) {
        double sum = 0;
        for (size_t d = 0; is_seen(t, row, j) && d < t->a.k_dim; d++)
            sum += fabs(query(t, row, d) * (double)element(t, t->a.k, d * ATTEND_BLOCK + j));
        largest = fmax(largest, sum * (t->a.k_scales ? (double)t->a.k_scales[j] : 1));
    }
    const double distance = fabs((double)row->slope) * (row->position - t->a.position + 1);
    return (double)t->a.scale * sum_tolerance(t->a.k_dim, largest) +
           ulp * (16 * (double)t->a.softcap + 4 * fabs(distance));
}

static void attention_compare(const struct attention *t, const struct attend_row *found,
                              const struct attend_row *expected)
{
    for (size_t i = 0; i < t->a.n_rows; i++) {
        const struct attend_row *const row = &t->rows[i];
        const double score = score_tolerance(t, row), relative = 4 * score + 300 * ulp;
        const double weight = relative + (t->rounded ? 0x1p-8 : 0); /* of a value */
        expect_close(found[i].max, expected[i].max, score, i);
        expect_close(found[i].sum, expected[i].sum, relative * (double)expected[i].sum, i);
        for (size_t d = 0; d < t->a.v_dim; d++) {
            double max = 0;
            for (size_t j = 0; j < ATTEND_BLOCK; j++)
                if (is_seen(t, row, j))
                    max = fmax(max, fabs((double)element(t, t->a.v, j * t->a.v_dim + d)) *
                                        (t->a.v_scales ? (double)t->a.v_scales[j] : 1));
            expect_close(
                found[i].acc[d], expected[i].acc[d],
                relative * fabs((double)row->acc[d]) + weight * max * (double)expected[i].sum, d);
        }
    }
}

/* What none of the rows [first, first + n) sees becomes NaN, as far as there is one. */
static void spoil_unseen(struct attention *t, size_t first, size_t n)
{
    static const unsigned char nan[] = {0xff, 0xff, 0xff, 0xff};
    const size_t size = cache_bytes[t->type];
    for (size_t j = 0; j < ATTEND_BLOCK; j++) {
        bool seen = false;
        for (size_t i = first; i < first + n; i++)
            seen = seen || is_seen(t, &t->rows[i], j);
        for (size_t d = 0; !seen && t->type != CACHE_I8 && d < t->a.k_dim; d++)
            memcpy((unsigned char *)(uintptr_t)t->a.k + (d * ATTEND_BLOCK + j) * size, nan, size);
        for (size_t d = 0; !seen && t->type != CACHE_I8 && d < t->a.v_dim; d++)
            memcpy((unsigned char *)(uintptr_t)t->a.v + (j * t->a.v_dim + d) * size, nan, size);
        if (!seen && t->a.k_scales)
            ((float *)(uintptr_t)t->a.k_scales)[j] = NAN;
        if (!seen && t->a.v_scales)
            ((float *)(uintptr_t)t->a.v_scales)[j] = NAN;
    }
}

/* Some rows alone, where what they do not see has become NaN, with the same bits. */
static void attention_again(struct attention *t, attend_fn *f, const struct attend_row *whole)
{
    const size_t first = random_below(t->a.n_rows);
    const size_t n = random_below(2) ? 1 : 1 + random_below(t->a.n_rows - first);
    struct attend_row rows[MAX_ROWS];
    float *const acc = malloc(n * t->a.v_dim * sizeof *acc);
    spoil_unseen(t, first, n);
    attention_run(t, f, rows, acc, first, n);
    for (size_t i = 0; i < n; i++) {
        expect_same(&rows[i].max, &whole[first + i].max, 1, "max of a part of the rows");
        expect_same(&rows[i].sum, &whole[first + i].sum, 1, "sum of a part of the rows");
        expect_same(rows[i].acc, whole[first + i].acc, t->a.v_dim, "a part of the rows");
    }
    free(acc);
}

static void check_attention(const struct slot *slot, const struct kernels *k, bool rounded)
{
    attend_fn *f;
    slot_get(slot, k, &f);
    for (int c = 0; c < N_CASES; c++) {
        static struct attention t;
        struct attend_row found[MAX_ROWS], expected[MAX_ROWS];
        random_attention(&t, slot->type, rounded);
        const size_t n_acc = t.a.n_rows * t.a.v_dim;
        float *const acc = malloc(n_acc * sizeof *acc), *const truth_acc =
                                                            malloc(n_acc * sizeof *acc);
        snprintf(parameters, sizeof parameters,
                 "%s %s rows %zu dims %zu %zu position %d scale %g softcap %g%s", k->level,
                 slot->name, t.a.n_rows, t.a.k_dim, t.a.v_dim, t.a.position, (double)t.a.scale,
                 (double)t.a.softcap, t.a.k_scales ? " scales" : "");
        attention_run(&t, f, found, acc, 0, t.a.n_rows);
        attention_truth(&t, expected, truth_acc);
        attention_compare(&t, found, expected);
        attention_again(&t, f, found);
        areas_check();
        free(acc);
        free(truth_acc);
    }
}

static void check_attend(const struct slot *slot, const struct kernels *k)
{
    check_attention(slot, k, false);
}

static void check_attend_bf16(const struct slot *slot, const struct kernels *k)
{
    attend_fn *f;
    slot_get(slot, k, &f);
    if (f)
        check_attention(slot, k, true);
}

/* ---- quantising ---- */

typedef float row_fn(int8_t *codes, const float *x, size_t n);
typedef void scales_fn(float *scales, const float *x, const int16_t *weights, size_t n,
                       size_t group, const int16_t *tries);
typedef void codes_fn(unsigned char *out, const float *x, const float *scales, size_t n,
                      size_t group);

static void check_quant_row(const struct slot *slot, const struct kernels *k)
{
    row_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 4 * N_CASES; c++) {
        const size_t n = random_size(3000);
        const enum kind kind = random_below(N_KINDS);
        float *x = area_floats(0, n);
        int8_t *codes = area_place(1, n, 1), *expected = area_place(2, n, 1);
        random_floats(x, n, kind);
        snprintf(parameters, sizeof parameters, "%s %s n %zu kind %d", k->level, slot->name, n,
                 (int)kind);
        const float found = f(codes, x, n), scale = truth(expected, x, n);
        expect_same(&found, &scale, 1, "differs from the definition");
        if (memcmp(codes, expected, n) != 0)
            fail_msg("differs from the definition: %s, seed %lu", parameters, seed);
        areas_check();
    }
}

/* Some groups, of the lengths that are in use and of others. */
static void random_groups(size_t *n, size_t *group)
{
    *group = random_below(2) ? 64 : 8 * (1 + (size_t)random_below(QUANT_GROUP / 8));
    *n = *group * (1 + random_size(40));
}

static void check_quant_scales(const struct slot *slot, const struct kernels *k)
{
    scales_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 4 * N_CASES; c++) {
        size_t n, group;
        int16_t tries[QUANT_TRIES];
        const enum kind kind = random_below(N_KINDS);
        random_groups(&n, &group);
        float *x = area_floats(0, n), *scales = area_floats(1, n / group);
        float *expected = area_floats(2, n / group);
        int16_t *weights = area_place(3, n * sizeof *weights, sizeof *weights);
        random_floats(x, n, kind);
        for (size_t i = 0; i < n; i++)
            weights[i] = (int16_t)(1 + random_below(random_below(2) ? 9 : QUANT_WEIGHT));
        for (size_t i = 0; i < QUANT_TRIES; i++)
            tries[i] = (int16_t)(random_below(9) ? 110 + random_below(50) : 16 + random_below(241));
        snprintf(parameters, sizeof parameters, "%s %s n %zu group %zu kind %d", k->level,
                 slot->name, n, group, (int)kind);
        f(scales, x, weights, n, group, tries);
        truth(expected, x, weights, n, group, tries);
        expect_same(scales, expected, n / group, "differs from the definition");
        areas_check();
    }
}

static void check_quant_codes(const struct slot *slot, const struct kernels *k)
{
    codes_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 4 * N_CASES; c++) {
        size_t n, group;
        const enum kind kind = random_below(N_KINDS);
        random_groups(&n, &group);
        float *x = area_floats(0, n), *scales = area_floats(1, n / group);
        unsigned char *codes = area_place(2, n / 2, 1), *expected = area_place(3, n / 2, 1);
        random_floats(x, n, kind);
        for (size_t i = 0; i < n / group; i++)
            scales[i] = random_below(20) ? random_value(kind) / 9 : 0;
        snprintf(parameters, sizeof parameters, "%s %s n %zu group %zu kind %d", k->level,
                 slot->name, n, group, (int)kind);
        f(codes, x, scales, n, group);
        truth(expected, x, scales, n, group);
        if (memcmp(codes, expected, n / 2) != 0)
            fail_msg("differs from the definition: %s, seed %lu", parameters, seed);
        areas_check();
    }
}

/* ---- speed ---- */

static void speed_linear(const struct slot *slot, const struct bench *b)
{
    linear_fn *f;
    slot_get(slot, b->k, &f);
    bench_linear(b, f, slot->cols, slot->type);
}

static void speed_to_f32(const struct slot *slot, const struct bench *b)
{
    convert_fn *f;
    slot_get(slot, b->k, &f);
    bench_to_f32(b, f, slot->type);
}

static void speed_decode(const struct slot *slot, const struct bench *b)
{
    decode_fn *f;
    slot_get(slot, b->k, &f);
    bench_decode(b, f, slot->type == CODE_U4 || slot->type == CODE_F4_E2M1);
}

static void speed_one_operand(const struct slot *slot, const struct bench *b)
{
    one_fn *f;
    slot_get(slot, b->k, &f);
    bench_elements(b, f);
}

static void speed_two_operands(const struct slot *slot, const struct bench *b)
{
    two_fn *f;
    slot_get(slot, b->k, &f);
    bench_pairs(b, f);
}

static void speed_scale(const struct slot *slot, const struct bench *b)
{
    (void)slot;
    bench_scale(b);
}

static void speed_attend(const struct slot *slot, const struct bench *b)
{
    attend_fn *f;
    slot_get(slot, b->k, &f);
    bench_attend(b, f, cache_bytes[slot->type]);
}

static void speed_attend_bf16(const struct slot *slot, const struct bench *b)
{
    attend_fn *f;
    slot_get(slot, b->k, &f);
    if (f)
        bench_attend(b, f, cache_bytes[slot->type]);
}

static void speed_cache_store(const struct slot *slot, const struct bench *b)
{
    store_fn *f;
    slot_get(slot, b->k, &f);
    bench_cache_store(b, f, cache_bytes[slot->type]);
}

static void speed_cache_store_keys(const struct slot *slot, const struct bench *b)
{
    keys_fn *f;
    slot_get(slot, b->k, &f);
    bench_cache_store_keys(b, f);
}

static void speed_quant_row(const struct slot *slot, const struct bench *b)
{
    (void)slot;
    bench_quant_row(b);
}

static void speed_quant_scales(const struct slot *slot, const struct bench *b)
{
    (void)slot;
    bench_quant_scales(b);
}

static void speed_quant_codes(const struct slot *slot, const struct bench *b)
{
    (void)slot;
    bench_quant_codes(b);
}

static void speed_rope(const struct slot *slot, const struct bench *b)
{
    (void)slot;
    bench_rope(b);
}

static void speed_norm(const struct slot *slot, const struct bench *b)
{
    bench_norm(b, slot->offset == offsetof(struct kernels, norm_layer));
}

/* ---- the table ---- */

/* A compiler that leaves the work undone would report what no thread can do. */
static void check_peak(const struct slot *slot, const struct kernels *k)
{
    enum { STEPS = 100000 };
    double (*peak)(size_t);
    slot_get(slot, k, &peak);
    double seconds = -bench_now();
    const double done = peak(STEPS);
    seconds += bench_now();
    assert_true(done >= 2 * STEPS);
    assert_true(peak(3) * STEPS == 3 * done);
    assert_true(done / seconds < 1e14);
}

/* What it reads shows nowhere; that it stays inside does. */
static void check_read_all(const struct slot *slot, const struct kernels *k)
{
    for (int i = 0; i < N_CASES; i++) {
        const size_t n = random_size(20000);
        snprintf(parameters, sizeof parameters, "%s %s n %zu", k->level, slot->name, n);
        k->read_all(area_place(0, n, 1), n);
    }
}

static void speed_read_all(const struct slot *slot, const struct bench *b)
{
    (void)slot;
    bench_line(b, "memory", BENCH_WEIGHT_BYTES / bench_read(b->k, b->w, BENCH_WEIGHT_BYTES), 0,
               BENCH_WEIGHT_BYTES);
}

static void speed_peak(const struct slot *slot, const struct bench *b)
{
    double (*peak)(size_t);
    slot_get(slot, b->k, &peak);
    printf("%-7s %-17s %-26s %8.2f GOP/s\n", b->k->level, slot->name, "registers",
           1e-9 * bench_peak(peak));
}

#include "tests/kernels/check_dots.h"

#define LINEAR(field, cols_, suffix, type_)                                                        \
    {                                                                                              \
        .name = #field " " suffix, .offset = offsetof(struct kernels, field[type_]),               \
        .check = check_linear, .bench = speed_linear, .type = type_, .cols = cols_                 \
    }
#define LINEAR_I8(field, suffix, type_, null)                                                      \
    {                                                                                              \
        .name = #field " " suffix, .offset = offsetof(struct kernels, field[type_]),               \
        .check = check_linear_i8, .bench = speed_linear_i8, .type = type_, .may_be_null = null     \
    }
#define SLOT_OR_NULL(field, check_, bench_, cols_)                                                 \
    {                                                                                              \
        .name = #field, .offset = offsetof(struct kernels, field), .check = check_,                \
        .bench = bench_, .cols = cols_, .may_be_null = true                                        \
    }
#define PEAK(suffix, type_)                                                                        \
    {                                                                                              \
        .name = "peak " suffix, .offset = offsetof(struct kernels, peak[type_]),                   \
        .check = check_peak, .bench = speed_peak, .may_be_null = (type_) != PEAK_F32               \
    }
#define TO_F32(suffix, type_)                                                                      \
    {                                                                                              \
        .name = "to_f32 " suffix, .offset = offsetof(struct kernels, to_f32[type_]),               \
        .check = check_to_f32, .bench = speed_to_f32, .type = type_                                \
    }
#define DECODE(suffix, type_)                                                                      \
    {                                                                                              \
        .name = "decode " suffix, .offset = offsetof(struct kernels, decode[type_]),               \
        .check = check_decode, .bench = speed_decode, .type = type_                                \
    }
#define SLOT(field, check_, bench_)                                                                \
    {                                                                                              \
        .name = #field, .offset = offsetof(struct kernels, field), .check = check_,                \
        .bench = bench_                                                                            \
    }

#define CACHE(field, suffix, type_, null)                                                          \
    {                                                                                              \
        .name = #field " " suffix, .offset = offsetof(struct kernels, field[type_]),               \
        .check = check_##field, .bench = speed_##field, .type = type_, .may_be_null = null         \
    }

static const struct slot slots[] = {
    LINEAR(linear_rows, false, "f32", WEIGHT_F32),
    LINEAR(linear_rows, false, "f16", WEIGHT_F16),
    LINEAR(linear_rows, false, "bf16", WEIGHT_BF16),
    LINEAR(linear_cols, true, "f32", WEIGHT_F32),
    LINEAR(linear_cols, true, "f16", WEIGHT_F16),
    LINEAR(linear_cols, true, "bf16", WEIGHT_BF16),
    SLOT_OR_NULL(linear_rows_bf16, check_linear_bf16, speed_linear_bf16, false),
    SLOT_OR_NULL(linear_cols_bf16, check_linear_bf16, speed_linear_bf16, true),
    SLOT_OR_NULL(linear_rows_f8, check_linear_f8, speed_linear_f8, false),
    SLOT_OR_NULL(linear_f8_f32, check_f8_f32, speed_f8_f32, false),
    LINEAR_I8(linear_i8, "i8", DOT_I8, false),
    LINEAR_I8(linear_i8, "u4", DOT_U4, false),
    LINEAR_I8(linear_i8, "f4", DOT_F4, false),
    LINEAR_I8(linear_woven, "i8", DOT_I8, true),
    LINEAR_I8(linear_woven, "u4", DOT_U4, true),
    SLOT(to_bf16, check_to_bf16, speed_to_bf16),
    SLOT_OR_NULL(to_quads, check_to_quads, speed_to_bf16, false),
    SLOT(to_i8, check_to_i8, speed_to_i8),
    TO_F32("f32", WEIGHT_F32),
    TO_F32("f16", WEIGHT_F16),
    TO_F32("bf16", WEIGHT_BF16),
    DECODE("f8_e4m3", CODE_F8_E4M3),
    DECODE("i8", CODE_I8),
    DECODE("u8", CODE_U8),
    DECODE("u4", CODE_U4),
    DECODE("f4_e2m1", CODE_F4_E2M1),
    SLOT(norm_rms, check_norm, speed_norm),
    SLOT(norm_layer, check_norm, speed_norm),
    SLOT(silu, check_one_operand, speed_one_operand),
    SLOT(gelu_tanh, check_one_operand, speed_one_operand),
    SLOT(gelu_erf, check_one_operand, speed_one_operand),
    SLOT(relu, check_one_operand, speed_one_operand),
    SLOT(mul, check_two_operands, speed_two_operands),
    SLOT(add, check_two_operands, speed_two_operands),
    SLOT(scale, check_scale, speed_scale),
    SLOT(rope_half, check_rope, speed_rope),
    SLOT(softmax, check_softmax, speed_one_operand),
    CACHE(cache_store, "f32", CACHE_F32, false),
    CACHE(cache_store, "f16", CACHE_F16, false),
    CACHE(cache_store, "i8", CACHE_I8, false),
    SLOT(cache_store_keys, check_cache_store_keys, speed_cache_store_keys),
    CACHE(attend, "f32", CACHE_F32, false),
    CACHE(attend, "f16", CACHE_F16, false),
    CACHE(attend, "i8", CACHE_I8, false),
    CACHE(attend_bf16, "f32", CACHE_F32, true),
    CACHE(attend_bf16, "f16", CACHE_F16, true),
    CACHE(attend_bf16, "i8", CACHE_I8, true),
    SLOT(quant_row, check_quant_row, speed_quant_row),
    SLOT(quant_scales, check_quant_scales, speed_quant_scales),
    SLOT(quant_codes, check_quant_codes, speed_quant_codes),
    PEAK("f32", PEAK_F32),
    PEAK("bf16", PEAK_BF16),
    PEAK("int8", PEAK_INT8),
    SLOT(read_all, check_read_all, speed_read_all),
};

enum { N_SLOTS = sizeof slots / sizeof *slots };

/* ---- the tests ---- */

struct job {
    const struct slot *slot;
    const struct kernels *k;
};

static void test_slot(void **state)
{
    const struct job *job = *state;
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    random_state = seed;
    job->slot->check(job->slot, job->k);
}

/* Weights are woven for vectors of x86, and not for tiles. */
static bool weaves(const char *level)
{
    return strncmp(level, "avx", 3) == 0;
}

/* A slot that nobody checks, or that a level leaves empty. */
static void test_table(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct kernels, per_cycle),
                     sizeof(char *) + N_SLOTS * sizeof(void (*)(void)));
    for (const char *const *level = kernels_levels; *level; level++) {
        const struct kernels *k = kernels_for(*level);
        for (size_t i = 0; k && i < N_SLOTS; i++)
            if (slot_is_null(&slots[i], k) && !slots[i].may_be_null)
                fail_msg("%s has no %s", *level, slots[i].name);
        if (!k)
            continue;
        assert_string_equal(k->level, *level);
        for (int peak = 0; peak < N_PEAKS; peak++)
            assert_true(k->per_cycle[peak] > 0);
        for (int type = 0; type < N_WOVEN_TYPES; type++)
            assert_int_equal(k->linear_woven[type] != NULL, weaves(*level));
    }
    assert_ptr_equal(kernels_for(kernels_best()->level), kernels_best());
    assert_null(kernels_for("avx3"));
}

static void expect_values(const float *found, const double *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_close(found[i], (float)expected[i], 1e-6 * fabs(expected[i]), i);
}

static void test_known_conversions(void **state)
{
    (void)state;
    const uint16_t f16[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0x8000, 0x7c00, 0xfc00};
    const double as_f32[] = {1,    -2,       65504,    0x1p-14, 0x1p-24, -1023 * 0x1p-24,
                             -0.0, INFINITY, -INFINITY};
    const uint16_t bf16[] = {0x3f80, 0xc000, 0x7f7f, 0x0001, 0xff80};
    const double as_f32_too[] = {1, -2, 0x1.fep127, 0x1p-133, -INFINITY};
    float out[9];
    scalar->to_f32[WEIGHT_F16](out, f16, 9);
    expect_values(out, as_f32, 9);
    assert_true(signbit(out[6]));
    scalar->to_f32[WEIGHT_BF16](out, bf16, 5);
    expect_values(out, as_f32_too, 5);
    scalar->to_f32[WEIGHT_F16](out, (const uint16_t[]){0x7c01, 0xfe00}, 2);
    assert_int_equal(bits_of(out[0]), 0x7fc02000);
    assert_int_equal(bits_of(out[1]), 0xffc00000);
}

/* The largest, the smallest, subnormal and signed codes, from the formats' own tables. */
static void test_known_codes(void **state)
{
    (void)state;
    const unsigned char f8[] = {0x38, 0x7e, 0x08, 0x07, 0x01, 0x81, 0xfe, 0x80};
    const double f8_values[] = {1, 448, 0x1p-6, 7 * 0x1p-9, 0x1p-9, -0x1p-9, -448, -0.0};
    float out[16];
    scalar->decode[CODE_F8_E4M3](out, f8, 8, 8, (const float[]){1}, NULL);
    expect_values(out, f8_values, 8);
    assert_true(signbit(out[7]));
    scalar->decode[CODE_F8_E4M3](out, "\x7f\xff", 2, 2, (const float[]){1}, NULL);
    assert_true(isnan(out[0]) && isnan(out[1]));

    const unsigned char halves[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
    const double f4_values[] = {0, 1, 2, 3, 4, 6, 8, 12, -0.0, -1, -2, -3, -4, -6, -8, -12};
    scalar->decode[CODE_F4_E2M1](out, halves, 16, 16, (const float[]){2}, NULL);
    expect_values(out, f4_values, 16);
    const double u4[] = {-8, -7, -6, -5, -4, -3, -2, -1, 14, 16, 18, 20, 22, 24, 26, 28};
    scalar->decode[CODE_U4](out, halves, 16, 8, (const float[]){1, 2}, (const float[]){8, 1});
    expect_values(out, u4, 16);
    scalar->decode[CODE_I8](out, halves, 8, 8, (const float[]){1}, NULL);
    expect_values(out, (const double[]){16, 50, 84, 118, -104, -70, -36, -2}, 8);
    scalar->decode[CODE_U8](out, halves, 8, 8, (const float[]){1}, (const float[]){128});
    expect_values(out, (const double[]){-112, -78, -44, -10, 24, 58, 92, 126}, 8);
}

static void test_known_linear(void **state)
{
    (void)state;
    const float x[] = {1, 2, 3, 4}, w[] = {1, 10, 100, 1000}, bias[] = {0.5f, -0.5f};
    float y[] = {1, 1, 1, 1};
    struct linear_args a = {.y = y,
                            .y_stride = 2,
                            .x = x,
                            .x_stride = 2,
                            .n_x = 2,
                            .w = w,
                            .w_stride = 2,
                            .n_w = 2,
                            .n_k = 2,
                            .bias = bias,
                            .scale = 2};
    scalar->linear_rows[WEIGHT_F32](&a);
    expect_values(y, (const double[]){43, 4199, 87, 8599}, 4);
    a.add = true;
    scalar->linear_cols[WEIGHT_F32](&a);
    expect_values(y, (const double[]){43 + 403, 4199 + 4019, 87 + 807, 8599 + 8059}, 4);
}

static void test_known_cache(void **state)
{
    (void)state;
    const float x[] = {1,     65504,        -65520,       INFINITY,     0x1p-24f,
                       -0.0f, 0x1p-25f,     0x1.8p-24f,   1 + 0x1p-11f, 1 + 0x1.8p-10f,
                       -1e9f, 0x1.ff8p-15f, 0x1.ffcp-15f, NAN};
    const uint16_t expected[] = {0x3c00, 0x7bff, 0xfbff, 0x7bff, 0x0001, 0x8000, 0x0000,
                                 0x0002, 0x3c00, 0x3c02, 0xfbff, 0x03ff, 0x0400, 0x7e00};
    uint16_t halves[14];
    assert_true(scalar->cache_store[CACHE_F16](halves, 1, x, 14) == 1);
    assert_true(memcmp(halves, expected, sizeof expected) == 0);

    int8_t codes[6] = {9, 9, 9, 9, 9, 9};
    const float y[] = {-2, 1, 0.5f * 2 / 127};
    const float scale = scalar->cache_store[CACHE_I8](codes, 2, y, 3);
    expect_values(&scale, (const double[]){2.0 / 127}, 1);
    assert_true(memcmp(codes, (const int8_t[]){-127, 9, 64, 9, 0, 9}, 6) == 0);
    assert_true(isnan(scalar->cache_store[CACHE_I8](codes, 1, x + 12, 2)));
    assert_true(scalar->cache_store[CACHE_I8](codes, 1, x + 5, 1) == 0);
}

/* Two positions with scores 0 and log 3 beside one before with log 4: weights 1/8, 3/8 and 4/8. */
static void test_known_attend(void **state)
{
    (void)state;
    static float k[2 * ATTEND_BLOCK], v[ATTEND_BLOCK * ATTEND_LANES];
    const float q[] = {2, 0.5f};
    float acc[ATTEND_LANES] = {10, 20};
    struct attend_row row = {
        .q = q, .acc = acc, .max = logf(4), .sum = 1, .position = 131, .first = 130};
    k[2] = 0, k[ATTEND_BLOCK + 2] = 0;
    k[3] = logf(3), k[ATTEND_BLOCK + 3] = 0;
    k[1] = k[4] = v[ATTEND_LANES] = v[4 * ATTEND_LANES] = NAN; /* are not seen */
    v[2 * ATTEND_LANES] = 8, v[3 * ATTEND_LANES] = -8;
    struct attend_args a = {.rows = &row,
                            .n_rows = 1,
                            .k = k,
                            .v = v,
                            .k_dim = 2,
                            .v_dim = ATTEND_LANES,
                            .position = 128,
                            .scale = 0.5f};
    scalar->attend[CACHE_F32](&a);
    const float mean[] = {row.acc[0] / row.sum, row.acc[1] / row.sum};
    expect_values(&row.sum, (const double[]){2}, 1);
    expect_values(mean, (const double[]){10 / 2. + 8 / 8. - 8 * 3 / 8., 20 / 2.}, 2);

    row = (struct attend_row){.q = q, .acc = acc, .max = -INFINITY, .position = 131, .first = 131};
    acc[0] = acc[1] = 0;
    row.slope = 1;
    a.softcap = 0.5f;
    scalar->attend[CACHE_F32](&a);
    expect_values(&row.max, (const double[]){20. / 41}, 1); /* tanh(2 log 3) / 2 */
}

/* Digits from the functions' series, 30 places. */
/* By hand. */
static void test_known_scale(void **state)
{
    (void)state;
    const float x[] = {-8, 4, 0, 1, -2, 0.5f, 7, 7.75f}, zero[8] = {0, 0, -0.0f};
    const float two[] = {-8, 1.25f, 0, 0, 0, 0, 0, 0}, row[] = {-254, 3, 0, 1.5f, 254};
    const int16_t alike[] = {4095, 4095, 4095, 4095, 4095, 4095, 4095, 4095},
                  second[] = {1, 4095, 1, 1, 1, 1, 1, 1};
    const int16_t tries[QUANT_TRIES] = {16, 128, 128, 256};
    for (const char *const *level = kernels_levels; *level; level++) {
        const struct kernels *k = kernels_for(*level);
        if (!k)
            continue;
        float scale[1];
        k->quant_scales(scale, x, alike, 8, 8, tries);
        assert_true(scale[0] == 1.0234375f); /* 188.75 / 184, by -8 4 0 1 -2 1 7 7 */
        k->quant_scales(scale, two, alike, 8, 8, tries);
        assert_true(scale[0] == 1); /* 65.25 / 65, by -8 1 */
        k->quant_scales(scale, two, second, 8, 8, tries);
        assert_true(scale[0] == 1.25f); /* by the same, of which only the 1 for 1.25 counts */
        k->quant_scales(scale, zero, alike, 8, 8, tries);
        assert_true(scale[0] == 0);

        /* Wherever they lie, and whatever comes behind them. */
        for (size_t i = 0; i < 8; i++) {
            const float none[] = {NAN, -NAN, INFINITY, -INFINITY};
            for (size_t j = 0; j < 4; j++) {
                int8_t codes[8];
                float spoilt[8];
                memcpy(spoilt, x, sizeof spoilt);
                spoilt[i] = none[j];
                k->quant_scales(scale, spoilt, alike, 8, 8, tries);
                assert_true(scale[0] == INFINITY);
                assert_true(k->quant_row(codes, spoilt, 8) == INFINITY);
            }
        }

        unsigned char codes[4];
        const unsigned char expected[] = {0xc0, 0x98, 0x86, 0xff}; /* half to even */
        k->quant_codes(codes, x, (const float[]){1}, 8, 8);
        assert_int_equal(memcmp(codes, expected, sizeof codes), 0);
        int8_t bytes[5];
        const int8_t expected_bytes[] = {-127, 2, 0, 1, 127};
        assert_true(k->quant_row(bytes, row, 5) == 2);
        assert_int_equal(memcmp(bytes, expected_bytes, sizeof bytes), 0);
    }
}

static void test_known_functions(void **state)
{
    (void)state;
    const double silu[] = {0.731058578630005, -0.268941421369995, 0};
    const double gelu_tanh[] = {0.841191990608276, -0.158808009391724, 0};
    const double gelu_erf[] = {0.841344746068543, -0.158655253931457, 0};
    float x[] = {1, -1, 0}, y[] = {1, -1, 0}, z[] = {1, -1, 0}, v[] = {1, -1, NAN};
    scalar->silu(x, 3);
    expect_values(x, silu, 3);
    scalar->gelu_tanh(y, 3);
    expect_values(y, gelu_tanh, 3);
    scalar->gelu_erf(z, 3);
    expect_values(z, gelu_erf, 3);
    scalar->relu(v, 3);
    expect_values(v, (const double[]){1, 0, NAN}, 3);

    float p[] = {0, logf(3), -INFINITY}, none[] = {-INFINITY, -INFINITY};
    scalar->softmax(p, 3);
    expect_values(p, (const double[]){0.25, 0.75, 0}, 3);
    scalar->softmax(none, 2);
    expect_values(none, (const double[]){0, 0}, 2);

    const float in[] = {1, 7}, weight[] = {2, 10}, bias[] = {1, 1};
    float out[2];
    scalar->norm_rms(out, in, weight, 2, 0);
    expect_values(out, (const double[]){0.4, 14}, 2);
    scalar->norm_layer(out, in, weight, bias, 2, 0);
    expect_values(out, (const double[]){-1, 11}, 2);
    float head[] = {1, 2, 3, 4};
    scalar->rope_half(head, (const float[]){0, 1}, (const float[]){1, 0}, 4);
    expect_values(head, (const double[]){-3, 2, 1, 4}, 4);
}

static int check_all(void)
{
    enum { MAX_JOBS = 16 * N_SLOTS, N_KNOWN = 8 };
    static struct job jobs[MAX_JOBS];
    static char names[MAX_JOBS][48];
    static struct CMUnitTest tests[N_KNOWN + MAX_JOBS] = {
        cmocka_unit_test(test_table),           cmocka_unit_test(test_known_conversions),
        cmocka_unit_test(test_known_codes),     cmocka_unit_test(test_known_linear),
        cmocka_unit_test(test_known_functions), cmocka_unit_test(test_known_cache),
        cmocka_unit_test(test_known_attend),    cmocka_unit_test(test_known_scale),
    };
    size_t n = 0;
    for (const char *const *level = kernels_levels; *level; level++) {
        const struct kernels *k = kernels_for(*level);
        if (!k)
            printf("# SKIP %s: this machine lacks it\n", *level);
        for (size_t i = 0; k && i < N_SLOTS && n < MAX_JOBS; i++) {
            if (slot_is_null(&slots[i], k) && slots[i].may_be_null)
                continue;
            snprintf(names[n], sizeof names[n], "%s %s", *level, slots[i].name);
            jobs[n] = (struct job){&slots[i], k};
            tests[N_KNOWN + n] = (struct CMUnitTest){names[n], test_slot, NULL, NULL, &jobs[n]};
            n++;
        }
    }
    areas_map();
    return _cmocka_run_group_tests("kernels", tests, N_KNOWN + n, NULL, NULL);
}

static int bench_all(const char *only)
{
    if (only && !kernels_for(only)) {
        fprintf(stderr, "check_kernels: this machine has no level %s\n", only);
        return 2;
    }
    struct bench b = bench_new();
    for (const char *const *level = kernels_levels; *level; level++) {
        b.k = only && strcmp(only, *level) != 0 ? NULL : kernels_for(*level);
        if (!b.k)
            continue;
        bench_limits(&b);
        for (size_t i = 0; i < N_SLOTS; i++) {
            if (slot_is_null(&slots[i], b.k))
                continue;
            b.slot = slots[i].name;
            slots[i].bench(&slots[i], &b);
        }
    }
    bench_free(&b);
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return bench_all(argc > 2 ? argv[2] : NULL);
    if (argc > 1) {
        char *end;
        seed = strtoul(argv[1], &end, 0);
        if (*end) {
            fprintf(stderr, "check_kernels: a seed is a number, not %s\n", argv[1]);
            return 2;
        }
    }
    scalar = kernels_for("scalar");
    return check_all();
}
