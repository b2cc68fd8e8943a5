/*
 * The rungs of the ladder, for kernels.c and nobody else. Each overwrites in the table the slots
 * that it does better than the rungs below; the scalar one fills all of them. A rung must only be
 * called where the processor has what its file was compiled for.
 */
#ifndef CORE_KERNELS_RUNGS_H
#define CORE_KERNELS_RUNGS_H

#include "core/kernels/kernels.h"

void kernels_scalar_fill(struct kernels *k);
#if defined(__x86_64__)
void kernels_avx2_fill(struct kernels *k);
void kernels_avx512_fill(struct kernels *k);
#elif defined(__aarch64__)
void kernels_neon_fill(struct kernels *k);
#endif

#endif
