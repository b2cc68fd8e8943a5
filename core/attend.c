#include "core/attend.h"

#include "core/kernels/kernels.h"

#include <math.h>

void attend_alibi_slopes(int n_heads, float bias_max, float *slopes)
{
    int n_regular = 1; /* the largest power of two within n_heads */
    while (n_regular * 2 <= n_heads)
        n_regular *= 2;
    for (int h = 0; h < n_heads; h++) {
        /* heads beyond the power of two take the odd steps of the next finer series */
        const double step = h < n_regular ? (double)(h + 1) / n_regular
                                          : (2.0 * (h - n_regular) + 1) / (2.0 * n_regular);
        slopes[h] = (float)exp2(-bias_max * step);
    }
}

/* What some models do to the scores of n positions, the last of which is the query's own. */
static void bend_scores(const struct attend *a, size_t head, float *scores, size_t n)
{
    if (a->softcap > 0)
        for (size_t j = 0; j < n; j++)
            scores[j] = a->softcap * tanhf(scores[j] / a->softcap);
    if (a->alibi_slopes)
        for (size_t j = 0; j < n; j++)
            scores[j] -= a->alibi_slopes[head] * (float)(n - 1 - j);
}

static void attend_one(const struct kernels *kernels, const struct attend *a, const struct kv *kv,
                       size_t head, int position, const float *q, float *scores, float *out)
{
    const int kv_head = (int)head / (a->n_heads / kv->n_kv_heads);
    const int first = a->window ? max_int(0, position - a->window + 1) : 0;
    const size_t n = (size_t)(position - first + 1);
    const size_t k_dim = (size_t)kv->k_dim;
    kernels->attend_scores(scores, q, kv_keys(kv, kv_head, first), k_dim, n, k_dim, a->scale);
    bend_scores(a, head, scores, n);
    if (a->sinks)
        scores[n] = a->sinks[head];
    kernels->softmax(scores, a->sinks ? n + 1 : n);
    kernels->attend_values(out, scores, kv_values(kv, kv_head, first), kv_value_stride(kv), n,
                           (size_t)kv->v_dim);
}

/* Heads are the outer loop: a worker keeps to few heads, whose keys stay in its cache, and the work
 * of early and late queries is spread evenly. */
void attend_rows(struct worker *w, const struct attend *a, const struct kv *kv, const float *q,
                 const int *positions, size_t n, float *scores, float *out)
{
    const size_t n_heads = (size_t)a->n_heads;
    size_t begin, end;
    worker_share(w, n_heads * n, 1, &begin, &end);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t head = unit / n, i = unit % n;
        const size_t at = i * n_heads + head;
        attend_one(w->kernels, a, kv, head, positions[i], q + at * (size_t)kv->k_dim, scores,
                   out + at * (size_t)kv->v_dim);
    }
}
