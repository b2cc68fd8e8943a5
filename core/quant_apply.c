/*
 * From codes where they lie to tiles of f32. A row's codes are decoded by the kernels in pieces of
 * PIECE_K; what differs between formats is where its codes, scales and zero points are. GPTQ and
 * AWQ store the matrix column by column, so a strip of it is first brought into rows of codes,
 * still four bits each. Whether the parts fit together is quant_check.c's business.
 */
#include "core/quant.h"

#include "core/kernels/kernels.h"
#include "core/quant_layout.h"

#include <assert.h>
#include <string.h>

/*
 * PIECE_K is the length of the blocks in which linear_rows sums (kernels.inc), so cutting there
 * leaves the order of a sum as it is. A tile of TILE_R rows is the most that stays in L1 beside
 * a few rows of x. STRIP_R outputs are a cache line of every row of AWQ codes, and enough for a
 * piece of many rows of x to be worth fetching.
 */
enum { PIECE_K = 512, PIECE_WORDS = PIECE_K / 8, TILE_R = 16, STRIP_R = 128, FEW_X = 12 };

static uint32_t load_u32(const unsigned char *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* ---- scales and zero points ---- */

/* Of n columns or groups: those that begin at column k where each column has its own, else at the
 * group of column k. */
static size_t group_at(const struct quant *q, size_t k, size_t i)
{
    return q->g_idx ? load_u32(q->g_idx + 4 * (k + i)) : k / q->block_in + i;
}

static size_t scale_index(const struct quant *q, size_t row, size_t group)
{
    return quant_layout(q->type)->in_columns ? group * q->n_out + row
                                             : row / q->block_out * q->n_groups + group;
}

/* OCP Microscaling: 2^(code - 127), 255 is NaN; the lowest is subnormal. */
static float e8m0_to_f32(unsigned char code)
{
    const uint32_t bits = code == 0 ? 0x400000 : code == 255 ? 0x7fc00000 : (uint32_t)code << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void read_scales(const struct kernels *kernels, const struct quant *q, size_t row, size_t k,
                        size_t n, float *out)
{
    const size_t size = dtype_size(q->scale_dtype);
    unsigned char gathered[PIECE_K * 4];
    const unsigned char *raw = gathered;
    if (!q->g_idx && !quant_layout(q->type)->in_columns)
        raw = q->scales + size * scale_index(q, row, group_at(q, k, 0));
    else if (size == 4)
        for (size_t i = 0; i < n; i++)
            memcpy(gathered + 4 * i, q->scales + 4 * scale_index(q, row, group_at(q, k, i)), 4);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(gathered + 2 * i, q->scales + 2 * scale_index(q, row, group_at(q, k, i)), 2);
    if (size == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = e8m0_to_f32(raw[i]);
    else
        kernels->to_f32[q->scale_dtype](out, raw, n);
}

/* Where among the codes of a word that output lies; AWQ interleaves even and odd ones. */
static unsigned place_in_word(const struct quant *q, size_t row)
{
    static const unsigned char awq[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return q->type == QUANT_AWQ ? awq[row % 8] : (unsigned)row;
}

static float zero_at(const struct quant *q, size_t row, size_t group)
{
    const struct quant_layout *layout = quant_layout(q->type);
    if (!q->zeros_packed)
        return (float)((int8_t)q->zeros[scale_index(q, row, group)] + layout->offset);
    const size_t per_word = 32 / layout->bits;
    const size_t word = layout->in_columns ? group * (q->n_out / per_word) + row / per_word
                                           : row / q->block_out / per_word * q->n_groups + group;
    const size_t place = place_in_word(q, row / q->block_out) % per_word;
    const uint32_t bits = load_u32(q->zeros + 4 * word) + q->zeros_add;
    return (float)(bits >> layout->bits * place & ((1u << layout->bits) - 1));
}

/* False where the codes mean themselves. */
static bool read_zeros(const struct quant *q, size_t row, size_t k, size_t n, float *out)
{
    if (q->zeros)
        for (size_t i = 0; i < n; i++)
            out[i] = zero_at(q, row, group_at(q, k, i));
    else
        for (size_t i = 0; i < n; i++)
            out[i] = (float)quant_layout(q->type)->offset;
    return q->zeros || quant_layout(q->type)->offset;
}

/* ---- codes ---- */

/* Columns [k, k + n) of a row whose codes from k on are given: each with its own group. */
static void decode_by_column(const struct kernels *kernels, const struct quant *q,
                             const unsigned char *codes, size_t row, size_t k, size_t n, float *out)
{
    static const float one = 1;
    float scales[PIECE_K], zeros[PIECE_K];
    read_scales(kernels, q, row, k, n, scales);
    const bool has_zeros = read_zeros(q, row, k, n, zeros);
    kernels->decode[quant_layout(q->type)->code](out, codes, n, PIECE_K, &one, NULL);
    for (size_t i = 0; has_zeros && i < n; i++)
        out[i] -= zeros[i];
    kernels->mul(out, scales, n);
}

/* The same where neighbours share a group; the first of them may have begun before k. */
static void decode_by_group(const struct kernels *kernels, const struct quant *q,
                            const unsigned char *codes, size_t row, size_t k, size_t n, float *out)
{
    const struct quant_layout *layout = quant_layout(q->type);
    float scales[PIECE_K], zeros[PIECE_K];
    const size_t n_groups = (k + n - 1) / q->block_in - k / q->block_in + 1;
    read_scales(kernels, q, row, k, n_groups, scales);
    const float *const z = read_zeros(q, row, k, n_groups, zeros) ? zeros : NULL;
    const size_t left = q->block_in - k % q->block_in;
    if (left >= n || left == q->block_in) {
        kernels->decode[layout->code](out, codes, n, q->block_in, scales, z);
        return;
    }
    kernels->decode[layout->code](out, codes, left, left, scales, z);
    kernels->decode[layout->code](out + left, codes + left * layout->bits / 8, n - left,
                                  q->block_in, scales + 1, z ? z + 1 : NULL);
}

static void decode_piece(const struct kernels *kernels, const struct quant *q,
                         const unsigned char *codes, size_t row, size_t k, size_t n, float *out)
{
    (q->g_idx ? decode_by_column : decode_by_group)(kernels, q, codes, row, k, n, out);
}

/* ---- formats stored by column: words of 8 codes of a row ---- */

/* 8 words of 8 codes as a matrix: rows become columns (Hacker's Delight, section 7-3). */
static void transpose_codes(uint32_t w[8])
{
    static const uint32_t masks[] = {0x0000ffff, 0x00ff00ff, 0x0f0f0f0f};
    for (unsigned step = 0, distance = 4; step < 3; step++, distance /= 2) {
        for (unsigned i = 0; i < 8; i++) {
            if (i & distance)
                continue;
            const uint32_t swap = ((w[i] >> 4 * distance) ^ w[i + distance]) & masks[step];
            w[i + distance] ^= swap;
            w[i] ^= swap << 4 * distance;
        }
    }
}

/* The codes of 8 inputs from k on for outputs [row, row + n_rows) -> words[r * PIECE_WORDS]. */
static void words_of_awq(const struct quant *q, size_t row, size_t n_rows, size_t k,
                         uint32_t *words)
{
    const size_t n_columns = q->n_out / 8, end = row + n_rows;
    for (size_t c = row / 8; 8 * c < end; c++) {
        uint32_t w[8];
        for (size_t j = 0; j < 8; j++)
            w[j] = load_u32(q->codes + 4 * ((k + j) * n_columns + c));
        transpose_codes(w);
        for (size_t r = 8 * c < row ? row : 8 * c; r < end && r < 8 * c + 8; r++)
            words[(r - row) * PIECE_WORDS] = w[place_in_word(q, r)];
    }
}

static void words_of_gptq(const struct quant *q, size_t row, size_t n_rows, size_t k,
                          uint32_t *words)
{
    const unsigned char *const from = q->codes + 4 * (k / 8 * q->n_out + row);
    for (size_t r = 0; r < n_rows; r++)
        words[r * PIECE_WORDS] = load_u32(from + 4 * r);
}

static void words_of_piece(const struct quant *q, size_t row, size_t n_rows, size_t k, size_t n,
                           uint32_t *words)
{
    for (size_t i = 0; i < n; i += 8)
        (q->type == QUANT_AWQ ? words_of_awq : words_of_gptq)(q, row, n_rows, k + i, words + i / 8);
}

/* ---- products ---- */

/* A window of the matrix, and where its rows of codes begin. */
struct window {
    size_t row, n_rows;
    size_t k, n_k; /* at most PIECE_K */
    const unsigned char *codes;
    size_t stride;
};

/* words: room for n_rows * PIECE_WORDS where the format is in columns. */
static void window_open(struct window *win, const struct quant *q, uint32_t *words)
{
    const struct quant_layout *layout = quant_layout(q->type);
    if (layout->in_columns) {
        words_of_piece(q, win->row, win->n_rows, win->k, win->n_k, words);
        win->codes = (const unsigned char *)words;
        win->stride = PIECE_WORDS * sizeof *words;
    } else {
        win->stride = quant_layout_row_bytes(q->type, q->n_in);
        win->codes = q->codes + win->row * win->stride + win->k * layout->bits / 8;
    }
}

/* Rows [r, r + n) of the window -> tile [n, PIECE_K]. */
static void window_decode(const struct window *win, const struct kernels *kernels,
                          const struct quant *q, size_t r, size_t n, float *tile)
{
    for (size_t i = r; i < r + n; i++)
        decode_piece(kernels, q, win->codes + i * win->stride, win->row + i, win->k, win->n_k,
                     tile + (i - r) * PIECE_K);
}

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

/* a is for the window's rows and all columns. */
static void apply_window(const struct kernels *kernels, const struct quant *q,
                         const struct window *win, const struct linear_args *a)
{
    float tile[TILE_R * PIECE_K] __attribute__((aligned(64)));
    const bool last = win->k + win->n_k == q->n_in;
    for (size_t r = 0; r < win->n_rows; r += TILE_R) {
        struct linear_args args = *a;
        args.n_w = at_most(win->n_rows - r, TILE_R);
        window_decode(win, kernels, q, r, args.n_w, tile);
        args.y += r;
        args.x += win->k;
        args.w = tile;
        args.w_stride = PIECE_K;
        args.n_k = win->n_k;
        args.bias = a->bias && last ? a->bias + r : NULL;
        args.add = a->add || win->k > 0;
        kernels->linear_rows[WEIGHT_F32](&args);
    }
}

void quant_apply(const struct kernels *kernels, const struct quant *q, size_t row,
                 const struct linear_args *a)
{
    assert(row + a->n_w <= q->n_out && a->n_k == q->n_in);
    uint32_t words[STRIP_R * PIECE_WORDS];
    const bool wide = quant_layout(q->type)->in_columns || a->n_x > FEW_X;
    const size_t strip_r = wide ? STRIP_R : TILE_R;
    for (size_t r = 0; r < a->n_w; r += strip_r) {
        struct linear_args args = *a;
        args.y += r;
        args.bias = a->bias ? a->bias + r : NULL;
        for (size_t k = 0; k < q->n_in; k += PIECE_K) {
            struct window win = {
                row + r, at_most(a->n_w - r, strip_r), k, at_most(q->n_in - k, PIECE_K), NULL, 0};
            window_open(&win, q, words);
            apply_window(kernels, q, &win, &args);
        }
    }
}

void quant_apply_transposed(const struct kernels *kernels, const struct quant *q, size_t row,
                            size_t column, const struct linear_args *a)
{
    assert(row + a->n_k <= q->n_out && column + a->n_w <= q->n_in && column % 8 == 0);
    float tile[TILE_R * PIECE_K] __attribute__((aligned(64)));
    uint32_t words[TILE_R * PIECE_WORDS];
    for (size_t c = 0; c < a->n_w; c += PIECE_K) {
        for (size_t k = 0; k < a->n_k; k += TILE_R) {
            struct linear_args args = *a;
            args.n_w = at_most(a->n_w - c, PIECE_K);
            args.n_k = at_most(a->n_k - k, TILE_R);
            struct window win = {row + k, args.n_k, column + c, args.n_w, NULL, 0};
            window_open(&win, q, words);
            window_decode(&win, kernels, q, 0, args.n_k, tile);
            args.y += c;
            args.x += k;
            args.w = tile;
            args.w_stride = PIECE_K;
            args.bias = a->bias && k + args.n_k == a->n_k ? a->bias + c : NULL;
            args.add = a->add || k > 0;
            kernels->linear_cols[WEIGHT_F32](&args);
        }
    }
}

void quant_row(const struct kernels *kernels, const struct quant *q, size_t row, float *out)
{
    assert(row < q->n_out);
    uint32_t words[PIECE_WORDS];
    for (size_t k = 0; k < q->n_in; k += PIECE_K) {
        struct window win = {row, 1, k, at_most(q->n_in - k, PIECE_K), NULL, 0};
        window_open(&win, q, words);
        decode_piece(kernels, q, win.codes, row, k, win.n_k, out + k);
    }
}
