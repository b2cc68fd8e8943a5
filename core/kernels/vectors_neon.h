/*
 * The vocabulary of kernels.inc and dots.inc for four lanes, for the rungs of 64-bit ARM. Of
 * thirty-two registers a tile takes 20 accumulators, 5 operands that stay and 1 that goes by: with
 * a row more gcc 12 keeps some of them in memory. What multiplies bytes is each rung's own.
 */
#ifndef CORE_KERNELS_VECTORS_NEON_H
#define CORE_KERNELS_VECTORS_NEON_H

#include <arm_neon.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { V_LANES = 4, ROWS_X = 5, COLS_X = 5, COLS_V = 4, STRIP_K = 16 };

typedef float32x4_t vf;
typedef int32_t vi __attribute__((vector_size(16)));

static inline vf v_set(float x)
{
    return vdupq_n_f32(x);
}

/* As bytes: the pointer need not be one to floats. */
static inline vf v_load(const void *p)
{
    return vreinterpretq_f32_u8(vld1q_u8(p));
}

static inline vf f16_to_f32(uint8x8_t halves)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(halves));
}

/* bf16 is the upper half of an f32. */
static inline vf bf16_to_f32(uint8x8_t halves)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(halves), 16));
}

static inline vf v_load_f16(const void *p)
{
    return f16_to_f32(vld1_u8(p));
}

static inline vf v_load_bf16(const void *p)
{
    return bf16_to_f32(vld1_u8(p));
}

static inline void v_store(float *p, vf x)
{
    vst1q_f32(p, x);
}

/* One or two floats, then the third. No call to memcpy(): it would cost the loops around it their
 * registers. */
static inline vf v_load_part(const void *p, size_t n)
{
    uint64_t low = 0, high = 0;
    uint32_t one;
    if (n & 2)
        memcpy(&low, p, sizeof low);
    if (n & 1) {
        memcpy(&one, (const char *)p + (n - 1) * sizeof one, sizeof one);
        *(n & 2 ? &high : &low) = one;
    }
    return vreinterpretq_f32_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}

/* Pieces of 1 and 2 from the end. */
static inline uint8x8_t load_halves(const void *p, size_t n)
{
    const char *end = (const char *)p + 2 * n;
    uint64_t v = 0;
    uint16_t one;
    uint32_t two;
    if (n & 1) {
        end -= sizeof one;
        memcpy(&one, end, sizeof one);
        v = one;
    }
    if (n & 2) {
        end -= sizeof two;
        memcpy(&two, end, sizeof two);
        v = v << 32 | two;
    }
    return vcreate_u8(v);
}

static inline vf v_load_f16_part(const void *p, size_t n)
{
    return f16_to_f32(load_halves(p, n));
}

static inline vf v_load_bf16_part(const void *p, size_t n)
{
    return bf16_to_f32(load_halves(p, n));
}

static inline void v_store_part(float *p, vf x, size_t n)
{
    if (n & 2) {
        vst1_f32(p, vget_low_f32(x));
        x = vextq_f32(x, x, 2);
        p += 2;
    }
    if (n & 1)
        vst1q_lane_f32(p, x, 0);
}

static inline vi v_load_u8(const void *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return (vi)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(word))));
}

static inline vi v_load_i8(const void *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return (vi)vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(word))));
}

static inline vi v_load_u4(const void *p)
{
    uint16_t two;
    memcpy(&two, p, sizeof two);
    const vi right = {0, 4, 8, 12};
    return ((vi)vdupq_n_u32(two) >> right) & 15;
}

static inline bool vi_any(vi x)
{
    return vmaxvq_u32((uint32x4_t)x) != 0;
}

/* The bytes of the table at 4 i, 4 i + 1, 4 i + 2, 4 i + 3. */
static inline vf v_pick8(const float *table, vi i)
{
    const uint8_t *bytes = (const uint8_t *)table;
    const uint8x16x2_t two = {{vld1q_u8(bytes), vld1q_u8(bytes + 16)}};
    const vi at = (i & 7) * 0x04040404 + 0x03020100;
    return vreinterpretq_f32_u8(vqtbl2q_u8(two, (uint8x16_t)at));
}

static inline vi v_pick16(const unsigned char *table, vi i)
{
    return (vi)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)i);
}

static inline vf v_first(vf a, size_t n, vf b)
{
    const uint32x4_t lane = {0, 1, 2, 3};
    return vbslq_f32(vcltq_u32(lane, vdupq_n_u32((uint32_t)n)), a, b);
}

static inline vf v_negative(vf s, vf a, vf b)
{
    return vbslq_f32(vcltzq_s32(vreinterpretq_s32_f32(s)), a, b);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

typedef vf vf4;

static inline vf4 v_fma4(vf4 a, vf4 b, vf4 c)
{
    return v_fma(a, b, c);
}

/* Not vminq and vmaxq, whose result is NaN where either operand is. */
static inline vf v_min(vf a, vf b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

static inline vf v_max(vf a, vf b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline vf v_sqrt(vf x)
{
    return vsqrtq_f32(x);
}

static inline vf v_round(vf x)
{
    return vrndnq_f32(x);
}

/* In two steps, since 2^n itself may be no normal number; only the second can round. */
static inline vf v_scale(vf x, vf n)
{
    const vi whole = (vi)vcvtq_s32_f32(n), half = whole >> 1, rest = whole - half;
    return x * (vf)((half + 127) << 23) * (vf)((rest + 127) << 23);
}

static inline void v_sum4(float *sums, vf a, vf b, vf c, vf d)
{
    vst1q_f32(sums, vld1q_f32(sums) + vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}

/* In the order of v_sum4. */
static inline float v_sum(vf a)
{
    const vf two = vpaddq_f32(a, a);
    return vgetq_lane_f32(vpaddq_f32(two, two), 0);
}

/* ---- whole numbers ---- */

enum { DOT_V = 4, DOT_X = 4, DOT_SHIFT = 0 };

static inline vi vi_set(int32_t x)
{
    return (vi)vdupq_n_s32(x);
}

static inline vi vi_load(const void *p)
{
    return (vi)vld1q_u8(p);
}

static inline vi vi_load_part(const void *p, size_t n)
{
    unsigned char part[sizeof(vi)] = {0};
    memcpy(part, p, n);
    return vi_load(part);
}

static inline void vi_store(void *p, vi x)
{
    vst1q_u8(p, (uint8x16_t)x);
}

/* Lanes from -128 to 127. */
static inline void v_store_i8(int8_t *p, vi x)
{
    const int16x4_t words = vmovn_s32((int32x4_t)x);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    memcpy(p, &bytes, 4);
}

static inline vf vi_to_f32(vi x)
{
    return vcvtq_f32_s32((int32x4_t)x);
}

static inline vi vi_max(vi a, vi b)
{
    return (vi)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline vi vi_quads(vi a, vi b, vi c, vi d)
{
    const int32x4_t ab = vpaddq_s32((int32x4_t)a, (int32x4_t)b);
    return (vi)vpaddq_s32(ab, vpaddq_s32((int32x4_t)c, (int32x4_t)d));
}

static inline vi vi_quads_max(vi a, vi b, vi c, vi d)
{
    const int32x4_t ab = vpmaxq_s32((int32x4_t)a, (int32x4_t)b);
    return (vi)vpmaxq_s32(ab, vpmaxq_s32((int32x4_t)c, (int32x4_t)d));
}

/* The even words of two rows side by side, then the odd ones, as pairs. */
static inline void vi_columns_of(vi *out, const unsigned char *const *rows, size_t stride)
{
    (void)stride;
    const int32x4_t a = (int32x4_t)vi_load(rows[0]), b = (int32x4_t)vi_load(rows[1]);
    const int32x4_t c = (int32x4_t)vi_load(rows[2]), d = (int32x4_t)vi_load(rows[3]);
    const int64x2_t ab0 = (int64x2_t)vtrn1q_s32(a, b), ab1 = (int64x2_t)vtrn2q_s32(a, b);
    const int64x2_t cd0 = (int64x2_t)vtrn1q_s32(c, d), cd1 = (int64x2_t)vtrn2q_s32(c, d);
    out[0] = (vi)vtrn1q_s64(ab0, cd0);
    out[1] = (vi)vtrn1q_s64(ab1, cd1);
    out[2] = (vi)vtrn2q_s64(ab0, cd0);
    out[3] = (vi)vtrn2q_s64(ab1, cd1);
}

typedef vi vi4;

static inline void vi4_columns(vi4 *out, const unsigned char *const *rows)
{
    vi_columns_of(out, rows, 0);
}

#endif
