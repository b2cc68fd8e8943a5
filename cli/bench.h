/*
 * One measurement of tgen bench: a prompt of some tokens or as many single steps, behind a text of
 * some depth; and how it prints.
 */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/buffer.h"
#include "core/machine.h"
#include "models/session.h"

struct bench_test {
    bool is_prompt; /* n tokens at once, as a prompt is read; else one after the other */
    int n;
    int depth; /* tokens that are there already */
    int n_threads;
    enum model_weights weights;
};

struct bench_result {
    struct bench_test test;
    double rate, least, most; /* tokens/s: the median run, the slowest and the fastest */
    double fraction;          /* of the rate that the limits around each run allowed; the median */
    struct machine_limits limits; /* at their best */
};

struct bench_machine {
    char cpu[128];
    const char *level;
    int n_threads;
    struct machine_limits limits; /* of all threads together */
};

/* What all measurements of a run share. */
struct bench {
    const struct model *model;
    struct machine *machine;
    int32_t *ids; /* [depth + n of the longest test] */
    int n_repetitions;
    enum session_kv kv;
};

/* ERR_CONTEXT where the model cannot hold so many tokens. */
bool bench_check(const struct bench *b, const struct bench_test *test, struct err *e);

/* A run to warm up and then n_repetitions that count, each between two looks at the machine's
 * limits. */
bool bench_measure(const struct bench *b, const struct bench_test *test, struct compute *c,
                   struct bench_result *result, struct err *e);

/* The n results as a table for people, as JSON, and as comma-separated values. */
void bench_add_table(struct buffer *t, const struct bench_machine *machine,
                     const struct bench_result *results, size_t n);
void bench_add_json(struct buffer *t, const struct bench_machine *machine,
                    const struct bench_result *results, size_t n);
void bench_add_csv(struct buffer *t, const struct bench_result *results, size_t n);

#endif
