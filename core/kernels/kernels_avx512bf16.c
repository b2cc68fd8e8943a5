/*
 * The rung for x86 with AVX-512 BF16: Intel since Cooper Lake (2020) and Sapphire Rapids, AMD since
 * Zen 4. Dots of pairs of bf16 with one instruction; everything else is as on the rung below.
 */
#include <immintrin.h>

#include "core/kernels/rungs.h"

static double peak_bf16(size_t n_steps)
{
    const __m512bh x = (__m512bh)_mm512_set1_epi16(0x3f80); /* 1.0 */
    __m512 a[PEAK_CHAINS], sum = _mm512_setzero_ps();
    EVERY_CHAIN (i)
        a[i] = sum;
    for (size_t step = 0; step < n_steps; step++)
        EVERY_CHAIN (i)
            a[i] = _mm512_dpbf16_ps(a[i], x, x);
    EVERY_CHAIN (i)
        sum = _mm512_add_ps(sum, a[i]);
    volatile float kept = _mm512_cvtss_f32(sum);
    (void)kept;
    return sizeof x * PEAK_CHAINS * (double)n_steps; /* two operations for each two bytes */
}

void kernels_avx512bf16_fill(struct kernels *k)
{
    k->peak[PEAK_BF16] = peak_bf16;
}
