/*
 * The tensor of a matrix is found by address: every role's matrix is a view into some tensor, so
 * what binding knows of fused and stacked tensors need not be told twice.
 */
#include "models/quantize.h"

#include "core/kernels/kernels.h"
#include "models/internal.h"
#include "models/roles.h"
#include "models/walk.h"
#include "models/weave.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ROWS_PER_SHARE = KERNELS_WOVEN };

/* Stored bytes that a step handles before it returns to the caller: some ten milliseconds. */
static const size_t STEP_BYTES = (size_t)32 << 20;

/* ---- which matrices -------------------------------------------------------------------------- */

static int compare_address(const void *a, const void *b)
{
    const struct tensor *const *x = a;
    const struct tensor *const *y = b;
    const uintptr_t x_data = (uintptr_t)(*x)->data, y_data = (uintptr_t)(*y)->data;
    if (x_data != y_data)
        return x_data < y_data ? -1 : 1;
    return (*x)->n_bytes < (*y)->n_bytes ? -1 : (*x)->n_bytes > (*y)->n_bytes;
}

/* All tensors by address, from the arena; NULL where there is no memory. */
static const struct tensor **sort_tensors(const struct checkpoint *checkpoint, struct arena *arena)
{
    const size_t n = checkpoint_n_tensors(checkpoint);
    const struct tensor **const sorted =
        (const struct tensor **)arena_array(arena, n, sizeof *sorted);
    for (size_t i = 0; sorted && i < n; i++)
        sorted[i] = checkpoint_tensor_at(checkpoint, i);
    if (sorted)
        qsort(sorted, n, sizeof *sorted, compare_address);
    return sorted;
}

static const struct tensor *tensor_of(const struct model *m, const struct tensor *const *by_address,
                                      const struct linear *l)
{
    size_t first = 0, last = checkpoint_n_tensors(m->checkpoint);
    while (first + 1 < last) {
        const size_t middle = first + (last - first) / 2;
        if ((uintptr_t)by_address[middle]->data <= (uintptr_t)l->w)
            first = middle;
        else
            last = middle;
    }
    const struct tensor *const t = by_address[first];
    assert((const unsigned char *)l->w < (const unsigned char *)t->data + t->n_bytes);
    return t;
}

/* The next matrix that is not stored quantised, and its tensor; NULL behind the last. */
static struct linear *next_plain(struct walk *walk, const struct tensor *const *by_address,
                                 const struct tensor **tensor)
{
    struct linear *l;
    while ((l = walk_next(walk)) && l->quant) {
    }
    if (l)
        *tensor = tensor_of(walk->m, by_address, l);
    return l;
}

/* ---- what an error in a column costs --------------------------------------------------------- */

/* The norm whose result a matrix is applied to; NULL where something else lies between. */
static const struct norm *norm_before(const struct model *m, enum role role, int layer)
{
    const struct model_spec *const spec = &m->spec;
    const struct layer_weights *const l = roles_per_layer(role) ? &m->weights.layers[layer] : NULL;
    const bool before = spec->norm_place == NORM_BEFORE || spec->norm_place == NORM_BOTH;
    switch (role) {
    case ROLE_HEAD_DENSE:
        return &m->weights.final_norm;
    case ROLE_HEAD:
        if (spec->embedding_size != spec->hidden_size)
            return NULL;
        return spec->head_transform ? &m->weights.head_norm : &m->weights.final_norm;
    case ROLE_QUERY:
    case ROLE_KEY:
    case ROLE_VALUE:
    case ROLE_QUERY_A:
    case ROLE_KV_A:
        return before ? &l->attention_norm : NULL;
    case ROLE_QUERY_B:
        return spec->mla.q_lora_rank ? &l->query_a_norm : before ? &l->attention_norm : NULL;
    case ROLE_KV_B:
        return &l->kv_a_norm;
    case ROLE_GATE:
    case ROLE_UP:
    case ROLE_SHARED_GATE:
    case ROLE_SHARED_UP:
    case ROLE_EXPERT_GATE:
    case ROLE_EXPERT_UP:
    case ROLE_EXPERT_GATE_UP:
        if (spec->residual == RESIDUAL_PARALLEL_SHARED)
            return &l->attention_norm;
        return before ? &l->ffn_norm : NULL;
    default:
        return NULL;
    }
}

/* The mean square of what comes out of the norm before, column by column. NULL where all columns
 * are alike or nothing is known. */
static bool find_importance(const struct model *m, enum role role, int layer, int n_in,
                            struct arena *arena, const float **out, struct err *e)
{
    const struct norm *const norm = norm_before(m, role, layer);
    *out = NULL;
    if (!norm || !norm->weight || norm->n != n_in || m->spec.norm_plain)
        return true;
    float *const importance = arena_array(arena, (size_t)n_in, sizeof *importance);
    if (!importance)
        return err_no_memory(e);
    for (int k = 0; k < n_in; k++) {
        const float weight = norm->weight[k], bias = norm->bias ? norm->bias[k] : 0;
        importance[k] = weight * weight + bias * bias;
    }
    *out = importance;
    return true;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static struct quantize_source source_of(const struct tensor *t, const struct linear *l)
{
    const size_t rows = (size_t)t->shape[t->n_dims - 2], columns = (size_t)t->shape[t->n_dims - 1];
    struct quantize_source from = {.data = t->data,
                                   .dtype = t->dtype,
                                   .n_matrices = (size_t)tensor_count(t) / (rows * columns),
                                   .n_out = l->transposed ? columns : rows,
                                   .n_in = l->transposed ? rows : columns,
                                   .transposed = l->transposed};
    assert(from.n_in == (size_t)l->n_in);
    return from;
}

/* Where the first output of l lies among the rows of its quantised tensor. */
static size_t first_row(const struct quantize_source *from, const struct linear *l)
{
    const size_t bytes = (size_t)((const unsigned char *)l->w - (const unsigned char *)from->data);
    const size_t at = bytes / dtype_size(from->dtype), whole = from->n_out * from->n_in;
    return from->transposed ? at / whole * from->n_out + at % from->n_out : at / from->n_in;
}

static bool add_matrix(const struct walk *walk, const struct tensor *tensor, const struct linear *l,
                       enum quantize_form form, struct arena *arena, struct quantize_plan *plan,
                       struct err *e)
{
    struct quantize_matrix *const matrix = &plan->matrices[plan->n];
    *matrix = (struct quantize_matrix){.role = walk->found_role,
                                       .layer = walk->found_layer,
                                       .tensor = tensor,
                                       .from = source_of(tensor, l)};
    if (!find_importance(walk->m, walk->found_role, walk->found_layer, l->n_in, arena,
                         &matrix->from.importance, e))
        return false;
    if (!quantize_plan(&matrix->from, form, &matrix->to))
        return err_no_memory(e);
    plan->of_tensor[tensor - checkpoint_tensor_at(walk->m->checkpoint, 0)] = matrix;
    plan->n++;
    plan->n_bytes += round_up(matrix->to.codes.n_bytes + matrix->to.scales.n_bytes, CACHE_LINE);
    plan->n_stored += tensor->n_bytes;
    return true;
}

bool quantize_plan_model(struct model *m, enum model_weights weights, struct arena *arena,
                         struct quantize_plan *plan, struct err *e)
{
    const size_t n = checkpoint_n_tensors(m->checkpoint);
    const enum quantize_form form = weights == MODEL_Q8 ? QUANTIZE_8 : QUANTIZE_4;
    const struct tensor *tensor;
    *plan = (struct quantize_plan){
        .matrices = arena_array(arena, n, sizeof *plan->matrices),
        .of_tensor = (struct quantize_matrix **)arena_array(arena, n, sizeof *plan->of_tensor),
        .by_address = sort_tensors(m->checkpoint, arena)};
    struct walk walk = {.m = m};
    if (!plan->matrices || !plan->of_tensor || !plan->by_address)
        return err_no_memory(e);
    for (const struct linear *l; (l = next_plain(&walk, plan->by_address, &tensor));)
        if (!plan->of_tensor[tensor - checkpoint_tensor_at(m->checkpoint, 0)] &&
            !add_matrix(&walk, tensor, l, form, arena, plan, e))
            return false;
    return true;
}

unsigned char *quantize_place(struct quantize_matrix *matrix, unsigned char *at)
{
    struct quantized *const to = &matrix->to;
    to->codes.data = at;
    to->scales.data = at + to->codes.n_bytes;
    return at + round_up(to->codes.n_bytes + to->scales.n_bytes, CACHE_LINE);
}

/* ---- work ------------------------------------------------------------------------------------ */

struct task {
    const struct quantize_matrix *matrix;
    float *scratch;
    size_t n_scratch;       /* of a worker */
    atomic_bool not_finite; /* a weight is NaN or infinite */
};

static void run_task(struct worker *w, void *context)
{
    struct task *const task = context;
    const struct quantize_source *const from = &task->matrix->from;
    size_t begin, end;
    worker_share(w, from->n_matrices * from->n_out, ROWS_PER_SHARE, &begin, &end);
    if (!quantize_rows(w->kernels, from, &task->matrix->to, begin, end,
                       task->scratch + (size_t)w->index * task->n_scratch))
        atomic_store(&task->not_finite, true);
}

size_t quantize_plan_scratch(const struct quantize_plan *plan)
{
    size_t most = 0;
    for (size_t i = 0; i < plan->n; i++)
        most = max_size(most, quantize_scratch(&plan->matrices[i].from));
    return most;
}

bool quantize_run(struct compute *c, const struct quantize_matrix *matrix, float *scratch,
                  size_t n_scratch, struct err *e)
{
    struct task task = {.matrix = matrix, .scratch = scratch, .n_scratch = n_scratch};
    compute_run(c, run_task, &task);
    return !task.not_finite ||
           err_set(e, ERR_LOAD, "%.160s holds NaN or infinity, which cannot be quantised",
                   matrix->tensor->name);
}

/* ---- a model in memory ----------------------------------------------------------------------- */

struct quantizing {
    struct arena arena; /* of the plans */
    struct quantize_plan plan;
    struct weave_plan weaves;
    size_t n_matrices, n_weaves; /* that are done */
    size_t n_done, n_total;      /* bytes that are read */
    float *scratch;
    size_t n_scratch;
    unsigned char *memory; /* [n_bytes], mapped */
    size_t n_bytes;
};

static bool make_plans(struct quantizing *q, struct model *m, enum model_weights weights,
                       const struct compute *c, struct err *e)
{
    if (!quantize_plan_model(m, weights, &q->arena, &q->plan, e) ||
        !weave_plan_model(m, compute_kernels(c), &q->arena, &q->weaves, e))
        return false;
    q->n_total = q->plan.n_stored + q->weaves.n_bytes;
    q->n_bytes = q->plan.n_bytes + q->weaves.n_bytes;
    return true;
}

bool model_quantize_measure(struct model *m, enum model_weights weights, const struct compute *c,
                            size_t *n_bytes, struct err *e)
{
    struct quantizing q = {.n_bytes = 0};
    const bool ok = weights == MODEL_STORED || make_plans(&q, m, weights, c, e);
    *n_bytes = q.n_bytes;
    arena_free(&q.arena);
    return ok;
}

unsigned model_bits_kept(struct model *m, enum model_weights weights)
{
    const unsigned wanted = weights == MODEL_Q4 ? 4 : 8;
    struct walk walk = {.m = m};
    for (const struct linear *l; (l = walk_next(&walk));)
        if (l->quant && quant_bits(l->quant) != wanted)
            return quant_bits(l->quant);
    return 0;
}

/* Touching fresh pages is expensive, huge pages less so. */
static bool take_memory(struct quantizing *q, const struct compute *c, struct err *e)
{
    const size_t n = q->n_bytes;
    q->n_scratch = quantize_plan_scratch(&q->plan);
    q->scratch = calloc((size_t)compute_n_threads(c), (q->n_scratch + 1) * sizeof *q->scratch);
    void *const memory =
        mmap(NULL, n + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        q->memory = memory;
    if (!q->scratch || !q->memory)
        return err_set(e, ERR_RUNTIME, "-w: its weights need %zu MiB, which are not to be had",
                       (n >> 20) + 1);
    madvise(memory, n, MADV_HUGEPAGE);
    return true;
}

static bool init_quants(struct quantizing *q, const struct kernels *kernels, struct err *e)
{
    unsigned char *at = q->memory;
    for (size_t i = 0; i < q->plan.n; i++) {
        struct quantize_matrix *const matrix = &q->plan.matrices[i];
        const struct quantize_source *const from = &matrix->from;
        struct quantized *const to = &matrix->to;
        const struct quant_parts parts = {.codes = &to->codes, .scales = &to->scales};
        at = quantize_place(matrix, at);
        to->format.woven = quantize_can_weave(kernels, to);
        to->codes.name = to->scales.name = matrix->tensor->name;
        if (!quant_init(&matrix->quant, &to->format, &parts, from->n_matrices * from->n_out,
                        from->n_in, e))
            return false;
    }
    weave_place(&q->weaves, at);
    return true;
}

bool model_quantize_begin(struct model *m, enum model_weights weights, const struct compute *c,
                          struct err *e)
{
    assert(!m->quantizing && weights != MODEL_STORED);
    struct quantizing *const q = calloc(1, sizeof *q);
    if (!q)
        return err_no_memory(e);
    m->quantizing = q;
    if (!make_plans(q, m, weights, c, e) || !take_memory(q, c, e) ||
        !init_quants(q, compute_kernels(c), e))
        return err_prefix(e, "%s", checkpoint_dir(m->checkpoint));
    return true;
}

/* Every role's matrix now views into what its tensor has become. */
static void replace_matrices(struct model *m)
{
    struct quantizing *const q = m->quantizing;
    const struct tensor *const tensors = checkpoint_tensor_at(m->checkpoint, 0);
    const struct tensor *tensor;
    struct walk walk = {.m = m};
    for (struct linear *l; (l = next_plain(&walk, q->plan.by_address, &tensor));) {
        const struct quantize_matrix *const matrix = q->plan.of_tensor[tensor - tensors];
        l->quant_first = first_row(&matrix->from, l);
        l->quant = &matrix->quant;
        l->transposed = false;
        l->w = NULL;
    }
}

/* The next matrix, if there is one. */
static bool do_next(struct quantizing *q, struct compute *c, struct err *e)
{
    if (q->n_matrices < q->plan.n) {
        const struct quantize_matrix *const matrix = &q->plan.matrices[q->n_matrices++];
        q->n_done += matrix->tensor->n_bytes;
        return quantize_run(c, matrix, q->scratch, q->n_scratch, e);
    }
    if (q->n_weaves < q->weaves.n) {
        struct weave *const weave = &q->weaves.weaves[q->n_weaves++];
        q->n_done += weave->n_bytes;
        weave_run(c, weave);
    }
    return true;
}

bool model_quantize_step(struct model *m, struct compute *c, size_t *done, size_t *total,
                         struct err *e)
{
    struct quantizing *const q = m->quantizing;
    for (const size_t from = q->n_done; q->n_done < q->n_total && q->n_done - from < STEP_BYTES;)
        if (!do_next(q, c, e))
            return err_prefix(e, "%s", checkpoint_dir(m->checkpoint));
    *done = q->n_done;
    *total = q->n_total;
    if (q->n_done == q->n_total) {
        replace_matrices(m);
        weave_replace(&q->weaves, m);
        free(q->scratch);
        q->scratch = NULL;
    }
    return true;
}

void quantize_free(struct quantizing *q)
{
    if (!q)
        return;
    if (q->memory)
        munmap(q->memory, q->n_bytes + 1);
    free(q->scratch);
    arena_free(&q->arena);
    free(q);
}
