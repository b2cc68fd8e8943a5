/*
 * A Hugging Face directory: its small files and its tensors, mapped and read-only.
 *
 * Owns every mapping and the table from names to tensors. Opening touches nothing but the directory
 * itself, so a directory that holds only a tokenizer serves `tgen tokenize`; tensors are loaded
 * when a model asks for them. Sentences name the file within the directory; the caller puts the
 * directory in front.
 */
#ifndef CORE_CHECKPOINT_H
#define CORE_CHECKPOINT_H

#include "core/err.h"
#include "core/tensor.h"

struct checkpoint;

/* NULL and ERR_LOAD where `dir` is no directory that can be read. */
struct checkpoint *checkpoint_open(const char *dir, struct err *e);

/* Accepts NULL. Every view into the checkpoint ends here. */
void checkpoint_close(struct checkpoint *c);

const char *checkpoint_dir(const struct checkpoint *c);

/* The bytes of a small file of the directory, e.g. "config.json": mapped until checkpoint_close.
 * Absent: true, with out->data NULL. Unreadable: false. `name` must be a plain file name. */
bool checkpoint_file(struct checkpoint *c, const char *name, struct bytes *out, struct err *e);

/* The same for the first file, by name, of those whose names end in `ending`, e.g. ".tiktoken". */
bool checkpoint_file_ending(struct checkpoint *c, const char *ending, struct bytes *out,
                            struct err *e);

/* Whether `path` is a file that is mapped, by whatever name: writing there would change it. */
bool checkpoint_holds(const struct checkpoint *c, const char *path);

/* Maps and checks model.safetensors, or the shards that model.safetensors.index.json names (each
 * tensor must lie in the shard that the index says). Idempotent. */
bool checkpoint_load_tensors(struct checkpoint *c, struct err *e);

/* NULL where there is none of that name. Needs checkpoint_load_tensors. */
const struct tensor *checkpoint_tensor(const struct checkpoint *c, const char *name);

/* All tensors, in the order of the files: one array, so that a difference of pointers is an index.
 */
size_t checkpoint_n_tensors(const struct checkpoint *c);
const struct tensor *checkpoint_tensor_at(const struct checkpoint *c, size_t i);

/* The file that it lies in. */
const char *checkpoint_tensor_file(const struct checkpoint *c, const struct tensor *t);

/* The name of the file that is mapped at `address`, NULL where none is. May be called by a handler
 * of signals. */
const char *checkpoint_file_at(const struct checkpoint *c, const void *address);

/* For a caller that waits for something else anyway: readies some of the tensors' pages
 * (file_touch), a moment's work, and moves on the place, which begins as {0, 0}. False where
 * nothing is left to do. */
struct checkpoint_place {
    size_t tensor, byte;
};
bool checkpoint_touch(const struct checkpoint *c, struct checkpoint_place *place);

/* The i-th of n shares of what closing has to do, for workers to do it together. */
void checkpoint_forget(const struct checkpoint *c, size_t i, size_t n);

#endif
