/*
 * Matrices that a checkpoint holds quantised, woven in memory when a model is opened with -w: they
 * keep their codes. How one is woven is core/quant_weave.c's business.
 */
#ifndef MODELS_WEAVE_H
#define MODELS_WEAVE_H

#include "core/arena.h"
#include "core/compute.h"
#include "core/err.h"
#include "core/quant.h"

struct model;

struct weave {
    const struct quant *from; /* the model's; others may say the same of these codes */
    struct quant to;
    size_t n_bytes; /* whole cache lines */
    unsigned char *memory;
};

/* Each tensor once, however many matrices lie in it. */
struct weave_plan {
    struct weave *weaves; /* [n], sorted by their codes' addresses */
    size_t n;
    size_t n_bytes;
};

/* From the arena. Those that the kernels have no use for, woven, are not in it. */
bool weave_plan_model(struct model *m, const struct kernels *kernels, struct arena *arena,
                      struct weave_plan *plan, struct err *e);

/* Shares out plan->n_bytes of memory, in cache lines. */
void weave_place(struct weave_plan *plan, unsigned char *at);

/* By all workers of a pool. */
void weave_run(struct compute *c, struct weave *weave);

/* Every role's matrix becomes what it has been woven to. By now all are quantised. */
void weave_replace(const struct weave_plan *plan, struct model *m);

#endif
