/*
 * Each line at work has a slot, which is a sequence of the session. A step is one pass of rows: the
 * next token of every line that is being answered, and pieces of prompts as far as the pass has
 * room. Lines come and go between any two steps.
 *
 * Memory: a line is let in when the pages that its prompt and its longest answer can need are not
 * promised to others, so that nothing fails half-way. Slots without a line keep their prompt's
 * pages for lines that begin alike, until slot or pages are needed.
 *
 * Fairness: lines are let in by their order. Of the rows for prompts the oldest gets a half, so
 * that a long one comes through; the rest go to those with least left, which it must not hold up.
 */
#include "cli/batch_engine.h"

#include "cli/logprob.h"
#include "cli/stream.h"
#include "core/memory.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROMPT_ROWS = 64, /* of a pass, the least that are there for prompts */
    KEPT = 16,        /* slots more than lines, for beginnings */
    WORTH = 16,       /* tokens in common that are worth sharing, and waiting for */
    SCORED_ROWS = 64, /* most rows of logits in a pass that scores */
};

struct slot {
    struct batch_work *work; /* NULL: only kept for its beginning */
    int32_t *ids;            /* [n_ids] of the prompt; a copy, which outlives the work */
    size_t n_ids;
    size_t n_read;    /* of the work's ids, those that the session has */
    size_t n_pages;   /* promised to the line */
    uint64_t age;     /* when it was let in, or last used */
    size_t n_planned; /* rows of the step that is being made */
    bool held;        /* in that step: waits until another has read a beginning in common */
    bool ended;       /* in that step: its line needs no more */
};

/* A row of logits and what it is for. */
struct wanted {
    struct slot *slot;
    size_t position; /* of the token that the row predicts */
    double logprob;
    struct err err;
    bool ok;
    bool finite; /* else the line, and it alone, ends with an error */
};

struct batch_engine {
    const struct batch_tools *tools;
    struct session *session;
    int n_pages, n_promised, n_parallel, n_slots, n_rows_most, n_at_work, n_vocab;
    struct slot *slots;       /* [n_slots] */
    struct slot **by_ids;     /* [n_at_work] the slots with lines in the order of their ids */
    struct session_row *rows; /* [most_rows()] of a step */
    struct wanted *wanted;    /* the same */
    int n_rows, n_wanted;
    const float *logits;        /* [n_wanted, n_vocab] */
    uint64_t clock;             /* counts what makes slots older */
    struct batch_work *waiting; /* the next line, for which there are no pages yet */
    struct batch_work *finished, **finished_end;
    struct batch_engine_counts counts;
};

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t pages_for(size_t n_tokens)
{
    return (n_tokens + SESSION_PAGE - 1) / SESSION_PAGE;
}

/* --kv-memory, or a quarter of the usable memory, as far as a size can express it. */
static size_t most_memory(const struct options *o)
{
    const uint64_t usable = memory_usable();
    return o->kv_memory > 0 ? o->kv_memory : (usable < SIZE_MAX ? (size_t)usable : SIZE_MAX) / 4;
}

/* Rows of the largest pass. */
static int most_rows(const struct batch_engine *e)
{
    const struct loaded *const l = &e->tools->loaded;
    return max_int(model_pass_rows(l->model, compute_n_threads(l->compute)),
                   PROMPT_ROWS + e->n_parallel);
}

static struct session_params params_of(const struct batch_engine *e)
{
    const struct batch_tools *tools = e->tools;
    const bool score = tools->task == BATCH_SCORE;
    return (struct session_params){
        .n_context = tools->n_context,
        .n_batch = most_rows(e),
        .n_rows = score ? SCORED_ROWS : e->n_parallel,
        .n_threads = compute_n_threads(tools->loaded.compute),
        .n_sequences = e->n_slots,
        .n_pages = 1,
        .precision = (enum precision)tools->o->precision,
        .kv = (enum session_kv)tools->o->kv,
        .stop = stream_interrupt(),
    };
}

/* Measures a session with a single page. Unless --parallel was given, halves the number of lines
 * until the rings of layers with windows, which every slot needs, fit: into half of the memory
 * where other layers need pages too. */
static bool settle_slots(struct batch_engine *e, struct session_bytes *bytes, struct err *err)
{
    const struct options *o = e->tools->o;
    for (;;) {
        const struct session_params params = params_of(e);
        if (!session_measure(e->tools->loaded.model, &params, bytes, err))
            return false;
        const size_t most = bytes->kv_page > 0 ? most_memory(o) / 2 : most_memory(o);
        if (o->given[OPT_PARALLEL] || e->n_parallel == 1 || bytes->kv - bytes->kv_page <= most)
            return true;
        e->n_parallel /= 2;
        e->n_slots /= 2;
    }
}

/* How many pages there is room for. */
static bool count_pages(struct batch_engine *e, struct err *err)
{
    struct session_bytes bytes;
    const struct options *o = e->tools->o;
    const size_t most = most_memory(o);
    if (!settle_slots(e, &bytes, err))
        return false;
    const size_t all = (size_t)e->n_slots * pages_for((size_t)e->tools->n_context);
    const size_t windows = bytes.kv - bytes.kv_page;
    const size_t left = most > windows ? most - windows : 0;
    const size_t n = bytes.kv_page > 0 ? left / bytes.kv_page : all;
    if (windows > most || n == 0)
        return err_set(err, o->kv_memory > 0 ? ERR_USAGE : ERR_RUNTIME,
                       "--kv-memory must be %zu bytes at least where --parallel is %d",
                       windows + bytes.kv_page, e->n_parallel);
    e->n_pages = (int)min_size(min_size(n, all), INT_MAX);
    return true;
}

static bool open_session(struct batch_engine *e, struct err *err)
{
    const struct loaded *l = &e->tools->loaded;
    struct session_bytes bytes;
    if (!count_pages(e, err))
        return false;
    struct session_params params = params_of(e);
    params.n_pages = e->n_pages;
    e->n_rows_most = params.n_rows;
    e->session = session_new(l->model, l->compute, &params, err);
    if (e->session || !session_measure(l->model, &params, &bytes, err))
        return e->session != NULL;
    return err_set(err, ERR_RUNTIME,
                   "%zu MiB for the KV cache of all lines are not to be had; --kv-memory sets less",
                   bytes.kv >> 20);
}

struct batch_engine *batch_engine_new(const struct batch_tools *tools, struct err *err)
{
    struct batch_engine *e = calloc(1, sizeof *e);
    if (!e) {
        err_no_memory(err);
        return NULL;
    }
    e->tools = tools;
    e->n_parallel = tools->o->parallel;
    e->n_slots = e->n_parallel + KEPT;
    e->n_vocab = model_info(tools->loaded.model)->vocab_size;
    e->finished_end = &e->finished;
    const size_t n_rows = (size_t)most_rows(e);
    e->slots = calloc((size_t)e->n_slots, sizeof *e->slots);
    e->by_ids = calloc((size_t)e->n_parallel, sizeof(struct slot *));
    e->rows = calloc(n_rows, sizeof *e->rows);
    e->wanted = calloc(n_rows, sizeof *e->wanted);
    if (!e->slots || !e->by_ids || !e->rows || !e->wanted)
        err_no_memory(err);
    else if (open_session(e, err))
        return e;
    batch_engine_free(e);
    return NULL;
}

void batch_engine_free(struct batch_engine *e)
{
    if (!e)
        return;
    for (int i = 0; e->slots && i < e->n_slots; i++) {
        batch_work_free(e->slots[i].work);
        free(e->slots[i].ids);
    }
    batch_work_free(e->waiting);
    for (struct batch_work *w; (w = batch_engine_finished(e)) != NULL;)
        batch_work_free(w);
    session_free(e->session);
    free(e->slots);
    free(e->by_ids);
    free(e->rows);
    free(e->wanted);
    free(e);
}

static int sequence_of(const struct batch_engine *e, const struct slot *s)
{
    return (int)(s - e->slots);
}

static void forget(struct batch_engine *e, struct slot *s)
{
    session_sequence_reset(e->session, sequence_of(e, s));
    free(s->ids);
    *s = (struct slot){.work = NULL};
}

/* The slot without a line that was used longest ago; with `kept`, of those that keep a prompt. */
static struct slot *oldest_idle(const struct batch_engine *e, bool kept)
{
    struct slot *oldest = NULL;
    for (int i = 0; i < e->n_slots; i++) {
        struct slot *s = &e->slots[i];
        if (!s->work && (!kept || s->n_ids > 0) && (!oldest || s->age < oldest->age))
            oldest = s;
    }
    return oldest;
}

/* ---- in -------------------------------------------------------------------------------------- */

static size_t n_common(const struct slot *a, const struct slot *b)
{
    size_t n = 0;
    const size_t most = min_size(a->n_ids, b->n_ids);
    while (n < most && a->ids[n] == b->ids[n])
        n++;
    return n;
}

/* The order of two lines by their ids: below 0 where a comes before b, above it where behind. */
static int compare_ids(const struct slot *a, const struct slot *b)
{
    const size_t n = n_common(a, b);
    if (n == a->n_ids || n == b->n_ids)
        return (a->n_ids > n) - (b->n_ids > n);
    return a->ids[n] < b->ids[n] ? -1 : 1;
}

static void finish(struct batch_engine *e, struct batch_work *work)
{
    work->next = NULL;
    *e->finished_end = work;
    e->finished_end = &work->next;
}

/* Lines at work are sorted by their ids, so that those that begin alike stand side by side in a
 * pass: what they share is read once for all of them. */
static void line_up(struct batch_engine *e, struct slot *s)
{
    int i = e->n_at_work++;
    for (; i > 0 && compare_ids(e->by_ids[i - 1], s) > 0; i--)
        e->by_ids[i] = e->by_ids[i - 1];
    e->by_ids[i] = s;
}

/* Gives the line a slot, where the pages that it may need are not promised to others. False where
 * it has to wait, or, with *err, where memory ran out. */
static bool let_in(struct batch_engine *e, struct batch_work *work, struct err *err)
{
    const size_t n_pages = pages_for(batch_work_most_tokens(work));
    if (e->n_at_work == e->n_parallel || n_pages > (size_t)(e->n_pages - e->n_promised))
        return false;
    struct slot *s = oldest_idle(e, false);
    assert(s);
    forget(e, s);
    s->ids = malloc((work->ids.n + 1) * sizeof *s->ids);
    if (!s->ids)
        return err_no_memory(err);
    memcpy(s->ids, work->ids.id, work->ids.n * sizeof *s->ids);
    s->n_ids = work->ids.n;
    s->work = work;
    s->n_pages = n_pages;
    s->age = ++e->clock;
    session_sequence_expect(e->session, sequence_of(e, s), (int)work->ids.n);
    e->n_promised += (int)n_pages;
    line_up(e, s);
    e->counts.n_prompt += work->ids.n;
    return true;
}

bool batch_engine_has_room(const struct batch_engine *e)
{
    /* Lines that are finished at once take no slot: their answers go out before others come in. */
    return !e->waiting && !e->finished && e->n_at_work < e->n_parallel;
}

bool batch_engine_is_idle(const struct batch_engine *e)
{
    return !e->waiting && e->n_at_work == 0 && !e->finished;
}

bool batch_engine_add(struct batch_engine *e, struct batch_work *work, struct err *err)
{
    const size_t n_pages = pages_for(batch_work_most_tokens(work));
    const bool scored = e->tools->task == BATCH_SCORE && work->n_prompt == work->ids.n;
    if (n_pages > (size_t)e->n_pages)
        err_set(&work->line.error, ERR_CONTEXT,
                "prompt and answer of up to %zu tokens exceed --kv-memory, which has room for %zu",
                batch_work_most_tokens(work), (size_t)e->n_pages * SESSION_PAGE);
    *err = (struct err){.code = ERR_NONE};
    if (n_pages > (size_t)e->n_pages || scored || work->reply.end != REPLY_OPEN)
        finish(e, work);
    else if (!let_in(e, work, err))
        e->waiting = work;
    return err->code == ERR_NONE;
}

/* ---- beginnings in common -------------------------------------------------------------------- */

/* The slot whose text has the longest beginning in common with s; *n gets its length, at least
 * WORTH. Lines at work count with their whole prompt if they were let in earlier, kept prompts with
 * what the session still holds. Tokens whose logits are needed are not shared: the last of the
 * prompt, and all behind it. */
static struct slot *find_alike(struct batch_engine *e, const struct slot *s, size_t *n)
{
    struct slot *best = NULL;
    *n = WORTH - 1;
    for (int i = 0; i < e->n_slots; i++) {
        struct slot *other = &e->slots[i];
        if (other == s || (other->work && other->age > s->age))
            continue;
        size_t common = n_common(s, other);
        const size_t has = (size_t)session_sequence_position(e->session, sequence_of(e, other));
        common = common < s->work->n_prompt ? common : s->work->n_prompt - 1;
        common = other->work || common < has ? common : has;
        if (common > *n) {
            *n = common;
            best = other;
        }
    }
    return best;
}

/* A line that has read nothing takes over what another has in common with it. False where it is to
 * wait until that one has read so far. */
static bool begin(struct batch_engine *e, struct slot *s)
{
    size_t n;
    struct slot *other = find_alike(e, s, &n);
    if (!other)
        return true;
    const int from = sequence_of(e, other);
    if (other->work && (size_t)session_sequence_position(e->session, from) < n)
        return false;
    if (session_share(e->session, from, sequence_of(e, s), (int)n)) {
        s->n_read = n;
        e->counts.n_shared += n;
        if (!other->work)
            other->age = ++e->clock;
    }
    return true;
}

/* ---- the rows of a step ---------------------------------------------------------------------- */

static bool is_answering(const struct slot *s)
{
    return s->work && s->n_read == s->n_ids;
}

static bool is_reading(const struct slot *s)
{
    return s->work && s->n_read < s->n_ids;
}

static size_t n_left(const struct slot *s)
{
    return s->n_ids - s->n_read - s->n_planned;
}

/* Whether the logits behind the id at `at` are of use: behind the prompt to answer, before each
 * token of the completion to score. */
static bool wants(const struct batch_engine *e, const struct slot *s, size_t at)
{
    if (e->tools->task == BATCH_GENERATE)
        return at + 1 == s->n_ids;
    return at + 1 >= s->work->n_prompt && at + 1 < s->n_ids;
}

static void add_row(struct batch_engine *e, struct slot *s, int32_t id, bool wanted, size_t next)
{
    e->rows[e->n_rows++] = (struct session_row){id, sequence_of(e, s), wanted};
    if (wanted)
        e->wanted[e->n_wanted++] = (struct wanted){.slot = s, .position = next};
}

/* Up to n rows of the prompt that is being read, fewer where logits run out. */
static size_t add_prompt(struct batch_engine *e, struct slot *s, size_t n)
{
    size_t added = 0;
    for (; added < n && n_left(s) > 0; added++) {
        const size_t at = s->n_read + s->n_planned;
        const bool wanted = wants(e, s, at);
        if (wanted && e->n_wanted == e->n_rows_most)
            break;
        add_row(e, s, s->ids[at], wanted, at + 1);
        s->n_planned++;
    }
    return added;
}

/* The slot with prompt left that is oldest, or with `shortest` that has least left of it. */
static struct slot *choose_prompt(const struct batch_engine *e, bool shortest)
{
    struct slot *best = NULL;
    for (int i = 0; i < e->n_slots; i++) {
        struct slot *s = &e->slots[i];
        if (!is_reading(s) || s->held || n_left(s) == 0)
            continue;
        if (!best || (shortest ? n_left(s) < n_left(best) : s->age < best->age))
            best = s;
    }
    return best;
}

static void plan(struct batch_engine *e)
{
    e->n_rows = e->n_wanted = 0;
    for (int i = 0; i < e->n_slots; i++) {
        struct slot *s = &e->slots[i];
        s->n_planned = 0;
        s->ended = false;
        s->held = is_reading(s) && s->n_read == 0 && !begin(e, s);
    }
    for (int i = 0; i < e->n_at_work; i++) {
        struct slot *s = e->by_ids[i];
        if (is_answering(s)) {
            const struct reply *r = &s->work->reply;
            add_row(e, s, r->ids.id[r->ids.n - 1], true, s->n_ids + r->ids.n);
        }
    }
    size_t left = (size_t)(most_rows(e) - e->n_rows);
    struct slot *s = choose_prompt(e, false);
    if (s)
        left -= add_prompt(e, s, left / 2);
    for (size_t added = 1; left > 0 && added > 0; left -= added) {
        s = choose_prompt(e, true);
        added = s ? add_prompt(e, s, left) : 0;
    }
}

/* Evicts kept prompts, oldest first, until the planned rows fit the free pages. Lines at work
 * always fit, since let_in promised their pages; the estimate may still exceed what is free,
 * because two lines that share a page each count a copy and only the first to write makes one. */
static void make_room(struct batch_engine *e)
{
    for (;;) {
        int wanted = 0;
        for (int i = 0; i < e->n_slots; i++) {
            struct slot *s = &e->slots[i];
            const int n = is_answering(s) ? 1 : (int)s->n_planned;
            wanted += n > 0 ? session_wanted_pages(e->session, i, n) : 0;
        }
        struct slot *kept = oldest_idle(e, true);
        if (wanted <= session_free_pages(e->session) || !kept)
            return;
        forget(e, kept);
    }
}

/* ---- what comes of it ------------------------------------------------------------------------ */

/* Each row of logits is some worker's alone, and so is the reply that takes it. */
static void take_logits(struct worker *w, void *context)
{
    struct batch_engine *e = context;
    for (int i = w->index; i < e->n_wanted; i += w->n_workers) {
        struct wanted *t = &e->wanted[i];
        const float *logits = e->logits + (size_t)i * (size_t)e->n_vocab;
        t->ok = true;
        if (e->tools->task == BATCH_SCORE) {
            t->logprob = logprob_of(logits, e->n_vocab, t->slot->ids[t->position]);
            t->finite = !isnan(t->logprob);
        } else {
            struct reply *r = &t->slot->work->reply;
            t->ok = reply_take(r, logits, t->position, &t->err);
            t->finite = r->end != REPLY_NOT_FINITE;
        }
    }
}

static void step_out(struct batch_engine *e, const struct slot *s)
{
    int i = 0;
    while (e->by_ids[i] != s)
        i++;
    for (e->n_at_work--; i < e->n_at_work; i++)
        e->by_ids[i] = e->by_ids[i + 1];
}

/* The line leaves; its slot keeps the prompt for others. */
static void leave(struct batch_engine *e, struct slot *s)
{
    step_out(e, s);
    finish(e, s->work);
    s->work = NULL;
    s->age = ++e->clock;
    e->n_promised -= (int)s->n_pages;
    (void)session_sequence_rewind(e->session, sequence_of(e, s), (int)s->n_ids);
}

/* Whether this row was the last that its line needs. */
static bool ends_line(const struct batch_engine *e, const struct wanted *t)
{
    const struct batch_work *work = t->slot->work;
    if (work->line.error.code != ERR_NONE)
        return true;
    return e->tools->task == BATCH_SCORE ? t->position + 1 == t->slot->n_ids
                                         : work->reply.end != REPLY_OPEN;
}

static bool harvest(struct batch_engine *e, struct err *err)
{
    for (int i = 0; i < e->n_wanted; i++) {
        const struct wanted *t = &e->wanted[i];
        struct batch_work *work = t->slot->work;
        if (!t->ok && t->err.code != ERR_LOAD) {
            *err = t->err;
            return false;
        }
        if (t->slot->ended) /* with an error at an earlier row of this pass */
            continue;
        if (!t->ok)
            work->line.error = t->err;
        else if (!t->finite)
            sample_not_finite(&work->line.error);
        work->logprob += t->logprob;
        e->counts.n_answer++;
        t->slot->ended = ends_line(e, t);
    }
    for (int i = 0; i < e->n_slots; i++) {
        e->slots[i].n_read += e->slots[i].n_planned;
        if (e->slots[i].ended)
            leave(e, &e->slots[i]);
    }
    return true;
}

bool batch_engine_step(struct batch_engine *e, struct err *err)
{
    *err = (struct err){.code = ERR_NONE};
    if (e->waiting && let_in(e, e->waiting, err))
        e->waiting = NULL;
    if (err->code != ERR_NONE)
        return false;
    if (e->n_at_work == 0)
        return true;
    plan(e);
    assert(e->n_rows > 0);
    make_room(e);
    e->logits = session_run(e->session, e->rows, e->n_rows, err);
    if (!e->logits)
        return false;
    e->counts.n_steps++;
    e->counts.n_rows += (size_t)e->n_rows;
    e->counts.n_lines += (size_t)e->n_at_work;
    if (e->n_wanted > 0)
        compute_run(e->tools->loaded.compute, take_logits, e);
    return harvest(e, err);
}

struct batch_work *batch_engine_finished(struct batch_engine *e)
{
    struct batch_work *work = e->finished;
    if (!work)
        return NULL;
    e->finished = work->next;
    if (!e->finished)
        e->finished_end = &e->finished;
    return work;
}

const struct batch_engine_counts *batch_engine_counts(const struct batch_engine *e)
{
    return &e->counts;
}
