/*
 * Writes and extends the sentence of a struct err. Sentences quote names from files that anyone may
 * have made, and end up on a terminal: so they are cleaned here, once. Knows nothing of where
 * sentences are shown.
 */
#include "core/err.h"

#include "core/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    e->code = code;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
    if (n < 0)
        e->text[0] = '\0';
    utf8_clean(e->text, sizeof e->text);
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
    if (used < sizeof e->text)
        snprintf(e->text + used, sizeof e->text - used, ": %s", sentence);
    utf8_clean(e->text, sizeof e->text);
    return false;
}

bool err_no_memory(struct err *e)
{
    return err_set(e, ERR_RUNTIME, "out of memory");
}
