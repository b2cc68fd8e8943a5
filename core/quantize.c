/*
 * Row by row: to f32, a scale for each group, codes, packed. A matrix that is stored transposed is
 * read a strip of rows at a time, so that what the cache fetches is used. Which scales are tried
 * with four bits: the value of largest magnitude goes to one end of the codes, -8, so that all
 * sixteen are in use (scales may be negative); the tries around it cut that value off or leave
 * room.
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

/* In sixteenths. 64 scales, each tried as it is, would lower the error by one or two hundredths. */
static const int16_t tries[QUANT_TRIES] = {120, 128, 136, 144};

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

/* What quantize_rows works in, [n_in] each but for the rows. */
struct room {
    float *rows;    /* [STRIP or 1, n_in] */
    float *scales;  /* of a row */
    float *u;       /* with factors: of struct rounding, */
    float *squares; /* and theirs */
    int16_t *weights;
};

static struct room share_out(const struct quantize_source *from, float *scratch)
{
    const size_t n = from->n_in, n_rows = from->transposed ? STRIP : 1;
    struct room room = {.rows = scratch, .scales = scratch + n_rows * n};
    room.u = room.scales + n;
    room.squares = room.u + n;
    room.weights = (int16_t *)(room.squares + n);
    return room;
}

size_t quantize_scratch(const struct quantize_source *from)
{
    return from->n_in * (from->transposed ? STRIP + 4 : 5);
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

/* Whole numbers in the ratio of what errors in the columns of a group cost, given or NULL. */
static void weigh_group(const float *cost, size_t n, int16_t *weights)
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

static void write_scale(unsigned char *to, float scale)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    const uint16_t high = (uint16_t)(bits >> 16); /* it has been rounded */
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
    const float *squares;   /* [n]: of v's rows */
    const int16_t *weights; /* [n]: for the first scales */
    const float *x;         /* [n] */
    float *u;               /* [n]: of the columns that have codes */
    float scales[LONGEST_BLOCK / SMALL_GROUP];
    int8_t codes[LONGEST_BLOCK];
};

/* As quant_codes rounds, but for the last bit of the product. */
static int8_t nearest_code(float value, float scale)
{
    const float whole = 0x1.8p23f, code = value * (scale == 0 ? 0 : 1 / scale) + whole - whole;
    return (int8_t)(code > -8 ? code < 7 ? code : 7 : -8);
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
    float wanted[LONGEST_ALONE], scale;
    for (size_t i = 0; i < r->group; i++)
        wanted[i] = r->x[first + i] + r->u[first + i] / r->v[(first + i) * (r->stride + 1)];
    r->kernels->quant_scales(&scale, wanted, r->weights + first, r->group, r->group, tries);
    r->scales[first / r->group] = scale;
    for (size_t k = first; k < first + r->group; k++) {
        r->codes[k] = nearest_code(r->x[k] + r->u[k] / r->v[k * (r->stride + 1)], scale);
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
        const int8_t code = nearest_code(now + pull, scale);
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

static void pack_codes(const int8_t *codes, size_t n, unsigned char *out)
{
    for (size_t k = 0; k < n; k += 2)
        out[k / 2] = (unsigned char)((codes[k] + 8) | (codes[k + 1] + 8) << 4);
}

/* A row in groups of n columns, block by block. */
static void round_row(const struct kernels *kernels, const struct quantize_source *from, size_t n,
                      const float *x, const struct room *room, unsigned char *codes,
                      unsigned char *scales)
{
    const size_t n_in = from->n_in, block = quantize_block(n_in);
    for (size_t k = 0; k < n_in; k += block) {
        struct rounding r = {.kernels = kernels,
                             .v = from->factors + k * block,
                             .n = n_in - k < block ? n_in - k : block,
                             .stride = block,
                             .group = n,
                             .squares = room->squares + k,
                             .weights = room->weights + k,
                             .x = x + k,
                             .u = room->u + k};
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
                         const struct quantized *to, size_t r, const float *x,
                         const struct room *room)
{
    const enum quant_type type = to->format.type;
    const size_t n_in = from->n_in, n_groups = (size_t)to->scales.shape[1], n = n_in / n_groups;
    const size_t row_bytes = (size_t)to->codes.shape[1] * dtype_size(to->codes.dtype);
    unsigned char *const codes = (unsigned char *)(uintptr_t)to->codes.data + r * row_bytes;
    unsigned char *const scales = (unsigned char *)(uintptr_t)to->scales.data + 2 * r * n_groups;
    if (type == QUANT_PACKED4 && from->factors) {
        round_row(kernels, from, n, x, room, codes, scales);
    } else if (type == QUANT_PACKED4) {
        kernels->quant_scales(room->scales, x, room->weights, n_in, n, tries);
        kernels->quant_codes(codes, x, room->scales, n_in, n);
        for (size_t g = 0; g < n_groups; g++)
            write_scale(scales + 2 * g, room->scales[g]);
    } else {
        write_scale(scales, kernels->quant_row((int8_t *)codes, x, n_in));
        for (size_t k = 0; type == QUANT_PACKED8 && k < row_bytes; k++)
            codes[k] = k < n_in ? codes[k] ^ 0x80 : 0; /* an offset of 128 */
    }
}

/* For all rows alike. What the first columns of a block do is made good by the others, and so costs
 * but the square of the diagonal. */
static void weigh_columns(const struct quantize_source *from, const struct quantized *to,
                          const struct room *room)
{
    const size_t n = from->n_in / (size_t)to->scales.shape[1], block = quantize_block(from->n_in);
    for (size_t k = 0; from->factors && k < from->n_in; k++) {
        const float diagonal = from->factors[k * block + k % block];
        room->u[k] = diagonal * diagonal;
    }
    for (size_t k = 0; to->format.type == QUANT_PACKED4 && k < from->n_in; k += n)
        weigh_group(from->factors      ? room->u + k
                    : from->importance ? from->importance + k
                                       : NULL,
                    n, room->weights + k);
}

void quantize_rows(const struct kernels *kernels, const struct quantize_source *from,
                   const struct quantized *to, size_t begin, size_t end, float *scratch)
{
    const struct room room = share_out(from, scratch);
    assert(!from->factors || !from->transposed);
    if (from->factors)
        measure_factors(from, room.squares);
    weigh_columns(from, to, &room);
    for (size_t r = begin, n; r < end; r += n) {
        const size_t left = from->n_out - r % from->n_out; /* a strip stays within its matrix */
        n = from->transposed ? STRIP : 1;
        n = n < left ? n : left;
        n = n < end - r ? n : end - r;
        if (from->transposed)
            read_strip(kernels, from, r, n, room.rows);
        else
            read_row(kernels, from, r, room.rows);
        for (size_t i = 0; i < n; i++)
            quantize_row(kernels, from, to, r + i, room.rows + i * from->n_in, &room);
    }
}
