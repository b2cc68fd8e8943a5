/*
 * One table says what each role is (where it is kept, its shape, whether the spec wants it), the
 * family's table says what it is called; binding walks the second with the help of the first. A
 * family adds names, never code.
 */
#include "models/bind.h"

#include "core/attend.h"
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
    const char
        *nest;     /* in front of everything where a multimodal checkpoint holds the text model */
    bool *claimed; /* [n_tensors] */
    struct err *e;
};

enum { NAME_SIZE = 256 };

/* ---- roles ---- */

enum role_kind { KIND_MATRIX, KIND_NORM, KIND_NUMBER };

/* Where a role's tensor is kept: for roles of a layer an offset in struct layer_weights, else in
 * struct weights. */
static const struct role_place {
    enum role_kind kind;
    size_t offset;
} role_places[ROLE_COUNT] = {
    [ROLE_EMBEDDING] = {KIND_MATRIX, offsetof(struct weights, embedding)},
    [ROLE_PROJECT_IN] = {KIND_MATRIX, offsetof(struct weights, project_in)},
    [ROLE_POSITIONS] = {KIND_MATRIX, offsetof(struct weights, positions)},
    [ROLE_TOKEN_TYPES] = {KIND_MATRIX, offsetof(struct weights, token_types)},
    [ROLE_EMBEDDING_NORM] = {KIND_NORM, offsetof(struct weights, embedding_norm)},
    [ROLE_FINAL_NORM] = {KIND_NORM, offsetof(struct weights, final_norm)},
    [ROLE_HEAD_DENSE] = {KIND_MATRIX, offsetof(struct weights, head_dense)},
    [ROLE_HEAD_NORM] = {KIND_NORM, offsetof(struct weights, head_norm)},
    [ROLE_PROJECT_OUT] = {KIND_MATRIX, offsetof(struct weights, project_out)},
    [ROLE_HEAD] = {KIND_MATRIX, offsetof(struct weights, head)},
    [ROLE_ATTENTION_NORM] = {KIND_NORM, offsetof(struct layer_weights, attention_norm)},
    [ROLE_ATTENTION_POST_NORM] = {KIND_NORM, offsetof(struct layer_weights, attention_post_norm)},
    [ROLE_QUERY] = {KIND_MATRIX, offsetof(struct layer_weights, query)},
    [ROLE_KEY] = {KIND_MATRIX, offsetof(struct layer_weights, key)},
    [ROLE_VALUE] = {KIND_MATRIX, offsetof(struct layer_weights, value)},
    [ROLE_QUERY_NORM] = {KIND_NORM, offsetof(struct layer_weights, query_norm)},
    [ROLE_KEY_NORM] = {KIND_NORM, offsetof(struct layer_weights, key_norm)},
    [ROLE_ATTENTION_OUT] = {KIND_MATRIX, offsetof(struct layer_weights, attention_out)},
    [ROLE_FFN_NORM] = {KIND_NORM, offsetof(struct layer_weights, ffn_norm)},
    [ROLE_FFN_POST_NORM] = {KIND_NORM, offsetof(struct layer_weights, ffn_post_norm)},
    [ROLE_GATE] = {KIND_MATRIX, offsetof(struct layer_weights, gate)},
    [ROLE_UP] = {KIND_MATRIX, offsetof(struct layer_weights, up)},
    [ROLE_DOWN] = {KIND_MATRIX, offsetof(struct layer_weights, down)},
    [ROLE_XIELU_P] = {KIND_NUMBER, offsetof(struct layer_weights, xielu_p)},
    [ROLE_XIELU_N] = {KIND_NUMBER, offsetof(struct layer_weights, xielu_n)},
};

static bool is_per_layer(enum role role)
{
    return role >= ROLE_ATTENTION_NORM;
}

static bool is_wanted(const struct model_spec *spec, enum role role)
{
    const bool before = spec->norm_place != NORM_AFTER;
    const bool after = spec->norm_place == NORM_AFTER || spec->norm_place == NORM_BOTH;
    switch (role) {
    case ROLE_PROJECT_IN:
    case ROLE_PROJECT_OUT:
        return spec->embedding_size != spec->hidden_size;
    case ROLE_POSITIONS:
        return spec->positions == POSITIONS_LEARNED;
    case ROLE_TOKEN_TYPES:
        return spec->type_vocab_size > 0;
    case ROLE_EMBEDDING_NORM:
        return spec->embedding_norm;
    case ROLE_FINAL_NORM:
        return !spec->no_final_norm;
    case ROLE_HEAD_DENSE:
    case ROLE_HEAD_NORM:
        return spec->head_transform;
    case ROLE_ATTENTION_NORM:
        return before;
    case ROLE_FFN_NORM:
        return before && spec->residual != RESIDUAL_PARALLEL_SHARED;
    case ROLE_ATTENTION_POST_NORM:
    case ROLE_FFN_POST_NORM:
        return after;
    case ROLE_QUERY_NORM:
    case ROLE_KEY_NORM:
        return spec->qk_norm != QK_NORM_NONE;
    case ROLE_GATE:
        return spec->ffn == FFN_GATED;
    case ROLE_XIELU_P:
    case ROLE_XIELU_N:
        return spec->hidden_act == ACT_XIELU;
    default:
        return true;
    }
}

static bool has_bias(const struct model_spec *spec, enum role role)
{
    return (spec->biases & ROLE_BIT(role)) != 0;
}

/* What a matrix multiplies its result with: constants of the spec, folded. */
static float role_scale(const struct model_spec *spec, enum role role)
{
    switch (role) {
    case ROLE_ATTENTION_OUT:
    case ROLE_DOWN:
        return spec->residual_multiplier;
    case ROLE_HEAD:
        return spec->logit_scale;
    default:
        return 1;
    }
}

/* The shape in the comment of enum role: [n_out, n_in]. */
static void matrix_shape(const struct model_spec *spec, enum role role, int *n_out, int *n_in)
{
    const int hidden = spec->hidden_size;
    const int queries = spec->num_attention_heads * spec->head_dim;
    const int keys = spec->num_key_value_heads * spec->head_dim;
    const int shapes[ROLE_COUNT][2] = {
        [ROLE_EMBEDDING] = {spec->vocab_size, spec->embedding_size},
        [ROLE_PROJECT_IN] = {hidden, spec->embedding_size},
        [ROLE_POSITIONS] = {spec->max_position_embeddings + spec->position_offset, hidden},
        [ROLE_TOKEN_TYPES] = {spec->type_vocab_size, hidden},
        [ROLE_HEAD_DENSE] = {hidden, hidden},
        [ROLE_PROJECT_OUT] = {spec->embedding_size, hidden},
        [ROLE_HEAD] = {spec->vocab_size, spec->embedding_size},
        [ROLE_QUERY] = {queries, hidden},
        [ROLE_KEY] = {keys, hidden},
        [ROLE_VALUE] = {keys, hidden},
        [ROLE_ATTENTION_OUT] = {hidden, queries},
        [ROLE_GATE] = {spec->intermediate_size, hidden},
        [ROLE_UP] = {spec->intermediate_size, hidden},
        [ROLE_DOWN] = {hidden, spec->intermediate_size},
    };
    *n_out = shapes[role][0];
    *n_in = shapes[role][1];
}

/* A norm's weights as n_rows of n values; only heads with weights of their own have more than one
 * row. */
static void norm_shape(const struct model_spec *spec, enum role role, int *n_rows, int *n)
{
    const bool is_key = role == ROLE_KEY_NORM;
    const int n_heads = is_key ? spec->num_key_value_heads : spec->num_attention_heads;
    *n_rows = 1;
    *n = spec->hidden_size;
    if (role != ROLE_QUERY_NORM && !is_key)
        return;
    *n = spec->qk_norm == QK_NORM_FULL ? n_heads * spec->head_dim : spec->head_dim;
    *n_rows = spec->qk_norm == QK_NORM_OWN_HEAD ? n_heads : 1;
}

static void *role_target(const struct binder *b, enum role role, int layer)
{
    char *const base = is_per_layer(role) ? (char *)&b->weights->layers[layer] : (char *)b->weights;
    return base + role_places[role].offset;
}

/* ---- names ---- */

/* Which of the tensors that a line stands for: {} in a stem counts layers, a second one heads. */
struct numbers {
    int layer, head;
};

/* nest, prefix, the stem with numbers in its holes, suffix. */
static void make_name(char *out, const char *nest, const char *prefix, const char *stem,
                      struct numbers at, const char *suffix)
{
    const char *const first = strstr(stem, "{}");
    const char *const second = first ? strstr(first + 2, "{}") : NULL;
    if (second)
        snprintf(out, NAME_SIZE, "%s%s%.*s%d%.*s%d%s%s", nest, prefix, (int)(first - stem), stem,
                 at.layer, (int)(second - first - 2), first + 2, at.head, second + 2, suffix);
    else if (first)
        snprintf(out, NAME_SIZE, "%s%s%.*s%d%s%s", nest, prefix, (int)(first - stem), stem,
                 at.layer, first + 2, suffix);
    else
        snprintf(out, NAME_SIZE, "%s%s%s%s", nest, prefix, stem, suffix);
}

static bool counts_heads(const char *stem)
{
    const char *const first = strstr(stem, "{}");
    return first && strstr(first + 2, "{}");
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

/* With the family's prefix, with its last part only, or without: all are in use. NULL where there
 * is none. */
static const struct tensor *look_up(const struct binder *b, const char *stem, struct numbers at,
                                    const char *suffix)
{
    char name[NAME_SIZE];
    for (const char *prefix = b->family->prefix;; prefix = strchr(prefix, '.') + 1) {
        make_name(name, b->nest, prefix, stem, at, suffix);
        const struct tensor *const t = checkpoint_tensor(b->checkpoint, name);
        if (t || !*prefix)
            return t;
    }
}

static const struct tensor *find(struct binder *b, const char *stem, struct numbers at,
                                 const char *suffix)
{
    const struct tensor *const t = look_up(b, stem, at, suffix);
    if (t)
        claim(b, t);
    return t;
}

/* The head stands outside the part of the model that the prefix names. */
static const char *head_stem(const struct binder *b)
{
    const struct tensor_entry *entry = b->family->tensors;
    while (entry->stem && entry->role != ROLE_HEAD)
        entry++;
    return entry->stem ? entry->stem : "";
}

static bool missing(struct binder *b, const char *stem, struct numbers at, const char *suffix,
                    const int64_t *shape, int n_dims)
{
    char name[NAME_SIZE], shape_text[64];
    const bool is_head = strcmp(stem, head_stem(b)) == 0;
    make_name(name, b->nest, is_head ? "" : b->family->prefix, stem, at, suffix);
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

/* ---- vectors and norms ---- */

/* Reads a tensor of that shape into out, as f32. */
static bool read_tensor(struct binder *b, const char *stem, struct numbers at, const char *suffix,
                        const int64_t *shape, int n_dims, float *out)
{
    const struct tensor *const t = find(b, stem, at, suffix);
    if (!t)
        return missing(b, stem, at, suffix, shape, n_dims);
    if (!check_shape(b, t, shape, n_dims))
        return false;
    kernels_for("scalar")->to_f32[t->dtype](out, t->data, (size_t)tensor_count(t));
    return true;
}

static float *take_floats(struct binder *b, size_t n)
{
    float *const out = arena_array(b->arena, n, sizeof *out);
    if (!out)
        err_no_memory(b->e);
    return out;
}

/* n_rows * n weights: from one tensor, or from one tensor a row where the stem counts heads. */
static bool read_norm(struct binder *b, const char *stem, int layer, const char *suffix, int n_rows,
                      int n, float *out)
{
    const int64_t shape[] = {n_rows, n};
    if (!counts_heads(stem))
        return read_tensor(b, stem, (struct numbers){layer, 0}, suffix,
                           n_rows > 1 ? shape : shape + 1, n_rows > 1 ? 2 : 1, out);
    for (int head = 0; head < n_rows; head++)
        if (!read_tensor(b, stem, (struct numbers){layer, head}, suffix, shape + 1, 1,
                         out + (size_t)head * (size_t)n))
            return false;
    return true;
}

static float norm_eps(const struct model_spec *spec, enum role role)
{
    return role == ROLE_FINAL_NORM && spec->final_norm_eps > 0 ? spec->final_norm_eps
                                                               : spec->norm_eps;
}

static bool bind_norm(struct binder *b, const struct tensor_entry *entry, int layer)
{
    struct norm *const norm = role_target(b, entry->role, layer);
    int n_rows, n;
    norm_shape(b->spec, entry->role, &n_rows, &n);
    const size_t count = (size_t)n_rows * (size_t)n;
    float *const weight = take_floats(b, count);
    float *const bias = has_bias(b->spec, entry->role) ? take_floats(b, count) : NULL;
    if (!weight || (!bias && has_bias(b->spec, entry->role)))
        return false;
    *norm = (struct norm){.type = b->spec->norm,
                          .eps = norm_eps(b->spec, entry->role),
                          .n = n,
                          .weight = weight,
                          .bias = bias};
    if (!b->spec->norm_plain && !read_norm(b, entry->stem, layer, ".weight", n_rows, n, weight))
        return false;
    for (size_t i = 0; i < count && (b->spec->norm_plus_one || b->spec->norm_plain); i++)
        weight[i] += 1; /* what is not stored is all zero here */
    return !bias || read_norm(b, entry->stem, layer, ".bias", n_rows, n, bias);
}

/* ---- matrices ---- */

/* A matrix that n_entries roles share, as it is stored. */
struct fused {
    const struct tensor *tensor;
    const float *bias; /* [n_all] or NULL */
    int n_all;         /* outputs of all roles together */
    int n_groups;      /* that the outputs are cut into */
};

static bool is_qkv(enum role role)
{
    return (ROLES_QKV & ROLE_BIT(role)) != 0;
}

/* The bias in the order of the role's own outputs. */
static const float *part_bias(struct binder *b, const struct fused *f, const struct linear *l,
                              int first)
{
    float *const bias = f->bias ? take_floats(b, (size_t)l->n_out) : NULL;
    for (int r = 0; bias && r < l->n_out; r++)
        bias[r] = f->bias[first + r / l->block * l->block_stride + r % l->block];
    return bias;
}

/* One role's part of a matrix: in each group the outputs that lie `first` behind its beginning. */
static bool bind_part(struct binder *b, const struct tensor_entry *entry, int layer,
                      const struct fused *f, int first)
{
    struct linear *const l = role_target(b, entry->role, layer);
    matrix_shape(b->spec, entry->role, &l->n_out, &l->n_in);
    l->dtype = f->tensor->dtype;
    l->transposed = (entry->layout & LAYOUT_IN_OUT) != 0;
    l->stride = (size_t)(l->transposed ? f->n_all : l->n_in);
    l->scale = role_scale(b->spec, entry->role);
    l->block = l->n_out / f->n_groups;
    l->block_stride = f->n_all / f->n_groups;
    const size_t skip = l->transposed ? (size_t)first : (size_t)first * l->stride;
    l->w = (const unsigned char *)f->tensor->data + skip * dtype_size(l->dtype);
    l->bias = part_bias(b, f, l, first);
    return l->bias || !f->bias;
}

static bool find_fused(struct binder *b, const struct tensor_entry *entries, int n_entries,
                       int layer, struct fused *f)
{
    const struct tensor_entry *const entry = &entries[0];
    const char *const suffix = entry->layout & LAYOUT_BARE ? "" : ".weight";
    const struct numbers at = {layer, 0};
    int n_in = 0;
    for (int i = 0; i < n_entries; i++) {
        int n_out;
        matrix_shape(b->spec, entries[i].role, &n_out, &n_in);
        f->n_all += n_out;
    }
    f->n_groups = n_entries > 1 && is_qkv(entry->role) ? b->spec->qkv_groups : 1;
    const bool transposed = (entry->layout & LAYOUT_IN_OUT) != 0;
    const int64_t shape[] = {transposed ? n_in : f->n_all, transposed ? f->n_all : n_in};
    f->tensor = find(b, entry->stem, at, suffix);
    if (!f->tensor && entry->role == ROLE_EMBEDDING && b->spec->tie_word_embeddings)
        f->tensor =
            find(b, "lm_head", at, suffix); /* some savers keep a tied pair under this name */
    if (!f->tensor)
        return missing(b, entry->stem, at, suffix, shape, 2);
    if (!check_shape(b, f->tensor, shape, 2))
        return false;
    if (!has_bias(b->spec, entry->role))
        return true;
    const int64_t bias_shape[] = {f->n_all};
    float *const bias = take_floats(b, (size_t)f->n_all);
    f->bias = bias;
    return bias && read_tensor(b, entry->stem, at, ".bias", bias_shape, 1, bias);
}

static bool bind_matrix(struct binder *b, const struct tensor_entry *entries, int n_entries,
                        int layer)
{
    struct fused f = {0};
    if (!find_fused(b, entries, n_entries, layer, &f))
        return false;
    for (int i = 0, first = 0; i < n_entries; i++) {
        if (!bind_part(b, &entries[i], layer, &f, first))
            return false;
        const struct linear *const l = role_target(b, entries[i].role, layer);
        first += l->block;
    }
    return true;
}

/* The head is the embedding; only a bias of its own is looked for. */
static bool bind_tied_head(struct binder *b, const struct tensor_entry *entry)
{
    struct linear *const head = &b->weights->head;
    *head = b->weights->embedding;
    head->scale = role_scale(b->spec, ROLE_HEAD);
    if (!has_bias(b->spec, ROLE_HEAD))
        return true;
    const int64_t shape[] = {head->n_out};
    float *const bias = take_floats(b, (size_t)head->n_out);
    head->bias = bias;
    return bias && read_tensor(b, entry->stem, (struct numbers){0, 0}, ".bias", shape, 1, bias);
}

static bool bind_number(struct binder *b, const struct tensor_entry *entry, int layer)
{
    const int64_t shape[] = {1};
    return read_tensor(b, entry->stem, (struct numbers){layer, 0}, "", shape, 1,
                       role_target(b, entry->role, layer));
}

/* True where the tensor is not there and another line of the table has one for the same role that
 * is. */
static bool has_other_name(const struct binder *b, const struct tensor_entry *entry, int layer)
{
    const struct numbers at = {layer, 0};
    if (look_up(b, entry->stem, at, ".weight"))
        return false;
    for (const struct tensor_entry *other = b->family->tensors; other->stem; other++)
        if (other != entry && other->role == entry->role && look_up(b, other->stem, at, ".weight"))
            return true;
    return false;
}

static bool bind_entries(struct binder *b, const struct tensor_entry *entries, int n_entries,
                         int layer)
{
    if (!is_wanted(b->spec, entries[0].role) || has_other_name(b, entries, layer))
        return true;
    if (role_places[entries[0].role].kind == KIND_NUMBER)
        return bind_number(b, entries, layer);
    if (entries[0].role == ROLE_HEAD && b->spec->tie_word_embeddings)
        return bind_tied_head(b, entries);
    if (role_places[entries[0].role].kind == KIND_NORM)
        return bind_norm(b, entries, layer);
    return bind_matrix(b, entries, n_entries, layer);
}

/* The embedding stands first in every table, so that a tied head finds it. */
static bool bind_table(struct binder *b)
{
    int n_shared;
    for (const struct tensor_entry *entry = b->family->tensors; entry->stem; entry += n_shared) {
        n_shared = 1;
        while (entry[n_shared].stem && strcmp(entry[n_shared].stem, entry->stem) == 0)
            n_shared++;
        const int n = is_per_layer(entry->role) ? b->spec->num_hidden_layers : 1;
        for (int layer = 0; layer < n; layer++)
            if (!bind_entries(b, entry, n_shared, layer))
                return false;
    }
    return true;
}

static bool make_alibi(struct binder *b)
{
    const struct model_spec *const spec = b->spec;
    float *const slopes = take_floats(b, (size_t)spec->num_attention_heads);
    if (!slopes)
        return false;
    attend_alibi_slopes(spec->num_attention_heads, spec->alibi_bias_max, slopes);
    for (int h = 0; h < spec->num_attention_heads; h++)
        slopes[h] *= spec->alibi_scale;
    b->weights->alibi_slopes = slopes;
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

/* True for `name` where it is stem and suffix behind any part of the prefix. */
static bool is_named(const struct binder *b, const char *name, const char *stem, const char *suffix)
{
    char pattern[NAME_SIZE];
    snprintf(pattern, sizeof pattern, "%s%s", stem, suffix);
    for (const char *prefix = b->family->prefix;; prefix = strchr(prefix, '.') + 1) {
        const size_t n = strlen(prefix);
        if (strncmp(name, prefix, n) == 0 && matches(pattern, name + n))
            return true;
        if (!*prefix)
            return false;
    }
}

static bool is_ignored(const struct binder *b, const char *name)
{
    const size_t n_nest = strlen(b->nest);
    if (strncmp(name, b->nest, n_nest) != 0)
        return true; /* the parts of a multimodal model that are not text */
    name += n_nest;
    if (b->spec->tie_word_embeddings && is_named(b, name, head_stem(b), ".weight"))
        return true; /* a copy of the embedding, which is the one that counts */
    for (const char *const *pattern = b->family->ignored; pattern && *pattern; pattern++)
        if (is_named(b, name, *pattern, ""))
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

bool bind_weights(const struct family *family, const char *nest, const struct model_spec *spec,
                  const struct checkpoint *checkpoint, struct arena *arena, struct weights *weights,
                  struct bind_totals *totals, struct err *e)
{
    struct binder b = {.family = family,
                       .nest = nest,
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
    for (int i = 0; i < spec->num_hidden_layers; i++)
        weights->layers[i].xielu =
            act_xielu_from(weights->layers[i].xielu_p, weights->layers[i].xielu_n);
    return (spec->positions != POSITIONS_ALIBI || make_alibi(&b));
}
