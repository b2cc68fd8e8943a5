/*
 * Row by row: to f32, a scale for each group, codes, packed. A matrix that is stored transposed is
 * read a strip of rows at a time, so that what the cache fetches is used. Which scales are tried:
 * the value of largest magnitude e goes to one end of the codes, e / -8 with four bits, so that all
 * sixteen codes are in use (scales may be negative); the tries around it cut e off or leave room.
 */
#include "core/quantize.h"

#include "core/kernels/kernels.h"

#include <string.h>

enum { GROUP = 64, SMALL_GROUP = 32, LONGEST_ALONE = 128, STRIP = 16 };

/* Chosen by the error on trained models, which 64 tries would lower by less than a hundredth. */
static const float tries4[QUANT_TRIES] = {-8, -7.2f, -7.5f, -7.75f, -8.3f, -8.6f, -8.9f, -9.3f};
static const float tries8[QUANT_TRIES] = {127, 126.4f, 128, 129, 131, 134, 138, 144};

/* ---- plan ---- */

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
           set_matrix(&to->scales, DTYPE_BF16, n_rows, n_in / group) &&
           (type == QUANT_INT8 ? set_matrix(&to->codes, DTYPE_I8, n_rows, n_in)
                               : set_matrix(&to->codes, DTYPE_I32, n_rows,
                                            n_in / per_word + (n_in % per_word != 0)));
}

size_t quantize_scratch(const struct quantize_source *from)
{
    return from->n_in * (from->transposed ? STRIP : 1);
}

/* ---- rows ---- */

/* Row r as f32: where it lies already, or in out. */
static const float *read_row(const struct kernels *kernels, const struct quantize_source *from,
                             size_t r, float *out)
{
    const size_t offset = r * from->n_in * dtype_size(from->dtype);
    kernels->to_f32[from->dtype](out, (const unsigned char *)from->data + offset, from->n_in);
    return out;
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

/* Eight codes from -8 to 7 -> a word of their values + 8, the first one low. */
static uint32_t pack4(const int8_t *codes)
{
    uint64_t c = 0;
    for (unsigned i = 0; i < 8; i++)
        c |= (uint64_t)(uint8_t)codes[i] << 8 * i;
    c = (c & 0x0f0f0f0f0f0f0f0f) ^ 0x0808080808080808;
    c = (c | c >> 4) & 0x00ff00ff00ff00ff;
    c = (c | c >> 8) & 0x0000ffff0000ffff;
    return (uint32_t)(c | c >> 16);
}

static void write4(const struct kernels *kernels, const float *x, size_t n, float scale,
                   unsigned char *out)
{
    int8_t codes[LONGEST_ALONE];
    kernels->quant_codes(codes, x, n, scale, -8, 7);
    for (size_t k = 0; k < n; k += 8) {
        const uint32_t word = pack4(codes + k);
        memcpy(out + k / 2, &word, sizeof word);
    }
}

/* n is that of a whole row; with an offset of 128 the last word is filled up with zeros. */
static void write8(const struct kernels *kernels, const float *x, size_t n, float scale,
                   bool offset, unsigned char *out)
{
    kernels->quant_codes((int8_t *)out, x, n, scale, -127, 127);
    for (size_t k = 0; offset && k < n; k++)
        out[k] ^= 0x80;
    for (size_t k = n; offset && k % 4 != 0; k++)
        out[k] = 0;
}

static void write_scale(unsigned char *to, float scale)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    const uint16_t high = (uint16_t)(bits >> 16); /* quant_scale has rounded it */
    memcpy(to, &high, sizeof high);
}

static void quantize_row(const struct kernels *kernels, const struct quantize_source *from,
                         const struct quantized *to, size_t r, const float *x)
{
    const enum quant_type type = to->format.type;
    const bool four = type == QUANT_PACKED4;
    const size_t n_groups = (size_t)to->scales.shape[1], n = from->n_in / n_groups;
    const size_t row_bytes = (size_t)to->codes.shape[1] * dtype_size(to->codes.dtype);
    unsigned char *const codes = (unsigned char *)(uintptr_t)to->codes.data + r * row_bytes;
    unsigned char *const scales = (unsigned char *)(uintptr_t)to->scales.data + 2 * r * n_groups;
    for (size_t g = 0; g < n_groups; g++) {
        const bool weighted = four && from->importance; /* 8 bits have none to give away */
        const float *const weights = weighted ? from->importance + g * n : NULL;
        const float scale = kernels->quant_scale(x + g * n, weights, n, four ? tries4 : tries8,
                                                 four ? -8 : -127, four ? 7 : 127);
        write_scale(scales + 2 * g, scale);
        if (four)
            write4(kernels, x + g * n, n, scale, codes + g * n / 2);
        else
            write8(kernels, x, n, scale, type == QUANT_PACKED8, codes);
    }
}

void quantize_rows(const struct kernels *kernels, const struct quantize_source *from,
                   const struct quantized *to, size_t begin, size_t end, float *scratch)
{
    for (size_t r = begin, n; r < end; r += n) {
        const size_t left = from->n_out - r % from->n_out; /* a strip stays within its matrix */
        n = from->transposed ? STRIP : 1;
        n = n < left ? n : left;
        n = n < end - r ? n : end - r;
        if (from->transposed)
            read_strip(kernels, from, r, n, scratch);
        else
            read_row(kernels, from, r, scratch);
        for (size_t i = 0; i < n; i++)
            quantize_row(kernels, from, to, r + i, scratch + i * from->n_in);
    }
}
