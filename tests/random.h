/*
 * The same random numbers in every run (splitmix64, Steele et al. 2014).
 */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 20240229;

static inline uint64_t random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* In [-1, 1). */
static inline float random_unit(void)
{
    return (float)((double)(int64_t)random_bits() * 0x1p-63);
}

#endif
