/*
 * What tgen bench says, three times: as a table, as JSON, as comma-separated values. Speeds are
 * tokens per second throughout. Measures nothing (bench.c) and prints nothing: all three append to
 * a buffer of the caller's.
 */
#include "cli/bench.h"

#include "cli/json_out.h"

#include <math.h>
#include <stdio.h>

static const char *const weights_names[] = {
    [MODEL_STORED] = "stored", [MODEL_Q8] = "q8", [MODEL_Q4] = "q4"};

/* "pp512" or "tg128" into out[0..size); returns out. */
static char *test_name(const struct bench_test *test, char *out, size_t size)
{
    snprintf(out, size, "%s%d", test->is_prompt ? "pp" : "tg", test->n);
    return out;
}

static void add_limit(struct buffer *t, const char *name, double per_s, const char *unit)
{
    if (per_s > 0)
        buffer_addf(t, ", %s %.1f %s", name, per_s / 1e9, unit);
}

void bench_add_table(struct buffer *t, const struct bench_machine *machine,
                     const struct bench_result *results, size_t n)
{
    char name[32];
    const struct machine_limits *limits = &machine->limits;
    buffer_addf(t, "%s, %s, %d thread%s\n", machine->cpu, machine->level, machine->n_threads,
                machine->n_threads == 1 ? "" : "s");
    buffer_addf(t, "limits: reads %.1f GB/s", limits->read_bytes_per_s / 1e9);
    add_limit(t, "f32", limits->f32_per_s, "GFLOP/s");
    add_limit(t, "bf16", limits->bf16_per_s, "GFLOP/s");
    add_limit(t, "int8", limits->int8_per_s, "GOP/s");
    buffer_addf(t, "\n\n%-8s %-7s %7s %6s %11s %11s %11s %9s\n", "test", "weights", "threads",
                "depth", "tokens/s", "min", "max", "of limit");
    for (size_t i = 0; i < n; i++) {
        const struct bench_result *r = &results[i];
        buffer_addf(t, "%-8s %-7s %7d %6d %11.2f %11.2f %11.2f %7.1f %%\n",
                    test_name(&r->test, name, sizeof name), weights_names[r->test.weights],
                    r->test.n_threads, r->test.depth, r->rate, r->least, r->most,
                    100 * r->fraction);
    }
}

/* 6 digits are more than a clock and a neighbour leave. */
static void add_rounded(struct buffer *t, const char *key, double value)
{
    char digits[32];
    double rounded;
    snprintf(digits, sizeof digits, "%.6g", value);
    json_out_number(t, key, sscanf(digits, "%lf", &rounded) == 1 ? rounded : value);
}

static void add_machine(struct buffer *t, const struct bench_machine *machine)
{
    const struct machine_limits *limits = &machine->limits;
    json_out_open(t, "machine", '{');
    json_out_string(t, "cpu", machine->cpu);
    json_out_string(t, "level", machine->level);
    json_out_unsigned(t, "threads", (uint64_t)machine->n_threads);
    add_rounded(t, "read_gb_per_s", limits->read_bytes_per_s / 1e9);
    add_rounded(t, "f32_gflops", limits->f32_per_s / 1e9);
    add_rounded(t, "bf16_gflops", limits->bf16_per_s > 0 ? limits->bf16_per_s / 1e9 : NAN);
    add_rounded(t, "int8_gops", limits->int8_per_s > 0 ? limits->int8_per_s / 1e9 : NAN);
    json_out_close(t, '}');
}

void bench_add_json(struct buffer *t, const struct bench_machine *machine,
                    const struct bench_result *results, size_t n)
{
    char name[32];
    json_out_open(t, NULL, '{');
    add_machine(t, machine);
    json_out_open(t, "results", '[');
    for (size_t i = 0; i < n; i++) {
        const struct bench_result *r = &results[i];
        json_out_open(t, NULL, '{');
        json_out_string(t, "test", test_name(&r->test, name, sizeof name));
        json_out_string(t, "weights", weights_names[r->test.weights]);
        json_out_unsigned(t, "threads", (uint64_t)r->test.n_threads);
        json_out_unsigned(t, "depth", (uint64_t)r->test.depth);
        add_rounded(t, "tokens_per_second", r->rate);
        add_rounded(t, "min", r->least);
        add_rounded(t, "max", r->most);
        add_rounded(t, "fraction_of_limit", r->fraction);
        json_out_close(t, '}');
    }
    json_out_close(t, ']');
    json_out_close(t, '}');
    buffer_add_string(t, "\n");
}

void bench_add_csv(struct buffer *t, const struct bench_result *results, size_t n)
{
    char name[32];
    buffer_add_string(t, "test,weights,threads,depth,tokens_per_second,min,max,"
                         "fraction_of_limit\n");
    for (size_t i = 0; i < n; i++) {
        const struct bench_result *r = &results[i];
        buffer_addf(t, "%s,%s,%d,%d,%.6g,%.6g,%.6g,%.6g\n", test_name(&r->test, name, sizeof name),
                    weights_names[r->test.weights], r->test.n_threads, r->test.depth, r->rate,
                    r->least, r->most, r->fraction);
    }
}
