/*
 * The rung for x86 with AVX-512 F, BW, DQ and VL: Intel since Skylake-SP (2017), AMD since Zen 4
 * (2022).
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"

enum { DOT_SHIFT = 0 };

/* Pairs of 16-bit sums do not overflow: 2 * 15 * 128, and 2 * 127 * 128. */
static inline vi dot_pairs(vi acc, __m512i unsigned8, __m512i signed8)
{
    const __m512i pairs = _mm512_maddubs_epi16(unsigned8, signed8);
    return (vi)_mm512_add_epi32((__m512i)acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
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

/* Two floats, again and again. */
static inline vf v_pair(const float *p)
{
    double two;
    memcpy(&two, p, sizeof two);
    return _mm512_castpd_ps(_mm512_set1_pd(two));
}

/* V_LANES / 2 floats, each in two neighbouring lanes. */
static inline vf v_twice(const float *p)
{
    const __m512i lanes = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(lanes, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
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

void kernels_avx512_fill(struct kernels *k)
{
    fill(k);
    fill_dots(k);
    fill_quant(k);
}
