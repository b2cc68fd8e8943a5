/*
 * One table says what each role is (where it is kept, its shape, whether the spec wants it), the
 * family's table says what it is called; binding walks the second with the help of the first. A
 * family adds names, never code.
 */
#include "models/bind.h"

#include "core/attend.h"
#include "core/file.h"
#include "core/kernels/kernels.h"
#include "models/roles.h"

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
        *nest; /* in front of everything where a multimodal checkpoint holds the text model */
    const struct quant_config *quant;
    bool *claimed; /* [n_tensors] */
    struct err *e;
};

enum { NAME_SIZE = 256 };

/* ---- names ----------------------------------------------------------------------------------- */

/* Which of the tensors that a line stands for: {} in a stem counts layers, a second one heads or
 * experts. */
struct numbers {
    int layer, inner;
};

/* nest, prefix, the stem with numbers in its holes, suffix. */
static void make_name(char *out, const char *nest, const char *prefix, const char *stem,
                      struct numbers at, const char *suffix)
{
    const char *const first = strstr(stem, "{}");
    const char *const second = first ? strstr(first + 2, "{}") : NULL;
    if (second)
        snprintf(out, NAME_SIZE, "%s%s%.*s%d%.*s%d%s%s", nest, prefix, (int)(first - stem), stem,
                 at.layer, (int)(second - first - 2), first + 2, at.inner, second + 2, suffix);
    else if (first)
        snprintf(out, NAME_SIZE, "%s%s%.*s%d%s%s", nest, prefix, (int)(first - stem), stem,
                 at.layer, first + 2, suffix);
    else
        snprintf(out, NAME_SIZE, "%s%s%s%s", nest, prefix, stem, suffix);
}

static bool counts_inner(const char *stem)
{
    const char *const first = strstr(stem, "{}");
    return first && strstr(first + 2, "{}");
}

/* The first role of a tensor counts the parameters that it holds. */
static void claim(struct binder *b, const struct tensor *t, size_t n_parameters)
{
    const size_t i = (size_t)(t - checkpoint_tensor_at(b->checkpoint, 0));
    if (b->claimed[i])
        return;
    b->claimed[i] = true;
    b->totals->n_parameters += n_parameters;
    b->totals->n_bytes += t->n_bytes;
}

/* The head stands outside the part of the model that the prefix names. */
static bool is_head(const struct binder *b, const char *stem)
{
    return strcmp(stem, family_stem(b->family, ROLE_HEAD)) == 0;
}

const char *bind_head_nest(const char *nest)
{
    return strncmp(nest, "model.", 6) == 0 ? "" : nest;
}

static const char *nest_of(const struct binder *b, const char *stem)
{
    return is_head(b, stem) ? bind_head_nest(b->nest) : b->nest;
}

/* With the family's prefix, with its last part only, or without: all are in use. NULL where there
 * is none. */
static const struct tensor *look_up(const struct binder *b, const char *stem, struct numbers at,
                                    const char *suffix)
{
    char name[NAME_SIZE];
    for (const char *prefix = b->family->prefix;; prefix = strchr(prefix, '.') + 1) {
        make_name(name, nest_of(b, stem), prefix, stem, at, suffix);
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
        claim(b, t, (size_t)tensor_count(t));
    return t;
}

static bool missing(struct binder *b, const char *stem, struct numbers at, const char *suffix,
                    const int64_t *shape, int n_dims)
{
    char name[NAME_SIZE], shape_text[64];
    const char *const prefix = is_head(b, stem) ? "" : b->family->prefix;
    make_name(name, nest_of(b, stem), prefix, stem, at, suffix);
    return err_set(b->e, ERR_LOAD, "the tensor \"%.160s\" is missing; its shape would be %s", name,
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
                       "the tensor \"%.160s\" has the shape %s, but config.json asks for %s",
                       t->name, tensor_shape_text(t->shape, t->n_dims, found, sizeof found),
                       tensor_shape_text(shape, n_dims, expected, sizeof expected));
    if (!linear_supports(t->dtype))
        return err_set(b->e, ERR_LOAD,
                       "the tensor \"%.160s\" is stored as %s; F32, F16 and BF16 can be used",
                       t->name, dtype_name(t->dtype));
    return true;
}

/* ---- vectors and norms ----------------------------------------------------------------------- */

static float *take_floats(struct binder *b, size_t n)
{
    float *const out = arena_array(b->arena, n, sizeof *out);
    if (!out)
        err_no_memory(b->e);
    return out;
}

/* n values of a tensor from the first-th on, as f32. */
static void read_values(const struct tensor *t, size_t first, size_t n, float *out)
{
    const unsigned char *const data = t->data;
    kernels_for("scalar")->to_f32[t->dtype](out, data + first * dtype_size(t->dtype), n);
}

/* A tensor of that shape; NULL and the sentence where there is none. */
static const struct tensor *require(struct binder *b, const char *stem, struct numbers at,
                                    const char *suffix, const int64_t *shape, int n_dims)
{
    const struct tensor *const t = find(b, stem, at, suffix);
    if (!t) {
        missing(b, stem, at, suffix, shape, n_dims);
        return NULL;
    }
    return check_shape(b, t, shape, n_dims) ? t : NULL;
}

/* A vector in the model's own memory. */
static const float *read_vector(struct binder *b, const char *stem, struct numbers at,
                                const char *suffix, int n)
{
    const int64_t shape[] = {n};
    const struct tensor *const t = require(b, stem, at, suffix, shape, 1);
    float *const out = t ? take_floats(b, (size_t)n) : NULL;
    if (out)
        read_values(t, 0, (size_t)n, out);
    return out;
}

static bool bind_vector(struct binder *b, const struct tensor_entry *entry, struct numbers at)
{
    int n_out, n;
    roles_shape(b->spec, entry->role, &n_out, &n);
    const float **const target = roles_target(b->weights, entry->role, at.layer, 0);
    *target = read_vector(b, entry->stem, at, "", n);
    return *target != NULL;
}

/* n_rows * n weights: from one tensor, or from one tensor a row where the stem counts heads. */
static bool read_norm(struct binder *b, const char *stem, struct numbers at, const char *suffix,
                      int n_rows, int n, float *out)
{
    const int64_t shape[] = {n_rows, n};
    const bool apart = counts_inner(stem);
    const bool flat = apart || n_rows == 1;
    for (at.inner = 0; at.inner < (apart ? n_rows : 1); at.inner++) {
        const struct tensor *const t =
            require(b, stem, at, suffix, flat ? shape + 1 : shape, flat ? 1 : 2);
        if (!t)
            return false;
        read_values(t, 0, (size_t)tensor_count(t), out + (size_t)at.inner * (size_t)n);
    }
    return true;
}

static float norm_eps(const struct model_spec *spec, enum role role)
{
    if (role == ROLE_QUERY_A_NORM || role == ROLE_KV_A_NORM)
        return spec->mla.latent_norm_eps;
    return role == ROLE_FINAL_NORM && spec->final_norm_eps > 0 ? spec->final_norm_eps
                                                               : spec->norm_eps;
}

static bool bind_norm(struct binder *b, const struct tensor_entry *entry, struct numbers at)
{
    const struct model_spec *const spec = b->spec;
    struct norm *const norm = roles_target(b->weights, entry->role, at.layer, 0);
    const bool has_bias = roles_has_bias(spec, entry->role);
    int n_rows, n;
    roles_shape(spec, entry->role, &n_rows, &n);
    const size_t count = (size_t)n_rows * (size_t)n;
    float *const weight = take_floats(b, count);
    float *const bias = has_bias ? take_floats(b, count) : NULL;
    if (!weight || (has_bias && !bias))
        return false;
    *norm = (struct norm){.type = spec->norm,
                          .eps = norm_eps(spec, entry->role),
                          .n = n,
                          .weight = weight,
                          .bias = bias};
    if (!spec->norm_plain && !read_norm(b, entry->stem, at, ".weight", n_rows, n, weight))
        return false;
    for (size_t i = 0; i < count && (spec->norm_plus_one || spec->norm_plain); i++)
        weight[i] += 1; /* what is not stored is all zero here */
    return !bias || read_norm(b, entry->stem, at, ".bias", n_rows, n, bias);
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* A matrix that n_entries roles share, as it is stored. */
struct fused {
    const struct tensor *tensor;
    const struct quant *quant; /* in the place of tensor, where it is stored quantised */
    size_t first;      /* where it begins in the tensor: experts may lie one behind the other */
    const float *bias; /* [n_all] or NULL */
    int n_all;         /* outputs of all roles together */
    int n_in;
    int n_groups;  /* that the outputs are cut into */
    bool together; /* with those of all other experts in one tensor */
};

static bool is_qkv(enum role role)
{
    return (ROLES_QKV & ROLE_BIT(role)) != 0;
}

/* The bias in the order of the role's own outputs. */
static const float *part_bias(struct binder *b, const struct fused *f, const struct linear *l,
                              int first)
{
    if (f->bias && l->block == l->n_out)
        return f->bias + first;
    float *const bias = f->bias ? take_floats(b, (size_t)l->n_out) : NULL;
    for (int r = 0; bias && r < l->n_out; r++)
        bias[r] = f->bias[first + r / l->block * l->block_stride + r % l->block];
    return bias;
}

/* One role's part of a matrix: in each group the outputs that lie *first behind its beginning. The
 * next role's lie behind them. */
static bool bind_part(struct binder *b, const struct tensor_entry *entry, struct numbers at,
                      const struct fused *f, int *first)
{
    struct linear *const l = roles_target(b->weights, entry->role, at.layer, at.inner);
    roles_shape(b->spec, entry->role, &l->n_out, &l->n_in);
    l->scale = roles_scale(b->spec, entry->role);
    l->block = l->n_out / f->n_groups;
    l->block_stride = f->n_all / f->n_groups;
    if (f->quant) {
        l->quant = f->quant;
        l->quant_first = f->first + (size_t)*first;
    } else {
        l->dtype = f->tensor->dtype;
        l->transposed = (entry->layout & LAYOUT_IN_OUT) != 0;
        l->stride = (size_t)(l->transposed ? f->n_all : l->n_in);
        const size_t skip = f->first + (size_t)*first * (l->transposed ? 1 : l->stride);
        l->w = (const unsigned char *)f->tensor->data + skip * dtype_size(l->dtype);
    }
    l->bias = part_bias(b, f, l, *first);
    *first += l->block;
    return l->bias || !f->bias;
}

/* The bias of a matrix, or of one expert's part of a tensor that holds them all. */
static const float *fused_bias(struct binder *b, const struct tensor_entry *entry,
                               struct numbers at, const struct fused *f)
{
    const char *const suffix = entry->layout & LAYOUT_BARE ? "_bias" : ".bias";
    const int64_t shape[] = {b->spec->moe.num_experts, f->n_all};
    const struct tensor *const t =
        require(b, entry->stem, at, suffix, f->together ? shape : shape + 1, f->together ? 2 : 1);
    float *const bias = t ? take_floats(b, (size_t)f->n_all) : NULL;
    if (bias)
        read_values(t, f->together ? (size_t)at.inner * (size_t)f->n_all : 0, (size_t)f->n_all,
                    bias);
    return bias;
}

/* The bias where the spec asks for one, or where a quantiser has left one (of zeros, as a rule). */
static bool find_bias(struct binder *b, const struct tensor_entry *entry, struct numbers at,
                      struct fused *f)
{
    if (!roles_has_bias(b->spec, entry->role) &&
        !(f->quant && look_up(b, entry->stem, at, ".bias")))
        return true;
    f->bias = fused_bias(b, entry, at, f);
    return f->bias != NULL;
}

/* Some savers keep a tied pair under the name of the head. */
static const struct tensor *find_embedding(struct binder *b, const char *stem, const char *suffix)
{
    const struct numbers at = {0, 0};
    const struct tensor *const t = find(b, stem, at, suffix);
    return t || !b->spec->tie_word_embeddings
               ? t
               : find(b, family_stem(b->family, ROLE_HEAD), at, suffix);
}

/* The part of a quantised matrix behind that suffix, which stands for so many parameters; NULL
 * where the format or the checkpoint has none. */
static const struct tensor *find_part(struct binder *b, const struct tensor_entry *entry,
                                      struct numbers at, const char *suffix, size_t n_parameters)
{
    const struct tensor *const t = suffix ? look_up(b, entry->stem, at, suffix) : NULL;
    if (t)
        claim(b, t, n_parameters);
    return t;
}

/* True where the matrix is stored quantised: its scales are there. *quant stays NULL after a
 * failure. */
static bool find_quant(struct binder *b, const struct tensor_entry *entry, struct numbers at,
                       const struct fused *f, const struct quant **quant)
{
    const struct quant_suffixes *const s = &b->quant->suffixes;
    struct quant_parts parts = {0};
    if (!b->quant->is_set)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(s->scales) && !parts.scales; i++)
        parts.scales = find_part(b, entry, at, s->scales[i], 0);
    if (!parts.scales)
        return false;
    const size_t n_rows = (size_t)f->n_all * (size_t)(f->together ? b->spec->moe.num_experts : 1);
    parts.codes = find_part(b, entry, at, s->codes, n_rows * (size_t)f->n_in);
    parts.zeros = find_part(b, entry, at, s->zeros, 0);
    parts.g_idx = find_part(b, entry, at, s->g_idx, 0);
    parts.shape = find_part(b, entry, at, s->shape, 0);
    const struct quant_format format =
        parts.codes ? quant_config_of_matrix(b->quant, &parts, f->n_in) : b->quant->format;
    struct quant *const q = arena_alloc(b->arena, sizeof *q);
    if (!q)
        err_no_memory(b->e);
    else if (!parts.codes)
        err_set(b->e, ERR_LOAD, "the tensor \"%.160s\" scales a matrix that is not there",
                parts.scales->name);
    else if (quant_init(q, &format, &parts, n_rows, (size_t)f->n_in, b->e))
        *quant = q;
    return true;
}

static const char *weight_suffix(const struct tensor_entry *entry)
{
    return entry->layout & LAYOUT_BARE ? "" : ".weight";
}

static bool find_fused(struct binder *b, const struct tensor_entry *entry, struct numbers at,
                       struct fused *f)
{
    const char *const suffix = weight_suffix(entry);
    const bool transposed = (entry->layout & LAYOUT_IN_OUT) != 0;
    const int64_t whole[] = {b->spec->moe.num_experts, transposed ? f->n_in : f->n_all,
                             transposed ? f->n_all : f->n_in};
    f->together = roles_per_expert(entry->role) && !counts_inner(entry->stem);
    const int64_t *const shape = f->together ? whole : whole + 1;
    if (find_quant(b, entry, at, f, &f->quant)) {
        f->first = f->together ? (size_t)at.inner * (size_t)f->n_all : 0;
        return f->quant && find_bias(b, entry, at, f);
    }
    f->tensor = entry->role == ROLE_EMBEDDING ? find_embedding(b, entry->stem, suffix)
                                              : find(b, entry->stem, at, suffix);
    if (!f->tensor)
        return missing(b, entry->stem, at, suffix, shape, f->together ? 3 : 2);
    if (!check_shape(b, f->tensor, shape, f->together ? 3 : 2))
        return false;
    if (f->together)
        f->first = (size_t)at.inner * (size_t)f->n_all * (size_t)f->n_in;
    return find_bias(b, entry, at, f);
}

static bool bind_matrix(struct binder *b, const struct tensor_entry *entries, int n_entries,
                        struct numbers at)
{
    const bool in_groups = n_entries > 1 && is_qkv(entries[0].role);
    struct fused f = {.n_groups = in_groups ? b->spec->qkv_groups : 1};
    for (int i = 0; i < n_entries; i++) {
        int n_out;
        roles_shape(b->spec, entries[i].role, &n_out, &f.n_in);
        f.n_all += n_out;
        assert(n_out % f.n_groups == 0); /* configure has seen to it */
    }
    if (!find_fused(b, &entries[0], at, &f))
        return false;
    for (int i = 0, first = 0; i < n_entries; i++)
        if (!bind_part(b, &entries[i], at, &f, &first))
            return false;
    return true;
}

/* The head is the embedding; only a bias of its own is looked for. */
static bool bind_tied_head(struct binder *b, const struct tensor_entry *entry)
{
    struct linear *const head = &b->weights->head;
    *head = b->weights->embedding;
    head->scale = roles_scale(b->spec, ROLE_HEAD);
    if (!roles_has_bias(b->spec, ROLE_HEAD))
        return true;
    head->bias = read_vector(b, entry->stem, (struct numbers){0, 0}, ".bias", head->n_out);
    return head->bias != NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* True where the line's matrix is in the checkpoint, plain or quantised. */
static bool is_there(const struct binder *b, const struct tensor_entry *entry, struct numbers at)
{
    return look_up(b, entry->stem, at, weight_suffix(entry)) ||
           (b->quant->is_set && look_up(b, entry->stem, at, b->quant->suffixes.codes));
}

/* Another line of the table whose matrix is in the checkpoint for the same role; or NULL. */
static const struct tensor_entry *other_name(const struct binder *b,
                                             const struct tensor_entry *entry, struct numbers at)
{
    for (const struct tensor_entry *other = b->family->tensors; other->stem; other++)
        if (other != entry && other->role == entry->role && is_there(b, other, at))
            return other;
    return NULL;
}

static bool bind_entries(struct binder *b, const struct tensor_entry *entries, int n_entries,
                         struct numbers at)
{
    const enum role role = entries[0].role;
    if (role == ROLE_HEAD && b->spec->tie_word_embeddings)
        return bind_tied_head(b, entries);
    switch (roles_kind(role)) {
    case ROLE_VECTOR:
        return bind_vector(b, entries, at);
    case ROLE_NORM:
        return bind_norm(b, entries, at);
    case ROLE_MATRIX:
        break;
    }
    const int n = roles_per_expert(role) ? b->spec->moe.num_experts : 1;
    for (at.inner = 0; at.inner < n; at.inner++)
        if (!bind_matrix(b, entries, n_entries, at))
            return false;
    return true;
}

/* Binds what lines of the same stem name, unless it is there under another name. */
static bool bind_line(struct binder *b, const struct tensor_entry *entries, int n_entries,
                      struct numbers at)
{
    const struct tensor_entry *const other = other_name(b, entries, at);
    if (!other)
        return bind_entries(b, entries, n_entries, at);
    return !is_there(b, entries, at) ||
           err_set(b->e, ERR_LOAD, "\"%s\" and \"%s\" are both there, which name the same weights",
                   entries->stem, other->stem);
}

static bool names_role(const struct family *family, enum role role)
{
    const struct tensor_entry *entry = family->tensors;
    while (entry->stem && entry->role != role)
        entry++;
    return entry->stem;
}

/* config.json may ask for what the family has no names for. */
static bool check_roles(const struct binder *b)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        const int n = roles_per_layer(role) ? b->spec->num_hidden_layers : 1;
        for (int layer = 0; layer < n && !names_role(b->family, role); layer++)
            if (roles_wanted(b->spec, role, layer))
                return err_set(b->e, ERR_LOAD,
                               "config.json asks for weights that no model of the type \"%s\" has "
                               "(such as \"hidden_act\": \"xielu\" does)",
                               b->family->model_type);
    }
    return true;
}

/* The embedding stands first in every table, so that a tied head finds it. */
static bool bind_table(struct binder *b)
{
    int n_shared;
    for (const struct tensor_entry *entry = b->family->tensors; entry->stem; entry += n_shared) {
        n_shared = 1;
        while (entry[n_shared].stem && strcmp(entry[n_shared].stem, entry->stem) == 0)
            n_shared++;
        const int n = roles_per_layer(entry->role) ? b->spec->num_hidden_layers : 1;
        for (struct numbers at = {0, 0}; at.layer < n; at.layer++)
            if (roles_wanted(b->spec, entry->role, at.layer) && !bind_line(b, entry, n_shared, at))
                return false;
    }
    return true;
}

static bool take_layers(struct binder *b)
{
    const struct model_spec *const spec = b->spec;
    const size_t n_layers = (size_t)spec->num_hidden_layers;
    struct layer_weights *const layers = arena_array(b->arena, n_layers, sizeof *layers);
    b->weights->layers = layers;
    for (size_t i = 0; layers && i < n_layers; i++) {
        if (!spec->layers[i].moe)
            continue;
        layers[i].experts =
            arena_array(b->arena, (size_t)spec->moe.num_experts, sizeof *layers[i].experts);
        if (!layers[i].experts)
            return err_no_memory(b->e);
    }
    return layers ? true : err_no_memory(b->e);
}

/* What is computed from weights once. */
static bool derive(struct binder *b)
{
    const struct model_spec *const spec = b->spec;
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        struct layer_weights *const l = &b->weights->layers[i];
        if (l->xielu_p)
            l->xielu = act_xielu_from(*l->xielu_p, *l->xielu_n);
    }
    if (spec->positions != POSITIONS_ALIBI)
        return true;
    float *const slopes = take_floats(b, (size_t)spec->num_attention_heads);
    b->weights->alibi_slopes = slopes;
    if (!slopes)
        return false;
    attend_alibi_slopes(spec->num_attention_heads, spec->alibi_bias_max, slopes);
    for (int h = 0; h < spec->num_attention_heads; h++)
        slopes[h] *= spec->alibi_scale;
    return true;
}

/* ---- leftovers ------------------------------------------------------------------------------- */

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

/* Layers behind the last, which predict further tokens while training. */
static bool is_nextn(const struct binder *b, const char *name)
{
    const int first = b->spec->num_hidden_layers;
    const size_t n_prefix = strlen(b->family->prefix);
    char layer[32];
    if (strncmp(name, b->family->prefix, n_prefix) == 0)
        name += n_prefix;
    for (int i = 0; i < b->spec->num_nextn_predict_layers; i++) {
        snprintf(layer, sizeof layer, "layers.%d.", first + i);
        if (strncmp(name, layer, strlen(layer)) == 0)
            return true;
    }
    return false;
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
    if (is_nextn(b, name) || (b->quant->is_set && quant_config_ignores(name)))
        return true;
    if (b->spec->tie_word_embeddings &&
        is_named(b, name, family_stem(b->family, ROLE_HEAD), ".weight"))
        return true; /* a copy of the embedding, which is the one that counts */
    for (const char *const *pattern = b->family->ignored; pattern && *pattern; pattern++)
        if (is_named(b, name, *pattern, ""))
            return true;
    return false;
}

/* Masks and positions, which modules save as buffers; no parameter has such a type, but the shape
 * of a packed matrix, X.weight_shape. */
static bool is_buffer(const struct tensor *t)
{
    return (t->dtype == DTYPE_BOOL || t->dtype == DTYPE_I64) && !strstr(t->name, ".weight_");
}

static bool check_leftovers(const struct binder *b)
{
    const size_t n = checkpoint_n_tensors(b->checkpoint);
    for (size_t i = 0; i < n; i++) {
        const struct tensor *const t = checkpoint_tensor_at(b->checkpoint, i);
        if (!b->claimed[i] && !is_buffer(t) && !is_ignored(b, t->name))
            return err_set(
                b->e, ERR_LOAD,
                "the checkpoint holds the tensor \"%.160s\", for which this %s model has no "
                "use; config.json and the weights do not belong together",
                t->name, b->family->model_type);
    }
    return true;
}

/* Where head and embedding are both there and differ, they are not tied, whatever config.json says
 * (transformers 5, tie_weights). A copy is read to its end for that, and then left alone. */
static bool untie(const struct binder *b, struct model_spec *spec)
{
    const struct numbers at = {0, 0};
    const char *const suffix = spec->head_transform ? ".decoder.weight" : ".weight";
    const struct tensor *const table =
        look_up(b, family_stem(b->family, ROLE_EMBEDDING), at, ".weight");
    const struct tensor *const head = look_up(b, family_stem(b->family, ROLE_HEAD), at, suffix);
    if (!spec->tie_word_embeddings || !table || !head)
        return true;
    if (table->dtype == head->dtype && table->n_bytes == head->n_bytes &&
        memcmp(table->data, head->data, head->n_bytes) == 0) {
        file_forget((struct bytes){head->data, head->n_bytes});
        return true;
    }
    spec->tie_word_embeddings = false;
    return !spec->head_transform ||
           err_set(b->e, ERR_LOAD, "\"%.160s\" is not the embedding, to which it would be tied",
                   head->name);
}

bool bind_weights(const struct family *family, const char *nest, struct model_spec *spec,
                  const struct quant_config *quant, const struct checkpoint *checkpoint,
                  struct arena *arena, struct weights *weights, struct bind_totals *totals,
                  struct err *e)
{
    struct binder b = {.family = family,
                       .nest = nest,
                       .quant = quant,
                       .spec = spec,
                       .checkpoint = checkpoint,
                       .arena = arena,
                       .weights = weights,
                       .totals = totals,
                       .e = e};
    b.claimed = arena_array(arena, checkpoint_n_tensors(checkpoint) + 1, sizeof *b.claimed);
    if (!b.claimed)
        return err_no_memory(e);
    return untie(&b, spec) && take_layers(&b) && check_roles(&b) && bind_table(&b) &&
           check_leftovers(&b) && derive(&b);
}
