/*
 * Logits -> the next token. Order, as users of llama.cpp know it: penalties, top-k, typical-p,
 * top-p, min-p, then temperature and one draw. Ties are broken by the smaller id; the random number
 * of a draw is a function of (seed, sequence, position) alone, so a text depends neither on threads
 * nor on what else is running.
 */
#ifndef CORE_SAMPLE_H
#define CORE_SAMPLE_H

#include "core/base.h"
#include "core/err.h"

struct sample_params {
    float temperature; /* 0: greedy, the filters below do nothing */
    int top_k;         /* 0: off */
    float top_p;       /* 1: off; 0 keeps one */
    float min_p;       /* 0: off */
    float typical_p;   /* 1: off; 0 keeps one */
    /* 1: off. Keskar et al. 2019: logit / p if positive, else logit * p. */
    float repetition_penalty;
    float presence_penalty;  /* 0: off */
    float frequency_penalty; /* 0: off */
    int repeat_last_n;       /* tokens that penalties look back on; 0: none, -1: all */
    uint64_t seed;
};

/* The defaults of the command line: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, nothing
 * else. */
extern const struct sample_params sample_defaults;

/* A seed for one of many texts that have names, from the seed of them all: the same name and seed
 * give the same, whatever else is running. It is the first half of Philox4x32-10 with the counter
 * (FNV-1a of the name, 0, 1) and the key `seed`. */
uint64_t sample_seed(uint64_t seed, const char *name, size_t n);

struct sampler; /* params, the history for penalties, and working memory for one vocabulary */

/* max_history: the most tokens that sampler_accept will be told of. */
struct sampler *sampler_new(const struct sample_params *params, int n_vocab, int max_history,
                            struct err *e);
void sampler_free(struct sampler *s);

/* Tells of a token of the text, prompt or generated, for the penalties. An id outside the
 * vocabulary has no logit to penalise and is ignored. */
void sampler_accept(struct sampler *s, int32_t id);

/* Draws the token that stands at `position` of the sequence. logits[n_vocab] is not changed. NaN
 * counts as minus infinity and infinity as the largest float; where all are minus infinity the
 * answer is the first id. Does not accept the token. */
int32_t sampler_next(struct sampler *s, const float *logits, uint64_t position);

/* Whether the draw means anything. A token whose own logit is not finite is drawn only where all
 * are NaN or minus infinity, or one is infinite: to look at it is to look at all. */
bool sample_is_sound(const float *logits, int32_t drawn);

/* The sentence for logits that say nothing (ERR_RUNTIME). Returns false. */
bool sample_not_finite(struct err *e);

#endif
