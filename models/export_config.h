/* config.json of a quantised directory: that of the original with a quantization_config. */
#ifndef MODELS_EXPORT_CONFIG_H
#define MODELS_EXPORT_CONFIG_H

#include "core/err.h"
#include "models/quantize.h"

/* A module, for the lists of quantization_config. */
struct export_module {
    const char *name;     /* of its tensors, without what follows the last point */
    enum quant_type type; /* where it is quantised */
    size_t group;         /* columns that share a scale; 0: the whole row */
    bool is_quantised, is_head;
};

/* The text, malloc'ed; original is the text of the other one. untie: the head now has weights of
 * its own. */
bool export_config(struct bytes original, const struct export_module *modules, size_t n_modules,
                   enum model_weights weights, bool untie, struct bytes *out, struct err *e);

#endif
