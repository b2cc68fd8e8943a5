/*
 * A file that is written: every failure is one sentence with the file's path, disk full among them.
 * Reading is file.c's business.
 */
#ifndef CORE_FILE_WRITE_H
#define CORE_FILE_WRITE_H

#include "core/base.h"
#include "core/err.h"

struct file_write {
    int fd;     /* -1: not open */
    char *path; /* malloc'ed */
};

/* Creates dir/name, which must not be there, with room for n bytes where the file system can
 * promise it. ERR_RUNTIME, here and below. */
bool file_write_open(struct file_write *f, const char *dir, const char *name, size_t n,
                     struct err *e);

/* All of data[0..n) at that offset. */
bool file_write_at(const struct file_write *f, size_t offset, const void *data, size_t n,
                   struct err *e);

/* Brings it to the disk. */
bool file_write_close(struct file_write *f, struct err *e);

/* fsync; true where the file system has none. False and errno where it fails. */
bool file_write_sync(int fd);

/* Closes it without a word about failures; harmless behind close. */
void file_write_abandon(struct file_write *f);

#endif
