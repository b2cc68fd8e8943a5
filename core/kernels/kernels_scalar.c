/*
 * The definition. Every slot as plainly as C says it: sums in double and in the order of the
 * index, exp, tanh and erf from libm, one rounding to float at the end. The faster rungs are
 * measured against these functions, so nothing here is clever, and nothing may be contracted
 * (-ffp-contract=off). Slots that are shortcuts of others stay NULL; kernels.h says which, and what
 * defines them.
 */
#include <float.h>
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/kernels/rungs.h"

/* ---- bits of stored numbers ---- */

static uint32_t to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* IEEE 754 binary16 -> binary32, exact; NaNs keep their payload and become quiet, as F16C does. */
static float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = (h >> 10) & 31;
    const uint32_t mantissa = h & 1023;
    if (exponent == 31) {
        const uint32_t quiet = mantissa ? 0x400000 : 0;
        return from_bits(sign | 0x7f800000 | quiet | mantissa << 13);
    }
    if (exponent == 0) {
        const float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return from_bits(sign | (exponent + (127 - 15)) << 23 | mantissa << 13);
}

/* Weight number i; memcpy because a safetensors file aligns its tensors to nothing. */
static inline float weight_at(int type, const void *w, size_t i)
{
    const char *bytes = w;
    if (type == WEIGHT_F32) {
        float f;
        memcpy(&f, bytes + i * sizeof f, sizeof f);
        return f;
    }
    uint16_t h;
    memcpy(&h, bytes + i * sizeof h, sizeof h);
    return type == WEIGHT_BF16 ? from_bits((uint32_t)h << 16) : f16_to_f32(h);
}

/* ---- linear ---- */

/* w(r, k) stands at r * r_step + k * k_step. */
static inline void linear(const struct linear_args *a, int type, size_t r_step, size_t k_step)
{
    for (size_t i = 0; i < a->n_x; i++) {
        for (size_t r = 0; r < a->n_w; r++) {
            double sum = 0;
            for (size_t k = 0; k < a->n_k; k++)
                sum += (double)((const float *)a->x)[i * a->x_stride + k] *
                       (double)weight_at(type, a->w, r * r_step + k * k_step);
            const double bias = a->bias ? (double)a->bias[r] : 0;
            float *y = &a->y[i * a->y_stride + r];
            *y = (a->add ? *y : 0) + (float)((double)a->scale * (sum + bias));
        }
    }
}

static void rows_f32(const struct linear_args *a)
{
    linear(a, WEIGHT_F32, a->w_stride, 1);
}

static void rows_f16(const struct linear_args *a)
{
    linear(a, WEIGHT_F16, a->w_stride, 1);
}

static void rows_bf16(const struct linear_args *a)
{
    linear(a, WEIGHT_BF16, a->w_stride, 1);
}

static void cols_f32(const struct linear_args *a)
{
    linear(a, WEIGHT_F32, 1, a->w_stride);
}

static void cols_f16(const struct linear_args *a)
{
    linear(a, WEIGHT_F16, 1, a->w_stride);
}

static void cols_bf16(const struct linear_args *a)
{
    linear(a, WEIGHT_BF16, 1, a->w_stride);
}

/* ---- linear with int8 activations ---- */

static int32_t zero_of(const struct linear_i8_args *a, size_t r, size_t g)
{
    if (!a->zeros)
        return a->zero;
    const size_t row = a->zero_row + r, n_groups = (a->n_k - 1) / a->w_group + 1;
    uint32_t word;
    memcpy(&word, a->zeros + 4 * (row / 8 * n_groups + g), sizeof word);
    return (int32_t)(word >> row % 8 * 4 & 15);
}

/* What code k of row r means, and what row i of x has there. */
static int32_t w_code(const struct linear_i8_args *a, int type, size_t r, size_t k)
{
    static const int twice_e2m1[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const unsigned char *const row = a->w + r * a->w_stride;
    if (type == DOT_I8)
        return (int8_t)row[k];
    const int half = row[k / 2] >> k % 2 * 4 & 15;
    return type == DOT_U4 ? half : twice_e2m1[half];
}

static float w_scale(const struct linear_i8_args *a, size_t i)
{
    if (a->scale_type != SCALE_E8M0_HALF)
        return weight_at(a->scale_type, a->scales, i);
    const unsigned char code = ((const unsigned char *)a->scales)[i];
    return code == 255 ? NAN : ldexpf(1, code - 128);
}

static int32_t x_code(const struct linear_i8_args *a, int type, size_t i, size_t k)
{
    const size_t block = KERNELS_I8_BLOCK, j = k % block;
    const size_t at = type == DOT_I8 ? k : k - j + j / 2 + j % 2 * (block / 2);
    return (int8_t)a->x[i * a->x_stride + at];
}

static float linear_i8_one(const struct linear_i8_args *a, int type, size_t i, size_t r)
{
    const float *const x_scales =
        (const float *)(const void *)(a->x + i * a->x_stride + kernels_i8_codes(a->n_k));
    float sum = 0;
    assert(a->x_group > 0 && a->w_group > 0);
    for (size_t k = 0; k < a->n_k; k += a->x_group) {
        const size_t g = k / a->w_group;
        int32_t whole = 0;
        for (size_t j = k; j < k + a->x_group && j < a->n_k; j++)
            whole += (w_code(a, type, r, j) - zero_of(a, r, g)) * x_code(a, type, i, j);
        const float scale = w_scale(a, r * a->scale_stride + g);
        sum = fmaf((float)whole, scale * x_scales[k / a->x_group], sum);
    }
    return sum;
}

static void linear_i8(const struct linear_i8_args *a, int type)
{
    for (size_t i = 0; i < a->n_x; i++)
        for (size_t r = 0; r < a->n_w; r++) {
            const float sum = linear_i8_one(a, type, i, r) + (a->bias ? a->bias[r] : 0);
            float *const y = &a->y[i * a->y_stride + r];
            *y = (a->add ? *y : 0) + a->scale * sum;
        }
}

static void linear_i8_i8(const struct linear_i8_args *a)
{
    linear_i8(a, DOT_I8);
}

static void linear_i8_u4(const struct linear_i8_args *a)
{
    linear_i8(a, DOT_U4);
}

static void linear_i8_f4(const struct linear_i8_args *a)
{
    linear_i8(a, DOT_F4);
}

/* ---- conversions ---- */

static uint16_t f32_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 64); /* a quiet NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void to_bf16(uint16_t *out, const float *in, size_t n)
{
    for (size_t k = 0; k < n; k++)
        out[k] = f32_to_bf16(in[k]);
    for (size_t k = n; k % 32 != 0; k++)
        out[k] = 0;
}

/* Codes of up to 128 values, of which each group has a scale and a sum. */
static void i8_block(int8_t *codes, float *scales, int32_t *sums, const float *in, size_t n,
                     size_t group)
{
    for (size_t k = 0; k < n; k++) {
        const size_t begin = k / group * group, end = begin + group < n ? begin + group : n;
        float max = 0;
        for (size_t j = begin; j < end; j++)
            max = fmaxf(max, fabsf(in[j]));
        for (size_t j = begin; j < end; j++)
            max = isfinite(in[j]) ? max : NAN;
        codes[k] = (int8_t)(max >= 1e-30f ? rintf(in[k] * (127 / max)) : 0);
        scales[k / group] = max < 1e-30f ? 0 : max / 127;
        sums[k / group] = codes[k] + (k == begin ? 0 : sums[k / group]);
    }
}

static void to_i8(unsigned char *out, const float *in, size_t n, size_t group, bool split)
{
    const size_t block = KERNELS_I8_BLOCK, n_groups = (n + group - 1) / group;
    float *const scales = (float *)(void *)(out + kernels_i8_codes(n));
    int32_t *const sums = (int32_t *)(void *)(scales + n_groups);
    for (size_t k = 0; k < n; k += block) {
        int8_t codes[KERNELS_I8_BLOCK] = {0};
        i8_block(codes, scales + k / group, sums + k / group, in + k, n - k < block ? n - k : block,
                 group);
        for (size_t j = 0; j < block; j++)
            out[k + (split ? j / 2 + j % 2 * (block / 2) : j)] = (unsigned char)codes[j];
    }
}

/* As bytes: a copy through a float variable need not keep a signalling NaN. */
static void f32_to_f32(float *out, const void *in, size_t n)
{
    if (n)
        memcpy(out, in, n * sizeof *out);
}

static void f16_to_f32_array(float *out, const void *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = weight_at(WEIGHT_F16, in, i);
}

static void bf16_to_f32_array(float *out, const void *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = weight_at(WEIGHT_BF16, in, i);
}

/* Values of E2M1 without their sign. */
static const float f4_values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

/* Four bits of exponent, bias 7, three of mantissa; an exponent of zero means subnormal. */
static float f8_e4m3_to_f32(unsigned char code)
{
    const uint32_t sign = (uint32_t)(code & 0x80) << 24;
    const uint32_t exponent = (code >> 3) & 15;
    const uint32_t mantissa = code & 7;
    if ((code & 0x7f) == 0x7f)
        return from_bits(sign | 0x7fc00000);
    if (exponent == 0)
        return sign ? -((float)mantissa * 0x1p-9f) : (float)mantissa * 0x1p-9f;
    return from_bits(sign | (exponent + (127 - 7)) << 23 | mantissa << 20);
}

/* Code number k. */
static inline float code_at(int type, const unsigned char *in, size_t k)
{
    const unsigned char half =
        (in[type == CODE_U4 || type == CODE_F4_E2M1 ? k / 2 : k] >> (k % 2 == 0 ? 0 : 4)) & 15;
    switch (type) {
    case CODE_F8_E4M3:
        return f8_e4m3_to_f32(in[k]);
    case CODE_I8:
        return (float)(int8_t)in[k];
    case CODE_U8:
        return (float)in[k];
    case CODE_U4:
        return (float)half;
    default:
        return half & 8 ? -f4_values[half & 7] : f4_values[half];
    }
}

static inline void decode(float *out, int type, const void *in, size_t n, size_t group,
                          const float *scales, const float *zeros)
{
    for (size_t k = 0; k < n; k++) {
        const float zero = zeros ? zeros[k / group] : 0;
        out[k] = (code_at(type, in, k) - zero) * scales[k / group];
    }
}

#define DECODE(suffix, type)                                                                       \
    static void decode_##suffix(float *out, const void *in, size_t n, size_t group,                \
                                const float *scales, const float *zeros)                           \
    {                                                                                              \
        decode(out, type, in, n, group, scales, zeros);                                            \
    }

DECODE(f8_e4m3, CODE_F8_E4M3)
DECODE(i8, CODE_I8)
DECODE(u8, CODE_U8)
DECODE(u4, CODE_U4)
DECODE(f4_e2m1, CODE_F4_E2M1)

/* ---- norms ---- */

static void norm_rms(float *out, const float *x, const float *weight, size_t n, float eps)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    const double scale = 1 / sqrt(sum / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)x[i] * scale * (double)weight[i]);
}

static void norm_layer(float *out, const float *x, const float *weight, const float *bias, size_t n,
                       float eps)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    const double mean = sum / (double)n;
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double scale = 1 / sqrt(squares / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(((double)x[i] - mean) * scale * (double)weight[i] +
                         (bias ? (double)bias[i] : 0));
}

/* ---- element by element ---- */

static void silu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] / (1 + exp(-(double)x[i])));
}

static void gelu_tanh(float *x, size_t n)
{
    const double sqrt_2_over_pi = 0.79788456080286535588;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i];
        x[i] = (float)(0.5 * v * (1 + tanh(sqrt_2_over_pi * (v + 0.044715 * v * v * v))));
    }
}

/* 1 + erf(z) written as erfc(-z), which keeps its digits where x is far below zero. */
static void gelu_erf(float *x, size_t n)
{
    const double sqrt_half = 0.70710678118654752440;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(0.5 * (double)x[i] * erfc(-(double)x[i] * sqrt_half));
}

static void relu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < 0 ? 0 : x[i];
}

static void mul(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= x[i];
}

static void add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void scale(float *y, const float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

/* ---- rotation and softmax ---- */

static void rope_half(float *x, const float *cos, const float *sin, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        const double a = (double)x[i], b = (double)x[i + n / 2];
        x[i] = (float)(a * (double)cos[i] - b * (double)sin[i]);
        x[i + n / 2] = (float)(b * (double)cos[i] + a * (double)sin[i]);
    }
}

/* Where all are -inf the maximum cannot be taken off (-inf - -inf is NaN): zero is, and the sum of
 * zero says that there is nothing to divide. A NaN still reaches every element. */
static void softmax(float *x, size_t n)
{
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    const double shift = max == -INFINITY ? 0 : (double)max;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - shift);
    const double inverse = sum == 0 ? 0 : 1 / sum;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(exp((double)x[i] - shift) * inverse);
}

/* ---- the cache, and attention over it ---- */

/* To the nearest, ties to even, stopping at the largest finite one. */
static uint16_t f32_to_f16(float f)
{
    const uint16_t sign = (uint16_t)(to_bits(f) >> 16 & 0x8000);
    const double size = fabs((double)f);
    int exponent;
    if (isnan(f))
        return sign | 0x7e00;
    if (size >= 65504)
        return sign | 0x7bff;
    if (size < 0x1p-14)
        return (uint16_t)(sign | (int)nearbyint(size * 0x1p24));
    const double mantissa = nearbyint(frexp(size, &exponent) * 2048); /* 1024 .. 2048 */
    return (uint16_t)(sign | (((exponent + 14) << 10) + (int)mantissa - 1024));
}

static float cache_store_f32(void *out, size_t stride, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy((float *)out + i * stride, x + i, sizeof *x);
    return 1;
}

static float cache_store_f16(void *out, size_t stride, const float *x, size_t n)
{
    uint16_t *const halves = out;
    for (size_t i = 0; i < n; i++)
        halves[i * stride] = f32_to_f16(x[i]);
    return 1;
}

static float cache_store_i8(void *out, size_t stride, const float *x, size_t n)
{
    int8_t *const codes = out;
    float max = 0;
    bool nan = false;
    for (size_t i = 0; i < n; i++) {
        max = fmaxf(max, fminf(fabsf(x[i]), FLT_MAX));
        nan = nan || isnan(x[i]);
    }
    const bool zero = nan || max < 1e-30f;
    for (size_t i = 0; i < n; i++)
        codes[i * stride] =
            zero ? 0 : (int8_t)rintf(fminf(fmaxf(x[i], -FLT_MAX), FLT_MAX) * (127 / max));
    return nan ? NAN : zero ? 0 : max / 127;
}

static void cache_store_keys(uint16_t *out, const float *x, size_t x_stride, size_t n)
{
    for (size_t i = 0; i < ATTEND_LANES; i++)
        cache_store_f16(out + i, ATTEND_BLOCK, x + i * x_stride, n);
}

static inline double cache_at(int type, const void *cache, size_t i)
{
    return type == CACHE_I8
               ? ((const int8_t *)cache)[i]
               : (double)weight_at(type == CACHE_F16 ? WEIGHT_F16 : WEIGHT_F32, cache, i);
}

/* The score of position j of the block. */
static inline float attend_score(const struct attend_args *a, int type,
                                 const struct attend_row *row, size_t j)
{
    const float *const q = row->q;
    double sum = 0;
    for (size_t d = 0; d < a->k_dim; d++)
        sum += (double)q[d] * cache_at(type, a->k, d * ATTEND_BLOCK + j);
    sum *= (double)a->scale * (a->k_scales ? (double)a->k_scales[j] : 1);
    if (a->softcap > 0)
        sum = (double)a->softcap * tanh(sum / (double)a->softcap);
    return (float)(sum - (double)row->slope * (row->position - a->position - (int)j));
}

static inline void attend_row(const struct attend_args *a, int type, struct attend_row *row)
{
    float p[ATTEND_BLOCK], max = row->max;
    const int begin = row->first > a->position ? row->first - a->position : 0;
    const int behind = row->position - a->position + 1;
    const int end = behind < ATTEND_BLOCK ? behind : ATTEND_BLOCK;
    if (begin >= end)
        return;
    for (int j = begin; j < end; j++) {
        p[j] = attend_score(a, type, row, (size_t)j);
        max = p[j] > max ? p[j] : max;
    }
    const double shift = max == -INFINITY ? 0 : (double)max;
    const double factor = exp((double)row->max - shift);
    double sum = (double)row->sum * factor;
    for (int j = begin; j < end; j++) {
        const double e = exp((double)p[j] - shift);
        sum += e;
        p[j] = (float)(e * (a->v_scales ? (double)a->v_scales[j] : 1));
    }
    for (size_t d = 0; d < a->v_dim; d++) {
        double acc = (double)row->acc[d] * factor;
        for (int j = begin; j < end; j++)
            acc += (double)p[j] * cache_at(type, a->v, (size_t)j * a->v_dim + d);
        row->acc[d] = (float)acc;
    }
    row->max = max;
    row->sum = (float)sum;
}

#define ATTEND(suffix, type)                                                                       \
    static void attend_##suffix(const struct attend_args *a)                                       \
    {                                                                                              \
        for (size_t i = 0; i < a->n_rows; i++)                                                     \
            attend_row(a, type, &a->rows[i]);                                                      \
    }

ATTEND(f32, CACHE_F32)
ATTEND(f16, CACHE_F16)
ATTEND(i8, CACHE_I8)

/* ---- quantising ---- */

/* A number of this size has no digits behind the point, and its last bits are the whole number that
 * was added to it. */
static const float whole = 0x1.8p23f;

static float inverse_of(float scale)
{
    return scale == 0 ? 0 : 1 / scale;
}

/* The code as a float; NaN becomes the lowest. */
static float code_of(float x, float inverse, float low, float high)
{
    float t = fmaf(x, inverse, whole);
    t = t > whole + low ? t : whole + low;
    t = t < whole + high ? t : whole + high;
    return t - whole;
}

static float round_to_bf16(float f)
{
    uint32_t bits;
    if (!(fabsf(f) >= FLT_MIN))
        return 0;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Infinite where one of them is no finite number. */
static float largest_size(const float *x, size_t n)
{
    float largest = 0;
    for (size_t k = 0; k < n; k++) {
        if (!isfinite(x[k]))
            return INFINITY;
        largest = fabsf(x[k]) > largest ? fabsf(x[k]) : largest;
    }
    return largest;
}

static float quant_row(int8_t *codes, const float *x, size_t n)
{
    const float scale = round_to_bf16(largest_size(x, n) / 127), inverse = inverse_of(scale);
    for (size_t k = 0; k < n; k++)
        codes[k] = (int8_t)code_of(x[k], inverse, -127, 127);
    return scale;
}

static float extreme_of(const float *x, size_t n)
{
    float least = 0, largest = 0;
    for (size_t k = 0; k < n; k++) {
        least = x[k] < least ? x[k] : least;
        largest = x[k] > largest ? x[k] : largest;
    }
    return -least > largest ? least : largest;
}

/* x / 2^n, rounded. */
static int32_t shift_round(int32_t x, int n)
{
    return (x + (1 << (n - 1))) >> n;
}

static float group_scale(const float *x, const int16_t *weights, size_t n,
                         const int16_t tries[QUANT_TRIES])
{
    const float extreme = extreme_of(x, n), inverse = 32767 / extreme;
    float best = 0, most = 0;
    if (isinf(largest_size(x, n)))
        return INFINITY;
    if (!(fabsf(extreme) >= 0x1p-100f))
        return 0;
    for (size_t i = 0; i < QUANT_TRIES; i++) {
        int32_t products = 0, squares = 0;
        for (size_t k = 0; k < n; k++) {
            const int32_t part = (int32_t)code_of(x[k], inverse, -32767, 32767);
            int32_t code = shift_round(shift_round(part, 4) * -tries[i], 15);
            code = code < -8 ? -8 : code > 7 ? 7 : code;
            products += code * shift_round(part * weights[k], 12);
            squares += code * code * weights[k];
        }
        const float taken = (float)products * (float)products / (float)squares;
        if (taken > most)
            best = (float)products / (float)squares * (extreme * (4096.0f / 32767));
        most = taken > most ? taken : most;
    }
    return round_to_bf16(best);
}

static void quant_scales(float *scales, const float *x, const int16_t *weights, size_t n,
                         size_t group, const int16_t tries[QUANT_TRIES])
{
    for (size_t k = 0; k < n; k += group)
        scales[k / group] = group_scale(x + k, weights + k, group, tries);
}

static void quant_codes(unsigned char *out, const float *x, const float *scales, size_t n,
                        size_t group)
{
    for (size_t k = 0; k < n; k += 2) {
        const float inverse = inverse_of(scales[k / group]);
        const int low = (int)code_of(x[k], inverse, -8, 7) + 8;
        const int high = (int)code_of(x[k + 1], inverse, -8, 7) + 8;
        out[k / 2] = (unsigned char)(low | high << 4);
    }
}

/* ---- for measuring ---- */

static double peak_f32(size_t n_steps)
{
    float a[PEAK_CHAINS] = {0}, sum = 0;
    EVERY_CHAIN (i)
        ANY_VALUE(a[i]);
    for (size_t step = 0; step < n_steps; step++)
        EVERY_CHAIN (i)
            a[i] = a[i] * 0.5f + 1;
    EVERY_CHAIN (i)
        sum += a[i];
    volatile float kept = sum; /* or nothing would have to be computed */
    (void)kept;
    return 2.0 * PEAK_CHAINS * (double)n_steps;
}

static void read_all(const void *p, size_t n)
{
    const char *bytes = p;
    uint64_t bits = 0, word;
    size_t i = 0;
    for (; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        bits ^= word;
    }
    for (; i < n; i++)
        bits ^= (uint64_t)bytes[i];
    volatile uint64_t kept = bits;
    (void)kept;
}

void kernels_scalar_fill(struct kernels *k)
{
    *k = (struct kernels){
        .level = "scalar",
        .linear_rows =
            {[WEIGHT_F32] = rows_f32, [WEIGHT_F16] = rows_f16, [WEIGHT_BF16] = rows_bf16},
        .linear_cols =
            {[WEIGHT_F32] = cols_f32, [WEIGHT_F16] = cols_f16, [WEIGHT_BF16] = cols_bf16},
        .linear_i8 = {[DOT_I8] = linear_i8_i8, [DOT_U4] = linear_i8_u4, [DOT_F4] = linear_i8_f4},
        .to_bf16 = to_bf16,
        .to_i8 = to_i8,
        .to_f32 = {[WEIGHT_F32] = f32_to_f32,
                   [WEIGHT_F16] = f16_to_f32_array,
                   [WEIGHT_BF16] = bf16_to_f32_array},
        .decode = {[CODE_F8_E4M3] = decode_f8_e4m3,
                   [CODE_I8] = decode_i8,
                   [CODE_U8] = decode_u8,
                   [CODE_U4] = decode_u4,
                   [CODE_F4_E2M1] = decode_f4_e2m1},
        .norm_rms = norm_rms,
        .norm_layer = norm_layer,
        .silu = silu,
        .gelu_tanh = gelu_tanh,
        .gelu_erf = gelu_erf,
        .relu = relu,
        .mul = mul,
        .add = add,
        .scale = scale,
        .rope_half = rope_half,
        .softmax = softmax,
        .cache_store = {[CACHE_F32] = cache_store_f32,
                        [CACHE_F16] = cache_store_f16,
                        [CACHE_I8] = cache_store_i8},
        .cache_store_keys = cache_store_keys,
        .attend = {[CACHE_F32] = attend_f32, [CACHE_F16] = attend_f16, [CACHE_I8] = attend_i8},
        .quant_row = quant_row,
        .quant_scales = quant_scales,
        .quant_codes = quant_codes,
        .peak = {[PEAK_F32] = peak_f32},
        .per_cycle = {[PEAK_F32] = 2, [PEAK_BF16] = 2, [PEAK_INT8] = 2},
        .read_all = read_all,
    };
}
