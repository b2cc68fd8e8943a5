/*
 * What a pass over the layers cannot do without: what it has to read and the arithmetic that it
 * has to do, counted from the tensors as they are bound. Measured speeds become fractions of a
 * machine's limits by it.
 */
#ifndef MODELS_WORK_H
#define MODELS_WORK_H

#include "models/model.h"

/* Which dots can do a matrix's arithmetic. */
enum work_form {
    WORK_F32,  /* stored F32 or F16; attention beside them, or over a cache in f32 */
    WORK_BF16, /* stored BF16 or FP8; other attention */
    WORK_INT8, /* integer codes, and MXFP4 */
    N_WORK_FORMS
};

struct work {
    double weight_bytes;             /* each matrix once; of tables only the rows looked up */
    double kv_positions;             /* whose keys and values are read; the mean of the layers */
    double operations[N_WORK_FORMS]; /* a multiplication and an addition are two */
};

/* n tokens at once behind `position` others, with logits for the last, which alone goes on in the
 * last layer once the keys and values of all are made. Experts count as if each token chose others,
 * as long as there are any. kv_f32: the cache keeps f32. */
void work_of_pass(const struct model *m, int position, int n, bool kv_f32, struct work *out);

#endif
