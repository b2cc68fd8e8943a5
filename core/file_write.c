/*
 * pwrite in a loop. Room is taken at once (posix_fallocate), so that a disk that is too small says
 * so before the work, and closing syncs, so that no late failure is lost. Owns the descriptor and
 * the path. An abandoned file stays where it is: whoever made its directory removes it.
 */
#include "core/file_write.h"

#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool fail(const struct file_write *f, int cause, struct err *e)
{
    if (cause ==
        EFAULT) /* from a mapping whose file was cut short: read here, it would be SIGBUS */
        return err_set(e, ERR_RUNTIME,
                       "cannot write to %s: its source was cut short, or the disk of that fails",
                       f->path);
    return err_set(e, ERR_RUNTIME, "cannot write to %s: %s", f->path, strerror(cause));
}

bool file_write_open(struct file_write *f, const char *dir, const char *name, size_t n,
                     struct err *e)
{
    *f = (struct file_write){.fd = -1, .path = file_join(dir, name)};
    if (!f->path)
        return err_no_memory(e);
    f->fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f->fd < 0)
        return fail(f, errno, e);
    const int error = n ? posix_fallocate(f->fd, 0, (off_t)n) : 0;
    return (error != ENOSPC && error != EFBIG) || fail(f, error, e);
}

bool file_write_at(const struct file_write *f, size_t offset, const void *data, size_t n,
                   struct err *e)
{
    const char *from = data;
    while (n > 0) {
        const ssize_t done = pwrite(f->fd, from, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return fail(f, done < 0 ? errno : ENOSPC, e);
        from += done;
        offset += (size_t)done;
        n -= (size_t)done;
    }
    return true;
}

bool file_write_sync(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
}

bool file_write_close(struct file_write *f, struct err *e)
{
    const int fd = f->fd;
    const bool synced = file_write_sync(fd);
    const int cause = errno;
    f->fd = -1;
    const bool closed = close(fd) == 0;
    const bool ok = synced && closed ? true : fail(f, synced ? errno : cause, e);
    free(f->path);
    f->path = NULL;
    return ok;
}

void file_write_abandon(struct file_write *f)
{
    if (f->path && f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (struct file_write){.fd = -1};
}
