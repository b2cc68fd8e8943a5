/*
 * The rung for x86 with AMX tiles of bf16 and int8: Intel since Sapphire Rapids. One instruction
 * adds the products of 16 rows of 32 bf16 with 16 others to 16 x 16 f32 (Intel SDM volume 2,
 * TDPBF16PS): for each of them, even and odd elements are two chains of FMAs that begin at 0, whose
 * sum is added; subnormal numbers are zero.
 *
 * So the order of a sum is how k is cut into instructions: always by 32 from 0. What is the left
 * side, how many rows a tile has and which loop it stands in is free. Here are the products with
 * many rows of x; those with few are kernels_amx_few.c's, those of int8 kernels_amx_i8.c's.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"
#include "core/kernels/weights.inc"
#include "core/kernels/tiles_bf16.inc"

/*
 * BF_K values of BF_R rows of weights, a block, are packed in L1, rows of x come from L2, and the
 * sums of a strip, BF_STRIP blocks, wait for the next values.
 */
enum {
    BF_R = 2 * T_ROWS,
    BF_K = 1024,
    BF_X_MAX = 512,
    BF_STRIP = 4,
};

/* ---- many rows of x, which are the left side; weights are packed ---- */

/* Values of BF_R rows of weights as the right side: [BF_K / T_K][2][T_ROWS pairs][T_ROWS rows]. */
typedef uint16_t bf_block[BF_K / T_K][2][T_ROWS][2 * T_ROWS];

/* 16 rows of T_K values. */
INLINE void pack_tile(uint16_t *out, const uint16_t *w, size_t stride)
{
    UNROLLED_FOR (size_t j = 0; j < 4; j++) {
        vi columns[4];
        vi_columns(columns, (const unsigned char *)(w + 8 * j), stride * sizeof *w);
        UNROLLED_FOR (size_t c = 0; c < 4; c++)
            vi_store(out + (4 * j + c) * T_K, columns[c]);
    }
}

static void pack_cols(bf_block block, const struct linear_args *a, size_t r, size_t k, size_t n)
{
    for (size_t half = 0; half < 2; half++) {
        const size_t c = tile_row(r + half * T_ROWS, a->n_w);
        for (size_t j = 0; j < n; j += T_K)
            pack_columns(block[j / T_K][half][0], a, k + j, c, n - j, T_ROWS);
    }
}

static void pack_rows(bf_block block, const struct linear_args *a, size_t r, size_t k, size_t n)
{
    for (size_t half = 0; half < 2; half++) {
        const uint16_t *const w = bf_w(a, tile_row(r + half * T_ROWS, a->n_w)) + k;
        size_t j = 0;
        for (; j + T_K <= n; j += T_K)
            pack_tile(block[j / T_K][half][0], w + j, a->w_stride);
        if (j < n) {
            uint16_t tail[T_ROWS * T_K] __attribute__((aligned(64)));
            bf_tail(tail, w + j, a->w_stride, T_ROWS, n - j);
            pack_tile(block[j / T_K][half][0], tail, T_K);
        }
    }
}

/* What waits: 16 rows of x against BF_R rows of weights. */
typedef float bf_sums[T_ROWS][BF_R];

/*
 * What vectors do while tiles multiply, a little with each step: the outputs of tiles before are
 * finished, those of the tiles now are fetched, and so are the weights that are packed next. In a
 * piece, each of the three would hold up the tiles.
 */
struct chores {
    const struct linear_args *a;
    const bf_sums *sums;
    size_t x0, n_x;
    size_t i, end;         /* rows of x to finish */
    size_t soon, soon_end; /* rows of y to fetch */
    size_t rows_a_step;
    size_t r[2]; /* the first outputs of two tiles */
    struct tile_finish finish[2];
    struct tile_fetch next; /* weights */
};

INLINE void chore_finish(struct chores *c)
{
    const float *const sums = c->sums[c->i / T_ROWS][c->i - tile_x(c->i / T_ROWS, c->n_x)];
    float *const y = c->a->y + (c->x0 + c->i) * c->a->y_stride;
    tile_put(y + c->r[0], v_load(sums), &c->finish[0]);
    tile_put(y + c->r[1], v_load(sums + T_ROWS), &c->finish[1]);
    c->i++;
}

INLINE void chores_step(struct chores *c)
{
    for (size_t j = 0; j < c->rows_a_step && c->i < c->end; j++)
        chore_finish(c);
    for (size_t j = 0; j < c->rows_a_step && c->soon < c->soon_end; j++, c->soon++) {
        const float *const y = c->a->y + (c->x0 + c->soon) * c->a->y_stride;
        __builtin_prefetch(y + c->r[0], 1);
        __builtin_prefetch(y + c->r[1], 1);
    }
    tile_fetch_step(&c->next);
}

/* Two tiles of rows of x, x0 and x1, against the block. */
INLINE void many_tiles(bf_sums *sums, bf_block block, const uint16_t *x0, const uint16_t *x1,
                       size_t x_stride, size_t n, bool is_first, struct chores *chores)
{
    enum { STRIDE = BF_R * sizeof(float) };
    const size_t stride = x_stride * sizeof *x0;
    if (is_first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, &sums[0][0][0], STRIDE);
        _tile_loadd(1, &sums[0][0][T_ROWS], STRIDE);
        _tile_loadd(2, &sums[1][0][0], STRIDE);
        _tile_loadd(3, &sums[1][0][T_ROWS], STRIDE);
    }
    for (size_t k = 0; k < n; k += T_K) {
        _tile_loadd(6, block[k / T_K][0], T_BYTES);
        _tile_loadd(4, x0 + k, stride);
        _tile_loadd(7, block[k / T_K][1], T_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, x1 + k, stride);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        chores_step(chores);
    }
    _tile_stored(0, &sums[0][0][0], STRIDE);
    _tile_stored(1, &sums[0][0][T_ROWS], STRIDE);
    _tile_stored(2, &sums[1][0][0], STRIDE);
    _tile_stored(3, &sums[1][0][T_ROWS], STRIDE);
}

/* Of a block whose rows begin at r, in n_steps for every two tiles of n_x rows of x. */
INLINE struct chores chores_of(const struct linear_args *a, const bf_sums *sums, size_t x0,
                               size_t n_x, size_t r, size_t n_steps)
{
    struct chores c = {.a = a, .sums = sums, .x0 = x0, .n_x = n_x};
    c.rows_a_step = (2 * T_ROWS + n_steps - 1) / n_steps;
    for (size_t half = 0; half < 2; half++) {
        const size_t row = r + half * T_ROWS;
        c.r[half] = tile_row(row, a->n_w);
        c.finish[half] = bf_finish(a, c.r[half], tile_lanes(row, a->n_w));
    }
    return c;
}

/* Fetching the block with rows from r and values from k on takes all steps. */
INLINE void chores_fetch(struct chores *c, const struct linear_args *a, bool cols, size_t r,
                         size_t k, size_t n_steps)
{
    if (r >= a->n_w)
        return;
    const size_t n_k = at_most(a->n_k - k, BF_K), n_r = at_most(a->n_w - r, BF_R);
    c->next =
        tile_fetch(cols ? bf_w(a, k) + r : bf_w(a, r) + k, cols ? n_k : n_r,
                   (cols ? n_r : n_k) * sizeof(uint16_t), a->w_stride * sizeof(uint16_t), n_steps);
}

/* A block of weights, rows from r and values from k on, against rows [x0, x0 + n_x) of x. Behind it
 * comes one with rows from next_r and values from next_k on. */
INLINE void many_block(const struct linear_args *a, bool cols, bf_sums *sums, size_t x0, size_t n_x,
                       size_t r, size_t k, size_t next_r, size_t next_k)
{
    bf_block block __attribute__((aligned(64)));
    const size_t n = at_most(a->n_k - k, BF_K), n_steps = n > 0 ? (n + T_K - 1) / T_K : 1;
    const bool is_last = k + n == a->n_k;
    struct chores chores = chores_of(a, sums, x0, n_x, r, n_steps);
    chores_fetch(&chores, a, cols, next_r, next_k,
                 n_steps * ((n_x + 2 * T_ROWS - 1) / (2 * T_ROWS)));
    (cols ? pack_cols : pack_rows)(block, a, r, k, n);
    memory_is_written();
    for (size_t t = 0; t * T_ROWS < n_x; t += 2) {
        const size_t end = is_last ? at_most((t + 2) * T_ROWS, n_x) : 0;
        chores.soon_end = end;
        many_tiles(sums + t, block, bf_x(a, x0 + tile_x(t, n_x)) + k,
                   bf_x(a, x0 + tile_x(t + 1, n_x)) + k, a->x_stride, n, k == 0, &chores);
        while (chores.i < chores.end)
            chore_finish(&chores);
        chores.end = end;
    }
    while (chores.i < chores.end)
        chore_finish(&chores);
}

/* Rows [x0, x0 + n_x) of x against the weights' rows from r0 on, BF_STRIP blocks at the most. */
INLINE void many_strip(const struct linear_args *a, bool cols, size_t x0, size_t n_x, size_t r0)
{
    bf_sums sums[BF_STRIP][BF_X_MAX / T_ROWS] __attribute__((aligned(64)));
    const size_t end = at_most(a->n_w, r0 + BF_STRIP * BF_R);
    size_t k = 0;
    do {
        const bool is_last = k + BF_K >= a->n_k;
        for (size_t r = r0; r < end; r += BF_R) {
            const bool same = r + BF_R < end;
            const size_t next_k = same ? k : is_last ? 0 : k + BF_K;
            many_block(a, cols, sums[(r - r0) / BF_R], x0, n_x, r, k,
                       same || is_last ? r + BF_R : r0, next_k);
        }
        k += BF_K;
    } while (k < a->n_k);
}

INLINE void many(const struct linear_args *a, bool cols)
{
    struct tile_config config = {0};
    tiles_shape(&config, 0, 7, T_ROWS, T_BYTES);
    tiles_open(&config);
    for (size_t x0 = 0, n_x; x0 < a->n_x; x0 += n_x) {
        n_x = a->n_x - x0;
        n_x = n_x > BF_X_MAX ? at_most(n_x - T_ROWS, BF_X_MAX) : n_x; /* leave a tile */
        for (size_t r = 0; r < a->n_w; r += BF_STRIP * BF_R)
            many_strip(a, cols, x0, n_x, r);
    }
    _tile_release();
}

/* ---- the slots ---- */

/* Few rows at a time, where there are few, or not a tile of weights. */
INLINE void linear(const struct linear_args *a, bool cols)
{
    if (a->n_x > AMX_FEW && a->n_w >= T_ROWS) {
        many(a, cols);
        return;
    }
    struct linear_args part = *a;
    for (size_t i = 0; i < a->n_x && a->n_w > 0; i += part.n_x) {
        part.n_x = at_most(a->n_x - i, AMX_FEW);
        part.x = bf_x(a, i);
        part.y = a->y + i * a->y_stride;
        kernels_amx_few(&part, cols);
    }
}

static void linear_rows_bf16(const struct linear_args *a)
{
    linear(a, false);
}

static void cols_one_sum(const struct linear_args *a)
{
    linear(a, true);
}

static void linear_cols_bf16(const struct linear_args *a)
{
    each_sum(a, cols_one_sum);
}

/* ---- the limits ---- */

static void peak_open(void)
{
    struct tile_config config = {0};
    tiles_shape(&config, 0, 7, T_ROWS, T_BYTES);
    tiles_open(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
}

static double peak_bf16(size_t n_steps)
{
    peak_open();
    for (size_t step = 0; step < n_steps; step++)
        _tile_dpbf16ps(0, 1, 2);
    _tile_release();
    return 2.0 * T_ROWS * T_ROWS * T_K * (double)n_steps;
}

static double peak_int8(size_t n_steps)
{
    peak_open();
    for (size_t step = 0; step < n_steps; step++)
        _tile_dpbssd(0, 1, 2);
    _tile_release();
    return 2.0 * T_ROWS * T_ROWS * T_BYTES * (double)n_steps;
}

void kernels_amx_fill(struct kernels *k)
{
    k->linear_rows_bf16 = linear_rows_bf16;
    k->linear_cols_bf16 = linear_cols_bf16;
    k->to_quads = NULL;
    k->peak[PEAK_BF16] = peak_bf16;
    k->peak[PEAK_INT8] = peak_int8;
    /* tiles take a cycle for each row */
    k->per_cycle[PEAK_BF16] = T_ROWS * T_BYTES / 2;
    k->per_cycle[PEAK_INT8] = T_ROWS * T_BYTES;
    kernels_amx_i8_fill(k);
    kernels_amx_attend_fill(k);
    /* dots of pairs in vectors are half as fast as f32 FMA on processors with tiles */
    k->linear_rows_f8 = NULL;
}
