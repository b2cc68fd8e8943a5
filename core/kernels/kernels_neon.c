/*
 * The rung for every 64-bit ARM processor: vectors of four floats and conversion from f16 belong to
 * the architecture.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_neon.h"

static inline vi vi_max_unsigned(vi a, vi b)
{
    return (vi)vmaxq_u32((uint32x4_t)a, (uint32x4_t)b);
}

static inline vi vi_min(vi a, vi b)
{
    return (vi)vminq_s32((int32x4_t)a, (int32x4_t)b);
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

/* ---- sixteen bits ---- */

typedef int16_t vs __attribute__((vector_size(16)));

static inline vs vs_pack(vi a, vi b)
{
    return (vs)vcombine_s16(vmovn_s32((int32x4_t)a), vmovn_s32((int32x4_t)b));
}

static inline vs vs_scale(vs a, vs b)
{
    return (vs)vqrdmulhq_s16((int16x8_t)a, (int16x8_t)b);
}

static inline vs vs_hold(vs x)
{
    return (vs)vminq_s16(vmaxq_s16((int16x8_t)x, vdupq_n_s16(-8)), vdupq_n_s16(7));
}

static inline vi vs_pairs(vs a, vs b)
{
    const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    return (vi)vmlal_high_s16(vmull_s16(vget_low_s16(x), vget_low_s16(y)), x, y);
}

static inline void vi_fold(int32_t *p, vi x)
{
    vst1q_s32(p, (int32x4_t)x);
}

#include "core/kernels/kernels.inc"
#include "core/kernels/kernels_quant.inc"

#include "core/kernels/dots.inc"

void kernels_neon_fill(struct kernels *k)
{
    fill(k);
    fill_quant(k);
    fill_dots(k);
    k->per_cycle[PEAK_INT8] = DOT_VECTOR; /* a dot takes several instructions here, too */
}
