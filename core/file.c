/*
 * Read-only mappings. MAP_PRIVATE, so that nothing here could ever write a model back; large pages
 * are a wish. No file is prefetched as a whole: that would make opening wait for the disk, and the
 * kernel's own read-ahead serves the first pass over the weights. A file that another process cuts
 * short while it is mapped raises SIGBUS; that is the price of not copying it, and cli/fault.c says
 * which file it was.
 */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What an empty file maps to: mmap refuses a length of 0. */
static const unsigned char empty[1];

static bool refuse_open(const char *path, int cause, struct err *e)
{
    struct stat st;
    if (cause == ENOENT && lstat(path, &st) == 0)
        return err_set(e, ERR_LOAD, "a symbolic link to a file that is not there");
    return err_set(e, ERR_LOAD, "%s", strerror(cause));
}

/* Maps what fd refers to. */
static bool map_descriptor(int fd, const char *path, struct bytes *out, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return refuse_open(path, errno, e);
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_LOAD, "a directory where a file is expected");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_LOAD, "not a regular file");
    if ((uintmax_t)st.st_size > SIZE_MAX)
        return err_set(e, ERR_LOAD, "too large for this machine's addresses");
    size_t size = (size_t)st.st_size;
    if (size == 0) {
        *out = (struct bytes){.data = empty, .size = 0};
        return true;
    }
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return err_set(e, errno == ENOMEM ? ERR_RUNTIME : ERR_LOAD, "cannot be mapped: %s",
                       strerror(errno));
    (void)madvise(data, size, MADV_HUGEPAGE); /* what is read from now on; a wish */
    *out = (struct bytes){.data = data, .size = size};
    return true;
}

bool file_map(const char *path, struct bytes *out, struct err *e)
{
    /* O_NONBLOCK: opening a named pipe must not wait for somebody to write into it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return refuse_open(path, errno, e);
    bool ok = map_descriptor(fd, path, out, e);
    close(fd);
    return ok;
}

void file_unmap(struct bytes bytes)
{
    if (bytes.size > 0) {
        /* munmap takes a plain pointer; the const promised that nobody wrote through it. */
        munmap((void *)(uintptr_t)bytes.data, bytes.size);
    }
}

void file_touch(struct bytes part)
{
    /* Linux enters the 16 pages around one that is missing. MADV_POPULATE_READ takes them one by
     * one and is no faster. */
    const size_t around = 64 << 10;
    for (size_t at = 0; at < part.size; at += around)
        (void)*(const volatile unsigned char *)(part.data + at);
}

void file_forget(struct bytes part)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)part.data + page - 1) / page * page;
    const uintptr_t end = (uintptr_t)part.data + part.size;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

bool file_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

bool file_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool file_close_text(FILE *f, char **text)
{
    const bool good = !ferror(f);
    if (fclose(f) == 0 && good && *text)
        return true;
    free(*text);
    *text = NULL;
    return false;
}

char *file_join(const char *dir, const char *name)
{
    size_t n_dir = strlen(dir);
    size_t n_name = strlen(name);
    const char *slash = n_dir > 0 && dir[n_dir - 1] == '/' ? "" : "/";
    size_t size;
    if (!checked_add(n_dir, n_name, &size) || !checked_add(size, 2, &size))
        return NULL;
    char *path = malloc(size);
    if (path) {
        char *end = stpcpy(stpcpy(path, dir), slash);
        memcpy(end, name, n_name + 1);
    }
    return path;
}
