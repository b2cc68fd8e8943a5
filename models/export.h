/*
 * Writes a model whose matrices are quantised as a new checkpoint directory in the layout of
 * compressed-tensors, which tgen maps and other programs open. The codes are those that
 * model_quantize_begin would give a model in memory, where another program could read them:
 * matrices in one tensor of all experts stay as they are stored, and a model of transposed ones
 * (GPT-2) is refused.
 *
 * With what a calibration has gathered (calibrate.h), matrices in 4 bits lose about half as much.
 *
 * The directory appears under its name when it is whole: all is written beside it and renamed.
 */
#ifndef MODELS_EXPORT_H
#define MODELS_EXPORT_H

#include "models/model.h"
#include "models/moments.h"

struct exporter;

/* out must not be there, or be an empty directory. ERR_RUNTIME for what cannot be written, ERR_LOAD
 * for a model that has no such form. The model must be as stored, and outlive the export. */
struct exporter *export_begin(struct model *m, enum model_weights weights, const char *out,
                              struct err *e);

/* Before the first step: matrices are rounded by the factors that there are for them, which must
 * outlive the export. */
void export_calibrate(struct exporter *x, const struct moments *moments);

/* Without writing: ERR_LOAD where a matrix holds NaN or infinity, which a calibration meets as a
 * model that computes no numbers. */
bool export_check(struct exporter *x, struct compute *c, struct err *e);

/* A part of the work: *done of *total bytes to write. False where it failed, also for what
 * export_check finds. */
bool export_step(struct exporter *x, struct compute *c, size_t *done, size_t *total, struct err *e);

/* When *done is *total: the other files, and the name. */
bool export_finish(struct exporter *x, struct err *e);

struct export_result {
    size_t n_matrices, n_weights, n_bits; /* quantised: matrices, weights in them, all their bits */
    size_t n_others, other_bytes;         /* matrices that stay though -w at load takes them */
};
const struct export_result *export_result(const struct exporter *x);

/* Takes away what is unfinished. Accepts NULL. */
void export_free(struct exporter *x);

#endif
