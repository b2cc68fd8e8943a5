/*
 * tgen bench: how fast a model reads prompts and steps, beside what the machine could do at best.
 * Every combination of the listed numbers is a test. All of them are checked before the first one
 * is measured, and everything is printed at the end; at Ctrl-C or a failure, what there is by then.
 */
#include "cli/command.h"

#include "cli/bench.h"
#include "cli/load.h"
#include "cli/stream.h"
#include "cli/terminal.h"

#include <stdlib.h>

struct plan {
    const struct options *o;
    struct loaded loaded;
    struct bench bench;
    struct bench_machine machine;
    struct bench_test *tests;     /* [n], those that share weights and threads side by side */
    struct bench_result *results; /* [n] */
    size_t n;
};

/* Tests like this one but of n tokens each; those of no tokens are none. */
static void add_tests(struct plan *p, struct bench_test like, bool is_prompt,
                      const struct option_numbers *sizes)
{
    like.is_prompt = is_prompt;
    for (int i = 0; i < sizes->n; i++) {
        like.n = sizes->value[i];
        if (like.n > 0)
            p->tests[p->n++] = like;
    }
}

static void add_depths(struct plan *p, struct bench_test like)
{
    const struct options *o = p->o;
    for (int d = 0; d < o->depth.n; d++) {
        like.depth = o->depth.value[d];
        add_tests(p, like, true, &o->n_prompt);
        add_tests(p, like, false, &o->n_gen);
    }
}

static bool make_tests(struct plan *p, struct err *e)
{
    const struct options *o = p->o;
    const int n =
        o->bench_weights.n * o->bench_threads.n * o->depth.n * (o->n_prompt.n + o->n_gen.n);
    p->tests = calloc((size_t)n, sizeof *p->tests);
    p->results = calloc((size_t)n, sizeof *p->results);
    if (!p->tests || !p->results)
        return err_no_memory(e);
    for (int w = 0; w < o->bench_weights.n; w++)
        for (int t = 0; t < o->bench_threads.n; t++)
            add_depths(p, (struct bench_test){
                              .weights = (enum model_weights)o->bench_weights.value[w],
                              .n_threads = o->bench_threads.value[t],
                          });
    return p->n > 0 ||
           err_set(e, ERR_USAGE, "there is nothing to measure: --n-prompt and --n-gen are 0");
}

/* Any tokens will do, but varied ones, so that they use varied rows and experts. */
static bool make_ids(struct plan *p, struct err *e)
{
    int n = 1;
    const uint64_t n_vocab = (uint64_t)model_info(p->bench.model)->vocab_size;
    for (size_t i = 0; i < p->n; i++)
        n = max_int(n, p->tests[i].depth + p->tests[i].n);
    p->bench.ids = calloc((size_t)n, sizeof *p->bench.ids);
    if (!p->bench.ids)
        return err_no_memory(e);
    uint64_t random = 1;
    for (int i = 0; i < n; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407; /* Knuth's MMIX */
        p->bench.ids[i] = (int32_t)((random >> 33) % n_vocab);
    }
    return true;
}

static bool open_plan(struct plan *p, struct err *e)
{
    if (p->o->n_words > 0 || p->o->wants_stdin)
        return err_set(e, ERR_USAGE, "bench takes no words; a model goes behind -m");
    if (p->o->json && p->o->csv)
        return err_set(e, ERR_USAGE, "--json and --csv exclude each other");
    if (!make_tests(p, e) || !load_checkpoint(&p->loaded, p->o, e))
        return false;
    p->loaded.model = model_open(p->loaded.checkpoint, e);
    if (!p->loaded.model)
        return false;
    p->bench.model = p->loaded.model;
    p->bench.n_repetitions = p->o->repetitions;
    p->bench.kv = (enum session_kv)p->o->kv;
    for (size_t i = 0; i < p->n; i++)
        if (!bench_check(&p->bench, &p->tests[i], e))
            return false;
    p->bench.machine = machine_new(e);
    return p->bench.machine && make_ids(p, e);
}

/* The machine at its best, with the most threads that it was given. */
static void describe(struct plan *p)
{
    struct bench_machine *m = &p->machine;
    machine_cpu(m->cpu, sizeof m->cpu);
    for (size_t i = 0; i < p->n; i++)
        m->n_threads = max_int(m->n_threads, p->results[i].test.n_threads);
    for (size_t i = 0; i < p->n; i++)
        if (p->results[i].test.n_threads == m->n_threads)
            machine_raise(&m->limits, &p->results[i].limits);
}

/* Opens for test i what the one before did not have. */
static bool prepare(struct plan *p, size_t i, struct err *e)
{
    const struct bench_test *test = &p->tests[i];
    const bool same_weights = i > 0 && test[-1].weights == test->weights;
    if (same_weights && test[-1].n_threads == test->n_threads)
        return true;
    compute_close(p->loaded.compute);
    p->loaded.compute = NULL;
    if (same_weights) {
        p->loaded.compute = compute_open(test->n_threads, p->o->cpu, e);
        return p->loaded.compute != NULL;
    }
    struct options o = *p->o;
    o.threads = test->n_threads;
    o.weights = (int)test->weights;
    model_close(p->loaded.model);
    p->loaded.model = NULL;
    const bool ok = load_model(&p->loaded, &o, e);
    p->bench.model = p->loaded.model;
    if (ok)
        p->machine.level = machine_level(p->loaded.compute);
    return ok;
}

/* Measures all tests, or until Ctrl-C; then p->n are those that were finished. */
static bool measure(struct plan *p, struct err *e)
{
    struct terminal_progress progress = terminal_progress_begin(p->o->quiet, true, "test");
    bool ok = true;
    size_t n_done = 0;
    while (ok && n_done < p->n) {
        terminal_progress(&progress, n_done + 1, p->n);
        ok = prepare(p, n_done, e) &&
             bench_measure(&p->bench, &p->tests[n_done], p->loaded.compute, &p->results[n_done], e);
        n_done += ok;
        if (ok && n_done == 1) /* before, there is nothing to print */
            stream_watch_interrupt();
        if (ok ? stream_interrupted() : e->code == ERR_INTERRUPTED)
            ok = err_interrupted(e);
    }
    terminal_progress_end(&progress);
    p->n = n_done;
    return ok;
}

static bool print(struct plan *p, struct err *e)
{
    struct buffer t = {0};
    describe(p);
    if (p->o->json)
        bench_add_json(&t, &p->machine, p->results, p->n);
    else if (p->o->csv)
        bench_add_csv(&t, p->results, p->n);
    else
        bench_add_table(&t, &p->machine, p->results, p->n);
    const bool ok = stream_print(&t, e);
    buffer_free(&t);
    return ok;
}

/* Minutes of measuring are not thrown away because a later test fails. */
static bool measure_and_print(struct plan *p, struct err *e)
{
    struct err unheard;
    if (measure(p, e))
        return print(p, e);
    if (p->n > 0)
        print(p, &unheard);
    return false;
}

bool command_bench(const struct options *o, struct err *e)
{
    struct plan p = {.o = o};
    const bool ok = open_plan(&p, e) && measure_and_print(&p, e);
    machine_free(p.bench.machine);
    free(p.bench.ids);
    free(p.tests);
    free(p.results);
    load_free(&p.loaded);
    return ok;
}
