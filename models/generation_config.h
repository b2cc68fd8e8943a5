/* generation_config.json: what ends a text, and the sampling that the model's makers explicitly ask
 * for. */
#ifndef MODELS_GENERATION_CONFIG_H
#define MODELS_GENERATION_CONFIG_H

#include "core/arena.h"
#include "core/json.h"
#include "models/model.h"

struct generation_config {
    struct model_defaults defaults;
    int32_t *eos; /* from the arena */
    int n_eos;
    int32_t bos; /* what texts begin with; -1 where no file says */
};

/* generation may be NULL (no such file); its eos_token_id comes before config's. ERR_LOAD for
 * values of the wrong type or range. */
bool generation_config_read(const struct json *generation, const struct json *config,
                            struct arena *arena, struct generation_config *out, struct err *e);

#endif
