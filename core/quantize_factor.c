/*
 * Codes in 4 bits where factors are given, as quantize.h tells; the factors too.
 *
 * With off(k) = x[k] - scale * code(k) and the sums h + damping = l^T l, the error of a row's
 * products within a block is off^T h off, the sum over j of u(j)^2 with u(j) = the sum over k <= j
 * of l(j, k) * off(k). The first codes are each the best in its turn, for u(k), as all u behind it
 * can still be made zero. Then, group by group and round by round, the scale and each code become
 * the best while all others are what they are; that is told by pull = -dE/d(off) / 2 = h off.
 *
 * LANES rows go side by side, one to a lane: what a group of columns does to others is one product
 * of matrices, and what columns of a group do to each other a small one every STEP of them.
 */
#include "core/quantize_parts.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { LANES = 64, STEP = 8, SMALLEST_GROUP = 8, N_ROUNDS = 3, FACTOR_ROWS = 16 };

/* ---- factors --------------------------------------------------------------------------------- */

/* The lower triangle of n rows of l from k on, [n, QUANTIZE_BLOCK], where the rows behind them have
 * been taken off already. */
static void factor_rows(float (*rows)[QUANTIZE_BLOCK], size_t k, size_t n, double damping)
{
    for (size_t i = n; i-- > 0;) {
        float *const row = rows[i];
        const double square = (double)row[k + i] + damping;
        const float diagonal = (float)sqrt(fmax(square, damping)); /* in exact sums never below */
        for (size_t j = 0; j < k + i; j++)
            row[j] /= diagonal;
        row[k + i] = diagonal;
        for (size_t above = 0; above < i; above++)
            for (size_t j = 0; j <= k + above; j++)
                rows[above][j] -= row[k + above] * row[j];
    }
}

/* Cholesky's decomposition from the last rows to the first. */
void quantize_factor(const struct kernels *kernels, float *h, size_t n, size_t stride)
{
    float rows[FACTOR_ROWS][QUANTIZE_BLOCK], behind[FACTOR_ROWS][QUANTIZE_BLOCK];
    double trace = 0;
    assert(n <= QUANTIZE_BLOCK);
    for (size_t i = 0; i < n; i++) {
        trace += (double)h[i * stride + i];
        for (size_t j = 0; j < i; j++)
            h[j * stride + i] = h[i * stride + j];
    }
    const double damping = trace > 0 ? 0.01 * trace / (double)n : 1;
    for (size_t end = n, k; end > 0; end = k) {
        k = end > FACTOR_ROWS ? end - FACTOR_ROWS : 0;
        for (size_t i = 0; i < end - k; i++) {
            memcpy(rows[i], h + (k + i) * stride, end * sizeof *h);
            for (size_t j = end; j < n; j++)
                behind[i][j - end] = h[j * stride + k + i];
        }
        kernels->linear_cols[WEIGHT_F32](&(struct linear_args){.y = rows[0],
                                                               .y_stride = QUANTIZE_BLOCK,
                                                               .x = behind[0],
                                                               .x_stride = QUANTIZE_BLOCK,
                                                               .n_x = end - k,
                                                               .w = h + end * stride,
                                                               .w_stride = stride,
                                                               .n_w = end,
                                                               .n_k = n - end,
                                                               .scale = -1,
                                                               .add = true});
        factor_rows(rows, k, end - k, damping);
        for (size_t i = 0; i < end - k; i++)
            memcpy(h + (k + i) * stride, rows[i], (k + i + 1) * sizeof *h);
    }
}

/* ---- blocks of columns, LANES rows of them --------------------------------------------------- */

struct lanes {
    float v[LANES];
};

struct work {
    const struct kernels *kernels;
    const int16_t *tries;
    size_t n, group, n_groups; /* columns of the block, and of a group in it */
    const float *l;            /* [n, stride] */
    size_t stride;
    float h[QUANTIZE_BLOCK * QUANTIZE_BLOCK];                   /* [n, n], with the damping */
    float l_inverse[QUANTIZE_BLOCK], h_inverse[QUANTIZE_BLOCK]; /* of the diagonals */
    int16_t weights[QUANTIZE_BLOCK];                            /* for the first scales */

    uint16_t h_bf16[QUANTIZE_BLOCK * QUANTIZE_BLOCK]; /* [n, n up to a multiple of 32] */
    uint16_t off_bf16[QUANTIZE_BLOCK * LANES];        /* of columns that have codes */
    struct lanes off[QUANTIZE_BLOCK];                 /* x, for columns that have no codes yet */
    struct lanes codes[QUANTIZE_BLOCK];
    struct lanes scales[QUANTIZE_BLOCK / SMALLEST_GROUP];
    struct lanes now[QUANT_GROUP], pull[QUANT_GROUP], by[QUANT_GROUP]; /* of a group */
};

size_t quantize_factor_scratch(void)
{
    return (sizeof(struct work) + sizeof(float) - 1) / sizeof(float);
}

/* y [n_x, LANES] (= or +=) x [n_x, n_k] times w [n_k, LANES]. */
static void product(const struct work *work, struct lanes *y, const float *x, size_t stride,
                    size_t n_x, const struct lanes *w, size_t n_k, bool add)
{
    work->kernels->linear_cols[WEIGHT_F32](&(struct linear_args){.y = y->v,
                                                                 .y_stride = LANES,
                                                                 .x = x,
                                                                 .x_stride = stride,
                                                                 .n_x = n_x,
                                                                 .w = w->v,
                                                                 .w_stride = LANES,
                                                                 .n_w = LANES,
                                                                 .n_k = n_k,
                                                                 .scale = 1,
                                                                 .add = add});
}

static void add_times(struct lanes *restrict y, float a, const struct lanes *restrict x)
{
    for (size_t r = 0; r < LANES; r++)
        y->v[r] += a * x->v[r];
}

/* y += a * b, each lane for itself. */
static void add_product(struct lanes *restrict y, const struct lanes *restrict a,
                        const struct lanes *restrict b)
{
    for (size_t r = 0; r < LANES; r++)
        y->v[r] += a->v[r] * b->v[r];
}

/* The code nearest to now + pull * inverse, as quant_codes rounds but for the last bit of the
 * product; and what is left of `now`. */
static void choose(struct lanes *restrict code, struct lanes *restrict by,
                   const struct lanes *restrict now, const struct lanes *restrict pull,
                   float inverse, const struct lanes *restrict scale,
                   const struct lanes *restrict scale_inverse)
{
    const float whole = 0x1.8p23f;
    for (size_t r = 0; r < LANES; r++) {
        const float value = now->v[r] + pull->v[r] * inverse;
        float nearest = value * scale_inverse->v[r] + whole - whole;
        nearest = nearest > -8 ? nearest : -8;
        nearest = nearest < 7 ? nearest : 7;
        code->v[r] = nearest;
        by->v[r] = now->v[r] - scale->v[r] * nearest;
    }
}

/* Codes for a group, each seeing by its pull what those before it have done. m: the group's square
 * of l or h, whose diagonal's inverse is given; by: what off changes by. */
static void choose_group(struct work *work, size_t g, const float *m, size_t stride,
                         const float *inverse, struct lanes *by)
{
    const size_t first = g * work->group;
    struct lanes *const codes = work->codes + first, *const pull = work->pull;
    const struct lanes *const scale = &work->scales[g];
    struct lanes scale_inverse;
    for (size_t r = 0; r < LANES; r++)
        scale_inverse.v[r] = scale->v[r] == 0 ? 0 : 1 / scale->v[r];
    for (size_t step = 0; step < work->group; step += STEP) {
        const size_t end = step + STEP;
        for (size_t k = step; k < end; k++) {
            choose(&codes[k], &by[k], &work->now[k], &pull[k], inverse[first + k], scale,
                   &scale_inverse);
            for (size_t j = k + 1; j < end; j++)
                add_times(&pull[j], m[j * stride + k], &by[k]);
        }
        if (end < work->group)
            product(work, pull + end, m + end * stride + step, stride, work->group - end, by + step,
                    STEP, true);
    }
}

/* What a group has become is rounded for find_pull. */
static void keep_off(struct work *work, size_t first)
{
    if (work->kernels->linear_cols_bf16)
        work->kernels->to_bf16(work->off_bf16 + first * LANES, work->off[first].v,
                               work->group * LANES);
}

/* And so is a row of h, in the order that linear_cols_bf16 wants. */
static void keep_h(struct work *work, size_t i)
{
    const struct kernels *const kernels = work->kernels;
    const size_t n = work->n;
    (kernels->to_quads ? kernels->to_quads : kernels->to_bf16)(work->h_bf16 + i * round_up(n, 32),
                                                               work->h + i * n, n);
}

static void begin_group(struct work *work, size_t g)
{
    const size_t n = work->group, first = g * n, stride = work->stride;
    product(work, work->pull, work->l + first * stride, stride, n, work->off, first, false);
    for (size_t r = 0; r < LANES; r++) {
        float wanted[QUANT_GROUP];
        for (size_t k = 0; k < n; k++)
            wanted[k] = work->off[first + k].v[r] + work->pull[k].v[r] * work->l_inverse[first + k];
        work->kernels->quant_scales(&work->scales[g].v[r], wanted, work->weights + first, n, n,
                                    work->tries);
    }
    memcpy(work->now, work->off + first, n * sizeof *work->now);
    choose_group(work, g, work->l + first * (stride + 1), stride, work->l_inverse,
                 work->off + first);
    keep_off(work, first);
}

/* The best scales for a group's codes while all other groups stay as they are; returns lane by lane
 * what they fall by. along: the group's square of h times the codes. */
static struct lanes refit_scales(struct work *work, size_t g, const struct lanes *along)
{
    struct lanes *const scales = &work->scales[g];
    const struct lanes *const codes = work->codes + g * work->group;
    struct lanes squares = {{0}}, dots = {{0}}, fall = {{0}};
    float best[LANES];
    uint16_t rounded[LANES];
    for (size_t k = 0; k < work->group; k++) {
        add_product(&squares, &codes[k], &along[k]);
        add_product(&dots, &codes[k], &work->pull[k]);
    }
    for (size_t r = 0; r < LANES; r++)
        best[r] = scales->v[r] + dots.v[r] / squares.v[r];
    work->kernels->to_bf16(rounded, best, LANES);
    for (size_t r = 0; r < LANES; r++) {
        const uint32_t bits = (uint32_t)rounded[r] << 16;
        float scale;
        memcpy(&scale, &bits, sizeof scale);
        if (squares.v[r] > 0 && isnormal(scale)) {
            fall.v[r] = scales->v[r] - scale;
            scales->v[r] = scale;
        }
    }
    return fall;
}

/* pull for a group, from all columns. It only has to tell which codes are nearest, so pairs of bf16
 * will do where these are multiplied fast. */
static void find_pull(struct work *work, size_t first)
{
    if (!work->kernels->linear_cols_bf16) {
        product(work, work->pull, work->h + first * work->n, work->n, work->group, work->off,
                work->n, false);
        return;
    }
    const size_t stride = round_up(work->n, 32);
    work->kernels->linear_cols_bf16(&(struct linear_args){.y = work->pull->v,
                                                          .y_stride = LANES,
                                                          .x = work->h_bf16 + first * stride,
                                                          .x_stride = stride,
                                                          .n_x = work->group,
                                                          .w = work->off_bf16,
                                                          .w_stride = LANES,
                                                          .n_w = LANES,
                                                          .n_k = work->n,
                                                          .scale = 1});
}

/* The scales of a group anew, then each of its codes. */
static void improve_group(struct work *work, size_t g)
{
    const size_t n = work->group, first = g * n;
    const float *const square = work->h + first * (work->n + 1);
    struct lanes *const along = work->by;
    find_pull(work, first);
    product(work, along, square, work->n, n, work->codes + first, n, false);
    const struct lanes fall = refit_scales(work, g, along);
    memset(work->now, 0, n * sizeof *work->now);
    for (size_t k = 0; k < n; k++) {
        add_product(&work->off[first + k], &fall, &work->codes[first + k]);
        add_product(&work->pull[k], &fall, &along[k]);
        add_product(&work->now[k], &work->scales[g], &work->codes[first + k]);
    }
    choose_group(work, g, square, work->n, work->h_inverse, work->by);
    for (size_t k = 0; k < n; k++)
        add_times(&work->off[first + k], 1, &work->by[k]);
    keep_off(work, first);
}

/* ---- in and out ------------------------------------------------------------------------------ */

/* What the block of n columns from k on of all rows has in common. */
static void begin_block(struct work *work, const struct quantize_source *from, size_t k, size_t n)
{
    double squares[QUANTIZE_BLOCK] = {0};
    float cost[QUANTIZE_BLOCK];
    work->n = n;
    work->n_groups = n / work->group;
    work->stride = quantize_block(from->n_in);
    work->l = from->factors + k * work->stride;
    for (size_t i = 0; i < n; i++) {
        const float *const row = work->l + i * work->stride;
        for (size_t j = 0; j <= i; j++)
            squares[j] += (double)row[j] * (double)row[j];
        for (size_t j = i + 1; j < n; j++)
            work->h[i * n + j] = work->h[j * n + i] = row[j];
        cost[i] = row[i] * row[i];
        work->l_inverse[i] = 1 / row[i];
    }
    for (size_t i = 0; i < n; i++) {
        work->h[i * (n + 1)] = (float)squares[i];
        work->h_inverse[i] = (float)(1 / squares[i]);
        keep_h(work, i);
    }
    for (size_t g = 0; g < work->n_groups; g++)
        quantize_weigh_group(cost + g * work->group, work->group, work->weights + g * work->group);
}

/* Columns from k on of n rows from r on. Lanes without a row are zero. */
static void read_lanes(struct work *work, const struct quantize_source *from, size_t k, size_t r,
                       size_t n)
{
    const size_t size = dtype_size(from->dtype);
    float values[QUANTIZE_BLOCK];
    if (n < LANES)
        memset(work->off, 0, work->n * sizeof *work->off);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *const row =
            (const unsigned char *)from->data + ((r + i) * from->n_in + k) * size;
        work->kernels->to_f32[from->dtype](values, row, work->n);
        for (size_t j = 0; j < work->n; j++)
            work->off[j].v[i] = values[j];
    }
}

/* False where a weight is not finite. */
static bool write_lanes(const struct work *work, const struct quantized *to, size_t k, size_t r,
                        size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        unsigned char *const codes = quantize_row_at(&to->codes, r + i) + k / 2;
        unsigned char *const scales = quantize_row_at(&to->scales, r + i) + 2 * (k / work->group);
        for (size_t j = 0; j < work->n; j += 2)
            codes[j / 2] = (unsigned char)(((int)work->codes[j].v[i] + 8) |
                                           ((int)work->codes[j + 1].v[i] + 8) << 4);
        for (size_t j = 0; j < work->n_groups; j++)
            finite &= quantize_write_scale(work->kernels, to->scales.dtype, scales + 2 * j,
                                           work->scales[j].v[i]);
    }
    return finite;
}

bool quantize_factor_rows(const struct kernels *kernels, const struct quantize_source *from,
                          const struct quantized *to, size_t begin, size_t end,
                          const int16_t *tries, float *scratch)
{
    struct work *const work = (struct work *)scratch;
    const size_t n_in = from->n_in, block = quantize_block(n_in);
    bool finite = true;
    work->kernels = kernels;
    work->tries = tries;
    work->group = n_in / (size_t)to->scales.shape[1];
    assert(work->group > 0 && work->group % STEP == 0 && !from->transposed);
    for (size_t k = 0; k < n_in; k += block) {
        begin_block(work, from, k, min_size(n_in - k, block));
        for (size_t r = begin; r < end; r += LANES) {
            const size_t n = min_size(end - r, LANES);
            read_lanes(work, from, k, r, n);
            for (size_t g = 0; g < work->n_groups; g++)
                begin_group(work, g);
            for (int i = 0; i < N_ROUNDS; i++)
                for (size_t g = 0; g < work->n_groups; g++)
                    improve_group(work, g);
            finite &= write_lanes(work, to, k, r, n);
        }
    }
    return finite;
}
