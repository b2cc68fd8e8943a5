/*
 * Products of bf16 by tiles for up to AMX_FEW rows of x: what decoding, drafts and batches of texts
 * need. They are limited by how fast weights are read, so rows of weights become tiles where they
 * lie; by columns they have to be packed, and each packed tile serves all rows of x.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"
#include "core/kernels/weights.inc"
#include "core/kernels/tiles_bf16.inc"

/* FEW_X elements of x are packed at a time, FEW_SUMS sums wait for their next values: those of a
 * strip of rows of weights, or of columns. Tiles of weights are asked for (prefetched) FEW_AHEAD
 * tiles before. For one row of x, sums of COLS_ALONE columns wait, and COLS_STRIP are in registers.
 */
enum {
    FEW_X = 1 << 17,
    FEW_SUMS = 8192,
    FEW_AHEAD = 5,
    COLS_ALONE = 4096,
    COLS_STRIP = 2 * T_K,
};

/* Few rows of x: n_tiles tiles, each of `width` rows. */
struct few {
    size_t n_tiles, width;
};

static struct few few_of(size_t n_x)
{
    return (struct few){(n_x + T_ROWS - 1) / T_ROWS, at_most(n_x, T_ROWS)};
}

/* ---- few rows of x by rows of weights, which are the left side as they lie ---- */

/* Values [0, n) of whole tiles of the rows of x from x on, pair beside pair: [n / 2][width]. */
INLINE void few_pack_tile(uint16_t *pairs, const uint16_t *x, size_t stride, size_t width, size_t n)
{
    if (width < T_ROWS) {
        for (size_t i = 0; i < width; i++)
            for (size_t j = 0; j < n; j += 2)
                memcpy(pairs + j * width + 2 * i, x + i * stride + j, 2 * sizeof *x);
        return;
    }
    for (size_t j = 0; j < n; j += 8) {
        vi columns[4];
        vi_columns(columns, (const unsigned char *)(x + j), stride * sizeof *x);
        UNROLLED_FOR (size_t c = 0; c < 4; c++)
            vi_store(pairs + (j + 2 * c) * T_ROWS, columns[c]);
    }
}

/* n values of each row of x, from k on, tile behind tile. */
static void few_pack(uint16_t *pairs, const struct linear_args *a, struct few few, size_t k,
                     size_t n)
{
    const size_t n_padded = (n + T_K - 1) / T_K * T_K;
    for (size_t t = 0; t < few.n_tiles; t++)
        few_pack_tile(pairs + t * n_padded * few.width, bf_x(a, tile_x(t, a->n_x)) + k, a->x_stride,
                      few.width, n_padded);
}

/* n_rows rows of weights, `step` rows apart, against each tile of x: sums [n_rows * step][width]
 * += n values. */
struct few_tile {
    struct few few;
    float *sums;
    const uint16_t *w, *pairs;
    size_t sums_size, pairs_size; /* from a tile of x to the next */
    size_t w_stride, n_rows, step, n;
    bool is_first;
};

/* T_K values from k on, the weights' lying at w, against all tiles of x. */
INLINE void few_step(const struct few_tile *t, const void *w, size_t w_stride, size_t k,
                     size_t n_tiles)
{
    const size_t x_stride = t->few.width * 2 * sizeof *t->pairs, size = t->pairs_size;
    const uint16_t *const x = t->pairs + k * t->few.width;
    _tile_loadd(4, w, w_stride);
    tile_foresee((const char *)w + FEW_AHEAD * T_BYTES, w_stride);
    _tile_loadd(5, x, x_stride);
    _tile_dpbf16ps(0, 4, 5);
    if (n_tiles > 1) {
        _tile_loadd(6, x + size, x_stride);
        _tile_dpbf16ps(1, 4, 6);
    }
    if (n_tiles > 2) {
        _tile_loadd(5, x + 2 * size, x_stride);
        _tile_dpbf16ps(2, 4, 5);
    }
    if (n_tiles > 3) {
        _tile_loadd(6, x + 3 * size, x_stride);
        _tile_dpbf16ps(3, 4, 6);
    }
}

INLINE void few_begin(const struct few_tile *t, size_t n_tiles)
{
    const size_t stride = t->step * t->few.width * sizeof *t->sums;
#define CLEAR(i) _tile_zero(i)
#define LOAD(i)  _tile_loadd(i, t->sums + (i)*t->sums_size, stride)
    if (t->is_first)
        EACH_TILE(CLEAR);
    else
        EACH_TILE(LOAD);
#undef CLEAR
#undef LOAD
}

INLINE void few_end(const struct few_tile *t, size_t n_tiles)
{
    const size_t stride = t->step * t->few.width * sizeof *t->sums;
#define STORE(i) _tile_stored(i, t->sums + (i)*t->sums_size, stride)
    EACH_TILE(STORE);
#undef STORE
}

INLINE void few_multiply_tiles(const struct few_tile *t, size_t n_tiles)
{
    const size_t stride = t->step * t->w_stride;
    size_t k = 0;
    few_begin(t, n_tiles);
    for (; k + T_K <= t->n; k += T_K)
        few_step(t, t->w + k, stride * sizeof *t->w, k, n_tiles);
    if (k < t->n) {
        uint16_t tail[T_ROWS * T_K];
        bf_tail(tail, t->w + k, stride, t->n_rows, t->n - k);
        memory_is_written();
        few_step(t, tail, T_BYTES, k, n_tiles);
    }
    few_end(t, n_tiles);
}

static void few_multiply(const struct few_tile *t)
{
    switch (t->few.n_tiles) {
    case 1:
        few_multiply_tiles(t, 1);
        break;
    case 2:
        few_multiply_tiles(t, 2);
        break;
    case 3:
        few_multiply_tiles(t, 3);
        break;
    default:
        few_multiply_tiles(t, 4);
    }
}

/*
 * n_w rows of weights, in tiles of t.n_rows. As in rows_few of kernels.inc, each row of a tile is a
 * stream from front to back: processors foresee few streams in a page, and rows may be short.
 */
static void few_part(struct few_tile t, size_t n_w)
{
    float *const sums = t.sums;
    const uint16_t *const w = t.w;
    const size_t width = t.few.width;
    t.step = n_w / t.n_rows;
    for (size_t r = 0; r < t.step; r++) {
        t.sums = sums + r * width;
        t.w = w + r * t.w_stride;
        few_multiply(&t);
    }
    const size_t n_done = t.step * t.n_rows;
    if (n_done == n_w)
        return;
    t.step = 1; /* the last, of which some have been there before */
    t.sums = sums + n_done * width;
    t.w = w + (n_w - t.n_rows) * t.w_stride;
    few_multiply(&t);
}

/* Sums [n_rows][n_x] of less than a tile of rows of x, with rows of weights from r on. */
INLINE void few_finish_some(const struct linear_args *a, const float *sums, size_t r,
                            __mmask16 lanes)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)a->n_x));
    const struct tile_finish finish = bf_finish(a, r, lanes);
    for (size_t i = 0; i < a->n_x; i++) {
        const vf sum =
            a->n_x == 1 ? _mm512_maskz_loadu_ps(lanes, sums)
                        : _mm512_mask_i32gather_ps(v_set(0), lanes, places, sums + i, sizeof *sums);
        tile_put(a->y + i * a->y_stride + r, sum, &finish);
    }
}

/* Sums [T_ROWS][T_ROWS] of tile t of x. */
INLINE void few_finish_tile(const struct linear_args *a, const float *sums, size_t t, size_t r,
                            __mmask16 lanes)
{
    const struct tile_finish finish = bf_finish(a, r, lanes);
    for (size_t j = 0; j < T_ROWS; j += 4) {
        const size_t i = tile_x(t, a->n_x) + j;
        vi columns[4];
        vi_columns(columns, (const unsigned char *)(sums + j), sizeof *sums * T_ROWS);
        for (size_t c = 0; c < 4; c++)
            if (i + c >= t * T_ROWS)
                tile_put(a->y + (i + c) * a->y_stride + r, (vf)columns[c], &finish);
    }
}

/* Rows [r, r + n_rows) of weights, whose sums lie behind each other for each tile of x. */
static void few_finish(const struct linear_args *a, struct few few, const float *sums,
                       size_t sums_size, size_t r, size_t n_rows)
{
    if (few.width < T_ROWS)
        few_finish_some(a, sums, r, first_lanes(n_rows));
    for (size_t t = 0; t < few.n_tiles && few.width == T_ROWS; t++)
        few_finish_tile(a, sums + t * sums_size, t, r, first_lanes(n_rows));
}

/* Rows [r0, end) of weights. packed: where x is packed; it stays there if it is all of x. */
static void few_strip(const struct linear_args *a, struct few few, uint16_t *packed, size_t r0,
                      size_t end, size_t n_rows)
{
    float sums[FEW_SUMS + 2 * T_ROWS * AMX_FEW] __attribute__((aligned(64)));
    const size_t n_w = end - r0, n_done = n_w / n_rows * n_rows, width = few.width;
    const size_t span = packed ? FEW_X / (few.n_tiles * width) / T_K * T_K : a->n_k + 1;
    struct few_tile t = {.few = few,
                         .sums = sums,
                         .sums_size = (n_w + 2 * T_ROWS) * width,
                         .w_stride = a->w_stride,
                         .n_rows = n_rows,
                         .pairs = packed ? packed : bf_x(a, 0)};
    size_t k = 0;
    do {
        t.n = at_most(a->n_k - k, span);
        t.pairs_size = (t.n + T_K - 1) / T_K * T_K * width;
        t.w = bf_w(a, r0) + k;
        t.is_first = k == 0;
        if (packed && (r0 == 0 || span < a->n_k))
            few_pack(packed, a, few, k, t.n);
        memory_is_written();
        few_part(t, n_w);
        k += span;
    } while (k < a->n_k);
    for (size_t r = 0; r < n_done; r += n_rows)
        few_finish(a, few, sums + r * width, t.sums_size, r0 + r, n_rows);
    if (n_done < n_w)
        few_finish(a, few, sums + (n_done + n_rows - (n_w - n_done)) * width, t.sums_size,
                   r0 + n_done, n_w - n_done);
}

/* How many of n_left rows of weights make the next strip. The steps from row to row of a tile are
 * odd in number: with a power of two, all its rows could fall into one set of a cache. */
static size_t few_rows(size_t n_left, size_t most)
{
    const size_t n_steps = at_most(n_left, most) / T_ROWS;
    const bool all = n_steps == 0 || (n_steps % 2 == 1 && n_left <= most);
    return all ? n_left : ((n_steps - 1) | 1) * T_ROWS;
}

static void few_strips(const struct linear_args *a, uint16_t *packed)
{
    const struct few few = few_of(a->n_x);
    const size_t n_rows = at_most(a->n_w, T_ROWS);
    const size_t most = FEW_SUMS / (few.n_tiles * few.width);
    struct tile_config config = {0};
    tiles_shape(&config, 0, 3, n_rows, 4 * few.width);
    tiles_shape(&config, 4, 4, n_rows, T_BYTES);
    tiles_shape(&config, 5, 6, T_ROWS, 4 * few.width);
    tiles_open(&config);
    for (size_t r = 0, end; r < a->n_w; r = end) {
        end = r + few_rows(a->n_w - r, most);
        few_strip(a, few, packed, r, end, n_rows);
    }
    _tile_release();
}

static void rows_few(const struct linear_args *a)
{
    uint16_t packed[FEW_X] __attribute__((aligned(64)));
    few_strips(a, packed);
}

/* One row of x is its own pairs. */
static void rows_alone(const struct linear_args *a)
{
    few_strips(a, NULL);
}

/* ---- few rows of x, which are the left side, by columns ---- */

/* Asks for column j of n, from c0 on, of T_K rows from k on, or of the rows behind them: processors
 * foresee no steps as wide as a row. */
INLINE void cols_foresee(const struct linear_args *a, size_t c0, size_t n, size_t k, size_t j)
{
    if (j >= n) {
        k += T_K;
        j = at_most(j - n, n - 1);
    }
    for (size_t i = 0; i < T_K && k + i < a->n_k; i++)
        __builtin_prefetch(bf_w(a, k + i) + c0 + j);
}

/* A packed tile of weights against all tiles of x: sums [width, stride] of each, sums_size apart.
 */
INLINE void cols_multiply(float *sums, size_t stride, size_t sums_size, const uint16_t *w,
                          size_t n_tiles)
{
    const size_t bytes = stride * sizeof *sums;
    _tile_loadd(4, w, T_BYTES);
    _tile_loadd(5, sums, bytes);
    _tile_dpbf16ps(5, 0, 4);
    _tile_stored(5, sums, bytes);
    if (n_tiles > 1) {
        _tile_loadd(6, sums + sums_size, bytes);
        _tile_dpbf16ps(6, 1, 4);
        _tile_stored(6, sums + sums_size, bytes);
    }
    if (n_tiles > 2) {
        _tile_loadd(7, sums + 2 * sums_size, bytes);
        _tile_dpbf16ps(7, 2, 4);
        _tile_stored(7, sums + 2 * sums_size, bytes);
    }
    if (n_tiles > 3) {
        _tile_loadd(5, sums + 3 * sums_size, bytes);
        _tile_dpbf16ps(5, 3, 4);
        _tile_stored(5, sums + 3 * sums_size, bytes);
    }
}

/* Values of x from k on, a tile of each T_ROWS rows. */
INLINE void cols_load_x(const struct linear_args *a, size_t k, size_t n_tiles)
{
    const size_t stride = a->x_stride * sizeof(uint16_t);
#define LOAD(i) _tile_loadd(i, bf_x(a, tile_x(i, a->n_x)) + k, stride)
    EACH_TILE(LOAD);
#undef LOAD
}

/* Of each tile of x: sums [width, stride] += T_K rows, from k on, of n columns from c0 on. */
INLINE void cols_step(const struct linear_args *a, struct few few, float *sums, size_t stride,
                      size_t c0, size_t n, size_t k)
{
    enum { GROUP = 4, AHEAD = 96 };
    uint16_t tiles[GROUP][T_ROWS * T_K] __attribute__((aligned(64)));
    const size_t n_k = at_most(a->n_k - k, T_K);
    cols_load_x(a, k, few.n_tiles);
    for (size_t c = 0; c < n; c += GROUP * T_ROWS) {
        const size_t end = at_most(n, c + GROUP * T_ROWS);
        for (size_t j = c; j < end; j += T_ROWS) {
            pack_columns(tiles[(j - c) / T_ROWS], a, k, c0 + j, n_k, end - j);
            if (j % T_K == 0)
                cols_foresee(a, c0, n, k, j + AHEAD);
        }
        memory_is_written();
        for (size_t j = c; j < end; j += T_ROWS)
            cols_multiply(sums + j, stride, few.width * stride, tiles[(j - c) / T_ROWS],
                          few.n_tiles);
    }
}

/* sums += n_k rows from k on, of `columns` of COLS_STRIP columns at w: of each T_K first those with
 * even numbers, which are the lower halves of words, then those with odd ones. Lines are asked for
 * in n_streams streams, which are apart as far as they are long. */
INLINE void cols_add(const struct linear_args *a, float *sums, const uint16_t *w, uint64_t columns,
                     size_t k, size_t n_k, const uint16_t *ahead, size_t n_streams)
{
    enum { N_V = COLS_STRIP / T_K };
    const size_t apart = T_K / n_streams * a->w_stride;
    const uint16_t *const x = bf_x(a, 0) + k;
    vf even[2 * N_V], odd[2 * N_V]; /* chains of rows */
    for (size_t v = 0; v < 2 * N_V; v++)
        even[v] = odd[v] = v_set(0);
    UNROLLED_FOR (size_t j = 0; j < n_k; j++) {
        const vf value = (vf)_mm512_set1_epi32((int32_t)((uint32_t)x[j] << 16));
        vf *const chain = j % 2 ? odd : even;
        for (size_t v = 0; v < N_V; v++) {
            const __mmask32 mask = (__mmask32)(columns >> v * T_K);
            const vi row = (vi)_mm512_maskz_loadu_epi16(mask, w + j * a->w_stride + v * T_K);
            __builtin_prefetch(ahead + j % n_streams * apart + (j / n_streams * N_V + v) * T_K);
            chain[2 * v] = v_fma(value, (vf)(row << 16), chain[2 * v]);
            chain[2 * v + 1] = v_fma(value, (vf)(row & (int32_t)0xffff0000), chain[2 * v + 1]);
        }
    }
    for (size_t v = 0; v < 2 * N_V; v++)
        v_store(sums + v * T_ROWS, v_load(sums + v * T_ROWS) + (even[v] + odd[v]));
}

/*
 * Columns [c0, c0 + n), where subnormal numbers are zero, as in tiles. Processors foresee streams
 * within a page: rows as long as that are T_K of them, of which the columns beside come next. Short
 * rows without gaps are read on as PIECES.
 */
static __attribute__((noinline)) void cols_alone_sum(const struct linear_args *a, float *sums,
                                                     size_t c0, size_t n)
{
    enum { PAGE = 4096, PIECES = 8 };
    const bool short_rows = n == a->w_stride && n * sizeof(uint16_t) < PAGE;
    for (size_t k = 0; k < a->n_k; k += T_K) {
        const uint16_t *const w = bf_w(a, k) + c0;
        const uint16_t *const behind = k + 2 * T_K <= a->n_k ? w + T_K * a->w_stride : w;
        for (size_t c = 0; c < n; c += COLS_STRIP) {
            const uint64_t columns = UINT64_MAX >> (COLS_STRIP - at_most(n - c, COLS_STRIP));
            if (a->n_k - k < T_K)
                cols_add(a, sums + c, w + c, columns, k, a->n_k - k, w + c, T_K);
            else if (short_rows)
                cols_add(a, sums + c, w + c, columns, k, T_K, behind + T_K / PIECES * c, PIECES);
            else
                cols_add(a, sums + c, w + c, columns, k, T_K,
                         c + COLS_STRIP < n ? w + c + COLS_STRIP : behind, T_K);
        }
    }
}

/* Outputs from r on, of n columns whose sums lie as cols_add leaves them. */
INLINE void cols_finish(const struct linear_args *a, const float *sums, size_t r, size_t n)
{
    const vi first = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    for (size_t j = 0; j < n; j += T_ROWS) {
        const float *const pair = sums + j / T_K * T_K;
        const struct tile_finish finish = bf_finish(a, r + j, first_lanes(at_most(n - j, T_ROWS)));
        tile_put(a->y + r + j,
                 _mm512_permutex2var_ps(v_load(pair), (__m512i)(first + (int32_t)(j % T_K / 2)),
                                        v_load(pair + T_ROWS)),
                 &finish);
    }
}

/* One row of x: vectors read memory faster than tiles can be packed. The bits are those of tiles.
 */
static void cols_alone(const struct linear_args *a)
{
    enum { SUBNORMALS_ARE_ZERO = 0x8040 }; /* of MXCSR: results and operands */
    float sums[COLS_ALONE];
    for (size_t c = 0; c < a->n_w; c += COLS_ALONE) {
        const size_t n = at_most(a->n_w - c, COLS_ALONE);
        const unsigned state = _mm_getcsr();
        memset(sums, 0, sizeof sums);
        _mm_setcsr(state | SUBNORMALS_ARE_ZERO);
        cols_alone_sum(a, sums, c, n);
        _mm_setcsr(state);
        cols_finish(a, sums, c, n);
    }
}

/* Columns [c, c + n). */
INLINE void cols_strip(const struct linear_args *a, struct few few, float *sums, size_t stride,
                       size_t c, size_t n)
{
    memset(sums, 0, few.n_tiles * few.width * stride * sizeof *sums);
    for (size_t k = 0; k < a->n_k; k += T_K)
        cols_step(a, few, sums, stride, c, n, k);
    for (size_t j = 0; j < n; j += T_ROWS) {
        const struct tile_finish finish = bf_finish(a, c + j, first_lanes(at_most(n - j, T_ROWS)));
        for (size_t i = 0; i < a->n_x; i++) {
            const size_t t = i / T_ROWS, row = t * few.width + i - tile_x(t, a->n_x);
            tile_put(a->y + i * a->y_stride + c + j, v_load(sums + row * stride + j), &finish);
        }
    }
}

static void cols_few(const struct linear_args *a)
{
    float sums[FEW_SUMS] __attribute__((aligned(64)));
    const struct few few = few_of(a->n_x);
    const size_t stride = FEW_SUMS / (few.n_tiles * few.width) / T_ROWS * T_ROWS;
    struct tile_config config = {0};
    tiles_shape(&config, 0, 3, few.width, T_BYTES);
    tiles_shape(&config, 4, 4, T_ROWS, T_BYTES);
    tiles_shape(&config, 5, 7, few.width, T_BYTES);
    tiles_open(&config);
    for (size_t c = 0; c < a->n_w; c += stride)
        cols_strip(a, few, sums, stride, c, at_most(a->n_w - c, stride));
    _tile_release();
}

/* ---- the way in ---- */

void kernels_amx_few(const struct linear_args *a, bool cols)
{
    if (a->n_x == 1)
        (cols ? cols_alone : rows_alone)(a);
    else
        (cols ? cols_few : rows_few)(a);
}
