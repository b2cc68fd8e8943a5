/*
 * The timelines and their memory. One block holds everything, cut in this order, each part on a
 * cache line of its own:
 *
 *   | KV: layer 0 | layer 1 | ... | scratch of a pass: x ... | tables, rows, ropes | logits |
 *
 * Memory that no token has reached yet is never touched, so a long context costs only as it fills.
 */
#include "models/session.h"

#include "models/forward.h"
#include "models/internal.h"
#include "models/parts.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert((int)SESSION_PAGE == KV_PAGE, "the header tells the cache's own number");

/* One text. */
struct sequence {
    int position;    /* tokens so far */
    int highest;     /* the most that there were: up to there, rings may have been overwritten */
    int expected;    /* tokens that there will be at least */
    int rope_length; /* the length of text that its frequencies are for; 0: none yet */
    int n_new;       /* rows of the pass that is being prepared; 0 in between */
    bool admitted;   /* it has pages for them */
};

struct session {
    const struct model *model;
    struct compute *compute;
    struct session_params params; /* completed: counts that were 0 are filled in */
    struct pass pass, wanted;
    struct pass *parts; /* [n_threads] */
    struct parts_price price;
    void *block;   /* all that is pointed to, but for kv */
    struct kv *kv; /* [num_hidden_layers] */
    struct kv_pages pages;
    struct sequence *sequences; /* [n_sequences] */
    struct session_row *rows;   /* [n_batch]: those of the plain calls */
    /* [n_batch] each: what the pass is told of its rows */
    int32_t *ids;
    int *positions, *row_sequences, *logit_rows;
    struct kv_run *runs, *part_runs;
    /* the same of the rows that get logits */
    int *wanted_positions;
    struct kv_run *wanted_runs;
    double *inv_freq[SPEC_MAX_ROPES];    /* each [n_sequences, n_dims / 2] */
    double *rope_factor[SPEC_MAX_ROPES]; /* each [n_sequences] */
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* Pages of a sequence's ring in a layer with a window: enough for the window and for what one pass,
 * or the longest rewind, adds to it, wherever in a page that begins. 0 without a window, or where a
 * ring would be no smaller than the whole context; the layer then uses the shared pool. */
static int ring_pages(int window, const struct session_params *params)
{
    const int64_t beside = max_int(params->n_batch, SESSION_REWIND + 1);
    const int64_t pages = ((int64_t)window - 1 + beside + 2 * (KV_PAGE - 1)) / KV_PAGE;
    return window && pages < kv_blocks(params->n_context) ? (int)pages : 0;
}

static enum kv_type kv_type(const struct session_params *params)
{
    switch (params->kv) {
    case SESSION_KV_F32:
        return KV_F32;
    case SESSION_KV_F16:
        return KV_F16;
    case SESSION_KV_Q8:
        return KV_Q8;
    default:
        return params->precision == PRECISION_F32 ? KV_F32 : KV_F16;
    }
}

static struct kv kv_shape(const struct model_spec *spec, const struct session_params *params,
                          const struct kv_pages *pages, int layer)
{
    const struct mla_spec *const mla = &spec->mla;
    const bool latent = mla->kv_lora_rank > 0;
    return (struct kv){
        .pages = pages,
        .type = kv_type(params),
        .n_kv_heads = latent ? 1 : spec->num_key_value_heads,
        .k_dim = latent ? mla->kv_lora_rank + mla->qk_rope_head_dim : spec->head_dim,
        .v_dim = latent ? mla->kv_lora_rank : spec->head_dim,
        .n_ring = ring_pages(spec->layers[layer].window, params),
    };
}

static void cut_kv(struct cutter *c, const struct model_spec *spec,
                   const struct session_params *params, const struct kv_pages *pages,
                   struct kv *layers, struct session_bytes *bytes)
{
    bytes->kv_page = 0;
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        struct kv kv = kv_shape(spec, params, pages, i);
        size_t n = 0;
        c->overflow = !kv_bytes(&kv, &n) || c->overflow;
        if (!kv.n_ring)
            bytes->kv_page += kv_page_bytes(&kv);
        kv.memory = cut_bytes(c, n, 1);
        if (layers)
            layers[i] = kv;
    }
}

/* Whether products may round what they read. */
static bool rounds(const struct session *s)
{
    return s->params.precision != PRECISION_F32;
}

static void cut_pass(struct cutter *c, struct session *s)
{
    const struct model_spec *const spec = &s->model->spec;
    const struct kv kv = kv_shape(spec, &s->params, NULL, 0); /* as in all layers, but for rings */
    const struct pass_size size = {
        .n_most = s->params.n_batch,
        .n_threads = s->params.n_threads,
        .n_each = parts_rows_of(spec, &s->model->weights, s->params.n_threads).each,
        .rounds = rounds(s),
        .n_attend_scratch = round_up(attend_scratch(&kv), CACHE_LINE / sizeof(float)),
    };
    pass_cut(c, spec, &size, &s->pass);
}

/* Tables of sequences, pages and rows. */
static void cut_tables(struct cutter *c, struct session *s)
{
    const size_t n = (size_t)s->params.n_batch, n_sequences = (size_t)s->params.n_sequences;
    s->pages.table = cut_ints(c, n_sequences, (size_t)s->pages.n_blocks);
    s->pages.n_users = cut_ints(c, (size_t)s->pages.n_pages, 1);
    s->pages.free = cut_ints(c, (size_t)s->pages.n_pages, 1);
    s->sequences = cut_bytes(c, n_sequences, sizeof *s->sequences);
    s->rows = cut_bytes(c, n, sizeof *s->rows);
    s->ids = cut_bytes(c, n, sizeof *s->ids);
    s->positions = cut_ints(c, n, 1);
    s->row_sequences = cut_ints(c, n, 1);
    s->logit_rows = cut_ints(c, n, 1);
    s->runs = cut_bytes(c, n, sizeof *s->runs);
    s->part_runs = cut_bytes(c, n, sizeof *s->part_runs);
    s->parts = cut_bytes(c, (size_t)s->params.n_threads, sizeof *s->parts);
    s->wanted_positions = cut_ints(c, n, 1);
    s->wanted_runs = cut_bytes(c, n, sizeof *s->wanted_runs);
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        const size_t half = (size_t)s->model->spec.ropes[r].n_dims / 2;
        s->inv_freq[r] = cut_bytes(c, n_sequences * half, sizeof *s->inv_freq[r]);
        s->rope_factor[r] = cut_bytes(c, n_sequences, sizeof *s->rope_factor[r]);
    }
}

/* The whole block; *bytes gets the sizes of its parts. False on overflow. */
static bool cut_all(struct cutter *c, struct session *s, struct session_bytes *bytes)
{
    const struct model_spec *const spec = &s->model->spec;
    cut_kv(c, spec, &s->params, &s->pages, s->kv, bytes);
    bytes->kv = c->used;
    cut_pass(c, s);
    cut_tables(c, s);
    bytes->scratch = c->used - bytes->kv;
    s->pass.logits = cut_floats(c, (size_t)s->params.n_rows, (size_t)spec->vocab_size);
    bytes->logits = c->used - bytes->kv - bytes->scratch;
    return !c->overflow;
}

/* The parameters with nothing left open, and the number of pages. */
static bool complete(struct session *s, const struct session_params *params, struct err *e)
{
    struct session_params *const p = &s->params;
    const int most = s->model->info.max_positions;
    *p = *params;
    p->n_threads = max_int(1, p->n_threads);
    p->n_batch = max_int(1, p->n_batch);
    p->n_rows = max_int(1, p->n_rows);
    p->n_sequences = max_int(1, p->n_sequences);
    if (p->n_context < 1 || p->n_context > most)
        return err_set(e, ERR_CONTEXT,
                       "a context of %d tokens is not possible: the model's maximum is %d",
                       p->n_context, most);
    const int64_t all = (int64_t)kv_blocks(p->n_context) * p->n_sequences;
    if (all > INT32_MAX)
        return err_no_memory(e);
    p->n_pages = p->n_pages > 0 && p->n_pages < all ? p->n_pages : (int)all;
    s->pages = (struct kv_pages){
        .n_pages = p->n_pages, .n_sequences = p->n_sequences, .n_blocks = kv_blocks(p->n_context)};
    return true;
}

bool session_measure(const struct model *m, const struct session_params *params,
                     struct session_bytes *out, struct err *e)
{
    struct session unused = {.model = m};
    struct cutter c = {0};
    return complete(&unused, params, e) && (cut_all(&c, &unused, out) || err_no_memory(e));
}

static bool take_memory(struct session *s, struct err *e)
{
    struct session_bytes bytes;
    if (!session_measure(s->model, &s->params, &bytes, e))
        return false;
    const size_t total = bytes.kv + bytes.scratch + bytes.logits; /* not too large: cut_all */
    size_t n;
    if (!checked_add(total, CACHE_LINE, &n))
        return err_no_memory(e);
    s->block = calloc(1, n); /* zeroed by the kernel, page by page, on first touch */
    s->kv = calloc((size_t)s->model->spec.num_hidden_layers, sizeof *s->kv);
    if (!s->block || !s->kv)
        return err_set(e, ERR_RUNTIME,
                       "a context of %d tokens needs %zu MiB, which are not to be had",
                       s->params.n_context, total >> 20);
    struct cutter c = {.base = (char *)round_up((size_t)s->block, CACHE_LINE)};
    return cut_all(&c, s, &bytes) || err_no_memory(e);
}

static void fill_pass(struct session *s)
{
    s->pass.spec = &s->model->spec;
    s->pass.weights = &s->model->weights;
    s->pass.kv = s->kv;
    s->pass.moments = s->params.moments;
    s->pass.ids = s->ids;
    s->pass.positions = s->positions;
    s->pass.sequences = s->row_sequences;
    s->pass.runs = s->runs;
    s->pass.logit_rows = s->logit_rows;
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        s->pass.inv_freq[r] = s->inv_freq[r];
        s->pass.rope_factor[r] = s->rope_factor[r];
    }
}

struct session *session_new(const struct model *m, struct compute *c,
                            const struct session_params *params, struct err *e)
{
    struct session *s = calloc(1, sizeof *s);
    struct session_params fitting = *params;
    if (!s) {
        err_no_memory(e);
        return NULL;
    }
    s->model = m;
    s->compute = c;
    fitting.n_threads = compute_n_threads(c);
    if (!complete(s, &fitting, e) || !take_memory(s, e)) {
        session_free(s);
        return NULL;
    }
    kv_pages_reset(&s->pages);
    fill_pass(s);
    s->price = parts_price_of(compute_kernels(c), &m->spec, &m->weights, s->kv, rounds(s));
    return s;
}

void session_free(struct session *s)
{
    if (!s)
        return;
    free(s->block);
    free(s->kv);
    free(s);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static struct sequence *sequence_of(const struct session *s, int sequence)
{
    assert(sequence >= 0 && sequence < s->params.n_sequences);
    return &s->sequences[sequence];
}

static bool check_id(const struct session *s, int32_t id, struct err *e)
{
    const int vocab_size = s->model->spec.vocab_size;
    return (id >= 0 && id < vocab_size) ||
           err_set(e, ERR_RUNTIME, "the token id %d is outside the vocabulary of %d", (int)id,
                   vocab_size);
}

static bool check_room(const struct session *s, int sequence, int n, struct err *e)
{
    const int n_context = s->params.n_context, position = s->sequences[sequence].position;
    return n <= n_context - position ||
           err_set(e, ERR_CONTEXT, "%d tokens do not fit the context of %d%s", position + n,
                   n_context, position ? " (what is there already included)" : "");
}

/* The pages for n more tokens, for which the context has room. */
static bool take_pages(struct session *s, int sequence, int n, struct err *e)
{
    const int position = s->sequences[sequence].position;
    const int wanted = session_wanted_pages(s, sequence, n);
    if (wanted > s->pages.n_free)
        return err_set(e, ERR_CONTEXT, "the KV cache has %d free pages of %d, not %d",
                       s->pages.n_free, s->pages.n_pages, wanted);
    kv_pages_take(&s->pages, s->kv, s->model->spec.num_hidden_layers, sequence, position,
                  position + n);
    return true;
}

/* Frequencies that depend on the length follow the text as it grows (transformers,
 * dynamic_rope_update). */
static void update_ropes(struct session *s, int sequence, int length)
{
    struct sequence *const text = &s->sequences[sequence];
    if (text->rope_length == length)
        return;
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        const struct rope *const rope = &s->model->spec.ropes[r];
        if (text->rope_length && !rope_depends_on_length(rope))
            continue;
        rope_frequencies(rope, length,
                         s->inv_freq[r] + (size_t)sequence * (size_t)(rope->n_dims / 2));
        s->rope_factor[r][sequence] = rope_attention_factor(rope, length);
    }
    text->rope_length = length;
}

/* Makes ready for n more tokens, whose pages are taken. */
static void prepare(struct session *s, int sequence, int n)
{
    struct sequence *const text = &s->sequences[sequence];
    const int end = text->position + n;
    update_ropes(s, sequence, max_int(text->expected, end));
    text->highest = max_int(text->highest, end);
}

/* Row i of a pass, the token at a position, goes into its runs, of which there are *n so far. */
static void add_to_runs(struct kv_run *runs, int *n, int sequence, int position, int i)
{
    struct kv_run *const last = *n ? &runs[*n - 1] : NULL;
    if (last && last->sequence == sequence && last->position + last->n == position)
        last->n++;
    else
        runs[(*n)++] =
            (struct kv_run){.sequence = sequence, .position = position, .row = i, .n = 1};
}

/* Row i of the next pass: the next token of its sequence. */
static void add_row(struct session *s, const struct session_row *row, int i)
{
    struct pass *const p = &s->pass;
    const int position = s->sequences[row->sequence].position++;
    s->ids[i] = row->id;
    s->positions[i] = position;
    s->row_sequences[i] = row->sequence;
    add_to_runs(s->runs, &p->n_runs, row->sequence, position, i);
    if (row->wants_logits)
        s->logit_rows[p->n_rows++] = i;
}

/* The rows that get logits, as a pass of their own. */
static void prepare_wanted(struct session *s)
{
    struct pass *const p = &s->wanted;
    *p = s->pass;
    p->n = p->n_rows;
    p->n_runs = 0;
    p->ids = NULL;
    p->sequences = p->logit_rows = NULL;
    p->positions = s->wanted_positions;
    p->runs = s->wanted_runs;
    p->kv_stored = true;
    for (int i = 0; i < p->n; i++) {
        const int row = s->logit_rows[i];
        s->wanted_positions[i] = s->positions[row];
        add_to_runs(s->wanted_runs, &p->n_runs, s->row_sequences[row], s->positions[row], i);
    }
}

/* At most n_batch rows, whose sequences are prepared. False: the pass was stopped. */
static bool run_pass(struct session *s, const struct session_row *rows, int n, struct err *e)
{
    const int n_layers = s->model->spec.num_hidden_layers;
    s->pass.n = n;
    s->pass.n_rows = 0;
    s->pass.n_runs = 0;
    for (int i = 0; i < n; i++)
        add_row(s, &rows[i], i);
    s->pass.wanted = s->pass.parts = NULL;
    if (s->pass.n_rows < n) {
        prepare_wanted(s);
        s->pass.wanted = &s->wanted;
    }
    if (pass_is_large(&s->pass.size, n) && !s->pass.moments)
        parts_deal(&s->pass, &s->price, s->parts, s->part_runs);
    struct trip trip = {.pass = &s->pass, .stop = s->params.stop, .n_layers = n_layers};
    compute_run(s->compute, forward_run, &trip);
    return atomic_load(&trip.n_layers) == n_layers || err_interrupted(e);
}

/* ---- one text -------------------------------------------------------------------------------- */

/* all: every token gives a row of logits, one behind the other; else only the last. */
static const float *run_text(struct session *s, const int32_t *ids, int n, bool all, struct err *e)
{
    float *const logits = s->pass.logits;
    if (!check_room(s, 0, n, e))
        return NULL;
    for (int i = 0; i < n; i++)
        if (!check_id(s, ids[i], e))
            return NULL;
    if (!take_pages(s, 0, n, e))
        return NULL;
    prepare(s, 0, n);
    for (int done = 0; done < n;) {
        const int n_now = min_int(n - done, s->params.n_batch);
        for (int i = 0; i < n_now; i++)
            s->rows[i] =
                (struct session_row){.id = ids[done + i], .wants_logits = all || done + i == n - 1};
        if (!run_pass(s, s->rows, n_now, e))
            return NULL;
        if (all)
            s->pass.logits += (size_t)n_now * (size_t)s->model->spec.vocab_size;
        done += n_now;
    }
    s->pass.logits = logits;
    return logits;
}

void session_expect(struct session *s, int n)
{
    session_sequence_expect(s, 0, n);
}

const float *session_prompt(struct session *s, const int32_t *ids, int n, struct err *e)
{
    return run_text(s, ids, n, false, e);
}

const float *session_score(struct session *s, const int32_t *ids, int n, struct err *e)
{
    if (n > s->params.n_rows) {
        err_set(e, ERR_RUNTIME, "%d rows of logits were asked for, %d can be had", n,
                s->params.n_rows);
        return NULL;
    }
    return run_text(s, ids, n, true, e);
}

int session_at_once(const struct session *s, int n)
{
    const struct sequence *const text = &s->sequences[0];
    const int length = max_int(text->expected, text->position + 1);
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        const int until = rope_same_until(&s->model->spec.ropes[r], length);
        n = min_int(n, until - text->position);
    }
    return n;
}

const float *session_step(struct session *s, int32_t id, struct err *e)
{
    return run_text(s, &id, 1, false, e);
}

int session_position(const struct session *s)
{
    return session_sequence_position(s, 0);
}

bool session_rewind(struct session *s, int position)
{
    return session_sequence_rewind(s, 0, position);
}

/* ---- many sequences -------------------------------------------------------------------------- */

static bool check_rows(const struct session *s, const struct session_row *rows, int n,
                       struct err *e)
{
    int n_wanted = 0;
    if (n < 1 || n > s->params.n_batch)
        return err_set(e, ERR_RUNTIME, "%d rows in one pass: there can be 1 to %d", n,
                       s->params.n_batch);
    for (int i = 0; i < n; i++) {
        n_wanted += rows[i].wants_logits;
        if (rows[i].sequence < 0 || rows[i].sequence >= s->params.n_sequences)
            return err_set(e, ERR_RUNTIME, "the sequence %d is not one of %d", rows[i].sequence,
                           s->params.n_sequences);
        if (!check_id(s, rows[i].id, e))
            return false;
    }
    return n_wanted <= s->params.n_rows ||
           err_set(e, ERR_RUNTIME, "%d rows of logits were asked for, %d can be had", n_wanted,
                   s->params.n_rows);
}

/* Room and pages for all rows, or nothing. One sequence after the other takes its pages: what two
 * share and both write into is copied by the first alone. */
static bool admit(struct session *s, const struct session_row *rows, int n, struct err *e)
{
    bool ok = true;
    for (int i = 0; i < n; i++) {
        s->sequences[rows[i].sequence].n_new++;
        s->sequences[rows[i].sequence].admitted = false;
    }
    for (int i = 0; i < n && ok; i++) {
        struct sequence *const text = &s->sequences[rows[i].sequence];
        ok = text->admitted || (check_room(s, rows[i].sequence, text->n_new, e) &&
                                take_pages(s, rows[i].sequence, text->n_new, e));
        text->admitted = ok;
    }
    for (int i = 0; i < n; i++) {
        struct sequence *const text = &s->sequences[rows[i].sequence];
        if (ok && text->n_new)
            prepare(s, rows[i].sequence, text->n_new);
        else if (!ok)
            kv_pages_drop(&s->pages, rows[i].sequence, text->position);
        text->n_new = 0;
    }
    return ok;
}

const float *session_run(struct session *s, const struct session_row *rows, int n, struct err *e)
{
    if (!check_rows(s, rows, n, e) || !admit(s, rows, n, e))
        return NULL;
    return run_pass(s, rows, n, e) ? s->pass.logits : NULL;
}

void session_sequence_expect(struct session *s, int sequence, int n)
{
    sequence_of(s, sequence)->expected = n;
}

int session_sequence_position(const struct session *s, int sequence)
{
    return sequence_of(s, sequence)->position;
}

/* True where every ring still holds what is seen from that position on. */
static bool rings_reach(const struct session *s, int sequence, int position)
{
    const struct model_spec *const spec = &s->model->spec;
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        const int lost = kv_blocks(sequence_of(s, sequence)->highest) - s->kv[i].n_ring;
        const int needed = max_int(0, position - spec->layers[i].window + 1);
        if (s->kv[i].n_ring && needed < (int64_t)lost * KV_PAGE)
            return false;
    }
    return true;
}

bool session_sequence_rewind(struct session *s, int sequence, int position)
{
    struct sequence *const text = sequence_of(s, sequence);
    if (position < 0 || position > text->position ||
        (position > 0 && !rings_reach(s, sequence, position)))
        return false;
    text->position = position;
    if (position == 0)
        text->highest = 0;
    kv_pages_drop(&s->pages, sequence, position);
    return true;
}

void session_sequence_reset(struct session *s, int sequence)
{
    session_sequence_rewind(s, sequence, 0);
    sequence_of(s, sequence)->expected = 0;
}

/* True where the keys of both would be rotated alike. */
static bool rotates_alike(const struct session *s, const struct sequence *from,
                          const struct sequence *to)
{
    const int longest = max_int(from->rope_length, to->expected);
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        const struct rope *const rope = &s->model->spec.ropes[r];
        if (rope_depends_on_length(rope) && longest > rope->original_max_position_embeddings)
            return false;
    }
    return true;
}

bool session_share(struct session *s, int from, int to, int n)
{
    const struct sequence *const source = sequence_of(s, from);
    struct sequence *const text = sequence_of(s, to);
    assert(from != to && text->position == 0 && n >= 0 && n <= source->position);
    if (!rings_reach(s, from, n) || !rotates_alike(s, source, text))
        return false;
    kv_pages_share(&s->pages, s->kv, s->model->spec.num_hidden_layers, from, to, n);
    text->position = n;
    text->highest = source->highest;
    return true;
}

int session_free_pages(const struct session *s)
{
    return s->pages.n_free;
}

int session_wanted_pages(const struct session *s, int sequence, int n)
{
    const int position = sequence_of(s, sequence)->position;
    return kv_pages_wanted(&s->pages, sequence, position, position + n);
}
