/*
 * The rung for 64-bit ARM with the dot products of ARMv8.2: Cortex-A55, A75 and A76 (2018), Apple
 * since A13 and M1, Graviton2. Dots of four int8 with one instruction; everything else is as on the
 * rung below.
 */
#include <arm_neon.h>

#include "core/kernels/rungs.h"

static double peak_int8(size_t n_steps)
{
    const int8x16_t x = vdupq_n_s8(1);
    int32x4_t a[PEAK_CHAINS], sum = vreinterpretq_s32_s8(x);
    EVERY_CHAIN (i) {
        a[i] = sum;
        ANY_VALUE(a[i]);
    }
    for (size_t step = 0; step < n_steps; step++)
        EVERY_CHAIN (i)
            a[i] = vdotq_s32(a[i], x, x);
    EVERY_CHAIN (i)
        sum = vaddq_s32(sum, a[i]);
    volatile int kept = vgetq_lane_s32(sum, 0);
    (void)kept;
    return 2.0 * sizeof x * PEAK_CHAINS * (double)n_steps;
}

void kernels_neondot_fill(struct kernels *k)
{
    k->peak[PEAK_INT8] = peak_int8;
}
