/*
 * The rung for x86 with AVX-512 BF16: Intel since Cooper Lake and Sapphire Rapids, AMD since Zen 4.
 * Products of pairs of bf16 are summed in f32 by one instruction, so activations are rounded to
 * bf16 and weights stay as they are. The instruction takes subnormal numbers for zero.
 *
 * One order of a sum, whichever loop computes it: in rows, a single vector accumulator along all of
 * k, folded by sum4; in columns, a chain over the pairs of k.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"
#include "core/kernels/weights.inc"

/*
 * BF_K values of BF_W rows of weights and of a tile's rows of x lie in L1 together; accumulators of
 * BF_X_MAX rows of x wait in L2 while the next block of k is fetched. BF_SUMS floats hold the sums
 * of few rows of x for as many columns as possible, so that stored rows are read in long pieces.
 */
enum {
    BF_LANES = 32, /* bf16 in a vector */
    BF_FEW = 8,
    BF_X = 6,
    BF_W = 8,
    BF_K = 1024,
    BF_X_MAX = 128,
    BF_STREAMS = 4,
    BF_SUMS = 4096,
    BF_STRIP_K = 8,
    BF_COLS = 64,
    BF_COLS_K = 256,
};

INLINE vf bf_dot(vf acc, vi a, vi b)
{
    return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b);
}

INLINE vi bf_load(const uint16_t *p)
{
    return (vi)_mm512_loadu_si512(p);
}

INLINE vi bf_load_part(const uint16_t *p, size_t n)
{
    return (vi)_mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << n) - 1), p);
}

/* The sums of 4 vectors. */
INLINE __m128 sum4(vf a, vf b, vf c, vf d)
{
    const vf ac = _mm512_unpacklo_ps(a, c) + _mm512_unpackhi_ps(a, c);
    const vf bd = _mm512_unpacklo_ps(b, d) + _mm512_unpackhi_ps(b, d);
    const __m256 half = fold(_mm512_unpacklo_ps(ac, bd) + _mm512_unpackhi_ps(ac, bd));
    return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}

INLINE void bf_finish(const struct linear_args *a, size_t i, size_t r, float sum)
{
    float *const y = &a->y[i * a->y_stride + r];
    *y = (a->add ? *y : 0) + a->scale * (sum + (a->bias ? a->bias[r] : 0));
}

INLINE const uint16_t *bf_x(const struct linear_args *a, size_t i)
{
    return (const uint16_t *)a->x + i * a->x_stride;
}

/* ---- rows ---- */

/* acc += n values of n_x rows of x times 4 rows of weights. */
INLINE void bf_tile(vf acc[BF_X][4], const uint16_t *const *x, const uint16_t *const *w, size_t n,
                    size_t n_x)
{
    vi xv[BF_X];
    size_t k = 0;
    for (; k + BF_LANES <= n; k += BF_LANES) {
        UNROLL
        for (size_t i = 0; i < n_x; i++)
            xv[i] = bf_load(x[i] + k);
        UNROLL
        for (size_t r = 0; r < 4; r++) {
            const vi wv = bf_load(w[r] + k);
            UNROLL
            for (size_t i = 0; i < n_x; i++)
                acc[i][r] = bf_dot(acc[i][r], xv[i], wv);
        }
    }
    if (k == n)
        return;
    UNROLL
    for (size_t r = 0; r < 4; r++) {
        const vi wv = bf_load_part(w[r] + k, n - k);
        UNROLL
        for (size_t i = 0; i < n_x; i++)
            acc[i][r] = bf_dot(acc[i][r], bf_load(x[i] + k), wv);
    }
}

/* n_x rows of x from i on, which are constants wherever this is inlined, against 4 streams. */
INLINE void bf_few_tile(const struct linear_args *a, const uint16_t *const *w, size_t row,
                        size_t n_rows, size_t i, size_t n_x)
{
    const uint16_t *x[BF_X];
    vf acc[BF_X][4];
    UNROLL
    for (size_t j = 0; j < n_x; j++) {
        x[j] = bf_x(a, i + j);
        for (size_t s = 0; s < BF_STREAMS; s++)
            acc[j][s] = v_set(0);
    }
    bf_tile(acc, x, w, a->n_k, n_x);
    for (size_t j = 0; j < n_x; j++) {
        const __m128 sums = sum4(acc[j][0], acc[j][1], acc[j][2], acc[j][3]);
        for (size_t s = 0; s < BF_STREAMS && row + s * n_rows < a->n_w; s++)
            bf_finish(a, i + j, row + s * n_rows, sums[s]);
    }
}

/* Few rows of x: the weights are the cost, read in 4 streams as in rows_few of kernels.inc. */
static void bf_rows_few(const struct linear_args *a)
{
    const size_t n_rows = (a->n_w + BF_STREAMS - 1) / BF_STREAMS;
    for (size_t row = 0; row < n_rows; row++) {
        const uint16_t *w[BF_STREAMS];
        size_t i = 0;
        for (size_t s = 0; s < BF_STREAMS; s++)
            w[s] = (const uint16_t *)a->w + at_most(row + s * n_rows, a->n_w - 1) * a->w_stride;
        for (; i + 4 <= a->n_x; i += 4)
            bf_few_tile(a, w, row, n_rows, i, 4);
        for (; i + 2 <= a->n_x; i += 2)
            bf_few_tile(a, w, row, n_rows, i, 2);
        for (; i < a->n_x; i++)
            bf_few_tile(a, w, row, n_rows, i, 1);
    }
}

/* What waits for the next block of k: [tile of x][group of 4 rows][BF_X][4]. */
typedef vf bf_waiting[(BF_X_MAX + BF_X - 1) / BF_X][BF_W / 4][BF_X][4];

/* One block of k: BF_W rows of weights, `block`, against rows [x0, x0 + n_x) of x. */
INLINE void bf_block(const struct linear_args *a, bf_waiting waiting, const uint16_t *block,
                     size_t x0, size_t n_x, size_t k, size_t n)
{
    for (size_t i = 0; i < n_x; i += BF_X) {
        const uint16_t *x[BF_X], *w[4];
        for (size_t j = 0; j < BF_X; j++)
            x[j] = bf_x(a, x0 + at_most(i + j, n_x - 1)) + k;
        for (size_t g = 0; g < BF_W / 4; g++) {
            vf(*const kept)[4] = waiting[i / BF_X][g];
            vf acc[BF_X][4];
            for (size_t r = 0; r < 4; r++)
                w[r] = block + (4 * g + r) * BF_K;
            UNROLL
            for (size_t j = 0; j < BF_X; j++)
                UNROLL
            for (size_t r = 0; r < 4; r++)
                acc[j][r] = k ? kept[j][r] : v_set(0);
            bf_tile(acc, x, w, n, BF_X);
            UNROLL
            for (size_t j = 0; j < BF_X; j++)
                UNROLL
            for (size_t r = 0; r < 4; r++)
                kept[j][r] = acc[j][r];
        }
    }
}

INLINE void bf_rows_finish(const struct linear_args *a, bf_waiting waiting, size_t x0, size_t n_x,
                           size_t r0, size_t n_w)
{
    for (size_t i = 0; i < n_x; i++)
        for (size_t r = 0; r < n_w; r += 4) {
            const vf *const acc = waiting[i / BF_X][r / 4][i % BF_X];
            const __m128 sums = sum4(acc[0], acc[1], acc[2], acc[3]);
            for (size_t j = 0; j < 4 && r + j < n_w; j++)
                bf_finish(a, x0 + i, r0 + r + j, sums[j]);
        }
}

/* Many rows of x: a block of weights serves BF_X_MAX of them. */
static void bf_rows_many(const struct linear_args *a)
{
    bf_waiting waiting;
    uint16_t block[BF_W * BF_K] __attribute__((aligned(64)));
    for (size_t x0 = 0; x0 < a->n_x; x0 += BF_X_MAX) {
        const size_t n_x = at_most(a->n_x - x0, BF_X_MAX);
        for (size_t r0 = 0; r0 < a->n_w; r0 += BF_W) {
            const size_t n_w = at_most(a->n_w - r0, BF_W);
            for (size_t k = 0; k < a->n_k; k += BF_K) {
                const size_t n = at_most(a->n_k - k, BF_K);
                for (size_t r = 0; r < BF_W; r++)
                    memcpy(block + r * BF_K,
                           (const uint16_t *)a->w + (r0 + at_most(r, n_w - 1)) * a->w_stride + k,
                           n * sizeof *block);
                bf_block(a, waiting, block, x0, n_x, k, n);
            }
            bf_rows_finish(a, waiting, x0, n_x, r0, n_w);
        }
    }
}

static void linear_rows_bf16(const struct linear_args *a)
{
    if (a->n_k == 0 || a->n_x <= BF_FEW)
        bf_rows_few(a);
    else
        bf_rows_many(a);
}

/* ---- columns ---- */

/* Two rows of 32 columns as 32 pairs. */
INLINE void bf_pairs(vi *low, vi *high, vi a, vi b)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const __m512i even = _mm512_unpacklo_epi16((__m512i)a, (__m512i)b);
    const __m512i odd = _mm512_unpackhi_epi16((__m512i)a, (__m512i)b);
    *low = (vi)_mm512_permutex2var_epi64(even, first, odd);
    *high = (vi)_mm512_permutex2var_epi64(even, second, odd);
}

/* Rows k and k + 1 of the matrix, n columns from c on; behind the last row comes one of zeros. */
INLINE void bf_columns(vi *low, vi *high, const struct linear_args *a, size_t k, size_t c, size_t n)
{
    const uint16_t *const row = (const uint16_t *)a->w + k * a->w_stride + c;
    const bool whole = n >= BF_LANES, second = k + 1 < a->n_k;
    const vi first_row = whole ? bf_load(row) : bf_load_part(row, n);
    vi second_row = vi_set(0);
    if (second)
        second_row = whole ? bf_load(row + a->w_stride) : bf_load_part(row + a->w_stride, n);
    bf_pairs(low, high, first_row, second_row);
}

INLINE vi bf_pair_of_x(const uint16_t *x, size_t k)
{
    int32_t pair;
    memcpy(&pair, x + k, sizeof pair);
    return vi_set(pair);
}

/* sums[i * stride + c] += n_k rows, from k on, of n columns from c0 on. The rows that come next are
 * asked for: processors foresee no steps as wide as a row. */
INLINE void bf_strip(const struct linear_args *a, float *sums, size_t stride, size_t c0, size_t n,
                     size_t k, size_t n_k)
{
    for (size_t c = 0; c < n; c += BF_LANES) {
        vi low[BF_STRIP_K / 2], high[BF_STRIP_K / 2];
        UNROLL
        for (size_t j = 0; j < n_k; j += 2) {
            bf_columns(&low[j / 2], &high[j / 2], a, k + j, c0 + c, n - c);
            const uint16_t *const row = (const uint16_t *)a->w + (k + j) * a->w_stride + c0 + c;
            if (k + j + n_k + 1 < a->n_k) {
                __builtin_prefetch(row + n_k * a->w_stride);
                __builtin_prefetch(row + (n_k + 1) * a->w_stride);
            }
        }
        for (size_t i = 0; i < a->n_x; i++) {
            float *const at = sums + i * stride + c;
            vf first = v_load(at), second = v_load(at + V_LANES);
            UNROLL
            for (size_t j = 0; j < n_k; j += 2) {
                const vi x = bf_pair_of_x(bf_x(a, i), k + j);
                first = bf_dot(first, low[j / 2], x);
                second = bf_dot(second, high[j / 2], x);
            }
            v_store(at, first);
            v_store(at + V_LANES, second);
        }
    }
}

static void bf_cols_few(const struct linear_args *a)
{
    float sums[BF_SUMS] __attribute__((aligned(64)));
    const size_t stride = BF_SUMS / (a->n_x ? a->n_x : 1) / BF_LANES * BF_LANES;
    for (size_t c = 0; c < a->n_w; c += stride) {
        const size_t n = at_most(a->n_w - c, stride);
        size_t k = 0;
        memset(sums, 0, sizeof sums);
        for (; k + BF_STRIP_K <= a->n_k; k += BF_STRIP_K)
            bf_strip(a, sums, stride, c, n, k, BF_STRIP_K);
        for (; k < a->n_k; k += 2)
            bf_strip(a, sums, stride, c, n, k, 2);
        for (size_t i = 0; i < a->n_x; i++)
            for (size_t j = 0; j < n; j++)
                bf_finish(a, i, c + j, sums[i * stride + j]);
    }
}

/* sums [BF_X, BF_COLS] += BF_X rows of x times n values of k; block: pairs, [n / 2, BF_COLS]. */
INLINE void bf_cols_tile(float *sums, const uint16_t *const *x, const vi *block, size_t n)
{
    enum { N_V = BF_COLS / V_LANES };
    vf acc[BF_X][N_V];
    UNROLL
    for (size_t i = 0; i < BF_X; i++)
        UNROLL
    for (size_t v = 0; v < N_V; v++)
        acc[i][v] = v_load(sums + i * BF_COLS + v * V_LANES);
    for (size_t k = 0; k < n; k += 2) {
        UNROLL
        for (size_t i = 0; i < BF_X; i++) {
            const vi pair = bf_pair_of_x(x[i], k);
            UNROLL
            for (size_t v = 0; v < N_V; v++)
                acc[i][v] = bf_dot(acc[i][v], block[k / 2 * N_V + v], pair);
        }
    }
    UNROLL
    for (size_t i = 0; i < BF_X; i++)
        UNROLL
    for (size_t v = 0; v < N_V; v++)
        v_store(sums + i * BF_COLS + v * V_LANES, acc[i][v]);
}

INLINE void bf_cols_block(const struct linear_args *a, float *sums, size_t x0, size_t n_x, size_t c,
                          size_t n_c, size_t k)
{
    vi block[BF_COLS_K / 2 * BF_COLS / V_LANES];
    const size_t n = at_most(a->n_k - k, BF_COLS_K);
    for (size_t j = 0; j < n; j += 2)
        for (size_t d = 0; d < BF_COLS; d += BF_LANES) {
            vi *const to = block + (j / 2 * BF_COLS + d) / V_LANES;
            to[0] = to[1] = vi_set(0);
            if (d < n_c)
                bf_columns(&to[0], &to[1], a, k + j, c + d, n_c - d);
        }
    for (size_t i = 0; i < n_x; i += BF_X) {
        const uint16_t *x[BF_X];
        for (size_t j = 0; j < BF_X; j++)
            x[j] = bf_x(a, x0 + at_most(i + j, n_x - 1)) + k;
        bf_cols_tile(sums + i * BF_COLS, x, block, n);
    }
}

static void bf_cols_many(const struct linear_args *a)
{
    float sums[(BF_X_MAX + BF_X) * BF_COLS] __attribute__((aligned(64)));
    for (size_t x0 = 0; x0 < a->n_x; x0 += BF_X_MAX) {
        const size_t n_x = at_most(a->n_x - x0, BF_X_MAX);
        for (size_t c = 0; c < a->n_w; c += BF_COLS) {
            const size_t n_c = at_most(a->n_w - c, BF_COLS);
            memset(sums, 0, sizeof sums);
            for (size_t k = 0; k < a->n_k; k += BF_COLS_K)
                bf_cols_block(a, sums, x0, n_x, c, n_c, k);
            for (size_t i = 0; i < n_x; i++)
                for (size_t j = 0; j < n_c; j++)
                    bf_finish(a, x0 + i, c + j, sums[i * BF_COLS + j]);
        }
    }
}

static void linear_cols_bf16(const struct linear_args *a)
{
    if (a->n_x <= BF_FEW)
        bf_cols_few(a);
    else
        bf_cols_many(a);
}

/* ---- the limit ---- */

static double peak_bf16(size_t n_steps)
{
    const __m512bh x = (__m512bh)_mm512_set1_epi16(0x3f80); /* 1.0 */
    __m512 a[PEAK_CHAINS], sum = _mm512_setzero_ps();
    EVERY_CHAIN (i) {
        a[i] = sum;
        ANY_VALUE(a[i]);
    }
    for (size_t step = 0; step < n_steps; step++)
        EVERY_CHAIN (i)
            a[i] = _mm512_dpbf16_ps(a[i], x, x);
    EVERY_CHAIN (i)
        sum = _mm512_add_ps(sum, a[i]);
    volatile float kept = _mm512_cvtss_f32(sum);
    (void)kept;
    return sizeof x * PEAK_CHAINS * (double)n_steps; /* two operations for each two bytes */
}

void kernels_avx512bf16_fill(struct kernels *k)
{
    k->linear_rows_bf16 = linear_rows_bf16;
    k->linear_cols_bf16 = linear_cols_bf16;
    k->peak[PEAK_BF16] = peak_bf16;
}
