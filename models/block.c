/* One layer, as the papers draw it: each half looks at the normalised stream and adds to the
 * stream. */
#include "models/forward.h"

void block_run(struct worker *w, const struct pass *p, int layer)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const size_t n = (size_t)p->n;

    norm_rows(w, &weights->attention_norm, p->x, n, p->normed);
    worker_sync(w);
    attention_run(w, p, layer); /* x += attention(normed) */

    norm_rows(w, &weights->ffn_norm, p->x, n, p->normed);
    worker_sync(w);
    ffn_run(w, p, layer); /* x += ffn(normed) */
}
