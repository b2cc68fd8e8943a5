/*
 * One walk over the roles, as binding does, so that no family and no format is forgotten; then
 * attention, layer by layer. Counts only: owns nothing, measures nothing (core/machine.c), and
 * leaves it to cli/bench.c to make seconds of it.
 */
#include "models/work.h"

#include "models/internal.h"
#include "models/roles.h"

#include <math.h>

/* How often a role's tensor meets a token of the pass. */
struct use {
    double n_rows; /* of activations that meet one matrix */
    double n_read; /* matrices that are read, of those that there are */
    double n_met;  /* matrices that a token meets */
};

static enum work_form form_of(const struct linear *l)
{
    if (!l->quant)
        return l->dtype == DTYPE_BF16 ? WORK_BF16 : WORK_F32;
    return l->quant->type == QUANT_F8 ? WORK_BF16 : WORK_INT8;
}

static void add_matrix(struct work *w, const struct linear *l, const struct use *use)
{
    const double bias_bytes = l->bias ? sizeof *l->bias : 0;
    w->weight_bytes += use->n_read * l->n_out * (linear_row_bytes(l) + bias_bytes);
    w->operations[form_of(l)] += 2 * use->n_met * use->n_rows * l->n_out * l->n_in;
}

static void add_norm(struct work *w, const struct norm *norm, int n_rows)
{
    const double n = (double)n_rows * norm->n;
    w->weight_bytes += (norm->bias ? 2 : 1) * n * sizeof *norm->weight;
}

static bool is_look_up(enum role role)
{
    return role == ROLE_EMBEDDING || role == ROLE_POSITIONS || role == ROLE_TOKEN_TYPES;
}

/* How many of n tokens a tensor is applied to. Only the last token needs logits, so the head and
 * the last layer are applied to it alone; the last layer's key and value matrices still see every
 * token, for the cache. */
static int rows_of(const struct model *m, enum role role, int layer, int n)
{
    const role_set head =
        ROLE_BIT(ROLE_HEAD_DENSE) | ROLE_BIT(ROLE_PROJECT_OUT) | ROLE_BIT(ROLE_HEAD);
    const role_set memory = ROLE_BIT(ROLE_KEY) | ROLE_BIT(ROLE_VALUE) | ROLE_BIT(ROLE_KV_A);
    const bool last = roles_per_layer(role) && layer == m->spec.num_hidden_layers - 1;
    return head & ROLE_BIT(role) || (last && !(memory & ROLE_BIT(role))) ? 1 : n;
}

static void add_role(struct work *w, const struct model *m, enum role role, int layer, int n)
{
    struct weights weights = m->weights; /* roles_target serves binding, too, which writes */
    const void *tensor = roles_target(&weights, role, layer, 0);
    const struct moe_spec *moe = &m->spec.moe;
    struct use use = {.n_rows = rows_of(m, role, layer, n), .n_read = 1, .n_met = 1};
    if (roles_per_expert(role)) {
        use.n_met = moe->num_experts_per_tok;
        use.n_read = fmin(use.n_met * use.n_rows, moe->num_experts);
    }
    if (is_look_up(role)) {
        w->weight_bytes += n * linear_row_bytes(tensor);
    } else if (roles_kind(role) == ROLE_MATRIX) {
        add_matrix(w, tensor, &use);
    } else if (roles_kind(role) == ROLE_NORM) {
        int n_rows, n_columns;
        roles_shape(&m->spec, role, &n_rows, &n_columns);
        add_norm(w, tensor, n_rows);
    }
}

/* Adds the positions that some token of the pass sees, and as operations the scores and the sums of
 * values over those that each token sees. In the last layer only the last token attends. */
static void add_attention(struct work *w, const struct model *m, int layer, int position, int n,
                          bool kv_f32)
{
    const struct model_spec *spec = &m->spec;
    const enum work_form beside = form_of(&m->weights.layers[layer].attention_out);
    const struct mla_spec *mla = &spec->mla;
    const int window = spec->layers[layer].window;
    const int latent = 2 * mla->kv_lora_rank + mla->qk_rope_head_dim;
    const int width = mla->kv_lora_rank ? latent : 2 * spec->head_dim;
    const int end = position + n, begin = layer + 1 < spec->num_hidden_layers ? position : end - 1;
    const int first = window && window < begin + 1 ? begin + 1 - window : 0;
    double seen = 0;
    for (int i = begin; i < end; i++)
        seen += window && window < i + 1 ? window : i + 1;
    w->kv_positions += (double)(end - first) / spec->num_hidden_layers;
    w->operations[kv_f32 || beside == WORK_F32 ? WORK_F32 : WORK_BF16] +=
        2 * seen * spec->num_attention_heads * width;
}

void work_of_pass(const struct model *m, int position, int n, bool kv_f32, struct work *out)
{
    *out = (struct work){.weight_bytes = 0};
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        const int n_layers = roles_per_layer(role) ? m->spec.num_hidden_layers : 1;
        for (int layer = 0; layer < n_layers; layer++)
            if (roles_wanted(&m->spec, role, layer))
                add_role(out, m, role, layer, n);
    }
    for (int layer = 0; layer < m->spec.num_hidden_layers; layer++)
        add_attention(out, m, layer, position, n, kv_f32);
}
