/*
 * Candidates are kept in the order of their ids from the first filter to the draw. A filter ranks a
 * copy, finds the last candidate that stays (the cut) and keeps what ranks no worse: so nothing is
 * ever sorted, a draw means the same whatever filters ran, and all of it is linear in the
 * vocabulary, but for top-k's heap. Where nothing goes before top-p and min-p, they look at the
 * scores themselves, and what they would drop never becomes a candidate. Definitions follow
 * llama.cpp's samplers of the same names; each filter works on the distribution that the one before
 * left, renormalised, and at temperature 1.
 */
#include "core/sample.h"

#include "core/arena.h"
#include "core/philox.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
    float logit;
    float weight; /* exp(logit - the best logit), where a filter asked for it */
    float key; /* what is ranked by, the higher the better: the logit unless a filter says else */
    int32_t id;
};

struct sampler {
    struct sample_params params;
    int n_vocab;
    struct candidate *candidates; /* [n_vocab], by id; not touched before it is needed: with top-k
                                   * there are few, and a job has many samplers */
    struct candidate *ranked;     /* [n_vocab] behind them, the copy that filters reorder */
    float *scores;                /* [n_vocab] logits after penalties */
    int32_t *counts;              /* [n_vocab] all 0 between calls */
    int32_t *window;              /* [n_window] ring of the tokens that penalties look back on */
    size_t n_window;              /* 0 where there are no penalties */
    size_t n_accepted;
    struct arena arena; /* holds scores, counts and window */
};

const struct sample_params sample_defaults = {
    .temperature = 0.8f,
    .top_k = 40,
    .top_p = 0.95f,
    .min_p = 0.05f,
    .typical_p = 1.0f,
    .repetition_penalty = 1.0f,
    .repeat_last_n = 64,
};

uint64_t sample_seed(uint64_t seed, const char *name, size_t n)
{
    const uint64_t hash = fnv1a(name, n);
    /* The second half of the counter keeps these apart from the numbers that draws use. */
    const uint32_t counter[4] = {(uint32_t)hash, (uint32_t)(hash >> 32), 0, 1};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4];
    philox(counter, key, word);
    return (uint64_t)word[1] << 32 | word[0];
}

static size_t window_size(const struct sample_params *p, int max_history)
{
    bool penalties = p->repetition_penalty != 1.0f || p->presence_penalty != 0.0f ||
                     p->frequency_penalty != 0.0f;
    if (!penalties)
        return 0;
    bool all = p->repeat_last_n < 0 || p->repeat_last_n > max_history;
    return (size_t)(all ? max_history : p->repeat_last_n);
}

static void check_params(const struct sample_params *p)
{
    /* Written so that NaN fails as well. */
    assert(p->temperature >= 0.0f && p->temperature <= FLT_MAX && p->top_k >= 0);
    assert(p->top_p >= 0.0f && p->top_p <= 1.0f);
    assert(p->min_p >= 0.0f && p->min_p <= 1.0f);
    assert(p->typical_p >= 0.0f && p->typical_p <= 1.0f);
    assert(p->repetition_penalty > 0.0f && p->repetition_penalty <= FLT_MAX);
    assert(fabsf(p->presence_penalty) <= FLT_MAX && fabsf(p->frequency_penalty) <= FLT_MAX);
    assert(p->repeat_last_n >= -1);
}

struct sampler *sampler_new(const struct sample_params *params, int n_vocab, int max_history,
                            struct err *e)
{
    check_params(params);
    assert(n_vocab > 0 && max_history >= 0);
    struct sampler *s = calloc(1, sizeof *s);
    if (!s) {
        err_no_memory(e);
        return NULL;
    }
    s->params = *params;
    s->n_vocab = n_vocab;
    s->n_window = window_size(params, max_history);
    size_t n = (size_t)n_vocab;
    size_t n_penalised = s->n_window > 0 ? n : 0;
    size_t n_bytes;
    s->candidates = checked_mul(n, 2 * sizeof *s->candidates, &n_bytes) ? malloc(n_bytes) : NULL;
    s->scores = arena_array(&s->arena, n_penalised, sizeof *s->scores);
    s->counts = arena_array(&s->arena, n_penalised, sizeof *s->counts);
    s->window = arena_array(&s->arena, s->n_window, sizeof *s->window);
    if (!s->candidates || !s->scores || !s->counts || !s->window) {
        err_no_memory(e);
        sampler_free(s);
        return NULL;
    }
    s->ranked = s->candidates + n;
    return s;
}

void sampler_free(struct sampler *s)
{
    if (s) {
        arena_free(&s->arena);
        free(s->candidates);
        free(s);
    }
}

/* ---- penalties ------------------------------------------------------------------------------- */

void sampler_accept(struct sampler *s, int32_t id)
{
    /* An id outside the vocabulary has no logit that could be penalised. */
    if (s->n_window > 0 && id >= 0 && id < s->n_vocab)
        s->window[s->n_accepted++ % s->n_window] = id;
}

static float penalised(const struct sample_params *p, float logit, int count)
{
    logit = logit > 0.0f ? logit / p->repetition_penalty : logit * p->repetition_penalty;
    return logit - (float)count * p->frequency_penalty - p->presence_penalty;
}

/* The logits, or a copy of them where tokens of the window have paid their penalty: each once,
 * however often it occurred. */
static const float *penalise(struct sampler *s, const float *logits)
{
    size_t n = min_size(s->n_accepted, s->n_window);
    if (n == 0)
        return logits;
    memcpy(s->scores, logits, (size_t)s->n_vocab * sizeof *logits);
    for (size_t i = 0; i < n; i++)
        s->counts[s->window[i]]++;
    for (size_t i = 0; i < n; i++) {
        int32_t id = s->window[i];
        if (s->counts[id] > 0) {
            s->scores[id] = penalised(&s->params, logits[id], s->counts[id]);
            s->counts[id] = 0;
        }
    }
    return s->scores;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* -INFINITY means: never. NaN passes no comparison. */
static float usable(float score)
{
    return score > FLT_MAX ? FLT_MAX : score >= -FLT_MAX ? score : -INFINITY;
}

/* Ranks behind every usable score, and before those of -INFINITY. */
static const struct candidate nobody = {.key = -INFINITY, .id = -1};

enum { LANES = 32 };

/* Whether one of LANES scores exceeds `least`: they are looked at side by side, and of a vocabulary
 * nearly all need no second look. */
static bool any_above(const float *scores, float least)
{
    int any = 0;
    for (int j = 0; j < LANES; j++)
        any |= scores[j] > least;
    return any != 0;
}

/* The first id from `id` on whose score exceeds `least`; else n_vocab. */
static int32_t next_above(const float *scores, int32_t id, int n_vocab, float least)
{
    while (id < n_vocab && !(scores[id] > least)) {
        id++;
        while (id % LANES == 0 && n_vocab - id >= LANES && !any_above(scores + id, least))
            id += LANES;
    }
    return id;
}

/* Of equals the first. */
static int32_t best_id(const float *scores, int n_vocab)
{
    float best = -INFINITY;
    int32_t first = 0;
    for (int32_t id = 0; (id = next_above(scores, id, n_vocab, best)) < n_vocab; id++) {
        if (usable(scores[id]) > best) {
            best = usable(scores[id]);
            first = id;
        }
    }
    return first;
}

static float best_logit(const struct candidate *c, size_t n)
{
    float best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        best = c[i].logit > best ? c[i].logit : best;
    return best;
}

/* Fills in the weights; returns their sum, which is at least 1. */
static double weigh(struct candidate *c, size_t n, float temperature)
{
    float best = best_logit(c, n);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        c[i].weight = expf((c[i].logit - best) / temperature);
        sum += c[i].weight;
    }
    return sum;
}

/* Total order: no two candidates are equal. */
static bool ranks_before(const struct candidate *a, const struct candidate *b)
{
    return a->key > b->key || (a->key == b->key && a->id < b->id);
}

/* Restores the heap whose worst candidate is heap[0], which alone may be out of place. */
static void sift(struct candidate *heap, size_t n)
{
    struct candidate moved = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && ranks_before(&heap[child], &heap[child + 1]))
            child++;
        if (!ranks_before(&moved, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Drops what ranks behind the cut; the others stay in their order. */
static size_t keep(struct candidate *c, size_t n, struct candidate cut)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct candidate candidate = c[i];
        c[n_kept] = candidate;
        n_kept += !ranks_before(&cut, &candidate);
    }
    return n_kept;
}

static struct candidate candidate_of(const float *scores, int32_t id)
{
    const float score = usable(scores[id]);
    return (struct candidate){.logit = score, .key = score, .id = id};
}

/* Candidates for the k best scores. Only what is better than the k-th best of those before it can
 * be one of them, and a heap knows that; a score that equals it has the larger id and stays out. */
static size_t collect_best(struct sampler *s, const float *scores, size_t k)
{
    struct candidate *heap = s->ranked;
    size_t n = 0;
    for (size_t i = 0; i < k; i++)
        heap[i] = nobody;
    for (int32_t id = 0; (id = next_above(scores, id, s->n_vocab, heap[0].key)) < s->n_vocab;
         id++) {
        const struct candidate c = candidate_of(scores, id);
        if (c.key > heap[0].key) { /* not so for an infinity that ties with FLT_MAX */
            s->candidates[n++] = heap[0] = c;
            sift(heap, k);
        }
    }
    return keep(s->candidates, n, heap[0]);
}

static size_t collect_all(struct sampler *s, const float *scores)
{
    size_t n = 0;
    for (int32_t id = 0; id < s->n_vocab; id++) {
        s->candidates[n] = candidate_of(scores, id);
        n += s->candidates[n].key > nobody.key;
    }
    return n;
}

/* ---- filters: each keeps some of candidates[0..n) and returns how many ----------------------- */

static void swap(struct candidate *a, struct candidate *b)
{
    struct candidate c = *a;
    *a = *b;
    *b = c;
}

/* Puts the median of three at c[n - 1], as the pivot. */
static void choose_pivot(struct candidate *c, size_t n)
{
    struct candidate *first = &c[0], *middle = &c[n / 2], *last = &c[n - 1];
    if (ranks_before(middle, first))
        swap(middle, first);
    if (ranks_before(last, first))
        swap(last, first);
    if (ranks_before(middle, last))
        swap(middle, last);
}

/* What ranks before the pivot c[n - 1] goes to the front; returns how many, and their weight. */
static size_t partition(struct candidate *c, size_t n, double *weight)
{
    struct candidate pivot = c[n - 1];
    size_t n_front = 0;
    *weight = 0.0;
    for (size_t i = 0; i + 1 < n; i++) {
        if (ranks_before(&c[i], &pivot)) {
            *weight += c[i].weight;
            swap(&c[n_front++], &c[i]);
        }
    }
    swap(&c[n_front], &c[n - 1]);
    return n_front;
}

/* The candidate at which the weights, added up from the best one down, reach the target. Hoare's
 * quickselect (1961) by weight instead of count: linear on average, and reorders c. */
static struct candidate find_cut(struct candidate *c, size_t n, double target)
{
    assert(target > 0.0);
    while (n > 1) {
        choose_pivot(c, n);
        double weight;
        size_t n_front = partition(c, n, &weight);
        if (weight >= target) {
            n = n_front;
            continue;
        }
        weight += c[n_front].weight;
        if (weight >= target || n_front + 1 == n)
            return c[n_front];
        target -= weight;
        c += n_front + 1;
        n -= n_front + 1;
    }
    return c[0];
}

/* Locally typical sampling, Meister et al. 2023: the least set whose probability exceeds p, of the
 * candidates whose surprise -ln(q) is closest to the entropy. */
static size_t keep_typical(struct sampler *s, size_t n)
{
    double p = (double)s->params.typical_p;
    if (p == 1.0)
        return n;
    struct candidate *c = s->candidates;
    double sum = weigh(c, n, 1.0f);
    float best = best_logit(c, n);
    double mean = 0.0; /* of logit - best; entropy is ln(sum) - mean, surprise ln(sum) - that */
    for (size_t i = 0; i < n; i++)
        mean += c[i].weight > 0.0f ? (double)c[i].weight * (double)(c[i].logit - best) / sum : 0.0;
    for (size_t i = 0; i < n; i++)
        c[i].key = (float)-fabs((double)(c[i].logit - best) - mean);
    memcpy(s->ranked, c, n * sizeof *c);
    /* "Exceeds", where find_cut stops at "reaches". */
    n = keep(c, n, find_cut(s->ranked, n, nextafter(p * sum, INFINITY)));
    for (size_t i = 0; i < n; i++)
        c[i].key = c[i].logit;
    return n;
}

/* Nucleus sampling, Holtzman et al. 2020: the least set of the most likely whose probability
 * reaches p; never an empty one, so 0 keeps the likeliest. */
static size_t keep_top_p(struct sampler *s, size_t n)
{
    double p = (double)s->params.top_p;
    if (p == 1.0)
        return n;
    struct candidate *c = s->candidates;
    double sum = weigh(c, n, 1.0f);
    /* All that are lighter than this weigh less than 1 - p together: the cut is not among them. */
    float least = (float)((1.0 - p) * sum / (double)n);
    size_t n_ranked = 0;
    for (size_t i = 0; i < n; i++) {
        s->ranked[n_ranked] = c[i];
        n_ranked += c[i].weight >= least;
    }
    return keep(c, n, find_cut(s->ranked, n_ranked, fmax(p * sum, DBL_MIN)));
}

/* Min-p, Nguyen et al. 2024: what is at least p times as likely as the likeliest. */
static size_t keep_min_p(struct sampler *s, size_t n)
{
    if (s->params.min_p == 0.0f)
        return n;
    float least = best_logit(s->candidates, n) + logf(s->params.min_p);
    return keep(s->candidates, n, (struct candidate){.key = least, .id = INT32_MAX});
}

/* ---- top-p and min-p of a whole vocabulary --------------------------------------------------- */

/* Candidates for all scores of at least `least`. Where these are few, LANES are left out at once;
 * where they are many, no branch depends on a single one. */
static size_t collect_from(struct sampler *s, const float *scores, float least)
{
    const float below = nextafterf(least, -INFINITY);
    size_t n = 0;
    for (int32_t id = 0, end; id < s->n_vocab; id = end) {
        end = id + min_int(s->n_vocab - id, LANES);
        if (end - id == LANES && !any_above(scores + id, below))
            continue;
        for (int32_t i = id; i < end; i++) {
            s->candidates[n] = candidate_of(scores, i);
            n += scores[i] > below;
        }
    }
    return n;
}

/* Logits are counted by their distance from the best; what is e^-32 as likely counts with all that
 * is less. */
enum { N_BUCKETS = 2048, BUCKETS_PER_UNIT = 64 };

static size_t bucket_of(float logit, float best)
{
    const float at = (best - logit) * BUCKETS_PER_UNIT;
    return at < N_BUCKETS - 1 ? (size_t)at : N_BUCKETS - 1;
}

/* The bucket with the last candidate that top-p keeps; *target gets what it has to contribute. */
static size_t top_p_bucket(const struct sampler *s, const float *scores, float best, double *target)
{
    double weight[N_BUCKETS] = {0}, sum = 0.0;
    for (int32_t id = 0; id < s->n_vocab; id++) {
        const float logit = usable(scores[id]), w = expf(logit - best);
        sum += w;
        weight[bucket_of(logit, best)] += w;
    }
    size_t at = 0;
    *target = fmax((double)s->params.top_p * sum, DBL_MIN);
    for (; at < N_BUCKETS - 1 && weight[at] < *target; at++)
        *target -= weight[at];
    return at;
}

/* Ranks only what is in one bucket with the cut. What is less than `least` is left out as well. */
static size_t collect_top_p(struct sampler *s, const float *scores, float best, float least)
{
    double target;
    const size_t bucket = top_p_bucket(s, scores, best, &target);
    float low = -FLT_MAX;
    if (bucket < N_BUCKETS - 1)
        low = best - (float)(bucket + 2) / BUCKETS_PER_UNIT; /* below the bucket for certain */
    const size_t n = collect_from(s, scores, fmaxf(low, least));
    size_t n_ranked = 0;
    for (size_t i = 0; i < n; i++) {
        s->ranked[n_ranked] = s->candidates[i];
        n_ranked += bucket_of(s->candidates[i].logit, best) == bucket;
    }
    for (size_t i = 0; i < n_ranked; i++)
        s->ranked[i].weight = expf(s->ranked[i].logit - best);
    return n_ranked > 0 ? keep(s->candidates, n, find_cut(s->ranked, n_ranked, target)) : n;
}

/* What collect_all and the filters would leave, without candidates for what they would drop. */
static size_t collect_likely(struct sampler *s, const float *scores)
{
    const float best = usable(scores[best_id(scores, s->n_vocab)]);
    if (best < -FLT_MAX)
        return 0;
    const float least = fmaxf(best + logf(s->params.min_p), -FLT_MAX);
    return s->params.top_p < 1.0f ? collect_top_p(s, scores, best, least)
                                  : collect_from(s, scores, least);
}

/* Walks the candidates in the order of their ids until u of the whole weight is passed. */
static int32_t draw(struct sampler *s, size_t n, double u)
{
    struct candidate *c = s->candidates;
    double target = u * weigh(c, n, s->params.temperature);
    double passed = 0.0;
    int32_t last = c[0].id;
    for (size_t i = 0; i < n; i++) {
        if (c[i].weight > 0.0f) {
            last = c[i].id;
            passed += c[i].weight;
            if (passed > target)
                break;
        }
    }
    return last; /* also where rounding left the target at the very end */
}

/* What all filters leave. */
static size_t candidates(struct sampler *s, const float *scores)
{
    const bool all = s->params.top_k == 0 || s->params.top_k >= s->n_vocab;
    const bool cuts = s->params.top_p < 1.0f || s->params.min_p > 0.0f;
    if (all && cuts && s->params.typical_p == 1.0f)
        return collect_likely(s, scores);
    size_t n = all ? collect_all(s, scores) : collect_best(s, scores, (size_t)s->params.top_k);
    if (n > 0) {
        n = keep_typical(s, n);
        n = keep_top_p(s, n);
        n = keep_min_p(s, n);
    }
    return n;
}

int32_t sampler_next(struct sampler *s, const float *logits, uint64_t position)
{
    const float *scores = penalise(s, logits);
    if (s->params.temperature == 0.0f)
        return best_id(scores, s->n_vocab);
    const size_t n = candidates(s, scores);
    return n > 0 ? draw(s, n, philox_uniform(s->params.seed, position)) : 0;
}

bool sample_is_sound(const float *logits, int32_t drawn)
{
    return isfinite(logits[drawn]);
}

bool sample_not_finite(struct err *e)
{
    return err_set(e, ERR_RUNTIME, "the model computes numbers that are not finite");
}
