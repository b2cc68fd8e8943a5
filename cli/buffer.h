/*
 * A growable run of bytes: a prompt being read, JSON before it is printed, text that is held back.
 * A failed allocation is remembered rather than returned, so that whoever builds a long text checks
 * once, at the end.
 */
#ifndef CLI_BUFFER_H
#define CLI_BUFFER_H

#include "core/base.h"
#include "core/err.h"

/* All zero is an empty one. `data` is terminated whenever it is not NULL; the bytes may hold NULs.
 */
struct buffer {
    char *data;
    size_t n, capacity;
    bool failed; /* memory ran out; what came afterwards is missing */
};

void buffer_add(struct buffer *t, const char *data, size_t n);
void buffer_add_string(struct buffer *t, const char *string);
void buffer_addf(struct buffer *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Room for n more bytes and a terminator, for callers that write there themselves; false, as if an
 * addition had failed, without memory. */
bool buffer_reserve(struct buffer *t, size_t n);

/* Forgets the first n bytes. */
void buffer_drop(struct buffer *t, size_t n);

/* Opens a file to be read by the functions below; -1 and ERR_RUNTIME if that fails. */
int buffer_open_file(const char *path, struct err *e);

/* Appends what `fd` gives until its end, `name` being what the user calls it. ERR_RUNTIME. */
bool buffer_read(struct buffer *t, int fd, const char *name, struct err *e);

/* Appends what `fd` gives until *t holds at least `enough` bytes, or *end: it gives no more.
 * ERR_RUNTIME. */
bool buffer_read_some(struct buffer *t, size_t enough, bool *end, int fd, const char *name,
                      struct err *e);

/* Waits until `fd` gives something and reads up to n bytes of it; *got is how many, 0 at the end.
 * ERR_RUNTIME. */
bool buffer_read_once(char *to, size_t n, size_t *got, int fd, const char *name, struct err *e);

/* False and the sentence where memory ran out on the way. */
bool buffer_ok(const struct buffer *t, struct err *e);

void buffer_free(struct buffer *t);

#endif
