/*
 * Ranks first: of Open MPI, else of PMI (MPICH, Intel MPI), else of a Slurm step. A Slurm array
 * multiplies them, as each of its tasks may have ranks of its own.
 *
 * SLURM_PROCID and SLURM_NTASKS are set in a batch script as well, where one process runs however
 * many tasks were asked for; only within a step, which has a SLURM_STEP_ID, do they count
 * processes.
 */
#include "cli/batch_shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole number from the environment; -1 where there is none. */
static long variable(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 ? value : -1;
}

/* Rank `index` of `count`, within each part so far. */
static bool split(struct batch_shard *shard, long index, long count, const char *whose,
                  struct err *e)
{
    if (index < 0 || count < 1 || index >= count || count > BATCH_SHARD_MOST / shard->n)
        return err_set(e, ERR_USAGE,
                       "%s number this process %ld of %ld, which is no part of a job; "
                       "--shard K/N says it",
                       whose, index, count);
    shard->k = (shard->k - 1) * (int)count + (int)index + 1;
    shard->n *= (int)count;
    if (count > 1)
        shard->by[shard->by[0] != NULL] = whose;
    return true;
}

/* Array tasks bear any numbers; those of "--array=1-9:2" can be counted, those of "1,5,7" not. */
static bool split_by_array(struct batch_shard *shard, struct err *e)
{
    const long id = variable("SLURM_ARRAY_TASK_ID"), count = variable("SLURM_ARRAY_TASK_COUNT");
    const long min = variable("SLURM_ARRAY_TASK_MIN"), max = variable("SLURM_ARRAY_TASK_MAX");
    const long said = variable("SLURM_ARRAY_TASK_STEP"), step = said > 0 ? said : 1;
    if (!getenv("SLURM_ARRAY_TASK_ID"))
        return true;
    if (id < 0 || count < 0) /* else every task would do the whole job */
        return err_set(e, ERR_USAGE,
                       "SLURM_ARRAY_TASK_ID and _COUNT do not say which part of a job this is; "
                       "--shard K/N says it");
    const long first = min >= 0 ? min : 0;
    const bool even = (id - first) % step == 0 && (max < 0 || (max - first) / step == count - 1);
    if (!even)
        return err_set(e, ERR_USAGE,
                       "the tasks of this Slurm array do not have the numbers of one range; "
                       "--shard K/N says which part this is");
    return split(shard, (id - first) / step, count, "SLURM_ARRAY_TASK_ID and _COUNT", e);
}

static bool any_set(const char *index_name, const char *count_name)
{
    return getenv(index_name) || getenv(count_name);
}

/* One variable without the other, or one that is no number, still tells of a launcher: without
 * this, every rank would do the whole job. */
static bool split_by_pair(struct batch_shard *shard, const char *index_name, const char *count_name,
                          const char *whose, struct err *e)
{
    const long index = variable(index_name), count = variable(count_name);
    if (index < 0 || count < 0)
        return err_set(e, ERR_USAGE,
                       "%s and %s do not say which part of a job this is; --shard K/N says it",
                       index_name, count_name);
    return split(shard, index, count, whose, e);
}

static bool split_by_rank(struct batch_shard *shard, struct err *e)
{
    static const char ompi_rank[] = "OMPI_COMM_WORLD_RANK", ompi_size[] = "OMPI_COMM_WORLD_SIZE";
    static const char step_size[] = "SLURM_STEP_NUM_TASKS", job_size[] = "SLURM_NTASKS";
    if (any_set(ompi_rank, ompi_size))
        return split_by_pair(shard, ompi_rank, ompi_size, "the variables of Open MPI", e);
    if (any_set("PMI_RANK", "PMI_SIZE"))
        return split_by_pair(shard, "PMI_RANK", "PMI_SIZE", "PMI_RANK and PMI_SIZE", e);
    const char *size = getenv(step_size) ? step_size : job_size;
    if (!getenv("SLURM_STEP_ID") || !any_set("SLURM_PROCID", size))
        return true;
    return split_by_pair(shard, "SLURM_PROCID", size, "SLURM_PROCID and SLURM_NTASKS", e);
}

bool batch_shard_find(const char *said, struct batch_shard *out, struct err *e)
{
    *out = (struct batch_shard){.k = 1, .n = 1};
    if (!said)
        return split_by_array(out, e) && split_by_rank(out, e);
    char *slash, *end = NULL;
    errno = 0;
    const long k = strtol(said, &slash, 10);
    const long n = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;
    const bool digits = said[0] >= '1' && said[0] <= '9' && *slash == '/' && slash[1] >= '1' &&
                        slash[1] <= '9' && *end == '\0' && errno == 0;
    if (!digits || k > n || n > BATCH_SHARD_MOST)
        return err_set(e, ERR_USAGE, "--shard: \"%s\" is not K/N with 1 <= K <= N, such as 2/4",
                       said);
    out->k = (int)k;
    out->n = (int)n;
    return true;
}

char *batch_shard_path(const char *path, int k, int n, struct err *e)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name)
        dot = name + strlen(name);
    const size_t size = strlen(path) + sizeof ".1000000-of-1000000";
    char *out = malloc(size);
    if (!out)
        err_no_memory(e);
    else if (n == 1)
        snprintf(out, size, "%s", path);
    else
        snprintf(out, size, "%.*s.%d-of-%d%s", (int)(dot - path), path, k, n, dot);
    return out;
}
