#include "core/kv.h"

#include <assert.h>
#include <string.h>

static size_t row(const struct kv *kv, int head, int position)
{
    assert(head >= 0 && head < kv->n_kv_heads && position >= 0 && position < kv->n_context);
    return (size_t)head * (size_t)kv->n_context + (size_t)position;
}

size_t kv_value_stride(const struct kv *kv)
{
    return (size_t)(kv->v == kv->k ? kv->k_dim : kv->v_dim);
}

void kv_put(const struct kv *kv, int head, int position, const float *k, const float *v)
{
    const size_t at = row(kv, head, position);
    memcpy(kv->k + at * (size_t)kv->k_dim, k, (size_t)kv->k_dim * sizeof *k);
    if (kv->v != kv->k)
        memcpy(kv->v + at * (size_t)kv->v_dim, v, (size_t)kv->v_dim * sizeof *v);
}

const float *kv_keys(const struct kv *kv, int head, int position)
{
    return kv->k + row(kv, head, position) * (size_t)kv->k_dim;
}

const float *kv_values(const struct kv *kv, int head, int position)
{
    return kv->v + row(kv, head, position) * kv_value_stride(kv);
}
