/* The resolved card of a model: its spec as lines of key and value, under Hugging Face's names. */
#ifndef MODELS_CARD_H
#define MODELS_CARD_H

#include "core/arena.h"
#include "models/bind.h"
#include "models/model.h"

/* The lines, from the arena; NULL where there is no memory. */
struct model_fact *card_write(const struct family *family, const struct model_spec *spec,
                              const struct bind_totals *totals, struct arena *arena, int *n);

#endif
