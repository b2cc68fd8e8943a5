/*
 * The rules of well-formed UTF-8, once, for the stream that must not split a character and for the
 * JSON that must not hold a broken one. Byte ranges: The Unicode Standard, table 3-7.
 */
#include "cli/utf8.h"

enum { LONGEST = 4 };

static size_t length_of_lead(unsigned char lead)
{
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    if (lead >= 0xF0 && lead <= 0xF4)
        return 4;
    return 0;
}

enum utf8_state utf8_next(const char *text, size_t n, size_t *size)
{
    const unsigned char *s = (const unsigned char *)text;
    *size = 1;
    if (s[0] < 0x80)
        return UTF8_WHOLE;
    const size_t length = length_of_lead(s[0]);
    if (length == 0)
        return UTF8_INVALID;

    /* The first byte narrows the second: no overlong forms, surrogates or code points past 10FFFF.
     */
    unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    for (; *size < length; (*size)++) {
        if (*size == n)
            return UTF8_CUT;
        if (s[*size] < low || s[*size] > high)
            return UTF8_INVALID;
        low = 0x80;
        high = 0xBF;
    }
    return UTF8_WHOLE;
}

size_t utf8_whole(const char *text, size_t n)
{
    for (size_t back = 1; back < LONGEST && back <= n; back++) {
        size_t size;
        if (utf8_next(text + n - back, back, &size) == UTF8_CUT)
            return n - back;
    }
    return n;
}
