/*
 * How likely logits make a token, and which tokens they make likeliest. Logits are taken as they
 * are: temperature and filters belong to the sampler.
 */
#ifndef CLI_LOGPROB_H
#define CLI_LOGPROB_H

#include "core/base.h"

/* ln softmax(logits)[id], summed in double; logits[n_vocab]. NaN where one of them is NaN or
 * +infinity, or none is finite. */
double logprob_of(const float *logits, int n_vocab, int32_t id);

struct logprob_entry {
    int32_t id;
    double logprob;
};

/* The n likeliest ids, 1 <= n <= n_vocab, the likeliest first; among equals the smaller id. */
void logprob_likeliest(const float *logits, int n_vocab, int n, struct logprob_entry *out);

#endif
