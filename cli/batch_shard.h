/*
 * Which part of a job this process does, where several share it: said by --shard, or found in what
 * Slurm, Open MPI and PMI tell their processes. Lines are dealt out in turn, so that parts are
 * equal whatever the order of the input.
 */
#ifndef CLI_BATCH_SHARD_H
#define CLI_BATCH_SHARD_H

#include "core/err.h"

enum { BATCH_SHARD_MOST = 1000000 }; /* parts of a job */

struct batch_shard {
    int k, n;          /* part k of n, 1 <= k <= n */
    const char *by[2]; /* the variables that say so, of a Slurm array and of ranks; NULL: nothing
                          that makes more parts */
};

/* ERR_USAGE for what is no part, and for an environment that contradicts itself. */
bool batch_shard_find(const char *said, struct batch_shard *out, struct err *e);

/* Lines are counted from 0. */
static inline bool batch_shard_owns(const struct batch_shard *shard, size_t line)
{
    return line % (size_t)shard->n == (size_t)shard->k - 1;
}

/* "answers.jsonl" -> "answers.2-of-4.jsonl"; for the only part a copy. Freed by the caller; NULL
 * without memory. */
char *batch_shard_path(const char *path, int k, int n, struct err *e);

#endif
