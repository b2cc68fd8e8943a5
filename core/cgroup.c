/*
 * Reads the limits of a process's control groups. A process is in one group of version 2, and in
 * one of version 1 for each controller. A file that cannot be read sets no limit. Owns nothing.
 */
#include "core/cgroup.h"

#include "core/base.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int cgroup_words(const char *dir, const char *name, char a[32], char b[32])
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    const int n = f ? fscanf(f, "%31s %31s", a, b) : 0;
    if (f)
        fclose(f);
    return max_int(n, 0);
}

/* The smallest limit of the group and of those that it is part of. Within a container its path may
 * mean nothing, while the root is the container's own group. */
static double limit_up(const char *root, const char *group, double (*limit_in)(const char *dir))
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

/* Whether a list of controllers, separated by commas, has that one. */
static bool has(const char *list, const char *controller)
{
    const size_t n = strlen(controller);
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, controller, n) == 0 && (list[n] == ',' || list[n] == '\0'))
            return true;
    }
    return false;
}

double cgroup_least(const char *self, const char *root, const char *controller,
                    double (*limit_in)(const char *dir))
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
            least = fmin(least, limit_up(root, group, limit_in));
        else if (has(controllers, controller) &&
                 snprintf(dir, sizeof dir, "%s/%s", root, controller) < (int)sizeof dir)
            least = fmin(least, limit_up(dir, group, limit_in));
    }
    if (f)
        fclose(f);
    return least;
}
