/*
 * Attention: project to heads, give queries and keys their positions, store keys and values,
 * mix, project back.
 */
#include "models/forward.h"

#include "core/attend.h"
#include "core/kernels/kernels.h"

#include <math.h>

/* NaN stays NaN, as in torch.clamp: fminf and fmaxf would hide broken weights. */
static float clamp(float x, float limit)
{
    return x < -limit ? -limit : x > limit ? limit : x;
}

/* in -> queries, if they are asked for, and keys and values, unless they are in the cache. */
static void project(struct worker *w, const struct pass *p, int layer, struct operand *in,
                    bool queries)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const struct linear *const all[] = {&weights->query, &weights->key, &weights->value};
    float *const y[] = {p->query, p->key, p->value};
    const int first = queries ? 0 : 1, end = p->kv_stored ? 1 : 3;
    linear_apply_all(w, all + first, end - first, in, y + first);
}

/* Clamps a head, if the model does so: after a norm of all heads (olmoe), before it rotates. */
static void clip(const struct model_spec *spec, float *x)
{
    for (int i = 0; spec->clip_qkv > 0 && i < spec->head_dim; i++)
        x[i] = clamp(x[i], spec->clip_qkv);
}

static void normalise_head(const struct worker *w, const struct pass *p, const struct norm *norm,
                           size_t head, float *x)
{
    struct norm own = *norm;
    if (p->spec->qk_norm == QK_NORM_OWN_HEAD)
        own.weight += head * (size_t)norm->n;
    norm_row(w->kernels, &own, x, x);
}

/* Clamps, normalises and rotates query or key head `head` of row i, where the model does so. */
static void prepare_head(const struct worker *w, const struct pass *p, int layer,
                         const struct norm *norm, size_t i, size_t head, float *x)
{
    const struct model_spec *const spec = p->spec;
    const int r = spec->layers[layer].rope;
    const bool by_head = spec->qk_norm == QK_NORM_HEAD || spec->qk_norm == QK_NORM_OWN_HEAD;
    clip(spec, x);
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
static void scale_query(const struct worker *w, const struct pass *p, int position, float *x)
{
    const struct model_spec *const spec = p->spec;
    if (spec->llama_4_scaling_beta == 0)
        return;
    const int steps = position / max_int(1, spec->ropes[0].original_max_position_embeddings);
    const float factor = (float)(1 + spec->llama_4_scaling_beta * log(1 + steps));
    if (factor != 1)
        w->kernels->scale(x, x, factor, (size_t)spec->head_dim);
}

static void prepare_query(const struct worker *w, const struct pass *p, int layer, size_t i,
                          size_t head)
{
    const size_t n_heads = (size_t)p->spec->num_attention_heads;
    float *const query = p->query + (i * n_heads + head) * (size_t)p->spec->head_dim;
    prepare_head(w, p, layer, &p->weights->layers[layer].query_norm, i, head, query);
    scale_query(w, p, p->positions[i], query);
}

/* Prepares queries of all rows, for this worker's heads, or for its share of all. */
static void prepare_queries(const struct worker *w, const struct pass *p, int layer, bool own_heads)
{
    const size_t n = (size_t)p->n, n_each = (size_t)p->spec->num_attention_heads;
    const size_t n_turns = own_heads ? n : 1;
    size_t begin, end;
    worker_share(w, own_heads ? n_each : n * n_each, 1, &begin, &end);
    for (size_t turn = 0; turn < n_turns; turn++)
        for (size_t unit = turn * n_each + begin; unit < turn * n_each + end; unit++)
            prepare_query(w, p, layer, unit / n_each, unit % n_each);
}

/* Brings a run's keys and values of a head into the cache. */
static void store_run(const struct worker *w, const struct pass *p, int layer, int head,
                      const struct kv_run *run)
{
    const size_t head_dim = (size_t)p->spec->head_dim;
    const size_t stride = (size_t)p->spec->num_key_value_heads * head_dim;
    float *const key = p->key + (size_t)head * head_dim;
    float *const value = p->value + (size_t)head * head_dim;
    const struct norm *const norm = &p->weights->layers[layer].key_norm;
    for (size_t i = (size_t)run->row; i < (size_t)(run->row + run->n); i++) {
        prepare_head(w, p, layer, norm, i, (size_t)head, key + i * stride);
        clip(p->spec, value + i * stride);
    }
    kv_put(w->kernels, &p->kv[layer], run, head, key, value, stride);
}

/* The same for all rows, for this worker's heads or its share of all, head by head: positions that
 * stand side by side are stored at once. */
static void store_kv(const struct worker *w, const struct pass *p, int layer, bool own_heads)
{
    const size_t n = (size_t)p->n, n_heads = (size_t)p->spec->num_key_value_heads;
    size_t begin, end;
    worker_share(w, n_heads * n, own_heads ? n : 1, &begin, &end);
    for (size_t unit = begin, next; unit < end; unit = next) {
        const size_t head = unit / n;
        next = min_size((head + 1) * n, end);
        for (int r = 0; r < p->n_runs; r++) {
            const struct kv_run run =
                kv_run_within(&p->runs[r], (int)(unit - head * n), (int)(next - head * n));
            store_run(w, p, layer, (int)head, &run);
        }
    }
}

/* Whether each worker's share of the projections is whole heads, keys with the queries that read
 * them: then it goes on with these without waiting for the others. */
static bool has_own_heads(const struct worker *w, const struct pass *p, int layer)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const int n_kv_heads = p->spec->num_key_value_heads;
    return !p->whole && p->spec->qk_norm != QK_NORM_FULL &&
           linear_shares_parts(w, weights->query.n_out, n_kv_heads) &&
           linear_shares_parts(w, weights->key.n_out, n_kv_heads) &&
           linear_shares_parts(w, weights->value.n_out, n_kv_heads);
}

/* in -> queries in p->query, if they are asked for, and keys and values in the cache, unless they
 * are there. Workers that have heads of their own do not wait for the others. */
static void make_heads(struct worker *w, const struct pass *p, int layer, const float *in,
                       bool queries, bool own_heads)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const size_t n = (size_t)p->n;
    const bool makes_kv = !p->kv_stored, full_norm = p->spec->qk_norm == QK_NORM_FULL;
    struct operand rows = pass_rows(p, in, n, (size_t)p->spec->hidden_size);
    if (makes_kv)
        pass_show(w, p, layer, MOMENTS_ATTENTION, in, n);
    project(w, p, layer, &rows, queries);
    if (!own_heads)
        worker_sync(w);
    if (full_norm && queries)
        norm_rows(w, &weights->query_norm, p->query, n, p->query);
    if (full_norm && makes_kv)
        norm_rows(w, &weights->key_norm, p->key, n, p->key);
    if (full_norm)
        worker_sync(w);
    if (queries)
        prepare_queries(w, p, layer, own_heads);
    if (makes_kv)
        store_kv(w, p, layer, own_heads);
    if (!own_heads)
        worker_meet(w);
}

void attention_store_kv(struct worker *w, const struct pass *p, int layer, const float *in)
{
    make_heads(w, p, layer, in, false, false);
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
                                  .sinks = weights->sinks,
                                  .rounded = pass_rounds(w, p, &weights->attention_out),
                                  .own_heads = has_own_heads(w, p, layer)};
    const size_t n = (size_t)p->n;
    make_heads(w, p, layer, in, true, attend.own_heads);
    attend_rows(w, &attend, &p->kv[layer], p->runs, p->n_runs, p->query, pass_attend_scratch(w, p),
                p->attn_output);
    worker_sync(w);
    pass_show(w, p, layer, MOMENTS_ATTN_OUTPUT, p->attn_output, n);
    struct operand rows = pass_rows(p, p->attn_output, n, (size_t)weights->attention_out.n_in);
    linear_apply_dealt(w, &weights->attention_out, &rows, out, (size_t)p->spec->hidden_size, store);
}
