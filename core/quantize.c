/*
 * Row by row: to f32, a scale for each group, codes, packed. A matrix that is stored transposed is
 * read a strip of rows at a time, so that what the cache fetches is used. Which scales are tried:
 * the value of largest magnitude e goes to one end of the codes, e / -8 with four bits, so that all
 * sixteen codes are in use (scales may be negative); the tries around it cut e off or leave room.
 */
#include "core/quantize.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    GROUP = 64,
    SMALL_GROUP = 32,
    LONGEST_ALONE = 128,
    STRIP = 16,
    LONGEST_BLOCK = 512,
    N_ROUNDS = 3
};

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

size_t quantize_block(size_t n_in)
{
    const size_t n_blocks = (n_in + LONGEST_BLOCK - 1) / LONGEST_BLOCK;
    return n_blocks < 2 ? n_in : round_up((n_in + n_blocks - 1) / n_blocks, GROUP);
}

size_t quantize_scratch(const struct quantize_source *from)
{
    return from->n_in * (from->transposed ? STRIP : 3);
}

/* ---- factors ---- */

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Cholesky's decomposition from the last row and column to the first. */
void quantize_factor(float *h, size_t n, size_t stride)
{
    double trace = 0;
    for (size_t i = 0; i < n; i++)
        trace += (double)h[i * stride + i];
    const double damping = trace > 0 ? 0.01 * trace / (double)n : 1;
    for (size_t k = n; k-- > 0;) {
        const float *const row = h + k * stride + k + 1; /* v(k, j) for j > k */
        const size_t behind = n - k - 1;
        const double square = (double)h[k * stride + k] + damping - dot(row, row, behind);
        const double diagonal = sqrt(fmax(square, damping)); /* in exact sums never below */
        h[k * stride + k] = (float)diagonal;
        for (size_t i = 0; i < k; i++) {
            float *const at = h + i * stride + k;
            *at = (float)(((double)*at - dot(at + 1, row, behind)) / diagonal);
        }
        memset(h + k * stride, 0, k * sizeof *h);
    }
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

static void pack_codes(const int8_t *codes, size_t n, unsigned char *out)
{
    for (size_t k = 0; k < n; k += 8) {
        const uint32_t word = pack4(codes + k);
        memcpy(out + k / 2, &word, sizeof word);
    }
}

static void write4(const struct kernels *kernels, const float *x, size_t n, float scale,
                   unsigned char *out)
{
    int8_t codes[LONGEST_ALONE];
    kernels->quant_codes(codes, x, n, scale, -8, 7);
    pack_codes(codes, n, out);
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

/*
 * A row of a block while it is rounded. With off(k) = x[k] - scale * code(k) and the factor v, the
 * error of the row's products is the sum over j of u(j)^2, u(j) = the sum over k <= j of
 * v(k, j) * off(k).
 */
struct rounding {
    const struct kernels *kernels;
    const float *v; /* [n, stride] */
    size_t n, stride, group;
    const float *squares; /* [n]: of v's rows */
    const float *x;       /* [n] */
    float *u;             /* [n]: of the columns that have codes */
    float scales[LONGEST_BLOCK / SMALL_GROUP];
    int8_t codes[LONGEST_BLOCK];
};

static int8_t nearest_code(const struct rounding *r, float value, float scale)
{
    int8_t code;
    r->kernels->quant_codes(&code, &value, 1, scale, -8, 7);
    return code;
}

/* u for a column k that is off by `by` more. */
static void push(const struct rounding *r, size_t k, float by)
{
    r->kernels->linear_cols[WEIGHT_F32](&(struct linear_args){.y = r->u + k,
                                                              .x = &by,
                                                              .n_x = 1,
                                                              .w = r->v + k * (r->stride + 1),
                                                              .n_w = r->n - k,
                                                              .n_k = 1,
                                                              .scale = 1,
                                                              .add = true});
}

/* The first codes of a group: each the best in its turn, seeing what columns before it have done.
 */
static void round_group(struct rounding *r, size_t first)
{
    float wanted[LONGEST_ALONE], weights[LONGEST_ALONE];
    for (size_t i = 0; i < r->group; i++) {
        const float diagonal = r->v[(first + i) * (r->stride + 1)];
        wanted[i] = r->x[first + i] + r->u[first + i] / diagonal;
        weights[i] = diagonal * diagonal;
    }
    const float scale = r->kernels->quant_scale(wanted, weights, r->group, tries4, -8, 7);
    r->scales[first / r->group] = scale;
    for (size_t k = first; k < first + r->group; k++) {
        r->codes[k] = nearest_code(r, r->x[k] + r->u[k] / r->v[k * (r->stride + 1)], scale);
        push(r, k, r->x[k] - scale * (float)r->codes[k]);
    }
}

static float dot32(const struct kernels *kernels, const float *a, const float *b, size_t n)
{
    float sum;
    kernels->linear_rows[WEIGHT_F32](&(struct linear_args){
        .y = &sum, .x = a, .n_x = 1, .w = b, .w_stride = n, .n_w = 1, .n_k = n, .scale = 1});
    return sum;
}

/* The scale of a group that suits its codes, and all others, best. */
static void refit_scale(struct rounding *r, size_t first)
{
    const struct kernels *const kernels = r->kernels;
    const size_t n = r->n - first;
    float codes[LONGEST_ALONE], along[LONGEST_BLOCK]; /* how u would change */
    uint16_t half[32];
    for (size_t i = 0; i < r->group; i++)
        codes[i] = r->codes[first + i];
    kernels->linear_cols[WEIGHT_F32](&(struct linear_args){.y = along,
                                                           .x = codes,
                                                           .n_x = 1,
                                                           .w = r->v + first * (r->stride + 1),
                                                           .w_stride = r->stride,
                                                           .n_w = n,
                                                           .n_k = r->group,
                                                           .scale = 1});
    const float square = dot32(kernels, along, along, n), old = r->scales[first / r->group];
    if (square == 0)
        return;
    const float best = old + dot32(kernels, along, r->u + first, n) / square;
    kernels->to_bf16(half, &best, 1);
    const uint32_t bits = (uint32_t)half[0] << 16;
    float scale, change;
    memcpy(&scale, &bits, sizeof scale);
    change = old - scale;
    if (!isnormal(scale))
        return;
    r->scales[first / r->group] = scale;
    kernels->linear_cols[WEIGHT_F32](&(struct linear_args){.y = r->u + first,
                                                           .x = &change,
                                                           .n_x = 1,
                                                           .w = along,
                                                           .n_w = n,
                                                           .n_k = 1,
                                                           .scale = 1,
                                                           .add = true});
}

/* Each code of a group anew, the best while all others are what they are. */
static void improve_group(struct rounding *r, size_t first)
{
    const float scale = r->scales[first / r->group];
    for (size_t k = first; k < first + r->group; k++) {
        const float now = scale * (float)r->codes[k];
        const float pull =
            dot32(r->kernels, r->v + k * (r->stride + 1), r->u + k, r->n - k) / r->squares[k];
        const int8_t code = nearest_code(r, now + pull, scale);
        if (code != r->codes[k])
            push(r, k, now - scale * (float)code);
        r->codes[k] = code;
    }
}

static void round_block(struct rounding *r)
{
    assert(r->group > 0 && r->n % r->group == 0);
    memset(r->u, 0, r->n * sizeof *r->u);
    for (size_t k = 0; k < r->n; k += r->group)
        round_group(r, k);
    for (int i = 0; i < N_ROUNDS; i++) {
        for (size_t k = 0; k < r->n; k += r->group)
            refit_scale(r, k);
        for (size_t k = 0; k < r->n; k += r->group)
            improve_group(r, k);
    }
}

/* A row in groups of n columns, block by block. room: [n_in], and the squares of the factors. */
static void round_row(const struct kernels *kernels, const struct quantize_source *from, size_t n,
                      const float *x, float *room, unsigned char *codes, unsigned char *scales)
{
    const size_t n_in = from->n_in, block = quantize_block(n_in);
    for (size_t k = 0; k < n_in; k += block) {
        struct rounding r = {.kernels = kernels,
                             .v = from->factors + k * block,
                             .n = n_in - k < block ? n_in - k : block,
                             .stride = block,
                             .group = n,
                             .squares = room + n_in + k,
                             .x = x + k,
                             .u = room + k};
        round_block(&r);
        pack_codes(r.codes, r.n, codes + k / 2);
        for (size_t i = 0; i < r.n / n; i++)
            write_scale(scales + 2 * (k / n + i), r.scales[i]);
    }
}

/* The sums of the squares of each row of the factors: what a step in its column costs. */
static void measure_factors(const struct quantize_source *from, float *squares)
{
    const size_t n_in = from->n_in, block = quantize_block(n_in);
    for (size_t k = 0; k < n_in; k++) {
        const size_t first = k / block * block, end = first + block < n_in ? first + block : n_in;
        const float *const v = from->factors + k * block + (k - first);
        squares[k] = (float)dot(v, v, end - k);
    }
}

static void quantize_row(const struct kernels *kernels, const struct quantize_source *from,
                         const struct quantized *to, size_t r, float *x)
{
    const enum quant_type type = to->format.type;
    const bool four = type == QUANT_PACKED4;
    const size_t n_groups = (size_t)to->scales.shape[1], n = from->n_in / n_groups;
    const size_t row_bytes = (size_t)to->codes.shape[1] * dtype_size(to->codes.dtype);
    unsigned char *const codes = (unsigned char *)(uintptr_t)to->codes.data + r * row_bytes;
    unsigned char *const scales = (unsigned char *)(uintptr_t)to->scales.data + 2 * r * n_groups;
    if (four && from->factors) {
        round_row(kernels, from, n, x, x + from->n_in, codes, scales);
        return;
    }
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
    assert(!from->factors || !from->transposed);
    if (from->factors)
        measure_factors(from, scratch + 2 * from->n_in);
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
