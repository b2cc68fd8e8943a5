/* Normalisation of activation rows. The weights are f32 and belong to the model. */
#ifndef CORE_NORM_H
#define CORE_NORM_H

#include "core/compute.h"

enum norm_type {
    NORM_RMS,  /* Zhang and Sennrich 2019 */
    NORM_LAYER /* Ba, Kiros and Hinton 2016 */
};

struct norm {
    enum norm_type type;
    float eps;
    int n;               /* values per row */
    const float *weight; /* [n] */
    const float *bias;   /* [n] or NULL */
};

/* One row: out[n] = norm(x[n]). In place is fine. */
void norm_row(const struct kernels *kernels, const struct norm *norm, const float *x, float *out);

/* out[i, :] = norm(x[i, :]) for the rows of this worker out of n_rows; both are [n_rows, n]. */
void norm_rows(struct worker *w, const struct norm *norm, const float *x, size_t n_rows,
               float *out);

#endif
