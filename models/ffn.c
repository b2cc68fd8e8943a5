/* The feed-forward half: plain, down(act(up(x))), or gated, down(act(gate(x)) * up(x)) (Shazeer
 * 2020). */
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

void ffn_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const size_t n = (size_t)p->n, hidden = (size_t)p->spec->hidden_size;
    const size_t size = (size_t)p->spec->intermediate_size;
    struct operand rows = pass_rows(p, in, n, hidden);
    size_t begin, end;
    if (p->spec->ffn == FFN_GATED)
        linear_apply(w, &weights->gate, &rows, p->gate, size, LINEAR_SET);
    linear_apply(w, &weights->up, &rows, p->up, size, LINEAR_SET);
    /* gate and up are shared out in the same way: a worker goes on with its own results without
     * waiting */
    linear_share(w, (int)size, &begin, &end);
    for (size_t i = 0; i < n; i++)
        ffn_activate(w, p, layer, p->gate + i * size + begin, p->up + i * size + begin,
                     end - begin);
    worker_sync(w);
    rows = pass_rows(p, p->up, n, size);
    linear_apply(w, &weights->down, &rows, out, hidden, store);
    worker_sync(w);
}
