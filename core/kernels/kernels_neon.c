/*
 * The rung for every 64-bit ARM processor: vectors of four floats and conversion from f16 belong to
 * the architecture.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_neon.h"

/* Two floats, again and again. */
static inline vf v_pair(const float *p)
{
    const float32x2_t two = vld1_f32(p);
    return vcombine_f32(two, two);
}

/* V_LANES / 2 floats, each in two neighbouring lanes. */
static inline vf v_twice(const float *p)
{
    const vf pair = v_pair(p);
    return vzip1q_f32(pair, pair);
}

static inline float v_least(vf x)
{
    return vminvq_f32(x);
}

static inline float v_largest(vf x)
{
    return vmaxvq_f32(x);
}

/* Pairs of 16-bit sums do not overflow: 2 * 128 * 127. */
static inline vi v_dot_i8(vi acc, vi w, vi x)
{
    const int8x16_t a = (int8x16_t)w, b = (int8x16_t)x;
    const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
    return (vi)vpadalq_s16((int32x4_t)acc, vpaddq_s16(low, vmull_high_s8(a, b)));
}

static inline vi v_dot_u4(vi acc, vi w, vi x)
{
    return v_dot_i8(acc, w, x);
}

#include "core/kernels/kernels.inc"
#include "core/kernels/kernels_quant.inc"

#include "core/kernels/dots.inc"

void kernels_neon_fill(struct kernels *k)
{
    fill(k);
    fill_quant(k);
    fill_dots(k);
}
