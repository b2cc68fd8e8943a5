/*
 * Cuts attention into units: queries of the heads that share a key head, of one run of positions or
 * of several whose texts begin with the same pages, so that a block of the cache is read once for
 * all of them. Chooses how units are dealt out, converts blocks to f32 where many rows pay for it,
 * and calls the kernel block by block in order, so that no cutting changes a bit. Owns no memory:
 * cache and scratch are the caller's. The softmax is the kernels'; where a page lies is kv.c's.
 */
#include "core/attend.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/*
 * A unit of work is up to UNIT_ROWS rows that read the same keys; a row is a query of one head.
 * They are the heads of a group, query after query, of one run or of several that begin with the
 * same pages. With more than CONVERT_ROWS rows it pays to convert a block of the cache to f32 once
 * for all.
 */
enum { UNIT_ROWS = 96, CONVERT_ROWS = 12 };

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

/* A worker's own scratch. */
struct room {
    float *acc;     /* [UNIT_ROWS, kv_value_stride()] */
    float *k_block; /* a block as f32 or, where queries are bf16, as the kernel wants it */
    float *v_block;
    uint16_t *q; /* [UNIT_ROWS, k_dim rounded up]: queries as bf16 */
};

/* What the units of a call have in common. */
struct call {
    const struct kernels *kernels;
    const struct attend *a;
    const struct kv *kv;
    const float *q;
    float *out;
    bool rounded;
    struct room room;
};

/* Values of a query in bf16. */
static size_t query_stride(const struct kv *kv)
{
    return round_up((size_t)kv->k_dim, 32);
}

size_t attend_scratch(const struct kv *kv)
{
    return kv_value_stride(kv) * (UNIT_ROWS + KV_PAGE) +
           query_stride(kv) * (KV_PAGE + UNIT_ROWS / 2);
}

/* Each part is whole cache lines. */
static struct room cut_room(const struct kv *kv, float *scratch)
{
    struct room r = {.acc = scratch};
    r.k_block = r.acc + kv_value_stride(kv) * UNIT_ROWS;
    r.v_block = r.k_block + query_stride(kv) * KV_PAGE;
    r.q = (uint16_t *)(void *)(r.v_block + kv_value_stride(kv) * KV_PAGE);
    assert(kernels_attend_room((size_t)kv->k_dim, kv_value_stride(kv)) <=
           (size_t)((char *)r.q - (char *)r.k_block)); /* that of attend_bf16 */
    return r;
}

/* The query as the kernels want it; r is its place in the unit. */
static const void *prepare_query(const struct call *c, const float *q, int r)
{
    if (!c->rounded)
        return q;
    uint16_t *const out = c->room.q + (size_t)r * query_stride(c->kv);
    c->kernels->to_bf16(out, q, (size_t)c->kv->k_dim);
    return out;
}

/* Rows of a head of the cache: [first, first + n) of a run, or all n of several runs. */
struct unit {
    const struct kv_run *runs; /* [n_runs]; NULL: there is no unit */
    int n_runs;
    int n_shared; /* blocks that the runs have in common; 0 where there is but one */
    int head;
    int first;
    int n;
};

static int group_size(const struct call *c)
{
    return c->a->n_heads / c->kv->n_kv_heads;
}

/* Rows of n runs for a head of the cache. */
static int count_rows(const struct call *c, const struct kv_run *runs, int n)
{
    int n_rows = 0;
    for (int i = 0; i < n; i++)
        n_rows += runs[i].n * group_size(c);
    return n_rows;
}

/* How many rows of one of its runs belong to the unit. */
static int rows_of(const struct call *c, const struct unit *u, int run)
{
    return u->n_runs == 1 ? u->n : count_rows(c, &u->runs[run], 1);
}

/* Which query row r of a run is. */
struct query {
    int head;
    int position;
    size_t at; /* among the queries of the call, [n, n_heads] */
};

static struct query query_of(const struct call *c, const struct unit *u, int run, int r)
{
    const int group = group_size(c), i = (u->first + r) / group;
    const int head = u->head * group + (u->first + r) % group;
    const size_t row = (size_t)(u->runs[run].row + i);
    return (struct query){.head = head,
                          .position = u->runs[run].position + i,
                          .at = row * (size_t)c->a->n_heads + (size_t)head};
}

/* A sink acts like a key that was seen before all others, with that score and a value of zero. */
static void begin_rows(const struct call *c, const struct unit *u, struct attend_row *rows)
{
    const struct attend *const a = c->a;
    const size_t stride = kv_value_stride(c->kv);
    int place = 0;
    memset(c->room.acc, 0, (size_t)u->n * stride * sizeof *c->room.acc);
    for (int run = 0; run < u->n_runs; run++)
        for (int r = 0; r < rows_of(c, u, run); r++, place++) {
            const struct query query = query_of(c, u, run, r);
            rows[place] = (struct attend_row){
                .q = prepare_query(c, c->q + query.at * (size_t)c->kv->k_dim, place),
                .acc = c->room.acc + (size_t)place * stride,
                .max = a->sinks ? a->sinks[query.head] : -INFINITY,
                .sum = a->sinks ? 1 : 0,
                .slope = a->alibi_slopes ? a->alibi_slopes[query.head] : 0,
                .position = query.position,
                .first = a->window ? max_int(0, query.position - a->window + 1) : 0,
            };
        }
}

static void end_rows(const struct call *c, const struct unit *u, const struct attend_row *rows)
{
    const size_t v_dim = (size_t)c->kv->v_dim;
    for (int run = 0; run < u->n_runs; run++)
        for (int r = 0; r < rows_of(c, u, run); r++, rows++) {
            const size_t at = query_of(c, u, run, r).at;
            const float inverse = rows->sum == 0 ? 0 : 1 / rows->sum;
            c->kernels->scale(c->out + at * v_dim, rows->acc, inverse, v_dim);
        }
}

/* The block in f32, without its scales. */
static void convert(const struct call *c, struct attend_args *args)
{
    const size_t n_k = args->k_dim * KV_PAGE, n_v = args->v_dim * KV_PAGE;
    if (c->kv->type == KV_F16) {
        c->kernels->to_f32[WEIGHT_F16](c->room.k_block, args->k, n_k);
        c->kernels->to_f32[WEIGHT_F16](c->room.v_block, args->v, n_v);
    } else {
        const float one = 1;
        c->kernels->decode[CODE_I8](c->room.k_block, args->k, n_k, n_k, &one, NULL);
        c->kernels->decode[CODE_I8](c->room.v_block, args->v, n_v, n_v, &one, NULL);
    }
    args->k = c->room.k_block;
    args->v = c->room.v_block;
}

/* Attends the rows to one block; `after` is the block to prefetch. */
static void attend_block(const struct call *c, const struct kv_block *b,
                         const struct kv_block *after, int block, struct attend_row *rows, int n)
{
    struct attend_args args = {
        .rows = rows,
        .n_rows = (size_t)n,
        .k = b->k,
        .v = b->v,
        .k_scales = b->k_scales,
        .v_scales = b->v_scales,
        .next_k = after->k,
        .next_v = after->v,
        .k_dim = (size_t)c->kv->k_dim,
        .v_dim = kv_value_stride(c->kv),
        .position = block * KV_PAGE,
        .scale = c->a->scale,
        .softcap = c->a->softcap,
        .room = c->room.k_block,
    };
    enum kv_type type = c->kv->type;
    if (c->rounded) {
        c->kernels->attend_bf16[type](&args);
        return;
    }
    if (type != KV_F32 && n > CONVERT_ROWS) {
        convert(c, &args);
        type = KV_F32;
    }
    c->kernels->attend[type](&args);
}

/* The first block that a unit looks at. */
static int first_block(const struct call *c, const struct unit *u)
{
    const int position = u->runs->position + u->first / group_size(c);
    return c->a->window ? max_int(0, position - c->a->window + 1) / KV_PAGE : 0;
}

/* The block that these n rows read next, so that the kernel can prefetch it: the next one of this
 * run, else the first of the unit's next run, else of the next unit. Nothing is prefetched for many
 * rows in f32: arithmetic hides the latency, and what is not f32 is converted before kernels see
 * it.
 */
static struct kv_block block_after(const struct call *c, const struct unit *u, int run, int n,
                                   int block, int last, const struct unit *next)
{
    if (n > CONVERT_ROWS && !c->rounded)
        return (struct kv_block){.k = NULL};
    if (block < last)
        return kv_block(c->kv, u->runs[run].sequence, u->head, block + 1);
    if (run + 1 < u->n_runs)
        return kv_block(c->kv, u->runs[run + 1].sequence, u->head, u->n_shared);
    if (next->runs)
        return kv_block(c->kv, next->runs->sequence, next->head, first_block(c, next));
    return (struct kv_block){.k = NULL};
}

/* All rows over the blocks that their runs share, which all of them see whole. */
static void attend_shared(const struct call *c, const struct unit *u, struct attend_row *rows)
{
    for (int block = 0; block < u->n_shared; block++) {
        const struct kv_block after = block_after(c, u, 0, u->n, block, u->n_shared, NULL);
        const struct kv_block b = kv_block(c->kv, u->runs->sequence, u->head, block);
        attend_block(c, &b, &after, block, rows, u->n);
    }
}

/* The n rows of one run over the other blocks. Positions ascend over them, so those that see
 * nothing of a block are at the beginning and at the end. */
static void attend_own(const struct call *c, const struct unit *u, int run, struct attend_row *rows,
                       int n, const struct unit *next)
{
    const int sequence = u->runs[run].sequence, last = rows[n - 1].position / KV_PAGE;
    int begin = 0, end = 0;
    for (int block = max_int(u->n_shared, rows[0].first / KV_PAGE); block <= last; block++) {
        const struct kv_block after = block_after(c, u, run, n, block, last, next);
        const struct kv_block b = kv_block(c->kv, sequence, u->head, block);
        while (rows[begin].position < block * KV_PAGE)
            begin++;
        while (end < n && rows[end].first < (block + 1) * KV_PAGE)
            end++;
        attend_block(c, &b, &after, block, rows + begin, end - begin);
    }
}

static void attend_unit(const struct call *c, const struct unit *u, const struct unit *next)
{
    struct attend_row rows[UNIT_ROWS];
    assert(u->n > 0 && u->n <= UNIT_ROWS);
    begin_rows(c, u, rows);
    attend_shared(c, u, rows);
    for (int run = 0, place = 0; run < u->n_runs; run++) {
        const int n = rows_of(c, u, run);
        attend_own(c, u, run, rows + place, n, next);
        place += n;
    }
    end_rows(c, u, rows);
}

/*
 * Estimated time for units of n rows of each head, in units of one row's arithmetic. A worker pays
 * READING to load a head's keys and values, plus one per row. All workers together are also limited
 * by bandwidth: only max(AT_ONCE, half of them) can load at full speed. Constants: measured on 16
 * virtual cores of a Xeon behind 4096 tokens, with groups of 7 heads, where 16 threads with units
 * of 1 row decode more slowly than 12 with units of 2.
 */
static int cost_of_cut(int n, int n_rows, int n_heads, int n_workers)
{
    enum { READING = 16, AT_ONCE = 8 };
    const int n_units = n_heads * ((n_rows + n - 1) / n);
    const int n_rounds = (n_units + n_workers - 1) / n_workers;
    return max_int(n_rounds * (READING + n), n_units * READING / max_int(AT_ONCE, n_workers / 2));
}

/* Rows of a unit. Where heads alone would leave workers idle, they share a head's rows. Many rows
 * are cut small, because the last of them see the most. */
static int unit_rows(int n_rows, int n_heads, int n_workers)
{
    if (n_heads % n_workers == 0 || n_heads >= 4 * n_workers)
        return min_int(UNIT_ROWS, n_rows);
    if (n_rows > UNIT_ROWS)
        return min_int(UNIT_ROWS, (n_rows + n_workers - 1) / n_workers);
    int best = n_rows;
    for (int n = n_rows - 1; n > 0; n--)
        if (cost_of_cut(n, n_rows, n_heads, n_workers) <
            cost_of_cut(best, n_rows, n_heads, n_workers))
            best = n;
    return best;
}

/* Whether a unit is this worker's. Units are dealt out one by one, since neighbours cost about the
 * same and later ones more. Each round begins with another worker, so that none gets the last units
 * of all heads. */
static bool is_mine(const struct worker *w, const struct attend *a, int turn, int head,
                    int n_kv_heads)
{
    size_t begin, end;
    if (!a->own_heads)
        return (turn + turn / w->n_workers) % w->n_workers == w->index;
    worker_share(w, (size_t)n_kv_heads, 1, &begin, &end);
    return (size_t)head >= begin && (size_t)head < end;
}

/* How many blocks two runs have in common, of the first `most` and before both queries. */
static int blocks_shared(const struct call *c, const struct kv_run *a, const struct kv_run *b,
                         int most)
{
    const int before = min_int(a->position, b->position) / KV_PAGE;
    return kv_shared(c->kv, a->sequence, b->sequence, min_int(most, before));
}

/* How many of the next n runs form one unit of at most most_rows rows; at least one. r runs that
 * share their first s blocks read these once instead of r times, so the r with the largest
 * (r - 1) * s wins; *n_shared gets s. Stops before a run that shares more than twice as much with
 * its successor: those two belong together. Without windows only. */
static int runs_together(const struct call *c, const struct kv_run *runs, int n, int most_rows,
                         int *n_shared)
{
    int together = 1, shared = INT_MAX;
    *n_shared = 0;
    for (int others = 1; others < n && !c->a->window; others++) {
        const struct kv_run *const last = &runs[others];
        shared = blocks_shared(c, runs, last, shared);
        if (shared == 0 || count_rows(c, runs, others + 1) > most_rows)
            break;
        if (others + 1 < n && blocks_shared(c, last, last + 1, INT_MAX) > 2 * shared)
            break;
        if (others * shared > (together - 1) * *n_shared) {
            together = others + 1;
            *n_shared = shared;
        }
    }
    return together;
}

void attend_rows(struct worker *w, const struct attend *a, const struct kv *kv,
                 const struct kv_run *runs, int n_runs, const float *q, float *scratch, float *out)
{
    const struct call c = {.kernels = w->kernels,
                           .a = a,
                           .kv = kv,
                           .q = q,
                           .out = out,
                           .rounded = a->rounded && w->kernels->attend_bf16[kv->type],
                           .room = cut_room(kv, scratch)};
    struct unit mine = {.runs = NULL}, next = mine;
    const int most = unit_rows(count_rows(&c, runs, n_runs), kv->n_kv_heads, w->n_workers);
    int turn = 0;
    for (int i = 0; i < n_runs; i += next.n_runs) {
        next.runs = &runs[i];
        next.n_runs = runs_together(&c, next.runs, n_runs - i, most, &next.n_shared);
        const int n_rows = count_rows(&c, next.runs, next.n_runs);
        const int n =
            next.n_runs > 1 ? n_rows : unit_rows(n_rows, kv->n_kv_heads * n_runs, w->n_workers);
        for (next.head = 0; next.head < kv->n_kv_heads; next.head++)
            for (next.first = 0; next.first < n_rows; next.first += n, turn++) {
                if (!is_mine(w, a, turn, next.head, kv->n_kv_heads))
                    continue;
                next.n = min_int(n, n_rows - next.first);
                if (mine.runs)
                    attend_unit(&c, &mine, &next);
                mine = next;
            }
    }
    if (mine.runs)
        attend_unit(&c, &mine, &(struct unit){.runs = NULL});
}
