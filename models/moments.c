/*
 * Accumulates X^T X of the inputs of a model's matrices, block by block of columns and only up to
 * the diagonal, then turns each block in place into the factor that core/quantize.h wants. Owns
 * these sums (n_in * block floats an input). Strips of columns are dealt out over the workers, rows
 * are added in order: the sums do not depend on threads. Runs no model and quantises nothing.
 */
#include "models/moments.h"

#include "core/kernels/kernels.h"
#include "core/quantize.h"
#include "models/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { STRIP = 32 }; /* columns whose sums a worker adds to at once */

struct input {
    size_t n_in, block;
    size_t n_rows; /* that have been added */
    float *sums;   /* block by block, each [its columns, block], where not above the diagonal; NULL:
                    * there is no such input */
};

struct moments {
    struct input *inputs; /* [n_inputs]: those of the layers, then the head's */
    size_t n_inputs, n_batch;
    float *columns; /* [the most columns, n_batch]: rows that are being added, turned */
};

static struct input *input_at(const struct moments *m, int layer, enum moments_input input)
{
    return input == MOMENTS_HEAD ? &m->inputs[m->n_inputs - 1]
                                 : &m->inputs[(size_t)layer * MOMENTS_PER_LAYER + input];
}

static bool take(struct input *input, const struct linear *l)
{
    if (l->n_out == 0)
        return true;
    input->n_in = (size_t)l->n_in;
    input->block = quantize_block(input->n_in);
    input->sums = calloc(input->n_in * input->block, sizeof *input->sums);
    return input->sums != NULL;
}

static bool take_all(struct moments *m, const struct weights *weights)
{
    const size_t n_layers = m->n_inputs / MOMENTS_PER_LAYER;
    bool ok = take(input_at(m, 0, MOMENTS_HEAD), &weights->head);
    for (size_t i = 0; ok && i < n_layers; i++) {
        const struct layer_weights *const l = &weights->layers[i];
        ok = take(input_at(m, (int)i, MOMENTS_ATTENTION), &l->query) &&
             take(input_at(m, (int)i, MOMENTS_ATTN_OUTPUT), &l->attention_out) &&
             take(input_at(m, (int)i, MOMENTS_FFN), &l->up) &&
             take(input_at(m, (int)i, MOMENTS_ACTIVATED), &l->down);
    }
    return ok;
}

struct moments *moments_new(const struct model *model, size_t n_batch, struct err *e)
{
    struct moments *const m = calloc(1, sizeof *m);
    size_t widest = 1;
    bool ok = m != NULL;
    if (ok) {
        m->n_batch = n_batch;
        m->n_inputs = (size_t)model->spec.num_hidden_layers * MOMENTS_PER_LAYER + 1;
        m->inputs = calloc(m->n_inputs, sizeof *m->inputs);
        ok = m->inputs && take_all(m, &model->weights);
    }
    for (size_t i = 0; ok && i < m->n_inputs; i++)
        widest = max_size(widest, m->inputs[i].n_in);
    if (ok)
        m->columns = malloc(widest * n_batch * sizeof *m->columns);
    if (ok && m->columns)
        return m;
    err_no_memory(e);
    moments_free(m);
    return NULL;
}

void moments_free(struct moments *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->inputs && i < m->n_inputs; i++)
        free(m->inputs[i].sums);
    free(m->inputs);
    free(m->columns);
    free(m);
}

/* Columns [begin, end) of x, which lie in the block from `first` on, times those from there up to
 * `end`: what is above the diagonal follows from what is below. */
static void add_columns(const struct kernels *kernels, const struct moments *m,
                        const struct input *input, const float *x, size_t n, size_t first,
                        size_t begin, size_t end)
{
    float *const columns = m->columns + begin * m->n_batch;
    for (size_t i = 0; i < n; i++)
        for (size_t k = begin; k < end; k++)
            columns[(k - begin) * m->n_batch + i] = x[i * input->n_in + k];
    kernels->linear_cols[WEIGHT_F32](&(struct linear_args){.y = input->sums + begin * input->block,
                                                           .y_stride = input->block,
                                                           .x = columns,
                                                           .x_stride = m->n_batch,
                                                           .n_x = end - begin,
                                                           .w = x + first,
                                                           .w_stride = input->n_in,
                                                           .n_w = end - first,
                                                           .n_k = n,
                                                           .scale = 1,
                                                           .add = true});
}

void moments_add(const struct worker *w, struct moments *m, int layer, enum moments_input which,
                 const float *x, size_t n)
{
    struct input *const input = input_at(m, layer, which);
    size_t turn = 0, end;
    assert(n <= m->n_batch && input->sums);
    for (size_t begin = 0; begin < input->n_in; begin = end, turn++) {
        const size_t first = begin / input->block * input->block;
        end = min_size(begin + STRIP, min_size(first + input->block, input->n_in));
        if (turn % (size_t)w->n_workers == (size_t)w->index)
            add_columns(w->kernels, m, input, x, n, first, begin, end);
    }
    if (w->index == 0)
        input->n_rows += n;
}

/* Blocks are dealt out over all inputs, because they are of very different size. */
static void factor_run(struct worker *w, void *context)
{
    const struct moments *const m = context;
    size_t turn = 0;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct input *const input = &m->inputs[i];
        for (size_t first = 0; input->n_rows && first < input->n_in; first += input->block) {
            const size_t left = input->n_in - first;
            if (turn++ % (size_t)w->n_workers == (size_t)w->index)
                quantize_factor(w->kernels, input->sums + first * input->block,
                                min_size(left, input->block), input->block);
        }
    }
}

void moments_factor(struct moments *m, struct compute *c)
{
    compute_run(c, factor_run, m);
}

const float *moments_factors(const struct moments *m, enum role role, int layer)
{
    static const struct {
        role_set roles;
        enum moments_input input;
    } readers[] = {{ROLES_QKV, MOMENTS_ATTENTION},
                   {ROLE_BIT(ROLE_ATTENTION_OUT), MOMENTS_ATTN_OUTPUT},
                   {ROLE_BIT(ROLE_GATE) | ROLE_BIT(ROLE_UP), MOMENTS_FFN},
                   {ROLE_BIT(ROLE_DOWN), MOMENTS_ACTIVATED},
                   {ROLE_BIT(ROLE_HEAD), MOMENTS_HEAD}};
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        const struct input *const input = input_at(m, layer, readers[i].input);
        if (readers[i].roles & ROLE_BIT(role))
            return input->n_rows ? input->sums : NULL;
    }
    return NULL;
}
