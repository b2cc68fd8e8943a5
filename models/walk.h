/*
 * All matrices of a model whose form -w may change, role by role, layer by layer: all but tables
 * whose rows are looked up, routers and switches.
 */
#ifndef MODELS_WALK_H
#define MODELS_WALK_H

#include "models/role.h"

struct linear;
struct model;

/* All zero but for the model at the beginning. */
struct walk {
    struct model *m;
    enum role role; /* the next */
    int layer, expert;
    enum role found_role; /* the last that was found */
    int found_layer;
};

/* NULL behind the last. */
struct linear *walk_next(struct walk *walk);

#endif
