/*
 * What a spec says of a role: whether the model has it, its shape, its place among the weights. One
 * description for binding, quantising and counting work. Owns nothing.
 */
#ifndef MODELS_ROLES_H
#define MODELS_ROLES_H

#include "models/spec.h"
#include "models/weights.h"

enum role_kind {
    ROLE_MATRIX, /* struct linear */
    ROLE_NORM,   /* struct norm */
    ROLE_VECTOR  /* const float * */
};

enum role_kind roles_kind(enum role role);
bool roles_per_layer(enum role role);
bool roles_per_expert(enum role role);

/* layer counts only for roles of a layer. */
bool roles_wanted(const struct model_spec *spec, enum role role, int layer);
bool roles_has_bias(const struct model_spec *spec, enum role role);

/* A matrix as [n_out, n_in]; a norm as n_out rows of n_in weights (only heads with weights of their
 * own have more than one row); a vector as [1, n_in]. */
void roles_shape(const struct model_spec *spec, enum role role, int *n_out, int *n_in);

/* What a matrix multiplies its result with: constants of the spec, folded. */
float roles_scale(const struct model_spec *spec, enum role role);

/* Where it is kept: a struct linear, struct norm or const float *, by roles_kind. */
void *roles_target(struct weights *weights, enum role role, int layer, int expert);

#endif
