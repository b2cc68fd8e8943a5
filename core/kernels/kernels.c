/*
 * The ladder: which levels exist, which of them this machine can run, and the finished table of
 * each. A level's table is the one below with its own rung laid over it. The tables are built once,
 * for every level the machine has, so that several can be used in one process (tests do).
 */
#include <pthread.h>
#include <string.h>

#include "core/kernels/rungs.h"

static bool always(void)
{
    return true;
}

static const struct rung {
    const char *level;
    bool (*runs_here)(void);
    void (*fill)(struct kernels *k);
} rungs[] = {
    {"scalar", always, kernels_scalar_fill},
};

enum { N_RUNGS = sizeof rungs / sizeof *rungs };

const char *const kernels_levels[] = {"scalar", "avx2", "avx512", NULL};

static struct kernels tables[N_RUNGS];
static size_t n_tables; /* those from the lowest to the best that this machine has */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void build_tables(void)
{
    while (n_tables < N_RUNGS && rungs[n_tables].runs_here()) {
        struct kernels *k = &tables[n_tables];
        if (n_tables > 0)
            *k = k[-1];
        rungs[n_tables].fill(k);
        k->level = rungs[n_tables].level;
        n_tables++;
    }
}

const struct kernels *kernels_best(void)
{
    pthread_once(&tables_once, build_tables);
    return &tables[n_tables - 1];
}

const struct kernels *kernels_for(const char *level)
{
    pthread_once(&tables_once, build_tables);
    for (size_t i = 0; i < n_tables; i++)
        if (strcmp(tables[i].level, level) == 0)
            return &tables[i];
    return NULL;
}
