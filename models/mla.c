/*
 * Latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1). Each token is remembered as one
 * short vector, from which every head's key and value would be made by a matrix. The matrix is not
 * applied to the past: it moves to the query and to the result of attention, so that all heads look
 * at the same latent keys (2.1.2, "absorbed"). Values are the first part of the keys; the cache
 * keeps them a second time, as the attention kernels read values.
 */
#include "models/forward.h"

#include "core/attend.h"

/* A head's part of kv_b: rows [first, first + n) of its qk_nope + v, as stored or seen from the
 * other side. */
static struct linear head_part(const struct linear *kv_b, const struct mla_spec *mla, size_t head,
                               int first, int n, bool transposed)
{
    const size_t row = head * (size_t)(mla->qk_nope_head_dim + mla->v_head_dim) + (size_t)first;
    struct linear part = *kv_b;
    if (kv_b->quant)
        part.quant_first += row;
    else
        part.w = (const unsigned char *)kv_b->w + row * kv_b->stride * dtype_size(kv_b->dtype);
    part.n_out = transposed ? kv_b->n_in : n;
    part.n_in = transposed ? n : kv_b->n_in;
    part.transposed = transposed;
    part.block = part.block_stride = part.n_out;
    return part;
}

/* key = the latent and the shared part that rotates. */
static void project_latents(struct worker *w, const struct pass *p,
                            const struct layer_weights *weights, struct operand *in)
{
    linear_apply(w, &weights->kv_a, in, p->key, (size_t)weights->kv_a.n_out);
}

/* value = queries as projected, [n, heads, nope + rope]. */
static void project_queries(struct worker *w, const struct pass *p,
                            const struct layer_weights *weights, struct operand *in)
{
    const size_t n = (size_t)p->n, rank = (size_t)p->spec->mla.q_lora_rank;
    struct operand rows = *in;
    if (rank) {
        linear_apply(w, &weights->query_a, &rows, p->query_latent, rank);
        worker_sync(w);
        norm_rows(w, &weights->query_a_norm, p->query_latent, n, p->query_latent);
        worker_sync(w);
        rows = pass_rows(p, p->query_latent, n, rank);
    }
    linear_apply(w, &weights->query_b, &rows, p->value, (size_t)weights->query_b.n_out);
}

/* Token i's latent is normalised, its shared part rotated. */
static void prepare_latent(const struct worker *w, const struct pass *p, int layer, size_t i)
{
    const struct mla_spec *const mla = &p->spec->mla;
    const struct rope *const rope = &p->spec->ropes[0];
    const size_t half = (size_t)rope->n_dims / 2;
    float *const latent = p->key + i * (size_t)(mla->kv_lora_rank + mla->qk_rope_head_dim);
    norm_row(w->kernels, &p->weights->layers[layer].kv_a_norm, latent, latent);
    rope_rotate(rope, w->kernels, latent + mla->kv_lora_rank, p->rope_cos[0] + i * half,
                p->rope_sin[0] + i * half);
}

static void store_latents(const struct worker *w, const struct pass *p, int layer)
{
    const size_t stride = (size_t)(p->spec->mla.kv_lora_rank + p->spec->mla.qk_rope_head_dim);
    size_t begin, end;
    worker_share(w, (size_t)p->n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++)
        prepare_latent(w, p, layer, i);
    for (int r = 0; r < p->n_runs; r++) {
        const struct kv_run run = kv_run_within(&p->runs[r], (int)begin, (int)end);
        kv_put(w->kernels, &p->kv[layer], &run, 0, p->key, p->key, stride);
    }
}

void mla_store_kv(struct worker *w, const struct pass *p, int layer, const float *in)
{
    struct operand rows = pass_rows(p, in, (size_t)p->n, (size_t)p->spec->hidden_size);
    project_latents(w, p, &p->weights->layers[layer], &rows);
    worker_sync(w);
    store_latents(w, p, layer);
    worker_meet(w);
}

/* One head's queries as they look at latents: W_uk^T q_nope, then the part that rotates. */
static void absorb_head(const struct worker *w, const struct pass *p, int layer, size_t head)
{
    const struct mla_spec *const mla = &p->spec->mla;
    const struct rope *const rope = &p->spec->ropes[0];
    const size_t n_heads = (size_t)p->spec->num_attention_heads, half = (size_t)rope->n_dims / 2;
    const size_t from = (size_t)(mla->qk_nope_head_dim + mla->qk_rope_head_dim);
    const size_t to = (size_t)(mla->kv_lora_rank + mla->qk_rope_head_dim);
    const struct linear up =
        head_part(&p->weights->layers[layer].kv_b, mla, head, 0, mla->qk_nope_head_dim, true);
    linear_apply_alone(w->kernels, &up, p->value + head * from, n_heads * from, (size_t)p->n,
                       p->query + head * to, n_heads * to);
    for (size_t i = 0; i < (size_t)p->n; i++) {
        const float *const query = p->value + (i * n_heads + head) * from + mla->qk_nope_head_dim;
        float *const out = p->query + (i * n_heads + head) * to + mla->kv_lora_rank;
        for (int d = 0; d < mla->qk_rope_head_dim; d++)
            out[d] = query[d];
        rope_rotate(rope, w->kernels, out, p->rope_cos[0] + i * half, p->rope_sin[0] + i * half);
    }
}

/* One head's output from what it gathered of the latents: W_uv times that. */
static void project_values(const struct worker *w, const struct pass *p, int layer, size_t head)
{
    const struct mla_spec *const mla = &p->spec->mla;
    const size_t n_heads = (size_t)p->spec->num_attention_heads;
    const size_t rank = (size_t)mla->kv_lora_rank, v_dim = (size_t)mla->v_head_dim;
    const struct linear values = head_part(&p->weights->layers[layer].kv_b, mla, head,
                                           mla->qk_nope_head_dim, mla->v_head_dim, false);
    linear_apply_alone(w->kernels, &values, p->attn_output + head * rank, n_heads * rank,
                       (size_t)p->n, p->value + head * v_dim, n_heads * v_dim);
}

void mla_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const struct attend attend = {.n_heads = p->spec->num_attention_heads,
                                  .scale = p->spec->layers[layer].attention_scale,
                                  .rounded = pass_rounds(w, p, &weights->attention_out)};
    const size_t n = (size_t)p->n, n_heads = (size_t)p->spec->num_attention_heads;
    size_t begin, end;
    struct operand rows = pass_rows(p, in, n, (size_t)p->spec->hidden_size);
    if (!p->kv_stored)
        project_latents(w, p, weights, &rows);
    project_queries(w, p, weights, &rows);
    worker_sync(w);
    if (!p->kv_stored)
        store_latents(w, p, layer);
    worker_share(w, n_heads, 1, &begin, &end);
    for (size_t head = begin; head < end; head++)
        absorb_head(w, p, layer, head);
    worker_meet(w);
    attend_rows(w, &attend, &p->kv[layer], p->runs, p->n_runs, p->query, pass_attend_scratch(w, p),
                p->attn_output);
    worker_sync(w);
    for (size_t head = begin; head < end; head++)
        project_values(w, p, layer, head);
    worker_sync(w);
    rows = pass_rows(p, p->value, n, (size_t)weights->attention_out.n_in);
    linear_apply_dealt(w, &weights->attention_out, &rows, out, (size_t)p->spec->hidden_size, store);
}
