#include "core/kv.h"

#include <assert.h>
#include <string.h>

static size_t row(const struct kv *kv, int head, int position)
{
    assert(head >= 0 && head < kv->n_kv_heads);
    assert(position >= kv->first && position - kv->first < kv->n_slots);
    return (size_t)head * (size_t)kv->n_slots + (size_t)(position - kv->first);
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

/* Rows [skip, skip + n) of every head go to its front. */
static void move_rows(const struct kv *kv, float *rows, size_t dim, size_t skip, size_t n)
{
    for (size_t head = 0; head < (size_t)kv->n_kv_heads; head++) {
        float *const front = rows + head * (size_t)kv->n_slots * dim;
        memmove(front, front + skip * dim, n * dim * sizeof *front);
    }
}

void kv_make_room(struct kv *kv, int begin, int end, int n_kept)
{
    if (end - kv->first <= kv->n_slots)
        return;
    const int first = max_int(kv->first, begin - n_kept);
    const size_t skip = (size_t)(first - kv->first), n = (size_t)(begin - first);
    assert(end - first <= kv->n_slots);
    move_rows(kv, kv->k, (size_t)kv->k_dim, skip, n);
    if (kv->v != kv->k)
        move_rows(kv, kv->v, (size_t)kv->v_dim, skip, n);
    kv->first = first;
}
