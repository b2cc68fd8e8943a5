/*
 * How many rows a pass has, and those of a large one dealt out over the workers, neighbours
 * together, so that all of them need the same time. Neither changes a bit of what rows become.
 */
#ifndef MODELS_PARTS_H
#define MODELS_PARTS_H

#include "models/pass.h"

struct kernels;

/* What rows cost in a layer, the mean of all layers, in the time that reading a byte of the cache
 * takes. */
struct parts_price {
    double row;  /* products */
    double look; /* attention, for every position that a row sees */
    double read; /* the same, once for a run of rows */
};

/* rounds: as in pass_size. kv: [num_hidden_layers] */
struct parts_price parts_price_of(const struct kernels *kernels, const struct model_spec *spec,
                                  const struct weights *weights, const struct kv *kv, bool rounds);

/* For so many workers: the best number of rows of a prompt to go through the layers at once, and
 * the fewest rows for each worker in a pass that is dealt out. */
struct parts_rows {
    int pass, each;
};
struct parts_rows parts_rows_of(const struct model_spec *spec, const struct weights *weights,
                                int n_threads);

/* Makes the parts of a large pass, one for each worker. parts [n_threads] and runs, with room for
 * [p->n], must outlive the pass. */
void parts_deal(struct pass *p, const struct parts_price *price, struct pass *parts,
                struct kv_run *runs);

#endif
