/*
 * Attention: project to heads, give queries and keys their positions, remember keys and values,
 * mix, project back.
 */
#include "models/forward.h"

#include "core/attend.h"
#include "core/kernels/kernels.h"

#include <math.h>

/* Each worker clamps the outputs that it has just computed: it finds them in the same share. */
static void clip(const struct worker *w, const struct pass *p, float *rows, int n_out)
{
    const float limit = p->spec->clip_qkv;
    size_t begin, end;
    linear_share(w, n_out, &begin, &end);
    for (size_t i = 0; i < (size_t)p->n; i++)
        for (size_t r = begin; r < end; r++)
            rows[i * (size_t)n_out + r] = fminf(fmaxf(rows[i * (size_t)n_out + r], -limit), limit);
}

static void project(struct worker *w, const struct linear *l, const struct pass *p,
                    struct operand *in, float *out)
{
    linear_apply(w, l, in, out, (size_t)l->n_out, LINEAR_SET);
    if (p->spec->clip_qkv > 0)
        clip(w, p, out, l->n_out);
}

static void normalise_head(const struct worker *w, const struct pass *p, const struct norm *norm,
                           size_t head, float *x)
{
    struct norm own = *norm;
    if (p->spec->qk_norm == QK_NORM_OWN_HEAD)
        own.weight += head * (size_t)norm->n;
    norm_row(w->kernels, &own, x, x);
}

/* Normalises and rotates query or key head `head` of row i, where the model does so. */
static void prepare_head(const struct worker *w, const struct pass *p, int layer,
                         const struct norm *norm, size_t i, size_t head, float *x)
{
    const struct model_spec *const spec = p->spec;
    const int r = spec->layers[layer].rope;
    const bool by_head = spec->qk_norm == QK_NORM_HEAD || spec->qk_norm == QK_NORM_OWN_HEAD;
    if (by_head && !spec->qk_norm_after_rope)
        normalise_head(w, p, norm, head, x);
    if (spec->positions == POSITIONS_ROPE && r != SPEC_NO_ROPE) {
        const size_t half = (size_t)spec->ropes[r].n_dims / 2;
        rope_rotate(&spec->ropes[r], w->kernels, x, p->rope_cos[r] + i * half,
                    p->rope_sin[r] + i * half);
    }
    if (by_head && spec->qk_norm_after_rope)
        normalise_head(w, p, norm, head, x);
}

/* Queries of far positions are made larger in some models. */
static void grow_query(const struct worker *w, const struct pass *p, int position, float *x)
{
    const struct model_spec *const spec = p->spec;
    const int steps = position / max_int(1, spec->ropes[0].original_max_position_embeddings);
    const float growth = (float)(1 + spec->query_growth * log(1 + steps));
    if (growth != 1)
        w->kernels->scale(x, x, growth, (size_t)spec->head_dim);
}

/* Every head of every row: queries are made ready, keys too, and keys and values go into the cache.
 */
static void prepare_heads(struct worker *w, const struct pass *p, int layer)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const size_t n_heads = (size_t)p->spec->num_attention_heads;
    const size_t n_kv_heads = (size_t)p->spec->num_key_value_heads;
    const size_t head_dim = (size_t)p->spec->head_dim;
    size_t begin, end;
    worker_share(w, (size_t)p->n * (n_heads + n_kv_heads), 1, &begin, &end);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t i = unit / (n_heads + n_kv_heads), head = unit % (n_heads + n_kv_heads);
        if (head < n_heads) {
            float *const query = p->query + (i * n_heads + head) * head_dim;
            prepare_head(w, p, layer, &weights->query_norm, i, head, query);
            grow_query(w, p, p->positions[i], query);
        } else {
            const size_t kv_head = head - n_heads, at = (i * n_kv_heads + kv_head) * head_dim;
            prepare_head(w, p, layer, &weights->key_norm, i, kv_head, p->key + at);
            kv_put(w->kernels, &p->kv[layer], p->sequences[i], (int)kv_head, p->positions[i],
                   p->key + at, p->value + at);
        }
    }
}

void attention_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
                   enum linear_store store)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const struct layer_spec *const spec = &p->spec->layers[layer];
    const struct attend attend = {.n_heads = p->spec->num_attention_heads,
                                  .scale = spec->attention_scale,
                                  .window = spec->window,
                                  .softcap = p->spec->attn_logit_softcapping,
                                  .alibi_slopes = p->weights->alibi_slopes,
                                  .sinks = weights->sinks};
    const size_t n = (size_t)p->n;
    struct operand rows = pass_rows(p, in, n, (size_t)p->spec->hidden_size);
    pass_show(w, p, layer, MOMENTS_ATTENTION, in, n);
    project(w, &weights->query, p, &rows, p->query);
    project(w, &weights->key, p, &rows, p->key);
    project(w, &weights->value, p, &rows, p->value);
    worker_sync(w);
    if (p->spec->qk_norm == QK_NORM_FULL) {
        norm_rows(w, &weights->query_norm, p->query, n, p->query);
        norm_rows(w, &weights->key_norm, p->key, n, p->key);
        worker_sync(w);
    }
    prepare_heads(w, p, layer);
    worker_sync(w);
    attend_rows(w, &attend, &p->kv[layer], p->runs, p->n_runs, p->query,
                p->attend_scratch + (size_t)w->index * p->n_attend_scratch, p->mixed);
    worker_sync(w);
    pass_show(w, p, layer, MOMENTS_MIXED, p->mixed, n);
    rows = pass_rows(p, p->mixed, n, (size_t)weights->attention_out.n_in);
    linear_apply(w, &weights->attention_out, &rows, out, (size_t)p->spec->hidden_size, store);
    worker_sync(w);
}
