/*
 * Takes the smaller of two limits: the CPUs of the affinity mask, and the quota of the process's
 * control groups and of those that they are part of (versions 1 and 2). A file that cannot be read
 * sets no limit. Owns nothing and measures nothing: what the kernel says is read once, when threads
 * are made.
 */
#include "core/cpus.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/base.h"

/* The first two words of a file; how many there are. */
static int read_words(const char *dir, const char *name, char a[32], char b[32])
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    const int n = f ? fscanf(f, "%31s %31s", a, b) : 0;
    if (f)
        fclose(f);
    return n;
}

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
    const bool found = read_words(dir, "cpu.max", quota, period) == 2 ||
                       (read_words(dir, "cpu.cfs_quota_us", quota, none) > 0 &&
                        read_words(dir, "cpu.cfs_period_us", period, none) > 0);
    return found ? limit_of(quota, period) : INFINITY;
}

/* The smallest limit of the group and of those that it is part of. Within a container its path may
 * mean nothing, while the root is the container's own group. */
static double limit_up(const char *root, const char *group)
{
    char dir[PATH_MAX];
    const int n_root = snprintf(dir, sizeof dir, "%s", root);
    if (snprintf(dir, sizeof dir, "%s%s", root, group) >= (int)sizeof dir)
        return INFINITY;
    double least = INFINITY;
    for (char *end = dir + strlen(dir); end; end = strrchr(dir + n_root, '/')) {
        *end = '\0';
        least = fmin(least, limit_in(dir));
    }
    return least;
}

/* Whether a list of controllers, separated by commas, has that of CPUs. */
static bool has_cpu(const char *list)
{
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, "cpu", 3) == 0 && (list[3] == ',' || list[3] == '\0'))
            return true;
    }
    return false;
}

int cpus_of_quota(const char *self, const char *root)
{
    FILE *f = fopen(self, "re");
    char line[PATH_MAX], dir[PATH_MAX];
    double least = INFINITY;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        if (*controllers == '\0')
            least = fmin(least, limit_up(root, group));
        else if (has_cpu(controllers) &&
                 snprintf(dir, sizeof dir, "%s/cpu", root) < (int)sizeof dir)
            least = fmin(least, limit_up(dir, group));
    }
    if (f)
        fclose(f);
    return isinf(least) ? 0 : (int)fmin(fmax(1, round(least)), INT_MAX);
}

int cpus_usable(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1; /* more CPUs than the set can name, or forbidden: safe rather than fast */
    const int quota = cpus_of_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    const int n = max_int(1, CPU_COUNT(&set));
    return quota ? min_int(n, quota) : n;
}
