/*
 * The rung for 64-bit ARM with products of matrices of bf16 (FEAT_BF16 of ARMv8.6): Neoverse V1
 * (Graviton3), N2 and V2, Cortex-A510, A710 and X2 (2021), Apple since M2. One instruction
 * multiplies two rows by two, 4 values each, into 2 x 2 sums in f32, so activations are rounded to
 * bf16 and weights stay as they are. It takes subnormal numbers for zero and rounds to odd on the
 * way (Arm Architecture Reference Manual, BFMMLA).
 *
 * One order of a sum, whichever loop computes it: a chain of that instruction along k, from 0 on,
 * over whole BF_LANES values.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/vectors_neon.h"

#include "core/kernels/weights.inc"

/*
 * Operands are pairs of rows: 4 values of the first, 4 of the second. A tile of BF_R rows of x and
 * of weights has as many sums as leave registers to its operands. BF_K values of BF_W rows of
 * weights and of a tile of x are packed in L1, while the sums of BF_X_MAX rows of x wait; few rows
 * of x leave theirs in BF_SUMS vectors while strips pass by, BF_LANES rows of a transposed matrix
 * that are read side by side. A stream is a row, or some, that is read from front to back.
 */
enum {
    BF_LANES = 8,     /* bf16 in a vector */
    BF_PRODUCTS = 16, /* of an instruction */
    BF_R = 8,
    BF_P = BF_R / 2, /* pairs of a tile */
    BF_W = 32,
    BF_K = 512,
    BF_X_MAX = 256,
    BF_SUMS = 2048,
};

INLINE vf bf_dots(vf acc, vi x, vi w)
{
    return vbfmmlaq_f32(acc, vreinterpretq_bf16_s32((int32x4_t)x),
                        vreinterpretq_bf16_s32((int32x4_t)w));
}

INLINE vi bf_load(const uint16_t *p, size_t n)
{
    return n < BF_LANES ? vi_load_part(p, n * sizeof *p) : vi_load(p);
}

/* Two rows -> pairs of their first and of their second 4 values. */
INLINE void bf_pair(vi *out, vi a, vi b)
{
    out[0] = (vi)vzip1q_s64((int64x2_t)a, (int64x2_t)b);
    out[1] = (vi)vzip2q_s64((int64x2_t)a, (int64x2_t)b);
}

/* 4 rows of 8 columns -> 4 pairs of columns. */
INLINE void bf_pair_columns(vi *out, const vi *rows)
{
    const uint16x8_t a = (uint16x8_t)rows[0], b = (uint16x8_t)rows[1];
    const uint16x8_t c = (uint16x8_t)rows[2], d = (uint16x8_t)rows[3];
    const uint32x4_t ab0 = (uint32x4_t)vzip1q_u16(a, b), ab1 = (uint32x4_t)vzip2q_u16(a, b);
    const uint32x4_t cd0 = (uint32x4_t)vzip1q_u16(c, d), cd1 = (uint32x4_t)vzip2q_u16(c, d);
    out[0] = (vi)vzip1q_u32(ab0, cd0);
    out[1] = (vi)vzip2q_u32(ab0, cd0);
    out[2] = (vi)vzip1q_u32(ab1, cd1);
    out[3] = (vi)vzip2q_u32(ab1, cd1);
}

INLINE const uint16_t *bf_x(const struct linear_args *a, size_t i)
{
    return (const uint16_t *)a->x + at_most(i, a->n_x - 1) * a->x_stride;
}

INLINE const uint16_t *bf_w(const struct linear_args *a, size_t row)
{
    return (const uint16_t *)a->w + row * a->w_stride;
}

/* The sums of a pair of rows of x, i and i + 1, with a pair of outputs, r and r + step; those that
 * are there. */
static void bf_finish(const struct linear_args *a, size_t i, size_t r, size_t step, vf acc)
{
    float sums[4];
    v_store(sums, acc);
    for (size_t j = 0; j < 2 && i + j < a->n_x; j++)
        for (size_t s = 0; s < 2 && r + s * step < a->n_w; s++) {
            const size_t at = r + s * step;
            float *const y = &a->y[(i + j) * a->y_stride + at];
            *y = (a->add ? *y : 0) + a->scale * (sums[2 * j + s] + (a->bias ? a->bias[at] : 0));
        }
}

/* ---- few rows of x, by constant numbers of pairs ---- */

/* Values [k, k + BF_LANES) of n_p pairs of rows of x, which go on with zeros. */
INLINE void bf_few_x(vi (*out)[2], const struct linear_args *a, size_t k, size_t n_p)
{
    UNROLLED_FOR (size_t p = 0; p < n_p; p++)
        bf_pair(out[p], vi_load(bf_x(a, 2 * p) + k), vi_load(bf_x(a, 2 * p + 1) + k));
}

/* acc[n_p, n_g] += values [k, k + n) of x times those of n_g pairs of rows of weights, for n <=
 * BF_LANES. */
INLINE void bf_few_step(const struct linear_args *a, vf (*acc)[BF_P], const uint16_t *const *w,
                        size_t k, size_t n, size_t n_p, size_t n_g)
{
    vi xs[BF_P][2];
    bf_few_x(xs, a, k, n_p);
    UNROLLED_FOR (size_t g = 0; g < n_g; g++) {
        vi ws[2];
        bf_pair(ws, bf_load(w[2 * g] + k, n), bf_load(w[2 * g + 1] + k, n));
        UNROLLED_FOR (size_t p = 0; p < n_p; p++)
            acc[p][g] = bf_dots(bf_dots(acc[p][g], xs[p][0], ws[0]), xs[p][1], ws[1]);
    }
}

/* The weights are the cost, read in streams as in rows_few of kernels.inc: n_g pairs, as many as
 * leave registers to the chains, which hide some of the latency of a dot. */
INLINE void bf_rows_few(const struct linear_args *a, size_t n_p, size_t n_g)
{
    const size_t n_streams = 2 * n_g, whole = a->n_k / BF_LANES * BF_LANES;
    const size_t n_rows = (a->n_w + n_streams - 1) / n_streams;
    for (size_t row = 0; row < n_rows; row++) {
        const uint16_t *w[BF_R];
        vf acc[BF_P][BF_P] = {{{0}}}, sums[BF_P * BF_P];
        for (size_t s = 0; s < n_streams; s++)
            w[s] = bf_w(a, at_most(row + s * n_rows, a->n_w - 1));
        for (size_t k = 0; k < whole; k += BF_LANES)
            bf_few_step(a, acc, w, k, BF_LANES, n_p, n_g);
        if (whole < a->n_k)
            bf_few_step(a, acc, w, whole, a->n_k - whole, n_p, n_g);
        UNROLLED_FOR (size_t p = 0; p < n_p; p++)
            UNROLLED_FOR (size_t g = 0; g < n_g; g++)
                sums[p * n_g + g] = acc[p][g]; /* an index that varies would keep acc in memory */
        for (size_t i = 0; i < n_p * n_g; i++)
            bf_finish(a, i / n_g * 2, row + i % n_g * 2 * n_rows, n_rows, sums[i]);
    }
}

/* Values [k, k + n) of the columns [c, c + BF_LANES), those that are there, as pairs; BF_LANES
 * values, zeros behind. */
INLINE void bf_columns(vi (*out)[BF_P], const struct linear_args *a, size_t c, size_t k, size_t n)
{
    vi rows[BF_LANES];
    UNROLLED_FOR (size_t j = 0; j < BF_LANES; j++)
        rows[j] = j < n ? bf_load(bf_w(a, k + j) + c, a->n_w - c) : vi_set(0);
    bf_pair_columns(out[0], rows);
    bf_pair_columns(out[1], rows + BF_P);
}

/* What few rows of x ask for, of columns [c, c + n): a line of each row of a strip in a turn, as
 * many turns early. Many rows at once are what keeps memory busy, as processors foresee each. */
INLINE struct ahead bf_strips(const struct linear_args *a, size_t c, size_t n)
{
    enum { TURNS = 8 };
    const size_t n_bytes = n * sizeof(uint16_t), n_turns = (n_bytes + LINE - 1) / LINE;
    const size_t k = at_most(TURNS / n_turns * BF_LANES, a->n_k);
    return (struct ahead){.row = (const char *)(bf_w(a, k) + c),
                          .stride = a->w_stride * sizeof(uint16_t),
                          .n_bytes = n_bytes,
                          .n_rows = a->n_k - k,
                          .at = TURNS % n_turns * LINE};
}

INLINE void bf_strips_turn(struct ahead *a)
{
    if (a->n_rows < BF_LANES)
        return;
    UNROLLED_FOR (size_t k = 0; k < BF_LANES; k++)
        __builtin_prefetch(a->row + k * a->stride + a->at, 0, 2);
    a->at += LINE;
    if (a->at >= a->n_bytes) {
        a->at = 0;
        a->row += BF_LANES * a->stride;
        a->n_rows -= BF_LANES;
    }
}

/* sums[n / 2, n_p] += values [k, k + n_k) of x times those of n columns from c on. */
INLINE void bf_strip(const struct linear_args *a, vf *sums, size_t c, size_t n, size_t k,
                     size_t n_k, size_t n_p, struct ahead *ahead)
{
    vi xs[BF_P][2], ws[2][BF_P];
    bf_few_x(xs, a, k, n_p);
    for (size_t d = 0; d < n; d += BF_LANES) {
        if (d * sizeof(uint16_t) % LINE == 0)
            bf_strips_turn(ahead);
        bf_columns(ws, a, c + d, k, n_k);
        UNROLLED_FOR (size_t g = 0; g < BF_P; g++)
            UNROLLED_FOR (size_t p = 0; p < n_p; p++, sums++)
                *sums = bf_dots(bf_dots(*sums, xs[p][0], ws[0][g]), xs[p][1], ws[1][g]);
    }
}

INLINE void bf_cols_few(const struct linear_args *a, size_t n_p)
{
    const size_t most = BF_SUMS / n_p / BF_P * BF_LANES;
    const size_t whole = a->n_k / BF_LANES * BF_LANES;
    for (size_t c = 0, n; c < a->n_w; c += n) {
        vf sums[BF_SUMS];
        n = at_most(a->n_w - c, most);
        struct ahead ahead = bf_strips(a, c, n);
        memset(sums, 0, (n + BF_LANES - 1) / BF_LANES * BF_P * n_p * sizeof *sums);
        for (size_t k = 0; k < whole; k += BF_LANES)
            bf_strip(a, sums, c, n, k, BF_LANES, n_p, &ahead);
        if (whole < a->n_k)
            bf_strip(a, sums, c, n, whole, a->n_k - whole, n_p, &ahead);
        for (size_t d = 0; d < n; d += 2)
            for (size_t p = 0; p < n_p; p++)
                bf_finish(a, 2 * p, c + d, 1, sums[d / 2 * n_p + p]);
    }
}

/* Functions of their own: inlined side by side, they make compilers spill; and so do more streams
 * beside many rows of x. */
#define BF_FEW(n_p, n_g)                                                                           \
    static void __attribute__((noinline)) bf_rows_##n_p(const struct linear_args *a)               \
    {                                                                                              \
        bf_rows_few(a, n_p, n_g);                                                                  \
    }                                                                                              \
    static void __attribute__((noinline)) bf_cols_##n_p(const struct linear_args *a)               \
    {                                                                                              \
        bf_cols_few(a, n_p);                                                                       \
    }
BF_FEW(1, 4)
BF_FEW(2, 4)
BF_FEW(3, 2)
BF_FEW(4, 2)
#undef BF_FEW

/* ---- many rows of x ---- */

/* n values of BF_R rows -> [n / 4, BF_P] pairs; whole vectors, zeros behind. */
static void bf_pack(vi *out, const uint16_t *const *rows, size_t n)
{
    for (size_t k = 0; k < n; k += BF_LANES, out += 2 * BF_P)
        UNROLLED_FOR (size_t g = 0; g < BF_P; g++) {
            vi pair[2];
            bf_pair(pair, bf_load(rows[2 * g] + k, n - k), bf_load(rows[2 * g + 1] + k, n - k));
            out[g] = pair[0];
            out[BF_P + g] = pair[1];
        }
}

static void bf_pack_x(vi *out, const struct linear_args *a, size_t i, size_t k, size_t n)
{
    const uint16_t *rows[BF_R];
    for (size_t j = 0; j < BF_R; j++)
        rows[j] = bf_x(a, i + j) + k;
    bf_pack(out, rows, n);
}

/* Values [k, k + n) of BF_R outputs from r on in the same order. */
static void bf_pack_rows(vi *out, const struct linear_args *a, size_t r, size_t k, size_t n)
{
    const uint16_t *rows[BF_R];
    for (size_t j = 0; j < BF_R; j++)
        rows[j] = bf_w(a, at_most(r + j, a->n_w - 1)) + k;
    bf_pack(out, rows, n);
}

static void bf_pack_cols(vi *out, const struct linear_args *a, size_t r, size_t k, size_t n)
{
    for (size_t j = 0; j < n; j += BF_LANES, out += 2 * BF_P)
        bf_columns((vi(*)[BF_P])out, a, r, k + j, n - j);
}

/* sums[n_p, BF_P] += packed values of x times those of weights; n_p is a constant. */
INLINE void bf_tile(vf *sums, const vi *x, const vi *w, size_t n_quads, size_t n_p)
{
    vf acc[BF_P][BF_P];
    UNROLLED_FOR (size_t p = 0; p < n_p; p++)
        UNROLLED_FOR (size_t g = 0; g < BF_P; g++)
            acc[p][g] = sums[p * BF_P + g];
    for (size_t q = 0; q < n_quads; q++, x += BF_P, w += BF_P)
        UNROLLED_FOR (size_t p = 0; p < n_p; p++)
            UNROLLED_FOR (size_t g = 0; g < BF_P; g++)
                acc[p][g] = bf_dots(acc[p][g], x[p], w[g]);
    UNROLLED_FOR (size_t p = 0; p < n_p; p++)
        UNROLLED_FOR (size_t g = 0; g < BF_P; g++)
            sums[p * BF_P + g] = acc[p][g];
}

/* What waits for BF_R rows of x: BF_W outputs, by tiles. */
typedef vf bf_sums[BF_W / BF_R][BF_P * BF_P];

/* sums += values [k, k + n) of the rows [x0, x0 + n_x) of x times those of BF_W outputs from r on,
 * those that are there. */
INLINE void bf_piece(const struct linear_args *a, bool cols, bf_sums *sums, size_t x0, size_t n_x,
                     size_t r, size_t k, size_t n)
{
    vi w[BF_W / BF_R][BF_K / 4 * BF_P], x[BF_K / 4 * BF_P];
    const size_t n_tiles = (at_most(a->n_w - r, BF_W) + BF_R - 1) / BF_R;
    const size_t n_quads = (n + BF_LANES - 1) / BF_LANES * 2;
    for (size_t t = 0; t < n_tiles; t++)
        (cols ? bf_pack_cols : bf_pack_rows)(w[t], a, r + t * BF_R, k, n);
    for (size_t i = 0; i < n_x; i += BF_R, sums++) {
        bf_pack_x(x, a, x0 + i, k, n);
        for (size_t t = 0; t < n_tiles; t++)
            if (n_x - i > BF_R / 2)
                bf_tile((*sums)[t], x, w[t], n_quads, BF_P);
            else
                bf_tile((*sums)[t], x, w[t], n_quads, BF_P / 2);
    }
}

INLINE void bf_many(const struct linear_args *a, bool cols)
{
    bf_sums sums[BF_X_MAX / BF_R];
    for (size_t x0 = 0; x0 < a->n_x; x0 += BF_X_MAX) {
        const size_t n_x = at_most(a->n_x - x0, BF_X_MAX);
        for (size_t r = 0; r < a->n_w; r += BF_W) {
            memset(sums, 0, (n_x + BF_R - 1) / BF_R * sizeof *sums);
            for (size_t k = 0; k < a->n_k; k += BF_K)
                bf_piece(a, cols, sums, x0, n_x, r, k, at_most(a->n_k - k, BF_K));
            for (size_t i = 0; i < n_x; i += 2)
                for (size_t d = 0; d < BF_W; d += 2) {
                    const size_t at = i % BF_R / 2 * BF_P + d % BF_R / 2;
                    bf_finish(a, x0 + i, r + d, 1, sums[i / BF_R][d / BF_R][at]);
                }
        }
    }
}

static void bf_rows_many(const struct linear_args *a)
{
    bf_many(a, false);
}

static void bf_cols_many(const struct linear_args *a)
{
    bf_many(a, true);
}

typedef void (*bf_fn)(const struct linear_args *a);

static void linear_rows_bf16(const struct linear_args *a)
{
    static const bf_fn few[] = {bf_rows_1, bf_rows_2, bf_rows_3, bf_rows_4};
    if (a->n_x > 0)
        (a->n_x > BF_R ? bf_rows_many : few[(a->n_x - 1) / 2])(a);
}

static void linear_cols_bf16(const struct linear_args *a)
{
    static const bf_fn few[] = {bf_cols_1, bf_cols_2, bf_cols_3, bf_cols_4};
    if (a->n_x > 0)
        each_sum(a, a->n_x > BF_R ? bf_cols_many : few[(a->n_x - 1) / 2]);
}

static double peak_bf16(size_t n_steps)
{
    vi x = vi_set(0x3f803f80); /* 1.0, 1.0 */
    vf a[PEAK_CHAINS], sum = v_set(0);
    ANY_VALUE(x); /* or gcc 12 makes it the f16 of 1.0, which is another */
    EVERY_CHAIN (i) {
        a[i] = sum;
        ANY_VALUE(a[i]);
    }
    for (size_t step = 0; step < n_steps; step++)
        EVERY_CHAIN (i)
            a[i] = bf_dots(a[i], x, x);
    EVERY_CHAIN (i)
        sum += a[i];
    volatile float kept = v_sum(sum);
    (void)kept;
    return 2.0 * BF_PRODUCTS * PEAK_CHAINS * (double)n_steps;
}

void kernels_neonbf16_fill(struct kernels *k)
{
    k->linear_rows_bf16 = linear_rows_bf16;
    k->linear_cols_bf16 = linear_cols_bf16;
    k->peak[PEAK_BF16] = peak_bf16;
    k->per_cycle[PEAK_BF16] = 2 * BF_PRODUCTS;
}
