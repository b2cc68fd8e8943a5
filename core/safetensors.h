/*
 * The safetensors container: bytes in, checked tensors out. Never opens a file and never reads past
 * the range. Format: github.com/huggingface/safetensors, README: u64 little-endian header length N
 * <= 100,000,000; N bytes of JSON that begin with '{', perhaps padded with spaces; then one buffer,
 * which the tensors cover without holes or overlaps.
 */
#ifndef CORE_SAFETENSORS_H
#define CORE_SAFETENSORS_H

#include "core/arena.h"
#include "core/err.h"
#include "core/tensor.h"

/* Parses one file. *tensors (from the arena, sorted by offset) view into `file`, which must outlive
 * them. ERR_LOAD with one sentence, naming the tensor where one is to blame. */
bool safetensors_parse(struct bytes file, struct arena *arena, struct tensor **tensors,
                       size_t *n_tensors, struct err *e);

/* What stands in front of the buffer in a file of these tensors, which lie in it one behind the
 * other, in this order: length, JSON and spaces up to a multiple of 8. *size bytes, malloc'ed (the
 * caller frees); NULL where there is no memory. Only names, dtypes, shapes and sizes are read. */
char *safetensors_header(const struct tensor *const *tensors, size_t n_tensors, size_t *size);

#endif
