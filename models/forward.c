/*
 * Embedding, layers, head. Also where a pass takes less than all of that: tokens without logits
 * stop at the keys and values of the last layer, and a signal ends a pass between two layers. Owns
 * nothing: all that is read and written is in struct pass. What a layer does is block.c's business.
 */
#include "models/forward.h"

#include "core/kernels/kernels.h"

#include <math.h>

/* The row of sines, then cosines, of a position; ctrl counts its frequencies to half, xglm to half
 * - 1. */
static void sinusoid(const struct model_spec *spec, int position, float *out)
{
    const int half = spec->hidden_size / 2;
    const double n_steps = spec->sinusoid_inclusive ? half - 1 : half;
    for (int i = 0; i < half; i++) {
        const double angle = position * pow(10000, -i / n_steps);
        out[i] = (float)sin(angle);
        out[half + i] = (float)cos(angle);
    }
    if (spec->hidden_size % 2)
        out[2 * half] = 0;
}

/* x += what stands for the position, where that is added to the embedding. row: [hidden_size] to
 * work in. */
static void add_position(const struct worker *w, const struct pass *p, int position, float *row,
                         float *x)
{
    const struct model_spec *const spec = p->spec;
    position += spec->position_offset;
    if (spec->positions == POSITIONS_LEARNED)
        linear_row(w->kernels, &p->weights->positions, position, row);
    else if (spec->positions == POSITIONS_SINUSOIDAL)
        sinusoid(spec, position, row);
    else
        return;
    w->kernels->add(x, row, (size_t)spec->hidden_size);
}

static void prepare_angles(const struct pass *p, size_t i)
{
    const size_t sequence = (size_t)p->sequences[i];
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        const struct rope *const rope = &p->spec->ropes[r];
        const size_t half = (size_t)rope->n_dims / 2;
        rope_angles(rope, p->inv_freq[r] + sequence * half, p->rope_factor[r][sequence],
                    p->positions[i], p->rope_cos[r] + i * half, p->rope_sin[r] + i * half);
    }
}

/* table[ids[i]] * scale, as wide as the table. */
static void look_up(struct worker *w, const struct pass *p, float *out)
{
    const size_t size = (size_t)p->spec->embedding_size;
    const float scale = p->spec->embedding_scale;
    size_t begin, end;
    worker_share(w, (size_t)p->n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *const row = out + i * size;
        linear_row(w->kernels, &p->weights->embedding, p->ids[i], row);
        if (scale != 1)
            w->kernels->scale(row, row, scale, size);
    }
}

/* What comes between the table and the first layer. */
static void finish_embedding(const struct worker *w, const struct pass *p)
{
    const struct weights *const weights = p->weights;
    const size_t hidden = (size_t)p->spec->hidden_size;
    size_t begin, end;
    worker_share(w, (size_t)p->n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *const x = p->x + i * hidden, *const row = p->normed + i * hidden;
        add_position(w, p, p->positions[i], row, x);
        if (p->spec->type_vocab_size) {
            linear_row(w->kernels, &weights->token_types, 0, row);
            w->kernels->add(x, row, hidden);
        }
        if (p->spec->embedding_norm)
            norm_row(w->kernels, &weights->embedding_norm, x, x);
        prepare_angles(p, i);
    }
}

static void embed(struct worker *w, const struct pass *p)
{
    const struct linear *const project_in = &p->weights->project_in;
    const size_t hidden = (size_t)p->spec->hidden_size;
    if (project_in->n_out) {
        look_up(w, p, p->embedded);
        worker_sync(w);
        struct operand rows =
            pass_rows(p, p->embedded, (size_t)p->n, (size_t)p->spec->embedding_size);
        linear_apply(w, project_in, &rows, p->x, hidden);
        worker_sync(w);
    } else {
        look_up(w, p, p->x);
    }
    finish_embedding(w, p);
    worker_sync(w);
}

/* norm(act(dense(rows))) into p->normed. */
static const float *transform(struct worker *w, const struct pass *p, const float *rows)
{
    const size_t hidden = (size_t)p->spec->hidden_size, n = (size_t)p->n;
    struct operand in = pass_rows(p, rows, n, hidden);
    size_t begin, end;
    linear_apply(w, &p->weights->head_dense, &in, p->normed, hidden);
    worker_sync(w);
    worker_share(w, n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *const row = p->normed + i * hidden;
        act_apply(w->kernels, p->spec->hidden_act, NULL, row, hidden);
        norm_row(w->kernels, &p->weights->head_norm, row, row);
    }
    worker_sync(w);
    return p->normed;
}

/* Caps logits [begin, end) of all rows softly. */
static void softcap_logits(const struct pass *p, size_t begin, size_t end)
{
    const float cap = p->spec->final_logit_softcapping;
    const size_t vocab = (size_t)p->spec->vocab_size;
    for (size_t i = 0; cap > 0 && i < (size_t)p->n; i++)
        for (size_t r = begin; r < end; r++)
            p->logits[i * vocab + r] = cap * tanhf(p->logits[i * vocab + r] / cap);
}

/* Brings the rows that get logits to the front; each worker moves its share of every row. */
static void collect(const struct worker *w, const struct pass *p, float *rows, size_t width)
{
    size_t begin, end;
    worker_share(w, width, 1, &begin, &end);
    for (size_t i = 0; i < (size_t)p->n_rows; i++) {
        const float *const from = rows + (size_t)p->logit_rows[i] * width;
        for (size_t d = begin; d < end; d++)
            rows[i * width + d] = from[d];
    }
}

/* What the pass of these rows reads. */
static void collect_wanted(struct worker *w, const struct pass *p)
{
    collect(w, p, p->x, (size_t)p->spec->hidden_size);
    for (int r = 0; r < SPEC_MAX_ROPES; r++) {
        const size_t half = (size_t)p->spec->ropes[r].n_dims / 2;
        collect(w, p, p->rope_cos[r], half);
        collect(w, p, p->rope_sin[r], half);
    }
    worker_sync(w);
}

/* Logits of all rows. */
static void head(struct worker *w, const struct pass *p)
{
    const struct weights *const weights = p->weights;
    const size_t hidden = (size_t)p->spec->hidden_size, n = (size_t)p->n;
    const float *rows = p->x;
    size_t width = hidden, begin, end;
    if (!p->spec->no_final_norm)
        rows = pass_norm(w, p, &weights->final_norm, rows, n);
    if (p->spec->head_transform)
        rows = transform(w, p, rows);
    if (weights->project_out.n_out) {
        struct operand in = pass_rows(p, rows, n, hidden);
        width = (size_t)p->spec->embedding_size;
        linear_apply(w, &weights->project_out, &in, p->embedded, width);
        worker_sync(w);
        rows = p->embedded;
    }
    pass_show(w, p, 0, MOMENTS_HEAD, rows, n);
    struct operand last = pass_rows(p, rows, n, width);
    linear_prepare(w, &weights->head, &last);
    struct deal d = linear_deal(w, &weights->head, 1);
    while (deal_next(w, &d, &begin, &end)) {
        linear_apply_part(w, &weights->head, &last, begin, end, p->logits + begin,
                          (size_t)p->spec->vocab_size, LINEAR_SET);
        softcap_logits(p, begin, end);
    }
}

/* Whether the trip goes on to this layer. If it is to stop, worker 0 makes the layer that it is
 * about to begin the last one; as all threads meet within a layer, the others know in time. */
static bool goes_on(const struct worker *w, struct trip *t, int layer)
{
    if (w->index == 0 && t->stop && *t->stop && layer < atomic_load(&t->n_layers))
        atomic_store(&t->n_layers, layer + 1);
    return layer < atomic_load(&t->n_layers);
}

/* The rest of the last layer, whose keys and values are in the cache, and the head, for the tokens
 * that get logits. */
static void run_wanted(struct worker *w, const struct pass *p)
{
    collect_wanted(w, p);
    block_run(w, p->wanted, p->spec->num_hidden_layers - 1);
    head(w, p->wanted);
}

void forward_run(struct worker *w, void *trip)
{
    const struct pass *const p = ((const struct trip *)trip)->pass;
    const int n_layers = p->spec->num_hidden_layers;
    const bool is_apart = p->parts && w->n_workers > 1;
    const struct pass *const own = is_apart ? &p->parts[w->index] : p;
    struct worker mine = is_apart ? worker_apart(w) : *w;
    int layer = 0;
    embed(&mine, own);
    for (; goes_on(w, trip, layer); layer++)
        if (p->wanted && layer == n_layers - 1)
            block_store_kv(&mine, own, layer);
        else
            block_run(&mine, own, layer);
    if (p->n_rows == 0 || layer < n_layers)
        return;
    if (p->wanted)
        run_wanted(w, p);
    else
        head(&mine, own);
}
