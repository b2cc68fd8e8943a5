/*
 * What the formats of quant.h have in common, as a table: between quant.c, which checks, and
 * quant_apply.c, quant_columns.c and quant_weave.c, which compute.
 */
#ifndef CORE_QUANT_LAYOUT_H
#define CORE_QUANT_LAYOUT_H

#include <string.h>

#include "core/quant.h"

/* Scales of a whole row are gathered on the stack where g_idx gives each column a group of its own;
 * 1024 is 32768 columns / groups of 32. */
enum { QUANT_LAYOUT_MAX_GROUPS = 1024 };

struct quant_layout {
    const char *name; /* for the user */
    int code;         /* of kernels->decode */
    unsigned bits;    /* of a code */
    int offset;       /* the code of zero where there are no zero points */
    enum dtype dtype; /* of the tensor of codes */
    bool in_columns;  /* an input's codes for all outputs lie side by side, else an output's */
};

extern const struct quant_layout quant_layouts[QUANT_TYPE_COUNT];

/* A word of a tensor, which is aligned to nothing. */
static inline uint32_t quant_layout_word(const unsigned char *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

#endif
