/*
 * Maps names to functions (transformers/activations.py, ACT2FN; those that differ only in rounding
 * share one) and functions to kernels. xIELU, which a single family uses, has no kernel and is
 * computed here. Owns nothing.
 */
#include "core/act.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    enum act act;
} act_names[] = {
    {"silu", ACT_SILU},           {"swish", ACT_SILU},  {"gelu", ACT_GELU},
    {"gelu_new", ACT_GELU_TANH},  {"relu", ACT_RELU},   {"gelu_pytorch_tanh", ACT_GELU_TANH},
    {"gelu_fast", ACT_GELU_TANH}, {"relu2", ACT_RELU2}, {"xielu", ACT_XIELU}};

bool act_parse(const char *name, enum act *out)
{
    for (size_t i = 0; i < ARRAY_LEN(act_names); i++) {
        if (strcmp(act_names[i].name, name) == 0) {
            *out = act_names[i].act;
            return true;
        }
    }
    return false;
}

const char *act_name(enum act act)
{
    for (size_t i = 0; i < ARRAY_LEN(act_names); i++)
        if (act_names[i].act == act)
            return act_names[i].name;
    return "?";
}

static const float XIELU_BETA = 0.5f,
                   XIELU_EPS = -1e-6f; /* transformers/activations.py, XIELUActivation */

struct act_xielu act_xielu_from(float stored_p, float stored_n)
{
    return (struct act_xielu){.alpha_p = (float)log1p(exp((double)stored_p)),
                              .alpha_n = XIELU_BETA + (float)log1p(exp((double)stored_n))};
}

static void apply_xielu(const struct act_xielu *a, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float v = x[i];
        const float bent =
            v > 0 ? a->alpha_p * v * v : (expm1f(fminf(v, XIELU_EPS)) - v) * a->alpha_n;
        x[i] = bent + XIELU_BETA * v;
    }
}

void act_apply(const struct kernels *kernels, enum act act, const struct act_xielu *xielu, float *x,
               size_t n)
{
    switch (act) {
    case ACT_SILU:
        kernels->silu(x, n);
        break;
    case ACT_GELU:
        kernels->gelu_erf(x, n);
        break;
    case ACT_GELU_TANH:
        kernels->gelu_tanh(x, n);
        break;
    case ACT_RELU:
        kernels->relu(x, n);
        break;
    case ACT_RELU2:
        kernels->relu(x, n);
        kernels->mul(x, x, n);
        break;
    case ACT_XIELU:
        assert(xielu);
        apply_xielu(xielu, x, n);
        break;
    }
}
