/*
 * The vocabulary of kernels.inc and dots.inc for sixteen lanes, for the rungs with AVX-512 F, BW,
 * DQ and VL. Thirty-two registers: a tile is 24 accumulators, 6 operands that stay and 1 that goes
 * by. Masked loads make the edges cheap. What multiplies bytes is each rung's own.
 */
#ifndef CORE_KERNELS_VECTORS_AVX512_H
#define CORE_KERNELS_VECTORS_AVX512_H

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { V_LANES = 16, ROWS_X = 6, COLS_X = 6, COLS_V = 4, STRIP_K = 16 };

typedef __m512 vf;
typedef int32_t vi __attribute__((vector_size(64)));

static inline vf v_set(float x)
{
    return _mm512_set1_ps(x);
}

static inline __mmask16 first_lanes(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

/* bf16 is the upper half of an f32. */
static inline vf bf16_to_f32(__m256i h)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

static inline vf v_load(const void *p)
{
    return _mm512_loadu_ps(p);
}

static inline vf v_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

static inline vf v_load_bf16(const void *p)
{
    return bf16_to_f32(_mm256_loadu_si256(p));
}

static inline vf v_load_part(const void *p, size_t n)
{
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}

static inline vf v_load_f16_part(const void *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

static inline vf v_load_bf16_part(const void *p, size_t n)
{
    return bf16_to_f32(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

static inline void v_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}

static inline void v_store_part(float *p, vf x, size_t n)
{
    _mm512_mask_storeu_ps(p, first_lanes(n), x);
}

static inline vi v_load_u8(const void *p)
{
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128(p));
}

static inline vi v_load_i8(const void *p)
{
    return (vi)_mm512_cvtepi8_epi32(_mm_loadu_si128(p));
}

/* The first word in 8 lanes, the second in the others. */
static inline vi v_load_u4(const void *p)
{
    const __m512i word = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i shift =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i two = _mm512_castsi128_si512(_mm_loadl_epi64(p));
    return (vi)_mm512_srlv_epi32(_mm512_permutexvar_epi32(word, two), shift) & 15;
}

static inline bool vi_any(vi x)
{
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
}

static inline vf v_pick8(const float *table, vi i)
{
    const __m512 twice = _mm512_broadcast_f32x8(_mm256_loadu_ps(table));
    return _mm512_permutexvar_ps((__m512i)i, twice);
}

static inline vi v_pick16(const unsigned char *table, vi i)
{
    const __m512i four = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)table));
    return (vi)_mm512_shuffle_epi8(four, (__m512i)i);
}

static inline vf v_first(vf a, size_t n, vf b)
{
    return _mm512_mask_blend_ps(first_lanes(n), b, a);
}

static inline vf v_negative(vf s, vf a, vf b)
{
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(s)), b, a);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

typedef __m128 vf4;

static inline vf4 v_fma4(vf4 a, vf4 b, vf4 c)
{
    return _mm_fmadd_ps(a, b, c);
}

typedef int32_t vi4 __attribute__((vector_size(16)));

static inline void vi4_columns(vi4 *out, const unsigned char *const *rows)
{
    __m128 a = _mm_loadu_ps((const void *)rows[0]), b = _mm_loadu_ps((const void *)rows[1]);
    __m128 c = _mm_loadu_ps((const void *)rows[2]), d = _mm_loadu_ps((const void *)rows[3]);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    out[0] = (vi4)a;
    out[1] = (vi4)b;
    out[2] = (vi4)c;
    out[3] = (vi4)d;
}

static inline vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

static inline vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf v_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}

static inline vf v_round(vf x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf v_scale(vf x, vf n)
{
    return _mm512_scalef_ps(x, n);
}

/* The sum of the quarters. */
static inline __m128 fold(vf a)
{
    const __m256 two = _mm512_castps512_ps256(a) + _mm512_extractf32x8_ps(a, 1);
    return _mm256_castps256_ps128(two) + _mm256_extractf128_ps(two, 1);
}

static inline void v_sum4(float *sums, vf a, vf b, vf c, vf d)
{
    const vf ac = _mm512_unpacklo_ps(a, c) + _mm512_unpackhi_ps(a, c);
    const vf bd = _mm512_unpacklo_ps(b, d) + _mm512_unpackhi_ps(b, d);
    const vf all = _mm512_unpacklo_ps(ac, bd) + _mm512_unpackhi_ps(ac, bd);
    _mm_storeu_ps(sums, _mm_loadu_ps(sums) + fold(all));
}

/* In the order of v_sum4. */
static inline float v_sum(vf a)
{
    const vf two = a + _mm512_permute_ps(a, 0x4e);
    return _mm_cvtss_f32(fold(two + _mm512_permute_ps(two, 0xb1)));
}

/* ---- whole numbers ---- */

enum { DOT_V = 3, DOT_X = 4 };

static inline vi vi_set(int32_t x)
{
    return (vi)_mm512_set1_epi32(x);
}

static inline vi vi_load(const void *p)
{
    return (vi)_mm512_loadu_si512(p);
}

static inline vi vi_load_part(const void *p, size_t n)
{
    return (vi)_mm512_maskz_loadu_epi8(((__mmask64)1 << n) - 1, p);
}

static inline void vi_store(void *p, vi x)
{
    _mm512_storeu_si512(p, (__m512i)x);
}

/* Lanes from -128 to 127. */
static inline void v_store_i8(int8_t *p, vi x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8((__m512i)x));
}

static inline vf vi_to_f32(vi x)
{
    return _mm512_cvtepi32_ps((__m512i)x);
}

static inline vi vi_max(vi a, vi b)
{
    return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
}

static inline vi vi_quads(vi a, vi b, vi c, vi d)
{
    const __m512i x = (__m512i)a, y = (__m512i)b, z = (__m512i)c, w = (__m512i)d;
    const __m512i ac = _mm512_add_epi32(_mm512_unpacklo_epi32(x, z), _mm512_unpackhi_epi32(x, z));
    const __m512i bd = _mm512_add_epi32(_mm512_unpacklo_epi32(y, w), _mm512_unpackhi_epi32(y, w));
    return (vi)_mm512_add_epi32(_mm512_unpacklo_epi32(ac, bd), _mm512_unpackhi_epi32(ac, bd));
}

static inline vi vi_quads_max(vi a, vi b, vi c, vi d)
{
    const __m512i x = (__m512i)a, y = (__m512i)b, z = (__m512i)c, w = (__m512i)d;
    const __m512i ac = _mm512_max_epi32(_mm512_unpacklo_epi32(x, z), _mm512_unpackhi_epi32(x, z));
    const __m512i bd = _mm512_max_epi32(_mm512_unpacklo_epi32(y, w), _mm512_unpackhi_epi32(y, w));
    return (vi)_mm512_max_epi32(_mm512_unpacklo_epi32(ac, bd), _mm512_unpackhi_epi32(ac, bd));
}

/* 16 bytes each of 4 rows. */
static inline __m512i four_rows(const unsigned char *rows, size_t stride)
{
    __m512i four = _mm512_castsi128_si512(_mm_loadu_si128((const void *)rows));
    four = _mm512_inserti32x4(four, _mm_loadu_si128((const void *)(rows + stride)), 1);
    four = _mm512_inserti32x4(four, _mm_loadu_si128((const void *)(rows + 2 * stride)), 2);
    return _mm512_inserti32x4(four, _mm_loadu_si128((const void *)(rows + 3 * stride)), 3);
}

static inline void vi_columns_of(vi *out, const unsigned char *const *rows, size_t stride)
{
    const __m512i a = four_rows(rows[0], stride), b = four_rows(rows[1], stride);
    const __m512i c = four_rows(rows[2], stride), d = four_rows(rows[3], stride);
    const __m512i ab0 = _mm512_unpacklo_epi32(a, b), ab1 = _mm512_unpackhi_epi32(a, b);
    const __m512i cd0 = _mm512_unpacklo_epi32(c, d), cd1 = _mm512_unpackhi_epi32(c, d);
    out[0] = (vi)_mm512_unpacklo_epi64(ab0, cd0);
    out[1] = (vi)_mm512_unpackhi_epi64(ab0, cd0);
    out[2] = (vi)_mm512_unpacklo_epi64(ab1, cd1);
    out[3] = (vi)_mm512_unpackhi_epi64(ab1, cd1);
}

#endif
