/*
 * Row by row: values in f32, then a scale for each group, then codes, then words. A matrix that is
 * stored transposed is read a strip of rows at a time, so that what the cache fetches is used.
 * Which scales are tried with four bits: the value of largest magnitude goes to one end of the
 * codes, -8, so that all sixteen are in use (scales may be negative); the tries around it cut that
 * value off or leave room.
 */
#include "core/quantize.h"

#include "core/kernels/kernels.h"
#include "core/quant_weave.h"
#include "core/quantize_parts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { GROUP = 64, SMALL_GROUP = 32, LONGEST_ALONE = 128, STRIP = 16 };

/* What the largest value of a group is mapped to, in sixteenths of a code; least squares then gives
 * each try its scale. Trying 64 scales as they are would lower the error by one or two hundredths.
 */
static const int16_t tries[QUANT_TRIES] = {120, 128, 136, 144};

/* ---- plan ------------------------------------------------------------------------------------ */

static enum quant_type choose_type(enum quantize_form form, size_t n_in, size_t *group)
{
    *group = n_in;
    if (form == QUANTIZE_8)
        return QUANT_INT8;
    if (n_in % GROUP == 0 || n_in % SMALL_GROUP == 0)
        *group = n_in % GROUP == 0 ? GROUP : SMALL_GROUP;
    else if (n_in > LONGEST_ALONE || n_in % 8 != 0)
        return QUANT_PACKED8;
    return QUANT_PACKED4;
}

static bool set_matrix(struct tensor *t, enum dtype dtype, size_t n_rows, size_t n_columns)
{
    *t = (struct tensor){
        .dtype = dtype, .n_dims = 2, .shape = {(int64_t)n_rows, (int64_t)n_columns}};
    return checked_mul(n_rows, n_columns, &t->n_bytes) &&
           checked_mul(t->n_bytes, dtype_size(dtype), &t->n_bytes);
}

bool quantize_plan(const struct quantize_source *from, enum quantize_form form,
                   struct quantized *to)
{
    size_t group, n_rows;
    const size_t n_in = from->n_in;
    const enum quant_type type = choose_type(form, n_in, &group);
    const size_t per_word = type == QUANT_PACKED4 ? 8 : 4;
    to->format = (struct quant_format){
        .type = type, .block_out = 1, .block_in = group < n_in ? (int)group : 0};
    return checked_mul(from->n_matrices, from->n_out, &n_rows) &&
           set_matrix(&to->scales, from->dtype == DTYPE_F16 ? DTYPE_F16 : DTYPE_BF16, n_rows,
                      n_in / group) &&
           (type == QUANT_INT8 ? set_matrix(&to->codes, DTYPE_I8, n_rows, n_in)
                               : set_matrix(&to->codes, DTYPE_I32, n_rows,
                                            n_in / per_word + (n_in % per_word != 0)));
}

static size_t row_bytes_of(const struct tensor *t)
{
    return (size_t)t->shape[1] * dtype_size(t->dtype);
}

unsigned char *quantize_row_at(const struct tensor *t, size_t r)
{
    return (unsigned char *)(uintptr_t)t->data + r * row_bytes_of(t);
}

bool quantize_can_weave(const struct kernels *kernels, const struct quantized *to)
{
    const enum quant_type type = to->format.type;
    return (type == QUANT_INT8 || type == QUANT_PACKED4) && row_bytes_of(&to->codes) % 4 == 0 &&
           kernels->linear_woven[type == QUANT_INT8 ? DOT_I8 : DOT_U4];
}

size_t quantize_block(size_t n_in)
{
    const size_t n_blocks = (n_in + QUANTIZE_BLOCK - 1) / QUANTIZE_BLOCK;
    return n_blocks < 2 ? n_in : round_up((n_in + n_blocks - 1) / n_blocks, GROUP);
}

/* What quantize_rows works in, [n_in] each but where it says otherwise. */
struct room {
    float *rows;   /* [STRIP or 1, n_in] */
    float *scales; /* of a row */
    int16_t *weights;
    unsigned char *woven; /* [KERNELS_WOVEN * n_in]: codes or scales of a strip */
};

static struct room share_out(const struct quantize_source *from, float *scratch)
{
    const size_t n = from->n_in, n_rows = from->transposed ? STRIP : 1;
    float *const scales = scratch + n_rows * n;
    float *const woven = scales + 2 * n;
    return (struct room){scratch, scales, (int16_t *)(scales + n), (unsigned char *)woven};
}

size_t quantize_scratch(const struct quantize_source *from)
{
    const size_t woven = from->n_in * KERNELS_WOVEN / sizeof(float);
    const size_t n = from->n_in * (from->transposed ? STRIP + 2 : 3) + woven +
                     (from->factors ? quantize_factor_scratch() : 0);
    return round_up(n, 16);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Row r as f32. */
static void read_row(const struct kernels *kernels, const struct quantize_source *from, size_t r,
                     float *out)
{
    const size_t offset = r * from->n_in * dtype_size(from->dtype);
    kernels->to_f32[from->dtype](out, (const unsigned char *)from->data + offset, from->n_in);
}

/* Rows [r, r + n) of one transposed matrix -> out [n, n_in]. */
static void read_strip(const struct kernels *kernels, const struct quantize_source *from, size_t r,
                       size_t n, float *out)
{
    const size_t size = dtype_size(from->dtype), n_in = from->n_in;
    const size_t matrix = r / from->n_out * from->n_out * n_in, column = r % from->n_out;
    for (size_t k = 0; k < n_in; k++) {
        float values[STRIP];
        const size_t first = matrix + k * from->n_out + column;
        kernels->to_f32[from->dtype](values, (const unsigned char *)from->data + first * size, n);
        for (size_t i = 0; i < n; i++)
            out[i * n_in + k] = values[i];
    }
}

void quantize_weigh_group(const float *cost, size_t n, int16_t *weights)
{
    float most = 0;
    for (size_t k = 0; cost && k < n; k++)
        most = cost[k] > most ? cost[k] : most;
    for (size_t k = 0; k < n; k++) {
        const float part =
            cost && most > 0 && isfinite(most) ? cost[k] / most * QUANT_WEIGHT : QUANT_WEIGHT;
        weights[k] = (int16_t)(part >= 1 ? part : 1);
    }
}

bool quantize_write_scale(const struct kernels *kernels, enum dtype dtype, unsigned char *to,
                          float scale)
{
    uint32_t bits;
    if (dtype == DTYPE_F16) {
        kernels->cache_store[CACHE_F16](to, 1, &scale, 1);
        return isfinite(scale);
    }
    memcpy(&bits, &scale, sizeof bits);
    const uint16_t high = (uint16_t)(bits >> 16); /* it has been rounded */
    memcpy(to, &high, sizeof high);
    return isfinite(scale);
}

static bool quantize_row(const struct kernels *kernels, const struct quantize_source *from,
                         const struct quantized *to, size_t r, const float *x,
                         const struct room *room)
{
    const enum quant_type type = to->format.type;
    const size_t n_in = from->n_in, n_groups = (size_t)to->scales.shape[1], n = n_in / n_groups;
    const size_t row_bytes = row_bytes_of(&to->codes);
    unsigned char *const codes = quantize_row_at(&to->codes, r);
    unsigned char *const scales = quantize_row_at(&to->scales, r);
    bool finite = true;
    if (type == QUANT_PACKED4) {
        kernels->quant_scales(room->scales, x, room->weights, n_in, n, tries);
        kernels->quant_codes(codes, x, room->scales, n_in, n);
        for (size_t g = 0; g < n_groups; g++)
            finite &=
                quantize_write_scale(kernels, to->scales.dtype, scales + 2 * g, room->scales[g]);
    } else {
        finite = quantize_write_scale(kernels, to->scales.dtype, scales,
                                      kernels->quant_row((int8_t *)codes, x, n_in));
        for (size_t k = 0; type == QUANT_PACKED8 && k < row_bytes; k++)
            codes[k] = k < n_in ? codes[k] ^ 0x80 : 0; /* an offset of 128 */
    }
    return finite;
}

/* Rows of n elements where they lie. */
static void weave(unsigned char *rows, size_t size, size_t n, unsigned char *room)
{
    memcpy(room, rows, KERNELS_WOVEN * n * size);
    quant_weave_strip(room, size, n, rows);
}

/* The strip that begins with row r. */
static void weave_strip(const struct quantized *to, size_t r, unsigned char *room)
{
    weave(quantize_row_at(&to->codes, r), 4, row_bytes_of(&to->codes) / 4, room);
    weave(quantize_row_at(&to->scales, r), 2, (size_t)to->scales.shape[1], room);
}

bool quantize_rows(const struct kernels *kernels, const struct quantize_source *from,
                   const struct quantized *to, size_t begin, size_t end, float *scratch)
{
    const struct room room = share_out(from, scratch);
    const size_t group = from->n_in / (size_t)to->scales.shape[1];
    bool finite = true;
    assert(!to->format.woven ||
           (begin % KERNELS_WOVEN == 0 && !from->factors &&
            (end % KERNELS_WOVEN == 0 || end == from->n_matrices * from->n_out)));
    if (to->format.type == QUANT_PACKED4 && from->factors)
        return quantize_factor_rows(kernels, from, to, begin, end, tries, scratch);
    for (size_t k = 0; to->format.type == QUANT_PACKED4 && k < from->n_in; k += group)
        quantize_weigh_group(from->importance ? from->importance + k : NULL, group,
                             room.weights + k);
    for (size_t r = begin, woven = begin, n; r < end; r += n) {
        const size_t left = from->n_out - r % from->n_out; /* rows are read of one matrix at once */
        n = min_size(from->transposed ? STRIP : 1, min_size(left, end - r));
        if (from->transposed)
            read_strip(kernels, from, r, n, room.rows);
        else
            read_row(kernels, from, r, room.rows);
        for (size_t i = 0; i < n; i++)
            finite &= quantize_row(kernels, from, to, r + i, room.rows + i * from->n_in, &room);
        for (; to->format.woven && woven + KERNELS_WOVEN <= r + n; woven += KERNELS_WOVEN)
            weave_strip(to, woven, room.woven);
    }
    return finite;
}
