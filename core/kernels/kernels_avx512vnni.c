/*
 * The rung for x86 with AVX-512 VNNI: Intel since Cascade Lake (2019), AMD since Zen 4. Dots of
 * four int8 with one instruction; everything else is as on the rung below.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"

enum { DOT_SHIFT = 128 }; /* the first operand of vpdpbusd is unsigned */

static inline vi v_dot_i8(vi acc, vi w, vi x)
{
    return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)w, (__m512i)x);
}

static inline vi v_dot_u4(vi acc, vi w, vi x)
{
    return v_dot_i8(acc, w, x);
}

#include "core/kernels/dots.inc"

static double peak_int8(size_t n_steps)
{
    const __m512i x = _mm512_set1_epi8(1);
    __m512i a[PEAK_CHAINS], sum = x;
    EVERY_CHAIN (i) {
        a[i] = x;
        ANY_VALUE(a[i]);
    }
    for (size_t step = 0; step < n_steps; step++)
        EVERY_CHAIN (i)
            a[i] = _mm512_dpbusd_epi32(a[i], x, x);
    EVERY_CHAIN (i)
        sum = _mm512_add_epi32(sum, a[i]);
    volatile int kept = _mm_cvtsi128_si32(_mm512_castsi512_si128(sum));
    (void)kept;
    return 2.0 * sizeof x * PEAK_CHAINS * (double)n_steps;
}

void kernels_avx512vnni_fill(struct kernels *k)
{
    fill_dots(k);
    k->peak[PEAK_INT8] = peak_int8;
}
