/*
 * The rung for 64-bit ARM with the dot products of ARMv8.2: Cortex-A55, A75 and A76 (2018), Apple
 * since A13 and M1, Graviton2. Dots of four int8 with one instruction; everything else is as on the
 * rung below.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_neondot.h"

#include "core/kernels/dots.inc"

void kernels_neondot_fill(struct kernels *k)
{
    fill_dots(k);
}
