/*
 * The rung for 64-bit ARM with the dot products of ARMv8.2: Cortex-A55, A75 and A76 (2018), Apple
 * since A13 and M1, Graviton2. Dots of four int8 with one instruction; everything else is as on the
 * rung below.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_neon.h"

static inline vi v_dot_i8(vi acc, vi w, vi x)
{
    return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)w, (int8x16_t)x);
}

static inline vi v_dot_u4(vi acc, vi w, vi x)
{
    return v_dot_i8(acc, w, x);
}

#include "core/kernels/dots.inc"

void kernels_neondot_fill(struct kernels *k)
{
    fill_dots(k);
}
