/*
 * quantization_config: how a checkpoint stores the matrices that it stores quantised, and under
 * which names. Which ones these are is seen from the tensors themselves, not from the lists of
 * exceptions that tools write.
 */
#ifndef MODELS_QUANT_CONFIG_H
#define MODELS_QUANT_CONFIG_H

#include "core/quant.h"
#include "models/config.h"

/* What stands behind a matrix's stem in the names of its parts; NULL: the format has no such part.
 */
struct quant_suffixes {
    const char *codes;
    const char *scales[2]; /* one or the other */
    const char *zeros, *g_idx, *shape;
};

struct quant_config {
    bool is_set; /* false: everything is stored as it is */
    bool varies; /* bits and groups differ from matrix to matrix: quant_config_of_matrix tells */
    struct quant_format format;
    struct quant_suffixes suffixes;
};

/* Reads the value of the key, NULL where it is absent; a method, format or layout that is not
 * supported is a failure that names it. */
void quant_config_read(struct config *c, const struct json *j, struct quant_config *q);

/* The format of a matrix [.., n_in] with these tensors: q->format or, where that varies, what their
 * shapes come to; what they cannot be is left for quant_init to find. */
struct quant_format quant_config_of_matrix(const struct quant_config *q,
                                           const struct quant_parts *parts, int n_in);

/* True for a tensor of activations' scales, which computing in f32 has no use for. */
bool quant_config_ignores(const char *name);

#endif
