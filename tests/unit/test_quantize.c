/*
 * The quantiser against plain arithmetic in double: every code is the nearest that there is, every
 * scale the best of those that may be tried, the tensors are what quant_init takes, and neither
 * cuts nor levels change a bit.
 */
#include "tests/check.h"

#include "core/kernels/kernels.h"
#include "core/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A matrix with what becomes of it. */
struct example {
    struct quantize_source from;
    struct quantized to;
    float *values; /* [rows, n_in] as seen from the quantised side */
    float *importance;
    void *stored;
    unsigned char *bytes; /* codes, then scales */
};

static uint64_t random_state = 7;

static float random_normal(void)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(int64_t)random_state * 0x1p-63;
    }
    return (float)sum;
}

static size_t n_rows(const struct example *x)
{
    return x->from.n_matrices * x->from.n_out;
}

/* The value as BF16 or F16 could hold it, or as it is, and its bytes. F16 only takes few digits. */
static float store(enum dtype dtype, float value, unsigned char *at)
{
    uint32_t bits;
    value = dtype == DTYPE_F16 ? roundf(value * 64) / 64 : value;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == DTYPE_F32) {
        memcpy(at, &bits, 4);
    } else if (dtype == DTYPE_BF16) {
        bits &= 0xffff0000;
        memcpy(&value, &bits, sizeof value);
        memcpy(at, (unsigned char *)&bits + 2, 2);
    } else {
        uint16_t half = 0;
        if (!isfinite(value))
            half = (uint16_t)((bits >> 16 & 0x8000) | 0x7c00 | (isnan(value) ? 1 : 0));
        else if (value != 0)
            half = (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) |
                              (bits >> 13 & 0x3ff));
        memcpy(at, &half, 2);
    }
    return value;
}

static size_t stored_at(const struct example *x, size_t r, size_t k)
{
    const size_t n_out = x->from.n_out, n_in = x->from.n_in;
    const size_t first = r / n_out * n_out * n_in, row = r % n_out;
    return x->from.transposed ? first + k * n_out + row : first + row * n_in + k;
}

static struct example make(struct quantize_source from, enum quantize_form form, bool weighted)
{
    struct example x = {.from = from};
    const size_t n = n_rows(&x) * from.n_in, size = dtype_size(from.dtype);
    x.values = malloc(n * sizeof *x.values);
    x.stored = malloc(n * size);
    x.importance = malloc(from.n_in * sizeof *x.importance);
    assert_true(x.values && x.stored && x.importance);
    for (size_t r = 0; r < n_rows(&x); r++)
        for (size_t k = 0; k < from.n_in; k++) {
            const float value = r == 1 ? 0 : random_normal() * (k % 29 == 3 ? 5 : 1);
            x.values[r * from.n_in + k] =
                store(from.dtype, value, (unsigned char *)x.stored + stored_at(&x, r, k) * size);
        }
    for (size_t k = 0; k < from.n_in; k++)
        x.importance[k] = fabsf(random_normal());
    x.from.data = x.stored;
    x.from.importance = weighted ? x.importance : NULL;
    assert_true(quantize_plan(&x.from, form, &x.to));
    x.bytes = malloc(x.to.codes.n_bytes + x.to.scales.n_bytes);
    assert_non_null(x.bytes);
    x.to.codes.data = x.bytes;
    x.to.scales.data = x.bytes + x.to.codes.n_bytes;
    x.to.codes.name = x.to.scales.name = "example";
    return x;
}

static void quantise(struct example *x, const char *level, size_t cut)
{
    float *const scratch = malloc(quantize_scratch(&x->from) * sizeof *scratch);
    assert_non_null(scratch);
    assert_int_equal(quantize_scratch(&x->from) % 16, 0);
    memset(x->bytes, 0xee, x->to.codes.n_bytes + x->to.scales.n_bytes);
    for (size_t r = 0; r < n_rows(x); r += cut) {
        const size_t end = r + cut < n_rows(x) ? r + cut : n_rows(x);
        assert_true(quantize_rows(kernels_for(level), &x->from, &x->to, r, end, scratch));
    }
    free(scratch);
}

static void drop(struct example *x)
{
    free(x->values);
    free(x->stored);
    free(x->importance);
    free(x->bytes);
}

static double scale_at(const struct example *x, size_t r, size_t g)
{
    const size_t i = r * (size_t)x->to.scales.shape[1] + g;
    uint16_t half;
    memcpy(&half, (const unsigned char *)x->to.scales.data + 2 * i, sizeof half);
    assert_int_equal(x->to.scales.dtype, x->from.dtype == DTYPE_F16 ? DTYPE_F16 : DTYPE_BF16);
    if (x->from.dtype == DTYPE_F16) /* neither infinite nor, but for 0, subnormal here */
        return half ? ldexp(1024 + (half & 0x3ff), (half >> 10 & 31) - 25) * (half >> 15 ? -1 : 1)
                    : 0;
    const uint32_t bits = (uint32_t)half << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static int code_at(const struct example *x, size_t r, size_t k)
{
    const size_t row_bytes = (size_t)x->to.codes.shape[1] * dtype_size(x->to.codes.dtype);
    const unsigned char *const row = (const unsigned char *)x->to.codes.data + r * row_bytes;
    switch (x->to.format.type) {
    case QUANT_INT8:
        return (int8_t)row[k];
    case QUANT_PACKED8:
        return row[k] - 128;
    default:
        return (row[k / 2] >> (k % 2 * 4) & 15) - 8;
    }
}

static int highest(const struct example *x)
{
    return x->to.format.type == QUANT_PACKED4 ? 7 : 127;
}

static int lowest(const struct example *x)
{
    return x->to.format.type == QUANT_PACKED4 ? -8 : -127;
}

/* The squared error of group g of row r with a scale, each value with its best code. */
static double group_error(const struct example *x, size_t r, size_t g, double scale)
{
    const bool weighted = x->from.importance && x->to.format.type == QUANT_PACKED4;
    const size_t n = x->from.n_in / (size_t)x->to.scales.shape[1];
    double sum = 0;
    for (size_t k = g * n; k < (g + 1) * n; k++) {
        const double value = (double)x->values[r * x->from.n_in + k];
        double code = scale != 0 ? nearbyint(value / scale) : 0;
        code = fmin(fmax(code, lowest(x)), highest(x));
        sum += (weighted ? (double)x->importance[k] : 1) * pow(value - code * scale, 2);
    }
    return sum;
}

static double extreme(const struct example *x, size_t r, size_t g)
{
    const size_t n = x->from.n_in / (size_t)x->to.scales.shape[1];
    double found = 0;
    for (size_t k = g * n; k < (g + 1) * n; k++) {
        const double value = (double)x->values[r * x->from.n_in + k];
        found = fabs(value) > fabs(found) ? value : found;
    }
    return found;
}

/* No code is further than half a step from its value, but where it is the last one. */
static void check_codes(const struct example *x, size_t r)
{
    const size_t n = x->from.n_in / (size_t)x->to.scales.shape[1];
    for (size_t k = 0; k < x->from.n_in; k++) {
        const double scale = scale_at(x, r, k / n), value = (double)x->values[r * x->from.n_in + k];
        const int code = code_at(x, r, k);
        const double steps = scale != 0 ? value / scale : 0;
        assert_true(code >= lowest(x) && code <= highest(x));
        if (steps > highest(x) || steps < lowest(x))
            assert_int_equal(code, steps > 0 ? highest(x) : lowest(x));
        else
            assert_true(fabs(steps - code) <= 0.5 + 1e-4);
    }
}

/* Of a few values one that happens to lie well decides, and a scale of 8 bits rarely meets it. */
enum { FEW = 60 };

/* Better than rounding to nearest with the whole range, and not much worse than any scale at all.
 */
static void check_scales(const struct example *x, size_t r, double *found_sum, double *best_sum)
{
    for (size_t g = 0; g < (size_t)x->to.scales.shape[1]; g++) {
        const double e = extreme(x, r, g), found = group_error(x, r, g, scale_at(x, r, g));
        double best = found;
        if (e == 0) {
            assert_true(scale_at(x, r, g) == 0);
            continue;
        }
        if (x->from.n_in >= FEW)
            assert_true(found <=
                        group_error(x, r, g, e / lowest(x)) * (highest(x) > 7 ? 1.3 : 1.05));
        for (double f = 0.5; f < 1.3; f += 0.005)
            best = fmin(best, group_error(x, r, g, e / (lowest(x) * f)));
        *found_sum += found;
        *best_sum += best;
    }
}

static struct quant init_quant(const struct example *x)
{
    struct err e;
    struct quant q;
    const struct quant_parts parts = {.codes = &x->to.codes, .scales = &x->to.scales};
    if (!quant_init(&q, &x->to.format, &parts, n_rows(x), x->from.n_in, &e))
        fail_msg("%s", e.text);
    return q;
}

static void check_layout(const struct example *x, float *row)
{
    const struct quant q = init_quant(x);
    const size_t n = x->from.n_in / (size_t)x->to.scales.shape[1];
    for (size_t r = 0; r < n_rows(x); r++) {
        quant_row(kernels_for("scalar"), &q, r, row);
        for (size_t k = 0; k < x->from.n_in; k++)
            assert_true(row[k] == (float)(code_at(x, r, k) * scale_at(x, r, k / n)));
    }
}

static void check_example(struct quantize_source from, enum quantize_form form, bool weighted)
{
    struct example x = make(from, form, weighted);
    double found = 0, best = 0;
    quantise(&x, "scalar", n_rows(&x));
    for (size_t r = 0; r < n_rows(&x); r++) {
        check_codes(&x, r);
        check_scales(&x, r, &found, &best);
    }
    assert_true(from.n_in < FEW || found <= 1.2 * best);
    float *const row = malloc(from.n_in * sizeof *row);
    assert_non_null(row);
    check_layout(&x, row);
    free(row);
    const size_t n_bytes = x.to.codes.n_bytes + x.to.scales.n_bytes;
    unsigned char *const first = malloc(n_bytes);
    assert_non_null(first);
    memcpy(first, x.bytes, n_bytes);
    for (int level = 0; kernels_levels[level]; level++)
        for (size_t cut = 1; kernels_for(kernels_levels[level]) && cut < 40; cut += 9) {
            quantise(&x, kernels_levels[level], cut);
            assert_memory_equal(x.bytes, first, n_bytes);
        }
    free(first);
    drop(&x);
}

/* Every dtype, as torch.nn.Linear, Conv1D and experts store a matrix. */
static void test_matrices(void **state)
{
    static const size_t widths[] = {8, 28, 40, 64, 96, 128, 132, 136, 320};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        for (int form = QUANTIZE_8; form <= QUANTIZE_4; form++)
            for (int kind = 0; kind < 4; kind++) {
                const struct quantize_source from = {.dtype = (enum dtype)((kind + i) % 3),
                                                     .n_matrices = kind < 2 ? 1 : 3,
                                                     .n_out = 21,
                                                     .n_in = widths[i],
                                                     .transposed = kind % 2};
                check_example(from, (enum quantize_form)form, i % 2);
            }
}

/* ---- woven ----------------------------------------------------------------------------------- */

enum { WOVEN_X = 11, WOVEN_ROWS = 63 };

/* Products of rows [row, row + n) in f32, from both sides, and rows by themselves. */
static void expect_same_floats(const struct quant *plain, const struct quant *woven, size_t row,
                               size_t n)
{
    enum { MOST = 576 };
    const struct kernels *const kernels = kernels_for("scalar");
    static float x[13 * MOST], found[13 * MOST], expected[13 * MOST];
    for (size_t i = 0; i < ARRAY_LEN(x); i++)
        x[i] = random_normal();
    struct linear_args a = {.x = x,
                            .x_stride = MOST,
                            .n_x = row % 2 ? 3 : 13,
                            .n_w = n,
                            .n_k = plain->n_in,
                            .y_stride = MOST,
                            .scale = 1};
    a.y = expected;
    quant_apply(kernels, plain, row, &a);
    a.y = found;
    quant_apply(kernels, woven, row, &a);
    for (size_t i = 0; i < a.n_x; i++)
        assert_memory_equal(found + i * MOST, expected + i * MOST, n * sizeof *found);
    a.n_k = n;
    a.n_w = plain->n_in - 8 - row % 2;
    a.y = expected;
    quant_apply_transposed(kernels, plain, row, 8, &a);
    a.y = found;
    quant_apply_transposed(kernels, woven, row, 8, &a);
    for (size_t i = 0; i < a.n_x; i++)
        assert_memory_equal(found + i * MOST, expected + i * MOST, a.n_w * sizeof *found);
    quant_row(kernels, plain, row, expected);
    quant_row(kernels, woven, row, found);
    assert_memory_equal(found, expected, plain->n_in * sizeof *found);
}

/* The same in whole numbers. */
static void expect_same_i8(const struct kernels *kernels, const struct quant *plain,
                           const struct quant *woven, size_t row, size_t n)
{
    enum { MOST = 1024 };
    static float in[MOST], bias[WOVEN_ROWS], y[2][WOVEN_X * WOVEN_ROWS];
    static _Alignas(64) unsigned char x[WOVEN_X * MOST];
    const size_t n_x = 1 + row % WOVEN_X, group = quant_i8_group(plain);
    for (size_t i = 0; i < n_x; i++) {
        for (size_t k = 0; k < plain->n_in; k++)
            in[k] = random_normal();
        kernels->to_i8(x + i * MOST, in, plain->n_in, group, quant_is_split(plain));
    }
    for (size_t r = 0; r < WOVEN_ROWS; r++)
        bias[r] = random_normal();
    for (size_t i = 0; i < WOVEN_X * WOVEN_ROWS; i++)
        y[0][i] = y[1][i] = random_normal();
    struct linear_i8_args a = {.x = x,
                               .x_stride = MOST,
                               .x_group = group,
                               .n_x = n_x,
                               .n_k = plain->n_in,
                               .n_w = n,
                               .y_stride = WOVEN_ROWS,
                               .bias = n % 2 ? bias : NULL,
                               .add = row % 2,
                               .scale = row % 4 ? 1 : 0.75f};
    a.y = y[0];
    quant_apply_i8(kernels, plain, row, &a);
    a.y = y[1];
    quant_apply_i8(kernels, woven, row, &a);
    assert_memory_equal(y[1], y[0], sizeof *y);
}

/* A matrix that is woven is the same matrix, whichever rows are asked for. */
static void check_woven(struct quantize_source from, enum quantize_form form)
{
    struct example plain = make(from, form, false), woven = plain;
    woven.bytes = malloc(plain.to.codes.n_bytes + plain.to.scales.n_bytes);
    assert_non_null(woven.bytes);
    woven.to.codes.data = woven.bytes;
    woven.to.scales.data = woven.bytes + plain.to.codes.n_bytes;
    woven.to.format.woven = true;
    quantise(&plain, "scalar", n_rows(&plain));
    quantise(&woven, "scalar", form == QUANTIZE_8 ? KERNELS_WOVEN : 2 * KERNELS_WOVEN);
    const struct quant a = init_quant(&plain), b = init_quant(&woven);
    assert_int_equal(b.n_woven, WOVEN_ROWS / KERNELS_WOVEN * KERNELS_WOVEN);
    assert_memory_not_equal(woven.bytes, plain.bytes, plain.to.codes.n_bytes);
    for (size_t row = 0; row < WOVEN_ROWS; row += 3)
        for (size_t n = 1; n <= WOVEN_ROWS - row; n += 7) {
            expect_same_floats(&a, &b, row, n);
            for (int i = 0; kernels_levels[i]; i++) {
                const struct kernels *const kernels = kernels_for(kernels_levels[i]);
                if (kernels && quantize_can_weave(kernels, &plain.to))
                    expect_same_i8(kernels, &a, &b, row, n);
            }
        }
    free(woven.bytes);
    drop(&plain);
}

static void test_woven(void **state)
{
    static const size_t widths[] = {16, 40, 60, 64, 96, 192, 576};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        for (int form = QUANTIZE_8; form <= QUANTIZE_4; form++) {
            const struct quantize_source from = {.dtype = (enum dtype)(i % 3),
                                                 .n_matrices = 3,
                                                 .n_out = WOVEN_ROWS / 3,
                                                 .n_in = widths[i],
                                                 .transposed = i % 2};
            if (form == QUANTIZE_8 || widths[i] % 8 == 0)
                check_woven(from, (enum quantize_form)form);
        }
}

/* ---- factors --------------------------------------------------------------------------------- */

/* Sums of products over rows of columns that go together, in blocks as factors want them. The
 * column 5 is always 0. */
static float *make_moments(size_t n_in)
{
    const size_t block = quantize_block(n_in), n_samples = 2 * n_in;
    float *const sums = calloc(n_in * block, sizeof *sums), *const x = malloc(n_in * sizeof *x);
    assert_true(sums && x);
    for (size_t i = 0; i < n_samples; i++) {
        const float common = random_normal();
        for (size_t k = 0; k < n_in; k++)
            x[k] = k == 5 ? 0 : random_normal() + common * (float)(k % 7) / 2;
        for (size_t k = 0; k < n_in; k++)
            for (size_t j = k / block * block; j < n_in && j < k / block * block + block; j++)
                sums[k * block + j - k / block * block] += x[k] * x[j];
    }
    free(x);
    return sums;
}

/* How wrong the products of row r are, summed over blocks. */
static double product_error(const struct example *x, size_t r, const float *sums)
{
    const size_t n_in = x->from.n_in, block = quantize_block(n_in);
    const size_t n = n_in / (size_t)x->to.scales.shape[1];
    double error = 0, off[1024];
    for (size_t k = 0; k < n_in; k++)
        off[k] = (double)x->values[r * n_in + k] - code_at(x, r, k) * scale_at(x, r, k / n);
    for (size_t k = 0; k < n_in; k++)
        for (size_t j = k / block * block; j < n_in && j < k / block * block + block; j++)
            error += off[k] * off[j] * (double)sums[k * block + j - k / block * block];
    return error;
}

static void check_factor(const float *l, const float *sums, size_t n, size_t stride)
{
    double trace = 0;
    for (size_t i = 0; i < n; i++)
        trace += (double)sums[i * stride + i];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double found = 0, expected = (double)sums[i * stride + j];
            expected += i == j ? 0.01 * trace / (double)n : 0;
            for (size_t k = i > j ? i : j; k < n; k++)
                found += (double)l[k * stride + i] * (double)l[k * stride + j];
            assert_true(fabs(found - expected) <= 1e-6 * trace);
            assert_true(j <= i || l[i * stride + j] == sums[j * stride + i]);
        }
}

/* The factors of sums, of which only the lower triangles count. */
static float *factorise(const char *level, const float *sums, size_t n_in)
{
    const size_t block = quantize_block(n_in);
    float *const factors = malloc(n_in * block * sizeof *factors);
    assert_non_null(factors);
    memcpy(factors, sums, n_in * block * sizeof *factors);
    for (size_t k = 0; k < n_in; k += block) {
        const size_t n = n_in - k < block ? n_in - k : block;
        for (size_t i = 0; i < n; i++)
            for (size_t j = i + 1; j < n; j++)
                factors[(k + i) * block + j] = NAN;
        quantize_factor(kernels_for(level), factors + k * block, n, block);
        check_factor(factors + k * block, sums + k * block, n, block);
    }
    return factors;
}

static double all_errors(const struct example *x, const float *sums)
{
    double error = 0;
    for (size_t r = 0; r < n_rows(x); r++)
        error += product_error(x, r, sums);
    return error;
}

/* With factors products lose far less than without, by plain arithmetic; rows may be cut anywhere.
 */
static void check_calibrated(struct example *x, const char *level, const float *sums, double plain)
{
    const size_t n_bytes = x->to.codes.n_bytes + x->to.scales.n_bytes;
    float *const factors = factorise(level, sums, x->from.n_in);
    unsigned char *const whole = malloc(n_bytes);
    assert_non_null(whole);
    x->from.factors = factors;
    quantise(x, level, n_rows(x));
    memcpy(whole, x->bytes, n_bytes);
    quantise(x, level, 29);
    assert_memory_equal(x->bytes, whole, n_bytes);
    assert_true(all_errors(x, sums) < 0.6 * plain);
    const double scale = scale_at(x, 1, 0); /* of a row of zeros */
    assert_true(scale == 0);
    free(factors);
    free(whole);
}

static void test_factors(void **state)
{
    static const size_t widths[] = {40, 64, 96, 256, 576};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        const struct quantize_source from = {
            .dtype = DTYPE_BF16, .n_matrices = 1, .n_out = 70, .n_in = widths[i]};
        struct example x = make(from, QUANTIZE_4, false);
        float *const sums = make_moments(widths[i]);
        quantise(&x, "scalar", n_rows(&x));
        const double plain = all_errors(&x, sums);
        for (int level = 0; kernels_levels[level]; level++)
            if (kernels_for(kernels_levels[level]))
                check_calibrated(&x, kernels_levels[level], sums, plain);
        free(sums);
        drop(&x);
    }
}

/* Weight k of row r is none: that row cannot be quantised, the others can. */
static void check_refusal(const struct example *x, size_t r, size_t k, float value)
{
    const size_t size = dtype_size(x->from.dtype), rows = n_rows(x);
    float *const scratch = malloc(quantize_scratch(&x->from) * sizeof *scratch);
    unsigned char *const weight = (unsigned char *)x->stored + stored_at(x, r, k) * size;
    unsigned char kept[4];
    assert_non_null(scratch);
    memcpy(kept, weight, size);
    store(x->from.dtype, value, weight);
    for (int level = 0; kernels_levels[level]; level++) {
        const struct kernels *const kernels = kernels_for(kernels_levels[level]);
        if (!kernels)
            continue;
        assert_false(quantize_rows(kernels, &x->from, &x->to, 0, rows, scratch));
        assert_false(quantize_rows(kernels, &x->from, &x->to, r, r + 1, scratch));
        assert_true(quantize_rows(kernels, &x->from, &x->to, 0, r, scratch));
        assert_true(quantize_rows(kernels, &x->from, &x->to, r + 1, rows, scratch));
    }
    memcpy(weight, kept, size);
    free(scratch);
}

static void test_not_finite(void **state)
{
    static const float values[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const size_t widths[] = {60, 64, 576};
    (void)state;
    for (int i = 0; i < 18; i++) {
        const size_t n_in = widths[i / 6];
        const struct quantize_source from = {.dtype = (enum dtype)(i % 3),
                                             .n_matrices = 1,
                                             .n_out = 37,
                                             .n_in = n_in,
                                             .transposed = i % 4 == 3};
        struct example x = make(from, i % 2 ? QUANTIZE_4 : QUANTIZE_8, true);
        float *const sums = make_moments(n_in), *const factors = factorise("scalar", sums, n_in);
        for (size_t j = 0; j < ARRAY_LEN(values); j++)
            check_refusal(&x, (size_t)i, (size_t)i * 3 % n_in, values[j]);
        x.from.factors = from.transposed ? NULL : factors;
        for (size_t j = 0; j < ARRAY_LEN(values); j++)
            check_refusal(&x, 36 - (size_t)i, n_in - 1 - j, values[j]);
        free(sums);
        free(factors);
        drop(&x);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    assert_int_equal(quantize_block(40), 40);
    assert_int_equal(quantize_block(512), 512);
    assert_int_equal(quantize_block(576), 320);
    assert_int_equal(quantize_block(4864), 512);
    assert_int_equal(quantize_block(896), 448);
}

static void test_plan(void **state)
{
    static const struct {
        size_t n_in, columns, groups;
        enum quant_type type;
        int block_in;
    } cases[] = {
        {128, 16, 2, QUANT_PACKED4, 64}, {192, 24, 3, QUANT_PACKED4, 64},
        {160, 20, 5, QUANT_PACKED4, 32}, {64, 8, 1, QUANT_PACKED4, 0},
        {48, 6, 1, QUANT_PACKED4, 0},    {120, 15, 1, QUANT_PACKED4, 0},
        {60, 15, 1, QUANT_PACKED8, 0},   {30, 8, 1, QUANT_PACKED8, 0},
        {136, 34, 1, QUANT_PACKED8, 0},
    };
    struct quantized to;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct quantize_source from = {.n_matrices = 2, .n_out = 10, .n_in = cases[i].n_in};
        assert_true(quantize_plan(&from, QUANTIZE_4, &to));
        assert_int_equal(to.format.type, cases[i].type);
        assert_int_equal(to.format.block_in, cases[i].block_in);
        assert_int_equal(to.codes.dtype, DTYPE_I32);
        assert_int_equal(to.codes.shape[0], 20);
        assert_int_equal(to.codes.shape[1], cases[i].columns);
        assert_int_equal(to.codes.n_bytes, 20 * 4 * cases[i].columns);
        assert_int_equal(to.scales.shape[1], cases[i].groups);
        assert_true(quantize_plan(&from, QUANTIZE_8, &to));
        assert_int_equal(to.format.type, QUANT_INT8);
        assert_int_equal(to.codes.n_bytes, 20 * cases[i].n_in);
        assert_int_equal(to.scales.n_bytes, 20 * 2);
    }
    const struct kernels can = {.linear_woven = {kernels_for("scalar")->linear_i8[DOT_I8]}};
    const struct quantize_source nibbles = {.n_matrices = 1, .n_out = 10, .n_in = 64};
    const struct quantize_source words = {.n_matrices = 1, .n_out = 10, .n_in = 60};
    const struct quantize_source bytes = {.n_matrices = 1, .n_out = 10, .n_in = 30};
    assert_true(quantize_plan(&bytes, QUANTIZE_8, &to) && !quantize_can_weave(&can, &to));
    assert_true(quantize_plan(&words, QUANTIZE_4, &to) && !quantize_can_weave(&can, &to));
    assert_true(quantize_plan(&words, QUANTIZE_8, &to) && quantize_can_weave(&can, &to));
    assert_false(quantize_can_weave(kernels_for("scalar"), &to));
    assert_true(quantize_plan(&nibbles, QUANTIZE_4, &to) && !quantize_can_weave(&can, &to));
    const struct quantize_source huge = {.n_matrices = SIZE_MAX / 2, .n_out = 3, .n_in = 64};
    assert_false(quantize_plan(&huge, QUANTIZE_4, &to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices), cmocka_unit_test(test_woven),
        cmocka_unit_test(test_factors),  cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_blocks),   cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests_name("quantize", tests, NULL, NULL);
}
