/*
 * One layer, as the papers draw it: two halves, attention and feed-forward, each of which adds to
 * the stream x. Families differ in where the norms stand and in whether the second half waits for
 * the first.
 */
#include "models/forward.h"

#include "core/kernels/kernels.h"

/* A half: attention_run or ffn_run. */
typedef void half_run(struct worker *w, const struct pass *p, int layer, const float *in,
                      float *out, enum linear_store store);

/* x += norm(branch), row by row. */
static void add_normed(struct worker *w, const struct pass *p, const struct norm *norm)
{
    const size_t hidden = (size_t)p->spec->hidden_size;
    size_t begin, end;
    worker_share(w, (size_t)p->n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        norm_row(w->kernels, norm, p->branch + i * hidden, p->branch + i * hidden);
        w->kernels->add(p->x + i * hidden, p->branch + i * hidden, hidden);
    }
    worker_sync(w);
}

/* What a half reads: norm(x). */
static const float *normed(struct worker *w, const struct pass *p, const struct norm *norm)
{
    return pass_norm(w, p, norm, p->x, (size_t)p->n);
}

/* x = norm(x). */
static void normalise(struct worker *w, const struct pass *p, const struct norm *norm)
{
    norm_rows(w, norm, p->x, (size_t)p->n, p->x);
    worker_sync(w);
}

static void sequential_half(struct worker *w, const struct pass *p, int layer, half_run *run,
                            const struct norm *norm, const struct norm *post_norm)
{
    switch (p->spec->norm_place) {
    case NORM_BEFORE:
        if (p->spec->residual == RESIDUAL_FROM_NORM) {
            normalise(w, p, norm);
            run(w, p, layer, p->x, p->x, LINEAR_ADD);
        } else {
            run(w, p, layer, normed(w, p, norm), p->x, LINEAR_ADD);
        }
        break;
    case NORM_AFTER:
        run(w, p, layer, p->x, p->branch, LINEAR_SET);
        add_normed(w, p, post_norm);
        break;
    case NORM_BOTH:
        run(w, p, layer, normed(w, p, norm), p->branch, LINEAR_SET);
        add_normed(w, p, post_norm);
        break;
    case NORM_OUTSIDE:
        run(w, p, layer, p->x, p->x, LINEAR_ADD);
        normalise(w, p, norm);
        break;
    }
}

static bool is_parallel(const struct model_spec *spec)
{
    return spec->residual == RESIDUAL_PARALLEL || spec->residual == RESIDUAL_PARALLEL_SHARED;
}

/* x + attention(norm(x)) + ffn(norm'(x)), where norm' is norm in some families. */
static void parallel(struct worker *w, const struct pass *p, int layer)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const bool shared = p->spec->residual == RESIDUAL_PARALLEL_SHARED;
    if (!shared)
        norm_rows(w, &weights->ffn_norm, p->x, (size_t)p->n, p->branch);
    const float *const rows = normed(w, p, &weights->attention_norm);
    attention_run(w, p, layer, rows, p->x, LINEAR_ADD);
    ffn_run(w, p, layer, shared ? rows : p->branch, p->x, LINEAR_ADD);
}

/* Experts take the tokens of all parts together, so that their weights are read once. All meet
 * before: the tokens of all parts must be there, and the whole works in the memory of its parts. */
static void experts_half(struct worker *w, const struct pass *p, int layer)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    struct worker all = worker_together(w);
    if (p->whole)
        worker_meet(w);
    sequential_half(&all, p->whole ? p->whole : p, layer, moe_run, &weights->ffn_norm,
                    &weights->ffn_post_norm);
}

void block_run(struct worker *w, const struct pass *p, int layer)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    if (is_parallel(p->spec)) {
        parallel(w, p, layer);
        return;
    }
    sequential_half(w, p, layer, p->spec->mla.kv_lora_rank ? mla_run : attention_run,
                    &weights->attention_norm, &weights->attention_post_norm);
    if (p->spec->layers[layer].moe)
        experts_half(w, p, layer);
    else
        sequential_half(w, p, layer, ffn_run, &weights->ffn_norm, &weights->ffn_post_norm);
}

void block_store_kv(struct worker *w, const struct pass *p, int layer)
{
    const struct model_spec *const spec = p->spec;
    const bool norm_first =
        is_parallel(spec) || spec->norm_place == NORM_BEFORE || spec->norm_place == NORM_BOTH;
    const float *const in =
        norm_first ? normed(w, p, &p->weights->layers[layer].attention_norm) : p->x;
    (spec->mla.kv_lora_rank ? mla_store_kv : attention_store_kv)(w, p, layer, in);
}
