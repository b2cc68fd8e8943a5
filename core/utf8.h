/*
 * Where characters begin and end in UTF-8, by table 3-7 of the Unicode Standard: what is whole,
 * what is cut short and what is no UTF-8; and which characters control a terminal.
 */
#ifndef CORE_UTF8_H
#define CORE_UTF8_H

#include "core/base.h"

enum utf8_state {
    UTF8_WHOLE,  /* a character */
    UTF8_CUT,    /* the beginning of one: more bytes may complete it */
    UTF8_INVALID /* whatever follows, no character */
};

/* What text[0..n), n >= 1, begins with. *size is its length in bytes, which for the last two is the
 * "maximal subpart" that one U+FFFD stands for. */
enum utf8_state utf8_next(const char *text, size_t n, size_t *size);

/* Whether the byte is one of a character, but not its first. */
static inline bool utf8_is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The bytes of text[0..n) that lie before a character cut short by the end. */
size_t utf8_whole(const char *text, size_t n);

/* The bytes of text[0..n) that lie before the first that begins no whole character. */
size_t utf8_valid_prefix(const char *text, size_t n);

/* Writes c, at most U+10FFFF and possibly a surrogate, as UTF-8 and returns the number of bytes, 1
 * to 4. */
size_t utf8_put(char *out, uint32_t c);

/* Whether the whole character at text is a control character: C0, DEL or C1. */
bool utf8_is_control(const char *text);

/* Makes text, which was printed into an array of `capacity` bytes, fit for a terminal: each byte of
 * a control character, and of what is no UTF-8, becomes '?'; a last character that the end of the
 * array cut short goes. */
void utf8_clean(char *text, size_t capacity);

#endif
