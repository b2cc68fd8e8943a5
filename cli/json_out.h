/*
 * Values -> one line of JSON, valid whatever bytes come in: text that is no UTF-8 gets U+FFFD, a
 * number that JSON cannot hold becomes null. Nothing here depends on a locale.
 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include "cli/buffer.h"

/* `key` is the member's name inside an object and NULL inside an array or for the whole value.
 * Commas come by themselves. */
void json_out_open(struct buffer *t, const char *key, char bracket); /* '{' or '[' */
void json_out_close(struct buffer *t, char bracket);                 /* '}' or ']' */
void json_out_text(struct buffer *t, const char *key, const char *text, size_t n);
void json_out_string(struct buffer *t, const char *key, const char *string); /* NULL: null */
void json_out_unsigned(struct buffer *t, const char *key, uint64_t value);
void json_out_bool(struct buffer *t, const char *key, bool value);
void json_out_null(struct buffer *t, const char *key);
void json_out_ids(struct buffer *t, const char *key, const int32_t *ids, size_t n); /* a list */
void json_out_raw(struct buffer *t, const char *key, const char *json, size_t n);   /* as it is */

/* The name of a member, for one that may hold a byte 0; its value is written next, with no key. */
void json_out_name(struct buffer *t, const char *name, size_t n);

/* text[0..n) in quotation marks and nothing else: what JSON and a table for people both print. */
void json_out_quoted(struct buffer *t, const char *text, size_t n);

/* Whether the members from `begin` on, "name":number,... as they are written here, have one of that
 * name. */
bool json_out_has(struct buffer *t, size_t begin, const char *name, size_t n_name);

/* The shortest decimal that reads back as the same double. */
void json_out_number(struct buffer *t, const char *key, double value);

#endif
