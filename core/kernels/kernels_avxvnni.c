/*
 * The rung for x86 with AVX-VNNI, which has dots of four int8 without AVX-512: Intel's desktop and
 * mobile processors since Alder Lake (2021), AMD since Zen 5. Everything else is as on the rung
 * below.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx2.h"

/* The first operand of vpdpbusd is unsigned. */
enum { DOT_V = 2, DOT_X = 6, DOT_SHIFT = 128 };

/* Dots are kept in order: more words of x at once would take more registers than there are. */
static inline vi v_dot_i8(vi acc, vi w, vi x)
{
    acc = (vi)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)w, (__m256i)x);
    ANY_VALUE(acc);
    return acc;
}

static inline vi v_dot_u4(vi acc, vi w, vi x)
{
    return v_dot_i8(acc, w, x);
}

#include "core/kernels/dots.inc"
#include "core/kernels/woven.inc"

void kernels_avxvnni_fill(struct kernels *k)
{
    fill_dots(k);
    fill_woven(k);
}
