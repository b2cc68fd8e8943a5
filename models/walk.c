/*
 * One cursor over role x layer x expert that stops at every matrix -w may change, so that
 * quantising and weaving agree on the set. Fused matrices come up once per role that views them;
 * callers drop doubles. Tables that are looked up, routers and switches stay out: they are small or
 * only read by row. Owns nothing and changes nothing.
 */
#include "models/walk.h"

#include "models/internal.h"
#include "models/roles.h"

static const role_set left_alone = ROLE_BIT(ROLE_EMBEDDING) | ROLE_BIT(ROLE_POSITIONS) |
                                   ROLE_BIT(ROLE_TOKEN_TYPES) | ROLE_BIT(ROLE_ROUTER) |
                                   ROLE_BIT(ROLE_SHARED_EXPERT_GATE);

static void go_on(struct walk *walk)
{
    const struct model_spec *const spec = &walk->m->spec;
    if (roles_per_expert(walk->role) && spec->layers[walk->layer].moe &&
        ++walk->expert < spec->moe.num_experts)
        return;
    walk->expert = 0;
    if (roles_per_layer(walk->role) && ++walk->layer < spec->num_hidden_layers)
        return;
    walk->layer = 0;
    walk->role++;
}

struct linear *walk_next(struct walk *walk)
{
    struct model *const m = walk->m;
    struct linear *found = NULL;
    for (; !found && walk->role < ROLE_COUNT; go_on(walk)) {
        if (roles_kind(walk->role) != ROLE_MATRIX || left_alone & ROLE_BIT(walk->role) ||
            !roles_wanted(&m->spec, walk->role, walk->layer))
            continue;
        struct linear *const l = roles_target(&m->weights, walk->role, walk->layer, walk->expert);
        if (l->n_out == 0)
            continue;
        found = l;
        walk->found_role = walk->role;
        walk->found_layer = walk->layer;
    }
    return found;
}
