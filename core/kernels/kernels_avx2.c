/*
 * The rung for x86 with AVX2, FMA and F16C: Intel since Haswell (2013), AMD since Excavator (2015)
 * and Zen.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx2.h"

enum { DOT_V = 2, DOT_X = 4, DOT_SHIFT = 0 };

#define DOT_SHORT 1

/* The pairs of 16-bit sums are added to the lanes that they share. */
static inline vi v_long(vi acc, vi sums)
{
    return (vi)_mm256_add_epi32((__m256i)acc,
                                _mm256_madd_epi16((__m256i)sums, _mm256_set1_epi16(1)));
}

/* 16 bits hold a pair of products, 2 * 128 * 127, and eight of those with U4, 16 * 15 * 128. */
static inline vi dot_pairs(vi acc, __m256i unsigned8, __m256i signed8)
{
    return v_long(acc, (vi)_mm256_maddubs_epi16(unsigned8, signed8));
}

/* Their order is kept: two products at once would take more registers than there are. */
static inline vi v_short_u4(vi sums, vi w, vi x)
{
    sums = (vi)_mm256_add_epi16((__m256i)sums, _mm256_maddubs_epi16((__m256i)w, (__m256i)x));
    ANY_VALUE(sums);
    return sums;
}

static inline vi v_dot_u4(vi acc, vi w, vi x)
{
    return dot_pairs(acc, (__m256i)w, (__m256i)x);
}

/* |w| times x with the sign of w. */
static inline vi v_dot_i8(vi acc, vi w, vi x)
{
    return dot_pairs(acc, _mm256_abs_epi8((__m256i)w), _mm256_sign_epi8((__m256i)x, (__m256i)w));
}

static inline vi vi_short_quads(vi a, vi b, vi c, vi d)
{
    const __m256i x = (__m256i)a, y = (__m256i)b, z = (__m256i)c, w = (__m256i)d;
    const __m256i pairs = _mm256_hadd_epi16(_mm256_hadd_epi16(x, y), _mm256_hadd_epi16(z, w));
    return v_long(vi_set(0), (vi)pairs);
}

/* ---- sixteen bits ---- */

typedef int16_t vs __attribute__((vector_size(32)));

static inline vs vs_pack(vi a, vi b)
{
    const __m256i both = _mm256_packs_epi32((__m256i)a, (__m256i)b);
    return (vs)_mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0));
}

static inline vs vs_scale(vs a, vs b)
{
    return (vs)_mm256_mulhrs_epi16((__m256i)a, (__m256i)b);
}

static inline vs vs_hold(vs x)
{
    const __m256i low = _mm256_set1_epi16(-8), high = _mm256_set1_epi16(7);
    return (vs)_mm256_min_epi16(_mm256_max_epi16((__m256i)x, low), high);
}

static inline vi vs_pairs(vs a, vs b)
{
    return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

static inline void vi_fold(int32_t *p, vi x)
{
    const __m256i two = (__m256i)x;
    const __m128i one =
        _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    _mm_storeu_si128((__m128i *)(void *)p, one);
}

static inline vi vi_max_unsigned(vi a, vi b)
{
    return (vi)_mm256_max_epu32((__m256i)a, (__m256i)b);
}

static inline vi vi_min(vi a, vi b)
{
    return (vi)_mm256_min_epi32((__m256i)a, (__m256i)b);
}

static inline float v_largest(vf x)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

static inline float v_least(vf x)
{
    return -v_largest(-x);
}

#include "core/kernels/kernels.inc"
#include "core/kernels/kernels_quant.inc"

#include "core/kernels/dots.inc"
#include "core/kernels/woven.inc"

void kernels_avx2_fill(struct kernels *k)
{
    fill(k);
    fill_dots(k);
    fill_woven(k);
    fill_quant(k);
}
