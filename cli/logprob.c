/*
 * Log-softmax in double. The sum over the vocabulary runs in one order, so that the same logits
 * give the same digits. Owns nothing, and works in the caller's entries alone: the likeliest so
 * far, sorted.
 */
#include "cli/logprob.h"

#include <math.h>

/* What has to be subtracted from a logit: ln of the sum of all exponentials. */
static double normaliser(const float *logits, int n_vocab)
{
    double highest = -INFINITY, sum = 0;
    for (int i = 0; i < n_vocab; i++)
        highest = fmax(highest, (double)logits[i]);
    for (int i = 0; i < n_vocab; i++)
        sum += exp((double)logits[i] - highest);
    return highest + log(sum);
}

double logprob_of(const float *logits, int n_vocab, int32_t id)
{
    return (double)logits[id] - normaliser(logits, n_vocab);
}

void logprob_likeliest(const float *logits, int n_vocab, int n, struct logprob_entry *out)
{
    const double all = normaliser(logits, n_vocab);
    int n_found = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        const double logprob = (double)logits[id] - all;
        if (n_found == n && !(logprob > out[n - 1].logprob))
            continue;
        int at = n_found < n ? n_found++ : n - 1;
        for (; at > 0 && logprob > out[at - 1].logprob; at--)
            out[at] = out[at - 1];
        out[at] = (struct logprob_entry){id, logprob};
    }
}
