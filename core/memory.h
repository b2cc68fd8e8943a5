/*
 * How much memory this process may use: the machine's, no more than its container's, beyond which
 * the kernel would kill the process, and no more than its limit of addresses (ulimit -v).
 */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stdint.h>

/* In bytes; a guess where the system tells nothing. */
uint64_t memory_usable(void);

/* What control groups allow, UINT64_MAX where they set no limit: of version 2 memory.max, of
 * version 1 memory.limit_in_bytes. Arguments as cgroup_least's. */
uint64_t memory_of_groups(const char *self, const char *root);

#endif
