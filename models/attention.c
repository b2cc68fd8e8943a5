/*
 * Attention as llama and gpt2 have it: project to heads, give queries and keys their positions,
 * remember keys and values, mix, project back.
 */
#include "models/forward.h"

#include "core/attend.h"

static void project(struct worker *w, const struct linear *l, const struct pass *p, float *out)
{
    linear_apply(w, l, p->normed, (size_t)p->spec->hidden_size, (size_t)p->n, out, (size_t)l->n_out,
                 LINEAR_SET);
}

/* Normalises and rotates one query or key head of row i, where the model does so. */
static void prepare_head(const struct worker *w, const struct pass *p, const struct norm *norm,
                         size_t i, float *head)
{
    const struct model_spec *const spec = p->spec;
    const size_t half = (size_t)spec->rope.n_dims / 2;
    if (spec->qk_norm)
        norm_row(w->kernels, norm, head, head);
    if (spec->positions == POSITIONS_ROPE)
        rope_rotate(&spec->rope, w->kernels, head, 1, spec->head_dim, p->rope_cos + i * half,
                    p->rope_sin + i * half);
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
            prepare_head(w, p, &weights->query_norm, i, p->query + (i * n_heads + head) * head_dim);
        } else {
            const size_t at = (i * n_kv_heads + head - n_heads) * head_dim;
            prepare_head(w, p, &weights->key_norm, i, p->key + at);
            kv_put(&p->kv[layer], (int)(head - n_heads), p->positions[i], p->key + at,
                   p->value + at);
        }
    }
}

void attention_run(struct worker *w, const struct pass *p, int layer)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const struct layer_spec *const spec = &p->spec->layers[layer];
    const struct attend attend = {.n_heads = p->spec->num_attention_heads,
                                  .scale = spec->attention_scale,
                                  .window = spec->window};
    project(w, &weights->query, p, p->query);
    project(w, &weights->key, p, p->key);
    project(w, &weights->value, p, p->value);
    worker_sync(w);
    prepare_heads(w, p, layer);
    worker_sync(w);
    attend_rows(w, &attend, &p->kv[layer], p->query, p->positions, (size_t)p->n,
                p->scores + (size_t)w->index * (size_t)p->n_context, p->mixed);
    worker_sync(w);
    linear_apply(w, &weights->attention_out, p->mixed, (size_t)weights->attention_out.n_in,
                 (size_t)p->n, p->x, (size_t)p->spec->hidden_size, LINEAR_ADD);
    worker_sync(w);
}
