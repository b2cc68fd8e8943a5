/*
 * GPTQ stores 8 inputs of an output in a word, word beside word for all outputs; AWQ 8 outputs of
 * an input. For products in whole numbers some rows at a time are brought into a block on the
 * stack, in the layout of QUANT_PACKED4, or woven where the kernels want that: reading the words
 * takes most of the time with few rows of x, and little with many.
 */
#include "core/quant_columns.h"

#include "core/kernels/kernels.h"
#include "core/quant_layout.h"

#include <assert.h>
#include <string.h>

/* ---- codes ---- */

unsigned quant_columns_place(const struct quant *q, size_t row)
{
    static const unsigned char awq[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return q->type == QUANT_AWQ ? awq[row % 8] : row % 8;
}

/* Short loops over arrays of vectors must be unrolled, or these live in memory. */
#define UNROLL _Pragma("GCC unroll 8")

/* Four words that take the same steps; every compiler that is supported knows such vectors. */
typedef uint32_t four_words __attribute__((vector_size(16)));

/* A vector of chosen words: 0 to 3 are those of a, 4 to 7 those of b. */
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (four_words){__VA_ARGS__})
#endif

/* 4 x 4 words as a matrix: rows become columns. */
static void turn(four_words w[4])
{
    const four_words low01 = SHUFFLE(w[0], w[1], 0, 4, 1, 5);
    const four_words low23 = SHUFFLE(w[2], w[3], 0, 4, 1, 5);
    const four_words high01 = SHUFFLE(w[0], w[1], 2, 6, 3, 7);
    const four_words high23 = SHUFFLE(w[2], w[3], 2, 6, 3, 7);
    w[0] = SHUFFLE(low01, low23, 0, 1, 4, 5);
    w[1] = SHUFFLE(low01, low23, 2, 3, 6, 7);
    w[2] = SHUFFLE(high01, high23, 0, 1, 4, 5);
    w[3] = SHUFFLE(high01, high23, 2, 3, 6, 7);
}

/* 8 words of 8 codes as a matrix: rows become columns (Hacker's Delight, section 7-3). */
static void transpose_codes(four_words w[8])
{
    static const uint32_t masks[] = {0x0000ffff, 0x00ff00ff, 0x0f0f0f0f};
    UNROLL
    for (unsigned step = 0; step < 3; step++) {
        const unsigned distance = 4 >> step;
        UNROLL
        for (unsigned i = 0; i < 8; i++) {
            if (i & distance)
                continue;
            const four_words swap = ((w[i] >> 4 * distance) ^ w[i + distance]) & masks[step];
            w[i + distance] ^= swap;
            w[i] ^= swap << 4 * distance;
        }
    }
}

/* Four words of AWQ's codes for each of 8 inputs -> a word of 8 inputs for each of 32 outputs. */
static void outputs_of_awq(const struct quant *q, four_words w[8], uint32_t out[32])
{
    transpose_codes(w);
    UNROLL
    for (size_t half = 0; half < 2; half++) {
        four_words some[4];
        UNROLL
        for (size_t i = 0; i < 4; i++)
            some[i] = w[quant_columns_place(q, 4 * half + i)];
        turn(some);
        UNROLL
        for (size_t i = 0; i < 4; i++)
            memcpy(out + 8 * i + 4 * half, &some[i], sizeof *some);
    }
}

/* Prefetches the next 8 inputs: processors do not foresee steps as wide as n_out. */
static void words_of_awq(const struct quant *q, size_t row, size_t n_rows, size_t k,
                         uint32_t *words, size_t step)
{
    const size_t stride = q->n_out / 2, end = row + n_rows, last = (end + 7) / 8;
    for (size_t c = row / 8; c < last; c += 4) {
        const unsigned char *const from = q->codes + k * stride + 4 * c;
        const size_t n = min_size(last - c, 4);
        four_words w[8];
        UNROLL
        for (size_t j = 0; j < 8; j++) {
            w[j] = (four_words){0};
            if (n == 4)
                memcpy(&w[j], from + j * stride, sizeof *w);
            else
                memcpy(&w[j], from + j * stride, 4 * n);
            if (k + 16 <= q->n_in)
                __builtin_prefetch(from + (8 + j) * stride);
        }
        uint32_t outputs[32];
        outputs_of_awq(q, w, outputs);
        if (n == 4 && step == 1 && 8 * c >= row && 8 * (c + n) <= end) {
            memcpy(words + (8 * c - row), outputs, sizeof outputs);
            continue;
        }
        const size_t begin_r = 8 * c < row ? row : 8 * c;
        for (size_t r = begin_r; r < min_size(8 * (c + n), end); r++)
            words[(r - row) * step] = outputs[r - 8 * c];
    }
}

static void words_of_gptq(const struct quant *q, size_t row, size_t n_rows, size_t k,
                          uint32_t *words, size_t step)
{
    const unsigned char *const from = q->codes + 4 * (k / 8 * q->n_out + row);
    for (size_t r = 0; r < n_rows; r++)
        words[r * step] = quant_layout_word(from + 4 * r);
}

void quant_columns_words(const struct quant *q, size_t row, size_t n_rows, size_t k,
                         uint32_t *words, size_t step)
{
    (q->type == QUANT_AWQ ? words_of_awq : words_of_gptq)(q, row, n_rows, k, words, step);
}

/* ---- blocks ---- */

/* What fits the L2 of most machines. Rows that are not woven are padded by a cache line, or those
 * of some lengths would evict each other from L1. */
enum {
    BLOCK_ROWS = 256,
    BLOCK_GRAIN = KERNELS_WOVEN,
    BLOCK_WORDS = 1 << 16,
    BLOCK_GAP = 16, /* words */
    BLOCK_GROUPS = BLOCK_WORDS / 4,
};

/* At most BLOCK_ROWS rows, in the layout of QUANT_PACKED4. */
struct block {
    uint32_t codes[BLOCK_WORDS];
    unsigned char scales[BLOCK_GROUPS * 4];
    uint32_t zeros[BLOCK_GROUPS / 8 + BLOCK_GROUPS / BLOCK_GRAIN]; /* one more for each group */
};

/* How many rows of *q a block has room for. */
static size_t block_rows(const struct quant *q)
{
    const size_t by_codes = BLOCK_WORDS / (q->n_in / 8 + BLOCK_GAP);
    const size_t by_groups = BLOCK_GROUPS / q->n_groups;
    return min_size(by_codes, min_size(by_groups, BLOCK_ROWS)) / BLOCK_GRAIN * BLOCK_GRAIN;
}

bool quant_columns_fit(const struct quant *q)
{
    return q->n_in % q->block_in == 0 && block_rows(q) > 0;
}

/* Four words of each of four rows of GPTQ's codes, which are the codes of four outputs. */
static void turn_words(const unsigned char *from, size_t stride, uint32_t *to, size_t to_stride)
{
    four_words w[4];
    UNROLL
    for (size_t i = 0; i < 4; i++)
        memcpy(&w[i], from + i * stride, sizeof *w);
    turn(w);
    UNROLL
    for (size_t i = 0; i < 4; i++)
        memcpy(to + i * to_stride, &w[i], sizeof *w);
}

/* Codes of outputs [row, row + n) -> rows `stride` words apart. Prefetches columns that come soon:
 * processors do not foresee steps as wide as n_out. */
static void rows_of_gptq(const struct quant *q, size_t row, size_t n, uint32_t *codes,
                         size_t stride)
{
    enum { AHEAD = 16, PER_LINE = 16 };
    const size_t n_words = q->n_in / 8, whole = n_words % 4 == 0 ? n / 4 * 4 : 0;
    const size_t from_stride = 4 * q->n_out;
    for (size_t k = 0; k + 4 <= n_words; k += 4) {
        const unsigned char *const from = q->codes + k * from_stride + 4 * row;
        for (size_t r = 0; r < whole; r += 4) {
            if (r % PER_LINE == 0 && k + AHEAD + 4 <= n_words)
                for (size_t i = 0; i < 4; i++)
                    __builtin_prefetch(from + (AHEAD + i) * from_stride + 4 * r);
            turn_words(from + 4 * r, from_stride, codes + r * stride + k, stride);
        }
    }
    for (size_t r = whole; r < n; r++)
        for (size_t k = 0; k < n_words; k++)
            codes[r * stride + k] = quant_layout_word(q->codes + k * from_stride + 4 * (row + r));
}

static void rows_of_awq(const struct quant *q, size_t row, size_t n, uint32_t *codes, size_t stride)
{
    for (size_t k = 0; k < q->n_in; k += 8)
        words_of_awq(q, row, n, k, codes + k / 8, stride);
}

/* The scales of those rows, [n, n_groups]. */
static void rows_of_scales(const struct quant *q, size_t row, size_t n, unsigned char *scales)
{
    const size_t size = dtype_size(q->scale_dtype), n_groups = q->n_groups;
    for (size_t g = 0; g < n_groups; g++) {
        const unsigned char *const from = q->scales + (g * q->n_out + row) * size;
        for (size_t r = 0; size == 2 && r < n; r++)
            memcpy(scales + (r * n_groups + g) * 2, from + 2 * r, 2);
        for (size_t r = 0; size == 4 && r < n; r++)
            memcpy(scales + (r * n_groups + g) * 4, from + 4 * r, 4);
    }
}

bool quant_columns_zeros(const struct quant *q, size_t word, size_t n, uint32_t *zeros)
{
    bool symmetric = true;
    for (size_t g = 0; g < q->n_groups; g++) {
        for (size_t i = 0; i < n; i++) {
            const unsigned char *const from = q->zeros + 4 * (g * q->n_out / 8 + word + i);
            const uint32_t stored = quant_layout_word(from) + q->zeros_add;
            uint32_t *const to = &zeros[i * q->n_groups + g];
            *to = q->type == QUANT_AWQ ? 0 : stored;
            for (size_t r = 0; q->type == QUANT_AWQ && r < 8; r++)
                *to |= (stored >> 4 * quant_columns_place(q, r) & 15) << 4 * r;
            symmetric = symmetric && *to == 0x88888888;
        }
    }
    return symmetric;
}

/* Codes of n outputs from row on, whole strips -> woven. */
static void strips_of_gptq(const struct quant *q, size_t row, size_t n, uint32_t *codes)
{
    enum { AHEAD = 16 };
    const size_t n_words = q->n_in / 8;
    for (size_t k = 0; k < n_words; k++) {
        const unsigned char *const from = q->codes + 4 * (k * q->n_out + row);
        for (size_t r = 0; r < n; r += KERNELS_WOVEN) {
            if (k + AHEAD < n_words)
                __builtin_prefetch(from + 4 * (AHEAD * q->n_out + r));
            memcpy(codes + r * n_words + k * KERNELS_WOVEN, from + 4 * r, 4 * KERNELS_WOVEN);
        }
    }
}

static void strips_of_awq(const struct quant *q, size_t row, size_t n, uint32_t *codes)
{
    enum { AT_ONCE = 2 * KERNELS_WOVEN }; /* outputs */
    const size_t n_words = q->n_in / 8;
    for (size_t k = 0; k < n_words; k++)
        for (size_t r = 0; r < n; r += AT_ONCE) {
            uint32_t words[AT_ONCE];
            const size_t n_now = min_size(n - r, AT_ONCE);
            words_of_awq(q, row + r, n_now, 8 * k, words, 1);
            for (size_t i = 0; i < n_now; i += KERNELS_WOVEN)
                memcpy(codes + (r + i) * n_words + k * KERNELS_WOVEN, words + i, 4 * KERNELS_WOVEN);
        }
}

static void strips_of_scales(const struct quant *q, size_t row, size_t n, unsigned char *scales)
{
    for (size_t g = 0; g < q->n_groups; g++)
        for (size_t r = 0; r < n; r += KERNELS_WOVEN)
            memcpy(scales + 2 * (r * q->n_groups + g * KERNELS_WOVEN),
                   q->scales + 2 * (g * q->n_out + row + r), 2 * KERNELS_WOVEN);
}

void quant_columns_rows(const struct quant *q, size_t row, size_t n, uint32_t *codes, size_t stride,
                        unsigned char *scales)
{
    (q->type == QUANT_AWQ ? rows_of_awq : rows_of_gptq)(q, row, n, codes, stride);
    rows_of_scales(q, row, n, scales);
}

void quant_columns_strips(const struct quant *q, size_t row, size_t n, uint32_t *codes,
                          unsigned char *scales)
{
    if (codes)
        (q->type == QUANT_AWQ ? strips_of_awq : strips_of_gptq)(q, row, n, codes);
    strips_of_scales(q, row, n, scales);
}

/* Brings the a->n_w outputs from `row` on into the block, and sets what *a says of their layout and
 * zero points. */
static void block_fill(struct block *block, const struct quant *q, size_t row, bool woven,
                       struct linear_i8_args *a)
{
    const size_t stride = q->n_in / 8 + (woven ? 0 : BLOCK_GAP);
    a->w_stride = 4 * stride;
    a->zero = 8;
    a->zero_row = row % 8;
    a->zeros = (const unsigned char *)block->zeros;
    if (quant_columns_zeros(q, row / 8, (row % 8 + a->n_w + 7) / 8, block->zeros))
        a->zeros = NULL;
    if (woven)
        quant_columns_strips(q, row, a->n_w, block->codes, block->scales);
    else
        quant_columns_rows(q, row, a->n_w, block->codes, stride, block->scales);
}

void quant_columns_apply_i8(const struct kernels *kernels, const struct quant *q, size_t row,
                            const struct linear_i8_args *a)
{
    struct block block;
    struct linear_i8_args args = *a;
    assert(row + a->n_w <= q->n_out && a->n_k == q->n_in);
    const size_t n_rows = block_rows(q);
    const bool weaves = kernels->linear_woven[DOT_U4] && dtype_size(q->scale_dtype) == 2;
    args.w = (const unsigned char *)block.codes;
    args.w_group = q->block_in;
    args.scales = block.scales;
    args.scale_stride = q->n_groups;
    args.scale_type = (int)q->scale_dtype;
    for (size_t r = row, end = row + a->n_w; r < end; r += args.n_w) {
        const size_t n = min_size(end - r, n_rows);
        const bool woven = weaves && r % 8 == 0 && n >= KERNELS_WOVEN;
        args.n_w = woven ? n / KERNELS_WOVEN * KERNELS_WOVEN : n;
        args.y = a->y + (r - row);
        args.bias = a->bias ? a->bias + (r - row) : NULL;
        block_fill(&block, q, r, woven, &args);
        (woven ? kernels->linear_woven : kernels->linear_i8)[DOT_U4](&args);
    }
}
