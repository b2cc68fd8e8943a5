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
#include "core/kernels/woven.inc"

void kernels_avx512vnni_fill(struct kernels *k)
{
    fill_dots(k);
    fill_woven(k);
}
