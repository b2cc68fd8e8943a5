/*
 * Splits products over the workers, by outputs, chooses the form of x that suits the weights (f32,
 * bf16 or int8), and hands each part to the kernel of its dtype, or to quant_apply.c. Sums are
 * never split, but for the two fixed halves of long transposed matrices, so no result depends on
 * the number of workers. Owns nothing: weights are views into the checkpoint, x and its room the
 * caller's.
 */
#include "core/linear.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <string.h>

_Static_assert((int)DTYPE_F32 == WEIGHT_F32 && (int)DTYPE_F16 == WEIGHT_F16 &&
                   (int)DTYPE_BF16 == WEIGHT_BF16,
               "kernels index their tables by dtype");

double linear_row_bytes(const struct linear *l)
{
    return l->quant ? quant_row_bytes(l->quant) : (double)l->n_in * (double)dtype_size(l->dtype);
}

bool linear_supports(enum dtype dtype)
{
    return (int)dtype < N_WEIGHT_TYPES;
}

void linear_share(const struct worker *w, int n_out, size_t *begin, size_t *end)
{
    worker_share(w, (size_t)n_out, LINEAR_GRAIN, begin, end);
}

bool linear_shares_parts(const struct worker *w, int n_out, int n_parts)
{
    assert(n_out % n_parts == 0);
    return w->n_workers == 1 ||
           (n_parts % w->n_workers == 0 && n_out % (LINEAR_GRAIN * w->n_workers) == 0);
}

/* What all blocks of outputs of one product share. */
struct product {
    const struct kernels *kernels;
    const struct linear *l;
    const struct operand *x;
    enum operand_form form;
    float *y; /* of output `first` */
    size_t first;
    size_t y_stride;
    size_t k; /* sums are over [k, k + n_k) */
    size_t n_k;
    size_t n_first; /* where both sums are made at once: inputs that the first covers; else 0 */
    bool add;
};

/*
 * How many inputs the first of an output's two partial sums covers. A long transposed matrix that
 * is not quantised is always summed in two halves of n_in, whatever the number of threads, so that
 * two workers can each stream half of the rows: reading a column slice of every row reaches half
 * the bandwidth. All others have one sum, of n_in.
 */
static size_t first_sum(const struct linear *l)
{
    enum { LEAST = 512, GRAIN_K = 64 };
    const size_t n_in = (size_t)l->n_in;
    return l->transposed && !l->quant && n_in >= LEAST ? n_in / 2 / GRAIN_K * GRAIN_K : n_in;
}

/* The form of x that suits a matrix best. */
static struct operand_kind best_kind(const struct kernels *kernels, const struct linear *l)
{
    const size_t group = l->quant && !l->transposed ? quant_i8_group(l->quant) : 0;
    if (group)
        return (struct operand_kind){quant_is_split(l->quant) ? OPERAND_I8_SPLIT : OPERAND_I8,
                                     group, l->quant->order};
    const bool is_bf16 = l->quant ? !l->transposed && quant_meets_bf16(kernels, l->quant)
                                  : l->dtype == DTYPE_BF16 && kernels->linear_rows_bf16;
    if (is_bf16) {
        const bool quads = l->transposed && kernels->to_quads;
        return (struct operand_kind){.form = OPERAND_BF16, .n_first = quads ? first_sum(l) : 0};
    }
    return (struct operand_kind){.form = OPERAND_F32};
}

static void set_rounded(const struct product *p, struct linear_args *args)
{
    args->x = p->x->made + 2 * p->k;
    args->x_stride = p->x->room->row_bytes / 2;
}

static void apply_stored(const struct product *p, struct linear_args *args, size_t row)
{
    const struct linear *const l = p->l;
    const size_t first = l->transposed ? row + p->k * l->stride : row * l->stride + p->k;
    args->w = (const unsigned char *)l->w + first * dtype_size(l->dtype);
    args->w_stride = l->stride;
    if (p->form == OPERAND_BF16) {
        set_rounded(p, args);
        (l->transposed ? p->kernels->linear_cols_bf16 : p->kernels->linear_rows_bf16)(args);
    } else {
        (l->transposed ? p->kernels->linear_cols : p->kernels->linear_rows)[l->dtype](args);
    }
}

static void apply_codes(const struct product *p, struct linear_args *args, size_t row)
{
    const size_t first = p->l->quant_first + row;
    if (p->form == OPERAND_BF16) {
        set_rounded(p, args);
        quant_apply_bf16(p->kernels, p->l->quant, first, args);
    } else {
        quant_apply(p->kernels, p->l->quant, first, args);
    }
}

static void apply_i8(const struct product *p, const struct linear_args *args, size_t row)
{
    quant_apply_i8(p->kernels, p->l->quant, p->l->quant_first + row,
                   &(struct linear_i8_args){.y = args->y,
                                            .y_stride = args->y_stride,
                                            .x = p->x->made,
                                            .x_stride = p->x->room->row_bytes,
                                            .x_group = p->x->kind.group,
                                            .n_x = args->n_x,
                                            .n_k = args->n_k,
                                            .n_w = args->n_w,
                                            .bias = args->bias,
                                            .scale = args->scale,
                                            .add = args->add});
}

/* The outputs [begin, end), which lie in one block. */
static void apply_block(const struct product *p, size_t begin, size_t end)
{
    const struct linear *const l = p->l;
    const size_t block = (size_t)l->block;
    const size_t row = begin / block * (size_t)l->block_stride + begin % block;
    struct linear_args args = {
        .y = p->y + (begin - p->first),
        .y_stride = p->y_stride,
        .x = p->x->x + p->k,
        .x_stride = p->x->x_stride,
        .n_x = p->x->n,
        .n_w = end - begin,
        .n_k = p->n_k,
        .bias = l->bias && p->k == 0 ? l->bias + begin : NULL,
        .scale = l->scale,
        .add = p->add,
        .n_first = p->n_first,
    };
    if (p->form == OPERAND_I8 || p->form == OPERAND_I8_SPLIT)
        apply_i8(p, &args, row);
    else if (l->quant && l->transposed)
        quant_apply_transposed(p->kernels, l->quant, l->quant_first, row, &args);
    else if (l->quant)
        apply_codes(p, &args, row);
    else
        apply_stored(p, &args, row);
}

/* The outputs [begin, end), block by block. */
static void apply_range(const struct product *p, size_t begin, size_t end)
{
    const struct linear *const l = p->l;
    assert((l->quant || linear_supports(l->dtype)) && l->block > 0);
    while (begin < end) {
        const size_t block_end = (begin / (size_t)l->block + 1) * (size_t)l->block;
        const size_t stop = min_size(block_end, end);
        apply_block(p, begin, stop);
        begin = stop;
    }
}

static void to_second_sum(struct product *p)
{
    p->k = p->n_k;
    p->n_k = (size_t)p->l->n_in - p->k;
}

/* Both sums of the outputs [begin, end): at once where kernels can. */
static void apply_sums(struct product *p, size_t begin, size_t end)
{
    const size_t n_in = (size_t)p->l->n_in;
    if (p->form == OPERAND_BF16 && p->n_k < n_in) {
        p->n_first = p->n_k;
        p->n_k = n_in;
    }
    apply_range(p, begin, end);
    to_second_sum(p);
    p->add = true;
    if (p->n_k > 0)
        apply_range(p, begin, end);
}

enum operand_form linear_form(const struct kernels *kernels, const struct linear *l)
{
    return best_kind(kernels, l).form;
}

void linear_prepare(struct worker *w, const struct linear *l, struct operand *x)
{
    const struct operand_kind kind = best_kind(w->kernels, l);
    if (kind.form != OPERAND_F32)
        operand_make(w, x, &kind);
}

/* A product that makes the first sums of all outputs, with x already in its form. */
static struct product product_of(struct worker *w, const struct linear *l, struct operand *x,
                                 float *y, size_t y_stride, enum linear_store store)
{
    struct operand_kind kind = best_kind(w->kernels, l);
    if (kind.form != OPERAND_F32 && !operand_make(w, x, &kind))
        kind.form = OPERAND_F32;
    assert(x->n_k == (size_t)l->n_in);
    return (struct product){.kernels = w->kernels,
                            .l = l,
                            .x = x,
                            .form = kind.form,
                            .y = y,
                            .y_stride = y_stride,
                            .n_k = first_sum(l),
                            .add = store == LINEAR_ADD};
}

/* Whether l has two sums, and x so few rows that reading the weights takes longest and n_sums
 * floats for each row fit the room. */
static bool fits_sums(const struct linear *l, const struct operand *x, size_t n_sums)
{
    return first_sum(l) < (size_t)l->n_in && x->room && x->n * n_sums <= x->room->n_sums;
}

/* Double buffer for partial sums, chosen by the parity of the barrier count. apply_both ends with a
 * barrier, so the next product writes the other half while slow workers still read this one, and
 * nobody can be two products ahead. Call it behind product_of, which may sync too. */
static float *room_for_sums(const struct worker *w, const struct operand *x)
{
    return x->room->sums + worker_phase(w) % 2 * x->room->n_sums;
}

/* All first and all second sums, shared out as one list; the second ones go to second [x->n,
 * n_out]. Ends with a sync, so that every worker may read them. */
static void apply_both(struct worker *w, struct product *p, float *second)
{
    const size_t n_out = (size_t)p->l->n_out, n = round_up(n_out, LINEAR_GRAIN);
    size_t begin, end;
    worker_share(w, 2 * n, LINEAR_GRAIN, &begin, &end);
    apply_range(p, begin, min_size(end, n_out));
    to_second_sum(p);
    p->y = second;
    p->y_stride = n_out;
    p->add = false;
    if (end > n)
        apply_range(p, begin > n ? begin - n : 0, min_size(end - n, n_out));
    worker_sync(w);
}

static void apply_shared(struct worker *w, const struct linear *l, struct operand *x, float *y,
                         size_t y_stride, enum linear_store store)
{
    struct product p = product_of(w, l, x, y, y_stride, store);
    const size_t n_out = (size_t)l->n_out;
    float *const sums = room_for_sums(w, x);
    size_t begin, end;
    apply_both(w, &p, sums);
    worker_share(w, n_out, LINEAR_GRAIN, &begin, &end);
    for (size_t i = 0; i < x->n; i++)
        w->kernels->add(y + i * y_stride + begin, sums + i * n_out + begin, end - begin);
}

bool linear_shares_sums(const struct worker *w, const struct linear *l, const struct operand *x)
{
    return w->n_workers > 1 && fits_sums(l, x, (size_t)l->n_out);
}

void linear_apply(struct worker *w, const struct linear *l, struct operand *x, float *y,
                  size_t y_stride)
{
    if (linear_shares_sums(w, l, x)) {
        apply_shared(w, l, x, y, y_stride, LINEAR_SET);
        return;
    }
    size_t begin, end;
    linear_share(w, l->n_out, &begin, &end);
    linear_apply_part(w, l, x, begin, end, y + begin, y_stride, LINEAR_SET);
}

struct deal linear_deal(const struct worker *w, const struct linear *l, size_t n)
{
    enum { LONG = 1 << 20 }; /* bytes of weights for each worker, 20 microseconds or more */
    const size_t n_out = (size_t)l->n_out;
    const double bytes = (double)(n * n_out) * linear_row_bytes(l);
    return deal_begin(w, n == 1 ? n_out : n * round_up(n_out, LINEAR_GRAIN), LINEAR_GRAIN,
                      bytes >= (double)LONG * w->n_workers);
}

void linear_apply_dealt(struct worker *w, const struct linear *l, struct operand *x, float *y,
                        size_t y_stride, enum linear_store store)
{
    size_t begin, end;
    if (linear_shares_sums(w, l, x)) {
        apply_shared(w, l, x, y, y_stride, store);
        worker_sync(w);
        return;
    }
    linear_prepare(w, l, x);
    struct deal d = linear_deal(w, l, 1);
    while (deal_next(w, &d, &begin, &end))
        linear_apply_part(w, l, x, begin, end, y + begin, y_stride, store);
}

/* Whether they are stored transposed, side by side in the rows of one matrix. */
static bool lie_together(const struct linear *const *all, int n)
{
    const struct linear *const first = all[0];
    size_t at = 0;
    for (int i = 0; i < n; at += (size_t)all[i++]->n_out) {
        const struct linear *const l = all[i];
        if (l->quant || !l->transposed || l->dtype != first->dtype || l->stride != first->stride ||
            l->n_in != first->n_in || l->block != l->n_out || l->scale != first->scale ||
            l->w != (const unsigned char *)first->w + at * dtype_size(l->dtype) ||
            l->bias != (first->bias ? first->bias + at : NULL))
            return false;
    }
    return true;
}

/* As one product, whose sums are all kept in the room until they are added. */
static void apply_together(struct worker *w, const struct linear *const *all, int n,
                           const struct linear *whole, struct operand *x, float *const *y)
{
    const size_t stride = (size_t)whole->n_out;
    struct product p = product_of(w, whole, x, NULL, stride, LINEAR_SET);
    const float *first = p.y = room_for_sums(w, x);
    const float *second = first + x->n * stride;
    apply_both(w, &p, p.y + x->n * stride);
    for (int i = 0; i < n; i++) {
        const size_t n_out = (size_t)all[i]->n_out;
        size_t begin, end;
        worker_share(w, n_out, LINEAR_GRAIN, &begin, &end);
        for (size_t r = 0; r < x->n; r++) {
            float *const row = y[i] + r * n_out + begin;
            memcpy(row, first + r * stride + begin, (end - begin) * sizeof *row);
            w->kernels->add(row, second + r * stride + begin, end - begin);
        }
        first += n_out;
        second += n_out;
    }
}

void linear_apply_all(struct worker *w, const struct linear *const *all, int n, struct operand *x,
                      float *const *y)
{
    struct linear whole = *all[0];
    for (int i = 1; i < n; i++)
        whole.n_out += all[i]->n_out;
    whole.block = whole.n_out;
    if (n > 1 && lie_together(all, n) && fits_sums(&whole, x, 2 * (size_t)whole.n_out)) {
        apply_together(w, all, n, &whole, x, y);
        return;
    }
    for (int i = 0; i < n; i++)
        linear_apply(w, all[i], x, y[i], (size_t)all[i]->n_out);
}

void linear_apply_part(struct worker *w, const struct linear *l, struct operand *x, size_t begin,
                       size_t end, float *y, size_t y_stride, enum linear_store store)
{
    struct product p = product_of(w, l, x, y, y_stride, store);
    p.first = begin;
    apply_sums(&p, begin, end);
}

void linear_apply_alone(const struct kernels *kernels, const struct linear *l, const float *x,
                        size_t x_stride, size_t n, float *y, size_t y_stride)
{
    const struct operand rows = operand_rows(x, x_stride, n, (size_t)l->n_in, NULL);
    struct product p = {.kernels = kernels,
                        .l = l,
                        .x = &rows,
                        .form = OPERAND_F32,
                        .y = y,
                        .y_stride = y_stride,
                        .n_k = first_sum(l)};
    apply_sums(&p, 0, (size_t)l->n_out);
}

void linear_row(const struct kernels *kernels, const struct linear *l, int row, float *out)
{
    assert(!l->transposed && l->block == l->n_out && row >= 0 && row < l->n_out);
    if (l->quant) {
        quant_row(kernels, l->quant, l->quant_first + (size_t)row, out);
        return;
    }
    const size_t offset = (size_t)row * l->stride * dtype_size(l->dtype);
    kernels->to_f32[l->dtype](out, (const unsigned char *)l->w + offset, (size_t)l->n_in);
}
