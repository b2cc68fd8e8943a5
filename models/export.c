/*
 * Within a file, tensors lie sorted by the size of their elements, so that each is aligned; they
 * are written in the order of the original, which is the cheapest to read, so all offsets are fixed
 * before anything is computed. Buffers hold one matrix at a time.
 */
#include "models/export.h"

#include "core/file.h"
#include "core/file_write.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "models/export_config.h"
#include "models/internal.h"
#include "models/quantize.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tensor of the new directory. */
struct part {
    struct tensor tensor;           /* data: of a tensor that stays */
    struct quantize_matrix *matrix; /* what it is made from, else NULL */
    const char *file;
    size_t offset; /* in it */
};

struct exporter {
    struct model *model;
    enum model_weights weights;
    struct arena arena;
    struct quantize_plan plan;
    struct part *parts; /* [n_parts] in the order of work; those of a matrix are neighbours */
    size_t n_parts, next;
    struct export_module *modules; /* [n_modules] */
    size_t n_modules;
    bool untie;
    const char *head;   /* the name of the head's module */
    const char *prefix; /* for names whose file leaves it out, once there is a head beside them */
    struct export_result result;
    size_t n_done, n_total; /* bytes of parts */
    struct file_write file; /* of parts[next - 1] */
    const char *file_name;
    unsigned char *codes; /* of the largest matrix, and its scales */
    float *scratch;
    size_t n_scratch;
    char *out, *work; /* the final name, and a temporary one */
    bool has_work;    /* until it has its final name */
};

static const char index_name[] = "model.safetensors.index.json";
static const char weight_ending[] = ".weight";

static char *join_text(struct arena *arena, const char *a, size_t n_a, const char *b)
{
    char *const text = arena_alloc(arena, n_a + strlen(b) + 1);
    if (text)
        memcpy(stpncpy(text, a, n_a), b, strlen(b));
    return text;
}

/* ---- what becomes of which tensor ---- */

/* Other programs know a quantised nn.Linear, one matrix of [out, in], and nothing else. */
static bool is_linear(const struct quantize_matrix *matrix)
{
    return !matrix->from.transposed && matrix->tensor->n_dims == 2 &&
           text_ends_in(matrix->tensor->name, weight_ending);
}

static bool is_tied_head(const struct exporter *x, const struct quantize_matrix *matrix)
{
    return matrix->role == ROLE_HEAD && x->model->spec.tie_word_embeddings;
}

static bool add_part(struct exporter *x, const struct tensor *tensor, const char *name,
                     struct quantize_matrix *matrix, const char *file)
{
    struct part *const part = &x->parts[x->n_parts++];
    *part = (struct part){.tensor = *tensor, .matrix = matrix, .file = file};
    part->tensor.name = name;
    x->n_total += tensor->n_bytes;
    return name != NULL;
}

static bool add_quantised(struct exporter *x, struct quantize_matrix *matrix, const char *module,
                          const char *file)
{
    const struct quantized *const to = &matrix->to;
    const bool packed = to->format.type != QUANT_INT8;
    const size_t n = strlen(module), n_in = matrix->from.n_in;
    const size_t group = n_in / (size_t)to->scales.shape[1];
    const bool grouped = to->format.type == QUANT_PACKED4 && (group == 64 || group == 32);
    x->modules[x->n_modules++] = (struct export_module){.name = module,
                                                        .type = to->format.type,
                                                        .group = grouped ? group : 0,
                                                        .is_quantised = true,
                                                        .is_head = matrix->role == ROLE_HEAD};
    x->result.n_matrices++;
    x->result.n_weights += matrix->from.n_out * n_in;
    x->result.n_bits += 8 * (to->codes.n_bytes + to->scales.n_bytes);
    const struct tensor shape = {
        .dtype = DTYPE_I64, .n_dims = 1, .shape = {2}, .n_bytes = 2 * sizeof(int64_t)};
    return add_part(x, &to->codes,
                    join_text(&x->arena, module, n, packed ? ".weight_packed" : weight_ending),
                    matrix, file) &&
           add_part(x, &to->scales, join_text(&x->arena, module, n, ".weight_scale"), matrix,
                    file) &&
           (!packed ||
            add_part(x, &shape, join_text(&x->arena, module, n, ".weight_shape"), matrix, file));
}

/* A tensor that stays; matrices among them are listed. */
static bool add_stored(struct exporter *x, const struct tensor *t, const char *name,
                       const char *file)
{
    if (t->n_dims >= 2 && text_ends_in(name, weight_ending)) {
        const size_t n = strlen(name) - (sizeof weight_ending - 1);
        const char *const module = join_text(&x->arena, name, n, "");
        if (!module)
            return false;
        x->modules[x->n_modules++] = (struct export_module){.name = module};
    }
    return add_part(x, t, name, NULL, file);
}

static bool add_tensor(struct exporter *x, const struct tensor *t, struct quantize_matrix *matrix)
{
    const char *const file = checkpoint_tensor_file(x->model->checkpoint, t);
    const bool tied = matrix && is_tied_head(x, matrix);
    const char *const name = join_text(&x->arena, x->prefix, strlen(x->prefix), t->name);
    if (!name)
        return false;
    const size_t n_head = strlen(x->head);
    if (x->untie && !tied && strncmp(t->name, x->head, n_head) == 0 &&
        strcmp(t->name + n_head, weight_ending) == 0)
        return true; /* a copy of the table that the head was tied to */
    if (matrix && is_linear(matrix) && !tied) {
        const size_t n = strlen(name) - (sizeof weight_ending - 1);
        const char *const module = join_text(&x->arena, name, n, "");
        return module && add_quantised(x, matrix, module, file);
    }
    if (matrix && (!tied || !x->untie)) {
        x->result.n_others++;
        x->result.other_bytes += t->n_bytes;
    }
    return add_stored(x, t, name, file) &&
           (!tied || !x->untie || add_quantised(x, matrix, x->head, file));
}

/* True where a tied head can have weights of its own: its name must be free, and that of a module.
 * (A transformed head's is not: bert's decoder lies one deeper than its bias.) */
static bool can_untie(const struct exporter *x)
{
    if (x->model->spec.head_transform)
        return false;
    for (size_t i = 0; i < x->plan.n; i++) {
        const struct quantize_matrix *const matrix = &x->plan.matrices[i];
        if (is_tied_head(x, matrix))
            return is_linear(matrix) &&
                   strncmp(matrix->tensor->name, x->head, strlen(x->head)) != 0;
    }
    return false;
}

/* Files of the base model alone may leave out (the beginning of) the prefix, by which transformers
 * tells that they have no head. */
static const char *prefix_left_out(struct exporter *x)
{
    const char *const prefix = x->model->family->prefix;
    const size_t n_prefix = strlen(prefix);
    const size_t n_stem = strlen(family_stem(x->model->family, ROLE_EMBEDDING));
    for (size_t i = 0; x->untie && i < x->plan.n; i++) {
        const struct quantize_matrix *const matrix = &x->plan.matrices[i];
        const char *const name = matrix->tensor->name;
        const size_t n = strlen(name) - (sizeof weight_ending - 1);
        if (is_tied_head(x, matrix) && !*x->model->nest && n - n_stem < n_prefix)
            return join_text(&x->arena, prefix, n_prefix - (n - n_stem), "");
    }
    return "";
}

/* A head that stays tied has no tensor, but is a module of which other programs must know that it
 * is not quantised. */
static bool list_tied_head(struct exporter *x)
{
    if (x->untie || !x->model->spec.tie_word_embeddings)
        return true;
    const char *const inner = x->model->spec.head_transform ? ".decoder" : "";
    const char *const name = join_text(&x->arena, x->head, strlen(x->head), inner);
    x->modules[x->n_modules++] = (struct export_module){.name = name, .is_head = true};
    return name != NULL;
}

static bool list_parts(struct exporter *x, struct err *e)
{
    const struct checkpoint *const checkpoint = x->model->checkpoint;
    const size_t n = checkpoint_n_tensors(checkpoint);
    const char *const nest = bind_head_nest(x->model->nest);
    x->head = join_text(&x->arena, nest, strlen(nest), family_stem(x->model->family, ROLE_HEAD));
    x->parts = arena_array(&x->arena, 3 * n + 3, sizeof *x->parts);
    x->modules = arena_array(&x->arena, n + 2, sizeof *x->modules);
    if (!x->head || !x->parts || !x->modules)
        return err_no_memory(e);
    x->untie = can_untie(x);
    x->prefix = prefix_left_out(x);
    bool ok = x->prefix != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = add_tensor(x, checkpoint_tensor_at(checkpoint, i), x->plan.of_tensor[i]);
    return (ok && list_tied_head(x)) || err_no_memory(e);
}

static bool check_model(const struct exporter *x, struct err *e)
{
    if (x->model->quant.is_set)
        return err_set(e, ERR_LOAD, "its weights are stored quantised already");
    for (size_t i = 0; i < x->plan.n; i++)
        if (x->plan.matrices[i].from.transposed)
            return err_set(e, ERR_LOAD,
                           "%.160s is stored [in, out], for which compressed-tensors has no form; "
                           "-w quantises it while loading",
                           x->plan.matrices[i].tensor->name);
    if (x->result.n_matrices == 0)
        return err_set(e, ERR_LOAD, "holds no matrix that other programs could read quantised");
    return true;
}

/* ---- the directory ---- */

/* False with the sentence for all else, links too: no directory can replace one. */
static bool is_empty_or_absent(const char *path, struct err *e)
{
    struct stat about;
    const bool there = lstat(path, &about) == 0;
    if (!there && errno == ENOENT)
        return true;
    if (there && S_ISLNK(about.st_mode))
        return err_set(e, ERR_RUNTIME, "%s is there already, a symbolic link", path);
    DIR *const dir = opendir(path);
    if (!dir)
        return err_set(e, ERR_RUNTIME, "cannot write to %s: %s", path, strerror(errno));
    int n = 0;
    for (const struct dirent *entry; (errno = 0, entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    const int error = errno;
    closedir(dir);
    if (error)
        return err_set(e, ERR_RUNTIME, "cannot write to %s: %s", path, strerror(error));
    return n == 0 || err_set(e, ERR_RUNTIME, "%s is there already and is not empty", path);
}

static bool make_work(struct exporter *x, struct err *e)
{
    x->has_work = mkdir(x->work, 0777) == 0;
    return x->has_work ||
           err_set(e, ERR_RUNTIME, "cannot write to %s: %s", x->out, strerror(errno));
}

/* Checks at the beginning, not at the end, that a directory can replace the empty one that is
 * there: it cannot where that is "." or a mount point. */
static bool take_place(struct exporter *x, struct err *e)
{
    if (rename(x->work, x->out) != 0)
        return err_set(e, ERR_RUNTIME,
                       "cannot put a new directory in the place of %s: %s; one within it will do",
                       x->out, strerror(errno));
    x->has_work = false;
    return make_work(x, e);
}

static bool make_directory(struct exporter *x, const char *out, struct err *e)
{
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    x->out = arena_text(&x->arena, out, n);
    x->work = arena_alloc(&x->arena, n + 32);
    if (!x->out || !x->work)
        return err_no_memory(e);
    snprintf(x->work, n + 32, "%s.%ld.tmp", x->out, (long)getpid());
    if (!is_empty_or_absent(x->out, e))
        return false;
    return make_work(x, e) && (access(x->out, F_OK) != 0 || take_place(x, e));
}

static void remove_directory(const char *path)
{
    DIR *const dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* ---- tensor files ---- */

/* Larger elements first, else as they came. */
static int compare_parts(const void *a, const void *b)
{
    const struct part *const x = *(struct part *const *)a, *const y = *(struct part *const *)b;
    const size_t x_size = dtype_size(x->tensor.dtype), y_size = dtype_size(y->tensor.dtype);
    if (x_size != y_size)
        return x_size > y_size ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Creates the file that parts[next] begins, with its header, and settles all offsets in it. */
static bool open_file(struct exporter *x, struct err *e)
{
    const char *const name = x->parts[x->next].file;
    size_t n = 0, size = 0;
    while (x->next + n < x->n_parts && strcmp(x->parts[x->next + n].file, name) == 0)
        n++;
    struct part **const sorted = (struct part **)arena_array(&x->arena, n, sizeof *sorted);
    const struct tensor **const tensors =
        (const struct tensor **)arena_array(&x->arena, n, sizeof *tensors);
    if (!sorted || !tensors)
        return err_no_memory(e);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &x->parts[x->next + i];
    qsort(sorted, n, sizeof *sorted, compare_parts);
    for (size_t i = 0; i < n; i++) {
        tensors[i] = &sorted[i]->tensor;
        sorted[i]->offset = size;
        size += sorted[i]->tensor.n_bytes;
    }
    size_t n_header;
    char *const header = safetensors_header(tensors, n, &n_header);
    if (!header)
        return err_no_memory(e);
    for (size_t i = 0; i < n; i++)
        sorted[i]->offset += n_header;
    const bool ok = file_write_open(&x->file, x->work, name, n_header + size, e) &&
                    file_write_at(&x->file, 0, header, n_header, e);
    free(header);
    x->file_name = name;
    return ok;
}

static bool close_file(struct exporter *x, struct err *e)
{
    const bool ok = !x->file_name || file_write_close(&x->file, e);
    x->file_name = NULL;
    return ok;
}

static bool write_part(struct exporter *x, const struct part *part, const void *data, struct err *e)
{
    x->n_done += part->tensor.n_bytes;
    return file_write_at(&x->file, part->offset, data, part->tensor.n_bytes, e);
}

static bool quantise(struct exporter *x, struct compute *c, struct quantize_matrix *matrix,
                     struct err *e)
{
    quantize_place(matrix, x->codes);
    return quantize_run(c, matrix, x->scratch, x->n_scratch, e) ||
           err_prefix(e, "%s", checkpoint_dir(x->model->checkpoint));
}

/* Codes, scales and perhaps the shape: the parts from next on that are made from its matrix. */
static bool write_matrix(struct exporter *x, struct compute *c, struct err *e)
{
    struct part *const part = &x->parts[x->next];
    struct quantize_matrix *const matrix = part->matrix;
    const int64_t shape[] = {(int64_t)matrix->from.n_out, (int64_t)matrix->from.n_in};
    if (!quantise(x, c, matrix, e))
        return false;
    x->next += 2;
    if (!write_part(x, part, matrix->to.codes.data, e) ||
        !write_part(x, part + 1, matrix->to.scales.data, e))
        return false;
    if (matrix->to.format.type == QUANT_INT8)
        return true;
    x->next++;
    return write_part(x, part + 2, shape, e);
}

/* Called late, because the size depends on whether there are factors. */
static bool take_scratch(struct exporter *x, const struct compute *c, struct err *e)
{
    if (x->scratch)
        return true;
    x->n_scratch = quantize_plan_scratch(&x->plan);
    x->scratch = calloc((size_t)compute_n_threads(c), (x->n_scratch + 1) * sizeof *x->scratch);
    return x->scratch || err_no_memory(e);
}

bool export_check(struct exporter *x, struct compute *c, struct err *e)
{
    bool ok = take_scratch(x, c, e);
    for (size_t i = 0; ok && i < x->plan.n; i++)
        ok = quantise(x, c, &x->plan.matrices[i], e);
    return ok;
}

static bool write_next(struct exporter *x, struct compute *c, struct err *e)
{
    struct part *const part = &x->parts[x->next];
    if ((!x->file_name || strcmp(x->file_name, part->file) != 0) &&
        !(close_file(x, e) && open_file(x, e)))
        return false;
    if (part->matrix)
        return write_matrix(x, c, e);
    x->next++;
    return write_part(x, part, part->tensor.data, e);
}

bool export_step(struct exporter *x, struct compute *c, size_t *done, size_t *total, struct err *e)
{
    bool ok = take_scratch(x, c, e);
    do
        ok = ok && (x->next == x->n_parts || write_next(x, c, e));
    while (ok && x->n_done == x->n_total && x->next < x->n_parts); /* empty tensors at the end */
    *done = x->n_done;
    *total = x->n_total;
    return ok;
}

/* ---- the other files ---- */

static bool write_file(struct exporter *x, const char *name, const void *data, size_t n,
                       struct err *e)
{
    struct file_write f;
    const bool ok = file_write_open(&f, x->work, name, n, e) && file_write_at(&f, 0, data, n, e) &&
                    file_write_close(&f, e);
    file_write_abandon(&f);
    return ok;
}

static bool write_config(struct exporter *x, struct err *e)
{
    const struct export_lists lists = {
        .modules = x->modules,
        .n = x->n_modules,
        .weights = x->weights,
        .family = x->model->family,
        .nest = x->model->nest,
        .untie = x->untie || !x->model->spec.tie_word_embeddings,
    };
    struct bytes original;
    size_t size;
    if (!checkpoint_file(x->model->checkpoint, "config.json", &original, e))
        return false;
    char *const text = export_config(original, &lists, &size, e);
    const bool ok = text && write_file(x, "config.json", text, size, e);
    free(text);
    return ok;
}

/* Only where the tensors lie in more than one file, or in one of another name. */
static bool write_index(struct exporter *x, struct err *e)
{
    char *data = NULL;
    size_t size = 0;
    if (strcmp(x->parts[0].file, "model.safetensors") == 0)
        return true;
    FILE *const out = open_memstream(&data, &size);
    if (!out)
        return err_no_memory(e);
    fprintf(out, "{\n  \"metadata\": {\"total_size\": %zu},\n  \"weight_map\": {", x->n_total);
    for (size_t i = 0; i < x->n_parts; i++) {
        fprintf(out, "%s\n    ", i ? "," : "");
        json_print_text(out, x->parts[i].tensor.name);
        fprintf(out, ": ");
        json_print_text(out, x->parts[i].file);
    }
    fprintf(out, "\n  }\n}\n");
    const bool ok =
        file_close_text(out, &data) ? write_file(x, index_name, data, size, e) : err_no_memory(e);
    free(data);
    return ok;
}

/* What stays behind: the tensors, and the same weights in other forms. */
static bool is_left_behind(const char *name)
{
    static const char *const endings[] = {".safetensors", ".bin",  ".pt",      ".pth", ".gguf",
                                          ".h5",          ".onnx", ".msgpack", ".ckpt"};
    for (size_t i = 0; i < ARRAY_LEN(endings); i++)
        if (text_ends_in(name, endings[i]))
            return true;
    return strcmp(name, index_name) == 0 || strcmp(name, "pytorch_model.bin.index.json") == 0 ||
           strcmp(name, "config.json") == 0;
}

static bool copy_mapped(struct exporter *x, const char *path, const char *name, bool copies,
                        struct err *e)
{
    struct bytes bytes;
    if (!file_map(path, &bytes, e))
        return err_prefix(e, "%s", path);
    const bool ok = !copies || write_file(x, name, bytes.data, bytes.size, e);
    file_unmap(bytes);
    return ok;
}

static bool copy_file(struct exporter *x, const char *name, bool copies, struct err *e)
{
    struct stat st;
    char *const path = file_join(checkpoint_dir(x->model->checkpoint), name);
    if (!path)
        return err_no_memory(e);
    const bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    const bool ok = !is_file || copy_mapped(x, path, name, copies, e);
    free(path);
    return ok;
}

/* Copies the other files, or only opens them: hours of work must not end at one that cannot be. */
static bool copy_others(struct exporter *x, bool copies, struct err *e)
{
    const char *const path = checkpoint_dir(x->model->checkpoint);
    bool ok = true;
    DIR *const dir = opendir(path);
    if (!dir)
        return err_set(e, ERR_LOAD, "%s: cannot be listed: %s", path, strerror(errno));
    for (const struct dirent *entry; ok && (errno = 0, entry = readdir(dir));)
        ok = is_left_behind(entry->d_name) || copy_file(x, entry->d_name, copies, e);
    if (ok && errno)
        ok = err_set(e, ERR_LOAD, "%s: cannot be listed: %s", path, strerror(errno));
    closedir(dir);
    return ok;
}

bool export_finish(struct exporter *x, struct err *e)
{
    assert(x->next == x->n_parts);
    if (!close_file(x, e) || !write_config(x, e) || !write_index(x, e) || !copy_others(x, true, e))
        return false;
    if (rename(x->work, x->out) != 0)
        return err_set(e, ERR_RUNTIME, "cannot write to %s: %s", x->out, strerror(errno));
    x->has_work = false;
    return true;
}

/* ---- begin, end ---- */

static bool take_memory(struct exporter *x, struct err *e)
{
    size_t most = 0;
    for (size_t i = 0; i < x->plan.n; i++) {
        const struct quantized *const to = &x->plan.matrices[i].to;
        const size_t n = to->codes.n_bytes + to->scales.n_bytes;
        most = n > most ? n : most;
    }
    x->codes = malloc(most + 1);
    return x->codes || err_no_memory(e);
}

struct exporter *export_begin(struct model *m, enum model_weights weights, const char *out,
                              struct err *e)
{
    struct exporter *const x = calloc(1, sizeof *x);
    if (!x) {
        err_no_memory(e);
        return NULL;
    }
    x->model = m;
    x->weights = weights;
    x->file.fd = -1;
    if (quantize_plan_model(m, weights, &x->arena, &x->plan, e) && list_parts(x, e) &&
        (check_model(x, e) || err_prefix(e, "%s", checkpoint_dir(m->checkpoint))) &&
        take_memory(x, e) && copy_others(x, false, e) && make_directory(x, out, e))
        return x;
    export_free(x);
    return NULL;
}

void export_calibrate(struct exporter *x, const struct moments *moments)
{
    free(x->scratch); /* with factors there must be more of it */
    x->scratch = NULL;
    for (size_t i = 0; i < x->plan.n; i++) {
        struct quantize_matrix *const matrix = &x->plan.matrices[i];
        matrix->from.factors = moments_factors(moments, matrix->role, matrix->layer);
    }
}

const struct export_result *export_result(const struct exporter *x)
{
    return &x->result;
}

void export_free(struct exporter *x)
{
    if (!x)
        return;
    file_write_abandon(&x->file);
    if (x->has_work)
        remove_directory(x->work);
    free(x->codes);
    free(x->scratch);
    arena_free(&x->arena);
    free(x);
}
