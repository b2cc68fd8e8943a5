/*
 * The memory of a pass, and of its parts, which cut their own out of the same. Sizes follow from
 * the spec and the largest pass alone, so that a session can announce them; the two halves of a
 * layer take turns and share one place. Owns nothing: the block is the session's. Computes nothing
 * but norms.
 */
#include "models/pass.h"

#include <assert.h>

static bool needs_branch(const struct model_spec *spec)
{
    return spec->norm_place == NORM_AFTER || spec->norm_place == NORM_BOTH ||
           spec->residual == RESIDUAL_PARALLEL;
}

static void cut_attention(struct cutter *c, const struct model_spec *spec, size_t n, struct pass *p)
{
    const struct mla_spec *const mla = &spec->mla;
    const size_t heads = (size_t)spec->num_attention_heads;
    const size_t head_dim = (size_t)spec->head_dim;
    if (mla->kv_lora_rank) {
        const size_t latent = (size_t)(mla->kv_lora_rank + mla->qk_rope_head_dim);
        const size_t wide = (size_t)max_int(spec->head_dim, mla->v_head_dim);
        p->query = cut_floats(c, n, heads * latent);
        p->key = cut_floats(c, n, latent);
        p->value = cut_floats(c, n, heads * wide);
        p->query_latent = cut_floats(c, n, (size_t)mla->q_lora_rank);
        p->attn_output = cut_floats(c, n, heads * (size_t)mla->kv_lora_rank);
    } else {
        p->query = cut_floats(c, n, heads * head_dim);
        p->key = cut_floats(c, n, (size_t)spec->num_key_value_heads * head_dim);
        p->value = cut_floats(c, n, (size_t)spec->num_key_value_heads * head_dim);
        p->attn_output = cut_floats(c, n, heads * head_dim);
    }
}

static void cut_moe(struct cutter *c, const struct model_spec *spec, size_t n,
                    struct moe_scratch *moe)
{
    const size_t experts = (size_t)spec->moe.num_experts, hidden = (size_t)spec->hidden_size;
    const size_t n_k = (size_t)spec->moe.num_experts_per_tok, slots = n * n_k;
    const size_t size = (size_t)spec->moe.moe_intermediate_size;
    const size_t shared = (size_t)spec->moe.shared_intermediate_size;
    moe->logits = cut_floats(c, n, experts);
    moe->left = cut_floats(c, n, experts);
    moe->chosen = cut_ints(c, n, n_k);
    moe->weights = cut_floats(c, n, n_k);
    moe->first = cut_ints(c, experts + 1, 1);
    moe->token = cut_ints(c, slots, 1);
    moe->slot = cut_ints(c, slots, 1);
    moe->in = cut_floats(c, slots, hidden);
    moe->gate = cut_floats(c, slots, spec->moe.gate_up_interleaved ? 2 * size : size);
    moe->up = cut_floats(c, slots, size);
    moe->out = cut_floats(c, slots, hidden);
    moe->shared_gate = cut_floats(c, n, shared);
    moe->shared_up = cut_floats(c, n, shared);
    moe->shared_out = cut_floats(c, shared ? n : 0, hidden);
    moe->shared_expert_gate = cut_floats(c, n, 1);
}

/* The longest row that a product reads. */
static size_t widest_row(const struct model_spec *spec)
{
    const int heads = spec->num_attention_heads;
    const int widths[] = {spec->hidden_size,
                          spec->embedding_size,
                          spec->intermediate_size,
                          spec->moe.moe_intermediate_size,
                          spec->moe.shared_intermediate_size,
                          spec->mla.q_lora_rank,
                          heads * max_int(spec->head_dim, spec->mla.v_head_dim)};
    int widest = 0;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        widest = max_int(widest, widths[i]);
    return (size_t)widest;
}

static void cut_room(struct cutter *c, const struct model_spec *spec, const struct pass_size *size,
                     struct pass *p)
{
    const size_t n_slots = (size_t)max_int(1, spec->moe.num_experts_per_tok);
    const size_t n = (size_t)size->n_most * n_slots, widest = widest_row(spec);
    size_t bytes;
    p->room = (struct operand_room){.base = NULL};
    if (!size->rounds)
        return;
    if (!operand_room_bytes(n, widest, size->n_threads, &bytes))
        c->overflow = true;
    else
        p->room = operand_room(cut_floats(c, 1, bytes / sizeof(float)), n, widest, size->n_threads);
}

/* What one worker's gated feed-forward holds of its gate: GATE_COLUMNS of the largest pass, and of
 * a pass of one token its whole share. */
static void cut_gate(struct cutter *c, const struct model_spec *spec, const struct pass_size *size,
                     struct pass *p)
{
    enum { GATE_COLUMNS = 4 * PASS_GATE_GRAIN };
    const size_t n = (size_t)size->n_most, n_threads = (size_t)size->n_threads;
    const size_t all = ((size_t)spec->intermediate_size + n_threads - 1) / n_threads;
    const size_t share = round_up(all, PASS_GATE_GRAIN);
    const size_t columns = min_size(share, GATE_COLUMNS);
    p->n_gate = max_size(n * columns, share);
    p->gate = cut_floats(c, spec->ffn == FFN_GATED ? n_threads : 0, p->n_gate);
}

static void cut_ffn(struct cutter *c, const struct model_spec *spec, const struct pass_size *size,
                    struct pass *p)
{
    const size_t n = (size_t)size->n_most;
    cut_gate(c, spec, size, p);
    p->up = cut_floats(c, n, (size_t)spec->intermediate_size);
    if (spec->moe.num_experts)
        cut_moe(c, spec, n, &p->moe);
}

/* The two halves of a layer take turns, so they have the same memory. */
static void cut_halves(struct cutter *c, const struct model_spec *spec,
                       const struct pass_size *size, struct pass *p)
{
    const size_t n = (size_t)size->n_most, begin = c->used;
    cut_attention(c, spec, n, p);
    p->attend_scratch = cut_floats(c, (size_t)size->n_threads, size->n_attend_scratch);
    const size_t end = c->used;
    c->used = begin;
    cut_ffn(c, spec, size, p);
    c->used = max_size(c->used, end);
}

/* What a pass works in, besides x and the angles. */
static void cut_memory(struct cutter *c, const struct model_spec *spec,
                       const struct pass_size *size, struct pass *p)
{
    const size_t n = (size_t)size->n_most, hidden = (size_t)spec->hidden_size;
    const size_t n_embedded = spec->embedding_size == spec->hidden_size ? 0 : n;
    p->embedded = cut_floats(c, n_embedded, (size_t)spec->embedding_size);
    p->normed = cut_floats(c, n + (size_t)size->n_threads * PASS_FEW_ROWS, hidden);
    p->branch = cut_floats(c, needs_branch(spec) ? n : 0, hidden);
    cut_halves(c, spec, size, p);
    cut_room(c, spec, size, p);
}

/* The most that parts need, however the rows are dealt out: what one part of all rows needs, and
 * for each part what does not depend on rows, and whole cache lines. */
static void cut_parts(struct cutter *c, const struct model_spec *spec, const struct pass_size *size)
{
    struct pass unused = {.n = 0};
    struct pass_size all = *size, least = *size;
    struct cutter once = {.base = NULL};
    all.n_threads = least.n_threads = least.n_most = 1;
    cut_memory(c, spec, &all, &unused);
    cut_memory(&once, spec, &least, &unused);
    c->overflow = c->overflow || once.overflow;
    cut_bytes(c, (size_t)size->n_threads, once.used);
}

void pass_cut(struct cutter *c, const struct model_spec *spec, const struct pass_size *size,
              struct pass *p)
{
    const size_t n = (size_t)size->n_most;
    p->x = cut_floats(c, n, (size_t)spec->hidden_size);
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        p->rope_cos[r] = cut_floats(c, n, (size_t)spec->ropes[r].n_dims / 2);
        p->rope_sin[r] = cut_floats(c, n, (size_t)spec->ropes[r].n_dims / 2);
    }
    p->size = *size;
    p->memory = c->base ? c->base + c->used : NULL;
    const size_t begin = c->used;
    cut_memory(c, spec, size, p);
    const size_t end = c->used;
    c->used = begin;
    if (pass_is_large(size, size->n_most))
        cut_parts(c, spec, size);
    c->used = max_size(c->used, end);
    p->n_memory = c->used - begin;
}

bool pass_is_large(const struct pass_size *size, int n)
{
    return size->n_threads > 1 && n / size->n_threads >= size->n_each;
}

/* The runs of rows [first, first + n), told from the first of these rows on. Returns how many. */
static int runs_within(const struct pass *whole, int first, int n, struct kv_run *out)
{
    int n_runs = 0;
    for (int i = 0; i < whole->n_runs; i++) {
        const struct kv_run run = kv_run_within(&whole->runs[i], first, first + n);
        if (run.n == 0)
            continue;
        out[n_runs] = run;
        out[n_runs++].row -= first;
    }
    return n_runs;
}

void pass_part(const struct pass *whole, int first, int n, size_t *used, struct kv_run *runs,
               struct pass *part)
{
    const struct model_spec *const spec = whole->spec;
    const struct pass_size size = {n, 1, n, whole->size.rounds, whole->size.n_attend_scratch};
    const size_t at = (size_t)first;
    struct cutter own = {.base = whole->memory, .used = *used};
    assert(n > 0 && !whole->moments);
    *part = *whole;
    part->whole = whole;
    part->n = n;
    part->ids += at;
    part->positions += at;
    part->sequences += at;
    part->runs = runs;
    part->n_runs = runs_within(whole, first, n, runs);
    part->x += at * (size_t)spec->hidden_size;
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        part->rope_cos[r] += at * (size_t)(spec->ropes[r].n_dims / 2);
        part->rope_sin[r] += at * (size_t)(spec->ropes[r].n_dims / 2);
    }
    if (!whole->wanted)
        part->logits += at * (size_t)spec->vocab_size;
    part->size = size;
    cut_memory(&own, spec, &size, part);
    assert(own.used <= whole->n_memory);
    *used = own.used;
}

const float *pass_norm(struct worker *w, const struct pass *p, const struct norm *norm,
                       const float *x, size_t n)
{
    const size_t hidden = (size_t)p->spec->hidden_size;
    if (n > PASS_FEW_ROWS) {
        norm_rows(w, norm, x, n, p->normed);
        worker_sync(w);
        return p->normed;
    }
    float *const own =
        p->normed + ((size_t)p->size.n_most + (size_t)w->index * PASS_FEW_ROWS) * hidden;
    for (size_t i = 0; i < n; i++)
        norm_row(w->kernels, norm, x + i * hidden, own + i * hidden);
    return own;
}
