/*
 * The timeline and its memory. One block holds everything, cut in this order, each part on a cache
 * line of its own:
 *
 *   | KV: layer 0 k | layer 0 v | layer 1 k | ... | scratch of a pass: x ... scores | logits |
 * positions |
 *
 * Pages that no token has reached yet are never touched, so a long context costs memory only as it
 * fills.
 */
#include "models/session.h"

#include "models/forward.h"
#include "models/internal.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 /* bytes of a cache line */ };

struct session {
    const struct model *model;
    struct compute *compute;
    struct session_params params;
    struct pass pass;
    void *block;      /* all that the pass points to */
    struct kv *kv;    /* [num_hidden_layers] */
    double *inv_freq; /* of all ropes, one behind the other */
    int rope_length;  /* the length of text that inv_freq is for; 0: none yet */
    int *positions;   /* [n_batch] */
    int position;     /* tokens so far */
    int expected;     /* the least that they will be */
};

/* ---- memory ---- */

/* Cuts a block into parts; with base NULL it only adds up. */
struct cutter {
    char *base;
    size_t used;
    bool overflow;
};

/* n_rows * n_columns floats. */
static float *cut(struct cutter *c, size_t n_rows, size_t n_columns)
{
    size_t bytes;
    float *const part = c->base ? (float *)(void *)(c->base + c->used) : NULL;
    if (!checked_mul(n_rows, n_columns, &bytes) || !checked_mul(bytes, sizeof(float), &bytes) ||
        !checked_add(bytes, LINE - 1, &bytes) ||
        !checked_add(c->used, bytes / LINE * LINE, &c->used))
        c->overflow = true;
    return part;
}

/* A window's layer holds the window and one pass beside it. */
static int n_slots(const struct model_spec *spec, int layer, const struct session_params *params)
{
    const int window = spec->layers[layer].window;
    const int64_t needed = (int64_t)window - 1 + params->n_batch;
    return window && needed < params->n_context ? (int)needed : params->n_context;
}

static void cut_kv(struct cutter *c, const struct model_spec *spec,
                   const struct session_params *params, struct kv *kv)
{
    const bool latent = spec->mla.kv_lora_rank > 0; /* values are the first part of the keys */
    struct kv shape = {
        .n_kv_heads = latent ? 1 : spec->num_key_value_heads,
        .k_dim = latent ? spec->mla.kv_lora_rank + spec->mla.qk_rope_head_dim : spec->head_dim,
        .v_dim = latent ? spec->mla.kv_lora_rank : spec->head_dim,
    };
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        shape.n_slots = n_slots(spec, i, params);
        const size_t rows = (size_t)shape.n_kv_heads * (size_t)shape.n_slots;
        float *const k = cut(c, rows, (size_t)shape.k_dim);
        float *const v = latent ? k : cut(c, rows, (size_t)shape.v_dim);
        if (kv) {
            kv[i] = shape;
            kv[i].k = k;
            kv[i].v = v;
        }
    }
}

static bool needs_branch(const struct model_spec *spec)
{
    return spec->norm_place == NORM_AFTER || spec->norm_place == NORM_BOTH ||
           spec->residual == RESIDUAL_PARALLEL;
}

static int *cut_ints(struct cutter *c, size_t n_rows, size_t n_columns)
{
    _Static_assert(sizeof(int) == sizeof(float), "both are cut in the same way");
    return (int *)(void *)cut(c, n_rows, n_columns);
}

static void cut_attention(struct cutter *c, const struct model_spec *spec, size_t n, struct pass *p)
{
    const struct mla_spec *const mla = &spec->mla;
    const size_t heads = (size_t)spec->num_attention_heads;
    const size_t head_dim = (size_t)spec->head_dim;
    if (mla->kv_lora_rank) {
        const size_t latent = (size_t)(mla->kv_lora_rank + mla->qk_rope_head_dim);
        const size_t wide = (size_t)max_int(spec->head_dim, mla->v_head_dim);
        p->query = cut(c, n, heads * latent);
        p->key = cut(c, n, latent);
        p->value = cut(c, n, heads * wide);
        p->low = cut(c, n, (size_t)mla->q_lora_rank);
        p->mixed = cut(c, n, heads * (size_t)mla->kv_lora_rank);
    } else {
        p->query = cut(c, n, heads * head_dim);
        p->key = cut(c, n, (size_t)spec->num_key_value_heads * head_dim);
        p->value = cut(c, n, (size_t)spec->num_key_value_heads * head_dim);
        p->mixed = cut(c, n, heads * head_dim);
    }
}

static void cut_moe(struct cutter *c, const struct model_spec *spec, size_t n,
                    struct moe_scratch *moe)
{
    const size_t experts = (size_t)spec->moe.num_experts, hidden = (size_t)spec->hidden_size;
    const size_t n_k = (size_t)spec->moe.num_experts_per_tok, slots = n * n_k;
    const size_t size = (size_t)spec->moe.moe_intermediate_size;
    const size_t shared = (size_t)spec->moe.shared_intermediate_size;
    moe->logits = cut(c, n, experts);
    moe->left = cut(c, n, experts);
    moe->chosen = cut_ints(c, n, n_k);
    moe->weights = cut(c, n, n_k);
    moe->first = cut_ints(c, experts + 1, 1);
    moe->token = cut_ints(c, slots, 1);
    moe->slot = cut_ints(c, slots, 1);
    moe->in = cut(c, slots, hidden);
    moe->gate = cut(c, slots, spec->moe.gate_up_interleaved ? 2 * size : size);
    moe->up = cut(c, slots, size);
    moe->out = cut(c, slots, hidden);
    moe->shared_gate = cut(c, n, shared);
    moe->shared_up = cut(c, n, shared);
    moe->shared_out = cut(c, shared ? n : 0, hidden);
    moe->shared_switch = cut(c, n, 1);
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

static void cut_room(struct cutter *c, const struct model_spec *spec,
                     const struct session_params *params, struct pass *p)
{
    const size_t n_slots = (size_t)max_int(1, spec->moe.num_experts_per_tok);
    const size_t n = (size_t)params->n_batch * n_slots, widest = widest_row(spec);
    size_t bytes;
    p->room = (struct operand_room){.base = NULL};
    if (params->precision == PRECISION_F32)
        return;
    if (!operand_room_bytes(n, widest, params->n_threads, &bytes))
        c->overflow = true;
    else
        p->room = operand_room(cut(c, 1, bytes / sizeof(float)), n, widest);
}

static void cut_scratch(struct cutter *c, const struct model_spec *spec,
                        const struct session_params *params, struct pass *p)
{
    const size_t n = (size_t)params->n_batch, hidden = (size_t)spec->hidden_size;
    p->x = cut(c, n, hidden);
    p->embedded =
        cut(c, spec->embedding_size == spec->hidden_size ? 0 : n, (size_t)spec->embedding_size);
    p->normed = cut(c, n, hidden);
    p->branch = cut(c, needs_branch(spec) ? n : 0, hidden);
    cut_attention(c, spec, n, p);
    p->gate = cut(c, spec->ffn == FFN_GATED ? n : 0, (size_t)spec->intermediate_size);
    p->up = cut(c, n, (size_t)spec->intermediate_size);
    if (spec->moe.num_experts)
        cut_moe(c, spec, n, &p->moe);
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        p->rope_cos[r] = cut(c, n, (size_t)spec->ropes[r].n_dims / 2);
        p->rope_sin[r] = cut(c, n, (size_t)spec->ropes[r].n_dims / 2);
    }
    p->scores = cut(c, (size_t)params->n_threads, (size_t)params->n_context + 1);
    cut_room(c, spec, params, p);
}

/* The whole block; *bytes gets the sizes of its parts. False on overflow. */
static bool cut_all(struct cutter *c, const struct model_spec *spec,
                    const struct session_params *params, struct kv *kv, struct pass *pass,
                    struct session_bytes *bytes)
{
    cut_kv(c, spec, params, kv);
    bytes->kv = c->used;
    cut_scratch(c, spec, params, pass);
    bytes->scratch = c->used - bytes->kv;
    pass->logits = cut(c, (size_t)params->n_rows, (size_t)spec->vocab_size);
    bytes->logits = c->used - bytes->kv - bytes->scratch;
    return !c->overflow;
}

bool session_measure(const struct model *m, const struct session_params *params,
                     struct session_bytes *out, struct err *e)
{
    struct session_params fitting = *params;
    struct cutter c = {0};
    struct pass unused = {0};
    fitting.n_threads = max_int(1, params->n_threads);
    fitting.n_batch = max_int(1, params->n_batch);
    fitting.n_rows = max_int(1, params->n_rows);
    if (params->n_context < 1 || params->n_context > m->info.max_positions)
        return err_set(e, ERR_CONTEXT,
                       "a context of %d tokens is not possible: the model's maximum is %d",
                       params->n_context, m->info.max_positions);
    if (!cut_all(&c, &m->spec, &fitting, NULL, &unused, out))
        return err_no_memory(e);
    return true;
}

static size_t n_frequencies(const struct model_spec *spec)
{
    size_t n = 0;
    for (int r = 0; r < SPEC_MAX_ROPES; r++)
        n += (size_t)spec->ropes[r].n_dims / 2;
    return n;
}

static bool take_memory(struct session *s, struct err *e)
{
    const struct model_spec *const spec = &s->model->spec;
    struct session_bytes bytes = {0};
    if (!session_measure(s->model, &s->params, &bytes, e))
        return false;
    const size_t total = bytes.kv + bytes.scratch + bytes.logits;
    s->block = calloc(1, total + LINE); /* zeroed by the kernel, page by page, on first touch */
    s->kv = calloc((size_t)spec->num_hidden_layers, sizeof *s->kv);
    s->inv_freq = calloc(n_frequencies(spec) + 1, sizeof *s->inv_freq);
    s->positions = calloc((size_t)s->params.n_batch, sizeof *s->positions);
    if (!s->block || !s->kv || !s->inv_freq || !s->positions)
        return err_set(e, ERR_RUNTIME,
                       "a context of %d tokens needs %zu MiB, which are not to be had",
                       s->params.n_context, total >> 20);
    char *const aligned = (char *)round_up((size_t)s->block, LINE);
    struct cutter c = {.base = aligned};
    return cut_all(&c, spec, &s->params, s->kv, &s->pass, &bytes) || err_no_memory(e);
}

struct session *session_new(const struct model *m, struct compute *c,
                            const struct session_params *params, struct err *e)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s) {
        err_no_memory(e);
        return NULL;
    }
    s->model = m;
    s->compute = c;
    s->params = *params;
    s->params.n_threads = compute_n_threads(c);
    s->params.n_batch = max_int(1, params->n_batch);
    s->params.n_rows = max_int(1, params->n_rows);
    if (!take_memory(s, e)) {
        session_free(s);
        return NULL;
    }
    s->pass.spec = &m->spec;
    s->pass.weights = &m->weights;
    s->pass.kv = s->kv;
    s->pass.positions = s->positions;
    s->pass.n_context = params->n_context;
    return s;
}

void session_free(struct session *s)
{
    if (!s)
        return;
    free(s->block);
    free(s->kv);
    free(s->inv_freq);
    free(s->positions);
    free(s);
}

/* ---- tokens ---- */

static bool check_tokens(const struct session *s, const int32_t *ids, int n, struct err *e)
{
    const int vocab_size = s->model->spec.vocab_size, n_context = s->params.n_context;
    if (n > n_context - s->position)
        return err_set(e, ERR_CONTEXT, "%d tokens do not fit the context of %d%s", s->position + n,
                       n_context, s->position ? " (what is there already included)" : "");
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab_size)
            return err_set(e, ERR_RUNTIME, "the token id %d is outside the vocabulary of %d",
                           (int)ids[i], vocab_size);
    return true;
}

/* Frequencies that depend on the length follow the text as it grows (transformers,
 * dynamic_rope_update). */
static void update_ropes(struct session *s, int length)
{
    double *inv_freq = s->inv_freq;
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        const struct rope *const rope = &s->model->spec.ropes[r];
        const bool fresh = s->rope_length == length;
        if (!s->rope_length || (rope_depends_on_length(rope) && !fresh))
            rope_frequencies(rope, length, inv_freq);
        s->pass.inv_freq[r] = inv_freq;
        s->pass.rope_factor[r] = rope_attention_factor(rope, length);
        inv_freq += rope->n_dims / 2;
    }
    s->rope_length = length;
}

/* At most n_batch tokens; the last n_rows of them give logits. */
static void run_pass(struct session *s, const int32_t *ids, int n, int n_rows)
{
    s->pass.ids = ids;
    s->pass.n = n;
    s->pass.n_rows = n_rows;
    for (int i = 0; i < n; i++)
        s->positions[i] = s->position + i;
    for (int i = 0; i < s->model->spec.num_hidden_layers; i++)
        kv_make_room(&s->kv[i], s->position, s->position + n, s->model->spec.layers[i].window - 1);
    compute_run(s->compute, forward_run, &s->pass);
    s->position += n;
}

/* all: every token gives a row of logits, one behind the other; else only the last. */
static const float *run(struct session *s, const int32_t *ids, int n, bool all, struct err *e)
{
    if (!check_tokens(s, ids, n, e))
        return NULL;
    float *const logits = s->pass.logits;
    update_ropes(s, max_int(s->expected, s->position + n));
    for (int done = 0; done < n;) {
        const int n_now = min_int(n - done, s->params.n_batch);
        const bool last = done + n_now == n;
        run_pass(s, ids + done, n_now, all ? n_now : last);
        if (all)
            s->pass.logits += (size_t)n_now * (size_t)s->model->spec.vocab_size;
        done += n_now;
    }
    s->pass.logits = logits;
    return logits;
}

void session_expect(struct session *s, int n)
{
    s->expected = n;
}

const float *session_prompt(struct session *s, const int32_t *ids, int n, struct err *e)
{
    return run(s, ids, n, false, e);
}

const float *session_score(struct session *s, const int32_t *ids, int n, struct err *e)
{
    if (n > s->params.n_rows) {
        err_set(e, ERR_RUNTIME, "%d rows of logits were asked for, %d can be had", n,
                s->params.n_rows);
        return NULL;
    }
    return run(s, ids, n, true, e);
}

const float *session_step(struct session *s, int32_t id, struct err *e)
{
    return run(s, &id, 1, false, e);
}

int session_position(const struct session *s)
{
    return s->position;
}

bool session_rewind(struct session *s, int position)
{
    const struct model_spec *const spec = &s->model->spec;
    if (position < 0 || position > s->position)
        return false;
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        const int needed = max_int(0, position - spec->layers[i].window + 1);
        if (position && spec->layers[i].window && needed < s->kv[i].first)
            return false;
    }
    s->position = position;
    for (int i = 0; position == 0 && i < spec->num_hidden_layers; i++)
        s->kv[i].first = 0;
    return true;
}
