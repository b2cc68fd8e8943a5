#include "core/kv.h"

#include <assert.h>
#include <string.h>

static size_t offset(const struct kv *kv, int head, int position)
{
    assert(head >= 0 && head < kv->n_kv_heads && position >= 0 && position < kv->n_context);
    return ((size_t)head * (size_t)kv->n_context + (size_t)position) * (size_t)kv->head_dim;
}

bool kv_floats(int n_kv_heads, int n_context, int head_dim, size_t *out)
{
    return checked_mul((size_t)n_kv_heads, (size_t)n_context, out) &&
           checked_mul(*out, (size_t)head_dim, out) && checked_mul(*out, 2, out);
}

void kv_put(const struct kv *kv, int head, int position, const float *k, const float *v)
{
    const size_t at = offset(kv, head, position);
    memcpy(kv->k + at, k, (size_t)kv->head_dim * sizeof *k);
    memcpy(kv->v + at, v, (size_t)kv->head_dim * sizeof *v);
}

const float *kv_keys(const struct kv *kv, int head, int position)
{
    return kv->k + offset(kv, head, position);
}

const float *kv_values(const struct kv *kv, int head, int position)
{
    return kv->v + offset(kv, head, position);
}
