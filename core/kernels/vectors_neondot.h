/*
 * What rungs of 64-bit ARM with dots of int8 multiply bytes by.
 */
#ifndef CORE_KERNELS_VECTORS_NEONDOT_H
#define CORE_KERNELS_VECTORS_NEONDOT_H

#include "core/kernels/vectors_neon.h"

static inline vi v_dot_i8(vi acc, vi w, vi x)
{
    return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)w, (int8x16_t)x);
}

static inline vi v_dot_u4(vi acc, vi w, vi x)
{
    return v_dot_i8(acc, w, x);
}

#endif
