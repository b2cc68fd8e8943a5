#include "core/attend.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/*
 * A unit of work is up to UNIT_ROWS rows, a row being a query of one head, that look at the same
 * keys: the heads of a group, query after query. More than CONVERT_ROWS of them pay for bringing a
 * block of the cache to f32 once for all.
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

/* A worker's own. */
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
    const size_t grain = 32;
    return ((size_t)kv->k_dim + grain - 1) / grain * grain;
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

/* A sink is as if a key had been seen whose score it is and whose value is zero. */
static void begin_rows(const struct call *c, const struct attend_run *run, int head, int first,
                       int n, struct attend_row *rows)
{
    const struct attend *const a = c->a;
    const int group = a->n_heads / c->kv->n_kv_heads;
    const size_t stride = kv_value_stride(c->kv);
    memset(c->room.acc, 0, (size_t)n * stride * sizeof *c->room.acc);
    for (int r = 0; r < n; r++) {
        const int i = (first + r) / group, h = head * group + (first + r) % group;
        const int position = run->position + i;
        const size_t at = (size_t)(run->row + i) * (size_t)a->n_heads + (size_t)h;
        rows[r] = (struct attend_row){
            .q = prepare_query(c, c->q + at * (size_t)c->kv->k_dim, r),
            .acc = c->room.acc + (size_t)r * stride,
            .max = a->sinks ? a->sinks[h] : -INFINITY,
            .sum = a->sinks ? 1 : 0,
            .slope = a->alibi_slopes ? a->alibi_slopes[h] : 0,
            .position = position,
            .first = a->window ? max_int(0, position - a->window + 1) : 0,
        };
    }
}

static void end_rows(const struct call *c, const struct attend_run *run, int head, int first, int n,
                     const struct attend_row *rows)
{
    const int group = c->a->n_heads / c->kv->n_kv_heads;
    const size_t v_dim = (size_t)c->kv->v_dim;
    for (int r = 0; r < n; r++) {
        const int i = (first + r) / group, h = head * group + (first + r) % group;
        const size_t at = (size_t)(run->row + i) * (size_t)c->a->n_heads + (size_t)h;
        const float inverse = rows[r].sum == 0 ? 0 : 1 / rows[r].sum;
        c->kernels->scale(c->out + at * v_dim, rows[r].acc, inverse, v_dim);
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

/* The rows over one block, `after` which another comes. */
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

/* Rows [first, first + n) of a run and a head of the cache. */
struct unit {
    const struct attend_run *run; /* NULL: none */
    int head;
    int first;
    int n;
};

/* The first block that a unit looks at. */
static int first_block(const struct call *c, const struct unit *u)
{
    const int group = c->a->n_heads / c->kv->n_kv_heads;
    const int position = u->run->position + u->first / group;
    return c->a->window ? max_int(0, position - c->a->window + 1) / KV_PAGE : 0;
}

/* What few rows will look at after a block; many have arithmetic enough to wait behind. */
static struct kv_block block_after(const struct call *c, const struct unit *u, int block, int last,
                                   const struct unit *next)
{
    if (u->n <= CONVERT_ROWS && block < last)
        return kv_block(c->kv, u->run->sequence, u->head, block + 1);
    if (u->n <= CONVERT_ROWS && next->run)
        return kv_block(c->kv, next->run->sequence, next->head, first_block(c, next));
    return (struct kv_block){.k = NULL};
}

/* Positions ascend over the rows, so those that see nothing of a block are at the beginning and at
 * the end. */
static void attend_unit(const struct call *c, const struct unit *u, const struct unit *next)
{
    struct attend_row rows[UNIT_ROWS];
    const int n = u->n;
    int begin = 0, end = 0;
    assert(n > 0);
    begin_rows(c, u->run, u->head, u->first, n, rows);
    const int last = rows[n - 1].position / KV_PAGE;
    for (int block = rows[0].first / KV_PAGE; block <= last; block++) {
        const struct kv_block after = block_after(c, u, block, last, next);
        const struct kv_block b = kv_block(c->kv, u->run->sequence, u->head, block);
        while (rows[begin].position < block * KV_PAGE)
            begin++;
        while (end < n && rows[end].first < (block + 1) * KV_PAGE)
            end++;
        attend_block(c, &b, &after, block, rows + begin, end - begin);
    }
    end_rows(c, u->run, u->head, u->first, n, rows);
}

/* Rows of a unit. Where heads alone would leave workers without work, they share a head's rows. */
static int unit_rows(int n_rows, int n_heads, int n_workers)
{
    const bool fair = n_heads % n_workers == 0 || n_heads >= 4 * n_workers;
    return min_int(UNIT_ROWS, fair ? n_rows : (n_rows + n_workers - 1) / n_workers);
}

/* Whose a unit is. They are dealt out one by one: neighbours cost about the same, later ones see
 * more. Each round begins with another worker, so that none gets the last units of all heads. */
static bool is_mine(const struct worker *w, const struct attend *a, int turn, int head,
                    int n_kv_heads)
{
    size_t begin, end;
    if (!a->own_heads)
        return (turn + turn / w->n_workers) % w->n_workers == w->index;
    worker_share(w, (size_t)n_kv_heads, 1, &begin, &end);
    return (size_t)head >= begin && (size_t)head < end;
}

void attend_rows(struct worker *w, const struct attend *a, const struct kv *kv,
                 const struct attend_run *runs, int n_runs, const float *q, float *scratch,
                 float *out)
{
    const struct call c = {.kernels = w->kernels,
                           .a = a,
                           .kv = kv,
                           .q = q,
                           .out = out,
                           .rounded = a->rounded && w->kernels->attend_bf16[kv->type],
                           .room = cut_room(kv, scratch)};
    struct unit mine = {.run = NULL};
    int turn = 0;
    for (int i = 0; i < n_runs; i++) {
        const int n_rows = runs[i].n * (a->n_heads / kv->n_kv_heads);
        const int n = unit_rows(n_rows, kv->n_kv_heads * n_runs, w->n_workers);
        for (int head = 0; head < kv->n_kv_heads; head++)
            for (int first = 0; first < n_rows; first += n, turn++) {
                if (!is_mine(w, a, turn, head, kv->n_kv_heads))
                    continue;
                const struct unit next = {&runs[i], head, first, min_int(n, n_rows - first)};
                if (mine.run)
                    attend_unit(&c, &mine, &next);
                mine = next;
            }
    }
    if (mine.run)
        attend_unit(&c, &mine, &(struct unit){.run = NULL});
}
