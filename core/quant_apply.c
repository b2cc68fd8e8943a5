/*
 * From codes where they lie to tiles of f32, or to kernels that take codes. A row's codes are
 * decoded in pieces of PIECE_K; what differs between formats is where its codes, scales and zero
 * points are. GPTQ and AWQ store the matrix column by column (quant_columns.c), and woven ones word
 * by word, so a strip of it is first brought into rows of codes, still four bits each. Whether the
 * parts fit together is quant.c's business.
 */
#include "core/quant.h"

#include "core/kernels/kernels.h"
#include "core/quant_columns.h"
#include "core/quant_layout.h"

#include <assert.h>
#include <string.h>

/*
 * Cutting at PIECE_K leaves the order of a sum as it is. A tile of TILE_R rows is 32 KB, about what
 * L1 holds. STRIP_R outputs are a cache line of every row of AWQ codes, and enough for a piece of
 * many rows of x to be worth fetching; up to FEW_X it is better to read the codes from front to
 * back.
 */
enum {
    PIECE_K = KERNELS_ROWS_K,
    PIECE_WORDS = PIECE_K / 8,    /* of codes of 4 bits, */
    MOST_WORDS = 2 * PIECE_WORDS, /* and of 8 */
    TILE_R = 16,
    STRIP_R = 128,
    FEW_X = 12,
    MAX_GROUPS = QUANT_LAYOUT_MAX_GROUPS,
};

/* ---- scales and zero points ------------------------------------------------------------------ */

/* Where a row's scales or zero points lie: group g's is element first + g * step. */
struct line {
    size_t first, step;
    unsigned shift; /* within a word */
};

static struct line scales_of(const struct quant *q, size_t row)
{
    const size_t in_strip = row % KERNELS_WOVEN;
    if (row < q->n_woven)
        return (struct line){(row - in_strip) * q->n_groups + in_strip, KERNELS_WOVEN, 0};
    if (q->layout->in_columns)
        return (struct line){row, q->n_out, 0};
    return (struct line){row / q->block_out * q->n_groups, 1, 0};
}

static struct line zeros_of(const struct quant *q, size_t row)
{
    const unsigned bits = q->layout->bits;
    if (!q->zeros_packed)
        return scales_of(q, row);
    if (q->layout->in_columns)
        return (struct line){row / 8, q->n_out / 8, bits * quant_columns_place(q, row)};
    const size_t scale_row = row / q->block_out, per_word = 32 / bits;
    return (struct line){scale_row / per_word * q->n_groups, 1,
                         bits * (unsigned)(scale_row % per_word)};
}

/* OCP Microscaling: 2^(code - 127), 255 is NaN; the lowest is subnormal. */
static float e8m0_to_f32(unsigned char code)
{
    const uint32_t bits = code == 0 ? 0x400000 : code == 255 ? 0x7fc00000 : (uint32_t)code << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Scales of groups [g, g + n). Where they lie side by side, n may reach into the rows behind. */
static void read_scales(const struct kernels *kernels, const struct quant *q, size_t row, size_t g,
                        size_t n, float *out)
{
    const struct line line = scales_of(q, row);
    const size_t size = dtype_size(q->scale_dtype), step = line.step * size;
    const unsigned char *from = q->scales + (line.first + g * line.step) * size;
    unsigned char gathered[MAX_GROUPS * 4];
    assert(line.step == 1 || n <= MAX_GROUPS);
    if (line.step != 1 && size == 4)
        for (size_t i = 0; i < n; i++)
            memcpy(gathered + 4 * i, from + i * step, 4);
    if (line.step != 1 && size == 2)
        for (size_t i = 0; i < n; i++)
            memcpy(gathered + 2 * i, from + i * step, 2);
    if (size == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = e8m0_to_f32(from[i]);
    else
        kernels->to_f32[q->scale_dtype](out, line.step == 1 ? from : gathered, n);
}

/* The same for zero points. Returns out, or NULL where a code is itself the value. */
static const float *read_zeros(const struct quant *q, size_t row, size_t g, size_t n, float *out)
{
    const int offset = q->layout->offset;
    if (!q->zeros) {
        for (size_t i = 0; i < n; i++)
            out[i] = (float)offset;
        return offset ? out : NULL;
    }
    const struct line line = zeros_of(q, row);
    const uint32_t mask = (1u << q->layout->bits) - 1;
    const unsigned char *from = q->zeros + (line.first + g * line.step) * (q->zeros_packed ? 4 : 1);
    if (q->zeros_packed)
        for (size_t i = 0; i < n; i++)
            out[i] =
                (float)((quant_layout_word(from + 4 * i * line.step) + q->zeros_add) >> line.shift &
                        mask);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = (float)((int8_t)from[i] + offset);
    return out;
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* Columns [k, k + n) of a row whose codes from k on are given, where each has a group of its own:
 * the row's scales and zero points become tables. */
static void decode_by_column(const struct kernels *kernels, const struct quant *q,
                             const unsigned char *codes, size_t row, size_t k, size_t n, float *out)
{
    static const float one = 1;
    float scales[MAX_GROUPS], zeros[MAX_GROUPS];
    read_scales(kernels, q, row, 0, q->n_groups, scales);
    const float *const z = read_zeros(q, row, 0, q->n_groups, zeros);
    kernels->decode[q->layout->code](out, codes, n, PIECE_K, &one, NULL);
    for (size_t i = 0; i < n; i++) {
        const uint32_t g = quant_layout_word(q->g_idx + 4 * (k + i));
        out[i] = (out[i] - (z ? z[g] : 0)) * scales[g];
    }
}

/* The same where neighbours share a group; the first of them may have begun before k. */
static void decode_by_group(const struct kernels *kernels, const struct quant *q,
                            const unsigned char *codes, size_t row, size_t k, size_t n, float *out)
{
    const struct quant_layout *layout = q->layout;
    float scales[PIECE_K], zeros[PIECE_K];
    const size_t g = k / q->block_in, n_groups = (k + n - 1) / q->block_in - g + 1;
    read_scales(kernels, q, row, g, n_groups, scales);
    const float *const z = read_zeros(q, row, g, n_groups, zeros);
    const size_t left = (g + 1) * q->block_in - k;
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

/* ---- formats that do not store a row's codes together: its words are gathered ---------------- */

/* The words of rows that are woven, from column k on: [n_rows, PIECE_WORDS], or [n_rows,
 * MOST_WORDS] of 8 bits; rows behind the last whole strip lie as ever. */
static void words_of_woven(const struct quant *q, size_t row, size_t n_rows, size_t k, size_t n,
                           uint32_t *words)
{
    const size_t bits = q->layout->bits, first = k * bits / 32, n_words = (n * bits + 31) / 32;
    for (size_t r = row; r < row + n_rows; r++, words += PIECE_K * bits / 32) {
        const size_t in_strip = r < q->n_woven ? r % KERNELS_WOVEN : 0;
        const size_t step = r < q->n_woven ? 4 * KERNELS_WOVEN : 4;
        const unsigned char *const from =
            q->codes + (r - in_strip) * q->row_bytes + 4 * in_strip + first * step;
        for (size_t i = 0; i < n_words; i++)
            words[i] = quant_layout_word(from + i * step);
    }
}

static void words_of_piece(const struct quant *q, size_t row, size_t n_rows, size_t k, size_t n,
                           uint32_t *words)
{
    if (q->n_woven) {
        words_of_woven(q, row, n_rows, k, n, words);
        return;
    }
    for (size_t i = 0; i < n; i += 8)
        quant_columns_words(q, row, n_rows, k + i, words + i / 8, PIECE_WORDS);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Products in f32 take x in its own order, in which sorted columns are not. */
static const struct quant *as_stored(const struct quant *q)
{
    return q->stored ? q->stored : q;
}

/* A window of the matrix, and where its rows of codes begin. */
struct window {
    size_t row, n_rows;
    size_t k, n_k; /* at most PIECE_K */
    const unsigned char *codes;
    size_t stride;
};

/* words: room for n_rows * MOST_WORDS where the format is in columns or woven. */
static void window_open(struct window *win, const struct quant *q, uint32_t *words)
{
    const struct quant_layout *layout = q->layout;
    if (layout->in_columns || q->n_woven) {
        words_of_piece(q, win->row, win->n_rows, win->k, win->n_k, words);
        win->codes = (const unsigned char *)words;
        win->stride = PIECE_K * layout->bits / 8;
    } else {
        win->stride = q->row_bytes;
        win->codes = q->codes + win->row * win->stride + win->k * layout->bits / 8;
    }
}

/* The codes to prefetch while rows [r, r + TILE_R) of a window are decoded: those of the rows
 * below, or else of the next window, to the right or below. NULL where rows are gathered. */
static const unsigned char *codes_behind(const struct window *win, const struct quant *q, size_t r)
{
    const size_t bits = q->layout->bits;
    if (q->layout->in_columns || q->n_woven)
        return NULL;
    if (r + TILE_R < win->n_rows)
        return win->codes + (r + TILE_R) * win->stride;
    if (win->k + win->n_k < q->n_in)
        return win->codes + win->n_k * bits / 8;
    return win->codes + win->n_rows * win->stride - win->k * bits / 8;
}

/* Rows [r, r + n) of the window -> tile [n, PIECE_K]. Hardware prefetchers do not foresee jumps
 * from row to row, so the codes behind, unless NULL, are prefetched here. */
static void window_decode(const struct window *win, const struct kernels *kernels,
                          const struct quant *q, size_t r, size_t n, const unsigned char *behind,
                          float *tile)
{
    const size_t n_bytes = win->n_k * q->layout->bits / 8;
    for (size_t i = 0; i < n; i++) {
        for (size_t at = 0; behind && at < n_bytes; at += CACHE_LINE)
            __builtin_prefetch(behind + i * win->stride + at);
        decode_piece(kernels, q, win->codes + (r + i) * win->stride, win->row + r + i, win->k,
                     win->n_k, tile + i * PIECE_K);
    }
}

/* a is for the window's rows and all columns. */
static void apply_window(const struct kernels *kernels, const struct quant *q,
                         const struct window *win, const struct linear_args *a)
{
    float tile[TILE_R * PIECE_K] __attribute__((aligned(64)));
    const bool last = win->k + win->n_k == q->n_in;
    for (size_t r = 0; r < win->n_rows; r += TILE_R) {
        struct linear_args args = *a;
        args.n_w = min_size(win->n_rows - r, TILE_R);
        window_decode(win, kernels, q, r, args.n_w, codes_behind(win, q, r), tile);
        args.y += r;
        args.x = (const float *)a->x + win->k;
        args.w = tile;
        args.w_stride = PIECE_K;
        args.n_k = win->n_k;
        args.bias = a->bias && last ? a->bias + r : NULL;
        args.add = a->add || win->k > 0;
        kernels->linear_rows[WEIGHT_F32](&args);
    }
}

/* ---- products with FP8 as it lies ------------------------------------------------------------ */

enum { F8_SCALES = 4096 }; /* read at a time */

/* Whether the blocks of scales are as struct linear_f8_args wants them. */
static bool has_f8_blocks(const struct quant *q)
{
    const size_t group = q->block_in;
    return q->type == QUANT_F8 && q->n_groups <= KERNELS_F8_GROUPS &&
           (q->n_groups == 1 || (group >= 64 && (group & (group - 1)) == 0));
}

static void apply_f8(const struct kernels *kernels, const struct quant *q, size_t row,
                     const struct linear_args *a, void (*linear)(const struct linear_f8_args *a))
{
    float scales[F8_SCALES];
    const size_t most = F8_SCALES / q->n_groups * q->block_out, end = row + a->n_w;
    struct linear_f8_args f8 = {.args = *a,
                                .scales = scales,
                                .block_out = q->block_out,
                                .n_groups = q->n_groups,
                                .block_in = q->block_in};
    assert(has_f8_blocks(q) && end <= q->n_out && a->n_k == q->n_in);
    f8.args.w_stride = q->row_bytes;
    for (size_t r = row; r < end; r += f8.args.n_w) {
        f8.first = r % q->block_out;
        f8.args.n_w = min_size(end - r, most - f8.first);
        const size_t n = (f8.first + f8.args.n_w - 1) / q->block_out + 1;
        read_scales(kernels, q, r, 0, n * q->n_groups, scales);
        f8.args.w = q->codes + r * q->row_bytes;
        f8.args.y = a->y + (r - row);
        f8.args.bias = a->bias ? a->bias + (r - row) : NULL;
        linear(&f8);
    }
}

/* ---- products of all kinds ------------------------------------------------------------------- */

void quant_apply(const struct kernels *kernels, const struct quant *q, size_t row,
                 const struct linear_args *a)
{
    q = as_stored(q);
    assert(row + a->n_w <= q->n_out && a->n_k == q->n_in);
    if (kernels->linear_f8_f32 && a->n_x <= KERNELS_F8_FEW && has_f8_blocks(q)) {
        apply_f8(kernels, q, row, a, kernels->linear_f8_f32);
        return;
    }
    uint32_t words[STRIP_R * MOST_WORDS];
    const bool wide = q->layout->in_columns || a->n_x > FEW_X;
    const size_t strip_r = wide ? STRIP_R : TILE_R;
    for (size_t r = 0; r < a->n_w; r += strip_r) {
        struct linear_args args = *a;
        args.y += r;
        args.bias = a->bias ? a->bias + r : NULL;
        for (size_t k = 0; k < q->n_in; k += PIECE_K) {
            struct window win = {
                row + r, min_size(a->n_w - r, strip_r), k, min_size(q->n_in - k, PIECE_K), NULL, 0};
            window_open(&win, q, words);
            apply_window(kernels, q, &win, &args);
        }
    }
}

bool quant_meets_bf16(const struct kernels *kernels, const struct quant *q)
{
    return kernels->linear_rows_f8 && has_f8_blocks(q);
}

void quant_apply_bf16(const struct kernels *kernels, const struct quant *q, size_t row,
                      const struct linear_args *a)
{
    assert(quant_meets_bf16(kernels, q));
    apply_f8(kernels, q, row, a, kernels->linear_rows_f8);
}

/* ---- products with the matrix transposed ----------------------------------------------------- */

void quant_apply_transposed(const struct kernels *kernels, const struct quant *q, size_t row,
                            size_t column, const struct linear_args *a)
{
    q = as_stored(q);
    assert(row + a->n_k <= q->n_out && column + a->n_w <= q->n_in && column % 8 == 0);
    float tile[TILE_R * PIECE_K] __attribute__((aligned(64)));
    uint32_t words[TILE_R * MOST_WORDS];
    for (size_t c = 0; c < a->n_w; c += PIECE_K) {
        for (size_t k = 0; k < a->n_k; k += TILE_R) {
            struct linear_args args = *a;
            args.n_w = min_size(a->n_w - c, PIECE_K);
            args.n_k = min_size(a->n_k - k, TILE_R);
            struct window win = {row + k, args.n_k, column + c, args.n_w, NULL, 0};
            window_open(&win, q, words);
            window_decode(&win, kernels, q, 0, args.n_k, NULL, tile);
            args.y += c;
            args.x = (const float *)a->x + k;
            args.w = tile;
            args.w_stride = PIECE_K;
            args.bias = a->bias && k + args.n_k == a->n_k ? a->bias + c : NULL;
            args.add = a->add || k > 0;
            kernels->linear_cols[WEIGHT_F32](&args);
        }
    }
}

/* ---- whole numbers --------------------------------------------------------------------------- */

size_t quant_i8_group(const struct quant *q)
{
    const bool in_columns = q->layout->in_columns;
    const bool packed = q->type == QUANT_PACKED4 || in_columns;
    const size_t block = KERNELS_I8_BLOCK;
    if (q->type == QUANT_MXFP4)
        return q->block_in;
    if (q->type != QUANT_INT8 && !packed)
        return 0;
    if (in_columns && !quant_columns_fit(q))
        return 0;
    if (q->g_idx || q->block_out != 1 || (q->zeros && (!packed || !q->zeros_packed)))
        return 0;
    if (q->block_in == q->n_in || q->block_in % block == 0)
        return block;
    return q->block_in == 64 || q->block_in == 32 ? q->block_in : 0;
}

bool quant_is_split(const struct quant *q)
{
    return q->layout->bits == 4;
}

static int dot_type(const struct quant *q)
{
    return q->type == QUANT_MXFP4 ? DOT_F4 : quant_is_split(q) ? DOT_U4 : DOT_I8;
}

/* The arguments for weights from a row on. */
static void set_weights(struct linear_i8_args *a, const struct quant *q, size_t row)
{
    a->w = q->codes + row * q->row_bytes;
    a->w_stride = q->row_bytes;
    a->w_group = q->block_in;
    a->scales = q->scales + row * q->n_groups * dtype_size(q->scale_dtype);
    a->scale_stride = q->n_groups;
    a->scale_type = q->type == QUANT_MXFP4 ? (int)SCALE_E8M0_HALF : (int)q->scale_dtype;
    a->zero = q->layout->offset;
    a->zeros = q->zeros;
    a->zero_row = row;
}

/* A part of a woven strip, from a row on. Kernels take whole strips, so the strip is computed into
 * a buffer, and its part copied out. */
static void apply_woven_part(const struct kernels *kernels, const struct quant *q, size_t row,
                             const struct linear_i8_args *a)
{
    enum { ROWS_X = 8 };
    float y[ROWS_X][KERNELS_WOVEN] = {{0}}, bias[KERNELS_WOVEN] = {0};
    const size_t first = row % KERNELS_WOVEN, n_bytes = a->n_w * sizeof *a->y;
    struct linear_i8_args args = *a;
    set_weights(&args, q, row - first);
    args.n_w = args.y_stride = KERNELS_WOVEN;
    args.y = y[0];
    args.bias = a->bias ? bias : NULL;
    if (a->bias)
        memcpy(bias + first, a->bias, n_bytes);
    for (size_t i = 0; i < a->n_x; i += ROWS_X, args.x += ROWS_X * a->x_stride) {
        float *const to = a->y + i * a->y_stride;
        args.n_x = min_size(a->n_x - i, ROWS_X);
        for (size_t j = 0; a->add && j < args.n_x; j++)
            memcpy(y[j] + first, to + j * a->y_stride, n_bytes);
        kernels->linear_woven[dot_type(q)](&args);
        for (size_t j = 0; j < args.n_x; j++)
            memcpy(to + j * a->y_stride, y[j] + first, n_bytes);
    }
}

void quant_apply_i8(const struct kernels *kernels, const struct quant *q, size_t row,
                    const struct linear_i8_args *a)
{
    if (q->layout->in_columns) {
        quant_columns_apply_i8(kernels, q, row, a);
        return;
    }
    const int type = dot_type(q);
    struct linear_i8_args args = *a;
    assert(q->n_woven == 0 || kernels->linear_woven[type]);
    for (size_t r = row, end = row + a->n_w; r < end; r += args.n_w) {
        const size_t n_woven = r < q->n_woven ? min_size(end, q->n_woven) - r : 0;
        const size_t in_strip = r % KERNELS_WOVEN;
        args.y = a->y + (r - row);
        args.bias = a->bias ? a->bias + (r - row) : NULL;
        args.n_w = n_woven ? n_woven / KERNELS_WOVEN * KERNELS_WOVEN : end - r;
        if (n_woven && (in_strip || n_woven < KERNELS_WOVEN)) {
            args.n_w = min_size(n_woven, KERNELS_WOVEN - in_strip);
            apply_woven_part(kernels, q, r, &args);
            continue;
        }
        set_weights(&args, q, r);
        (n_woven ? kernels->linear_woven : kernels->linear_i8)[type](&args);
    }
}

void quant_row(const struct kernels *kernels, const struct quant *q, size_t row, float *out)
{
    q = as_stored(q);
    assert(row < q->n_out);
    uint32_t words[MOST_WORDS];
    for (size_t k = 0; k < q->n_in; k += PIECE_K) {
        struct window win = {row, 1, k, min_size(q->n_in - k, PIECE_K), NULL, 0};
        window_open(&win, q, words);
        decode_piece(kernels, q, win.codes, row, k, win.n_k, out + k);
    }
}
