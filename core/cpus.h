/*
 * How many CPUs this process may keep busy: those that its threads may run on, and no more than a
 * container's share of time comes to. A process that takes more is stopped for the rest of each
 * period: then some thread is stopped while the others wait for it.
 */
#ifndef CORE_CPUS_H
#define CORE_CPUS_H

/* At least 1. */
int cpus_usable(void);

/* What control groups of Linux leave of all CPUs' time, in whole CPUs; 0 where they set no limit.
 * Arguments as cgroup_least's. Of version 2: cpu.max; of version 1: cpu.cfs_quota_us and
 * _period_us. */
int cpus_of_quota(const char *self, const char *root);

#endif
