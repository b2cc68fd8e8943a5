/*
 * Growth by doubling, with every size checked: a prompt is as long as whoever pipes it wants.
 */
#include "cli/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 1 << 16 };

/* No context is that long; without a limit, /dev/zero would take all memory first. */
static const size_t READ_LIMIT = (size_t)1 << 30;

bool buffer_reserve(struct buffer *t, size_t n)
{
    size_t needed;
    if (t->failed || !checked_add(t->n, n, &needed) || !checked_add(needed, 1, &needed)) {
        t->failed = true;
        return false;
    }
    char *data = grow_array(t->data, &t->capacity, needed, 1, 64);
    t->failed = !data;
    t->data = t->failed ? t->data : data;
    return !t->failed;
}

void buffer_add(struct buffer *t, const char *data, size_t n)
{
    if (!buffer_reserve(t, n))
        return;
    if (n > 0)
        memcpy(t->data + t->n, data, n);
    t->n += n;
    t->data[t->n] = '\0';
}

void buffer_add_string(struct buffer *t, const char *string)
{
    buffer_add(t, string, strlen(string));
}

void buffer_addf(struct buffer *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0 || !buffer_reserve(t, (size_t)n)) {
        t->failed = true;
        return;
    }
    va_start(args, fmt);
    vsnprintf(t->data + t->n, (size_t)n + 1, fmt, args);
    va_end(args);
    t->n += (size_t)n;
}

void buffer_drop(struct buffer *t, size_t n)
{
    if (n == 0)
        return;
    t->n -= n;
    memmove(t->data, t->data + n, t->n + 1);
}

int buffer_open_file(const char *path, struct err *e)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        err_set(e, ERR_RUNTIME, "cannot read %s: %s", path, strerror(errno));
    return fd;
}

bool buffer_read_once(char *to, size_t n, size_t *got, int fd, const char *name, struct err *e)
{
    ssize_t done;
    while ((done = read(fd, to, n)) < 0 && (errno == EINTR || errno == EAGAIN)) {
        /* EAGAIN: whoever shares standard input has made it non-blocking. */
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (errno == EAGAIN)
            poll(&wait, 1, -1);
    }
    *got = done > 0 ? (size_t)done : 0;
    return done >= 0 || err_set(e, ERR_RUNTIME, "cannot read %s: %s", name, strerror(errno));
}

bool buffer_read_some(struct buffer *t, size_t enough, bool *end, int fd, const char *name,
                      struct err *e)
{
    *end = false;
    while (t->n < enough) {
        if (!buffer_reserve(t, READ_SIZE))
            return err_no_memory(e);
        size_t got;
        if (!buffer_read_once(t->data + t->n, READ_SIZE, &got, fd, name, e))
            return false;
        t->n += got;
        t->data[t->n] = '\0';
        if (got == 0) {
            *end = true;
            return true;
        }
        if (t->n > READ_LIMIT)
            return err_set(e, ERR_RUNTIME, "%s is longer than %zu bytes", name, READ_LIMIT);
    }
    return true;
}

bool buffer_read(struct buffer *t, int fd, const char *name, struct err *e)
{
    bool end;
    return buffer_read_some(t, SIZE_MAX, &end, fd, name, e);
}

bool buffer_ok(const struct buffer *t, struct err *e)
{
    return !t->failed || err_no_memory(e);
}

void buffer_free(struct buffer *t)
{
    free(t->data);
    *t = (struct buffer){0};
}
