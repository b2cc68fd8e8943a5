/* config.json of a quantised directory: that of the original with a quantization_config. */
#ifndef MODELS_EXPORT_CONFIG_H
#define MODELS_EXPORT_CONFIG_H

#include "core/err.h"
#include "models/family.h"
#include "models/quantize.h"

/* A module, for the lists of quantization_config. */
struct export_module {
    const char *name;     /* of its tensors, without what follows the last point */
    enum quant_type type; /* where it is quantised */
    size_t group;         /* columns that share a scale; 0: the whole row */
    bool is_quantised, is_head;
};

struct export_lists {
    const struct export_module *modules; /* [n] */
    size_t n;
    enum model_weights weights;
    const struct family *family;
    const char *nest; /* in front of the names of a multimodal model's text model, else "" */
    bool untie;       /* the head has weights of its own */
};

/* The text, of *size bytes and malloc'ed (the caller frees); original is that of the other one.
 * NULL with an error. */
char *export_config(struct bytes original, const struct export_lists *lists, size_t *size,
                    struct err *e);

#endif
