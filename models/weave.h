/*
 * Matrices that a checkpoint holds quantised, woven (interleaved) in memory when a model is opened
 * with -w: they keep their codes. How one is woven is core/quant_weave.c's business.
 */
#ifndef MODELS_WEAVE_H
#define MODELS_WEAVE_H

#include "core/arena.h"
#include "core/compute.h"
#include "core/err.h"
#include "core/quant.h"

struct model;

struct weave {
    const struct quant *from; /* the model's; other matrices may lie in the same codes */
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

/* From the arena. Matrices that would gain nothing by weaving are left out. */
bool weave_plan_model(struct model *m, const struct kernels *kernels, struct arena *arena,
                      struct weave_plan *plan, struct err *e);

/* Shares out plan->n_bytes of memory, in cache lines. */
void weave_place(struct weave_plan *plan, unsigned char *at);

/* Weaves one tensor, by all workers of the pool. */
void weave_run(struct compute *c, struct weave *weave);

/* Points every role's matrix at its woven form. All matrices must be quantised by now. */
void weave_replace(const struct weave_plan *plan, struct model *m);

#endif
