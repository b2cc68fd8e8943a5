/*
 * Reading goes over one buffer again and again, so large, where memory allows, that little of it is
 * left in a cache when its turn comes again. Threads begin each try together, behind a barrier, and
 * worker 0's clock counts.
 */
#include "core/machine.h"

#include "core/clock.h"
#include "core/kernels/kernels.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TRIES = 2, PEAK_STEPS = 1000000 };
enum { LEAST_MIB = 256, MOST_MIB = 2048, CACHES = 4 /* times the last level */ };

struct machine {
    void *memory;
    size_t n_bytes;
    bool is_touched;
};

/* One attempt of all workers. */
struct attempt {
    const struct machine *machine;
    double (*peak)(size_t n_steps); /* NULL: reads */
    double done;                    /* by worker 0: bytes or operations */
    double seconds;
};

static size_t buffer_bytes(void)
{
    const size_t mib = (size_t)1 << 20;
    long cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    const size_t wanted = cache > 0 ? CACHES * (size_t)cache : 0;
    const size_t bytes = max_size(LEAST_MIB * mib, min_size(wanted, MOST_MIB * mib));
    const uint64_t spare = memory_usable() / 4; /* in a small container caches must do */
    return spare < bytes ? (size_t)spare / CACHE_LINE * CACHE_LINE : bytes;
}

struct machine *machine_new(struct err *e)
{
    struct machine *m = calloc(1, sizeof *m);
    if (!m) {
        err_no_memory(e);
        return NULL;
    }
    m->n_bytes = buffer_bytes();
    m->memory = mmap(NULL, m->n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->memory == MAP_FAILED) {
        m->memory = NULL;
        err_set(e, ERR_RUNTIME, "%zu MiB to measure reading with are not to be had",
                m->n_bytes >> 20);
        machine_free(m);
        return NULL;
    }
    (void)madvise(m->memory, m->n_bytes, MADV_HUGEPAGE); /* fewer faults; a wish */
    return m;
}

void machine_free(struct machine *m)
{
    if (!m)
        return;
    if (m->memory)
        munmap(m->memory, m->n_bytes);
    free(m);
}

/* Pages that nobody has written may all be one page of zeros, so they are written before any is
 * read. */
static void touch(struct worker *w, void *context)
{
    const struct machine *m = context;
    size_t begin, end;
    worker_share(w, m->n_bytes, CACHE_LINE, &begin, &end);
    memset((char *)m->memory + begin, 1, end - begin);
}

static void run_attempt(struct worker *w, void *context)
{
    struct attempt *t = context;
    size_t begin, end;
    worker_share(w, t->machine->n_bytes, CACHE_LINE, &begin, &end);
    worker_sync(w);
    const double began = clock_seconds();
    if (t->peak) {
        const double done = t->peak(PEAK_STEPS);
        if (w->index == 0) /* others must not touch it */
            t->done = done * w->n_workers;
    } else {
        w->kernels->read_all((const char *)t->machine->memory + begin, end - begin);
    }
    worker_sync(w);
    if (w->index == 0)
        t->seconds = clock_seconds() - began;
}

/* Bytes or operations per second, over all tries. */
static double speed(struct machine *m, struct compute *c, double (*peak)(size_t n_steps))
{
    double done = 0, seconds = 0;
    for (int i = 0; i < TRIES; i++) {
        struct attempt t = {.machine = m, .peak = peak, .done = (double)m->n_bytes};
        compute_run_together(c, run_attempt, &t);
        done += t.done;
        seconds += t.seconds;
    }
    return done / seconds;
}

void machine_measure(struct machine *m, struct compute *c, struct machine_limits *limits)
{
    const struct kernels *k = compute_kernels(c);
    if (!m->is_touched)
        compute_run_together(c, touch, m);
    m->is_touched = true;
    *limits = (struct machine_limits){
        .read_bytes_per_s = speed(m, c, NULL),
        .f32_per_s = speed(m, c, k->peak[PEAK_F32]),
        .bf16_per_s = k->peak[PEAK_BF16] ? speed(m, c, k->peak[PEAK_BF16]) : 0,
        .int8_per_s = k->peak[PEAK_INT8] ? speed(m, c, k->peak[PEAK_INT8]) : 0,
    };
}

void machine_raise(struct machine_limits *best, const struct machine_limits *limits)
{
    best->read_bytes_per_s = fmax(best->read_bytes_per_s, limits->read_bytes_per_s);
    best->f32_per_s = fmax(best->f32_per_s, limits->f32_per_s);
    best->bf16_per_s = fmax(best->bf16_per_s, limits->bf16_per_s);
    best->int8_per_s = fmax(best->int8_per_s, limits->int8_per_s);
}

void machine_cpu(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    snprintf(out, size, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
            break;
        }
    }
    if (f)
        fclose(f);
}

const char *machine_level(const struct compute *c)
{
    return compute_kernels(c)->level;
}
