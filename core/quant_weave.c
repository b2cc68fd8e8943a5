/*
 * Codes in rows are interleaved word by word over the rows of a strip; those in columns (GPTQ's,
 * AWQ's) lie nearly so already and become the same as int4 in rows. A woven matrix is codes, scales
 * and, where they were in columns, zero points, one behind the other; rows behind the last whole
 * strip are not interleaved. Where columns are sorted, their order comes last.
 */
#include "core/quant_weave.h"

#include "core/kernels/kernels.h"
#include "core/quant_columns.h"
#include "core/quant_layout.h"

#include <assert.h>
#include <string.h>

enum { STRIP = KERNELS_WOVEN, SCALE_BYTES = 2 };

static size_t codes_of_row(const struct quant *q)
{
    return q->n_in * q->layout->bits / 8;
}

static size_t codes_bytes(const struct quant *q)
{
    return q->n_out * codes_of_row(q);
}

static size_t scales_bytes(const struct quant *q)
{
    return q->n_out * q->n_groups * SCALE_BYTES;
}

/* Bytes of the zero points that are written. */
static size_t zeros_bytes(const struct quant *q)
{
    return q->layout->in_columns ? q->n_out / 8 * q->n_groups * sizeof(uint32_t) : 0;
}

static size_t group_of(const struct quant *q, size_t k)
{
    return quant_layout_word(q->g_idx + 4 * k);
}

/* Sorted columns must be whole groups, or a scale would be another column's. */
static bool can_sort(const struct quant *q)
{
    size_t left[QUANT_LAYOUT_MAX_GROUPS];
    if (q->n_in != q->n_groups * q->block_in || q->n_out % STRIP)
        return false;
    for (size_t g = 0; g < q->n_groups; g++)
        left[g] = q->block_in;
    for (size_t k = 0; k < q->n_in; k++)
        if (left[group_of(q, k)]-- == 0)
            return false;
    return true;
}

size_t quant_woven_bytes(const struct kernels *kernels, const struct quant *q)
{
    const int type = quant_is_split(q) ? DOT_U4 : DOT_I8;
    struct quant sorted = *q;
    sorted.g_idx = NULL;
    if (!kernels->linear_woven[type] || quant_i8_group(&sorted) == 0 || q->n_woven ||
        q->n_out < STRIP || q->type == QUANT_MXFP4 || dtype_size(q->scale_dtype) != SCALE_BYTES ||
        q->n_in * q->layout->bits % 32 != 0 || (q->g_idx && !can_sort(q)))
        return 0;
    return codes_bytes(q) + scales_bytes(q) + zeros_bytes(q) +
           (q->g_idx ? q->n_in * sizeof *q->order : 0);
}

/* Group after group; within one, columns keep their order. */
static void sort_columns(const struct quant *q, uint32_t *order)
{
    size_t next[QUANT_LAYOUT_MAX_GROUPS];
    for (size_t g = 0; g < q->n_groups; g++)
        next[g] = g * q->block_in;
    for (size_t k = 0; k < q->n_in; k++)
        order[next[group_of(q, k)]++] = (uint32_t)k;
}

static uint32_t *order_at(const struct quant *q, unsigned char *to)
{
    return (uint32_t *)(void *)(to + codes_bytes(q) + scales_bytes(q) + zeros_bytes(q));
}

void quant_woven_init(const struct quant *q, unsigned char *to, struct quant *woven)
{
    *woven = *q;
    woven->codes = to;
    woven->scales = to + codes_bytes(q);
    woven->n_woven = q->n_out / STRIP * STRIP;
    if (q->g_idx) {
        sort_columns(q, order_at(q, to));
        woven->order = order_at(q, to);
        woven->stored = q;
        woven->g_idx = NULL;
    }
    if (!q->layout->in_columns)
        return;
    uint32_t *const zeros = (uint32_t *)(void *)(to + codes_bytes(q) + scales_bytes(q));
    const bool symmetric = quant_columns_zeros(q, 0, q->n_out / 8, zeros);
    woven->type = QUANT_PACKED4;
    woven->layout = &quant_layouts[QUANT_PACKED4];
    woven->row_bytes = codes_of_row(q);
    woven->zeros = symmetric ? NULL : (const unsigned char *)zeros;
    woven->zeros_add = 0;
}

void quant_weave_strip(const unsigned char *rows, size_t size, size_t n, unsigned char *to)
{
    for (size_t k = 0; k < n; k++)
        for (size_t r = 0; r < STRIP; r++)
            memcpy(to + (k * STRIP + r) * size, rows + (r * n + k) * size, size);
}

/* Codes in columns; all addresses are the matrix's. */
static void weave_columns(const struct quant *q, unsigned char *codes, unsigned char *scales,
                          size_t begin, size_t end)
{
    enum { AT_ONCE = 16 * STRIP };
    const size_t n_words = q->n_in / 8, stop = end / STRIP * STRIP;
    uint32_t *const words = (uint32_t *)(void *)codes;
    for (size_t r = begin; r < stop; r += AT_ONCE)
        quant_columns_strips(q, r, min_size(stop - r, AT_ONCE), words + r * n_words,
                             scales + r * q->n_groups * SCALE_BYTES);
    if (stop < end)
        quant_columns_rows(q, stop, end - stop, words + stop * n_words, n_words,
                           scales + stop * q->n_groups * SCALE_BYTES);
}

static void weave_rows(const struct quant *q, unsigned char *codes, unsigned char *scales,
                       size_t begin, size_t end)
{
    const size_t row = codes_of_row(q), own = q->n_groups * SCALE_BYTES;
    size_t r = begin;
    for (; r + STRIP <= end; r += STRIP) {
        quant_weave_strip(q->codes + r * row, 4, row / 4, codes + r * row);
        quant_weave_strip(q->scales + r * own, SCALE_BYTES, q->n_groups, scales + r * own);
    }
    memcpy(codes + r * row, q->codes + r * row, (end - r) * row);
    memcpy(scales + r * own, q->scales + r * own, (end - r) * own);
}

/* The codes of a strip from a row on, in an order: 4 bits each. */
static void sorted_codes(const struct quant *q, const uint32_t *order, size_t row, uint32_t *to)
{
    const bool in_columns = q->layout->in_columns;
    const size_t row_step = in_columns ? 4 : q->row_bytes, step = in_columns ? 4 * q->n_out : 4;
    for (size_t j = 0; j < q->n_in; j += 8, to += STRIP) {
        memset(to, 0, STRIP * sizeof *to);
        for (size_t i = 0; i < 8; i++) {
            const size_t k = order[j + i];
            const unsigned char *const from = q->codes + row * row_step + k / 8 * step;
            for (size_t r = 0; r < STRIP; r++)
                to[r] |= (quant_layout_word(from + r * row_step) >> 4 * (k % 8) & 15) << 4 * i;
        }
    }
}

/* Strips whose columns are sorted by group, as scales are already. */
static void weave_sorted(const struct quant *q, unsigned char *to, unsigned char *scales,
                         size_t begin, size_t end)
{
    const size_t row = codes_of_row(q), own = q->n_groups * SCALE_BYTES;
    for (size_t r = begin; r < end; r += STRIP) {
        sorted_codes(q, order_at(q, to), r, (uint32_t *)(void *)(to + r * row));
        if (q->layout->in_columns)
            quant_columns_strips(q, r, STRIP, NULL, scales + r * own);
        else
            quant_weave_strip(q->scales + r * own, SCALE_BYTES, q->n_groups, scales + r * own);
    }
}

void quant_weave_rows(const struct quant *q, unsigned char *to, size_t begin, size_t end)
{
    assert(begin % STRIP == 0 && (end % STRIP == 0 || end == q->n_out));
    unsigned char *const scales = to + codes_bytes(q);
    if (q->g_idx)
        weave_sorted(q, to, scales, begin, end);
    else
        (q->layout->in_columns ? weave_columns : weave_rows)(q, to, scales, begin, end);
}
