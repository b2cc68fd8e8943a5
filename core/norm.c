/*
 * Picks the kernel of a norm and deals rows out over the workers, each row to one of them. Owns
 * nothing; the sums, and why their order is fixed, are the kernels' business. Does not sync.
 */
#include "core/norm.h"

#include "core/kernels/kernels.h"

void norm_row(const struct kernels *kernels, const struct norm *norm, const float *x, float *out)
{
    const size_t n = (size_t)norm->n;
    if (norm->type == NORM_RMS)
        kernels->norm_rms(out, x, norm->weight, n, norm->eps);
    else
        kernels->norm_layer(out, x, norm->weight, norm->bias, n, norm->eps);
}

void norm_rows(struct worker *w, const struct norm *norm, const float *x, size_t n_rows, float *out)
{
    size_t begin, end;
    worker_share(w, n_rows, 1, &begin, &end);
    for (size_t i = begin; i < end; i++)
        norm_row(w->kernels, norm, x + i * (size_t)norm->n, out + i * (size_t)norm->n);
}
