/*
 * Plans and runs the interleaving of already quantised matrices for this machine's kernels: finds
 * each stored matrix once, sorted by the address of its codes, places it in memory of the caller's,
 * lets all workers rewrite it, then points every view at the new form. Codes and scales keep their
 * values. Owns nothing: the plan lies in the caller's arena. The layout is core/quant_weave.c's,
 * what is not yet quantised is quantize.c's.
 */
#include "models/weave.h"

#include "core/kernels/kernels.h"
#include "core/quant_weave.h"
#include "models/internal.h"
#include "models/roles.h"
#include "models/walk.h"

#include <stdlib.h>

/* ---- the plan -------------------------------------------------------------------------------- */

static int compare_codes(const void *a, const void *b)
{
    const struct weave *const x = a, *const y = b;
    const uintptr_t x_codes = (uintptr_t)x->from->codes, y_codes = (uintptr_t)y->from->codes;
    return (x_codes > y_codes) - (x_codes < y_codes);
}

/* Fused matrices share a quant, stacked experts have one each for the whole stack. */
static void drop_doubles(struct weave_plan *plan)
{
    size_t n = 0;
    qsort(plan->weaves, plan->n, sizeof *plan->weaves, compare_codes);
    for (size_t i = 0; i < plan->n; i++)
        if (n == 0 || compare_codes(&plan->weaves[n - 1], &plan->weaves[i]) != 0)
            plan->weaves[n++] = plan->weaves[i];
    plan->n = n;
}

/* Left out: MLA's kv_b, which is only used head by head in f32, where weaving gains nothing; and
 * experts with g_idx, because all experts share one int8 copy of the rows and each would need it in
 * its own column order. */
static size_t woven_bytes(const struct kernels *kernels, enum role role, const struct linear *l)
{
    const bool is_used =
        l->quant && role != ROLE_KV_B && !(l->quant->g_idx && roles_per_expert(role));
    return is_used ? round_up(quant_woven_bytes(kernels, l->quant), CACHE_LINE) : 0;
}

bool weave_plan_model(struct model *m, const struct kernels *kernels, struct arena *arena,
                      struct weave_plan *plan, struct err *e)
{
    size_t n = 0;
    struct walk count = {.m = m}, walk = {.m = m};
    while (walk_next(&count))
        n++;
    *plan = (struct weave_plan){.weaves = arena_array(arena, n, sizeof *plan->weaves)};
    if (!plan->weaves)
        return err_no_memory(e);
    for (const struct linear *l; (l = walk_next(&walk));) {
        const size_t n_bytes = woven_bytes(kernels, walk.found_role, l);
        if (n_bytes)
            plan->weaves[plan->n++] = (struct weave){.from = l->quant, .n_bytes = n_bytes};
    }
    drop_doubles(plan);
    for (size_t i = 0; i < plan->n; i++)
        plan->n_bytes += plan->weaves[i].n_bytes;
    return true;
}

void weave_place(struct weave_plan *plan, unsigned char *at)
{
    for (size_t i = 0; i < plan->n; i++) {
        plan->weaves[i].memory = at;
        at += plan->weaves[i].n_bytes;
    }
}

/* ---- work ------------------------------------------------------------------------------------ */

static void run_task(struct worker *w, void *context)
{
    const struct weave *const weave = context;
    size_t begin, end;
    worker_share(w, weave->from->n_out, KERNELS_WOVEN, &begin, &end);
    quant_weave_rows(weave->from, weave->memory, begin, end);
}

void weave_run(struct compute *c, struct weave *weave)
{
    quant_woven_init(weave->from, weave->memory, &weave->to);
    compute_run(c, run_task, weave);
}

void weave_replace(const struct weave_plan *plan, struct model *m)
{
    struct walk walk = {.m = m};
    for (struct linear *l; (l = walk_next(&walk));) {
        const struct weave key = {.from = l->quant};
        const struct weave *const found =
            bsearch(&key, plan->weaves, plan->n, sizeof key, compare_codes);
        if (found)
            l->quant = &found->to;
    }
}
