/*
 * One table says what each role is (where it is kept, its shape, whether the spec wants it), the
 * family's table says what it is called; binding walks the second with the help of the first. A
 * family adds names, never code.
 */
#include "models/bind.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct binder {
    const struct family *family;
    const struct model_spec *spec;
    const struct checkpoint *checkpoint;
    struct arena *arena;
    struct weights *weights;
    struct bind_totals *totals;
    bool *claimed; /* [n_tensors] */
    struct err *e;
};

enum { NAME_SIZE = 256 };

/* ---- roles ---- */

enum role_kind { KIND_MATRIX, KIND_NORM };

static const struct role_place {
    enum role_kind kind;
    bool per_layer;
    size_t offset; /* within struct weights or struct layer_weights */
} role_places[ROLE_COUNT] = {
    [ROLE_EMBEDDING] = {KIND_MATRIX, false, offsetof(struct weights, embedding)},
    [ROLE_POSITIONS] = {KIND_MATRIX, false, offsetof(struct weights, positions)},
    [ROLE_FINAL_NORM] = {KIND_NORM, false, offsetof(struct weights, final_norm)},
    [ROLE_HEAD] = {KIND_MATRIX, false, offsetof(struct weights, head)},
    [ROLE_ATTENTION_NORM] = {KIND_NORM, true, offsetof(struct layer_weights, attention_norm)},
    [ROLE_QUERY] = {KIND_MATRIX, true, offsetof(struct layer_weights, query)},
    [ROLE_KEY] = {KIND_MATRIX, true, offsetof(struct layer_weights, key)},
    [ROLE_VALUE] = {KIND_MATRIX, true, offsetof(struct layer_weights, value)},
    [ROLE_QUERY_NORM] = {KIND_NORM, true, offsetof(struct layer_weights, query_norm)},
    [ROLE_KEY_NORM] = {KIND_NORM, true, offsetof(struct layer_weights, key_norm)},
    [ROLE_ATTENTION_OUT] = {KIND_MATRIX, true, offsetof(struct layer_weights, attention_out)},
    [ROLE_FFN_NORM] = {KIND_NORM, true, offsetof(struct layer_weights, ffn_norm)},
    [ROLE_GATE] = {KIND_MATRIX, true, offsetof(struct layer_weights, gate)},
    [ROLE_UP] = {KIND_MATRIX, true, offsetof(struct layer_weights, up)},
    [ROLE_DOWN] = {KIND_MATRIX, true, offsetof(struct layer_weights, down)},
};

static bool is_wanted(const struct model_spec *spec, enum role role)
{
    switch (role) {
    case ROLE_POSITIONS:
        return spec->positions == POSITIONS_LEARNED;
    case ROLE_HEAD:
        return !spec->tie_word_embeddings;
    case ROLE_QUERY_NORM:
    case ROLE_KEY_NORM:
        return spec->qk_norm;
    case ROLE_GATE:
        return spec->ffn == FFN_GATED;
    default:
        return true;
    }
}

static bool has_bias(const struct model_spec *spec, enum role role)
{
    switch (role) {
    case ROLE_QUERY:
    case ROLE_KEY:
    case ROLE_VALUE:
        return spec->qkv_bias;
    case ROLE_ATTENTION_OUT:
        return spec->attention_out_bias;
    case ROLE_GATE:
    case ROLE_UP:
    case ROLE_DOWN:
        return spec->mlp_bias;
    case ROLE_FINAL_NORM:
    case ROLE_ATTENTION_NORM:
    case ROLE_FFN_NORM:
        return spec->norm == NORM_LAYER;
    default:
        return false;
    }
}

/* The shape in the comment of enum role; a norm has one output side only. */
static void role_shape(const struct model_spec *spec, enum role role, int *n_out, int *n_in)
{
    const int queries = spec->num_attention_heads * spec->head_dim;
    const int keys = spec->num_key_value_heads * spec->head_dim;
    *n_in = spec->hidden_size;
    switch (role) {
    case ROLE_EMBEDDING:
    case ROLE_HEAD:
        *n_out = spec->vocab_size;
        break;
    case ROLE_POSITIONS:
        *n_out = spec->max_position_embeddings;
        break;
    case ROLE_QUERY:
        *n_out = queries;
        break;
    case ROLE_KEY:
    case ROLE_VALUE:
        *n_out = keys;
        break;
    case ROLE_QUERY_NORM:
    case ROLE_KEY_NORM:
        *n_out = spec->head_dim;
        break;
    case ROLE_GATE:
    case ROLE_UP:
        *n_out = spec->intermediate_size;
        break;
    case ROLE_ATTENTION_OUT:
        *n_out = spec->hidden_size;
        *n_in = queries;
        break;
    case ROLE_DOWN:
        *n_out = spec->hidden_size;
        *n_in = spec->intermediate_size;
        break;
    case ROLE_FINAL_NORM:
    case ROLE_ATTENTION_NORM:
    case ROLE_FFN_NORM:
    case ROLE_COUNT:
        *n_out = spec->hidden_size;
        break;
    }
}

static void *role_target(const struct binder *b, enum role role, int layer)
{
    const struct role_place *const place = &role_places[role];
    char *const base = place->per_layer ? (char *)&b->weights->layers[layer] : (char *)b->weights;
    return base + place->offset;
}

/* ---- names ---- */

/* stem with the number of the layer in place of {}, then the suffix. */
static void make_name(char *out, const char *prefix, const char *stem, int layer,
                      const char *suffix)
{
    const char *const hole = strstr(stem, "{}");
    if (hole)
        snprintf(out, NAME_SIZE, "%s%.*s%d%s%s", prefix, (int)(hole - stem), stem, layer, hole + 2,
                 suffix);
    else
        snprintf(out, NAME_SIZE, "%s%s%s", prefix, stem, suffix);
}

static void claim(struct binder *b, const struct tensor *t)
{
    const size_t i = (size_t)(t - checkpoint_tensor_at(b->checkpoint, 0));
    if (b->claimed[i])
        return;
    b->claimed[i] = true;
    b->totals->n_parameters += (size_t)tensor_count(t);
    b->totals->n_bytes += t->n_bytes;
}

/* With the family's prefix or without: both are in use. NULL where there is neither. */
static const struct tensor *find(struct binder *b, const char *stem, int layer, const char *suffix)
{
    char name[NAME_SIZE];
    make_name(name, b->family->prefix, stem, layer, suffix);
    const struct tensor *t = checkpoint_tensor(b->checkpoint, name);
    if (!t) {
        make_name(name, "", stem, layer, suffix);
        t = checkpoint_tensor(b->checkpoint, name);
    }
    if (t)
        claim(b, t);
    return t;
}

static bool missing(struct binder *b, const char *stem, int layer, const char *suffix,
                    const int64_t *shape, int n_dims)
{
    char name[NAME_SIZE], shape_text[64];
    const bool is_head = strcmp(stem, "lm_head") == 0;
    make_name(name, is_head ? "" : b->family->prefix, stem, layer, suffix);
    return err_set(b->e, ERR_LOAD, "the tensor \"%s\" is missing; its shape would be %s", name,
                   tensor_shape_text(shape, n_dims, shape_text, sizeof shape_text));
}

static bool check_shape(struct binder *b, const struct tensor *t, const int64_t *shape, int n_dims)
{
    char found[64], expected[64];
    bool same = t->n_dims == n_dims;
    for (int i = 0; same && i < n_dims; i++)
        same = t->shape[i] == shape[i];
    if (!same)
        return err_set(b->e, ERR_LOAD,
                       "the tensor \"%s\" has the shape %s, but config.json asks for %s", t->name,
                       tensor_shape_text(t->shape, t->n_dims, found, sizeof found),
                       tensor_shape_text(shape, n_dims, expected, sizeof expected));
    if (!linear_supports(t->dtype))
        return err_set(b->e, ERR_LOAD,
                       "the tensor \"%s\" is stored as %s; F32, F16 and BF16 can be used", t->name,
                       dtype_name(t->dtype));
    return true;
}

/* ---- binding ---- */

/* A vector as f32 in the model's own memory. */
static const float *bind_vector(struct binder *b, const char *stem, int layer, const char *suffix,
                                int n)
{
    const int64_t shape[] = {n};
    const struct tensor *const t = find(b, stem, layer, suffix);
    if (!t) {
        missing(b, stem, layer, suffix, shape, 1);
        return NULL;
    }
    if (!check_shape(b, t, shape, 1))
        return NULL;
    float *const out = arena_array(b->arena, (size_t)n, sizeof *out);
    if (!out) {
        err_no_memory(b->e);
        return NULL;
    }
    kernels_for("scalar")->to_f32[t->dtype](out, t->data, (size_t)n);
    return out;
}

static bool bind_norm(struct binder *b, const struct tensor_entry *entry, int layer)
{
    struct norm *const norm = role_target(b, entry->role, layer);
    const bool is_head_norm = entry->role == ROLE_QUERY_NORM || entry->role == ROLE_KEY_NORM;
    int n, unused;
    role_shape(b->spec, entry->role, &n, &unused);
    norm->type = is_head_norm ? NORM_RMS : b->spec->norm;
    norm->eps = b->spec->norm_eps;
    norm->n = n;
    norm->weight = bind_vector(b, entry->stem, layer, ".weight", n);
    if (norm->weight && has_bias(b->spec, entry->role))
        norm->bias = bind_vector(b, entry->stem, layer, ".bias", n);
    return norm->weight && (norm->bias || !has_bias(b->spec, entry->role));
}

/* One role's part of a matrix with n_all outputs: those behind first_out. */
static struct linear *bind_part(struct binder *b, const struct tensor_entry *entry, int layer,
                                const struct tensor *t, int n_all, int first_out)
{
    struct linear *const l = role_target(b, entry->role, layer);
    role_shape(b->spec, entry->role, &l->n_out, &l->n_in);
    l->dtype = t->dtype;
    l->transposed = entry->layout == LAYOUT_IN_OUT;
    l->stride = (size_t)(l->transposed ? n_all : l->n_in);
    const size_t skip = l->transposed ? (size_t)first_out : (size_t)first_out * l->stride;
    l->w = (const unsigned char *)t->data + skip * dtype_size(t->dtype);
    return l;
}

/* The matrix of n_entries roles that share it. */
static bool bind_matrix(struct binder *b, const struct tensor_entry *entries, int n_entries,
                        int layer)
{
    int n_all = 0, n_in = 0, n_out;
    for (int i = 0; i < n_entries; i++) {
        role_shape(b->spec, entries[i].role, &n_out, &n_in);
        n_all += n_out;
    }
    const bool transposed = entries[0].layout == LAYOUT_IN_OUT;
    const int64_t shape[] = {transposed ? n_in : n_all, transposed ? n_all : n_in};
    const struct tensor *t = find(b, entries[0].stem, layer, ".weight");
    if (!t && entries[0].role == ROLE_EMBEDDING && b->spec->tie_word_embeddings)
        t = find(b, "lm_head", 0, ".weight"); /* some savers keep a tied pair under this name */
    if (!t)
        return missing(b, entries[0].stem, layer, ".weight", shape, 2);
    if (!check_shape(b, t, shape, 2))
        return false;

    const float *bias = NULL;
    if (has_bias(b->spec, entries[0].role)) {
        bias = bind_vector(b, entries[0].stem, layer, ".bias", n_all);
        if (!bias)
            return false;
    }
    for (int i = 0, first = 0; i < n_entries; i++) {
        struct linear *const l = bind_part(b, &entries[i], layer, t, n_all, first);
        l->bias = bias ? bias + first : NULL;
        first += l->n_out;
    }
    return true;
}

static bool bind_entries(struct binder *b, const struct tensor_entry *entries, int n_entries,
                         int layer)
{
    if (!is_wanted(b->spec, entries[0].role))
        return true;
    if (role_places[entries[0].role].kind == KIND_NORM)
        return bind_norm(b, entries, layer);
    return bind_matrix(b, entries, n_entries, layer);
}

static bool bind_table(struct binder *b)
{
    int n_shared;
    for (const struct tensor_entry *entry = b->family->tensors; entry->stem; entry += n_shared) {
        n_shared = 1;
        while (entry[n_shared].stem && strcmp(entry[n_shared].stem, entry->stem) == 0)
            n_shared++;
        const int n = role_places[entry->role].per_layer ? b->spec->num_hidden_layers : 1;
        for (int layer = 0; layer < n; layer++)
            if (!bind_entries(b, entry, n_shared, layer))
                return false;
    }
    return true;
}

/* ---- leftovers ---- */

/* True where name is pattern with a whole number for {}. */
static bool matches(const char *pattern, const char *name)
{
    const char *const hole = strstr(pattern, "{}");
    if (!hole)
        return strcmp(pattern, name) == 0;
    const size_t n_before = (size_t)(hole - pattern);
    if (strncmp(pattern, name, n_before) != 0)
        return false;
    const size_t n_digits = strspn(name + n_before, "0123456789");
    return n_digits > 0 && strcmp(name + n_before + n_digits, hole + 2) == 0;
}

static bool is_ignored(const struct binder *b, const char *name)
{
    const size_t n_prefix = strlen(b->family->prefix);
    if (strncmp(name, b->family->prefix, n_prefix) == 0)
        name += n_prefix;
    if (b->spec->tie_word_embeddings && strcmp(name, "lm_head.weight") == 0)
        return true; /* a copy of the embedding, which is the one that counts */
    for (const char *const *pattern = b->family->ignored; pattern && *pattern; pattern++)
        if (matches(*pattern, name))
            return true;
    return false;
}

static bool check_leftovers(const struct binder *b)
{
    const size_t n = checkpoint_n_tensors(b->checkpoint);
    for (size_t i = 0; i < n; i++) {
        const char *const name = checkpoint_tensor_at(b->checkpoint, i)->name;
        if (!b->claimed[i] && !is_ignored(b, name))
            return err_set(b->e, ERR_LOAD,
                           "the checkpoint holds the tensor \"%s\", for which this %s model has no "
                           "use; config.json and the weights do not belong together",
                           name, b->family->model_type);
    }
    return true;
}

bool bind_weights(const struct family *family, const struct model_spec *spec,
                  const struct checkpoint *checkpoint, struct arena *arena, struct weights *weights,
                  struct bind_totals *totals, struct err *e)
{
    struct binder b = {.family = family,
                       .spec = spec,
                       .checkpoint = checkpoint,
                       .arena = arena,
                       .weights = weights,
                       .totals = totals,
                       .e = e};
    b.claimed = arena_array(arena, checkpoint_n_tensors(checkpoint) + 1, sizeof *b.claimed);
    weights->layers = arena_array(arena, (size_t)spec->num_hidden_layers, sizeof *weights->layers);
    if (!b.claimed || !weights->layers)
        return err_no_memory(e);
    if (!bind_table(&b) || !check_leftovers(&b))
        return false;
    if (spec->tie_word_embeddings)
        weights->head = weights->embedding;
    return true;
}
