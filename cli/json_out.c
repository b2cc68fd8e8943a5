/*
 * A writer without state: whether a comma is due can be read off the last byte, since every value
 * ends in something other than an opening bracket, a comma or a colon.
 */
#include "cli/json_out.h"

#include "core/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_out_quoted(struct buffer *t, const char *text, size_t n)
{
    buffer_add(t, "\"", 1);
    for (size_t i = 0, size; i < n; i += size) {
        const char c = text[i];
        const enum utf8_state state = utf8_next(text + i, n - i, &size);
        if (state != UTF8_WHOLE)
            buffer_add_string(t, "\xEF\xBF\xBD");
        else if (c == '"' || c == '\\')
            buffer_addf(t, "\\%c", c);
        else if (c == '\n')
            buffer_add_string(t, "\\n");
        else if (c == '\t')
            buffer_add_string(t, "\\t");
        else if ((unsigned char)c < 0x20)
            buffer_addf(t, "\\u%04x", (unsigned)c);
        else
            buffer_add(t, text + i, size);
    }
    buffer_add(t, "\"", 1);
}

static void separate(struct buffer *t)
{
    const char last = t->n > 0 ? t->data[t->n - 1] : '[';
    if (last != '{' && last != '[' && last != ':')
        buffer_add(t, ",", 1);
}

void json_out_name(struct buffer *t, const char *name, size_t n)
{
    separate(t);
    json_out_quoted(t, name, n);
    buffer_add(t, ":", 1);
}

/* What stands before a value: the comma that separates it, and its name. */
static void begin(struct buffer *t, const char *key)
{
    if (key)
        json_out_name(t, key, strlen(key));
    else
        separate(t);
}

/* Members are passed one by one, as a key or the end of one may look like what is searched for. */
bool json_out_has(struct buffer *t, size_t begin, const char *name, size_t n_name)
{
    const char *at = t->data + begin, *const end = t->data + t->n;
    struct buffer quoted = {0};
    bool has = false;
    json_out_name(&quoted, name, n_name);
    t->failed = t->failed || quoted.failed;
    while (!t->failed && !has && at < end) {
        has = (size_t)(end - at) >= quoted.n && memcmp(at, quoted.data, quoted.n) == 0;
        for (at++; *at != '"'; at++)
            at += *at == '\\';
        at = memchr(at, ',', (size_t)(end - at));
        at = at ? at + 1 : end;
    }
    buffer_free(&quoted);
    return has;
}

void json_out_open(struct buffer *t, const char *key, char bracket)
{
    begin(t, key);
    buffer_add(t, &bracket, 1);
}

void json_out_close(struct buffer *t, char bracket)
{
    buffer_add(t, &bracket, 1);
}

void json_out_text(struct buffer *t, const char *key, const char *text, size_t n)
{
    begin(t, key);
    json_out_quoted(t, text, n);
}

void json_out_string(struct buffer *t, const char *key, const char *string)
{
    if (!string)
        json_out_null(t, key);
    else
        json_out_text(t, key, string, strlen(string));
}

void json_out_unsigned(struct buffer *t, const char *key, uint64_t value)
{
    begin(t, key);
    buffer_addf(t, "%" PRIu64, value);
}

void json_out_bool(struct buffer *t, const char *key, bool value)
{
    begin(t, key);
    buffer_add_string(t, value ? "true" : "false");
}

void json_out_null(struct buffer *t, const char *key)
{
    begin(t, key);
    buffer_add_string(t, "null");
}

void json_out_ids(struct buffer *t, const char *key, const int32_t *ids, size_t n)
{
    json_out_open(t, key, '[');
    for (size_t i = 0; i < n; i++)
        json_out_unsigned(t, NULL, (uint64_t)ids[i]);
    json_out_close(t, ']');
}

void json_out_raw(struct buffer *t, const char *key, const char *json, size_t n)
{
    begin(t, key);
    buffer_add(t, json, n);
}

void json_out_number(struct buffer *t, const char *key, double value)
{
    if (!isfinite(value)) {
        json_out_null(t, key);
        return;
    }
    /* 17 digits always suffice for a double, 15 are always exact. */
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    begin(t, key);
    buffer_add_string(t, digits);
}
