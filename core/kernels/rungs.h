/*
 * The rungs of the ladder, for kernels.c and their own files. Each overwrites in the table the
 * slots that it does better than the rungs below; the scalar one fills all but shortcuts
 * (kernels.h). A rung must only be called where the processor has what its file was compiled for.
 */
#ifndef CORE_KERNELS_RUNGS_H
#define CORE_KERNELS_RUNGS_H

#include "core/kernels/kernels.h"

/*
 * Whether the processor gains by hints, which bring memory nearer, that come early and go into L1.
 * Where it does not, too many lines on their way hold up the loads themselves, and L1 may not keep
 * them until their turn. Loops go by it as well, and so do sizes of blocks; measured on Zen 4,
 * which does not, and Zen 5, and taken to be so elsewhere. No bit depends on it. Known before
 * kernels run.
 */
extern bool kernels_asks_early;

/* Whether what is read once is best asked for past L2: on AMD, where it takes a twentieth of the
 * time off. On Intel it more than doubles it. */
extern bool kernels_passes_l2;

/* Independent chains of a peak: two units with a latency of 5 cycles need ten, and twelve leave
 * operands room in sixteen registers. */
enum { PEAK_CHAINS = 12 };

/* Unrolled, so that the chains stay in registers. */
#define EVERY_CHAIN(i) _Pragma("GCC unroll 12") for (size_t i = 0; i < PEAK_CHAINS; i++)

/* What the compiler must take for any value, or it would compute equal chains once. */
#if defined(__x86_64__)
#define ANY_VALUE(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define ANY_VALUE(v) __asm__("" : "+w"(v))
#else
#define ANY_VALUE(v) __asm__("" : "+m"(v))
#endif

/* Behind it memory is loaded anew. Compilers would rather keep what they have loaded, and for lack
 * of registers on the stack. */
#define LOAD_ANEW() __asm__ volatile("" ::: "memory")

void kernels_scalar_fill(struct kernels *k);
#if defined(__x86_64__)
void kernels_avx2_fill(struct kernels *k);
void kernels_avxvnni_fill(struct kernels *k);
void kernels_avx512_fill(struct kernels *k);
void kernels_avx512vnni_fill(struct kernels *k);
void kernels_avx512bf16_fill(struct kernels *k);
void kernels_avx512bf16_attend_fill(struct kernels *k); /* a part of avx512bf16 */
void kernels_amx_fill(struct kernels *k);
void kernels_amx_i8_fill(struct kernels *k);     /* a part of amx */
void kernels_amx_attend_fill(struct kernels *k); /* another */

/* Of the rung amx: linear_rows_bf16 or linear_cols_bf16, for 1 to AMX_FEW rows of x. */
enum { AMX_FEW = 64 };
void kernels_amx_few(const struct linear_args *a, bool cols);
#elif defined(__aarch64__)
void kernels_neon_fill(struct kernels *k);
void kernels_neondot_fill(struct kernels *k);
void kernels_neoni8mm_fill(struct kernels *k);
void kernels_neonbf16_fill(struct kernels *k);
#endif

#endif
