/*
 * Rows differ in cost: an answering row reads its whole text from the cache, prompt rows share that
 * reading and mostly multiply. Rows are dealt out as contiguous ranges of equal estimated cost. As
 * neighbours are alike, some workers read while others multiply, so that memory bandwidth is used
 * evenly. Owns nothing; pass.c cuts the memory of parts.
 */
#include "models/parts.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <string.h>

/* What one worker reads from memory while others multiply: measured on Zen 5. */
enum { BYTES_PER_CYCLE = 10 };

/* What n products cost, in the time that reading a byte takes. */
static double products_price(const struct kernels *kernels, double n, int peak)
{
    return n * BYTES_PER_CYCLE / kernels->per_cycle[peak];
}

/* The peak speed that counts for rows of this form. */
static int peak_of(enum operand_form form)
{
    return form == OPERAND_F32 ? PEAK_F32 : form == OPERAND_BF16 ? PEAK_BF16 : PEAK_INT8;
}

/* The matrices that a part applies to its rows; experts are left out, as all parts run them
 * together. */
enum { N_MATRICES = 11 };

static void list_matrices(const struct layer_weights *l, const struct linear *all[N_MATRICES])
{
    const struct linear *const list[N_MATRICES] = {
        &l->query, &l->key,  &l->value, &l->attention_out, &l->query_a, &l->query_b, &l->kv_a,
        &l->kv_b,  &l->gate, &l->up,    &l->down};
    memcpy(all, list, sizeof list);
}

/* The products of a row with them: latents are never rounded. */
static double row_price(const struct kernels *kernels, const struct layer_weights *l, bool rounds)
{
    const struct linear *all[N_MATRICES];
    double price = 0;
    list_matrices(l, all);
    for (size_t i = 0; i < N_MATRICES; i++) {
        if (all[i]->n_out == 0)
            continue;
        const bool is_rounded = rounds && all[i] != &l->kv_b;
        const enum operand_form form = is_rounded ? linear_form(kernels, all[i]) : OPERAND_F32;
        price += products_price(kernels, (double)all[i]->n_out * all[i]->n_in, peak_of(form));
    }
    return price;
}

struct parts_price parts_price_of(const struct kernels *kernels, const struct model_spec *spec,
                                  const struct weights *weights, const struct kv *kv, bool rounds)
{
    const bool attend_rounds =
        rounds && kernels->attend_bf16[kv->type] &&
        linear_form(kernels, &weights->layers[0].attention_out) != OPERAND_F32;
    const double n_look = (double)(kv->k_dim + kv->v_dim) * spec->num_attention_heads;
    struct parts_price price = {
        .look = products_price(kernels, n_look, attend_rounds ? PEAK_BF16 : PEAK_F32),
        .read = (double)kv_page_bytes(kv) / KV_PAGE,
    };
    for (int layer = 0; layer < spec->num_hidden_layers; layer++)
        price.row += row_price(kernels, &weights->layers[layer], rounds) / spec->num_hidden_layers;
    return price;
}

/* Weights that a row meets in a layer, the mean of all layers. */
static double layer_weights_met(const struct model_spec *spec, const struct weights *weights)
{
    double n = 0;
    for (int layer = 0; layer < spec->num_hidden_layers; layer++) {
        const struct linear *all[N_MATRICES];
        list_matrices(&weights->layers[layer], all);
        for (size_t i = 0; i < N_MATRICES; i++)
            n += (double)all[i]->n_out * all[i]->n_in;
    }
    return n / spec->num_hidden_layers;
}

/* Rows of a pass with experts: so many that each expert gets some, within limits, because what
 * experts make takes memory for each row. */
static int expert_rows(const struct moe_spec *moe, int least)
{
    enum { EACH = 64, MOST = 1024 };
    const int64_t n = (int64_t)EACH * moe->num_experts / moe->num_experts_per_tok;
    return n < least ? least : n < MOST ? (int)n : MOST;
}

/* Whether texts have rings in the cache, which hold as many positions more as a pass has rows. */
static bool has_windows(const struct model_spec *spec)
{
    bool has = false;
    for (int layer = 0; layer < spec->num_hidden_layers; layer++)
        has = has || spec->layers[layer].window > 0;
    return has;
}

/*
 * A pass has rows enough to read each weight seldom, few enough that progress is seen in between.
 * Many workers wait long for each other, unless each has rows of its own; but then each brings all
 * weights into the order that products want, which is as much work as some rows are. Measured on 16
 * virtual cores of a Xeon with AMX, beside passes of 256 rows, with 128 rows for each and with 64:
 * layers of 1 million weights take 0.5 of the time and 0.55, of 15 million 0.72 and 0.85, of 218
 * million 1.1 and 1.5.
 */
struct parts_rows parts_rows_of(const struct model_spec *spec, const struct weights *weights,
                                int n_threads)
{
    enum { ROWS = 256, MOST = 2048, EACH = 128, FEWER = 64, MANY_THREADS = 8 };
    const double small = 16e6, medium = 48e6, layer = layer_weights_met(spec, weights);
    struct parts_rows rows = {ROWS, EACH};
    if (spec->moe.num_experts_per_tok > 0) {
        rows.pass = expert_rows(&spec->moe, ROWS);
        return rows;
    }
    if (layer <= small && n_threads > MANY_THREADS)
        rows.each = FEWER;
    if (layer <= medium && n_threads <= MOST / rows.each && !has_windows(spec))
        rows.pass = max_int(ROWS, min_int(MOST, EACH * n_threads));
    return rows;
}

/* How many positions a row sees, the mean of the layers. */
static double positions_seen(const struct model_spec *spec, int position)
{
    double seen = 0;
    for (int layer = 0; layer < spec->num_hidden_layers; layer++) {
        const int window = spec->layers[layer].window;
        seen += window ? min_int(position + 1, window) : position + 1;
    }
    return seen / spec->num_hidden_layers;
}

/* Of row i of a run. */
static double row_cost(const struct pass *p, const struct parts_price *price,
                       const struct kv_run *run, int i)
{
    const double seen = positions_seen(p->spec, run->position + i);
    return price->row + seen * (price->look + price->read / run->n);
}

static double pass_cost(const struct pass *p, const struct parts_price *price)
{
    double cost = 0;
    for (int i = 0; i < p->n_runs; i++)
        for (int r = 0; r < p->runs[i].n; r++)
            cost += row_cost(p, price, &p->runs[i], r);
    return cost;
}

void parts_deal(struct pass *p, const struct parts_price *price, struct pass *parts,
                struct kv_run *runs)
{
    const int last = p->size.n_threads - 1;
    const double fair = pass_cost(p, price) / p->size.n_threads;
    double cost = 0;
    size_t used = 0;
    int part = 0, first = 0, end = 0;
    assert(pass_is_large(&p->size, p->n));
    for (int i = 0; i < p->n_runs; i++)
        for (int r = 0; r < p->runs[i].n; r++) {
            cost += row_cost(p, price, &p->runs[i], r);
            end++;
            /* each gets a row at least */
            if (part < last && (cost >= fair * (part + 1) || p->n - end == last - part)) {
                pass_part(p, first, end - first, &used, runs + first, &parts[part++]);
                first = end;
            }
        }
    pass_part(p, first, end - first, &used, runs + first, &parts[last]);
    p->parts = parts;
}
