/*
 * Writes and extends the sentence of a struct err. Sentences quote names from files that anyone may
 * have made, and end up on a terminal: so they are cleaned here, once. Knows nothing of where
 * sentences are shown.
 */
#include "core/err.h"

#include "core/base.h"
#include "core/utf8.h"

#include <limits.h>
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
    char sentence[sizeof e->text], prefix[PATH_MAX] = "";
    memcpy(sentence, e->text, sizeof sentence);
    va_list args;
    va_start(args, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, args);
    va_end(args);
    /* Of a path that leaves no room for the cause, the end is shown. */
    const size_t n = strlen(prefix), kept = min_size(strlen(sentence), sizeof e->text / 2);
    const size_t most = sizeof e->text - sizeof "...: " - kept;
    const char *const shown = n > most ? prefix + n - most : prefix;
    if (snprintf(e->text, sizeof e->text, "%s%s: %s", n > most ? "..." : "", shown, sentence) < 0)
        e->text[0] = '\0';
    utf8_clean(e->text, sizeof e->text);
    return false;
}

bool err_no_memory(struct err *e)
{
    return err_set(e, ERR_RUNTIME, "out of memory");
}

bool err_interrupted(struct err *e)
{
    *e = (struct err){.code = ERR_INTERRUPTED};
    return false;
}
