/*
 * Writes and extends the sentence of a struct err. Sentences quote names from files that anyone may
 * have made, and end up on a terminal: so control characters are replaced here, once, and a cut
 * never leaves half a character behind. Knows nothing of where sentences are shown.
 */
#include "core/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Control characters, C0 and DEL as one byte, C1 as the two bytes of UTF-8, become '?'. */
static void defuse(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++) {
        if (*p < 0x20 || *p == 0x7f) {
            *p = '?';
        } else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
            p[0] = '?';
            p[1] = '?';
        }
    }
}

/* Takes away a character of UTF-8 that the end of the buffer cut short. */
static void drop_half_character(char *text)
{
    size_t n = strlen(text);
    size_t tail = 0;
    while (tail < n && tail < 3 && ((unsigned char)text[n - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail == n)
        return;
    unsigned char lead = (unsigned char)text[n - 1 - tail];
    size_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (wanted > tail)
        text[n - 1 - tail] = '\0';
}

bool err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    e->code = code;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
    if (n < 0)
        e->text[0] = '\0';
    else if ((size_t)n >= sizeof e->text)
        drop_half_character(e->text);
    defuse(e->text);
    return false;
}

bool err_prefix(struct err *e, const char *fmt, ...)
{
    char sentence[sizeof e->text];
    memcpy(sentence, e->text, sizeof sentence);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof e->text) {
        n = snprintf(e->text + used, sizeof e->text - used, ": %s", sentence);
        used += n < 0 ? 0 : (size_t)n;
    }
    if (used >= sizeof e->text)
        drop_half_character(e->text);
    defuse(e->text);
    return false;
}

bool err_no_memory(struct err *e)
{
    return err_set(e, ERR_RUNTIME, "out of memory");
}
