/*
 * JSON over cJSON 1.7. What cJSON does with odd input, and what callers of this file get:
 *
 * - nesting: refused beyond 1000 levels, CJSON_NESTING_LIMIT, which bounds its recursion
 * - many values: a node takes 40 times the two bytes that make one; refused beyond MAX_VALUES
 * - NUL and \u0000: cJSON would cut the string there in silence; refused here
 * - lone surrogates: refused by cJSON; pairs become one character of UTF-8
 * - bytes that are no UTF-8: kept, so json_text may hold any byte but NUL
 * - 1e999: infinity, which json_integer refuses
 * - 01, 1. and raw control characters: accepted, though RFC 8259 does not know them
 * - a byte order mark: skipped
 *
 * - no memory: cJSON fails as if the text were bad; here it is another error
 *
 * A struct json is a cJSON; the casts between them are all in this file. cJSON notes its last error
 * in a global, so threads take turns.
 */
#include "core/json.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The header of a file of 300,000 tensors, more than models have, holds 2.4 million. */
enum { MAX_VALUES = 1 << 22 };

/* Whether it may hold more: every value but the first stands behind a comma or a bracket. Those in
 * strings count as well; no real file has that many. */
static bool holds_too_many(const char *text, size_t n)
{
    size_t n_values = 1;
    for (size_t i = 0; i < n; i++)
        n_values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return n_values > MAX_VALUES;
}

/* Offset of the first NUL or escaped NUL, n where there is none. */
static size_t find_nul(const char *text, size_t n)
{
    const char *nul = memchr(text, '\0', n);
    size_t end = nul ? (size_t)(nul - text) : n;
    const char *from = text;
    const char *hit;
    while ((hit = memmem(from, end - (size_t)(from - text), "\\u0000", 6))) {
        const char *start = hit;
        while (start > text && start[-1] == '\\')
            start--;
        if ((hit - start) % 2 == 0)
            return (size_t)(hit - text);
        from = hit + 1; /* the backslash is itself escaped */
    }
    return end;
}

/* Offset of the first byte at or behind `at` that is no white space. */
static size_t skip_space(const char *text, size_t n, size_t at)
{
    while (at < n && memchr(" \t\r\n", text[at], 4))
        at++;
    return at;
}

static bool ran_out; /* of memory, since it was last cleared */

static void *allocate(size_t n)
{
    void *memory = malloc(n);
    ran_out = ran_out || memory == NULL;
    return memory;
}

/* By one thread at a time. */
static cJSON *parse(const char *text, size_t n, const char **end, bool *no_memory)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    static bool hooked;
    pthread_mutex_lock(&turn);
    if (!hooked) /* once: trees are freed out of turn */
        cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = free});
    hooked = true;
    ran_out = false;
    cJSON *root = cJSON_ParseWithLengthOpts(text, n, end, false);
    *no_memory = ran_out;
    pthread_mutex_unlock(&turn);
    return root;
}

struct json *json_parse(const char *text, size_t n, struct err *e)
{
    size_t nul = find_nul(text, n);
    if (nul < n) {
        err_set(e, ERR_LOAD, "not JSON that can be read: a NUL character at byte %zu", nul);
        return NULL;
    }
    if (skip_space(text, n, 0) == n) {
        err_set(e, ERR_LOAD, "not JSON: there is nothing but white space");
        return NULL;
    }
    if (holds_too_many(text, n)) {
        err_set(e, ERR_LOAD, "JSON of more than %d values", MAX_VALUES);
        return NULL;
    }
    const char *end = NULL;
    bool no_memory;
    cJSON *root = parse(text, n, &end, &no_memory);
    size_t at = end ? (size_t)(end - text) : 0;
    if (!root) {
        if (no_memory)
            err_no_memory(e);
        else
            err_set(e, ERR_LOAD, "not JSON, or nested deeper than %d: see byte %zu of %zu",
                    CJSON_NESTING_LIMIT, at, n);
        return NULL;
    }
    at = skip_space(text, n, at);
    if (at < n) {
        cJSON_Delete(root);
        err_set(e, ERR_LOAD, "not JSON: more text behind the value, at byte %zu", at);
        return NULL;
    }
    return (struct json *)root;
}

void json_free(struct json *root)
{
    cJSON_Delete((cJSON *)root);
}

static const cJSON *node(const struct json *j)
{
    return (const cJSON *)j;
}

static bool is(const struct json *j, int cjson_type)
{
    return j && (node(j)->type & 0xff) == cjson_type;
}

enum json_type json_type(const struct json *j)
{
    switch (j ? node(j)->type & 0xff : cJSON_NULL) {
    case cJSON_True:
    case cJSON_False:
        return JSON_BOOL;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_String:
        return JSON_STRING;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_Object:
        return JSON_OBJECT;
    default:
        return JSON_NULL;
    }
}

const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",       [JSON_BOOL] = "a boolean", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "an array", [JSON_OBJECT] = "an object",
    };
    return names[type];
}

const struct json *json_get(const struct json *j, const char *key)
{
    return is(j, cJSON_Object) ? (const struct json *)cJSON_GetObjectItemCaseSensitive(node(j), key)
                               : NULL;
}

const struct json *json_first(const struct json *j)
{
    return is(j, cJSON_Array) || is(j, cJSON_Object) ? (const struct json *)node(j)->child : NULL;
}

const struct json *json_next(const struct json *child)
{
    return (const struct json *)node(child)->next;
}

const char *json_key(const struct json *child)
{
    return node(child)->string;
}

size_t json_count(const struct json *j)
{
    size_t n = 0;
    for (const struct json *c = json_first(j); c; c = json_next(c))
        n++;
    return n;
}

const char *json_text(const struct json *j, const char *fallback)
{
    return is(j, cJSON_String) ? node(j)->valuestring : fallback;
}

double json_number(const struct json *j, double fallback)
{
    return is(j, cJSON_Number) ? node(j)->valuedouble : fallback;
}

bool json_bool(const struct json *j, bool fallback)
{
    return is(j, cJSON_True) || (!is(j, cJSON_False) && fallback);
}

bool json_integer(const struct json *j, int64_t min, int64_t max, int64_t *out)
{
    /* Numbers are doubles: beyond 2^53 - 1 one no longer tells an integer from its neighbour. */
    const double exact = 9007199254740991.0;
    double number = json_number(j, 0.5);
    if (!(number >= -exact && number <= exact) || number != (double)(int64_t)number)
        return false;
    int64_t whole = (int64_t)number;
    if (whole < min || whole > max)
        return false;
    *out = whole;
    return true;
}

/* A member's name with a hash before it, so that sorting seldom looks at the text. Sorting, not a
 * hash table: names that collide on purpose cost a few more comparisons and no more. */
struct named {
    uint64_t hash;
    const char *name;
    size_t index; /* of the member, in the order of the text */
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a;
    const struct named *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Quadratic, without memory of its own. */
static const char *duplicate_among_few(const struct json *object)
{
    for (const struct json *c = json_first(object); c; c = json_next(c)) {
        for (const struct json *d = json_first(object); d != c; d = json_next(d))
            if (strcmp(json_key(c), json_key(d)) == 0)
                return json_key(c);
    }
    return NULL;
}

bool json_find_duplicate(const struct json *object, const char **twice, struct err *e)
{
    const size_t n = is(object, cJSON_Object) ? json_count(object) : 0;
    if (n <= 16) {
        *twice = n > 0 ? duplicate_among_few(object) : NULL;
        return true;
    }
    struct named *names = calloc(n, sizeof *names);
    if (!names)
        return err_no_memory(e);
    size_t i = 0;
    for (const struct json *c = json_first(object); c; c = json_next(c), i++) {
        const char *key = json_key(c);
        names[i] = (struct named){fnv1a(key, strlen(key)), key, i};
    }
    qsort(names, n, sizeof *names, compare_named);
    const struct named *first = NULL; /* the second occurrence that comes first */
    for (i = 1; i < n; i++) {
        bool same =
            names[i].hash == names[i - 1].hash && strcmp(names[i].name, names[i - 1].name) == 0;
        if (same && (!first || names[i].index < first->index))
            first = &names[i];
    }
    *twice = first ? first->name : NULL;
    free(names);
    return true;
}

void json_print_text(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    putc('"', out);
}
