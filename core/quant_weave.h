/*
 * A matrix that is stored quantised, woven (interleaved) as kernels.h's linear_woven wants it: the
 * same codes and scales in memory of the caller's, and so the same products, bit for bit. Where
 * each column has a group of its own (g_idx: GPTQ's desc_act, compressed-tensors' actorder
 * "group"), columns are sorted by group, and the matrix gains a product in whole numbers.
 */
#ifndef CORE_QUANT_WEAVE_H
#define CORE_QUANT_WEAVE_H

#include "core/quant.h"

/* Bytes of *q woven; 0 where it cannot be (it has no product in whole numbers, an odd shape, scales
 * of other than 16 bits) or the kernels have no use for it. */
size_t quant_woven_bytes(const struct kernels *kernels, const struct quant *q);

/* *woven becomes the matrix whose rows quant_weave_rows writes `to`, quant_woven_bytes() in cache
 * lines. Zero points that lie in columns are written here, and the order of sorted ones; zero
 * points in rows are used where they are, and so is *q, where columns are sorted. */
void quant_woven_init(const struct quant *q, unsigned char *to, struct quant *woven);

/* Writes rows [begin, end) of *q, whole strips but for the last ones. Threads may share a matrix.
 */
void quant_weave_rows(const struct quant *q, unsigned char *to, size_t begin, size_t end);

/* A strip: rows of n elements, one behind the other -> all first elements, all second ones, ... */
void quant_weave_strip(const unsigned char *rows, size_t size, size_t n, unsigned char *to);

#endif
