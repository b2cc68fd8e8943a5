/*
 * Activation functions by the names that config.json uses, applied in place to f32 values. Owns
 * nothing; weights that a function has (xIELU's) are the model's.
 */
#ifndef CORE_ACT_H
#define CORE_ACT_H

#include "core/base.h"

struct kernels;

enum act {
    ACT_SILU,      /* "silu", "swish" */
    ACT_GELU,      /* "gelu": the exact form with erf */
    ACT_GELU_TANH, /* "gelu_new", "gelu_pytorch_tanh", "gelu_fast" */
    ACT_RELU,      /* "relu" */
    ACT_RELU2,     /* "relu2": relu(x)^2 */
    ACT_XIELU      /* "xielu": trained, see act_xielu */
};

/* The function of that name; false where there is none. */
bool act_parse(const char *name, enum act *out);

/* Hugging Face's name of it. */
const char *act_name(enum act act);

/* The two trained numbers of xIELU (Huang and Schlag 2025), as they are applied: after softplus. */
struct act_xielu {
    float alpha_p, alpha_n;
};

/* From the numbers as they are stored. */
struct act_xielu act_xielu_from(float stored_p, float stored_n);

/* In place over x[n]; xielu only for ACT_XIELU. */
void act_apply(const struct kernels *kernels, enum act act, const struct act_xielu *xielu, float *x,
               size_t n);

#endif
