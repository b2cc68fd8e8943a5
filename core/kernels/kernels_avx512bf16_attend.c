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
 * once, in the room. The weights of AB_ROWS rows are on the stack, 12 KB.
 */
enum { AB_X = 6, AB_ROWS = 96 };

/* What tiles read: of N_CACHE_TYPES the room. */
enum { CACHE_PAIRS = N_CACHE_TYPES };

/* What few rows will look at next, n_dims of it, in as many turns as there are steps over this
 * block: however little of it is seen, all of the next is asked for. */
INLINE struct ahead ab_ahead(int type, const void *next, size_t n_dims, size_t n_steps)
{
    if (type == CACHE_PAIRS || next == NULL)
        return (struct ahead){.n_rows = 0};
    const size_t n = n_dims * ATTEND_BLOCK * cache_size(type);
    struct ahead ahead = ahead_in_turns(next, n, n, 1, n_steps);
    if (n_steps == 0)
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
        if (type != CACHE_PAIRS)
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

/* acc[i] += the pairs [begin, end) of positions, whole ones, for n_v vectors from d on. */
INLINE void ab_values_tile(const struct ab_block *b, const struct attend_row *rows,
                           const uint16_t *weights, int type, size_t d, size_t begin, size_t end,
                           size_t n_x, size_t n_v, struct ahead *next)
{
    const struct attend_args *const a = b->a;
    vf acc[AB_FEW][AB_V];
    vi value[AB_V];
    UNROLLED_FOR (size_t i = 0; i < n_x; i++)
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            acc[i][v] = v_load(rows[i].acc + d + v * V_LANES);
    for (size_t p = begin; p < end; p++) {
        UNROLLED_FOR (size_t v = 0; v < n_v; v++)
            value[v] = type == CACHE_PAIRS ? vi_load(b->v + (p * a->v_dim + d) / V_LANES + v)
                                           : ab_values(a, type, 2 * p, d + v * V_LANES);
        if (type != CACHE_PAIRS)
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
                            const uint16_t *weights, int type, size_t begin, size_t end, size_t n_x)
{
    const size_t v_dim = b->a->v_dim, n_v = n_x <= AB_X ? AB_V : AB_V / 2;
    const size_t n_steps = (v_dim + n_v * V_LANES - 1) / (n_v * V_LANES) * (end - begin);
    struct ahead next = ab_ahead(type, b->a->next_v, v_dim, n_steps);
    size_t d = 0;
    for (; d + n_v * V_LANES <= v_dim; d += n_v * V_LANES)
        ab_values_tile(b, rows, weights, type, d, begin, end, n_x, n_v, &next);
    switch ((v_dim - d) / V_LANES) {
    case 3:
        ab_values_tile(b, rows, weights, type, d, begin, end, n_x, n_v > 3 ? 3 : 0, &next);
        break;
    case 2:
        ab_values_tile(b, rows, weights, type, d, begin, end, n_x, n_v > 2 ? 2 : 0, &next);
        break;
    case 1:
        ab_values_tile(b, rows, weights, type, d, begin, end, n_x, 1, &next);
        break;
    default:
        break;
    }
}

/* One row over the pairs that hold positions of [begin, end), and nothing else of them: what is
 * behind the last position is in no cache yet. */
static void ab_values_edge(const struct attend_args *a, const struct attend_row *row,
                           const uint16_t *weights, int type, size_t begin, size_t end)
{
    for (size_t j = begin / 2 * 2; j < end; j += 2) {
        const bool first = j >= begin, second = j + 1 < end;
        const vi w = bf_pair(weights + j);
        for (size_t d = 0; d < a->v_dim; d += V_LANES) {
            const vi pair = ab_pair(first ? ab_value(a, type, j, d) : v_set(0),
                                    second ? ab_value(a, type, j + 1, d) : v_set(0));
            v_store(row->acc + d, bf_dot(v_load(row->acc + d), w, pair));
        }
    }
}

/* The pairs that all rows of a tile see go together, the rest before and behind it row by row. */
INLINE void ab_values_rows(const struct ab_block *b, const struct attend_row *rows,
                           const struct seen *seen, const uint16_t *weights, int type, size_t n_x)
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
    for (size_t i = 0; i < n_x; i++)
        ab_values_edge(b->a, rows + i, weights + i * ATTEND_BLOCK, b->type, seen[i].begin,
                       at_most(begin, seen[i].end));
    ab_values_pairs(b, rows, weights, type, begin / 2, end / 2, n_x);
    for (size_t i = 0; i < n_x; i++)
        ab_values_edge(b->a, rows + i, weights + i * ATTEND_BLOCK, b->type,
                       end > seen[i].begin ? end : seen[i].begin, seen[i].end);
}

/* ---- a block ---- */

INLINE void ab_weigh_tile(const struct ab_block *b, int type, struct attend_row *rows,
                          uint16_t *weights, struct seen *seen, size_t n_x)
{
    float scores[AB_FEW * ATTEND_BLOCK] __attribute__((aligned(64)));
    /* bringing keys to pairs takes as long as half a tile's chains of sums */
    const size_t n_v = type == CACHE_PAIRS ? AB_V : AB_V / 2;
    size_t begin = ATTEND_BLOCK, end = 0;
    for (size_t i = 0; i < n_x; i++) {
        seen[i] = row_seen(b->a, &rows[i]);
        begin = at_most(begin, seen[i].begin);
        end = seen[i].end > end ? seen[i].end : end;
    }
    const size_t first = begin / V_LANES / n_v * n_v, last = (end + V_LANES - 1) / V_LANES;
    const size_t n_steps = (last - at_most(first, last) + n_v - 1) / n_v * ((b->a->k_dim + 1) / 2);
    struct ahead next = ab_ahead(type, b->a->next_k, b->a->k_dim, n_steps);
    for (size_t v = first; v < last; v += n_v)
        ab_scores(scores, b, rows, type, v, n_x, n_v, &next);
    ab_softmax(b->a, rows, seen, scores, weights, n_x);
}

INLINE void ab_gather_tile(const struct ab_block *b, int type, const struct attend_row *rows,
                           const uint16_t *weights, const struct seen *seen, size_t n_x)
{
    for (size_t i = 0; i < n_x; i++)
        for (size_t d = 0; d < b->a->v_dim && seen[i].factor != 1; d += V_LANES)
            v_store(rows[i].acc + d, v_load(rows[i].acc + d) * v_set(seen[i].factor));
    ab_values_rows(b, rows, seen, weights, type, n_x);
}

INLINE size_t ab_tile_rows(size_t n, int type)
{
    if (type != CACHE_PAIRS && n > AB_X)
        return n;
    return n >= AB_X ? AB_X : n >= 4 ? 4 : n >= 2 ? 2 : 1;
}

/* n rows, at most AB_ROWS; of a cache as it lies AB_FEW. All keys first, then all values: a block's
 * keys need not leave the cache for its values. */
INLINE void ab_rows(const struct ab_block *b, int type, struct attend_row *rows, size_t n)
{
    uint16_t weights[AB_ROWS * ATTEND_BLOCK] __attribute__((aligned(64)));
    struct seen seen[AB_ROWS];
#define TILE(step, n_x)                                                                            \
    case n_x:                                                                                      \
        step(b, type, rows + i, weights + i * ATTEND_BLOCK, seen + i, n_x);                        \
        break;
#define TILES(step)                                                                                \
    for (size_t i = 0; i < n; i += ab_tile_rows(n - i, type)) {                                    \
        switch (ab_tile_rows(n - i, type)) {                                                       \
            TILE(step, 8)                                                                          \
            TILE(step, 7)                                                                          \
            TILE(step, 6)                                                                          \
            TILE(step, 4)                                                                          \
            TILE(step, 2)                                                                          \
            TILE(step, 1)                                                                          \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
    }
    TILES(ab_weigh_tile)
    TILES(ab_gather_tile)
#undef TILES
#undef TILE
}

/* More rows than a tile has. */
static __attribute__((noinline)) void ab_many(struct ab_block *b)
{
    const struct attend_args *const a = b->a;
    ab_to_pairs(b);
    for (size_t i = 0; i < a->n_rows; i += AB_ROWS)
        ab_rows(b, CACHE_PAIRS, a->rows + i, at_most(a->n_rows - i, AB_ROWS));
}

INLINE void ab_attend(const struct attend_args *a, int type)
{
    struct ab_block b = {.a = a, .type = type};
    if (a->n_rows > AB_FEW)
        ab_many(&b);
    else
        ab_rows(&b, type, a->rows, a->n_rows);
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
