/* Names: transformers/activations.py, ACT2FN. The two that differ only in rounding share a
 * function. */
#include "core/act.h"

#include "core/kernels/kernels.h"

#include <string.h>

static const struct {
    const char *name;
    enum act act;
} act_names[] = {{"silu", ACT_SILU},           {"swish", ACT_SILU},
                 {"gelu", ACT_GELU},           {"gelu_new", ACT_GELU_TANH},
                 {"relu", ACT_RELU},           {"gelu_pytorch_tanh", ACT_GELU_TANH},
                 {"gelu_fast", ACT_GELU_TANH}, {"relu2", ACT_RELU2}};

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

void act_apply(const struct kernels *kernels, enum act act, float *x, size_t n)
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
    }
}
