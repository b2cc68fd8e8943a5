#include "models/weave.h"

#include "core/kernels/kernels.h"
#include "core/quant_weave.h"
#include "models/internal.h"
#include "models/walk.h"

#include <stdlib.h>

enum { LINE = 64 /* bytes of a cache line */ };

/* ---- the plan ---- */

static int compare_from(const void *a, const void *b)
{
    const struct weave *const x = a, *const y = b;
    const uintptr_t x_from = (uintptr_t)x->from, y_from = (uintptr_t)y->from;
    return (x_from > y_from) - (x_from < y_from);
}

/* Views into one matrix have one form; of each only the first stays. */
static void drop_doubles(struct weave_plan *plan)
{
    size_t n = 0;
    qsort(plan->weaves, plan->n, sizeof *plan->weaves, compare_from);
    for (size_t i = 0; i < plan->n; i++)
        if (n == 0 || plan->weaves[n - 1].from != plan->weaves[i].from)
            plan->weaves[n++] = plan->weaves[i];
    plan->n = n;
}

bool weave_plan_model(struct model *m, const struct kernels *kernels, struct arena *arena,
                      struct weave_plan *plan, struct err *e)
{
    size_t n = 0;
    struct walk count = {.m = m}, walk = {.m = m};
    for (const struct linear *l; (l = walk_next(&count));)
        n += l->quant != NULL;
    *plan = (struct weave_plan){.weaves = arena_array(arena, n + 1, sizeof *plan->weaves)};
    if (!plan->weaves)
        return err_no_memory(e);
    for (const struct linear *l; (l = walk_next(&walk));) {
        const size_t n_bytes = l->quant ? quant_woven_bytes(kernels, l->quant) : 0;
        if (n_bytes)
            plan->weaves[plan->n++] = (struct weave){.from = l->quant, .n_bytes = n_bytes};
    }
    drop_doubles(plan);
    for (size_t i = 0; i < plan->n; i++)
        plan->n_bytes += round_up(plan->weaves[i].n_bytes, LINE);
    return true;
}

/* ---- work ---- */

unsigned char *weave_place(struct weave *weave, unsigned char *at)
{
    weave->memory = at;
    return at + round_up(weave->n_bytes, LINE);
}

static void run_task(struct worker *w, void *context)
{
    const struct weave *const weave = context;
    size_t begin, end;
    worker_share(w, weave->from->n_out, KERNELS_WOVEN, &begin, &end);
    quant_weave_rows(weave->from, weave->memory, begin, end);
}

void weave_run(struct compute *c, struct weave *weave)
{
    quant_weave(weave->from, weave->memory, &weave->to);
    compute_run(c, run_task, weave);
}

void weave_replace(const struct weave_plan *plan, struct model *m)
{
    struct walk walk = {.m = m};
    for (struct linear *l; (l = walk_next(&walk));) {
        const struct weave key = {.from = l->quant};
        const struct weave *const found =
            bsearch(&key, plan->weaves, plan->n, sizeof key, compare_from);
        if (found)
            l->quant = &found->to;
    }
}
