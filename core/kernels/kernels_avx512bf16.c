/*
 * The rung for x86 with AVX-512 BF16 and VBMI: Intel since Sapphire Rapids, AMD since Zen 4.
 * Products of pairs of bf16 are summed in f32 by one instruction, so activations are rounded to
 * bf16 and weights stay as they are. The instruction takes subnormal numbers for zero.
 *
 * One order of a sum, whichever loop computes it: in rows, four chains along each piece of k, the
 * first over the pairs of the first quarter of each 32 values and so on, folded, and these sums in
 * turn; in columns, a chain over the pairs of x. A chain is a sum to which products are added one
 * after another.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_avx512.h"

#include "core/kernels/pairs_avx512bf16.inc"
#include "core/kernels/weights.inc"

#include "core/kernels/f8_avx512bf16.inc"

/*
 * BF_W rows of weights, BF_K values of each, lie in L1, or nearly, beside the rows of x of a tile,
 * while the same values of BF_X_MAX rows of x pass by from L2: without hints, which cost more than
 * they bring. In columns the block passes by from L2, too: twice what L1 would hold, and sums are
 * loaded half as often. Zen 5, whose L1 is larger, has half of it. BF_SUMS floats hold the sums of
 * few rows of x for as many columns as possible, so that stored rows are read in long pieces.
 *
 * To ask for memory is to prefetch it, by hints, a little in each turn of a loop. A stream is
 * memory that is read from front to back; a strip, rows of a transposed matrix that are read side
 * by side.
 */
enum {
    BF_LANES = 32,        /* bf16 in a vector */
    BF_FEW = 3,           /* rows of x up to which streams are read (measured on Zen 5) */
    BF_SEVERAL = 16,      /* up to which blocks do not pay that are packed first */
    F8_SEVERAL = 8,       /* the same of E4M3, where blocks save looking up */
    BF_COLS_SEVERAL = 12, /* long pieces pay for longer here: a strip's rows are far apart */
    BF_X = 6,
    BF_W = 16,
    BF_X_SEVERAL = 8,
    BF_W_SEVERAL = 8,
    BF_K = 896,
    BF_X_MAX = 256,
    BF_STREAMS = 4,
    BF_LONG = 512,        /* values of a row from which on few rows of x ask for it */
    BF_AHEAD = 36 * LINE, /* bytes; 34 to 38 lines are best on Zen 5, from 40 on slower */
    BF_ROWS_TURN = 64,
    BF_COLS_AHEAD = 24 * LINE,
    BF_QUADS = 4,        /* of a strip, for several rows of x: their sums are loaded less often */
    BF_QUADS_AHEAD = 12, /* lines */
    BF_SUMS = 4096,
    BF_COLS = 64,
    BF_COLS_V = BF_COLS / V_LANES,
    BF_COLS_K = 512,
    BF_COLS_TURN = 32,
};

INLINE vi bf_load(const uint16_t *p)
{
    return (vi)_mm512_loadu_si512(p);
}

INLINE vi bf_load_part(const uint16_t *p, size_t n)
{
    return (vi)_mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << n) - 1), p);
}

/* The sums of the quarters of 4 vectors, those of a, b, c, d side by side. */
INLINE vf bf_fold(vf a, vf b, vf c, vf d)
{
    const vf ab = _mm512_shuffle_f32x4(a, b, 0x44) + _mm512_shuffle_f32x4(a, b, 0xee);
    const vf cd = _mm512_shuffle_f32x4(c, d, 0x44) + _mm512_shuffle_f32x4(c, d, 0xee);
    return _mm512_shuffle_f32x4(ab, cd, 0x88) + _mm512_shuffle_f32x4(ab, cd, 0xdd);
}

/* y[i, r] from its finished sum. */
INLINE void bf_finish(const struct linear_args *a, size_t i, size_t r, float sum)
{
    float *const y = &a->y[i * a->y_stride + r];
    *y = (a->add ? *y : 0) + a->scale * (sum + (a->bias ? a->bias[r] : 0));
}

/* y[i, r + j] from its finished sum, lane j of sums, for j in [0, n). */
INLINE void bf_finish_some(const struct linear_args *a, size_t i, size_t r, vf sums, size_t n)
{
    float *const y = &a->y[i * a->y_stride + r];
    const vf bias = a->bias ? v_load_part(a->bias + r, n) : v_set(0);
    const vf before = a->add ? v_load_part(y, n) : v_set(0);
    v_store_part(y, before + v_set(a->scale) * (sums + bias), n);
}

INLINE const uint16_t *bf_x(const struct linear_args *a, size_t i)
{
    return (const uint16_t *)a->x + i * a->x_stride;
}

/* Of the lines that a tile will write soon, n_lines from r on of each of BF_X rows from i on, those
 * of a turn: another worker's cache may have them, and who asks for all at once waits. */
INLINE void bf_ask_y(const struct linear_args *a, size_t i, size_t r, size_t n_lines, size_t turn)
{
    for (size_t line = 4 * turn; line < 4 * turn + 4 && line < n_lines * BF_X; line++) {
        const size_t row = at_most(i + line / n_lines, a->n_x - 1);
        __builtin_prefetch(&a->y[row * a->y_stride + r + line % n_lines * V_LANES], 1);
    }
}

/* How long pieces of k are, but for the last: about equal, or there would be no time to fetch what
 * comes after a short one. Whole vectors of E4M3, whose sums bf16 has too. */
INLINE size_t bf_piece_k(size_t n_k, size_t most)
{
    const size_t n_pieces = (n_k + most - 1) / most, n_all = n_pieces * F8_CODES;
    return n_pieces ? (n_k + n_all - 1) / n_all * F8_CODES : most;
}

/* What several or many rows of x meet at once: values [k, k + n) of the outputs [r, r + n_w). */
struct bf_piece {
    size_t r, n_w, k, n;
};

/* At most most_w outputs and most_k values; one without outputs behind the last. */
INLINE struct bf_piece bf_piece_at(const struct linear_args *a, size_t r, size_t k, size_t most_w,
                                   size_t most_k)
{
    if (r >= a->n_w)
        return (struct bf_piece){.n_w = 0};
    const size_t end = k < a->n_first ? a->n_first : a->n_k;
    return (struct bf_piece){r, at_most(a->n_w - r, most_w), k, at_most(end - k, most_k)};
}

INLINE struct bf_piece bf_piece_after(const struct linear_args *a, const struct bf_piece *p,
                                      size_t most_w, size_t most_k)
{
    const size_t k = p->k + p->n;
    return k < a->n_k ? bf_piece_at(a, p->r, k, most_w, most_k)
                      : bf_piece_at(a, p->r + most_w, 0, most_w, most_k);
}

/* How many of n rows of x the next tile takes; it may compute more. After 6 of 7 or 8, the rest
 * would wait for its own sums. */
INLINE size_t bf_tile_rows(size_t n)
{
    return at_most(n, n == 7 || n == 8 ? 4 : BF_X);
}

INLINE const uint16_t *bf_w(const struct linear_args *a, size_t r, size_t k)
{
    return (const uint16_t *)a->w + r * a->w_stride + k;
}

/* ---- rows, of bf16 or of E4M3 ---- */

/* Rows of E4M3, with a table for each group of each block of rows. */
struct f8_rows {
    struct linear_args args;
    const struct f8_table *tables; /* [blocks, n_groups] */
    size_t first, block_out, n_groups;
    int shift; /* k >> shift is its group */
};

INLINE const struct f8_rows *f8_rows_of(const struct linear_args *a)
{
    return (const void *)a;
}

INLINE size_t bf_size(bool f8)
{
    return f8 ? 1 : sizeof(uint16_t);
}

/* Values that are taken at once. */
INLINE size_t bf_taken(bool f8)
{
    return f8 ? F8_CODES : BF_LANES;
}

INLINE const char *bf_at(const struct linear_args *a, bool f8, size_t r, size_t k)
{
    return (const char *)a->w + (r * a->w_stride + k) * bf_size(f8);
}

/* Where a row's values are, from one of them on. */
struct bf_row {
    const char *w;
    const struct f8_table *tables; /* of all its groups */
};

INLINE struct bf_row bf_row(const struct linear_args *a, bool f8, size_t r, size_t k)
{
    struct bf_row row = {.w = bf_at(a, f8, r, k)};
    if (f8) {
        const struct f8_rows *const rows = f8_rows_of(a);
        row.tables = rows->tables + (rows->first + r) / rows->block_out * rows->n_groups;
    }
    return row;
}

INLINE size_t bf_group(const struct linear_args *a, bool f8, size_t k)
{
    return f8 ? k >> f8_rows_of(a)->shift : 0;
}

/* Pair i of each quarter, all over the quarter. Zen 5 has units for shuffles within quarters that
 * products do not need. */
INLINE vi bf_spread(vi x, size_t i)
{
    return (vi)(i == 0   ? _mm512_shuffle_epi32((__m512i)x, 0x00)
                : i == 1 ? _mm512_shuffle_epi32((__m512i)x, 0x55)
                : i == 2 ? _mm512_shuffle_epi32((__m512i)x, 0xaa)
                         : _mm512_shuffle_epi32((__m512i)x, 0xff));
}

/* Vectors of 4 rows -> the first pairs of each quarter, row beside row, the second ones, ... */
INLINE void bf_pairs_of_rows(vi *out, const vf *v)
{
    const __m512i low01 = _mm512_unpacklo_epi32((__m512i)v[0], (__m512i)v[1]);
    const __m512i low23 = _mm512_unpacklo_epi32((__m512i)v[2], (__m512i)v[3]);
    const __m512i high01 = _mm512_unpackhi_epi32((__m512i)v[0], (__m512i)v[1]);
    const __m512i high23 = _mm512_unpackhi_epi32((__m512i)v[2], (__m512i)v[3]);
    out[0] = (vi)_mm512_unpacklo_epi64(low01, low23);
    out[1] = (vi)_mm512_unpackhi_epi64(low01, low23);
    out[2] = (vi)_mm512_unpacklo_epi64(high01, high23);
    out[3] = (vi)_mm512_unpackhi_epi64(high01, high23);
}

/* Values [k, k + n) of 4 rows, of group g, and zeros: 4 vectors for each BF_LANES of them. */
INLINE void bf_weave(vi *out, const struct bf_row *w, bool f8, size_t k, size_t n, size_t g)
{
    vf v[4], second[4];
    UNROLLED_FOR (size_t j = 0; j < 4; j++) {
        if (f8) {
            f8_look_up(&v[j], &second[j], &w[j].tables[g], w[j].w + k, n);
            continue;
        }
        const uint16_t *const p = (const uint16_t *)(const void *)w[j].w + k;
        v[j] = (vf)(n >= BF_LANES ? bf_load(p) : bf_load_part(p, n));
        ANY_VALUE(v[j]); /* or they are loaded twice, mostly from two lines each */
    }
    bf_pairs_of_rows(out, v);
    if (f8)
        bf_pairs_of_rows(out + 4, second);
}

/* acc[n_x, n_g] += values [k, k + n) of x times those of n_g times 4 rows of weights, of group
 * `group`. */
INLINE void bf_step(vf (*acc)[2], const uint16_t *const *x, const struct bf_row *w, bool f8,
                    size_t k, size_t n, size_t group, size_t n_x, size_t n_g)
{
    vi v[2][F8_CODES / 8];
    UNROLLED_FOR (size_t g = 0; g < n_g; g++)
        bf_weave(v[g], w + 4 * g, f8, k, n, group);
    UNROLLED_FOR (size_t h = 0; h < bf_taken(f8) / BF_LANES; h++) {
        if (h && n <= BF_LANES) /* where x need not have anything */
            break;
        UNROLLED_FOR (size_t j = 0; j < n_x; j++) {
            const vi values = bf_load(x[j] + k + BF_LANES * h);
            UNROLLED_FOR (size_t i = 0; i < 4; i++) {
                const vi pair = bf_spread(values, i);
                UNROLLED_FOR (size_t g = 0; g < n_g; g++)
                    acc[j][g] = bf_dot(acc[j][g], v[g][4 * h + i], pair);
            }
        }
    }
}

/* sums[j] += n values of row j of x times those of n_g times 4 streams, for j < n_x, both
 * constants. What comes behind 4 streams is asked for meanwhile. */
INLINE void bf_few_tile(const struct linear_args *a, bool f8, vf *sums, const struct bf_row *w,
                        size_t k0, size_t n, size_t n_x, size_t n_g)
{
    const size_t ahead = stream_ahead(BF_AHEAD), taken = bf_taken(f8), whole = n / taken * taken;
    const uint16_t *x[BF_FEW];
    vf acc[BF_FEW][2];
    UNROLLED_FOR (size_t j = 0; j < n_x; j++) {
        x[j] = bf_x(a, j) + k0;
        acc[j][0] = acc[j][1] = v_set(0);
    }
    for (size_t k = 0; k < whole; k += taken) {
        if (n_g == 1 || f8)
            UNROLLED_FOR (size_t s = 0; s < n_g * BF_STREAMS; s++)
                stream_ask(w[s].w + k * bf_size(f8) + ahead, kernels_passes_l2);
        bf_step(acc, x, w, f8, k, taken, bf_group(a, f8, k0 + k), n_x, n_g);
    }
    if (whole < n)
        bf_step(acc, x, w, f8, whole, n - whole, bf_group(a, f8, k0 + whole), n_x, n_g);
    UNROLLED_FOR (size_t j = 0; j < n_x; j++)
        sums[j] += bf_fold(acc[j][0], acc[j][1], acc[j][0], acc[j][1]);
}

/* Few rows of x: the weights are the cost, read in 4 streams as in rows_few of kernels.inc. */
INLINE void bf_rows_few(const struct linear_args *a, bool f8, size_t n_x, size_t n_g)
{
    const size_t n_streams = n_g * BF_STREAMS, n_rows = (a->n_w + n_streams - 1) / n_streams;
    const size_t piece = bf_piece_k(a->n_k, BF_K);
    for (size_t row = 0; row < n_rows; row++) {
        vf sums[BF_FEW];
        UNROLLED_FOR (size_t i = 0; i < n_x; i++)
            sums[i] = v_set(0);
        for (size_t k = 0; k < a->n_k; k += piece) {
            struct bf_row w[2 * BF_STREAMS];
            for (size_t s = 0; s < n_streams; s++)
                w[s] = bf_row(a, f8, at_most(row + s * n_rows, a->n_w - 1), k);
            bf_few_tile(a, f8, sums, w, k, at_most(a->n_k - k, piece), n_x, n_g);
        }
        UNROLLED_FOR (size_t i = 0; i < n_x; i++)
            for (size_t s = 0; s < n_streams && row + s * n_rows < a->n_w; s++)
                bf_finish(a, i, row + s * n_rows, sums[i][s]);
    }
}

/* What is likely to lie in the cache is read in twice as many streams: one chain to each row of x
 * would take longer than reading does. Functions of their own: inlined side by side, they make
 * compilers spill. */
#define BF_ROWS_FEW(kind, f8, n)                                                                   \
    static void __attribute__((noinline)) kind##_rows_##n(const struct linear_args *a)             \
    {                                                                                              \
        if (!f8 && a->n_k >= BF_LONG && is_large(a->n_w, a->n_k))                                  \
            bf_rows_few(a, f8, n, 1);                                                              \
        else                                                                                       \
            bf_rows_few(a, f8, n, 2);                                                              \
    }
#define BF_ROWS_ALL_FEW(kind, f8)                                                                  \
    BF_ROWS_FEW(kind, f8, 1)                                                                       \
    BF_ROWS_FEW(kind, f8, 2)                                                                       \
    BF_ROWS_FEW(kind, f8, 3)
BF_ROWS_ALL_FEW(bf, false)
BF_ROWS_ALL_FEW(f8, true)
#undef BF_ROWS_ALL_FEW
#undef BF_ROWS_FEW

/* Row i + j of x times a piece goes to sums[j], or to y with those of the pieces before; only j < n
 * are a tile's own. */
INLINE void bf_add_piece(const struct linear_args *a, const struct bf_piece *p, vf *sums, size_t i,
                         size_t j, size_t n, vf sum)
{
    if (p->k)
        sum += sums[j];
    if (p->k + p->n < a->n_k)
        sums[j] = sum;
    else if (j < n)
        bf_finish_some(a, i + j, p->r, sum, p->n_w);
}

/* sums[j] (+)= rows i + j of x times a piece of BF_W_SEVERAL rows of weights, for j < n_x, a
 * constant; n of them are this tile's. A turn for each step. */
INLINE void bf_several_tile(const struct linear_args *a, bool f8, vf *sums,
                            const struct bf_piece *p, size_t i, size_t n, size_t n_x,
                            struct ahead *next)
{
    const size_t taken = bf_taken(f8), whole = p->n / taken * taken;
    const uint16_t *x[BF_X_SEVERAL];
    struct bf_row w[BF_W_SEVERAL];
    vf acc[BF_X_SEVERAL][2];
    UNROLLED_FOR (size_t j = 0; j < n_x; j++) {
        x[j] = bf_x(a, at_most(i + j, a->n_x - 1)) + p->k;
        acc[j][0] = acc[j][1] = v_set(0);
    }
    for (size_t r = 0; r < BF_W_SEVERAL; r++)
        w[r] = bf_row(a, f8, p->r + at_most(r, p->n_w - 1), p->k);
    for (size_t k = 0; k < whole; k += taken) {
        ahead_turn(next);
        bf_step(acc, x, w, f8, k, taken, bf_group(a, f8, p->k + k), n_x, 2);
    }
    if (whole < p->n)
        bf_step(acc, x, w, f8, whole, p->n - whole, bf_group(a, f8, p->k + whole), n_x, 2);
    UNROLLED_FOR (size_t j = 0; j < n_x; j++)
        bf_add_piece(a, p, sums, i, j, n, bf_fold(acc[j][0], acc[j][1], acc[j][0], acc[j][1]));
}

/* Too many rows of x for streams, too few to make blocks for. */
INLINE void bf_several(const struct linear_args *a, bool f8)
{
    vf sums[BF_SEVERAL / BF_X_SEVERAL][BF_X_SEVERAL] = {{{0}}};
    const size_t n_tiles = (a->n_x + BF_X_SEVERAL - 1) / BF_X_SEVERAL;
    const size_t most = (a->n_x + n_tiles - 1) / n_tiles, most_k = bf_piece_k(a->n_k, BF_K);
    struct bf_piece p = bf_piece_at(a, 0, 0, BF_W_SEVERAL, most_k);
    while (p.n_w) {
        const struct bf_piece next = bf_piece_after(a, &p, BF_W_SEVERAL, most_k);
        struct ahead ahead =
            ahead_in_turns(bf_at(a, f8, next.r, next.k), a->w_stride * bf_size(f8),
                           next.n * bf_size(f8), next.n_w, n_tiles * (p.n / bf_taken(f8)));
        for (size_t t = 0; t < n_tiles; t++) {
            const size_t i = t * most, n = at_most(a->n_x - i, most);
            if (n > 6)
                bf_several_tile(a, f8, sums[t], &p, i, n, BF_X_SEVERAL, &ahead);
            else if (n > 4)
                bf_several_tile(a, f8, sums[t], &p, i, n, 6, &ahead);
            else
                bf_several_tile(a, f8, sums[t], &p, i, n, 4, &ahead);
        }
        p = next;
    }
}

static void bf_rows_several(const struct linear_args *a)
{
    bf_several(a, false);
}

static void f8_rows_several(const struct linear_args *a)
{
    bf_several(a, true);
}

/* A piece as a block: 16 vectors for each BF_LANES values of k, of which 4 i + g has pairs i of
 * rows 4 g to 4 g + 3, as bf_weave makes them; for rows that are not there the last one. Made
 * before it is used: what packs and multiplies at once takes longer than both. */
INLINE void bf_pack(vi *block, const struct linear_args *a, bool f8, const struct bf_piece *p)
{
    const size_t taken = bf_taken(f8);
    for (size_t g = 0; g < 4; g++) {
        struct bf_row w[4];
        vi *to = block + g;
        for (size_t q = 0; q < 4; q++)
            w[q] = bf_row(a, f8, p->r + at_most(4 * g + q, p->n_w - 1), p->k);
        for (size_t k = 0; k < p->n; k += taken, to += BF_W * taken / BF_LANES) {
            vi v[F8_CODES / 8];
            bf_weave(v, w, f8, k, p->n - k, bf_group(a, f8, p->k + k));
            UNROLLED_FOR (size_t q = 0; q < taken / 8; q++)
                to[4 * q] = v[q];
        }
    }
}

/* acc[n_x, 4] += BF_LANES values of x times their part of a block. */
INLINE void bf_many_step(vf (*acc)[4], const uint16_t *const *x, const vi *block, size_t k,
                         size_t n_x)
{
    UNROLLED_FOR (size_t q = 0; q < 4; q++) {
        UNROLLED_FOR (size_t j = 0; j < n_x; j++) {
            const vi pair = bf_spread(bf_load(x[j] + k), q);
            UNROLLED_FOR (size_t g = 0; g < 4; g++)
                acc[j][g] = bf_dot(acc[j][g], block[4 * q + g], pair);
        }
        LOAD_ANEW();
    }
}

/* sums[j] (+)= rows i + j of x times a block, for j < n_x, a constant; n of them are this tile's.
 * A turn for each BF_ROWS_TURN values. */
INLINE void bf_many_tile(const struct linear_args *a, vf *sums, const vi *block,
                         const struct bf_piece *p, size_t i, size_t n, size_t n_x,
                         struct ahead *next)
{
    const uint16_t *x[BF_X];
    vf acc[BF_X][4];
    const bool last = p->k + p->n == a->n_k;
    UNROLLED_FOR (size_t j = 0; j < n_x; j++) {
        x[j] = bf_x(a, at_most(i + j, a->n_x - 1)) + p->k;
        UNROLLED_FOR (size_t g = 0; g < 4; g++)
            acc[j][g] = v_set(0);
    }
    for (size_t turn = 0; turn < p->n; turn += BF_ROWS_TURN) {
        ahead_turn(next);
        if (last)
            bf_ask_y(a, i, p->r, 1, turn / BF_ROWS_TURN);
        for (size_t k = turn; k < at_most(p->n, turn + BF_ROWS_TURN); k += BF_LANES, block += BF_W)
            bf_many_step(acc, x, block, k, n_x);
    }
    UNROLLED_FOR (size_t j = 0; j < n_x; j++)
        bf_add_piece(a, p, sums, i, j, n, bf_fold(acc[j][0], acc[j][1], acc[j][2], acc[j][3]));
}

/* One piece against the rows [x0, x0 + n_x) of x, while the next piece is asked for. */
INLINE void bf_piece_run(const struct linear_args *a, bool f8, vf *sums, vi *block,
                         const struct bf_piece *p, const struct bf_piece *next, size_t x0,
                         size_t n_x)
{
    const size_t n_turns = (n_x + BF_X - 1) / BF_X * ((p->n + BF_ROWS_TURN - 1) / BF_ROWS_TURN);
    struct ahead ahead = ahead_in_turns(bf_at(a, f8, next->r, next->k), a->w_stride * bf_size(f8),
                                        next->n * bf_size(f8), next->n_w, n_turns);
    bf_pack(block, a, f8, p);
    for (size_t i = 0, n; i < n_x; i += n, sums += n) {
        n = bf_tile_rows(n_x - i);
        if (n > 4)
            bf_many_tile(a, sums, block, p, x0 + i, n, BF_X, &ahead);
        else if (n > 2)
            bf_many_tile(a, sums, block, p, x0 + i, n, 4, &ahead);
        else
            bf_many_tile(a, sums, block, p, x0 + i, n, 2, &ahead);
    }
}

/* Rows of weights in blocks, for many rows of x. */
INLINE void bf_many(const struct linear_args *a, bool f8)
{
    vf sums[BF_X_MAX + BF_X];
    vi block[BF_W * BF_K / BF_LANES];
    const size_t most_k = bf_piece_k(a->n_k, BF_K);
    for (size_t x0 = 0; x0 < a->n_x; x0 += BF_X_MAX) {
        struct bf_piece p = bf_piece_at(a, 0, 0, BF_W, most_k);
        while (p.n_w) {
            const struct bf_piece next = bf_piece_after(a, &p, BF_W, most_k);
            bf_piece_run(a, f8, sums, block, &p, &next, x0, at_most(a->n_x - x0, BF_X_MAX));
            p = next;
        }
    }
}

static void bf_rows_empty(const struct linear_args *a)
{
    for (size_t i = 0; i < a->n_x; i++)
        for (size_t r = 0; r < a->n_w; r++)
            bf_finish(a, i, r, 0);
}

static void bf_rows_many(const struct linear_args *a)
{
    bf_many(a, false);
}

static void f8_rows_many(const struct linear_args *a)
{
    bf_many(a, true);
}

typedef void (*rows_fn)(const struct linear_args *a);

static void linear_rows_bf16(const struct linear_args *a)
{
    static const rows_fn few[BF_FEW + 1] = {bf_rows_empty, bf_rows_1, bf_rows_2, bf_rows_3};
    if (a->n_k == 0)
        bf_rows_empty(a);
    else if (a->n_x <= BF_FEW)
        few[a->n_x](a);
    else if (a->n_x <= BF_SEVERAL)
        bf_rows_several(a);
    else
        bf_rows_many(a);
}

static void f8_rows(const struct linear_args *a)
{
    static const rows_fn few[BF_FEW + 1] = {bf_rows_empty, f8_rows_1, f8_rows_2, f8_rows_3};
    if (a->n_x <= BF_FEW)
        few[a->n_x](a);
    else if (a->n_x <= F8_SEVERAL)
        f8_rows_several(a);
    else
        f8_rows_many(a);
}

/* Rows for whose groups there are tables at once. */
static void linear_rows_f8(const struct linear_f8_args *a)
{
    struct f8_table tables[KERNELS_F8_GROUPS];
    const size_t most = a->args.n_x <= F8_SEVERAL ? (size_t)F8_NEAR : (size_t)KERNELS_F8_GROUPS;
    const size_t n_near = a->n_groups < most ? most / a->n_groups : 1;
    const int shift = a->n_groups > 1 ? __builtin_ctzll(a->block_in) : 63;
    struct f8_rows rows = {a->args, tables, 0, a->block_out, a->n_groups, shift};
    for (size_t r = 0; r < a->args.n_w; r += rows.args.n_w) {
        const size_t block = (a->first + r) / a->block_out;
        rows.first = (a->first + r) % a->block_out;
        rows.args.n_w = at_most(a->args.n_w - r, n_near * a->block_out - rows.first);
        rows.args.w = (const char *)a->args.w + r * a->args.w_stride;
        rows.args.y = a->args.y + r;
        rows.args.bias = a->args.bias ? a->args.bias + r : NULL;
        const size_t n_blocks = (rows.first + rows.args.n_w - 1) / a->block_out + 1;
        for (size_t i = 0; i < n_blocks * a->n_groups; i++)
            f8_table_make(&tables[i], a->scales[block * a->n_groups + i]);
        f8_rows(&rows.args);
    }
}

/* ---- columns ---- */

/* Rows of each quarter of a sum; the last ones may have fewer, or none. Rows i of all four are a
 * quad, whose values x has side by side: four streams, as rows_few reads them, are what memory is
 * fastest at. */
INLINE size_t bf_quarter(size_t n_k)
{
    return (n_k + 3) / 4;
}

/* How many quads have all four rows. */
INLINE size_t bf_whole_quads(size_t n_k)
{
    const size_t before = 3 * bf_quarter(n_k);
    return n_k > before ? n_k - before : 0;
}

/* V_LANES quads from i on of n values, or as many as there are. */
INLINE void bf_put_quads(uint16_t *out, const float *in, size_t n, size_t i, bool whole)
{
    const vi low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    const size_t quarter = bf_quarter(n), n_quads = at_most(quarter - i, V_LANES);
    vi values[4];
    UNROLLED_FOR (size_t s = 0; s < 4; s++) {
        const size_t first = whole ? s * quarter + i : at_most(s * quarter + i, n);
        values[s] = bf16_upper(whole ? v_load(in + first)
                                     : v_load_part(in + first, at_most(n - first, n_quads)));
    }
    const vi pairs[] = {(values[0] >> 16 & 0xffff) | (values[1] & ~0xffff),
                        (values[2] >> 16 & 0xffff) | (values[3] & ~0xffff)};
    UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        const __m512i lanes = (__m512i)(low + (int32_t)half * 8);
        const vf quads = (vf)_mm512_permutex2var_epi32((__m512i)pairs[0], lanes, (__m512i)pairs[1]);
        float *const to = (float *)(void *)(out + 4 * i) + half * V_LANES;
        if (whole)
            v_store(to, quads);
        else if (2 * n_quads > half * V_LANES)
            v_store_part(to, quads, at_most(2 * n_quads - half * V_LANES, V_LANES));
    }
}

static void to_quads(uint16_t *out, const float *in, size_t n)
{
    const size_t whole = bf_whole_quads(n);
    size_t i = 0;
    for (; i + V_LANES <= whole; i += V_LANES)
        bf_put_quads(out, in, n, i, true);
    for (; i < bf_quarter(n); i += V_LANES)
        bf_put_quads(out, in, n, i, false);
}

/* n columns of a row, zeros where it is NULL. */
INLINE vi bf_columns_of(const uint16_t *row, size_t n)
{
    return !row ? vi_set(0) : n >= BF_LANES ? bf_load(row) : bf_load_part(row, n);
}

/* The sums of n columns from c on, at most BF_LANES, which are lows and highs side by side. */
INLINE void bf_finish_columns(const struct linear_args *a, size_t i, size_t c, const float *sums,
                              size_t n)
{
    const vf low = v_load(sums), high = v_load(sums + V_LANES);
    const vf halves[] = {_mm512_shuffle_f32x4(low, high, 0x44),
                         _mm512_shuffle_f32x4(low, high, 0xee)};
    for (size_t d = 0; d < n; d += V_LANES) {
        const vf half = halves[d / V_LANES];
        bf_finish_some(a, i, c + d, _mm512_shuffle_f32x4(half, half, 0xd8),
                       at_most(n - d, V_LANES));
    }
}

/* How many columns from c on end with a line, or all of a vector where that is not so in every row.
 * What crosses lines needs two, and rows a power of 2 apart drive the other out of L1. */
INLINE size_t bf_to_line(const struct linear_args *a, size_t c)
{
    const size_t over = (uintptr_t)bf_w(a, 0, c) % LINE / sizeof(uint16_t);
    return a->w_stride % BF_LANES ? BF_LANES : BF_LANES - over;
}

/* What few rows of x meet at once: n columns from c on, of which a vector takes the `first` ones,
 * and their sums, in vectors: of BF_LANES columns those of each row of x. */
struct bf_part {
    size_t c, n, first;
    float *sums;
};

/* sums += n_q quads, a constant, from i on of n_x rows of x times their rows, in pairs: of 8
 * columns the first four are in low and the others in high, and so are their sums. */
INLINE void bf_strip(const struct linear_args *a, const struct bf_part *p, size_t i, size_t n_q,
                     size_t n_x, bool whole)
{
    const size_t ahead = n_q == 1 ? stream_ahead(BF_COLS_AHEAD) / 2 : BF_QUADS_AHEAD * BF_LANES;
    const size_t behind = n_q * a->w_stride, quarter = bf_quarter(a->n_k);
    const size_t asked = ahead / p->n * behind + ahead % p->n;
    const uint16_t *rows[4 * BF_QUADS];
    float *sums = p->sums;
    UNROLLED_FOR (size_t j = 0; j < 4 * n_q; j++) {
        const size_t row = j % 4 * quarter + i + j / 4;
        rows[j] = whole || row < a->n_k ? bf_w(a, row, p->c) : NULL;
    }
    for (size_t c = 0, n = p->first; c < p->n; c += n, n = BF_LANES) {
        const size_t n_c = at_most(p->n - c, n);
        const size_t ask = asked + c + (c + ahead % p->n < p->n ? 0 : behind - p->n);
        vi low[2 * BF_QUADS], high[2 * BF_QUADS];
        if (whole) {
            UNROLLED_FOR (size_t j = 0; j < 4 * n_q; j++)
                if (n_q == 1 || kernels_asks_early)
                    stream_ask(rows[j] + ask, kernels_passes_l2);
                else
                    __builtin_prefetch(rows[j] + ask, 0, 2);
        }
        UNROLLED_FOR (size_t j = 0; j < 2 * n_q; j++) {
            const uint16_t *const one = rows[2 * j], *const other = rows[2 * j + 1];
            const __m512i x = (__m512i)bf_columns_of(whole || one ? one + c : NULL, n_c);
            const __m512i y = (__m512i)bf_columns_of(whole || other ? other + c : NULL, n_c);
            low[j] = (vi)_mm512_unpacklo_epi16(x, y);
            high[j] = (vi)_mm512_unpackhi_epi16(x, y);
        }
        for (size_t row = 0; row < n_x; row++, sums += BF_LANES) {
            vf first = v_load(sums), second = v_load(sums + V_LANES);
            UNROLLED_FOR (size_t j = 0; j < 2 * n_q; j++) {
                const vi x = bf_pair(bf_x(a, row) + 4 * i + 2 * j);
                first = bf_dot(first, low[j], x);
                second = bf_dot(second, high[j], x);
            }
            v_store(sums, first);
            v_store(sums + V_LANES, second);
        }
    }
}

static void bf_finish_part(const struct linear_args *a, const struct bf_part *p)
{
    const float *sums = p->sums;
    for (size_t c = 0, n = p->first; c < p->n; c += n, n = BF_LANES)
        for (size_t i = 0; i < a->n_x; i++, sums += BF_LANES)
            bf_finish_columns(a, i, p->c + c, sums, at_most(p->n - c, n));
}

/* Columns for few rows of x: strips of n_q quads, or of one at the end. */
INLINE void bf_cols_few(const struct linear_args *a, size_t n_q, size_t n_x)
{
    float sums[BF_SUMS] __attribute__((aligned(64)));
    const size_t whole = bf_whole_quads(a->n_k);
    for (size_t c = 0, n; c < a->n_w; c += n) {
        const size_t first = bf_to_line(a, c), over = BF_LANES - first;
        n = at_most(a->n_w - c, BF_SUMS / n_x / BF_LANES * BF_LANES - over);
        const struct bf_part p = {c, n, first, sums};
        size_t i = 0;
        memset(sums, 0, n_x * ((n + over + BF_LANES - 1) / BF_LANES * BF_LANES) * sizeof *sums);
        for (; i + n_q <= whole; i += n_q)
            bf_strip(a, &p, i, n_q, n_x, true);
        for (; i < whole; i++)
            bf_strip(a, &p, i, 1, n_x, true);
        for (; i < bf_quarter(a->n_k); i++)
            bf_strip(a, &p, i, 1, n_x, false);
        bf_finish_part(a, &p);
    }
}

/* Functions of their own: inlined side by side, they make compilers spill. */
#define BF_COLS_FEW(name, n_q, n_x)                                                                \
    static void __attribute__((noinline)) bf_cols_##name(const struct linear_args *a)              \
    {                                                                                              \
        bf_cols_few(a, n_q, n_x);                                                                  \
    }
BF_COLS_FEW(alone, 1, 1)
BF_COLS_FEW(some, BF_QUADS, a->n_x)
#undef BF_COLS_FEW

/* For many rows of x, whose values are whole quads, args.n_k of them. */
struct bf_quads {
    struct linear_args args;
    size_t n_rows; /* of weights */
};

/* The rows of weights that a sum has. */
struct bf_rows {
    size_t first, n;
};

INLINE struct bf_rows bf_rows_of(const struct linear_args *a, size_t k)
{
    const size_t n_rows = ((const struct bf_quads *)(const void *)a)->n_rows;
    if (k < a->n_first)
        return (struct bf_rows){0, a->n_first};
    return (struct bf_rows){a->n_first, n_rows - a->n_first};
}

/* The pairs of rows of values k + s and k + s + 1 of a piece, a half of a quad, [BF_COLS], of which
 * all columns are there if it is `whole`. */
INLINE void bf_cols_pack(vi *to, const struct linear_args *a, const struct bf_piece *p, size_t k,
                         size_t s, bool whole)
{
    const vi low = {0x200000, 0x210001, 0x220002, 0x230003, 0x240004, 0x250005, 0x260006, 0x270007,
                    0x280008, 0x290009, 0x2a000a, 0x2b000b, 0x2c000c, 0x2d000d, 0x2e000e, 0x2f000f};
    const vi high = low + 0x100010;
    const struct bf_rows rows = bf_rows_of(a, p->k);
    const size_t quarter = bf_quarter(rows.n);
    const size_t one = s * quarter + (p->k - rows.first + k) / 4, other = one + quarter;
    const uint16_t *const row = bf_w(a, rows.first + one, p->r);
    UNROLLED_FOR (size_t c = 0; c < BF_COLS; c += BF_LANES, to += 2) {
        const size_t n = whole ? BF_LANES : at_most(p->n_w > c ? p->n_w - c : 0, BF_LANES);
        const vi x = bf_columns_of(one < rows.n ? row + c : NULL, n);
        const vi y = bf_columns_of(other < rows.n ? row + quarter * a->w_stride + c : NULL, n);
        to[0] = (vi)_mm512_permutex2var_epi16((__m512i)x, (__m512i)low, (__m512i)y);
        to[1] = (vi)_mm512_permutex2var_epi16((__m512i)x, (__m512i)high, (__m512i)y);
    }
}

/* acc += values [k, end) of n_x rows of x times their part of a block, which `packs` makes, perhaps
 * of `whole` rows. Each quarter has instructions of its own, so that processors foresee its rows.
 */
INLINE void bf_cols_turn(const struct linear_args *a, vf (*acc)[BF_COLS_V], vi *block,
                         const struct bf_piece *p, const uint16_t *const *x, size_t n_x, size_t k,
                         size_t end, bool packs, bool whole)
{
    block += k / 2 * BF_COLS_V;
    for (; k < end; k += 4)
        UNROLLED_FOR (size_t s = 0; s < 4; s += 2, block += BF_COLS_V) {
            if (packs)
                bf_cols_pack(block, a, p, k, s, whole);
            UNROLLED_FOR (size_t j = 0; j < n_x; j++) {
                const vi pair = bf_pair(x[j] + k + s);
                UNROLLED_FOR (size_t v = 0; v < BF_COLS_V; v++)
                    acc[j][v] = bf_dot(acc[j][v], block[v], pair);
            }
        }
}

/* What waits for each row of x: sums that are not complete, or just so, and the first of two. */
struct bf_sums {
    vf (*part)[BF_COLS_V], (*first)[BF_COLS_V];
};

/* Row i of y, whose sums are complete. */
static void bf_cols_finish(const struct linear_args *a, const struct bf_piece *p, size_t i,
                           const vf *first, const vf *sums)
{
    const vf scale = v_set(a->scale);
    for (size_t c = 0; c < p->n_w; c += V_LANES, first++, sums++) {
        const size_t n = at_most(p->n_w - c, V_LANES);
        float *const y = &a->y[i * a->y_stride + p->r + c];
        const vf bias = a->bias ? v_load_part(a->bias + p->r + c, n) : v_set(0);
        const vf before = a->add ? v_load_part(y, n) : v_set(0);
        if (a->n_first)
            v_store_part(y, before + scale * (*first + bias) + scale * *sums, n);
        else
            v_store_part(y, before + scale * (*sums + bias), n);
    }
}

/* sums (+)= rows i + j of x times a block, for j < n_x, a constant that may be more than there are.
 * A turn for each BF_COLS_TURN values. */
INLINE void bf_cols_tile(const struct linear_args *a, const struct bf_sums *sums, vi *block,
                         const struct bf_piece *p, size_t i, size_t n_x, bool packs, bool whole,
                         struct ahead *next)
{
    const uint16_t *x[BF_X];
    vf acc[BF_X][BF_COLS_V];
    const bool begins = p->k == 0 || p->k == a->n_first, ends = p->k + p->n == a->n_k;
    UNROLLED_FOR (size_t j = 0; j < n_x; j++) {
        x[j] = bf_x(a, at_most(i + j, a->n_x - 1)) + p->k;
        UNROLLED_FOR (size_t v = 0; v < BF_COLS_V; v++)
            acc[j][v] = begins ? v_set(0) : sums->part[j][v];
    }
    for (size_t k = 0; k < p->n; k += BF_COLS_TURN) {
        ahead_turn(&next[(i + k / BF_COLS_TURN) % 4]);
        if (ends)
            bf_ask_y(a, i, p->r, BF_COLS_V, k / BF_COLS_TURN);
        bf_cols_turn(a, acc, block, p, x, n_x, k, at_most(p->n, k + BF_COLS_TURN), packs, whole);
    }
    vf(*const to)[BF_COLS_V] = !ends && p->k + p->n == a->n_first ? sums->first : sums->part;
    UNROLLED_FOR (size_t j = 0; j < n_x; j++)
        UNROLLED_FOR (size_t v = 0; v < BF_COLS_V; v++)
            to[j][v] = acc[j][v];
}

/* One piece against the rows [x0, x0 + n_x) of x, while the next is asked for. */
static void bf_cols_run(const struct linear_args *a, struct bf_sums sums, vi *block,
                        const struct bf_piece *p, const struct bf_piece *next, size_t x0,
                        size_t n_x)
{
    const size_t n_turns = (n_x + BF_X - 1) / BF_X * ((p->n + BF_COLS_TURN - 1) / BF_COLS_TURN);
    const struct bf_rows rows = bf_rows_of(a, next->k);
    struct ahead ahead[4]; /* a quarter in every fourth turn */
    for (size_t s = 0; s < 4; s++) {
        const size_t row = rows.first + s * bf_quarter(rows.n) + (next->k - rows.first) / 4;
        ahead[s] = ahead_in_turns(bf_w(a, row, next->r), 2 * a->w_stride, 2 * next->n_w,
                                  next->n / 4, n_turns / 4);
    }
    for (size_t i = 0, n; i < n_x; i += n, sums.part += n, sums.first += n) {
        /* the first tile packs and has the sums of BF_X rows, so that many are its own */
        n = i ? bf_tile_rows(n_x - i) : at_most(n_x, BF_X);
        if (i == 0 && p->n_w == BF_COLS)
            bf_cols_tile(a, &sums, block, p, x0, BF_X, true, true, ahead);
        else if (i == 0)
            bf_cols_tile(a, &sums, block, p, x0, BF_X, true, false, ahead);
        else if (n > 4)
            bf_cols_tile(a, &sums, block, p, x0 + i, BF_X, false, false, ahead);
        else if (n > 2)
            bf_cols_tile(a, &sums, block, p, x0 + i, 4, false, false, ahead);
        else
            bf_cols_tile(a, &sums, block, p, x0 + i, 2, false, false, ahead);
        for (size_t j = 0; p->k + p->n == a->n_k && j < n; j++)
            bf_cols_finish(a, p, x0 + i + j, sums.first[j], sums.part[j]);
    }
}

static void bf_cols_many(const struct linear_args *args)
{
    struct bf_quads quads = {*args, args->n_k};
    const struct linear_args *const a = &quads.args;
    quads.args.n_k = 4 * bf_quarter(args->n_k);
    vf part[BF_X_MAX + BF_X][BF_COLS_V], first[BF_X_MAX + BF_X][BF_COLS_V];
    vi block[BF_COLS_K / 2 * BF_COLS_V];
    const size_t second = a->n_k - a->n_first, longer = second > a->n_first ? second : a->n_first;
    const size_t most_k = bf_piece_k(longer, kernels_asks_early ? BF_COLS_K / 2 : BF_COLS_K);
    for (size_t x0 = 0; x0 < a->n_x; x0 += BF_X_MAX) {
        struct bf_piece p = bf_piece_at(a, 0, 0, BF_COLS, most_k);
        while (p.n_w) {
            const struct bf_piece next = bf_piece_after(a, &p, BF_COLS, most_k);
            bf_cols_run(a, (struct bf_sums){part, first}, block, &p, &next, x0,
                        at_most(a->n_x - x0, BF_X_MAX));
            p = next;
        }
    }
}

static void bf_cols_one_sum(const struct linear_args *a)
{
    if (a->n_x == 1)
        bf_cols_alone(a);
    else if (a->n_x)
        bf_cols_some(a);
}

static void linear_cols_bf16(const struct linear_args *a)
{
    if (a->n_x > BF_COLS_SEVERAL)
        bf_cols_many(a);
    else
        each_sum(a, bf_cols_one_sum);
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
    k->linear_rows_f8 = linear_rows_f8;
    k->linear_cols_bf16 = linear_cols_bf16;
    k->to_quads = to_quads;
    k->peak[PEAK_BF16] = peak_bf16;
    k->per_cycle[PEAK_BF16] = 2 * BF_LANES;
    kernels_avx512bf16_attend_fill(k);
}
