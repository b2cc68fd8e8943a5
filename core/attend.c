#include "core/attend.h"

#include "core/kernels/kernels.h"

static void attend_one(const struct kernels *kernels, const struct attend *a, const struct kv *kv,
                       int kv_head, int position, const float *q, float *scores, float *out)
{
    const int first = a->window ? max_int(0, position - a->window + 1) : 0;
    const size_t n = (size_t)(position - first + 1);
    const size_t head_dim = (size_t)kv->head_dim;
    kernels->attend_scores(scores, q, kv_keys(kv, kv_head, first), head_dim, n, head_dim, a->scale);
    kernels->softmax(scores, n);
    kernels->attend_values(out, scores, kv_values(kv, kv_head, first), head_dim, n, head_dim);
}

/* Heads are the outer loop: a worker keeps to few heads, whose keys stay in its cache, and the work
 * of early and late queries is spread evenly. */
void attend_rows(struct worker *w, const struct attend *a, const struct kv *kv, const float *q,
                 const int *positions, size_t n, float *scores, float *out)
{
    const size_t n_heads = (size_t)a->n_heads;
    const size_t group = n_heads / (size_t)kv->n_kv_heads;
    size_t begin, end;
    worker_share(w, n_heads * n, 1, &begin, &end);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t head = unit / n, i = unit % n;
        const size_t at = (i * n_heads + head) * (size_t)kv->head_dim;
        attend_one(w->kernels, a, kv, (int)(head / group), positions[i], q + at, scores, out + at);
    }
}
