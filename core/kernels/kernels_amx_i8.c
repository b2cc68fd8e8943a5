/*
 * Products of int8 by tiles of AMX: the part of the rung amx that multiplies quantised weights with
 * more than a few rows of x. One instruction adds the products of 16 rows of weights, 64 codes
 * each, with those of 16 rows of x to 16 x 16 int32 (Intel SDM volume 2, TDPBSSD).
 *
 * Weights are the left side: bytes become tiles where they lie, 4 bits by a mask and a shift. Of x,
 * the right side, four codes of one row stand beside four of the next. A tile of results is so
 * many rows of weights by rows of x, and is turned around when it is finished. Whole numbers are
 * exact in any order; what is done in f32 is what dots.inc does: one FMA per group and output.
 */
#include "core/kernels/rungs.h"
#include "core/kernels/tiles_amx.h"
#include "core/kernels/vectors_avx512.h"
#include "core/kernels/groups.inc"

/*
 * X_CODES codes of up to X_MAX rows of x are packed at a time, and W_K codes of two tiles of
 * weights; N_SUMS sums wait for the codes that follow.
 */
enum {
    FEW_I8 = 4, /* rows of x that are better read against weights by vectors */
    FEW_U4 = 7,
    PAIR = 2 * T_ROWS,
    X_MAX = 256,
    X_CODES = 1 << 18,
    X_GROUPS = X_CODES / 32,
    W_K = 512,
    W_GROUPS = W_K / 32,
    UNIT_GROUPS = 2, /* whose products are added to sums at once */
    N_SUMS = 1 << 17,
};

/* Sums, or whole numbers, of two tiles of weights (rows) and two of x (columns). */
typedef float sums_block[PAIR][PAIR];
typedef int32_t whole_block[PAIR][PAIR];

/* Codes [k, k + n) of rows [x0, x0 + n_x) of x. A tile's codes are [n_k / 4][T_ROWS][4]; scales
 * are [groups][n_padded]. */
struct x_part {
    unsigned char codes[X_CODES] __attribute__((aligned(64)));
    float scales[X_GROUPS];
    size_t x0, n_x, n_padded;
    size_t k, n, n_k; /* n_k: n in whole groups; n 0: none yet */
};

/* Up to W_K codes of two tiles of weights, where the matrix has them or, less their zero points,
 * in [2][W_K / step][T_ROWS][step]. */
struct w_part {
    unsigned char codes[2][W_K * T_ROWS] __attribute__((aligned(64)));
    float scales[W_GROUPS + 7][PAIR]; /* of the weights' groups */
    const unsigned char *tiles[2];    /* the first ones */
    size_t row_stride, step_stride;   /* bytes from a tile's row to the next, from tile to tile */
    bool in_memory;                   /* not in `codes` */
};

/* The codes of a row in a tile: of one group, or half of the longest. */
INLINE size_t step_of(const struct linear_i8_args *a)
{
    return at_most(a->x_group, T_BYTES);
}

/* ---- x ---- */

/* Where in a row of x the 16 codes lie that multiply 16 codes of a row of weights in a tile, from
 * code k on. In split order a group is in two places. */
INLINE size_t x_place(int type, size_t group, size_t k)
{
    if (type == DOT_I8)
        return k;
    const size_t j = k % group, half = group / 2;
    return i8_place(k - j, true) + j / half * (KERNELS_I8_BLOCK / 2) + j % half;
}

/* Rows [i, i + T_ROWS) of the part, as far as there are, zeros behind them. */
INLINE void x_pack_tile(unsigned char *out, const struct linear_i8_args *a, int type, size_t group,
                        const struct x_part *p, size_t i)
{
    const unsigned char *const rows = a->x + (p->x0 + i) * a->x_stride;
    const size_t n_rows = at_most(p->n_x - i, T_ROWS);
    for (size_t k = 0; k < p->n_k; k += 16, out += 16 * T_ROWS) {
        const size_t place = x_place(type, group, p->k + k);
        vi columns[4];
        if (n_rows == T_ROWS) {
            vi_columns(columns, rows + place, a->x_stride);
        } else {
            unsigned char some[T_ROWS][16] = {{0}};
            for (size_t j = 0; j < n_rows; j++)
                memcpy(some[j], rows + j * a->x_stride + place, sizeof *some);
            vi_columns(columns, some[0], sizeof *some);
        }
        UNROLLED_FOR (size_t c = 0; c < 4; c++)
            vi_store(out + c * T_BYTES, columns[c]);
    }
}

static void x_pack_scales(struct x_part *p, const struct linear_i8_args *a)
{
    const size_t first = p->k / a->x_group, n = p->n_k / a->x_group;
    for (size_t i = 0; i < p->n_padded; i++) {
        const size_t row = p->x0 + at_most(i, p->n_x - 1);
        const float *const scales = i8_scales(a, row) + first;
        for (size_t g = 0; g < n; g++)
            p->scales[g * p->n_padded + i] = scales[g];
    }
}

/* Codes from k on, `span` at the most, if they are not there already. */
static void x_pack(struct x_part *p, const struct linear_i8_args *a, int type, size_t k,
                   size_t span)
{
    if (p->n > 0 && p->k == k)
        return;
    p->k = k;
    p->n = at_most(a->n_k - k, span);
    p->n_k = (p->n + a->x_group - 1) / a->x_group * a->x_group;
    for (size_t i = 0; i < p->n_x; i += T_ROWS) {
        unsigned char *const out = p->codes + i * p->n_k;
        if (a->x_group == 128)
            x_pack_tile(out, a, type, 128, p, i);
        else if (a->x_group == 64)
            x_pack_tile(out, a, type, 64, p, i);
        else
            x_pack_tile(out, a, type, 32, p, i);
    }
    x_pack_scales(p, a);
}

/* ---- weights ---- */

/* 64 codes of a row, from k on. */
INLINE void w_store(unsigned char *out, size_t k, size_t step, __m512i codes)
{
    out += k * T_ROWS;
    if (step == T_BYTES) {
        vi_store(out, (vi)codes);
        return;
    }
    _mm256_storeu_si256((void *)out, _mm512_castsi512_si256(codes));
    _mm256_storeu_si256((void *)(out + step * T_ROWS), _mm512_extracti64x4_epi64(codes, 1));
}

/* 64 bytes of 4-bit codes, from code k on: of each group the lower halves, then the upper ones.
 * zeros: of the groups. */
INLINE void w_split(unsigned char *out, size_t k, size_t group, __m512i bytes, const int8_t *zeros)
{
    const __m512i mask = _mm512_set1_epi8(15);
    const __m512i low = _mm512_and_si512(bytes, mask);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
    const int8_t *const zero = zeros + k / group;
    __m512i first = low, second = high;
    __m512i first_zero = _mm512_set1_epi8(zero[0]), second_zero = first_zero;
    if (group == 64) {
        first = _mm512_shuffle_i64x2(low, high, 0x44);
        second = _mm512_shuffle_i64x2(low, high, 0xee);
        second_zero = _mm512_set1_epi8(zero[1]);
    } else if (group == 32) {
        const __m512i by_turns = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        const __m512i behind = _mm512_add_epi64(by_turns, _mm512_set1_epi64(4));
        first = _mm512_permutex2var_epi64(low, by_turns, high);
        second = _mm512_permutex2var_epi64(low, behind, high);
        first_zero = _mm512_inserti64x4(first_zero, _mm256_set1_epi8(zero[1]), 1);
        second_zero = _mm512_inserti64x4(_mm512_set1_epi8(zero[2]), _mm256_set1_epi8(zero[3]), 1);
    }
    w_store(out, k, at_most(group, T_BYTES), _mm512_sub_epi8(first, first_zero));
    w_store(out, k + T_BYTES, at_most(group, T_BYTES), _mm512_sub_epi8(second, second_zero));
}

/* Bytes [0, n_bytes) of a row. */
INLINE void w_pack_row(unsigned char *out, const unsigned char *row, int type, size_t group,
                       size_t n_bytes, const int8_t *zeros)
{
    for (size_t at = 0; at < n_bytes; at += T_BYTES) {
        const size_t n = at_most(n_bytes - at, T_BYTES);
        const __m512i bytes =
            (__m512i)(n == T_BYTES ? vi_load(row + at) : vi_load_part(row + at, n));
        if (type == DOT_I8)
            w_store(out, at, at_most(group, T_BYTES), bytes);
        else
            w_split(out, 2 * at, group, bytes, zeros);
    }
}

/* The zero points. */
INLINE void w_zeros(const struct linear_i8_args *a, size_t r, size_t g, size_t n, int8_t *zeros)
{
    for (size_t j = 0; j < n; j++)
        zeros[j] = (int8_t)dot_row_zero(a, r, dot_w_group(a, g + j));
}

/* Rows of weights that the pair from r on takes as its row i. */
INLINE size_t w_row(const struct linear_i8_args *a, size_t r, size_t i)
{
    return tile_row(r + i / T_ROWS * T_ROWS, a->n_w) + i % T_ROWS;
}

/* Codes [k, k + n) of the rows from r on. */
INLINE void w_pack_groups(struct w_part *p, const struct linear_i8_args *a, int type, size_t group,
                          size_t r, size_t k, size_t n)
{
    const size_t step = at_most(group, T_BYTES);
    int8_t zeros[W_GROUPS];
    memset(zeros, a->zero, sizeof zeros);
    for (size_t i = 0; i < PAIR; i++) {
        const size_t row = w_row(a, r, i);
        unsigned char *const out = p->codes[i / T_ROWS] + i % T_ROWS * step;
        if (a->zeros)
            w_zeros(a, row, k / group, (n + group - 1) / group, zeros);
        w_pack_row(out, a->w + row * a->w_stride + dot_bytes(type, k), type, group,
                   dot_bytes(type, n), zeros);
    }
    p->tiles[0] = p->codes[0];
    p->tiles[1] = p->codes[1];
    p->row_stride = step;
    p->step_stride = step * T_ROWS;
}

/* Tiles read whole groups: behind a row's end they meet the zeros of x, and the next row has to be
 * there. */
static void w_take(struct w_part *p, const struct linear_i8_args *a, int type, size_t r, size_t k,
                   size_t n)
{
    const bool there = r + PAIR < a->n_w && a->w_stride >= a->x_group;
    p->in_memory = type == DOT_I8 && (there || n % a->x_group == 0);
    if (p->in_memory) {
        p->tiles[0] = a->w + w_row(a, r, 0) * a->w_stride + k;
        p->tiles[1] = a->w + w_row(a, r, T_ROWS) * a->w_stride + k;
        p->row_stride = a->w_stride;
        p->step_stride = step_of(a);
    } else if (a->x_group == 128) {
        w_pack_groups(p, a, type, 128, r, k, n);
    } else if (a->x_group == 64) {
        w_pack_groups(p, a, type, 64, r, k, n);
    } else {
        w_pack_groups(p, a, type, 32, r, k, n);
    }
}

/* Scales of the groups of weights that n codes from k on lie in. */
static void w_take_scales(struct w_part *p, const struct linear_i8_args *a, size_t r, size_t k,
                          size_t n)
{
    const size_t g = dot_w_group(a, k / a->x_group);
    const size_t end = dot_w_group(a, (k + n - 1) / a->x_group) + 1;
    for (size_t i = 0; i < PAIR; i += T_ROWS) {
        const struct dot_lanes lanes = dot_lanes_from(w_row(a, r, i));
        dot_column_scales(a, &lanes, g, end - g, p->scales[0] + i, PAIR);
    }
}

/* ---- products ---- */

/* How a loop over groups is made: tiles of x, tiles to a group, groups that are finished together.
 */
struct form {
    size_t n_tiles, n_steps, n_groups;
};

/* The products of some groups, which are added to sums while tiles multiply the next ones: rows
 * from `row` on, PAIR: none. */
struct waiting {
    size_t row;
    const whole_block *whole; /* of each group */
    sums_block *sums;
    __mmask16 begun; /* none: sums begin with these groups */
    const float *w_scales[UNIT_GROUPS];
    vf x_scales[UNIT_GROUPS][2]; /* of the groups and tiles of x */
};

INLINE void waiting_rows(struct waiting *w, struct form form, size_t n)
{
    for (size_t end = at_most(w->row + n, PAIR); w->row < end; w->row++) {
        vf sums[2];
        UNROLLED_FOR (size_t t = 0; t < form.n_tiles; t++)
            sums[t] = _mm512_maskz_loadu_ps(w->begun, &(*w->sums)[w->row][t * T_ROWS]);
        UNROLLED_FOR (size_t g = 0; g < form.n_groups; g++) {
            const vf scale = v_set(w->w_scales[g][w->row]);
            UNROLLED_FOR (size_t t = 0; t < form.n_tiles; t++) {
                const vf whole = vi_to_f32(vi_load(&w->whole[g][w->row][t * T_ROWS]));
                sums[t] = v_fma(whole, scale * w->x_scales[g][t], sums[t]);
            }
        }
        UNROLLED_FOR (size_t t = 0; t < form.n_tiles; t++)
            v_store(&(*w->sums)[w->row][t * T_ROWS], sums[t]);
    }
}

/* What vectors do while tiles multiply. */
INLINE void meanwhile(struct waiting *w, struct form form, size_t n_rows, struct tile_fetch *fetch)
{
    tile_fetch_step(fetch);
    waiting_rows(w, form, n_rows);
}

/* The whole numbers of group g of the weights: two tiles against those of x. */
INLINE void group_multiply(whole_block *whole, const struct w_part *w, size_t g,
                           const unsigned char *x, size_t x_stride, size_t x_size, struct form form,
                           struct waiting *waiting, struct tile_fetch *fetch)
{
    const size_t stride = w->row_stride, next = w->step_stride, first = g * form.n_steps * next;
    const unsigned char *w0 = w->tiles[0] + first, *w1 = w->tiles[1] + first;
    const size_t rows = PAIR / (2 * form.n_tiles * form.n_steps * form.n_groups);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    UNROLLED_FOR (size_t s = 0; s < form.n_steps; s++, x += x_size, w0 += next, w1 += next) {
        _tile_loadd(4, w0, stride);
        if (w->in_memory)
            tile_foresee(w0 + next, stride);
        _tile_loadd(6, x, T_BYTES);
        _tile_dpbssd(0, 4, 6);
        meanwhile(waiting, form, rows, fetch);
        if (form.n_tiles == 2) {
            _tile_loadd(7, x + x_stride, T_BYTES);
            _tile_dpbssd(1, 4, 7);
            meanwhile(waiting, form, rows, fetch);
        }
        _tile_loadd(5, w1, stride);
        if (w->in_memory)
            tile_foresee(w1 + next, stride);
        _tile_dpbssd(2, 5, 6);
        meanwhile(waiting, form, rows, fetch);
        if (form.n_tiles == 2) {
            _tile_dpbssd(3, 5, 7);
            meanwhile(waiting, form, rows, fetch);
        }
    }
    _tile_stored(0, &(*whole)[0][0], sizeof **whole);
    _tile_stored(2, &(*whole)[T_ROWS][0], sizeof **whole);
    if (form.n_tiles == 2) {
        _tile_stored(1, &(*whole)[0][T_ROWS], sizeof **whole);
        _tile_stored(3, &(*whole)[T_ROWS][T_ROWS], sizeof **whole);
    }
}

/* What is multiplied: W_K codes of two tiles of weights with all rows of the part of x, whose codes
 * they are from k on. */
struct block {
    const struct linear_i8_args *a;
    const struct w_part *w;
    const struct x_part *x;
    size_t k;
    sums_block *sums; /* for every PAIR rows of x */
    struct tile_fetch *fetch;
};

/* What group_multiply has left in `whole` for groups from g on and rows of x from i on. */
INLINE void wait_for(struct waiting *w, const struct block *b, const whole_block *whole, size_t g,
                     size_t i, struct form form)
{
    const struct x_part *const x = b->x;
    const size_t first = (x->k + b->k) / b->a->x_group;
    const float *scales = x->scales + (b->k / b->a->x_group + g) * x->n_padded + i;
    w->row = 0;
    w->whole = whole;
    w->sums = b->sums + i / PAIR;
    w->begun = x->k + b->k + g > 0 ? 0xffff : 0;
    for (size_t j = 0; j < form.n_groups; j++, scales += x->n_padded) {
        w->w_scales[j] = b->w->scales[dot_w_group(b->a, first + g + j) - dot_w_group(b->a, first)];
        for (size_t t = 0; t < form.n_tiles; t++)
            w->x_scales[j][t] = v_load(scales + t * T_ROWS);
    }
}

/* Groups [g0, g_end), form.n_groups at a time, with rows [i0, end) of x, form.n_tiles tiles at a
 * time. */
INLINE void block_units(const struct block *b, size_t g0, size_t g_end, size_t i0, size_t end,
                        struct form form)
{
    whole_block whole[2][UNIT_GROUPS] __attribute__((aligned(64)));
    const size_t size = b->a->x_group * T_ROWS, x_size = step_of(b->a) * T_ROWS;
    const size_t x_stride = b->x->n_k * T_ROWS;
    struct waiting waiting = {.row = PAIR,
                              .whole = whole[0],
                              .sums = b->sums,
                              .w_scales = {b->w->scales[0], b->w->scales[0]}};
    size_t turn = 0;
    for (size_t i = i0; i < end; i += form.n_tiles * T_ROWS) {
        const unsigned char *const codes = b->x->codes + i * b->x->n_k + b->k * T_ROWS;
        for (size_t g = g0; g < g_end; g += form.n_groups, turn = !turn) {
            for (size_t j = g; j < g + form.n_groups; j++)
                group_multiply(&whole[turn][j - g], b->w, j, codes + j * size, x_stride, x_size,
                               form, &waiting, b->fetch);
            wait_for(&waiting, b, whole[turn], g, i, form);
        }
    }
    waiting_rows(&waiting, form, PAIR);
}

INLINE void block_groups(const struct block *b, size_t n_groups, size_t n_steps)
{
    const size_t n_x = b->x->n_x, rest = n_x % PAIR, whole = n_groups / UNIT_GROUPS * UNIT_GROUPS;
    const size_t i = rest > 0 && rest <= T_ROWS ? n_x - rest : n_x; /* the last has one tile */
    block_units(b, 0, whole, 0, i, (struct form){2, n_steps, UNIT_GROUPS});
    block_units(b, whole, n_groups, 0, i, (struct form){2, n_steps, 1});
    block_units(b, 0, whole, i, n_x, (struct form){1, n_steps, UNIT_GROUPS});
    block_units(b, whole, n_groups, i, n_x, (struct form){1, n_steps, 1});
}

/* A function of its own, so that its loops have the registers. n: codes. */
static __attribute__((noinline)) void block_multiply(const struct block *b, size_t n)
{
    const size_t group = b->a->x_group, n_groups = (n + group - 1) / group;
    if (group > T_BYTES)
        block_groups(b, n_groups, 2);
    else
        block_groups(b, n_groups, 1);
}

/* ---- results ---- */

/* The sums of a tile of weights, for rows from r on, and a tile of x with n_x rows from i on. */
INLINE void finish_tile(const struct linear_i8_args *a, const float *sums, size_t r, size_t i,
                        size_t n_x)
{
    const size_t first = tile_row(r, a->n_w);
    const struct tile_finish finish =
        tile_finish(a->bias ? a->bias + first : NULL, a->scale, a->add, tile_lanes(r, a->n_w));
    float *y = a->y + i * a->y_stride + first;
    for (size_t j = 0; j < n_x; j += 4) {
        vi columns[4];
        vi_columns(columns, (const unsigned char *)(sums + j), sizeof(float) * PAIR);
        for (size_t c = 0; c < at_most(n_x - j, 4); c++, y += a->y_stride) {
            tile_put(y, (vf)columns[c], &finish);
            __builtin_prefetch(y + PAIR, 1); /* what the next two tiles bring */
        }
    }
}

INLINE void finish_block(const struct linear_i8_args *a, const sums_block *sums, size_t r,
                         const struct x_part *x)
{
    for (size_t i = 0; i < x->n_x; i += T_ROWS) {
        const float *const tile = &sums[i / PAIR][0][i % PAIR];
        const size_t n_x = at_most(x->n_x - i, T_ROWS);
        finish_tile(a, tile, r, x->x0 + i, n_x);
        if (r + T_ROWS < a->n_w)
            finish_tile(a, tile + T_ROWS * PAIR, r + T_ROWS, x->x0 + i, n_x);
    }
}

/* ---- the slots ---- */

/* The part of the weights that comes behind the two tiles from r on, while those are multiplied. */
INLINE struct tile_fetch fetch_next(const struct linear_i8_args *a, int type,
                                    const struct x_part *x, size_t r)
{
    if (r + PAIR >= a->n_w)
        return (struct tile_fetch){0};
    const size_t n_tiles = (x->n_x + T_ROWS - 1) / T_ROWS;
    const unsigned char *const rows = a->w + (r + PAIR) * a->w_stride + dot_bytes(type, x->k);
    return tile_fetch(rows, at_most(a->n_w - r - PAIR, PAIR), dot_bytes(type, x->n), a->w_stride,
                      2 * n_tiles * (x->n_k / step_of(a)));
}

/* The two tiles of weights from r on against a part of x. */
INLINE void pair(const struct linear_i8_args *a, int type, const struct x_part *x, size_t r,
                 sums_block *sums)
{
    struct w_part w;
    struct tile_fetch fetch = fetch_next(a, type, x, r);
    for (size_t k = 0; k < x->n; k += W_K) {
        const size_t n = at_most(x->n - k, W_K);
        w_take(&w, a, type, r, x->k + k, n);
        if (k == 0 || a->w_group < a->n_k) /* a row's only scale is there already */
            w_take_scales(&w, a, r, x->k + k, n);
        memory_is_written();
        block_multiply(&(struct block){a, &w, x, k, sums, &fetch}, n);
    }
}

/* A strip of weights, rows [r0, end), whose sums wait at once, against rows of x that the part
 * names, `span` codes at a time. */
static void strip(const struct linear_i8_args *a, int type, struct x_part *x, size_t span,
                  sums_block *sums, size_t r0, size_t end)
{
    const size_t n_pairs = (x->n_x + PAIR - 1) / PAIR;
    for (size_t k = 0; k < a->n_k; k += span) {
        x_pack(x, a, type, k, span);
        for (size_t r = r0; r < end; r += PAIR)
            pair(a, type, x, r, sums + (r - r0) / PAIR * n_pairs);
    }
    for (size_t r = r0; r < end; r += PAIR)
        finish_block(a, sums + (r - r0) / PAIR * n_pairs, r, x);
}

/* All weights against rows [x0, x0 + n_x) of x. Where x is packed at once, no sums wait. */
static void rows_of_x(const struct linear_i8_args *a, int type, size_t x0, size_t n_x)
{
    struct x_part x;
    sums_block sums[N_SUMS / PAIR / PAIR] __attribute__((aligned(64)));
    x.x0 = x0;
    x.n_x = n_x;
    x.n_padded = (n_x + T_ROWS - 1) / T_ROWS * T_ROWS;
    x.n = 0;
    const size_t span = X_CODES / x.n_padded / W_K * W_K;
    const size_t n_strip = sizeof sums / sizeof *sums / ((n_x + PAIR - 1) / PAIR) * PAIR;
    const size_t n_r = a->n_k <= span ? PAIR : n_strip;
    for (size_t r = 0; r < a->n_w; r += n_r)
        strip(a, type, &x, span, sums, r, at_most(a->n_w, r + n_r));
}

INLINE void linear(const struct linear_i8_args *a, int type)
{
    const size_t step = step_of(a);
    struct tile_config config = {0};
    tiles_shape(&config, 0, 3, T_ROWS, T_BYTES);
    tiles_shape(&config, 4, 5, T_ROWS, step);
    tiles_shape(&config, 6, 7, step / 4, T_BYTES);
    tiles_open(&config);
    for (size_t x0 = 0; x0 < a->n_x; x0 += X_MAX)
        rows_of_x(a, type, x0, at_most(a->n_x - x0, X_MAX));
    _tile_release();
}

/* Where weights are read by vectors: the rung below. */
static void (*by_vectors[N_DOT_TYPES])(const struct linear_i8_args *a);

static void linear_i8_i8(const struct linear_i8_args *a)
{
    if (a->n_x <= FEW_I8 || a->n_w < T_ROWS)
        by_vectors[DOT_I8](a);
    else
        linear(a, DOT_I8);
}

static void linear_i8_u4(const struct linear_i8_args *a)
{
    if (a->n_x <= FEW_U4 || a->n_w < T_ROWS)
        by_vectors[DOT_U4](a);
    else
        linear(a, DOT_U4);
}

void kernels_amx_i8_fill(struct kernels *k)
{
    memcpy(by_vectors, k->linear_i8, sizeof by_vectors);
    k->linear_i8[DOT_I8] = linear_i8_i8;
    k->linear_i8[DOT_U4] = linear_i8_u4;
    k->linear_woven[DOT_I8] = k->linear_woven[DOT_U4] = NULL; /* tiles want rows as they lie */
}
