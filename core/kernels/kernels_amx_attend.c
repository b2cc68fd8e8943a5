/*
 * Attention of the rung with AMX: both products by tiles of bf16, which take 16 rows over a block
 * of the cache that has been brought to pairs; the softmax between them in f32.
 *
 * A row meets each block whole, in tiles that begin at the same positions and dimensions whoever
 * else is in them: what it does not see has no weight, and values that no row sees are made zero,
 * as they may be no numbers yet. So, as long as what is seen are numbers, neither other rows nor
 * the cutting of a prompt change a bit.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"

#include "core/kernels/pairs_avx512bf16.inc"
#include "core/kernels/attend_bf16.inc"
#include "core/kernels/tiles_amx.h"

enum {
    PAIR = 2 * sizeof(uint16_t), /* bytes */
    T_PAIRS = T_BYTES / PAIR,
    T_SUMS = AB_V /* tiles of sums: the scores of a block */
};

/* Tiles 0 to 3 are sums of n_rows rows, 4 the left and 5 the right side of a step, 6 and 7 those of
 * a last step over n_end pairs, where there is one. */
static void at_open(size_t n_rows, size_t n_end)
{
    struct tile_config config = {0};
    tiles_shape(&config, 0, 4, n_rows, T_BYTES);
    tiles_shape(&config, 5, 5, T_PAIRS, T_BYTES);
    if (n_end) {
        tiles_shape(&config, 6, 6, n_rows, n_end * PAIR);
        tiles_shape(&config, 7, 7, n_end, T_BYTES);
    }
    tiles_open(&config);
}

INLINE void at_begin(size_t n_tiles)
{
#define CLEAR(i) _tile_zero(i)
    EACH_TILE(CLEAR);
#undef CLEAR
}

/* Sums += rows of T_PAIRS pairs, or in the last step n_end, times as many rows of n_tiles * T_ROWS
 * pairs. */
INLINE void at_step(const void *left, size_t left_stride, const vi *right, size_t right_stride,
                    size_t n_tiles, bool is_last)
{
#define MULTIPLY(i)                                                                                \
    if (is_last) {                                                                                 \
        _tile_loadd(7, right + (i), right_stride);                                                 \
        _tile_dpbf16ps(i, 6, 7);                                                                   \
    } else {                                                                                       \
        _tile_loadd(5, right + (i), right_stride);                                                 \
        _tile_dpbf16ps(i, 4, 5);                                                                   \
    }
    if (is_last)
        _tile_loadd(6, left, left_stride);
    else
        _tile_loadd(4, left, left_stride);
    EACH_TILE(MULTIPLY);
#undef MULTIPLY
}

INLINE void at_end(float *sums, size_t stride, size_t n_tiles)
{
#define STORE(i) _tile_stored(i, sums + (i)*T_ROWS, stride)
    EACH_TILE(STORE);
#undef STORE
    memory_is_written();
}

/* n_pairs pairs of each query, from the p-th on; no tile is loaded from `left` any more. */
static void at_queries(uint16_t *left, const struct attend_row *rows, size_t n, size_t p,
                       size_t n_pairs)
{
    memory_is_written();
    for (size_t i = 0; i < n; i++)
        memcpy(left + i * 2 * T_PAIRS, (const char *)rows[i].q + p * PAIR, n_pairs * PAIR);
    memory_is_written();
}

/* scores[n, ATTEND_BLOCK]: products of queries and keys. */
static void at_scores(const struct ab_block *b, const struct attend_row *rows, size_t n,
                      float *scores)
{
    uint16_t left[T_ROWS * 2 * T_PAIRS] __attribute__((aligned(64)));
    const size_t n_pairs = (b->a->k_dim + 1) / 2, stride = ATTEND_BLOCK * PAIR;
    size_t p = 0;
    at_begin(T_SUMS);
    for (; p + T_PAIRS <= n_pairs; p += T_PAIRS) {
        at_queries(left, rows, n, p, T_PAIRS);
        at_step(left, T_BYTES, b->k + p * AB_V, stride, T_SUMS, false);
    }
    if (p < n_pairs) {
        at_queries(left, rows, n, p, n_pairs - p);
        at_step(left, T_BYTES, b->k + p * AB_V, stride, T_SUMS, true);
    }
    at_end(scores, ATTEND_BLOCK * sizeof *scores, T_SUMS);
}

/* acc = acc * factor + weights times values, n_tiles vectors of each row from the d-th on. */
INLINE void at_values_tiles(const struct ab_block *b, struct attend_row *rows,
                            const struct seen *seen, size_t n, const uint16_t *weights, size_t d,
                            size_t n_tiles)
{
    float sums[T_ROWS * T_SUMS * T_ROWS] __attribute__((aligned(64)));
    const size_t width = b->a->v_dim / V_LANES, stride = ATTEND_BLOCK * sizeof *weights;
    at_begin(n_tiles);
    for (size_t p = 0; p < AB_PAIRS; p += T_PAIRS)
        at_step(weights + 2 * p, stride, b->v + p * width + d, width * sizeof *b->v, n_tiles,
                false);
    at_end(sums, T_SUMS * T_ROWS * sizeof *sums, n_tiles);
    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; seen[i].begin < seen[i].end && v < n_tiles; v++) {
            float *const acc = rows[i].acc + (d + v) * V_LANES;
            const vf sum = v_load(sums + (i * T_SUMS + v) * T_ROWS);
            v_store(acc, v_fma(v_load(acc), v_set(seen[i].factor), sum));
        }
}

static void at_values(const struct ab_block *b, struct attend_row *rows, const struct seen *seen,
                      size_t n, const uint16_t *weights)
{
    const size_t width = b->a->v_dim / V_LANES;
    size_t d = 0;
    for (; d + T_SUMS <= width; d += T_SUMS)
        at_values_tiles(b, rows, seen, n, weights, d, T_SUMS);
    for (; d < width; d++)
        at_values_tiles(b, rows, seen, n, weights, d, 1);
}

/* Up to T_ROWS rows. */
static void at_rows(const struct ab_block *b, struct attend_row *rows, size_t n)
{
    float scores[T_ROWS * ATTEND_BLOCK] __attribute__((aligned(64)));
    uint16_t weights[T_ROWS * ATTEND_BLOCK] __attribute__((aligned(64)));
    struct seen seen[T_ROWS];
    _Static_assert((int)T_ROWS <= (int)AB_ROWS, "rows of one softmax");
    for (size_t i = 0; i < n; i++)
        seen[i] = row_seen(b->a, &rows[i]);
    at_scores(b, rows, n, scores);
    ab_softmax(b->a, rows, seen, scores, weights, n);
    memory_is_written();
    at_values(b, rows, seen, n, weights);
}

/* The values that no row sees. */
static void at_hide(const struct ab_block *b)
{
    const size_t width = b->a->v_dim / V_LANES;
    uint64_t all = 0; /* a bit for each position that some row sees */
    for (size_t i = 0; i < b->a->n_rows; i++) {
        const struct seen seen = row_seen(b->a, &b->a->rows[i]);
        if (seen.begin < seen.end)
            all |= UINT64_MAX >> (ATTEND_BLOCK - (seen.end - seen.begin)) << seen.begin;
    }
    for (size_t p = 0; p < AB_PAIRS; p++, all >>= 2) {
        const int32_t seen = (all & 1 ? 0xffff : 0) | (all & 2 ? INT32_C(-0x10000) : 0);
        for (size_t d = 0; seen != -1 && d < width; d++)
            b->v[p * width + d] &= vi_set(seen);
    }
}

static void at_attend(const struct attend_args *a, int type)
{
    struct ab_block b = {.a = a, .type = type};
    ab_to_pairs(&b, true);
    at_hide(&b);
    at_open(at_most(a->n_rows, T_ROWS), (a->k_dim + 1) / 2 % T_PAIRS);
    for (size_t i = 0; i < a->n_rows; i += T_ROWS)
        at_rows(&b, a->rows + i, at_most(a->n_rows - i, T_ROWS));
    _tile_release();
}

static void attend_bf16_f16(const struct attend_args *a)
{
    at_attend(a, CACHE_F16);
}

static void attend_bf16_i8(const struct attend_args *a)
{
    at_attend(a, CACHE_I8);
}

void kernels_amx_attend_fill(struct kernels *k)
{
    k->attend_bf16[CACHE_F16] = attend_bf16_f16;
    k->attend_bf16[CACHE_I8] = attend_bf16_i8;
}
