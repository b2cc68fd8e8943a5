/*
 * Finds the tensor files of a directory and makes one table of their tensors. Reads headers only:
 * opening tens of GB takes as long as parsing their names. The table is sorted by name and searched
 * by halving; a hash would be no faster for some hundred look-ups at load, and a sorted table has
 * no bad case that a file could provoke. What the format of one file demands is safetensors.c's.
 */
#include "core/checkpoint.h"

#include "core/arena.h"
#include "core/file.h"
#include "core/json.h"
#include "core/safetensors.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "\"%.160s\""

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

/* A file that is mapped until the checkpoint closes. */
struct mapped_file {
    struct mapped_file *next;
    const char *name;
    struct bytes bytes;
};

/* What model.safetensors.index.json says of one tensor. */
struct placement {
    const char *tensor, *shard;
    bool found;
};

struct shard {
    const char *name;
    struct tensor *tensors; /* [n] by offset */
    size_t n;
};

struct checkpoint {
    char *dir;
    struct arena arena;                /* names, tables, the list of files */
    struct mapped_file *_Atomic files; /* a handler may read it at any time */
    bool loaded;
    struct tensor *tensors;        /* [n_tensors] in the order of the files */
    const struct tensor **by_name; /* [n_tensors] sorted */
    size_t n_tensors;
};

struct checkpoint *checkpoint_open(const char *dir, struct err *e)
{
    if (!file_is_directory(dir)) {
        err_set(e, ERR_LOAD, "%s: %s", dir,
                file_exists(dir) ? "not a directory" : "no such directory");
        return NULL;
    }
    if (access(dir, R_OK | X_OK) != 0) {
        err_set(e, ERR_LOAD, "%s: %s", dir, strerror(errno));
        return NULL;
    }
    struct checkpoint *c = calloc(1, sizeof *c);
    char *copy = strdup(dir);
    if (!c || !copy) {
        free(c);
        free(copy);
        err_no_memory(e);
        return NULL;
    }
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0'; /* sentences put a slash of their own behind it */
    c->dir = copy;
    return c;
}

void checkpoint_close(struct checkpoint *c)
{
    if (!c)
        return;
    for (struct mapped_file *f = c->files; f; f = f->next)
        file_unmap(f->bytes);
    arena_free(&c->arena);
    free(c->dir);
    free(c);
}

const char *checkpoint_dir(const struct checkpoint *c)
{
    return c->dir;
}

/* What a clone without git-lfs holds in the place of a large file. */
static bool is_lfs_pointer(struct bytes file)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    const size_t n = sizeof begin - 1;
    return file.size >= n && memcmp(file.data, begin, n) == 0;
}

/* Maps `path`, which is `name` in the directory, and keeps it in the list. */
static bool map_file(struct checkpoint *c, const char *path, const char *name, struct bytes *out,
                     struct err *e)
{
    struct mapped_file *f = arena_alloc(&c->arena, sizeof *f);
    const char *copy = arena_text(&c->arena, name, strlen(name));
    if (!f || !copy)
        return err_no_memory(e);
    if (!file_map(path, out, e))
        return err_prefix(e, "%s", name);
    if (is_lfs_pointer(*out)) {
        file_unmap(*out);
        *out = (struct bytes){.data = NULL};
        return err_set(
            e, ERR_LOAD,
            "%s: not the file itself but a Git LFS pointer to it; git lfs pull fetches it", name);
    }
    *f = (struct mapped_file){.next = c->files, .name = copy, .bytes = *out};
    c->files = f;
    return true;
}

bool checkpoint_file(struct checkpoint *c, const char *name, struct bytes *out, struct err *e)
{
    assert(!strchr(name, '/'));
    for (const struct mapped_file *f = c->files; f; f = f->next) {
        if (strcmp(f->name, name) == 0) {
            *out = f->bytes;
            return true;
        }
    }
    *out = (struct bytes){.data = NULL, .size = 0};
    char *path = file_join(c->dir, name);
    if (!path)
        return err_no_memory(e);
    bool ok = !file_exists(path) || map_file(c, path, name, out, e);
    free(path);
    return ok;
}

bool checkpoint_file_ending(struct checkpoint *c, const char *ending, struct bytes *out,
                            struct err *e)
{
    *out = (struct bytes){.data = NULL, .size = 0};
    DIR *dir = opendir(c->dir);
    if (!dir)
        return err_set(e, ERR_LOAD, "cannot be listed: %s", strerror(errno));
    char first[sizeof((struct dirent *)0)->d_name] = "";
    for (const struct dirent *entry; (errno = 0, entry = readdir(dir));)
        if (text_ends_in(entry->d_name, ending) && (!*first || strcmp(entry->d_name, first) < 0))
            memcpy(first, entry->d_name, strlen(entry->d_name) + 1);
    const int error = errno;
    closedir(dir);
    if (error)
        return err_set(e, ERR_LOAD, "cannot be listed: %s", strerror(error));
    return !*first || checkpoint_file(c, first, out, e);
}

/* Whether the directory's file `name` is that one. */
static bool is_file(const struct checkpoint *c, const char *name, const struct stat *that)
{
    struct stat st;
    char *path = file_join(c->dir, name);
    bool same =
        path && stat(path, &st) == 0 && st.st_dev == that->st_dev && st.st_ino == that->st_ino;
    free(path);
    return same;
}

bool checkpoint_holds(const struct checkpoint *c, const char *path)
{
    struct stat st;
    bool held = false;
    bool there = stat(path, &st) == 0;
    for (const struct mapped_file *f = c->files; f && there && !held; f = f->next)
        held = is_file(c, f->name, &st);
    return held;
}

/* ---- the index ------------------------------------------------------------------------------- */

static int compare_shard(const void *a, const void *b)
{
    const struct placement *x = a;
    const struct placement *y = b;
    return strcmp(x->shard, y->shard);
}

static int compare_tensor(const void *a, const void *b)
{
    const struct placement *x = a;
    const struct placement *y = b;
    return strcmp(x->tensor, y->tensor);
}

/* A shard lies in the directory itself; nothing in a file may lead out of it. */
static bool is_plain_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* weight_map -> placements, with strings of their own. */
static bool read_weight_map(const struct json *map, struct arena *arena, struct placement *out,
                            struct err *e)
{
    for (const struct json *v = json_first(map); v; v = json_next(v), out++) {
        const char *shard = json_text(v, NULL);
        if (!shard || !is_plain_name(shard)) {
            return err_set(e, ERR_LOAD, "weight_map: the file of tensor " NAME " is no plain name",
                           json_key(v));
        }
        out->tensor = arena_text(arena, json_key(v), strlen(json_key(v)));
        out->shard = arena_text(arena, shard, strlen(shard));
        if (!out->tensor || !out->shard)
            return err_no_memory(e);
    }
    return true;
}

static bool read_index(struct bytes text, struct arena *arena, struct placement **out, size_t *n,
                       struct err *e)
{
    struct json *root = json_parse((const char *)text.data, text.size, e);
    if (!root)
        return false;
    const struct json *map = json_get(root, "weight_map");
    *n = json_count(map);
    *out = arena_array(arena, *n, sizeof **out);
    const char *twice = NULL;
    bool ok = true;
    if (!*out)
        ok = err_no_memory(e);
    else if (!json_find_duplicate(map, &twice, e))
        ok = false;
    else if (json_type(map) != JSON_OBJECT || *n == 0)
        ok = err_set(e, ERR_LOAD, "no weight_map that names a tensor");
    else if (twice)
        ok = err_set(e, ERR_LOAD, "weight_map: tensor " NAME " is there twice", twice);
    else
        ok = read_weight_map(map, arena, *out, e);
    json_free(root);
    return ok;
}

/* ---- tensor files ---------------------------------------------------------------------------- */

static bool load_shard(struct checkpoint *c, const char *name, struct shard *out, struct err *e)
{
    struct bytes file;
    if (!checkpoint_file(c, name, &file, e))
        return false;
    if (!file.data) {
        return err_set(e, ERR_LOAD, "%s names the file %.200s, which is not there", index_name,
                       name);
    }
    out->name = name;
    return safetensors_parse(file, &c->arena, &out->tensors, &out->n, e) ||
           err_prefix(e, "%s", name);
}

/* Every tensor of the shard must be one that the index places there. `places` is sorted by tensor.
 */
static bool check_shard(const struct shard *shard, struct placement *places, size_t n,
                        struct err *e)
{
    for (size_t i = 0; i < shard->n; i++) {
        struct placement wanted = {.tensor = shard->tensors[i].name};
        struct placement *p = bsearch(&wanted, places, n, sizeof *places, compare_tensor);
        if (!p) {
            return err_set(e, ERR_LOAD,
                           "%.160s holds tensor " NAME ", which the index does not name",
                           shard->name, wanted.tensor);
        }
        if (strcmp(p->shard, shard->name) != 0) {
            return err_set(e, ERR_LOAD,
                           "tensor " NAME " lies in %.100s, where the index says %.100s",
                           wanted.tensor, shard->name, p->shard);
        }
        p->found = true;
    }
    return true;
}

/* Loads the shards that the sorted placements name, each once. */
static bool load_named_shards(struct checkpoint *c, const struct placement *places, size_t n,
                              struct shard *shards, size_t *n_shards, struct err *e)
{
    *n_shards = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(places[i].shard, places[i - 1].shard) == 0)
            continue;
        if (!load_shard(c, places[i].shard, &shards[(*n_shards)++], e))
            return false;
    }
    return true;
}

static bool check_shards(const struct shard *shards, size_t n_shards, struct placement *places,
                         size_t n, struct err *e)
{
    qsort(places, n, sizeof *places, compare_tensor);
    for (size_t i = 0; i < n_shards; i++)
        if (!check_shard(&shards[i], places, n, e))
            return false;
    for (size_t i = 0; i < n; i++) {
        if (!places[i].found) {
            return err_set(e, ERR_LOAD, "tensor " NAME " is missing from %.200s", places[i].tensor,
                           places[i].shard);
        }
    }
    return true;
}

static int compare_name(const void *a, const void *b)
{
    const struct tensor *const *x = a;
    const struct tensor *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Puts the shards' tensors, whose names are known to differ, into one table. */
static bool make_table(struct checkpoint *c, const struct shard *shards, size_t n_shards,
                       struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < n_shards; i++)
        n += shards[i].n;
    c->tensors = arena_array(&c->arena, n, sizeof *c->tensors);
    c->by_name = arena_array(&c->arena, n, sizeof *c->by_name);
    if (!c->tensors || !c->by_name)
        return err_no_memory(e);
    for (size_t i = 0; i < n_shards; i++) {
        if (shards[i].n == 0)
            continue; /* a file without tensors has no table either */
        memcpy(c->tensors + c->n_tensors, shards[i].tensors, shards[i].n * sizeof *c->tensors);
        c->n_tensors += shards[i].n;
    }
    for (size_t i = 0; i < n; i++)
        c->by_name[i] = &c->tensors[i];
    qsort(c->by_name, n, sizeof *c->by_name, compare_name);
    return true;
}

static bool load_by_index(struct checkpoint *c, struct bytes index, struct err *e)
{
    struct placement *places;
    size_t n, n_shards;
    if (!read_index(index, &c->arena, &places, &n, e))
        return err_prefix(e, "%s", index_name);
    struct shard *shards = arena_array(&c->arena, n, sizeof *shards);
    if (!shards)
        return err_no_memory(e);
    qsort(places, n, sizeof *places, compare_shard);
    return load_named_shards(c, places, n, shards, &n_shards, e) &&
           check_shards(shards, n_shards, places, n, e) && make_table(c, shards, n_shards, e);
}

/* What to say where there is neither of the two files. */
static bool refuse_absent(struct checkpoint *c, struct err *e)
{
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
    for (size_t i = 0; i < ARRAY_LEN(pickles); i++) {
        char *path = file_join(c->dir, pickles[i]);
        bool there = path && file_exists(path);
        free(path);
        if (there) {
            return err_set(e, ERR_LOAD, "there is %s but no %s, and only safetensors are read",
                           pickles[i], single_name);
        }
    }
    return err_set(e, ERR_LOAD, "neither %s nor %s is there", single_name, index_name);
}

/* model.safetensors wins over an index beside it, as it does in transformers. */
static bool load_files(struct checkpoint *c, struct err *e)
{
    struct bytes single, index;
    if (!checkpoint_file(c, single_name, &single, e))
        return false;
    if (single.data) {
        struct shard only = {0};
        return load_shard(c, single_name, &only, e) && make_table(c, &only, 1, e);
    }
    if (!checkpoint_file(c, index_name, &index, e))
        return false;
    return index.data ? load_by_index(c, index, e) : refuse_absent(c, e);
}

bool checkpoint_load_tensors(struct checkpoint *c, struct err *e)
{
    c->loaded = c->loaded || load_files(c, e);
    return c->loaded;
}

const struct tensor *checkpoint_tensor(const struct checkpoint *c, const char *name)
{
    const struct tensor wanted = {.name = name};
    const struct tensor *key = &wanted;
    const struct tensor **found =
        c->loaded ? bsearch(&key, c->by_name, c->n_tensors, sizeof *c->by_name, compare_name)
                  : NULL;
    return found ? *found : NULL;
}

size_t checkpoint_n_tensors(const struct checkpoint *c)
{
    return c->n_tensors;
}

const struct tensor *checkpoint_tensor_at(const struct checkpoint *c, size_t i)
{
    return &c->tensors[i];
}

bool checkpoint_touch(const struct checkpoint *c, struct checkpoint_place *place)
{
    const size_t most = 4 << 20; /* in memory a tenth of a millisecond */
    if (place->tensor == c->n_tensors)
        return false;
    const struct tensor *t = &c->tensors[place->tensor];
    const size_t left = t->n_bytes - place->byte;
    const struct bytes part = {(const unsigned char *)t->data + place->byte, min_size(left, most)};
    place->byte += part.size;
    if (place->byte == t->n_bytes)
        *place = (struct checkpoint_place){.tensor = place->tensor + 1};
    file_touch(part);
    return true;
}

void checkpoint_forget(const struct checkpoint *c, size_t i, size_t n)
{
    for (const struct mapped_file *f = c->files; f; f = f->next) {
        const size_t begin = f->bytes.size / n * i;
        const size_t end = i + 1 == n ? f->bytes.size : f->bytes.size / n * (i + 1);
        file_forget((struct bytes){f->bytes.data + begin, end - begin});
    }
}

const char *checkpoint_tensor_file(const struct checkpoint *c, const struct tensor *t)
{
    const uintptr_t begin = (uintptr_t)t->data, end = begin + t->n_bytes;
    const struct mapped_file *f = c->files;
    while (begin < (uintptr_t)f->bytes.data || end > (uintptr_t)f->bytes.data + f->bytes.size) {
        f = f->next;
        assert(f);
    }
    return f->name;
}

const char *checkpoint_file_at(const struct checkpoint *c, const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    for (const struct mapped_file *f = c->files; f; f = f->next)
        if (at - (uintptr_t)f->bytes.data < f->bytes.size)
            return f->name;
    return NULL;
}
