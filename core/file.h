/*
 * Files as read-only bytes. Mapped, not read: a checkpoint of several GB costs no memory of its own
 * and processes on one machine share it. Knows nothing of what the bytes mean.
 */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include "core/base.h"
#include "core/err.h"

#include <stdio.h>

/* Maps a regular file; an empty one gives {non-NULL, 0}. The caller gives it back with file_unmap.
 * Fails (ERR_LOAD, or ERR_RUNTIME without memory) with the reason; the caller knows which name for
 * the file a reader expects. */
bool file_map(const char *path, struct bytes *out, struct err *e);

void file_unmap(struct bytes bytes);

/* Reads a little everywhere in a part of a mapping, so that its pages are there when they are
 * needed: from the disk, and in the process's tables. */
void file_touch(struct bytes part);

/* The opposite: the pages of a part leave the process's tables. */
void file_forget(struct bytes part);

/* Whether something is there, be it a link into nothing: mapping that says what is wrong with it.
 */
bool file_exists(const char *path);

/* Links are followed. */
bool file_is_directory(const char *path);

/* Ends a stream of open_memstream, whose text is *text. False without memory: *text is NULL then.
 * (glibc's fclose succeeds even if the text is gone.) */
bool file_close_text(FILE *f, char **text);

/* "dir/name" in malloc'ed memory (the caller frees), NULL where there is none. */
char *file_join(const char *dir, const char *name);

#endif
