/*
 * The rules of well-formed UTF-8, used by the tokenizer, by the stream that must not split a
 * character, and by sentences, which must not hold a broken character or one that controls a
 * terminal. Byte ranges: The Unicode Standard, table 3-7. Owns nothing.
 */
#include "core/utf8.h"

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

size_t utf8_valid_prefix(const char *text, size_t n)
{
    size_t at = 0, size = 0;
    for (; at < n; at += size) {
        uint64_t eight;
        if (n - at >= 8 && (memcpy(&eight, text + at, 8), (eight & 0x8080808080808080u) == 0))
            size = 8;
        else if (length_of_lead((unsigned char)text[at]) == 2 && n - at >= 2 &&
                 (text[at + 1] & 0xC0) == 0x80) /* the most frequent case in a vocabulary */
            size = 2;
        else if (utf8_next(text + at, n - at, &size) != UTF8_WHOLE)
            break;
    }
    return at;
}

size_t utf8_put(char *out, uint32_t c)
{
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

bool utf8_is_control(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    return s[0] < 0x20 || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0);
}

void utf8_clean(char *text, size_t capacity)
{
    size_t n = strlen(text), size;
    if (n + 1 == capacity)
        n = utf8_whole(text, n);
    text[n] = '\0';
    for (size_t at = 0; at < n; at += size)
        if (utf8_next(text + at, n - at, &size) != UTF8_WHOLE || utf8_is_control(text + at))
            memset(text + at, '?', size);
}
