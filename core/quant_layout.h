/*
 * What the formats of quant.h have in common, as a table: for quant.c, which reads, and
 * quant_check.c, which checks.
 */
#ifndef CORE_QUANT_LAYOUT_H
#define CORE_QUANT_LAYOUT_H

#include "core/quant.h"

struct quant_layout {
    const char *name; /* for the user */
    int code;         /* of kernels->decode */
    unsigned bits;    /* of a code */
    int offset;       /* the code of zero where there are no zero points */
    enum dtype dtype; /* of the tensor of codes */
    bool in_columns;  /* an input's codes for all outputs lie side by side, else an output's */
};

const struct quant_layout *quant_layout(enum quant_type type);

/* Of a format that is not in columns. */
size_t quant_layout_row_bytes(enum quant_type type, size_t n_in);

#endif
