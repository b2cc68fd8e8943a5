/*
 * Which matrices of a model -w quantises, and in whose place the result goes. A plan lists them,
 * each tensor of the checkpoint once however many roles share it; the same plan serves a model in
 * memory (model_quantize_begin) and a directory that is written (export.c). How a matrix becomes
 * codes is core/quantize.c's business.
 *
 * All matrices of a walk (walk.h) are quantised; what is stored quantised already is not in the
 * plan (weave.h). A tied head is: it gets codes of its own, while rows are still looked up in the
 * table.
 */
#ifndef MODELS_QUANTIZE_H
#define MODELS_QUANTIZE_H

#include "core/arena.h"
#include "core/compute.h"
#include "core/quantize.h"
#include "models/model.h"
#include "models/role.h"

struct quantize_matrix {
    enum role role; /* the first of those whose outputs it holds */
    int layer;      /* where that lies */
    const struct tensor *tensor;
    struct quantize_source from;
    struct quantized to; /* without data, until somebody provides it */
    struct quant quant;
};

struct quantize_plan {
    struct quantize_matrix *matrices; /* [n], in the order of the roles, layer by layer */
    size_t n;
    struct quantize_matrix **of_tensor; /* [n_tensors], NULL where a tensor stays as it is */
    const struct tensor **by_address;   /* [n_tensors], sorted */
    size_t n_bytes;  /* of all codes and scales, each on a cache line of its own */
    size_t n_stored; /* of the tensors that they stand for */
};

/* From the arena. weights: not MODEL_STORED. */
bool quantize_plan_model(struct model *m, enum model_weights weights, struct arena *arena,
                         struct quantize_plan *plan, struct err *e);

/* Sets the data of the two tensors of a matrix, which lie one behind the other. Returns their end,
 * rounded up to a cache line. */
unsigned char *quantize_place(struct quantize_matrix *matrix, unsigned char *at);

/* Floats to work in for each worker of a pool. */
size_t quantize_plan_scratch(const struct quantize_plan *plan);

/* All rows of a matrix, by all workers. scratch: [n_threads * quantize_plan_scratch]. ERR_LOAD
 * where it holds NaN or infinity. */
bool quantize_run(struct compute *c, const struct quantize_matrix *matrix, float *scratch,
                  size_t n_scratch, struct err *e);

/* What model_quantize_begin has taken. Accepts NULL. */
struct quantizing;
void quantize_free(struct quantizing *q);

#endif
