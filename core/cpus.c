/*
 * Takes the smaller of two limits: the CPUs of the affinity mask, and the quota of the process's
 * control groups and of those that they are part of (versions 1 and 2). A file that cannot be read
 * sets no limit. Owns nothing and measures nothing: what the kernel says is read once, when threads
 * are made.
 */
#include "core/cpus.h"

#include "core/base.h"
#include "core/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>

/* A quota in microseconds of each period, as CPUs; "max" or -1: no limit. */
static double limit_of(const char *quota, const char *period)
{
    long used, of;
    const bool limited =
        sscanf(quota, "%ld", &used) == 1 && sscanf(period, "%ld", &of) == 1 && used > 0 && of > 0;
    return limited ? (double)used / (double)of : INFINITY;
}

static double limit_in(const char *dir)
{
    char quota[32], period[32], none[32];
    const bool found = cgroup_words(dir, "cpu.max", quota, period) == 2 ||
                       (cgroup_words(dir, "cpu.cfs_quota_us", quota, none) > 0 &&
                        cgroup_words(dir, "cpu.cfs_period_us", period, none) > 0);
    return found ? limit_of(quota, period) : INFINITY;
}

int cpus_of_quota(const char *self, const char *root)
{
    const double least = cgroup_least(self, root, "cpu", limit_in);
    return isinf(least) ? 0 : (int)fmin(fmax(1, round(least)), INT_MAX);
}

/* Those that a set of n can name, 0 where there may be more. */
static int count_allowed(int n)
{
    cpu_set_t *const set = CPU_ALLOC(n);
    const size_t size = CPU_ALLOC_SIZE(n);
    if (!set)
        return 1;
    const bool told = sched_getaffinity(0, size, set) == 0, too_small = !told && errno == EINVAL;
    const int count = told ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    return too_small ? 0 : max_int(1, count); /* 1 where it is forbidden: safe rather than fast */
}

static int cpus_allowed(void)
{
    enum { MOST = 1 << 20 };
    int count = 0;
    for (int n = CPU_SETSIZE; count == 0 && n <= MOST; n *= 2)
        count = count_allowed(n);
    return max_int(1, count);
}

int cpus_usable(void)
{
    const int quota = cpus_of_quota(CGROUP_SELF, CGROUP_ROOT), n = cpus_allowed();
    return quota ? min_int(n, quota) : n;
}
