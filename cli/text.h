/*
 * A growable run of bytes: a prompt being read, JSON before it is printed, text that is held back.
 * A failed allocation is remembered rather than returned, so that who builds a long text asks once,
 * at the end.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "core/base.h"
#include "core/err.h"

/* All zero is an empty text. `data` is terminated whenever it is not NULL; the bytes may hold NULs.
 */
struct text {
    char *data;
    size_t n, capacity;
    bool failed; /* memory ran out; what came afterwards is missing */
};

void text_add(struct text *t, const char *data, size_t n);
void text_add_string(struct text *t, const char *string);
void text_addf(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Forgets the first n bytes. */
void text_drop(struct text *t, size_t n);

/* Appends what `fd` gives until its end, `name` being what the user calls it. ERR_RUNTIME. */
bool text_read(struct text *t, int fd, const char *name, struct err *e);

/* False and the sentence where memory ran out on the way. */
bool text_ok(const struct text *t, struct err *e);

void text_free(struct text *t);

#endif
