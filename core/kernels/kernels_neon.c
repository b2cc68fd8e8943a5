/*
 * The rung for every 64-bit ARM processor: vectors of four floats and conversion from f16 belong to
 * the architecture.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_neon.h"

#include "core/kernels/kernels.inc"

/* Pairs of 16-bit sums do not overflow: 2 * 128 * 127. */
static inline int32x4_t dot_i8(int32x4_t acc, int8x16_t a, int8x16_t b)
{
    const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
    return vpadalq_s16(acc, vpaddq_s16(low, vmull_high_s8(a, b)));
}

/* Fours of int8 without an instruction of their own. Each chain feeds on itself: what does not
 * change would be taken out of the loop. */
static double peak_int8(size_t n_steps)
{
    const int8x16_t x = vdupq_n_s8(3);
    int32x4_t a[PEAK_CHAINS], sum = vreinterpretq_s32_s8(x);
    EVERY_CHAIN (i)
        a[i] = sum;
    for (size_t step = 0; step < n_steps; step++)
        EVERY_CHAIN (i)
            a[i] = dot_i8(a[i], vreinterpretq_s8_s32(a[i]), x);
    EVERY_CHAIN (i)
        sum = vaddq_s32(sum, a[i]);
    volatile int kept = vgetq_lane_s32(sum, 0);
    (void)kept;
    return 2.0 * sizeof x * PEAK_CHAINS * (double)n_steps;
}

void kernels_neon_fill(struct kernels *k)
{
    fill(k);
    k->peak[PEAK_INT8] = peak_int8;
}
