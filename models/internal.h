/* What only the files of this folder know of a model. */
#ifndef MODELS_INTERNAL_H
#define MODELS_INTERNAL_H

#include "core/arena.h"
#include "models/bind.h"
#include "models/family.h"
#include "models/generation_config.h"
#include "models/model.h"

struct model {
    struct arena arena; /* holds all that is pointed to below, the mapped tensors excepted */
    const struct family *family;
    bool is_nested;   /* the text model of a multimodal checkpoint */
    const char *nest; /* what stands in front of its tensors' names then, else "" */
    struct model_spec spec;
    struct quant_config quant;
    struct weights weights;
    struct generation_config generation;
    struct model_info info;
    struct model_fact *facts;
    int n_facts;
    struct checkpoint *checkpoint;
    struct quantizing *quantizing; /* quantize.c's; NULL where all is as stored */
};

#endif
