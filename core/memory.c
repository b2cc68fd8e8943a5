/*
 * Takes the least of the machine's memory, the limits of control groups and the process's own.
 * Sizes have 64 bits: a machine may have more memory than a 32-bit process can address. Owns
 * nothing.
 */
#include "core/memory.h"

#include "core/cgroup.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint64_t GUESS = UINT64_C(1) << 30;

/* "max", and in version 1 a number that no machine reaches: no limit. */
static double limit_in(const char *dir)
{
    char limit[32], none[32], *end;
    if (cgroup_words(dir, "memory.max", limit, none) == 0 &&
        cgroup_words(dir, "memory.limit_in_bytes", limit, none) == 0)
        return INFINITY;
    const double bytes = strtod(limit, &end);
    return end != limit && *end == '\0' && bytes > 0 ? bytes : INFINITY;
}

uint64_t memory_of_groups(const char *self, const char *root)
{
    const double least = cgroup_least(self, root, "memory", limit_in);
    return least < 0x1p63 ? (uint64_t)least : UINT64_MAX;
}

uint64_t memory_usable(void)
{
    const long n_pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const uint64_t machine = n_pages > 0 && page > 0 ? (uint64_t)n_pages * (uint64_t)page : GUESS;
    uint64_t most = memory_of_groups(CGROUP_SELF, CGROUP_ROOT);
    struct rlimit addresses;
    if (machine < most)
        most = machine;
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur < most) /* infinity is not */
        most = addresses.rlim_cur;
    return most;
}
