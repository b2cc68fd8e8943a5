/*
 * A header of JSON, checked rule by rule before a single byte of the buffer is believed. Every
 * number comes from the file, so each product and sum is overflow-checked, and nothing here is
 * quadratic in the number of tensors. Rules: safetensors/src/tensor.rs, Metadata::validate.
 * Stricter than that in one point: `__metadata__` must be an object of strings, null is refused.
 */
#include "core/safetensors.h"

#include "core/file.h"
#include "core/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MAX_HEADER = 100000000 };

/* A name from the file, at a length that leaves room for the rest of the sentence. */
#define NAME "\"%.160s\""

static const char metadata_key[] = "__metadata__";

/* The header's text and the buffer behind it. */
static bool split_file(struct bytes file, struct bytes *header, struct bytes *buffer, struct err *e)
{
    if (file.size < LENGTH_BYTES) {
        return err_set(
            e, ERR_LOAD,
            "not a safetensors file: %zu bytes, where the header's length alone takes %d",
            file.size, LENGTH_BYTES);
    }
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | file.data[i];
    if (length > MAX_HEADER) {
        return err_set(e, ERR_LOAD,
                       "not a safetensors file: a header of %" PRIu64
                       " bytes, where the format allows %d",
                       length, MAX_HEADER);
    }
    size_t rest = file.size - LENGTH_BYTES;
    if (length > rest) {
        return err_set(e, ERR_LOAD,
                       "cut short: the header takes %" PRIu64 " bytes, and %zu are there", length,
                       rest);
    }
    *header = (struct bytes){file.data + LENGTH_BYTES, (size_t)length};
    *buffer = (struct bytes){header->data + header->size, rest - header->size};
    if (header->size == 0 || header->data[0] != '{')
        return err_set(e, ERR_LOAD, "not a safetensors file: the header does not begin with '{'");
    return true;
}

static bool check_metadata(const struct json *metadata, struct err *e)
{
    if (json_type(metadata) != JSON_OBJECT) {
        return err_set(e, ERR_LOAD, "%s is %s, expected an object", metadata_key,
                       json_type_name(json_type(metadata)));
    }
    for (const struct json *v = json_first(metadata); v; v = json_next(v)) {
        if (json_type(v) != JSON_STRING) {
            return err_set(e, ERR_LOAD, "%s: " NAME " is %s, expected a string", metadata_key,
                           json_key(v), json_type_name(json_type(v)));
        }
    }
    return true;
}

static bool parse_dtype(const struct json *entry, struct tensor *t, struct err *e)
{
    const char *name = json_text(json_get(entry, "dtype"), NULL);
    if (!name)
        return err_set(e, ERR_LOAD, "tensor " NAME " has no dtype", t->name);
    if (!dtype_parse(name, &t->dtype))
        return err_set(e, ERR_LOAD, "tensor " NAME ": dtype %.32s is not supported", t->name, name);
    return true;
}

/* Shape and, with it, the size in bytes; every product fits into int64_t. */
static bool parse_shape(const struct json *entry, struct tensor *t, struct err *e)
{
    const struct json *shape = json_get(entry, "shape");
    if (json_type(shape) != JSON_ARRAY)
        return err_set(e, ERR_LOAD, "tensor " NAME " has no shape", t->name);
    int64_t n_bytes = (int64_t)dtype_size(t->dtype);
    for (const struct json *dim = json_first(shape); dim; dim = json_next(dim)) {
        if (t->n_dims == TENSOR_MAX_DIMS) {
            return err_set(e, ERR_LOAD, "tensor " NAME " has more than %d dimensions", t->name,
                           TENSOR_MAX_DIMS);
        }
        int64_t size;
        if (!json_integer(dim, 0, INT64_MAX, &size)) {
            return err_set(e, ERR_LOAD,
                           "tensor " NAME
                           ": dimension %d of its shape is no whole number below 2^53",
                           t->name, t->n_dims);
        }
        if (__builtin_mul_overflow(n_bytes, size, &n_bytes)) {
            return err_set(e, ERR_LOAD, "tensor " NAME ": the product of its shape overflows",
                           t->name);
        }
        t->shape[t->n_dims++] = size;
    }
    if ((uint64_t)n_bytes > SIZE_MAX)
        return err_set(e, ERR_LOAD, "tensor " NAME " is too large for this machine", t->name);
    t->n_bytes = (size_t)n_bytes;
    return true;
}

static bool parse_offsets(const struct json *entry, struct bytes buffer, struct tensor *t,
                          struct err *e)
{
    const struct json *offsets = json_get(entry, "data_offsets");
    const struct json *first = json_count(offsets) == 2 ? json_first(offsets) : NULL;
    int64_t begin, end;
    if (!first || json_type(offsets) != JSON_ARRAY || !json_integer(first, 0, INT64_MAX, &begin) ||
        !json_integer(json_next(first), 0, INT64_MAX, &end)) {
        return err_set(e, ERR_LOAD, "tensor " NAME ": data_offsets are not two whole numbers",
                       t->name);
    }
    if (begin > end) {
        return err_set(e, ERR_LOAD,
                       "tensor " NAME ": data_offsets are reversed: %" PRId64 " > %" PRId64,
                       t->name, begin, end);
    }
    if ((uint64_t)end > buffer.size) {
        return err_set(e, ERR_LOAD, "tensor " NAME ": ends at byte %" PRId64 " of a buffer of %zu",
                       t->name, end, buffer.size);
    }
    if ((uint64_t)(end - begin) != t->n_bytes) {
        char shape[96];
        return err_set(
            e, ERR_LOAD, "tensor " NAME ": %s %s takes %zu bytes, data_offsets give it %" PRId64,
            t->name, dtype_name(t->dtype),
            tensor_shape_text(t->shape, t->n_dims, shape, sizeof shape), t->n_bytes, end - begin);
    }
    t->data = buffer.data + begin;
    return true;
}

static bool parse_tensor(const struct json *entry, struct bytes buffer, struct arena *arena,
                         struct tensor *t, struct err *e)
{
    const char *name = json_key(entry);
    t->name = arena_text(arena, name, strlen(name));
    if (!t->name)
        return err_no_memory(e);
    if (json_type(entry) != JSON_OBJECT) {
        return err_set(e, ERR_LOAD, "tensor " NAME " is %s, expected an object", name,
                       json_type_name(json_type(entry)));
    }
    const char *twice;
    if (!json_find_duplicate(entry, &twice, e))
        return false;
    if (twice)
        return err_set(e, ERR_LOAD, "tensor " NAME " has " NAME " twice", name, twice);
    return parse_dtype(entry, t, e) && parse_shape(entry, t, e) &&
           parse_offsets(entry, buffer, t, e);
}

/* By begin, then end: an empty tensor stands before the one that begins at the same byte. */
static int compare_place(const void *a, const void *b)
{
    const struct tensor *x = a;
    const struct tensor *y = b;
    uintptr_t x_data = (uintptr_t)x->data;
    uintptr_t y_data = (uintptr_t)y->data;
    if (x_data != y_data)
        return x_data < y_data ? -1 : 1;
    if (x->n_bytes != y->n_bytes)
        return x->n_bytes < y->n_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorted tensors must follow each other without a hole or an overlap, to the end of the buffer. */
static bool check_cover(const struct tensor *tensors, size_t n, struct bytes buffer, struct err *e)
{
    size_t covered = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tensor *t = &tensors[i];
        size_t begin = (size_t)((const unsigned char *)t->data - buffer.data);
        if (begin < covered) {
            return err_set(e, ERR_LOAD, "tensors " NAME " and " NAME " overlap at byte %zu",
                           tensors[i - 1].name, t->name, begin);
        }
        if (begin > covered) {
            return err_set(e, ERR_LOAD, "tensor " NAME " leaves a hole before it: bytes %zu to %zu",
                           t->name, covered, begin);
        }
        covered += t->n_bytes;
    }
    if (covered != buffer.size) {
        return err_set(e, ERR_LOAD, "tensors cover %zu bytes of a buffer of %zu", covered,
                       buffer.size);
    }
    return true;
}

static bool parse_header(const struct json *root, struct bytes buffer, struct arena *arena,
                         struct tensor **tensors, size_t *n_tensors, struct err *e)
{
    const char *twice;
    if (!json_find_duplicate(root, &twice, e))
        return false;
    if (twice)
        return err_set(e, ERR_LOAD, "tensor " NAME " is there twice", twice);
    struct tensor *list = arena_array(arena, json_count(root), sizeof *list);
    if (!list)
        return err_no_memory(e);
    size_t n = 0;
    for (const struct json *entry = json_first(root); entry; entry = json_next(entry)) {
        bool metadata = strcmp(json_key(entry), metadata_key) == 0;
        if (metadata ? !check_metadata(entry, e)
                     : !parse_tensor(entry, buffer, arena, &list[n++], e))
            return false;
    }
    qsort(list, n, sizeof *list, compare_place);
    *tensors = list;
    *n_tensors = n;
    return check_cover(list, n, buffer, e);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void print_entry(FILE *out, const struct tensor *t, size_t begin)
{
    json_print_text(out, t->name);
    fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(t->dtype));
    for (int i = 0; i < t->n_dims; i++)
        fprintf(out, "%s%" PRId64, i ? "," : "", t->shape[i]);
    fprintf(out, "],\"data_offsets\":[%zu,%zu]}", begin, begin + t->n_bytes);
}

char *safetensors_header(const struct tensor *const *tensors, size_t n_tensors, size_t *size)
{
    char *text = NULL;
    size_t offset = 0;
    FILE *const out = open_memstream(&text, size);
    if (!out)
        return NULL;
    fprintf(out, "%*s{\"__metadata__\":{\"format\":\"pt\"}", LENGTH_BYTES, "");
    for (size_t i = 0; i < n_tensors; i++) {
        putc(',', out);
        print_entry(out, tensors[i], offset);
        offset += tensors[i]->n_bytes;
    }
    putc('}', out);
    for (long at = ftell(out); at % 8 != 0; at++)
        putc(' ', out);
    if (!file_close_text(out, &text))
        return NULL;
    for (int i = 0; i < LENGTH_BYTES; i++)
        text[i] = (char)((uint64_t)(*size - LENGTH_BYTES) >> 8 * i);
    return text;
}

bool safetensors_parse(struct bytes file, struct arena *arena, struct tensor **tensors,
                       size_t *n_tensors, struct err *e)
{
    struct bytes header = {0};
    struct bytes buffer = {0};
    if (!split_file(file, &header, &buffer, e))
        return false;
    struct json *root = json_parse((const char *)header.data, header.size, e);
    if (!root)
        return err_prefix(e, "header");
    bool ok = parse_header(root, buffer, arena, tensors, n_tensors, e);
    json_free(root);
    return ok;
}
