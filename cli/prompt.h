/*
 * Where a prompt comes from: -f FILE, stdin, and the words of the command line (or -p), in this
 * order with a newline between. The bytes themselves are never altered: no escapes, no newline
 * stripped, no encoding assumed.
 */
#ifndef CLI_PROMPT_H
#define CLI_PROMPT_H

#include "cli/buffer.h"
#include "cli/options.h"
#include "tokenizer/tokenizer.h"

/* Appends the prompt to *out. stdin is read where "-" asks for it, and otherwise where it is no
 * terminal and no -f was given. *given is false where there is nothing to read a prompt from. */
bool prompt_read(const struct options *o, struct buffer *out, bool *given, struct err *e);

/* Appends what a file holds, or standard input ("-" or NULL), this with a newline before it unless
 * *out is empty. */
bool prompt_read_file(const char *path, struct buffer *out, struct err *e);

/* Where the prompt is one file or stdin alone, *fd: open for reading, with its name for sentences;
 * the caller gives both back with prompt_close. Else *fd is -1 and prompt_read is the way. */
bool prompt_open(const struct options *o, int *fd, const char **name, struct err *e);
void prompt_close(int fd);

/* What --no-bos and --special mean to an encoder. */
unsigned prompt_flags(const struct options *o);

/* Appends the ids of the text, by --no-bos and --special; and where each lies in it, unless `where`
 * is NULL. */
bool prompt_encode(const struct options *o, const struct tokenizer *t, const struct buffer *text,
                   struct ids *out, struct token_spans *where, struct err *e);

/* Appends the ids that text[0..n) spells out in decimal, apart by spaces or commas. `name` is what
 * the sentence calls their source. ERR_USAGE for anything else. */
bool prompt_parse_ids(const char *name, const char *text, size_t n, struct ids *out, struct err *e);

#endif
