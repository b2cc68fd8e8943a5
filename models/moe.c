/*
 * A mixture of experts: a router gives each token a few of many feed-forwards (Shazeer et al.
 * 2017). Tokens are gathered by expert, so that an expert's weights are read once for all of them;
 * each token's result is summed in the order of its own choices, so it does not depend on who else
 * is there.
 */
#include "models/forward.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- routing: logits[n_experts] -> n_k experts and their weights ----------------------------- */

/* The index of the largest of n, the first among equals; NaN never is. */
static int largest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best] || isnan(x[best]))
            best = i;
    return best;
}

/* The n_k largest, best first; takes them out of score. */
static void choose(float *score, int n, int n_k, int *chosen)
{
    for (int k = 0; k < n_k; k++) {
        chosen[k] = largest(score, n);
        score[chosen[k]] = -INFINITY;
    }
}

static float group_score(const struct moe_spec *moe, float *score, int n)
{
    const int first = largest(score, n);
    float sum = score[first];
    if (moe->group_by_two && n > 1) {
        const float best = score[first];
        score[first] = -INFINITY;
        sum += score[largest(score, n)];
        score[first] = best;
    }
    return sum;
}

/* Experts outside the best groups are none that can be chosen (DeepSeek's own code and transformers
 * 5.15; earlier ones gave them the score 0, which a negative one of the best groups lost to). */
static void mask_groups(const struct moe_spec *moe, float *score)
{
    const int size = moe->num_experts / moe->n_group;
    assert(size > 0); /* configure has seen to it */
    bool taken[MOE_MAX_GROUPS] = {false};
    for (int k = 0; k < moe->topk_group; k++) {
        int best = -1;
        float best_score = 0;
        for (int g = 0; g < moe->n_group; g++) {
            const float s = group_score(moe, score + g * size, size);
            if (!taken[g] && (best < 0 || s > best_score)) {
                best = g;
                best_score = s;
            }
        }
        taken[best] = true;
    }
    for (int e = 0; e < moe->num_experts; e++)
        if (!taken[e / size])
            score[e] = -INFINITY;
}

/* phimoe: each of the two is weighed by a softmax over those rivals that come within 2 * jitter of
 * it. */
static void sparsemixer(const struct moe_spec *moe, const float *logits, float *remaining,
                        int *chosen, float *weights)
{
    const int n = moe->num_experts;
    memcpy(remaining, logits, (size_t)n * sizeof *remaining);
    for (int k = 0; k < moe->num_experts_per_tok; k++) {
        const int best = largest(remaining, n);
        float sum = 0;
        for (int e = 0; e < n; e++) {
            const float factor = fmaxf(fabsf(logits[e]), remaining[best]);
            /* 0 / 0, where all is 0, is not far */
            const bool far = (remaining[best] - logits[e]) / factor > 2 * moe->router_jitter_noise;
            if (!far && remaining[e] != -INFINITY)
                sum += expf(remaining[e] - remaining[best]);
        }
        chosen[k] = best;
        weights[k] = 1 / sum;
        remaining[best] = -INFINITY;
    }
}

/* Turns logits into what experts weigh, in place. */
static void score_experts(const struct kernels *kernels, const struct moe_spec *moe, float *logits)
{
    if (moe->router == ROUTER_SOFTMAX)
        kernels->softmax(logits, (size_t)moe->num_experts);
    for (int e = 0; moe->router == ROUTER_SIGMOID && e < moe->num_experts; e++)
        logits[e] = 1 / (1 + expf(-logits[e]));
}

/* logits is working memory; remaining is another [n_experts]. */
static void route(const struct kernels *kernels, const struct moe_spec *moe,
                  const float *correction, float *logits, float *remaining, int *chosen,
                  float *weights)
{
    const int n_k = moe->num_experts_per_tok;
    if (moe->router == ROUTER_SPARSEMIXER) {
        sparsemixer(moe, logits, remaining, chosen, weights);
        return;
    }
    score_experts(kernels, moe, logits);
    for (int e = 0; e < moe->num_experts; e++)
        remaining[e] = logits[e] + (correction ? correction[e] : 0);
    if (moe->n_group > 1)
        mask_groups(moe, remaining);
    choose(remaining, moe->num_experts, n_k, chosen);
    for (int k = 0; k < n_k; k++)
        weights[k] = logits[chosen[k]];
    if (moe->router == ROUTER_SOFTMAX_CHOSEN)
        kernels->softmax(weights, (size_t)n_k);
    float sum = 0;
    for (int k = 0; k < n_k; k++)
        sum += weights[k];
    const float norm =
        moe->norm_topk_prob ? sum + 1e-20f : 1; /* as the originals guard the division */
    for (int k = 0; k < n_k; k++)
        weights[k] = weights[k] / norm * moe->routed_scaling_factor;
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* Gives every choice its slot, expert by expert and within one in the order of the tokens. */
static void sort_slots(const struct pass *p)
{
    const struct moe_spec *const spec = &p->spec->moe;
    const struct moe_scratch *const moe = &p->moe;
    const int n_slots = p->n * spec->num_experts_per_tok;
    memset(moe->first, 0, ((size_t)spec->num_experts + 1) * sizeof *moe->first);
    for (int i = 0; i < n_slots; i++)
        moe->first[moe->chosen[i] + 1]++;
    for (int e = 0; e < spec->num_experts; e++)
        moe->first[e + 1] += moe->first[e];
    for (int i = 0; i < n_slots; i++) {
        const int slot = moe->first[moe->chosen[i]]++;
        moe->slot[i] = slot;
        moe->token[slot] = i / spec->num_experts_per_tok;
    }
    for (int e = spec->num_experts; e > 0;
         e--) /* each has moved on to its end, where the next begins */
        moe->first[e] = moe->first[e - 1];
    moe->first[0] = 0;
}

static void gather(struct worker *w, const struct pass *p, const float *in)
{
    const size_t hidden = (size_t)p->spec->hidden_size;
    size_t begin, end;
    worker_share(w, (size_t)(p->n * p->spec->moe.num_experts_per_tok), 1, &begin, &end);
    for (size_t slot = begin; slot < end; slot++)
        memcpy(p->moe.in + slot * hidden, in + (size_t)p->moe.token[slot] * hidden,
               hidden * sizeof *in);
}

/* ---- experts --------------------------------------------------------------------------------- */

/* gpt_oss: (up + 1) * gate * sigmoid(alpha * gate), both clamped, which is (up + 1) * silu(alpha *
 * gate) / alpha. Pairs of gate and up lie side by side; the gates are moved together. */
static void clamped_swiglu(const struct kernels *kernels, float limit, float *gate_up, float *up,
                           size_t n)
{
    const float alpha = 1.702f;
    for (size_t i = 0; i < n; i++) {
        const float g = gate_up[2 * i], u = gate_up[2 * i + 1];
        up[i] = (u > limit ? limit : u < -limit ? -limit : u) + 1;
        gate_up[i] = alpha * (g > limit ? limit : g);
    }
    kernels->silu(gate_up, n);
    kernels->mul(up, gate_up, n);
    kernels->scale(up, up, 1 / alpha, n);
}

static bool has_rows(const struct pass *p, int e)
{
    return p->moe.first[e] < p->moe.first[e + 1];
}

/* The rows of an expert that has some; a single token's are the same for all. */
static struct operand rows_of(const struct pass *p, int e, const struct operand *in)
{
    const size_t first = (size_t)p->moe.first[e], last = (size_t)p->moe.first[e + 1];
    return in->n == 1 ? operand_part(in, 0, 1) : operand_part(in, first, last - first);
}

/* A product of expert e, of a layer, with its rows of `in`: the outputs [begin, end). */
typedef void expert_product(struct worker *w, const struct pass *p, int layer, int e,
                            struct operand *in, size_t begin, size_t end);

static void expand_interleaved(struct worker *w, const struct pass *p, int layer, int e,
                               struct operand *in, size_t begin, size_t end)
{
    const size_t size = (size_t)p->spec->moe.moe_intermediate_size;
    const size_t first = (size_t)p->moe.first[e];
    float *const gate_up = p->moe.gate + first * 2 * size, *const up = p->moe.up + first * size;
    linear_apply_part(w, &p->weights->layers[layer].experts[e].gate_up, in, begin, end,
                      gate_up + begin, 2 * size, LINEAR_SET);
    for (size_t i = 0; i < in->n; i++) /* whole pairs: the grain is even */
        clamped_swiglu(w->kernels, p->spec->moe.swiglu_limit, gate_up + i * 2 * size + begin,
                       up + i * size + begin / 2, (end - begin) / 2);
}

static void expand(struct worker *w, const struct pass *p, int layer, int e, struct operand *in,
                   size_t begin, size_t end)
{
    const struct expert *const expert = &p->weights->layers[layer].experts[e];
    const size_t size = (size_t)p->spec->moe.moe_intermediate_size;
    const size_t at = (size_t)p->moe.first[e] * size + begin;
    float *const gate = p->moe.gate + at, *const up = p->moe.up + at;
    linear_apply_part(w, &expert->gate, in, begin, end, gate, size, LINEAR_SET);
    linear_apply_part(w, &expert->up, in, begin, end, up, size, LINEAR_SET);
    for (size_t i = 0; i < in->n; i++)
        ffn_activate(w, p, layer, gate + i * size, up + i * size, end - begin);
}

static void contract(struct worker *w, const struct pass *p, int layer, int e, struct operand *in,
                     size_t begin, size_t end)
{
    const size_t hidden = (size_t)p->spec->hidden_size;
    linear_apply_part(w, &p->weights->layers[layer].experts[e].down, in, begin, end,
                      p->moe.out + (size_t)p->moe.first[e] * hidden + begin, hidden, LINEAR_SET);
}

/* The outputs [begin, end) of those experts that have rows, whose matrices like `like` count as one
 * behind the other, each with whole grains. */
static void run_range(struct worker *w, const struct pass *p, int layer, const struct linear *like,
                      const struct operand *in, expert_product *run, size_t begin, size_t end)
{
    const size_t n_out = (size_t)like->n_out, each = round_up(n_out, LINEAR_GRAIN);
    size_t at = 0;
    for (int e = 0; e < p->spec->moe.num_experts && at < end; e++) {
        if (!has_rows(p, e))
            continue;
        const size_t from = begin > at ? begin - at : 0, to = min_size(end - at, n_out);
        struct operand rows = rows_of(p, e, in);
        if (from < to)
            run(w, p, layer, e, &rows, from, to);
        at += each;
    }
}

/* Whether it is the weights of n experts that take the time, so that these are dealt out as one.
 * Transposed ones are slow in pieces: they wait until each expert has many rows. */
static bool are_one_list(const struct pass *p, const struct linear *like, size_t n)
{
    enum { FEW = 8 };
    const size_t n_slots = (size_t)(p->n * p->spec->moe.num_experts_per_tok);
    return p->n <= FEW || (like->transposed && n_slots <= FEW * n);
}

/* A product of every expert that has rows: they are dealt out as one, or each is shared out. */
static void each_expert(struct worker *w, const struct pass *p, int layer,
                        const struct linear *like, struct operand *in, expert_product *run)
{
    size_t begin, end, n = 0;
    linear_prepare(w, like, in);
    for (int e = 0; e < p->spec->moe.num_experts; e++)
        n += has_rows(p, e);
    if (are_one_list(p, like, n)) {
        struct deal d = linear_deal(w, like, n);
        while (deal_next(w, &d, &begin, &end))
            run_range(w, p, layer, like, in, run, begin, end);
        return;
    }
    linear_share(w, like->n_out, &begin, &end);
    for (int e = 0; e < p->spec->moe.num_experts; e++) {
        struct operand rows = rows_of(p, e, in);
        if (has_rows(p, e))
            run(w, p, layer, e, &rows, begin, end);
    }
    worker_sync(w);
}

/* The one that every token takes: shared_out = down(act(gate) * up). */
static void run_shared(struct worker *w, const struct pass *p, int layer, const float *in)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const size_t n = (size_t)p->n, hidden = (size_t)p->spec->hidden_size;
    const size_t size = (size_t)p->spec->moe.shared_intermediate_size;
    struct operand rows = pass_rows(p, in, n, hidden);
    size_t begin, end;
    linear_share(w, (int)size, &begin, &end);
    linear_apply(w, &weights->shared.gate, &rows, p->moe.shared_gate, size);
    linear_apply(w, &weights->shared.up, &rows, p->moe.shared_up, size);
    for (size_t i = 0; i < n; i++)
        ffn_activate(w, p, layer, p->moe.shared_gate + i * size + begin,
                     p->moe.shared_up + i * size + begin, end - begin);
    if (p->spec->moe.shared_expert_gate)
        linear_apply(w, &weights->shared_expert_gate, &rows, p->moe.shared_expert_gate, 1);
    worker_sync(w);
    rows = pass_rows(p, p->moe.shared_up, n, size);
    linear_apply(w, &weights->shared.down, &rows, p->moe.shared_out, hidden);
}

/* Every expert on its slots: in -> up -> out. A single token stands in `in` itself. Ends with a
 * sync. */
static void run_experts(struct worker *w, const struct pass *p, int layer, const float *in)
{
    const struct expert *const experts = p->weights->layers[layer].experts;
    const struct moe_spec *const spec = &p->spec->moe;
    const size_t hidden = (size_t)p->spec->hidden_size;
    const size_t size = (size_t)spec->moe_intermediate_size;
    const size_t n_slots = (size_t)(p->n * spec->num_experts_per_tok);
    struct operand rows =
        p->n == 1 ? pass_rows(p, in, 1, hidden) : pass_rows(p, p->moe.in, n_slots, hidden);
    if (spec->gate_up_interleaved)
        each_expert(w, p, layer, &experts->gate_up, &rows, expand_interleaved);
    else
        each_expert(w, p, layer, &experts->up, &rows, expand);
    rows = pass_rows(p, p->moe.up, n_slots, size);
    each_expert(w, p, layer, &experts->down, &rows, contract);
}

/* The weighted sum of what token i's experts brought, in the first one's place. */
static float *sum_of_token(const struct kernels *kernels, const struct pass *p, size_t i)
{
    const struct moe_spec *const spec = &p->spec->moe;
    const size_t hidden = (size_t)p->spec->hidden_size, n_k = (size_t)spec->num_experts_per_tok;
    const float *const weights = p->moe.weights + i * n_k;
    const int *const slots = p->moe.slot + i * n_k;
    float *const sum = p->moe.out + (size_t)slots[0] * hidden;
    kernels->scale(sum, sum, weights[0], hidden);
    if (spec->shared_intermediate_size) {
        float *const shared = p->moe.shared_out + i * hidden;
        if (spec->shared_expert_gate)
            kernels->scale(shared, shared, 1 / (1 + expf(-p->moe.shared_expert_gate[i])), hidden);
        kernels->add(sum, shared, hidden);
    }
    for (size_t k = 1; k < n_k; k++) {
        float *const one = p->moe.out + (size_t)slots[k] * hidden;
        kernels->scale(one, one, weights[k], hidden);
        kernels->add(sum, one, hidden);
    }
    return sum;
}

/* out[i] (= or +=) these sums. */
static void combine(struct worker *w, const struct pass *p, float *out, enum linear_store store)
{
    const size_t hidden = (size_t)p->spec->hidden_size;
    size_t begin, end;
    worker_share(w, (size_t)p->n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *const sum = sum_of_token(w->kernels, p, i), *const to = out + i * hidden;
        w->kernels->scale(sum, sum, p->spec->residual_multiplier, hidden);
        if (store == LINEAR_ADD)
            w->kernels->add(to, sum, hidden);
        else
            memcpy(to, sum, hidden * sizeof *to);
    }
    worker_sync(w);
}

/* What the experts bring is scaled here, once, and not in their matrices. */
void moe_run(struct worker *w, const struct pass *p, int layer, const float *in, float *out,
             enum linear_store store)
{
    const struct layer_weights *const weights = &p->weights->layers[layer];
    const struct moe_spec *const spec = &p->spec->moe;
    const size_t n_experts = (size_t)spec->num_experts, n_k = (size_t)spec->num_experts_per_tok;
    size_t begin, end;
    struct operand rows = pass_rows(p, in, (size_t)p->n, (size_t)p->spec->hidden_size);
    linear_apply(w, &weights->router, &rows, p->moe.logits, n_experts);
    worker_sync(w);
    worker_share(w, (size_t)p->n, 1, &begin, &end);
    for (size_t i = begin; i < end; i++)
        route(w->kernels, spec, weights->router_correction, p->moe.logits + i * n_experts,
              p->moe.left + i * n_experts, p->moe.chosen + i * n_k, p->moe.weights + i * n_k);
    worker_sync(w);
    if (w->index == 0)
        sort_slots(p);
    worker_sync(w);
    if (p->n > 1)
        gather(w, p, in);
    if (spec->shared_intermediate_size)
        run_shared(w, p, layer, in);
    worker_sync(w);
    run_experts(w, p, layer, in);
    combine(w, p, out, store);
}
