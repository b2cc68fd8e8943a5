/*
 * Attention of the rung with AVX-512 BF16: both products as dots of pairs of bf16, summed in f32.
 * Keys are paired over dimensions, values over positions, and so are queries and the weights of
 * values; the softmax between them stays in f32.
 *
 * As in attend.inc outputs lie in lanes and a row's sum is one chain: a score's over the pairs of
 * dimensions, a value's over the pairs of positions of which the row sees one at least. What it
 * does not see of a pair is zero.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"

#include "core/kernels/pairs_avx512bf16.inc"
#include "core/kernels/attend_bf16.inc"

/*
 * A tile is up to AB_X rows times AB_V vectors of sums, or up to AB_FEW rows times half as many.
 * The rows of one tile read the cache as it lies; for more of them a block is brought to pairs
 * once, in the room. Scores and weights of AB_ROWS rows are on the stack, 36 KB.
 */
enum {
    AB_X = 6,
    AB_ASKED = 48 /* rows for which the next block is asked for while this one is made pairs */
};

/* What tiles read: of N_CACHE_TYPES the room. */
enum { CACHE_PAIRS = N_CACHE_TYPES };

/* What rows leave between the steps that all of them take together. */
struct ab_state {
    float *scores;     /* [n rows, ATTEND_BLOCK] */
    uint16_t *weights; /* the same */
    struct seen *seen; /* [n rows] */
};

/* What the rows will look at next, n_dims of it, in n_turns: however little of this block is seen,
 * all of the next is asked for. */
INLINE struct ahead ab_ahead(const struct ab_block *b, const void *next, size_t n_dims,
                             size_t n_turns)
{
    const size_t n = n_dims * ATTEND_BLOCK * cache_size(b->type);
    struct ahead ahead = ahead_in_turns(next, n, n, next ? 1 : 0, n_turns);
    if (n_turns == 0)
        ahead_turn(&ahead);
    return ahead;
}

/* ---- scores ---- */

/* scores[n_x, ATTEND_BLOCK]: products of queries and the keys of n_v vectors from vector v0 on. */
INLINE void ab_scores(float *scores, const struct ab_block *b, const struct attend_row *rows,
                      int type, size_t v0, size_t n_x, size_t n_v, struct ahead *next)
{
    const struct attend_args *const a = b->a;
    vf sum[AB_FEW][AB_V];
    vi k[AB_V];
    UNROLLED_FOR (size_t i = 0; i < n_x; i++)
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            sum[i][v] = v_set(0);
    for (size_t d = 0; d < a->k_dim; d += 2) {
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            k[v] = type == CACHE_PAIRS ? vi_load(b->k + d / 2 * AB_V + v0 + v)
                                       : ab_keys(a, type, d, (v0 + v) * V_LANES);
        if (next)
            ahead_turn(next);
        UNROLLED_FOR (size_t i = 0; i < n_x; i++) {
            const vi q = bf_pair((const uint16_t *)rows[i].q + d);
            UNROLLED_FOR (size_t v = 0; v < n_v; v++)
                sum[i][v] = bf_dot(sum[i][v], q, k[v]);
        }
    }
    UNROLLED_FOR (size_t i = 0; i < n_x; i++)
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            v_store(scores + i * ATTEND_BLOCK + (v0 + v) * V_LANES, sum[i][v]);
}

/* ---- values ---- */

/* acc[i] = seen[i].factor * acc[i] + the pairs [begin, end) of positions, whole ones, for n_v
 * vectors from d on. */
INLINE void ab_values_tile(const struct ab_block *b, const struct attend_row *rows,
                           const struct seen *seen, const uint16_t *weights, int type, size_t d,
                           size_t begin, size_t end, size_t n_x, size_t n_v, struct ahead *next)
{
    const struct attend_args *const a = b->a;
    vf acc[AB_FEW][AB_V];
    vi value[AB_V];
    UNROLLED_FOR (size_t i = 0; i < n_x; i++)
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            acc[i][v] = v_load(rows[i].acc + d + v * V_LANES) * v_set(seen[i].factor);
    for (size_t p = begin; p < end; p++) {
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            value[v] = type == CACHE_PAIRS ? vi_load(b->v + (p * a->v_dim + d) / V_LANES + v)
                                           : ab_values(a, type, 2 * p, d + v * V_LANES);
        if (next)
            ahead_turn(next);
        UNROLLED_FOR (size_t i = 0; i < n_x; i++) {
            const vi w = bf_pair(weights + i * ATTEND_BLOCK + 2 * p);
            UNROLLED_FOR (size_t v = 0; v < n_v; v++)
                acc[i][v] = bf_dot(acc[i][v], w, value[v]);
        }
    }
    UNROLLED_FOR (size_t i = 0; i < n_x; i++)
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            v_store(rows[i].acc + d + v * V_LANES, acc[i][v]);
}

INLINE void ab_values_pairs(const struct ab_block *b, const struct attend_row *rows,
                            const struct seen *seen, const uint16_t *weights, int type,
                            size_t begin, size_t end, size_t n_x)
{
    const size_t v_dim = b->a->v_dim, n_v = n_x <= AB_X ? AB_V : AB_V / 2;
    const size_t n_steps = (v_dim + n_v * V_LANES - 1) / (n_v * V_LANES) * (end - begin);
    struct ahead asked, *next = NULL;
    size_t d = 0;
    if (type != CACHE_PAIRS) {
        asked = ab_ahead(b, b->a->next_v, v_dim, n_steps);
        next = &asked;
    }
    for (; d + n_v * V_LANES <= v_dim; d += n_v * V_LANES)
        ab_values_tile(b, rows, seen, weights, type, d, begin, end, n_x, n_v, next);
    switch ((v_dim - d) / V_LANES) {
    case 3:
        ab_values_tile(b, rows, seen, weights, type, d, begin, end, n_x, n_v > 3 ? 3 : 0, next);
        break;
    case 2:
        ab_values_tile(b, rows, seen, weights, type, d, begin, end, n_x, n_v > 2 ? 2 : 0, next);
        break;
    case 1:
        ab_values_tile(b, rows, seen, weights, type, d, begin, end, n_x, 1, next);
        break;
    default:
        break;
    }
}

/* Positions j and j + 1 of the values, V_LANES dimensions from d on, as pairs; what is not in
 * [begin, end) is zero, and not looked at in a cache as it lies: it may not be there yet. */
INLINE vi ab_values_seen(const struct ab_block *b, int type, size_t j, size_t d, size_t begin,
                         size_t end)
{
    const bool first = j >= begin, second = j + 1 < end;
    if (type == CACHE_PAIRS)
        return b->v[(j / 2 * b->a->v_dim + d) / V_LANES] &
               vi_set((first ? 0xffff : 0) | (second ? INT32_C(-0x10000) : 0));
    return ab_pair(first ? ab_value(b->a, type, j, d) : v_set(0),
                   second ? ab_value(b->a, type, j + 1, d) : v_set(0));
}

/* One row over the pairs that hold positions of [begin, end). */
INLINE void ab_values_edge(const struct ab_block *b, const struct attend_row *row,
                           const uint16_t *weights, int type, size_t begin, size_t end)
{
    for (size_t d = 0; begin < end && d < b->a->v_dim; d += V_LANES) {
        vf acc = v_load(row->acc + d);
        for (size_t j = begin / 2 * 2; j < end; j += 2)
            acc = bf_dot(acc, bf_pair(weights + j), ab_values_seen(b, type, j, d, begin, end));
        v_store(row->acc + d, acc);
    }
}

/* The pairs that all rows of a tile see go together, the rest before and behind it row by row. Uses
 * up seen->factor. */
INLINE void ab_gather_tile(const struct ab_block *b, int type, struct attend_row *rows,
                           const uint16_t *weights, struct seen *seen, size_t n_x)
{
    size_t begin = 0, end = ATTEND_BLOCK;
    for (size_t i = 0; i < n_x; i++) {
        begin = seen[i].begin > begin ? seen[i].begin : begin;
        end = at_most(end, seen[i].end);
    }
    begin = (begin + 1) / 2 * 2;
    end = end / 2 * 2;
    if (begin > end)
        begin = end = ATTEND_BLOCK; /* there are none */
    for (size_t i = 0; begin && i < n_x; i++) {
        for (size_t d = 0; d < b->a->v_dim; d += V_LANES)
            v_store(rows[i].acc + d, v_load(rows[i].acc + d) * v_set(seen[i].factor));
        seen[i].factor = 1;
        ab_values_edge(b, rows + i, weights + i * ATTEND_BLOCK, type, seen[i].begin,
                       at_most(begin, seen[i].end));
    }
    ab_values_pairs(b, rows, seen, weights, type, begin / 2, end / 2, n_x);
    for (size_t i = 0; end < ATTEND_BLOCK && i < n_x; i++)
        ab_values_edge(b, rows + i, weights + i * ATTEND_BLOCK, type,
                       end > seen[i].begin ? end : seen[i].begin, seen[i].end);
}

/* ---- a block ---- */

/* Of a block as pairs, the upper half of the positions is left out where no row sees it. */
INLINE void ab_score_tile(const struct ab_block *b, int type, struct attend_row *rows,
                          float *scores, struct seen *seen, size_t n_x)
{
    size_t begin = ATTEND_BLOCK, end = 0;
    for (size_t i = 0; i < n_x; i++) {
        seen[i] = row_seen(b->a, &rows[i]);
        begin = at_most(begin, seen[i].begin);
        end = seen[i].end > end ? seen[i].end : end;
    }
    const size_t last = (end + V_LANES - 1) / V_LANES;
    if (type == CACHE_PAIRS) {
        if (last > AB_V / 2)
            ab_scores(scores, b, rows, type, 0, n_x, AB_V, NULL);
        else if (last > 0)
            ab_scores(scores, b, rows, type, 0, n_x, AB_V / 2, NULL);
        return;
    }
    /* bringing keys to pairs takes as long as half a tile's chains of sums */
    const size_t n_v = AB_V / 2, first = begin / V_LANES / n_v * n_v;
    const size_t n_steps = (last - at_most(first, last) + n_v - 1) / n_v * ((b->a->k_dim + 1) / 2);
    struct ahead next = ab_ahead(b, b->a->next_k, b->a->k_dim, n_steps);
    for (size_t v = first; v < last; v += n_v)
        ab_scores(scores, b, rows, type, v, n_x, n_v, &next);
}

INLINE size_t ab_tile_rows(size_t n, int type)
{
    if (type != CACHE_PAIRS && n > AB_X)
        return n;
    return n >= AB_X ? AB_X : n >= 4 ? 4 : n >= 2 ? 2 : 1;
}

/* n rows. All keys first, then all values: a block's keys need not leave the cache for its values.
 * What more than AB_ASKED rows look at next is asked for into L2, tile by tile. */
INLINE void ab_rows(const struct ab_block *b, int type, struct attend_row *rows, size_t n,
                    const struct ab_state *s)
{
    const size_t n_tiles = (n + AB_X - 1) / AB_X;
    struct ahead next = {.n_rows = 0};
#define TILE(step, to, n_x)                                                                        \
    case n_x:                                                                                      \
        step(b, type, rows + i, to + i * ATTEND_BLOCK, s->seen + i, n_x);                          \
        break;
#define TILES(step, to, next_block, n_dims)                                                        \
    if (type == CACHE_PAIRS && n > AB_ASKED) {                                                     \
        next = ab_ahead(b, next_block, n_dims, n_tiles);                                           \
        next.is_near = false;                                                                      \
    }                                                                                              \
    for (size_t i = 0; i < n; i += ab_tile_rows(n - i, type)) {                                    \
        ahead_turn(&next);                                                                         \
        switch (ab_tile_rows(n - i, type)) {                                                       \
            TILE(step, to, 8)                                                                      \
            TILE(step, to, 7)                                                                      \
            TILE(step, to, 6)                                                                      \
            TILE(step, to, 4)                                                                      \
            TILE(step, to, 2)                                                                      \
            TILE(step, to, 1)                                                                      \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
    }
    TILES(ab_score_tile, s->scores, b->a->next_k, b->a->k_dim)
    ab_softmax(b->a, rows, s->seen, s->scores, s->weights, n);
    TILES(ab_gather_tile, s->weights, b->a->next_v, b->a->v_dim)
#undef TILES
#undef TILE
}

/* More rows than a tile has. */
static __attribute__((noinline)) void ab_many(struct ab_block *b)
{
    float scores[AB_ROWS * ATTEND_BLOCK] __attribute__((aligned(64)));
    uint16_t weights[AB_ROWS * ATTEND_BLOCK] __attribute__((aligned(64)));
    struct seen seen[AB_ROWS];
    const struct ab_state state = {scores, weights, seen};
    const struct attend_args *const a = b->a;
    ab_to_pairs(b, a->n_rows <= AB_ASKED);
    for (size_t i = 0; i < a->n_rows; i += AB_ROWS)
        ab_rows(b, CACHE_PAIRS, a->rows + i, at_most(a->n_rows - i, AB_ROWS), &state);
}

INLINE void ab_attend(const struct attend_args *a, int type)
{
    float scores[AB_FEW * ATTEND_BLOCK] __attribute__((aligned(64)));
    uint16_t weights[AB_FEW * ATTEND_BLOCK] __attribute__((aligned(64)));
    struct seen seen[AB_FEW];
    const struct ab_state state = {scores, weights, seen};
    struct ab_block b = {.a = a, .type = type};
    if (a->n_rows > AB_FEW)
        ab_many(&b);
    else
        ab_rows(&b, type, a->rows, a->n_rows, &state);
}

static void attend_bf16_f16(const struct attend_args *a)
{
    ab_attend(a, CACHE_F16);
}

static void attend_bf16_i8(const struct attend_args *a)
{
    ab_attend(a, CACHE_I8);
}

void kernels_avx512bf16_attend_fill(struct kernels *k)
{
    k->attend_bf16[CACHE_F16] = attend_bf16_f16;
    k->attend_bf16[CACHE_I8] = attend_bf16_i8;
}
