/* Embedding, layers, head. */
#include "models/forward.h"

#include "core/kernels/kernels.h"

/* x[i] = embedding[ids[i]] (+ positions[i]'s row where positions are learned), and the angles of
 * each position. */
static void embed(struct worker *w, const struct pass *p)
{
    const struct model_spec *const spec = p->spec;
    const size_t hidden = (size_t)spec->hidden_size, half = (size_t)spec->rope.n_dims / 2;
    size_t begin, end;
    worker_share(w, (size_t)p->n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *const x = p->x + i * hidden;
        linear_row(w->kernels, &p->weights->embedding, p->ids[i], x);
        if (spec->positions == POSITIONS_ROPE) {
            rope_angles(&spec->rope, p->inv_freq, p->positions[i], p->rope_cos + i * half,
                        p->rope_sin + i * half);
        } else {
            float *const position = p->normed + i * hidden; /* free until the first norm */
            linear_row(w->kernels, &p->weights->positions, p->positions[i], position);
            w->kernels->add(x, position, hidden);
        }
    }
    worker_sync(w);
}

/* logits = head(norm(x)) of the last n_rows tokens. */
static void head(struct worker *w, const struct pass *p)
{
    const size_t hidden = (size_t)p->spec->hidden_size, n_rows = (size_t)p->n_rows;
    const float *const x = p->x + ((size_t)p->n - n_rows) * hidden;
    norm_rows(w, &p->weights->final_norm, x, n_rows, p->normed);
    worker_sync(w);
    linear_apply(w, &p->weights->head, p->normed, hidden, n_rows, p->logits,
                 (size_t)p->spec->vocab_size, LINEAR_SET);
}

void forward_run(struct worker *w, void *pass)
{
    const struct pass *const p = pass;
    embed(w, p);
    for (int layer = 0; layer < p->spec->num_hidden_layers; layer++)
        block_run(w, p, layer);
    if (p->n_rows)
        head(w, p);
}
