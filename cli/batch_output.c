/*
 * One write(2) per line, in append mode. A kill can only come between two writes, or cut one short
 * on a full disk or a crashing machine: the torn line is then the last, and it has no newline.
 *
 * fsync protects against a power failure, not against a kill. At worst a few lines are computed
 * again, so it is called only now and then, and at the end.
 */
#include "cli/batch_output.h"

#include "cli/stream.h"
#include "core/clock.h"
#include "core/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const double SYNC_SECONDS = 10;

static bool fail(const struct batch_output *out, struct err *e)
{
    if (errno == EINTR && stream_interrupted()) /* while nobody read from a pipe */
        return err_interrupted(e);
    return err_set(e, ERR_RUNTIME, "cannot write to %s: %s", out->name, strerror(errno));
}

/* Some file systems have no locks (Lustre mounted without flock); there, a job without a lock is
 * better than no job. */
static bool lock(const struct batch_output *out, struct err *e)
{
    if (flock(out->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return true;
    return err_set(e, ERR_RUNTIME, "%s is being written by another process", out->name);
}

bool batch_output_open(struct batch_output *out, const char *path, struct err *e)
{
    struct stat about;
    *out = (struct batch_output){.fd = STREAM_STDOUT, .name = "standard output"};
    if (!path)
        return true;
    out->name = path;
    /* A pipe that is opened for reading as well would never break. */
    const bool other = stat(path, &about) == 0 && !S_ISREG(about.st_mode);
    const bool there = lstat(path, &about) == 0; /* a link to nothing, too */
    const int way = other ? O_WRONLY : O_RDWR | O_CREAT;
    out->fd = open(path, way | O_APPEND | O_CLOEXEC, 0666);
    if (out->fd < 0 || fstat(out->fd, &about) != 0)
        return fail(out, e);
    out->regular = S_ISREG(about.st_mode);
    if (!out->regular)
        return true;
    out->synced = clock_seconds();
    if (!lock(out, e))
        return false;
    out->created = !there;
    out->has_name = about.st_nlink > 0;
    return true;
}

bool batch_output_trim(struct batch_output *out, uint64_t size, struct err *e)
{
    out->size = size;
    return ftruncate(out->fd, (off_t)size) == 0 || fail(out, e);
}

bool batch_output_put(struct batch_output *out, const struct buffer *line, struct err *e)
{
    if (!stream_write(out->fd, out->name, line->data, line->n, e)) {
        if (out->regular)
            (void)!ftruncate(out->fd, (off_t)out->size);
        return false;
    }
    out->size += line->n;
    out->unsynced = true;
    return batch_output_sync(out, false, e);
}

/* Checks names, links and the size only: inode numbers are not stable on every file system. */
static bool check_there(const struct batch_output *out, struct err *e)
{
    struct stat about;
    const bool named = stat(out->name, &about) == 0 || errno != ENOENT;
    if (!named || fstat(out->fd, &about) != 0 || (about.st_nlink == 0 && out->has_name))
        return err_set(e, ERR_RUNTIME, "%s was removed, moved or replaced while answers went there",
                       out->name);
    return (uint64_t)about.st_size == out->size ||
           err_set(e, ERR_RUNTIME, "%s was changed by somebody else while answers went there",
                   out->name);
}

bool batch_output_sync(struct batch_output *out, bool now, struct err *e)
{
    if (!out->regular || !out->unsynced || (!now && clock_seconds() < out->synced + SYNC_SECONDS))
        return true;
    if (!check_there(out, e))
        return false;
    if (!file_write_sync(out->fd))
        return fail(out, e);
    out->synced = clock_seconds();
    out->unsynced = false;
    return true;
}

/* Called while the file is locked: a process that opens it meanwhile is refused, so none writes
 * into a file without a name. */
void batch_output_discard(const struct batch_output *out)
{
    struct stat about, named;
    if (out->created && out->size == 0 && fstat(out->fd, &about) == 0 && about.st_size == 0 &&
        stat(out->name, &named) == 0 && named.st_dev == about.st_dev &&
        named.st_ino == about.st_ino)
        unlink(out->name);
}

void batch_output_close(struct batch_output *out)
{
    if (out->fd > STREAM_STDOUT)
        close(out->fd);
    out->fd = -1;
}
