/* The clock that everything in the program is timed with. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <time.h>

/* Seconds on any clock of the system. */
static inline double clock_of(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds on a clock that never goes back. */
static inline double clock_seconds(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

/* Seconds that this thread has had a CPU. */
static inline double clock_on_cpu(void)
{
    return clock_of(CLOCK_THREAD_CPUTIME_ID);
}

#endif
