/*
 * The feed-forward half: plain, down(act(up(x))), or gated, down(act(gate(x)) * up(x)) (Shazeer
 * 2020). Workers make the inner columns between them and wait once before `down`, which needs all
 * of them. Owns nothing: scratch is the pass's. A mixture of experts is moe.c's business.
 */
#include "models/forward.h"

#include "core/kernels/kernels.h"

void ffn_activate(const struct worker *w, const struct pass *p, int layer, float *gate, float *up,
                  size_t n)
{
    const struct act_xielu *const xielu = &p->weights->layers[layer].xielu;
    if (p->spec->ffn == FFN_GATED) {
        act_apply(w->kernels, p->spec->hidden_act, xielu, gate, n);
        w->kernels->mul(up, gate, n);
    } else {
        act_apply(w->kernels, p->spec->hidden_act, xielu, up, n);
    }
}

/* act(gate(in)) * up(in), for the outputs [begin, last), a few columns at a time: the gate's are
 * then still in the cache, and need no memory as wide as the layer. */
static void expand_gated(struct worker *w, const struct pass *p, int layer, struct operand *in,
                         size_t begin, size_t last)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const size_t size = (size_t)p->spec->intermediate_size;
    const size_t most = p->n_gate / in->n / PASS_GATE_GRAIN * PASS_GATE_GRAIN;
    float *const gate = p->gate + (size_t)w->index * p->n_gate;
    for (size_t end; begin < last; begin = end) {
        end = begin + min_size(last - begin, most);
        linear_apply_part(w, &weights->gate, in, begin, end, gate, end - begin, LINEAR_SET);
        linear_apply_part(w, &weights->up, in, begin, end, p->up + begin, size, LINEAR_SET);
        for (size_t i = 0; i < in->n; i++)
            ffn_activate(w, p, layer, gate + i * (end - begin), p->up + i * size + begin,
                         end - begin);
    }
}

static void activate_plain(struct worker *w, const struct pass *p, int layer, size_t n,
                           size_t begin, size_t end)
{
    for (size_t i = 0; i < n; i++)
        ffn_activate(w, p, layer, NULL, p->up + i * (size_t)p->spec->intermediate_size + begin,
                     end - begin);
}

/* The inner columns, in p->up. */
static void expand(struct worker *w, const struct pass *p, int layer, struct operand *rows)
{
    const bool is_gated = p->spec->ffn == FFN_GATED;
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const struct linear *const first = is_gated ? &weights->gate : &weights->up;
    const size_t size = (size_t)p->spec->intermediate_size;
    size_t begin, end;
    linear_prepare(w, first, rows);
    /* in this form, whatever `up` would like best */
    struct operand in = operand_part(rows, 0, rows->n);
    struct deal d = linear_deal(w, first, 1);
    while (deal_next(w, &d, &begin, &end)) {
        if (is_gated) {
            expand_gated(w, p, layer, &in, begin, end);
        } else {
            linear_apply_part(w, first, &in, begin, end, p->up + begin, size, LINEAR_SET);
            activate_plain(w, p, layer, rows->n, begin, end);
        }
    }
}

/* The same for a plain half whose sums are shared out. */
static void expand_sums(struct worker *w, const struct pass *p, int layer, struct operand *rows)
{
    const size_t size = (size_t)p->spec->intermediate_size;
    size_t begin, end;
    linear_share(w, (int)size, &begin, &end);
    linear_apply(w, &p->weights->layers[layer].up, rows, p->up, size);
    activate_plain(w, p, layer, rows->n, begin, end);
    worker_sync(w);
}

void ffn_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store)
{
    const size_t n = (size_t)p->n, hidden = (size_t)p->spec->hidden_size;
    struct operand rows = pass_rows(p, in, n, hidden);
    pass_show(w, p, layer, MOMENTS_FFN, in, n);
    if (p->spec->ffn == FFN_PLAIN && linear_shares_sums(w, &p->weights->layers[layer].up, &rows))
        expand_sums(w, p, layer, &rows);
    else
        expand(w, p, layer, &rows);
    pass_show(w, p, layer, MOMENTS_ACTIVATED, p->up, n);
    rows = pass_rows(p, p->up, n, (size_t)p->spec->intermediate_size);
    linear_apply_dealt(w, &p->weights->layers[layer].down, &rows, out, hidden, store);
}
