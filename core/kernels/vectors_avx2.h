/*
 * The vocabulary of kernels.inc and dots.inc for eight lanes, for the rungs with AVX2, FMA and
 * F16C. Sixteen registers: a tile is 12 accumulators, 3 operands that stay and 1 that goes by,
 * which keeps two FMA units busy through their latency of 4 or 5 cycles. What multiplies bytes is
 * each rung's own.
 */
#ifndef CORE_KERNELS_VECTORS_AVX2_H
#define CORE_KERNELS_VECTORS_AVX2_H

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { V_LANES = 8, ROWS_X = 3, COLS_X = 4, COLS_V = 3, STRIP_K = 8 };

typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));

static inline vf v_set(float x)
{
    return _mm256_set1_ps(x);
}

static inline vf v_load(const void *p)
{
    return _mm256_loadu_ps(p);
}

static inline vf v_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

/* bf16 is the upper half of an f32. */
static inline vf bf16_to_f32(__m128i h)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

static inline vf v_load_bf16(const void *p)
{
    return bf16_to_f32(_mm_loadu_si128(p));
}

static inline void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}

/* All bits of the first n lanes. */
static inline __m256i first_lanes(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

static inline vf v_load_part(const void *p, size_t n)
{
    return _mm256_maskload_ps(p, first_lanes(n));
}

/* Pieces of 1, 2 and 4 from the end. No call to memcpy(): it would cost the loops around it their
 * registers. */
static inline __m128i load_halves(const void *p, size_t n)
{
    const char *end = (const char *)p + 2 * n;
    __m128i v = _mm_setzero_si128();
    int16_t one;
    int32_t two;
    int64_t four;
    if (n & 1) {
        end -= sizeof one;
        memcpy(&one, end, sizeof one);
        v = _mm_insert_epi16(v, one, 0);
    }
    if (n & 2) {
        end -= sizeof two;
        memcpy(&two, end, sizeof two);
        v = _mm_insert_epi32(_mm_slli_si128(v, sizeof two), two, 0);
    }
    if (n & 4) {
        end -= sizeof four;
        memcpy(&four, end, sizeof four);
        v = _mm_insert_epi64(_mm_slli_si128(v, sizeof four), four, 0);
    }
    return v;
}

static inline vf v_load_f16_part(const void *p, size_t n)
{
    return _mm256_cvtph_ps(load_halves(p, n));
}

static inline vf v_load_bf16_part(const void *p, size_t n)
{
    return bf16_to_f32(load_halves(p, n));
}

static inline void v_store_part(float *p, vf x, size_t n)
{
    _mm256_maskstore_ps(p, first_lanes(n), x);
}

static inline vi v_load_u8(const void *p)
{
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
}

static inline vi v_load_i8(const void *p)
{
    return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64(p));
}

static inline vi v_load_u4(const void *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    return (vi)_mm256_srlv_epi32(_mm256_set1_epi32(word), shift) & 15;
}

static inline bool vi_any(vi x)
{
    return !_mm256_testz_si256((__m256i)x, (__m256i)x);
}

static inline vf v_pick8(const float *table, vi i)
{
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)i);
}

static inline vi v_pick16(const unsigned char *table, vi i)
{
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table));
    return (vi)_mm256_shuffle_epi8(twice, (__m256i)i);
}

static inline vf v_first(vf a, size_t n, vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(first_lanes(n)));
}

static inline vf v_negative(vf s, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, s);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
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
    return _mm256_min_ps(a, b);
}

static inline vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf v_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}

static inline vf v_round(vf x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* In two steps, since 2^n itself may be no normal number; only the second can round. */
static inline vf v_scale(vf x, vf n)
{
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    const __m256i rest = _mm256_sub_epi32(whole, half);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
    return x * _mm256_castsi256_ps(a) * _mm256_castsi256_ps(b);
}

/* The sum of the halves. */
static inline __m128 fold(vf a)
{
    return _mm256_castps256_ps128(a) + _mm256_extractf128_ps(a, 1);
}

static inline void v_sum4(float *sums, vf a, vf b, vf c, vf d)
{
    const vf ac = _mm256_unpacklo_ps(a, c) + _mm256_unpackhi_ps(a, c);
    const vf bd = _mm256_unpacklo_ps(b, d) + _mm256_unpackhi_ps(b, d);
    const vf all = _mm256_unpacklo_ps(ac, bd) + _mm256_unpackhi_ps(ac, bd);
    _mm_storeu_ps(sums, _mm_loadu_ps(sums) + fold(all));
}

/* In the order of v_sum4. */
static inline float v_sum(vf a)
{
    const vf two = a + _mm256_permute_ps(a, 0x4e);
    return _mm_cvtss_f32(fold(two + _mm256_permute_ps(two, 0xb1)));
}

/* ---- whole numbers ---- */

static inline vi vi_set(int32_t x)
{
    return (vi)_mm256_set1_epi32(x);
}

static inline vi vi_load(const void *p)
{
    return (vi)_mm256_loadu_si256(p);
}

/* A half is loaded at once: one put together in memory would have to wait for every store. */
static inline vi vi_load_part(const void *p, size_t n)
{
    unsigned char part[sizeof(vi)] = {0};
    if (n == 16)
        return (vi)_mm256_zextsi128_si256(_mm_loadu_si128(p));
    memcpy(part, p, n);
    return vi_load(part);
}

static inline void vi_store(void *p, vi x)
{
    _mm256_storeu_si256(p, (__m256i)x);
}

static inline vf vi_to_f32(vi x)
{
    return _mm256_cvtepi32_ps((__m256i)x);
}

static inline vi vi_max(vi a, vi b)
{
    return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
}

static inline vi vi_quads(vi a, vi b, vi c, vi d)
{
    const __m256i x = (__m256i)a, y = (__m256i)b, z = (__m256i)c, w = (__m256i)d;
    const __m256i ac = _mm256_add_epi32(_mm256_unpacklo_epi32(x, z), _mm256_unpackhi_epi32(x, z));
    const __m256i bd = _mm256_add_epi32(_mm256_unpacklo_epi32(y, w), _mm256_unpackhi_epi32(y, w));
    return (vi)_mm256_add_epi32(_mm256_unpacklo_epi32(ac, bd), _mm256_unpackhi_epi32(ac, bd));
}

static inline vi vi_quads_max(vi a, vi b, vi c, vi d)
{
    const __m256i x = (__m256i)a, y = (__m256i)b, z = (__m256i)c, w = (__m256i)d;
    const __m256i ac = _mm256_max_epi32(_mm256_unpacklo_epi32(x, z), _mm256_unpackhi_epi32(x, z));
    const __m256i bd = _mm256_max_epi32(_mm256_unpacklo_epi32(y, w), _mm256_unpackhi_epi32(y, w));
    return (vi)_mm256_max_epi32(_mm256_unpacklo_epi32(ac, bd), _mm256_unpackhi_epi32(ac, bd));
}

/* 16 bytes each of rows 0 and 4. */
static inline __m256i two_rows(const unsigned char *rows, size_t stride)
{
    const __m128i low = _mm_loadu_si128((const void *)rows);
    const __m128i high = _mm_loadu_si128((const void *)(rows + stride));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

static inline void vi_columns_of(vi *out, const unsigned char *const *rows, size_t stride)
{
    const __m256i a = two_rows(rows[0], stride), b = two_rows(rows[1], stride);
    const __m256i c = two_rows(rows[2], stride), d = two_rows(rows[3], stride);
    const __m256i ab0 = _mm256_unpacklo_epi32(a, b), ab1 = _mm256_unpackhi_epi32(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi32(c, d), cd1 = _mm256_unpackhi_epi32(c, d);
    out[0] = (vi)_mm256_unpacklo_epi64(ab0, cd0);
    out[1] = (vi)_mm256_unpackhi_epi64(ab0, cd0);
    out[2] = (vi)_mm256_unpacklo_epi64(ab1, cd1);
    out[3] = (vi)_mm256_unpackhi_epi64(ab1, cd1);
}

/* Lanes from -128 to 127. */
static inline void v_store_i8(int8_t *p, vi x)
{
    const __m256i words = _mm256_packs_epi32((__m256i)x, (__m256i)x);
    const __m256i bytes = _mm256_packs_epi16(words, words);
    const __m128i all =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storel_epi64((__m128i *)(void *)p, all);
}

#endif
