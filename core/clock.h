/* The clock that everything in the program is timed with. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <time.h>

/* Seconds on a clock that never goes back. */
static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
