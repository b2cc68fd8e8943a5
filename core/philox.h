/*
 * Random numbers as a function: Philox4x32-10 of Salmon et al. 2011, "Parallel random numbers: as
 * easy as 1, 2, 3". No state, so the number at a position is the same in whatever order positions
 * are asked for.
 */
#ifndef CORE_PHILOX_H
#define CORE_PHILOX_H

#include <stdint.h>

/* Four random words from a counter and a key. */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The uniform number in [0, 1), 53 bits of it, that belongs to `position` under `seed`. */
double philox_uniform(uint64_t seed, uint64_t position);

#endif
