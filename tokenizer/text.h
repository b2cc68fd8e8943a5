/*
 * Text on its way through a tokenizer: buffers that grow and tell where each byte came from; and
 * the ways to write bytes as characters: UTF-8 with escapes (internal.h), byte-level, base64.
 */
#ifndef TOKENIZER_TEXT_H
#define TOKENIZER_TEXT_H

#include "core/err.h"
#include "tokenizer/tokenizer.h"

/* A range of text on its way. Byte i comes from byte base + i of the caller's text, or where
 * `origin` is there, from origin[i]. */
struct piece {
    const char *data;
    size_t n;
    const struct token_span *origin;
    size_t base;
    bool first; /* begins where the caller's text begins */
};

struct text {
    char *data;
    size_t n, capacity;
    struct token_span *origin; /* parallel to data where `track` is set */
    bool track;
    bool limited, full; /* to `most` bytes; there was no room for something */
    size_t most;
};

void text_clear(struct text *t);
void text_free(struct text *t);

/* Appends s[0..n), which stands for in[start..end). False: no memory. */
bool text_put(struct text *t, const char *s, size_t n, const struct piece *in, size_t start,
              size_t end);

/* The same for bytes that stand for nothing in the caller's text. */
bool text_add(struct text *t, const char *s, size_t n);

/* Appends in[start..end) unchanged. */
bool text_copy(struct text *t, const struct piece *in, size_t start, size_t end);

/* What the rules of a file may add to a text of n bytes, all together: a few that each double it
 * would add without end. Real ones add up to 20 bytes to one (NFKD, then byte-level). */
size_t text_room(size_t n);

/* Empties t for what a rule makes of n bytes, to which it may add `room`; and takes from *room what
 * it has added, or says why it failed. */
void text_begin(struct text *t, size_t n, size_t room);
bool text_end(const struct text *t, bool good, size_t n, size_t *room, struct err *e);

/* All of t as a piece; its `first` is that of `in`, from which it was made. */
struct piece text_piece(const struct text *t, const struct piece *in);

/* in[start..end). */
struct piece piece_slice(const struct piece *in, size_t start, size_t end);

/* The caller's bytes that in[start..end) came from. */
struct token_span piece_span(const struct piece *in, size_t start, size_t end);

/* Appends `in` with its stray bytes escaped. */
bool text_escape(struct text *t, const struct piece *in);

/* Appends `in` with its escapes turned back into bytes. */
bool text_unescape(struct text *t, const struct piece *in);

/* Appends the byte-level characters of all bytes of `in`, escapes being the byte that they stand
 * for. */
bool text_spell(struct text *t, const struct piece *in);

/* Bytes of the character that begins with this byte. */
static inline size_t utf8_size(char lead)
{
    unsigned char c = (unsigned char)lead;
    return c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

/* The character at s, which is known to be whole. */
static inline uint32_t utf8_get(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    switch (utf8_size(*s)) {
    case 1:
        return u[0];
    case 2:
        return (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
    case 3:
        return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    default:
        return (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
    }
}

/* The six bits of a base64 digit (RFC 4648), -1 where it is none. */
int base64_digit(char c);

/* The bytes that text[0..n) stands for into out (room for n): how many, SIZE_MAX where it is no
 * base64. */
size_t base64_decode(const char *text, size_t n, unsigned char *out);

/* The byte that an escape stands for, -1 where c is none. */
static inline int utf8_escaped_byte(uint32_t c)
{
    return c >= 0xDC80 && c <= 0xDCFF ? (int)(c - 0xDC00) : -1;
}

/* The character that byte-level tokenizers write for a byte (GPT-2's bytes_to_unicode). */
uint32_t byte_level_char(unsigned char byte);

/* The byte that such a character stands for, -1 where it is none. */
int byte_level_byte(uint32_t c);

#endif
