/*
 * Where characters begin and end in UTF-8, by table 3-7 of the Unicode Standard. Decodes nothing:
 * whoever streams or quotes text only has to know what is whole, what is cut short and what is no
 * UTF-8.
 */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include "core/base.h"

enum utf8_state {
    UTF8_WHOLE,  /* a character */
    UTF8_CUT,    /* the beginning of one: more bytes may complete it */
    UTF8_INVALID /* whatever follows, no character */
};

/* What text[0..n), n >= 1, begins with. *size is its length in bytes, which for the last two is the
 * "maximal subpart" that one U+FFFD stands for. */
enum utf8_state utf8_next(const char *text, size_t n, size_t *size);

/* The bytes of text[0..n) that lie before a character cut short by the end. */
size_t utf8_whole(const char *text, size_t n);

#endif
