/*
 * The rung for 64-bit ARM with products of matrices of int8 (FEAT_I8MM of ARMv8.6): Neoverse V1
 * (Graviton3) and N2, Cortex-A510, A710 and X2 (2021), Apple since M2. One instruction multiplies
 * two rows by two, 8 codes each: twice the products of the dots below, which few rows of x keep,
 * since they wait for memory.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_neondot.h"

#define DOT_PAIRS 1

static inline vi v_dot_pairs(vi acc, vi x, vi w)
{
    return (vi)vmmlaq_s32((int32x4_t)acc, (int8x16_t)x, (int8x16_t)w);
}

static inline vi vi_pair(const void *a, const void *b)
{
    return (vi)vcombine_u8(vld1_u8(a), vld1_u8(b));
}

static inline vi vi_lower(vi a, vi b)
{
    return (vi)vzip1q_s64((int64x2_t)a, (int64x2_t)b);
}

static inline vi vi_upper(vi a, vi b)
{
    return (vi)vzip2q_s64((int64x2_t)a, (int64x2_t)b);
}

#include "core/kernels/dots.inc"

void kernels_neoni8mm_fill(struct kernels *k)
{
    fill_dots(k);
}
