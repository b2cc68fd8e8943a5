/*
 * Turns a resolved spec into lines of key and value for tgen inspect, in the order of printing.
 * Leaves out what has no meaning in a model, and some values that are as in most models. Reads the
 * spec and the totals of binding, never config.json, so it shows what will be computed. Formats
 * nothing; keys and names are constants, the lines lie in the caller's arena.
 */
#include "models/card.h"

#include <assert.h>

enum { MAX_FACTS = 64 };

struct card {
    struct model_fact *facts; /* [MAX_FACTS] */
    int n;
};

static const char *const positions_names[] = {
    [POSITIONS_ROPE] = "rope",
    [POSITIONS_LEARNED] = "learned",
    [POSITIONS_SINUSOIDAL] = "sinusoidal",
    [POSITIONS_ALIBI] = "alibi",
};

static const char *const norm_place_names[] = {
    [NORM_BEFORE] = "before",
    [NORM_AFTER] = "after",
    [NORM_BOTH] = "both",
    [NORM_OUTSIDE] = "outside",
};

static const char *const residual_names[] = {
    [RESIDUAL_SEQUENTIAL] = "sequential",
    [RESIDUAL_PARALLEL] = "parallel",
    [RESIDUAL_PARALLEL_SHARED] = "parallel, one norm",
    [RESIDUAL_FROM_NORM] = "sequential, from the norm",
};

static const char *const qk_norm_names[] = {
    [QK_NORM_NONE] = "none",
    [QK_NORM_HEAD] = "head",
    [QK_NORM_OWN_HEAD] = "own head",
    [QK_NORM_FULL] = "all heads",
};

static const char *const router_names[] = {
    [ROUTER_SOFTMAX] = "softmax",
    [ROUTER_SOFTMAX_CHOSEN] = "softmax of the chosen",
    [ROUTER_SIGMOID] = "sigmoid",
    [ROUTER_SPARSEMIXER] = "sparsemixer",
};

static struct model_fact *add(struct card *c, const char *key)
{
    assert(c->n < MAX_FACTS);
    c->facts[c->n].key = key;
    return &c->facts[c->n++];
}

static void add_text(struct card *c, const char *key, const char *text)
{
    struct model_fact *const f = add(c, key);
    f->type = FACT_TEXT;
    f->text = text;
}

static void add_number(struct card *c, const char *key, double number)
{
    struct model_fact *const f = add(c, key);
    f->type = FACT_NUMBER;
    f->number = number;
}

static void add_bool(struct card *c, const char *key, bool value)
{
    struct model_fact *const f = add(c, key);
    f->type = FACT_BOOL;
    f->number = value;
}

static void add_rope(struct card *c, const struct rope *r)
{
    add_text(c, "rope_type", rope_type_name(r->type));
    add_number(c, "rope_theta", r->theta);
    add_number(c, "rope_dims", r->n_dims);
    if (r->type == ROPE_DEFAULT)
        return;
    add_number(c, "rope_factor", r->factor);
    if (r->type != ROPE_LINEAR)
        add_number(c, "original_max_position_embeddings", r->original_max_position_embeddings);
    if (r->type == ROPE_YARN || r->type == ROPE_LONGROPE)
        add_number(c, "rope_attention_factor", r->attention_factor);
}

/* Windows, as a width and a number of layers: all layers that have one have the same. */
static void add_windows(struct card *c, const struct model_spec *spec)
{
    int n = 0, window = 0;
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        n += spec->layers[i].window != 0;
        window = max_int(window, spec->layers[i].window);
    }
    if (n) {
        add_number(c, "sliding_window", window);
        add_number(c, "sliding_window_layers", n);
    }
}

/* Only where it differs from what most models do. */
static void add_number_unless(struct card *c, const char *key, double number, double usual)
{
    if (number != usual)
        add_number(c, key, number);
}

static void add_positions(struct card *c, const struct model_spec *spec)
{
    int n_without = 0;
    for (int i = 0; i < spec->num_hidden_layers; i++)
        n_without += spec->layers[i].rope == SPEC_NO_ROPE;
    add_text(c, "positions", positions_names[spec->positions]);
    if (spec->positions != POSITIONS_ROPE)
        return;
    add_rope(c, &spec->ropes[0]);
    if (spec->ropes[1].n_dims)
        add_number(c, "rope_theta_of_windows", spec->ropes[1].theta);
    add_number_unless(c, "layers_without_rope", n_without, 0);
}

static void add_attention(struct card *c, const struct model_spec *spec)
{
    const struct mla_spec *const mla = &spec->mla;
    add_number(c, "num_attention_heads", spec->num_attention_heads);
    if (mla->kv_lora_rank) {
        add_number(c, "kv_lora_rank", mla->kv_lora_rank);
        add_number_unless(c, "q_lora_rank", mla->q_lora_rank, 0);
        add_number(c, "qk_nope_head_dim", mla->qk_nope_head_dim);
        add_number(c, "qk_rope_head_dim", mla->qk_rope_head_dim);
        add_number(c, "v_head_dim", mla->v_head_dim);
    } else {
        add_number(c, "num_key_value_heads", spec->num_key_value_heads);
        add_number(c, "head_dim", spec->head_dim);
    }
    add_number(c, "attention_scale", spec->layers[0].attention_scale);
    add_number_unless(c, "attn_logit_softcapping", spec->attn_logit_softcapping, 0);
    add_number_unless(c, "clip_qkv", spec->clip_qkv, 0);
    add_text(c, "qk_norm", qk_norm_names[spec->qk_norm]);
    add_windows(c, spec);
    add_positions(c, spec);
}

static void add_ffn(struct card *c, const struct model_spec *spec)
{
    const struct moe_spec *const moe = &spec->moe;
    int n_moe = 0;
    for (int i = 0; i < spec->num_hidden_layers; i++)
        n_moe += spec->layers[i].moe;
    add_text(c, "ffn", spec->ffn == FFN_GATED ? "gated" : "plain");
    add_text(c, "hidden_act", act_name(spec->hidden_act));
    add_number(c, "intermediate_size", spec->intermediate_size);
    if (!n_moe)
        return;
    add_number(c, "moe_layers", n_moe);
    add_number(c, "num_experts", moe->num_experts);
    add_number(c, "num_experts_per_tok", moe->num_experts_per_tok);
    add_number(c, "moe_intermediate_size", moe->moe_intermediate_size);
    add_number_unless(c, "shared_intermediate_size", moe->shared_intermediate_size, 0);
    add_text(c, "router", router_names[moe->router]);
    add_number_unless(c, "routed_scaling_factor", moe->routed_scaling_factor, 1);
}

static void add_frame(struct card *c, const struct model_spec *spec)
{
    add_number(c, "vocab_size", spec->vocab_size);
    add_number(c, "hidden_size", spec->hidden_size);
    add_number_unless(c, "embedding_size", spec->embedding_size, spec->hidden_size);
    add_number(c, "num_hidden_layers", spec->num_hidden_layers);
    add_number(c, "max_position_embeddings", spec->max_position_embeddings);
    add_bool(c, "tie_word_embeddings", spec->tie_word_embeddings);
    add_text(c, "norm", spec->norm == NORM_RMS ? "rms" : "layer");
    add_number(c, "norm_eps", spec->norm_eps);
    add_text(c, "norm_place", norm_place_names[spec->norm_place]);
    add_text(c, "residual", residual_names[spec->residual]);
    add_number_unless(c, "embedding_scale", spec->embedding_scale, 1);
    add_number_unless(c, "residual_multiplier", spec->residual_multiplier, 1);
    add_number_unless(c, "logit_scale", spec->logit_scale, 1);
    add_number_unless(c, "final_logit_softcapping", spec->final_logit_softcapping, 0);
}

struct model_fact *card_write(const struct family *family, const struct model_spec *spec,
                              const struct bind_totals *totals, struct arena *arena, int *n)
{
    struct card c = {.facts = arena_array(arena, MAX_FACTS, sizeof *c.facts)};
    if (!c.facts)
        return NULL;
    add_text(&c, "model_type", family->model_type);
    add_number(&c, "parameters", (double)totals->n_parameters);
    add_number(&c, "weight_bytes", (double)totals->n_bytes);
    add_frame(&c, spec);
    add_attention(&c, spec);
    add_ffn(&c, spec);
    *n = c.n;
    return c.facts;
}
