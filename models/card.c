#include "models/card.h"

#include <assert.h>

enum { MAX_FACTS = 48 };

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

static const char *const qk_norm_names[] = {
    [QK_NORM_NONE] = "none",
    [QK_NORM_HEAD] = "head",
    [QK_NORM_OWN_HEAD] = "own_head",
    [QK_NORM_FULL] = "full",
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

/* Windows are told as how wide and how many: all layers that have one have the same. */
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

static void add_attention(struct card *c, const struct model_spec *spec)
{
    add_number(c, "num_attention_heads", spec->num_attention_heads);
    add_number(c, "num_key_value_heads", spec->num_key_value_heads);
    add_number(c, "head_dim", spec->head_dim);
    add_text(c, "qk_norm", qk_norm_names[spec->qk_norm]);
    add_windows(c, spec);
    add_text(c, "positions", positions_names[spec->positions]);
    if (spec->positions == POSITIONS_ROPE)
        add_rope(c, &spec->ropes[0]);
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
    add_number(&c, "vocab_size", spec->vocab_size);
    add_number(&c, "hidden_size", spec->hidden_size);
    add_number(&c, "num_hidden_layers", spec->num_hidden_layers);
    add_number(&c, "max_position_embeddings", spec->max_position_embeddings);
    add_bool(&c, "tie_word_embeddings", spec->tie_word_embeddings);
    add_text(&c, "norm", spec->norm == NORM_RMS ? "rms" : "layer");
    add_number(&c, "norm_eps", spec->norm_eps);
    add_attention(&c, spec);
    add_text(&c, "ffn", spec->ffn == FFN_GATED ? "gated" : "plain");
    add_text(&c, "hidden_act", act_name(spec->hidden_act));
    add_number(&c, "intermediate_size", spec->intermediate_size);
    *n = c.n;
    return c.facts;
}
