/*
 * The sampler three times over: against values worked out by hand, against a plain implementation
 * of the same definitions (doubles, everything sorted, nothing clever), and against statistics.
 * Random numbers: Philox against the vectors of its authors.
 */
#include "tests/check.h"

#include "core/philox.h"
#include "core/sample.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Nothing but plain sampling at temperature 1. */
static const struct sample_params plain = {
    .temperature = 1.0f,
    .top_p = 1.0f,
    .typical_p = 1.0f,
    .repetition_penalty = 1.0f,
    .seed = 1,
};

static struct sampler *make(const struct sample_params *params, int n_vocab, int max_history)
{
    struct err e;
    struct sampler *s = sampler_new(params, n_vocab, max_history, &e);
    assert_non_null(s);
    return s;
}

/* ---- by hand --------------------------------------------------------------------------------- */

enum { N_HAND = 5 };
static const double hand_probability[N_HAND] = {0.125, 0.5, 0.0625, 0.25, 0.0625};

/* Which of the five are ever drawn, as bits, in 3000 draws: the rarest is missed with a chance of
 * 1e-84. */
static unsigned drawn(const struct sample_params *params, const float *logits)
{
    struct sampler *s = make(params, N_HAND, 0);
    unsigned bits = 0;
    for (uint64_t position = 0; position < 3000; position++)
        bits |= 1u << sampler_next(s, logits, position);
    sampler_free(s);
    return bits;
}

static void hand_logits(float *logits)
{
    for (int i = 0; i < N_HAND; i++)
        logits[i] = (float)log(hand_probability[i]) + 3.0f;
}

enum { P2 = 1 << 1, P4 = 1 << 3, P8 = 1 << 0, P16A = 1 << 2, P16B = 1 << 4 };

static void top_k_by_hand(void **state)
{
    (void)state;
    static const unsigned expected[] = {P2 | P4 | P8 | P16A | P16B,
                                        P2,
                                        P2 | P4,
                                        P2 | P4 | P8,
                                        P2 | P4 | P8 | P16A /* the smaller id of the two */,
                                        P2 | P4 | P8 | P16A | P16B,
                                        P2 | P4 | P8 | P16A | P16B};
    float logits[N_HAND];
    hand_logits(logits);
    for (size_t k = 0; k < ARRAY_LEN(expected); k++) {
        struct sample_params p = plain;
        p.top_k = (int)k;
        assert_int_equal(drawn(&p, logits), expected[k]);
    }
}

static void top_p_by_hand(void **state)
{
    (void)state;
    static const struct {
        float top_p;
        unsigned expected;
    } cases[] = {
        {0.0f, P2},
        {0.01f, P2},
        {0.499f, P2},
        {0.501f, P2 | P4},
        {0.74f, P2 | P4},
        {0.76f, P2 | P4 | P8},
        {0.88f, P2 | P4 | P8 | P16A},
        {0.93f, P2 | P4 | P8 | P16A},
        {0.94f, P2 | P4 | P8 | P16A | P16B},
        {1.0f, P2 | P4 | P8 | P16A | P16B},
    };
    float logits[N_HAND];
    hand_logits(logits);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample_params p = plain;
        p.top_p = cases[i].top_p;
        assert_int_equal(drawn(&p, logits), cases[i].expected);
    }
}

static void min_p_by_hand(void **state)
{
    (void)state;
    static const struct {
        float min_p;
        unsigned expected;
    } cases[] = {
        {1.0f, P2},       {0.51f, P2},           {0.49f, P2 | P4},
        {0.26f, P2 | P4}, {0.24f, P2 | P4 | P8}, {0.12f, P2 | P4 | P8 | P16A | P16B},
    };
    float logits[N_HAND];
    hand_logits(logits);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample_params p = plain;
        p.min_p = cases[i].min_p;
        assert_int_equal(drawn(&p, logits), cases[i].expected);
    }
}

/* In bits: surprise 1, 2, 3, 4, 4; entropy 1.875; so the order is 1/4, 1/2, 1/8, 1/16, 1/16. */
static void typical_p_by_hand(void **state)
{
    (void)state;
    static const struct {
        float typical_p;
        unsigned expected;
    } cases[] = {
        {0.0f, P4},
        {0.2f, P4},
        {0.26f, P4 | P2},
        {0.74f, P4 | P2},
        {0.76f, P4 | P2 | P8},
        {0.9f, P4 | P2 | P8 | P16A},
        {0.95f, P4 | P2 | P8 | P16A | P16B},
    };
    float logits[N_HAND];
    hand_logits(logits);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample_params p = plain;
        p.typical_p = cases[i].typical_p;
        assert_int_equal(drawn(&p, logits), cases[i].expected);
    }
}

/* Each filter sees what the one before has left: of {1/2, 1/4} alone 1/2 is 0.67, of all it is 0.5;
 * and where typical-p has dropped 1/2, min-p measures against 1/4. */
static void filters_follow_each_other(void **state)
{
    (void)state;
    float logits[N_HAND];
    hand_logits(logits);
    struct sample_params p = plain;
    p.top_k = 2;
    p.top_p = 0.6f;
    assert_int_equal(drawn(&p, logits), P2);
    p.top_k = 0;
    assert_int_equal(drawn(&p, logits), P2 | P4);
    p = plain;
    p.typical_p = 0.2f;
    p.min_p = 1.0f;
    assert_int_equal(drawn(&p, logits), P4);
    /* Temperature comes last: however hot, the filters see the cold distribution. */
    p = plain;
    p.temperature = 50.0f;
    p.top_p = 0.74f;
    assert_int_equal(drawn(&p, logits), P2 | P4);
}

static void temperature_by_hand(void **state)
{
    (void)state;
    const float logits[2] = {logf(0.3f), logf(0.7f)};
    static const struct {
        float temperature;
        double first; /* probability of id 0: 0.3^(1/T) / (0.3^(1/T) + 0.7^(1/T)) */
    } cases[] = {
        {1.0f, 0.3}, {0.5f, 0.09 / (0.09 + 0.49)}, {1e-4f, 0.0}, {1e-44f, 0.0}, {3e38f, 0.5}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample_params p = plain;
        p.temperature = cases[i].temperature;
        struct sampler *s = make(&p, 2, 0);
        for (uint64_t position = 0; position < 1000; position++) {
            double u = philox_uniform(p.seed, position);
            if (fabs(u - cases[i].first) > 1e-5)
                assert_int_equal(sampler_next(s, logits, position), u < cases[i].first ? 0 : 1);
        }
        sampler_free(s);
    }
}

/* ---- penalties, by hand ---------------------------------------------------------------------- */

/* The greedy choice behind the tokens of `history`, which ends with -1. */
static int32_t choice_after(const struct sample_params *params, const int32_t *history,
                            int max_history, const float *logits)
{
    struct sample_params p = *params;
    p.temperature = 0.0f;
    struct sampler *s = make(&p, 3, max_history);
    for (; *history >= 0; history++)
        sampler_accept(s, *history);
    int32_t id = sampler_next(s, logits, 0);
    assert_int_equal(sampler_next(s, logits, 1), id); /* asking changes nothing */
    sampler_free(s);
    return id;
}

static void repetition_penalty_by_hand(void **state)
{
    (void)state;
    struct sample_params p = plain;
    p.repetition_penalty = 1.25f;
    p.repeat_last_n = -1;
    const int32_t none[] = {-1}, once[] = {0, -1}, thrice[] = {0, 0, 0, -1};
    /* 2 / 1.25 = 1.6, whether once or three times. */
    assert_int_equal(choice_after(&p, none, 9, (const float[]){2.0f, 1.7f, 0.0f}), 0);
    assert_int_equal(choice_after(&p, once, 9, (const float[]){2.0f, 1.7f, 0.0f}), 1);
    assert_int_equal(choice_after(&p, once, 9, (const float[]){2.0f, 1.5f, 0.0f}), 0);
    assert_int_equal(choice_after(&p, thrice, 9, (const float[]){2.0f, 1.5f, 0.0f}), 0);
    /* -1 * 1.25 */
    assert_int_equal(choice_after(&p, once, 9, (const float[]){-1.0f, -1.2f, -9.0f}), 1);
    assert_int_equal(choice_after(&p, once, 9, (const float[]){-1.0f, -1.3f, -9.0f}), 0);
    p.repetition_penalty = 0.5f; /* below 1 it rewards */
    assert_int_equal(choice_after(&p, once, 9, (const float[]){1.0f, 1.9f, 0.0f}), 0);
}

static void additive_penalties_by_hand(void **state)
{
    (void)state;
    const int32_t once[] = {0, -1}, thrice[] = {0, 0, 0, -1};
    struct sample_params p = plain;
    p.repeat_last_n = -1;
    p.presence_penalty = 0.5f;
    assert_int_equal(choice_after(&p, once, 9, (const float[]){2.0f, 1.6f, 0.0f}), 1);
    assert_int_equal(choice_after(&p, thrice, 9, (const float[]){2.0f, 1.4f, 0.0f}), 0);
    p.presence_penalty = 0.0f;
    p.frequency_penalty = 0.25f;
    assert_int_equal(choice_after(&p, once, 9, (const float[]){2.0f, 1.7f, 0.0f}), 0);
    assert_int_equal(choice_after(&p, thrice, 9, (const float[]){2.0f, 1.3f, 0.0f}), 1);
    /* All at once: 2 / 1.25 - 3 * 0.25 - 0.5 = 0.35 */
    p.repetition_penalty = 1.25f;
    p.presence_penalty = 0.5f;
    assert_int_equal(choice_after(&p, thrice, 9, (const float[]){2.0f, 0.36f, 0.0f}), 1);
    assert_int_equal(choice_after(&p, thrice, 9, (const float[]){2.0f, 0.34f, 0.0f}), 0);
}

static void penalties_look_back_so_far(void **state)
{
    (void)state;
    const float logits[] = {2.0f, 1.9f, 1.8f};
    const int32_t history[] = {0, 1, 1, -1};
    static const struct {
        int repeat_last_n, max_history;
        int32_t expected;
    } cases[] = {
        {0, 9, 0},  /* none */
        {1, 9, 0},  /* 1 */
        {2, 9, 0},  /* 1, 1 */
        {3, 9, 2},  /* 0, 1, 1 */
        {9, 9, 2},  /* all, though there are fewer */
        {-1, 9, 2}, /* all */
        {-1, 2, 0}, /* told of more than announced: the oldest is forgotten */
        {9, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample_params p = plain;
        p.presence_penalty = 1.0f;
        p.repeat_last_n = cases[i].repeat_last_n;
        assert_int_equal(choice_after(&p, history, cases[i].max_history, logits),
                         cases[i].expected);
    }
}

static void foreign_ids_are_ignored(void **state)
{
    (void)state;
    struct sample_params p = plain;
    p.temperature = 0.0f;
    p.presence_penalty = 1.0f;
    p.repeat_last_n = -1;
    struct sampler *s = make(&p, 2, 8);
    sampler_accept(s, -1);
    sampler_accept(s, 2);
    sampler_accept(s, INT32_MAX);
    assert_int_equal(sampler_next(s, (const float[]){0.0f, 0.5f}, 0), 1);
    sampler_accept(s, 1);
    assert_int_equal(sampler_next(s, (const float[]){0.0f, 0.5f}, 0), 0);
    sampler_free(s);
}

/* ---- ties and oddities ----------------------------------------------------------------------- */

static void ties_go_to_the_smaller_id(void **state)
{
    (void)state;
    const float logits[N_HAND] = {-1.0f, 2.0f, 2.0f, 2.0f, 2.0f};
    struct sample_params p = plain;
    p.temperature = 0.0f;
    assert_int_equal(drawn(&p, logits), 1 << 1);
    p = plain;
    p.top_k = 1;
    assert_int_equal(drawn(&p, logits), 1 << 1);
    p.top_k = 3;
    assert_int_equal(drawn(&p, logits), 1 << 1 | 1 << 2 | 1 << 3);
    p = plain;
    p.top_p = 0.4f;
    assert_int_equal(drawn(&p, logits), 1 << 1 | 1 << 2);
    p = plain;
    p.typical_p = 0.4f;
    assert_int_equal(drawn(&p, logits), 1 << 1 | 1 << 2);
}

/* Of two that are equal, one reaches a half, and only both exceed it. */
static void reaching_and_exceeding(void **state)
{
    (void)state;
    const float never = -INFINITY;
    const float logits[N_HAND] = {never, 0.0f, never, 0.0f, never};
    struct sample_params p = plain;
    p.top_p = 0.5f;
    assert_int_equal(drawn(&p, logits), 1 << 1);
    p = plain;
    p.typical_p = 0.5f;
    assert_int_equal(drawn(&p, logits), 1 << 1 | 1 << 3);
}

static void numbers_that_are_none(void **state)
{
    (void)state;
    const float never = -INFINITY;
    static const struct sample_params hot = {.temperature = 2.0f,
                                             .top_p = 0.99f,
                                             .typical_p = 0.99f,
                                             .repetition_penalty = 1.0f,
                                             .min_p = 0.01f,
                                             .top_k = 4};
    struct sample_params greedy = plain;
    greedy.temperature = 0.0f;
    const struct sample_params *const all[] = {&plain, &hot, &greedy, &sample_defaults};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const struct sample_params *p = all[i];
        const float nan = NAN, inf = INFINITY;
        assert_int_equal(drawn(p, (const float[]){nan, nan, nan, nan, nan}), 1 << 0);
        assert_int_equal(drawn(p, (const float[]){never, never, never, never, never}), 1 << 0);
        assert_int_equal(drawn(p, (const float[]){never, nan, never, -7.0f, nan}), 1 << 3);
        assert_int_equal(drawn(p, (const float[]){never, nan, 0.0f, inf, -3e38f}), 1 << 3);
    }
    /* Two infinities tie. */
    const float two[] = {0.0f, INFINITY, 1.0f, INFINITY, NAN};
    assert_int_equal(drawn(&plain, two), 1 << 1 | 1 << 3);
    assert_int_equal(drawn(&greedy, two), 1 << 1);
    struct sample_params best = plain;
    best.top_k = 1;
    assert_int_equal(drawn(&best, two), 1 << 1);
}

/* The first that no other exceeds, whatever stands beside it: NaNs and -inf are never drawn, and no
 * score is above the largest finite one. */
static void the_likeliest_of_many(void **state)
{
    (void)state;
    enum { MOST = 70 };
    static const float values[] = {-INFINITY, NAN, -3e38f, -1, 0, 1, 2, FLT_MAX, INFINITY};
    struct sample_params greedy = plain;
    greedy.temperature = 0.0f;
    uint64_t at = 0;
    for (int n = 1; n <= MOST; n++) {
        struct sampler *s = make(&greedy, n, 0);
        for (int turn = 0; turn < 40; turn++) {
            float logits[MOST];
            const double n_values = turn % 2 ? 7 : ARRAY_LEN(values); /* mostly without the top */
            int best = 0;
            float score = -INFINITY;
            for (int i = 0; i < n; i++) {
                logits[i] = values[(size_t)(philox_uniform(11, at++) * n_values)];
                const float usable = fminf(logits[i], FLT_MAX);
                if (!isnan(logits[i]) && usable > score) {
                    score = usable;
                    best = i;
                }
            }
            assert_int_equal(sampler_next(s, logits, 0), best);
        }
        sampler_free(s);
    }
}

static void the_logits_stay_as_they_are(void **state)
{
    (void)state;
    struct sample_params p = sample_defaults;
    p.repetition_penalty = 1.5f;
    p.typical_p = 0.9f;
    const float before[] = {1.0f, -2.0f, 3.0f, NAN};
    float logits[4];
    memcpy(logits, before, sizeof logits);
    struct sampler *s = make(&p, 4, 4);
    sampler_accept(s, 2);
    sampler_next(s, logits, 0);
    assert_memory_equal(logits, before, sizeof before);
    sampler_free(s);
}

static void one_word_vocabularies(void **state)
{
    (void)state;
    struct sampler *s = make(&sample_defaults, 1, 0);
    assert_int_equal(sampler_next(s, (const float[]){-5.0f}, 0), 0);
    sampler_free(s);
    sampler_free(NULL);
}

/* ---- the plain implementation ---------------------------------------------------------------- */

enum { N_MAX = 300 };

struct naive {
    int n;
    double logit[N_MAX];
    double p[N_MAX]; /* 0 where a filter has dropped it */
};

static const double *sort_by;

static int by_value_then_id(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    if (sort_by[x] != sort_by[y])
        return sort_by[x] > sort_by[y] ? -1 : 1;
    return x - y;
}

static void naive_softmax(struct naive *v, double temperature)
{
    double best = -INFINITY, sum = 0.0;
    for (int i = 0; i < v->n; i++)
        best = v->p[i] > 0.0 && v->logit[i] > best ? v->logit[i] : best;
    for (int i = 0; i < v->n; i++) {
        v->p[i] = v->p[i] > 0.0 ? exp((v->logit[i] - best) / temperature) : 0.0;
        sum += v->p[i];
    }
    for (int i = 0; i < v->n; i++)
        v->p[i] /= sum;
}

/* Keeps the first of the order in which `value` falls: `count` of them, or until their probability
 * has come to `mass`. */
static void naive_keep(struct naive *v, const double *value, int count, double mass)
{
    int order[N_MAX];
    for (int i = 0; i < v->n; i++)
        order[i] = i;
    sort_by = value;
    qsort(order, (size_t)v->n, sizeof order[0], by_value_then_id);
    double sum = 0.0;
    for (int i = 0; i < v->n; i++) {
        double p = v->p[order[i]];
        if (i >= count || sum >= mass)
            v->p[order[i]] = 0.0;
        sum += p;
    }
}

static void naive_filter(struct naive *v, const struct sample_params *p)
{
    naive_softmax(v, 1.0);
    if (p->top_k > 0) {
        naive_keep(v, v->logit, p->top_k, 2.0);
        naive_softmax(v, 1.0);
    }
    if (p->typical_p < 1.0f) {
        double entropy = 0.0, closeness[N_MAX];
        for (int i = 0; i < v->n; i++)
            entropy -= v->p[i] > 0.0 ? v->p[i] * log(v->p[i]) : 0.0;
        for (int i = 0; i < v->n; i++)
            closeness[i] = v->p[i] > 0.0 ? -fabs(-log(v->p[i]) - entropy) : -INFINITY;
        naive_keep(v, closeness, v->n, (double)p->typical_p);
        naive_softmax(v, 1.0);
    }
    if (p->top_p < 1.0f) {
        double kept[N_MAX];
        for (int i = 0; i < v->n; i++)
            kept[i] = v->p[i] > 0.0 ? v->logit[i] : -INFINITY;
        naive_keep(v, kept, v->n, (double)p->top_p);
        naive_softmax(v, 1.0);
    }
    double best = 0.0;
    for (int i = 0; i < v->n; i++)
        best = v->p[i] > best ? v->p[i] : best;
    for (int i = 0; i < v->n; i++)
        v->p[i] = v->p[i] >= (double)p->min_p * best ? v->p[i] : 0.0;
    naive_softmax(v, (double)p->temperature);
}

static void naive_penalise(struct naive *v, const struct sample_params *p, const int32_t *history,
                           int n_history)
{
    int last = p->repeat_last_n < 0 ? n_history : p->repeat_last_n;
    for (int i = 0; i < v->n; i++) {
        int count = 0;
        for (int j = n_history > last ? n_history - last : 0; j < n_history; j++)
            count += history[j] == i;
        if (count > 0) {
            v->logit[i] *= v->logit[i] > 0.0 ? 1.0 / (double)p->repetition_penalty
                                             : (double)p->repetition_penalty;
            v->logit[i] -= count * (double)p->frequency_penalty + (double)p->presence_penalty;
        }
    }
}

/* ---- against the plain implementation -------------------------------------------------------- */

static uint64_t stream;

static double uniform(double low, double high)
{
    return low + (high - low) * philox_uniform(20240607, stream++);
}

static int maybe(double chance)
{
    return uniform(0.0, 1.0) < chance;
}

static struct sample_params random_params(int n)
{
    return (struct sample_params){
        .temperature = (float)uniform(0.2, 2.0),
        .top_k = maybe(0.5) ? (int)uniform(1.0, n + 2.0) : 0,
        .top_p = maybe(0.5) ? (float)uniform(0.05, 0.999) : 1.0f,
        .min_p = maybe(0.5) ? (float)uniform(0.0, 0.3) : 0.0f,
        .typical_p = maybe(0.4) ? (float)uniform(0.05, 0.999) : 1.0f,
        .repetition_penalty = maybe(0.4) ? (float)uniform(0.7, 1.6) : 1.0f,
        .presence_penalty = maybe(0.3) ? (float)uniform(-1.0, 1.0) : 0.0f,
        .frequency_penalty = maybe(0.3) ? (float)uniform(-0.3, 0.3) : 0.0f,
        .repeat_last_n = maybe(0.5) ? -1 : (int)uniform(0.0, 60.0),
        .seed = stream,
    };
}

static void random_logits(float *logits, int n)
{
    double spread = uniform(0.1, 6.0);
    bool ties = maybe(0.3);
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < 6; j++)
            sum += uniform(-1.0, 1.0);
        logits[i] = (float)(ties ? round(sum * spread) : sum * spread);
    }
}

/* The draw that u stands for, and how far u is from being another. */
static int naive_draw(const struct naive *v, double u, double *margin)
{
    double sum = 0.0;
    int id = -1;
    *margin = 1.0;
    for (int i = 0; i < v->n; i++) {
        sum += v->p[i];
        if (v->p[i] > 0.0) {
            *margin = fmin(*margin, fabs(sum - u));
            id = id < 0 && sum > u ? i : id;
        }
    }
    return id;
}

static void agrees_with_the_plain_implementation(void **state)
{
    (void)state;
    static struct naive v;
    for (int round = 0; round < 1500; round++) {
        uint64_t first = stream;
        int n = (int)uniform(2.0, N_MAX + 0.99);
        int n_history = (int)uniform(0.0, 100.0);
        struct sample_params p = random_params(n);
        float logits[N_MAX];
        random_logits(logits, n);
        int32_t history[100];
        struct sampler *s = make(&p, n, 100);
        for (int i = 0; i < n_history; i++) {
            history[i] = (int32_t)uniform(0.0, n);
            sampler_accept(s, history[i]);
        }
        v.n = n;
        for (int i = 0; i < n; i++) {
            v.logit[i] = (double)logits[i];
            v.p[i] = 1.0;
        }
        naive_penalise(&v, &p, history, n_history);
        naive_filter(&v, &p);
        for (uint64_t position = 0; position < 20; position++) {
            double margin;
            int expected = naive_draw(&v, philox_uniform(p.seed, position), &margin);
            int id = sampler_next(s, logits, position);
            if (id != expected && margin > 1e-5) {
                fail_msg("round %d (stream %llu), position %d: %d, expected %d", round,
                         (unsigned long long)first, (int)position, id, expected);
            }
        }
        sampler_free(s);
    }
}

/* Top-k that drops only what is never drawn goes the way that ranks candidates; without it no
 * candidates are made of what top-p and min-p drop. The draws are the same, however far the logits
 * are from each other. */
static void cuts_do_not_depend_on_the_way(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    static float logits[MOST];
    static const double spreads[] = {1e-3, 0.1, 1, 3, 20, 1e6, 1e37};
    static const float top_ps[] = {0.0f, 0.3f, 0.9f, 0.99f, 0.99999994f, 1.0f};
    static const float min_ps[] = {0.0f, 1e-20f, 0.05f, 1.0f};
    for (int round = 0; round < 2000; round++) {
        const int n = (int)uniform(2.0, MOST + 0.99);
        const double spread = spreads[(size_t)uniform(0, ARRAY_LEN(spreads))];
        const double step = maybe(0.3) ? spread / 4 : 0;
        for (int i = 0; i < n; i++) {
            const double x = spread * (uniform(-1, 1) + uniform(-1, 1) + uniform(-1, 1));
            logits[i] = (float)(step > 0 ? step * nearbyint(x / step) : x);
        }
        logits[(int)uniform(0, n)] = -INFINITY;
        struct sample_params p = {
            .temperature = (float)uniform(0.2, 3.0),
            .top_p = top_ps[(size_t)uniform(0, ARRAY_LEN(top_ps))],
            .min_p = min_ps[(size_t)uniform(0, ARRAY_LEN(min_ps))],
            .typical_p = 1.0f,
            .repetition_penalty = 1.0f,
            .seed = stream,
        };
        struct sampler *all = make(&p, n, 0);
        p.top_k = n - 1;
        struct sampler *ranked = make(&p, n, 0);
        for (uint64_t position = 0; position < 8; position++) {
            assert_int_equal(sampler_next(all, logits, position),
                             sampler_next(ranked, logits, position));
        }
        sampler_free(all);
        sampler_free(ranked);
    }
}

/* ---- draws ----------------------------------------------------------------------------------- */

static void frequencies_follow_the_probabilities(void **state)
{
    (void)state;
    float logits[N_HAND];
    hand_logits(logits);
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct sample_params p = plain;
        p.seed = seed << 40 | seed;
        struct sampler *s = make(&p, N_HAND, 0);
        enum { N_DRAWS = 40000 };
        int count[N_HAND] = {0};
        for (uint64_t position = 0; position < N_DRAWS; position++)
            count[sampler_next(s, logits, position)]++;
        double chi_square = 0.0;
        for (int i = 0; i < N_HAND; i++) {
            double expected = N_DRAWS * hand_probability[i];
            chi_square += (count[i] - expected) * (count[i] - expected) / expected;
        }
        assert_true(chi_square < 18.5); /* 4 degrees of freedom: exceeded once in 1000 */
        sampler_free(s);
    }
}

static void draws_depend_on_seed_and_position_alone(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float logits[N];
    static int32_t forwards[64];
    for (int i = 0; i < N; i++) /* none likely enough to be drawn often */
        logits[i] = (float)uniform(-1.0, 1.0);
    struct sample_params p = plain;
    struct sampler *s = make(&p, N, 0);
    for (uint64_t i = 0; i < ARRAY_LEN(forwards); i++)
        forwards[i] = sampler_next(s, logits, i);
    for (uint64_t i = ARRAY_LEN(forwards); i-- > 0;)
        assert_int_equal(sampler_next(s, logits, i), forwards[i]);
    sampler_free(s);
    p.seed = UINT64_C(1) << 63 | 1; /* all of its 64 bits count */
    s = make(&p, N, 0);
    int n_same = 0;
    for (uint64_t i = 0; i < ARRAY_LEN(forwards); i++)
        n_same += sampler_next(s, logits, i) == forwards[i];
    assert_true(n_same < (int)ARRAY_LEN(forwards) / 2);
    sampler_free(s);
}

/* A filter that drops nothing must not change the text. */
static void an_idle_filter_changes_nothing(void **state)
{
    (void)state;
    enum { N = 500 };
    static float logits[N];
    random_logits(logits, N);
    struct sample_params idle = plain;
    idle.top_k = N;
    idle.min_p = 1e-30f;
    struct sampler *with = make(&idle, N, 0), *without = make(&plain, N, 0);
    for (uint64_t position = 0; position < 200; position++) {
        assert_int_equal(sampler_next(with, logits, position),
                         sampler_next(without, logits, position));
    }
    sampler_free(with);
    sampler_free(without);
}

/* ---- Philox ---------------------------------------------------------------------------------- */

/* Random123, tests/kat_vectors, philox4x32 10. */
static void philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        uint32_t out[4];
        philox(vectors[i].counter, vectors[i].key, out);
        assert_memory_equal(out, vectors[i].out, sizeof out);
    }
}

static void uniform_numbers(void **state)
{
    (void)state;
    assert_true(philox_uniform(0, 0) == (double)(UINT64_C(0xe169c58d6627e8d5) >> 11) * 0x1p-53);
    double sum = 0.0, squares = 0.0;
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        double u = philox_uniform(7, i);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        squares += u * u;
    }
    assert_true(fabs(sum / N - 0.5) < 0.003); /* three standard deviations */
    assert_true(fabs(squares / N - 1.0 / 3.0) < 0.003);
    assert_true(philox_uniform(7, 1) != philox_uniform(7, UINT64_C(1) << 32 | 1));
    assert_true(philox_uniform(7, 1) != philox_uniform(UINT64_C(1) << 32 | 7, 1));
}

/* Values of an implementation in Python, of the papers' Philox and FNV-1a. */
static void seeds_of_many_texts(void **state)
{
    (void)state;
    assert_true(sample_seed(0, "1", 1) == UINT64_C(0xee4b14edd1d05cdc));
    assert_true(sample_seed(5, "\"id 1\"", 6) == UINT64_C(0x51b38b83ced5df1c));
    assert_true(sample_seed(UINT64_MAX, "", 0) == UINT64_C(0xff9319f064330074));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_k_by_hand),
        cmocka_unit_test(top_p_by_hand),
        cmocka_unit_test(min_p_by_hand),
        cmocka_unit_test(typical_p_by_hand),
        cmocka_unit_test(filters_follow_each_other),
        cmocka_unit_test(temperature_by_hand),
        cmocka_unit_test(repetition_penalty_by_hand),
        cmocka_unit_test(additive_penalties_by_hand),
        cmocka_unit_test(penalties_look_back_so_far),
        cmocka_unit_test(foreign_ids_are_ignored),
        cmocka_unit_test(ties_go_to_the_smaller_id),
        cmocka_unit_test(reaching_and_exceeding),
        cmocka_unit_test(numbers_that_are_none),
        cmocka_unit_test(the_likeliest_of_many),
        cmocka_unit_test(the_logits_stay_as_they_are),
        cmocka_unit_test(one_word_vocabularies),
        cmocka_unit_test(agrees_with_the_plain_implementation),
        cmocka_unit_test(cuts_do_not_depend_on_the_way),
        cmocka_unit_test(frequencies_follow_the_probabilities),
        cmocka_unit_test(draws_depend_on_seed_and_position_alone),
        cmocka_unit_test(an_idle_filter_changes_nothing),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(uniform_numbers),
        cmocka_unit_test(seeds_of_many_texts),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
