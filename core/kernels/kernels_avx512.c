/*
 * The rung for x86 with AVX-512 F, BW, DQ and VL: Intel since Skylake-SP (2017), AMD since Zen 4
 * (2022).
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"

enum { DOT_SHIFT = 0 };

#define DOT_SHORT 1

/* The pairs of 16-bit sums are added to the lanes that they share. */
static inline vi v_long(vi acc, vi sums)
{
    return (vi)_mm512_add_epi32((__m512i)acc,
                                _mm512_madd_epi16((__m512i)sums, _mm512_set1_epi16(1)));
}

/* 16 bits hold a pair of products, 2 * 128 * 127, and eight of those with U4, 16 * 15 * 128. */
static inline vi dot_pairs(vi acc, __m512i unsigned8, __m512i signed8)
{
    return v_long(acc, (vi)_mm512_maddubs_epi16(unsigned8, signed8));
}

/* Their order is kept: two products at once would take more registers than there are. */
static inline vi v_short_u4(vi sums, vi w, vi x)
{
    sums = (vi)_mm512_add_epi16((__m512i)sums, _mm512_maddubs_epi16((__m512i)w, (__m512i)x));
    ANY_VALUE(sums);
    return sums;
}

static inline vi vi_short_quads(vi a, vi b, vi c, vi d)
{
    const vi zero = vi_set(0);
    return vi_quads(v_long(zero, a), v_long(zero, b), v_long(zero, c), v_long(zero, d));
}

static inline vi v_dot_u4(vi acc, vi w, vi x)
{
    return dot_pairs(acc, (__m512i)w, (__m512i)x);
}

/* |w| times x with the sign of w. */
static inline vi v_dot_i8(vi acc, vi w, vi x)
{
    const __mmask64 negative = _mm512_movepi8_mask((__m512i)w);
    const __m512i turned =
        _mm512_mask_sub_epi8((__m512i)x, negative, _mm512_setzero_si512(), (__m512i)x);
    return dot_pairs(acc, _mm512_abs_epi8((__m512i)w), turned);
}

/* ---- sixteen bits ---- */

typedef int16_t vs __attribute__((vector_size(64)));

static inline vs vs_pack(vi a, vi b)
{
    const __m512i in_turn = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return (vs)_mm512_permutexvar_epi64(in_turn, _mm512_packs_epi32((__m512i)a, (__m512i)b));
}

static inline vs vs_scale(vs a, vs b)
{
    return (vs)_mm512_mulhrs_epi16((__m512i)a, (__m512i)b);
}

static inline vs vs_hold(vs x)
{
    const __m512i low = _mm512_set1_epi16(-8), high = _mm512_set1_epi16(7);
    return (vs)_mm512_min_epi16(_mm512_max_epi16((__m512i)x, low), high);
}

static inline vi vs_pairs(vs a, vs b)
{
    return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

static inline void vi_fold(int32_t *p, vi x)
{
    const __m256i low = _mm512_castsi512_si256((__m512i)x);
    const __m256i two = _mm256_add_epi32(low, _mm512_extracti64x4_epi64((__m512i)x, 1));
    const __m128i one =
        _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    _mm_storeu_si128((__m128i *)(void *)p, one);
}

static inline vi vi_max_unsigned(vi a, vi b)
{
    return (vi)_mm512_max_epu32((__m512i)a, (__m512i)b);
}

static inline vi vi_min(vi a, vi b)
{
    return (vi)_mm512_min_epi32((__m512i)a, (__m512i)b);
}

static inline float v_least(vf x)
{
    return _mm512_reduce_min_ps(x);
}

static inline float v_largest(vf x)
{
    return _mm512_reduce_max_ps(x);
}

#include "core/kernels/kernels.inc"
#include "core/kernels/kernels_quant.inc"

#include "core/kernels/dots.inc"
#include "core/kernels/woven.inc"

void kernels_avx512_fill(struct kernels *k)
{
    fill(k);
    fill_dots(k);
    fill_woven(k);
    fill_quant(k);
}
