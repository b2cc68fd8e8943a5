/*
 * The reading half of core/json.h that makes no tree: one pass over the text, for files that are
 * mostly one list of 100,000s of short strings (a vocabulary as a tree takes ten times its text).
 * Strict: what RFC 8259 does not allow is an error here, with its byte.
 */
#include "core/json.h"

#include "core/utf8.h"

#include <stdlib.h>
#include <string.h>

/* As deep as json_parse goes. */
enum { MAX_DEPTH = 1000 };

/* Eight bytes of the text, the first one lowest. */
static uint64_t eight_at(const struct json_scan *s, size_t at)
{
    uint64_t eight;
    memcpy(&eight, s->text + at, sizeof eight);
    return eight;
}

#define EACH_BYTE 0x0101010101010101u

/* SWAR (Hacker's Delight, section 6-1): bit 7 is set in the first byte that is 0 (mark_zero) or
 * below limit, at most 0x80 (mark_below), and clear in all bytes before it. Later bytes may be
 * marked wrongly by a borrow, so only the lowest mark counts. */
static uint64_t mark_zero(uint64_t eight)
{
    return (eight - EACH_BYTE) & ~eight & 0x80 * EACH_BYTE;
}

static uint64_t mark_below(uint64_t eight, uint64_t limit)
{
    return (eight - limit * EACH_BYTE) & ~eight & 0x80 * EACH_BYTE;
}

/* Bytes that end the quick walk through a string: quotes, backslashes, control characters. */
static bool is_special(unsigned char c)
{
    return c == '"' || c == '\\' || c < 0x20;
}

static uint64_t mark_special(uint64_t eight)
{
    return mark_zero(eight ^ '"' * EACH_BYTE) | mark_zero(eight ^ '\\' * EACH_BYTE) |
           mark_below(eight, 0x20);
}

static bool fail(struct json_scan *s, const char *what)
{
    if (s->n - s->at >= 3 && memcmp(s->text + s->at, "\xEF\xBB\xBF", 3) == 0)
        what = "a byte order mark"; /* which editors write and do not show */
    if (!s->failed) {
        s->failed = true;
        err_set(s->e, ERR_LOAD, "not JSON: %s at byte %zu of %zu", what, s->at, s->n);
    }
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Mostly a new line and some blanks. */
static void skip_spaces(struct json_scan *s)
{
    size_t at = s->at;
    while (at < s->n && is_space(s->text[at])) {
        at++;
        if (s->n - at >= 8) {
            const uint64_t others = eight_at(s, at) ^ ' ' * EACH_BYTE;
            at += others ? (size_t)__builtin_ctzll(others) / 8 : 8;
        }
    }
    s->at = at;
}

/* The next byte that is no white space, 0 at the end. */
static inline char peek(struct json_scan *s)
{
    if (s->at < s->n && (unsigned char)s->text[s->at] > ' ')
        return s->text[s->at]; /* mostly nothing stands before */
    skip_spaces(s);
    return s->at < s->n ? s->text[s->at] : '\0';
}

void json_scan_begin(struct json_scan *s, const char *text, size_t n, struct err *e)
{
    *s = (struct json_scan){.text = text, .n = n, .e = e};
}

void json_scan_end(struct json_scan *s)
{
    free(s->buffer);
    s->buffer = NULL;
}

bool json_scan_done(struct json_scan *s)
{
    return !s->failed && (peek(s) == '\0' && s->at == s->n ? true : fail(s, "more text"));
}

bool json_scan_is(struct json_scan *s, enum json_type type)
{
    char c = s->failed ? '\0' : peek(s);
    switch (type) {
    case JSON_NULL:
        return c == 'n';
    case JSON_BOOL:
        return c == 't' || c == 'f';
    case JSON_NUMBER:
        return c == '-' || (c >= '0' && c <= '9');
    case JSON_STRING:
        return c == '"';
    case JSON_ARRAY:
        return c == '[';
    default:
        return c == '{';
    }
}

static bool open_with(struct json_scan *s, char bracket, const char *what)
{
    if (s->failed || peek(s) != bracket)
        return fail(s, what);
    s->at++;
    s->fresh = true;
    return true;
}

bool json_scan_object(struct json_scan *s)
{
    return open_with(s, '{', "no object");
}

bool json_scan_array(struct json_scan *s)
{
    return open_with(s, '[', "no array");
}

/* Steps over the comma before the next item; false at the closing bracket, which is taken. */
static bool next_item(struct json_scan *s, char bracket)
{
    if (s->failed)
        return false;
    char c = peek(s);
    if (c == bracket) {
        s->at++;
        s->fresh = false;
        return false;
    }
    if (!s->fresh) {
        if (c != ',')
            return fail(s, "no comma");
        s->at++;
    }
    s->fresh = false;
    return true;
}

bool json_scan_element(struct json_scan *s)
{
    return next_item(s, ']');
}

bool json_scan_member(struct json_scan *s, struct bytes *key)
{
    if (!next_item(s, '}') || !json_scan_string(s, key))
        return false;
    if (peek(s) != ':')
        return fail(s, "no colon");
    s->at++;
    return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool append(struct json_scan *s, size_t *n, const char *text, size_t n_text)
{
    if (n_text == 0)
        return true;
    char *buffer = grow_array(s->buffer, &s->capacity, *n + n_text, 1, 256);
    if (!buffer) {
        s->failed = true;
        return err_no_memory(s->e);
    }
    s->buffer = buffer;
    memcpy(s->buffer + *n, text, n_text);
    *n += n_text;
    return true;
}

/* Four hexadecimal digits at s->at, -1 where there are none. */
static int32_t hex4(const struct json_scan *s, size_t at)
{
    int32_t value = 0;
    if (s->n - at < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        const int digit = hex_digit(s->text[at + i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Behind "\u". */
static bool unicode_escape(struct json_scan *s, size_t *n)
{
    int32_t c = hex4(s, s->at);
    if (c < 0 || (c >= 0xDC00 && c <= 0xDFFF))
        return fail(s, "a bad \\u");
    s->at += 4;
    if (c >= 0xD800 && c <= 0xDBFF) {
        bool pair = s->n - s->at >= 6 && s->text[s->at] == '\\' && s->text[s->at + 1] == 'u';
        int32_t low = pair ? hex4(s, s->at + 2) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return fail(s, "half a surrogate pair");
        s->at += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    char utf8[4];
    return append(s, n, utf8, utf8_put(utf8, (uint32_t)c));
}

/* At a backslash. */
static bool escape(struct json_scan *s, size_t *n)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    if (s->n - s->at < 2)
        return fail(s, "no end of a string");
    char c = s->text[s->at + 1];
    s->at += 2;
    if (c == 'u')
        return unicode_escape(s, n);
    const char *name = c ? strchr(names, c) : NULL;
    return name ? append(s, n, &values[name - names], 1) : fail(s, "an unknown escape");
}

static size_t plain_end(const struct json_scan *s)
{
    size_t at = s->at;
    for (; s->n - at >= 8; at += 8) {
        const uint64_t marks = mark_special(eight_at(s, at));
        if (marks)
            return at + (size_t)__builtin_ctzll(marks) / 8;
    }
    while (at < s->n && !is_special((unsigned char)s->text[at]))
        at++;
    return at;
}

bool json_scan_string(struct json_scan *s, struct bytes *out)
{
    if (s->failed || peek(s) != '"')
        return fail(s, "no string");
    s->at++;
    size_t begin = s->at;
    size_t n = 0;
    bool copied = false;
    for (;;) {
        size_t end = plain_end(s);
        bool closes = end < s->n && s->text[end] == '"';
        bool escapes = end < s->n && s->text[end] == '\\';
        if ((copied || escapes) && !append(s, &n, s->text + s->at, end - s->at))
            return false;
        s->at = end;
        if (closes) {
            s->at++;
            *out = (struct bytes){(const unsigned char *)(copied ? s->buffer : s->text + begin),
                                  copied ? n : end - begin};
            return true;
        }
        if (!escapes)
            return fail(s, end < s->n ? "a control character" : "no end of a string");
        copied = true;
        if (!escape(s, &n))
            return false;
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

static size_t skip_digits(struct json_scan *s)
{
    size_t begin = s->at;
    while (s->at < s->n && s->text[s->at] >= '0' && s->text[s->at] <= '9')
        s->at++;
    return s->at - begin;
}

static bool is_at(const struct json_scan *s, char a, char b)
{
    return s->at < s->n && (s->text[s->at] == a || s->text[s->at] == b);
}

static bool goes_on(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E';
}

/* A whole number of up to nine digits, as ids are; false where it is something else. */
static bool short_number(struct json_scan *s, double *out)
{
    const char *digits = s->text + s->at;
    const size_t left = s->n - s->at;
    int32_t value = 0;
    size_t n = 0;
    for (; n < left && n < 9 && digits[n] >= '0' && digits[n] <= '9'; n++)
        value = value * 10 + (digits[n] - '0');
    if (n == 0 || (n > 1 && *digits == '0') || (n < left && goes_on(digits[n])))
        return false;
    *out = value;
    s->at += n;
    return true;
}

bool json_scan_number(struct json_scan *s, double *out)
{
    if (s->failed || !json_scan_is(s, JSON_NUMBER))
        return fail(s, "no number");
    if (short_number(s, out))
        return true;
    size_t begin = s->at;
    s->at += is_at(s, '-', '-');
    size_t first = s->at;
    size_t n_whole = skip_digits(s);
    bool good = n_whole == 1 || (n_whole > 1 && s->text[first] != '0');
    if (good && is_at(s, '.', '.')) {
        s->at++;
        good = skip_digits(s) > 0;
    }
    if (good && is_at(s, 'e', 'E')) {
        s->at++;
        s->at += is_at(s, '+', '-');
        good = skip_digits(s) > 0;
    }
    size_t n = s->at - begin;
    if (!good || n > 400)
        return fail(s, "a bad number");
    char copy[401]; /* the text need not be terminated */
    memcpy(copy, s->text + begin, n);
    copy[n] = '\0';
    *out = strtod(copy, NULL);
    return true;
}

static bool skip_word(struct json_scan *s)
{
    static const char *const words[] = {"null", "true", "false"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (s->n - s->at >= n && memcmp(s->text + s->at, words[i], n) == 0) {
            s->at += n;
            return true;
        }
    }
    return fail(s, "no value");
}

static bool skip_string(struct json_scan *s)
{
    s->at++;
    for (;;) {
        s->at = plain_end(s);
        if (s->at == s->n || (unsigned char)s->text[s->at] < 0x20)
            return fail(s, s->at < s->n ? "a control character" : "no end of a string");
        if (s->text[s->at] == '"') {
            s->at++;
            return true;
        }
        s->at += 2;
        if (s->at > s->n)
            s->at = s->n;
    }
}

/* Brackets are counted, not matched: whoever parses the text of the value finds what is wrong with
 * it. */
bool json_scan_skip(struct json_scan *s, struct bytes *text)
{
    if (s->failed)
        return false;
    peek(s);
    size_t begin = s->at;
    int depth = 0;
    do {
        char c = peek(s);
        double number;
        bool good = true;
        if (c == '{' || c == '[') {
            depth++;
            s->at++;
        } else if (c == '}' || c == ']') {
            depth--;
            s->at++;
        } else if ((c == ',' || c == ':') && depth > 0) {
            s->at++;
        } else if (c == '"') {
            good = skip_string(s);
        } else {
            good = json_scan_is(s, JSON_NUMBER) ? json_scan_number(s, &number) : skip_word(s);
        }
        if (!good || depth < 0 || depth > MAX_DEPTH)
            return fail(s, depth > MAX_DEPTH ? "nesting too deep" : "no value");
    } while (depth > 0);
    *text = (struct bytes){(const unsigned char *)s->text + begin, s->at - begin};
    return true;
}
