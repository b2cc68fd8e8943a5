/*
 * JSON text -> a read-only tree. The only user of cJSON, so that the rest of the program neither
 * sees its types nor depends on how it treats bad input: text must be one value with nothing but
 * white space behind it, nesting and the number of values are limited, and duplicate keys are
 * refused where a caller asks.
 */
#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <stdio.h>

#include "core/base.h"
#include "core/err.h"

struct json; /* a node; the root is owned by whoever parsed, all others are borrowed from it */

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Parses text[0..n), which need not be terminated. NULL and ERR_LOAD with the byte offset where it
 * is no JSON, or where it holds millions of values, or ERR_RUNTIME where memory runs out. */
struct json *json_parse(const char *text, size_t n, struct err *e);

void json_free(struct json *root);

/* An absent member (NULL) is of the type JSON_NULL, as one that is null. */
enum json_type json_type(const struct json *j);

/* "null", "a boolean", "a number", ... for sentences. */
const char *json_type_name(enum json_type type);

/* The member of that name, or NULL where j is NULL, no object, or has none. Names are compared
 * exactly. */
const struct json *json_get(const struct json *j, const char *key);

/* Children of an array or object in the order of the text: for (c = json_first(j); c; c =
 * json_next(c)). j may be NULL. json_key is the member's name (NULL inside arrays). json_count
 * counts them. */
const struct json *json_first(const struct json *j);
const struct json *json_next(const struct json *child);
const char *json_key(const struct json *child);
size_t json_count(const struct json *j);

/* Values with a fallback where j is NULL or of another type. */
const char *json_text(const struct json *j, const char *fallback);
double json_number(const struct json *j, double fallback);
bool json_bool(const struct json *j, bool fallback);

/* True and *out where j is a whole number within [min, max]. */
bool json_integer(const struct json *j, int64_t min, int64_t max, int64_t *out);

/* The text as a JSON string, quotes included. */
void json_print_text(FILE *out, const char *text);

/* *twice: the first name that occurs twice in an object, NULL where there is none. False and
 * ERR_RUNTIME where memory runs out. */
bool json_find_duplicate(const struct json *object, const char **twice, struct err *e);

/* ---- without a tree (json_scan.c) ------------------------------------------------------------ */

/*
 * Reads a text once, forwards, and keeps nothing: for values of 100,000s of members. The caller
 * says what it expects next:
 *
 *     json_scan_begin(&s, text, n, e);
 *     for (json_scan_object(&s); json_scan_member(&s, &key);) { read or skip the value }
 *     good = json_scan_done(&s);
 *     json_scan_end(&s);
 *
 * The first failure sets s.failed and writes the sentence; from then on all calls return false.
 * Strings may hold NUL here.
 */
struct json_scan {
    const char *text;
    size_t n, at;
    bool failed;
    bool fresh;   /* behind an opening bracket */
    char *buffer; /* of the last string that had escapes */
    size_t capacity;
    struct err *e;
};

void json_scan_begin(struct json_scan *s, const char *text, size_t n, struct err *e);
void json_scan_end(struct json_scan *s);

/* Whether the value that comes next is of that type, judged by its first byte. */
bool json_scan_is(struct json_scan *s, enum json_type type);

/* Go into a value; then ask for its items, each of which must be read or skipped before the next.
 * False behind the last, which leaves the value, and on failure. `key` is valid until the next
 * call. */
bool json_scan_object(struct json_scan *s);
bool json_scan_member(struct json_scan *s, struct bytes *key);
bool json_scan_array(struct json_scan *s);
bool json_scan_element(struct json_scan *s);

/* The value that comes next. *out of a string is valid until the next string or key is read. */
bool json_scan_string(struct json_scan *s, struct bytes *out);
bool json_scan_number(struct json_scan *s, double *out);

/* Any value: *text is its own text, fit for json_parse or another scan, which check it. */
bool json_scan_skip(struct json_scan *s, struct bytes *text);

/* True where nothing failed and nothing but white space is left. */
bool json_scan_done(struct json_scan *s);

/* Whether it failed without memory, which is no fault of the text. */
static inline bool json_scan_ran_out(const struct json_scan *s)
{
    return s->failed && s->e->code == ERR_RUNTIME;
}

#endif
