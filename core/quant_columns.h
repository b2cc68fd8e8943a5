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

/* Whether rows are short enough for quant_columns_apply_i8, and whole groups. */
bool quant_columns_fit(const struct quant *q);

/* quant_apply_i8 for such a matrix. */
void quant_columns_apply_i8(const struct kernels *kernels, const struct quant *q, size_t row,
                            const struct linear_i8_args *a);

#endif
