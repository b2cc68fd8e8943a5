/*
 * Matrices whose tensors are in columns (GPTQ's and AWQ's: layout->in_columns), for quant_apply.c:
 * where a code is, and products in whole numbers.
 */
#ifndef CORE_QUANT_COLUMNS_H
#define CORE_QUANT_COLUMNS_H

#include "core/quant.h"

/* Where among the codes of a word that output lies; AWQ has the even ones before the odd. */
unsigned quant_columns_place(const struct quant *q, size_t row);

/* The codes of 8 inputs from k on for outputs [row, row + n_rows) -> words[r * step]. */
void quant_columns_words(const struct quant *q, size_t row, size_t n_rows, size_t k,
                         uint32_t *words, size_t step);

/* Outputs [row, row + n) in rows: codes [n, n_in / 8 words], `stride` words apart, and scales [n,
 * n_groups]. */
void quant_columns_rows(const struct quant *q, size_t row, size_t n, uint32_t *codes, size_t stride,
                        unsigned char *scales);

/* The same of whole strips, woven as kernels.h's linear_woven wants them. Scales have 16 bits;
 * codes NULL: scales alone. */
void quant_columns_strips(const struct quant *q, size_t row, size_t n, uint32_t *codes,
                          unsigned char *scales);

/* The zero points of outputs [8 * word, 8 * (word + n)) as words of 8 rows, [n, n_groups]. True
 * where all are 8: then codes are symmetric, as most of GPTQ's. */
bool quant_columns_zeros(const struct quant *q, size_t word, size_t n, uint32_t *zeros);

/* Whether rows are short enough for quant_columns_apply_i8, and whole groups. */
bool quant_columns_fit(const struct quant *q);

/* quant_apply_i8 for such a matrix. */
void quant_columns_apply_i8(const struct kernels *kernels, const struct quant *q, size_t row,
                            const struct linear_i8_args *a);

#endif
