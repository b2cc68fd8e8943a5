/*
 * What the two parts of the quantiser share: quantize.c takes matrices row by row,
 * quantize_factor.c those that have factors, by blocks of columns.
 */
#ifndef CORE_QUANTIZE_PARTS_H
#define CORE_QUANTIZE_PARTS_H

#include "core/quantize.h"

/* The address to write row r of to->codes or to->scales to. */
unsigned char *quantize_row_at(const struct tensor *t, size_t r);

/* Floats that quantize_factor_rows works in. */
size_t quantize_factor_scratch(void);

/* quantize_rows for QUANT_PACKED4 with factors. tries: as the kernels' quant_scales wants them. */
bool quantize_factor_rows(const struct kernels *kernels, const struct quantize_source *from,
                          const struct quantized *to, size_t begin, size_t end,
                          const int16_t *tries, float *scratch);

/* Weights in whole numbers, in proportion to cost [n], what errors in the columns of a group cost;
 * all equal where it is NULL. */
void quantize_weigh_group(const float *cost, size_t n, int16_t *weights);

/* As BF16, which the scale has been rounded to, or as F16, whose subnormals hold less of it. False
 * where the scale is not finite, which tells that a weight is not. */
bool quantize_write_scale(const struct kernels *kernels, enum dtype dtype, unsigned char *to,
                          float scale);

#endif
