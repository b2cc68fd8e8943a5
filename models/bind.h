/*
 * Names -> tensors: finds for every role that the spec asks for the tensor that the family's table
 * names, checks its shape and dtype, and sees to it that no tensor of the checkpoint is left over.
 */
#ifndef MODELS_BIND_H
#define MODELS_BIND_H

#include "core/arena.h"
#include "core/checkpoint.h"
#include "models/family.h"
#include "models/quant_config.h"

/* What was bound, for the card. */
struct bind_totals {
    size_t n_parameters; /* tied tensors once; codes count as what they stand for, scales not */
    size_t n_bytes;
};

/* nest: what stands in front of every name of the text model in a multimodal checkpoint, else "".
 * Fills in *weights, whose matrices view into the checkpoint; small vectors and the table of layers
 * come from the arena. A head that is stored beside another embedding unties the spec's. ERR_LOAD
 * with the tensor's name, and both shapes where they disagree. */
bool bind_weights(const struct family *family, const char *nest, struct model_spec *spec,
                  const struct quant_config *quant, const struct checkpoint *checkpoint,
                  struct arena *arena, struct weights *weights, struct bind_totals *totals,
                  struct err *e);

/* What stands in front of the head's name there: transformers 5 has it outside of "model". */
const char *bind_head_nest(const char *nest);

#endif
