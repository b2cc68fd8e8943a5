/*
 * Text on its way through a tokenizer: buffers that grow, the caller's bytes that each byte came
 * from (kept only where somebody asks for offsets), and UTF-8.
 */
#include "tokenizer/text.h"

#include "core/utf8.h"

#include <stdlib.h>

void text_clear(struct text *t)
{
    t->n = 0;
}

void text_free(struct text *t)
{
    free(t->data);
    free(t->origin);
    *t = (struct text){0};
}

static bool grow(struct text *t, size_t needed)
{
    size_t capacity = t->capacity;
    if (t->track) {
        struct token_span *origin = grow_array(t->origin, &capacity, needed, sizeof *origin, 256);
        if (!origin)
            return false;
        t->origin = origin;
    }
    char *data = grow_array(t->data, &t->capacity, needed, 1, 256);
    if (!data)
        return false;
    t->data = data;
    return true;
}

/* Room for n more bytes. */
static bool reserve(struct text *t, size_t n)
{
    size_t needed;
    if (!checked_add(t->n, n, &needed))
        return false;
    t->full = t->limited && needed > t->most;
    return !t->full && (needed <= t->capacity || grow(t, needed));
}

enum { ROOM = 1 << 20, ROOM_PER_BYTE = 64 };

size_t text_room(size_t n)
{
    return n < (SIZE_MAX - ROOM) / ROOM_PER_BYTE ? ROOM + n * ROOM_PER_BYTE : SIZE_MAX;
}

void text_begin(struct text *t, size_t n, size_t room)
{
    text_clear(t);
    t->limited = true;
    t->full = false;
    t->most = room < SIZE_MAX - n ? n + room : SIZE_MAX;
}

bool text_end(const struct text *t, bool good, size_t n, size_t *room, struct err *e)
{
    if (t->full) {
        return err_set(e, ERR_LOAD,
                       "the rules of the normalizer and pre_tokenizer make a text grow without "
                       "end, by more than %d bytes for each of its own",
                       ROOM_PER_BYTE);
    }
    *room -= t->n > n ? t->n - n : 0;
    return good || err_no_memory(e);
}

static struct token_span byte_span(const struct piece *in, size_t i)
{
    return in->origin ? in->origin[i] : (struct token_span){in->base + i, in->base + i + 1};
}

struct token_span piece_span(const struct piece *in, size_t start, size_t end)
{
    if (start < end)
        return (struct token_span){byte_span(in, start).start, byte_span(in, end - 1).end};
    /* Nothing: it stands between its neighbours. */
    size_t at = start < in->n ? byte_span(in, start).start
                : start > 0   ? byte_span(in, start - 1).end
                              : in->base;
    return (struct token_span){at, at};
}

bool text_put(struct text *t, const char *s, size_t n, const struct piece *in, size_t start,
              size_t end)
{
    if (!reserve(t, n))
        return false;
    if (n)
        memcpy(t->data + t->n, s, n);
    if (t->track) {
        struct token_span span = piece_span(in, start, end);
        for (size_t i = 0; i < n; i++)
            t->origin[t->n + i] = span;
    }
    t->n += n;
    return true;
}

bool text_add(struct text *t, const char *s, size_t n)
{
    const struct piece none = {.data = ""};
    return text_put(t, s, n, &none, 0, 0);
}

bool text_copy(struct text *t, const struct piece *in, size_t start, size_t end)
{
    size_t n = end - start;
    if (!reserve(t, n))
        return false;
    if (n)
        memcpy(t->data + t->n, in->data + start, n);
    if (t->track)
        for (size_t i = 0; i < n; i++)
            t->origin[t->n + i] = byte_span(in, start + i);
    t->n += n;
    return true;
}

struct piece text_piece(const struct text *t, const struct piece *in)
{
    return (struct piece){
        .data = t->data ? t->data : "",
        .n = t->n,
        .origin = t->track ? t->origin : NULL,
        .base = in->base,
        .first = in->first,
    };
}

struct piece piece_slice(const struct piece *in, size_t start, size_t end)
{
    return (struct piece){
        .data = in->data + start,
        .n = end - start,
        .origin = in->origin ? in->origin + start : NULL,
        .base = in->base + start,
        .first = in->first && start == 0,
    };
}

bool text_escape(struct text *t, const struct piece *in)
{
    size_t at = 0;
    while (at < in->n) {
        size_t good = utf8_valid_prefix(in->data + at, in->n - at);
        if (!text_copy(t, in, at, at + good))
            return false;
        at += good;
        if (at < in->n) {
            char escape[4];
            size_t size = utf8_put(escape, 0xDC00u + (unsigned char)in->data[at]);
            if (!text_put(t, escape, size, in, at, at + 1))
                return false;
            at++;
        }
    }
    return true;
}

bool text_unescape(struct text *t, const struct piece *in)
{
    size_t done = 0;
    for (size_t at = 0; at < in->n; at += utf8_size(in->data[at])) {
        int byte = in->data[at] == '\xED' ? utf8_escaped_byte(utf8_get(in->data + at)) : -1;
        if (byte >= 0) {
            char raw = (char)byte;
            if (!text_copy(t, in, done, at) || !text_put(t, &raw, 1, in, at, at + 3))
                return false;
            done = at + 3;
        }
    }
    return text_copy(t, in, done, in->n);
}

bool text_spell(struct text *t, const struct piece *in)
{
    for (size_t at = 0, size; at < in->n; at += size) {
        const int escaped =
            in->data[at] == '\xED' ? utf8_escaped_byte(utf8_get(in->data + at)) : -1;
        const unsigned char byte = (unsigned char)(escaped < 0 ? in->data[at] : escaped);
        char utf8[4];
        size = escaped < 0 ? 1 : 3;
        if (!text_put(t, utf8, utf8_put(utf8, byte_level_char(byte)), in, at, at + size))
            return false;
    }
    return true;
}

/* Printable Latin-1 stands for itself; the 68 other bytes, in order, are U+0100 and up
 * (openai/gpt-2, encoder.py, bytes_to_unicode). */
static bool byte_level_itself(uint32_t c)
{
    return (c >= '!' && c <= '~') || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

uint32_t byte_level_char(unsigned char byte)
{
    if (byte_level_itself(byte))
        return byte;
    /* 0x00-0x20 are 33, 0x7F-0xA0 are 34 more, then 0xAD. */
    return byte <= 0x20 ? 0x100u + byte : byte < 0xAD ? 0x121u + (byte - 0x7Fu) : 0x143u;
}

int byte_level_byte(uint32_t c)
{
    if (c < 0x100)
        return byte_level_itself(c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    return c <= 0x142 ? (int)(c - 0x121 + 0x7F) : c == 0x143 ? 0xAD : -1;
}

int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

size_t base64_decode(const char *text, size_t n, unsigned char *out)
{
    while (n && text[n - 1] == '=')
        n--;
    uint32_t bits = 0;
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4)
            out[n_out++] = (unsigned char)(bits >> (6 - i % 4 * 2));
    }
    return n_out;
}
