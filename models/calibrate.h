/*
 * Texts for calibration, which a model writes itself (Liu et al. 2023, "LLM-QAT", do without data
 * in this way): what its matrices meet in them is gathered as moments. The same texts, and the same
 * sums, for any number of threads.
 */
#ifndef MODELS_CALIBRATE_H
#define MODELS_CALIBRATE_H

#include <stdatomic.h>

#include "core/compute.h"
#include "models/model.h"
#include "models/moments.h"

struct calibrate;

/* The model and the compute are borrowed. stop: as in session_params. */
struct calibrate *calibrate_begin(const struct model *m, struct compute *c, const atomic_int *stop,
                                  struct err *e);

/* A part of the work: *done of *total tokens. False: ERR_INTERRUPTED, or ERR_RUNTIME where the
 * model computes no numbers. */
bool calibrate_step(struct calibrate *x, size_t *done, size_t *total, struct err *e);

/* When *done is *total: the factors, which live as long as the calibration. */
const struct moments *calibrate_finish(struct calibrate *x);

/* Accepts NULL. */
void calibrate_free(struct calibrate *x);

#endif
