/* The feed-forward half: plain, down(act(up(x))), or gated, down(act(gate(x)) * up(x)) (Shazeer
 * 2020). */
#include "models/forward.h"

#include "core/kernels/kernels.h"

/* The outputs of this worker in rows [n, intermediate_size]. gate and up are shared out in the same
 * way, so a worker finds its own results there and need not wait for the others. */
static void activate(struct worker *w, const struct pass *p, int layer)
{
    const size_t size = (size_t)p->spec->intermediate_size;
    const struct act_xielu *const xielu = &p->weights->layers[layer].xielu;
    size_t begin, end;
    linear_share(w, (int)size, &begin, &end);
    for (size_t i = 0; i < (size_t)p->n; i++) {
        float *const up = p->up + i * size + begin;
        float *const gate = p->gate + i * size + begin;
        if (p->spec->ffn == FFN_GATED) {
            act_apply(w->kernels, p->spec->hidden_act, xielu, gate, end - begin);
            w->kernels->mul(up, gate, end - begin);
        } else {
            act_apply(w->kernels, p->spec->hidden_act, xielu, up, end - begin);
        }
    }
}

void ffn_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const size_t n = (size_t)p->n, hidden = (size_t)p->spec->hidden_size;
    const size_t size = (size_t)p->spec->intermediate_size;
    if (p->spec->ffn == FFN_GATED)
        linear_apply(w, &weights->gate, in, hidden, n, p->gate, size, LINEAR_SET);
    linear_apply(w, &weights->up, in, hidden, n, p->up, size, LINEAR_SET);
    activate(w, p, layer);
    worker_sync(w);
    linear_apply(w, &weights->down, p->up, size, n, out, hidden, store);
    worker_sync(w);
}
