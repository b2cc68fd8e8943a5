/*
 * The limits that Linux's control groups, and so containers, set. The caller reads the limit of one
 * group from its folder; this file finds the groups.
 */
#ifndef CORE_CGROUP_H
#define CORE_CGROUP_H

/* The list of the process's groups, and the folder that they lie in. */
#define CGROUP_SELF "/proc/self/cgroup"
#define CGROUP_ROOT "/sys/fs/cgroup"

/* The smallest limit of the groups that `self` lists, as /proc/self/cgroup does, and of those that
 * they are part of. limit_in returns the limit in one folder, INFINITY where there is none. The
 * folders lie under `root`; in version 1, under the controller's name there. */
double cgroup_least(const char *self, const char *root, const char *controller,
                    double (*limit_in)(const char *dir));

/* The first two words of a file in such a folder; how many there are. */
int cgroup_words(const char *dir, const char *name, char a[32], char b[32]);

#endif
