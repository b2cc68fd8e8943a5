/*
 * Files as read-only bytes. Mapped, not read: a checkpoint of several GB costs no memory of its own
 * and processes on one machine share it. Knows nothing of what the bytes mean.
 */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include "core/base.h"
#include "core/err.h"

/* Maps a regular file; an empty one gives {non-NULL, 0}. The caller gives it back with file_unmap.
 * Fails (ERR_LOAD) with the reason; the caller knows which name for the file a reader expects. */
bool file_map(const char *path, struct bytes *out, struct err *e);

void file_unmap(struct bytes bytes);

/* Enters the pages of a part of a mapping, all at once, which is cheaper than one fault after the
 * other, and read from the disk first where they are not in memory yet. Only a hint: false where
 * the system does not take it (Linux before 5.14). */
bool file_populate(struct bytes part);

bool file_exists(const char *path);

bool file_is_directory(const char *path);

/* "dir/name" in malloc'ed memory (the caller frees), NULL where there is none. */
char *file_join(const char *dir, const char *name);

#endif
