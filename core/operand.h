/*
 * The left side of products: rows of activations in f32, as they are written, and in the forms that
 * kernels want for some weights: rounded to bf16, or to int8 in groups that share a scale. A form
 * is made when the first matrix asks for it and kept for the others that read the same rows.
 *
 * Owns nothing: rows and room are the caller's. Knows no weights; linear.c says which form it
 * wants.
 */
#ifndef CORE_OPERAND_H
#define CORE_OPERAND_H

#include "core/compute.h"

enum operand_form {
    OPERAND_F32,
    OPERAND_BF16,
    OPERAND_I8,      /* codes in the order of k */
    OPERAND_I8_SPLIT /* codes in the order that weights of 4 bits ask for (kernels.h) */
};

/* A form with its parameters: group and order are for int8 alone, n_first for bf16. */
struct operand_kind {
    enum operand_form form;
    size_t group;
    const uint32_t *order; /* [n_k] or NULL: which value comes when; borrowed */
    size_t n_first; /* quads (to_quads), of so many values, a multiple of 4 or all, before those
                       of the others; 0: in the order of k */
};

/* Where forms are made: room for n_rows rows of all workers together, and for a few rows of each
 * worker's own. */
struct operand_room {
    unsigned char *base; /* NULL: products stay with f32 */
    size_t row_bytes;
    size_t n_rows;
    float *sums; /* [2, n_sums], of products of a few rows; linear.c's */
    size_t n_sums;
};

struct operand {
    const float *x; /* [n, n_k], rows x_stride apart */
    size_t x_stride;
    size_t n;
    size_t n_k;
    const struct operand_room *room; /* NULL: products stay with f32 */
    bool is_part;

    /* for operand.c and linear.c */
    struct operand_kind kind;  /* what the room holds of it now; OPERAND_F32: nothing */
    const unsigned char *made; /* [n], row_bytes apart */
};

/* Bytes of a room for rows of up to n_k values, a multiple of 64; false on overflow. The room is on
 * a cache line. */
bool operand_room_bytes(size_t n_rows, size_t n_k, int n_workers, size_t *bytes);
struct operand_room operand_room(void *base, size_t n_rows, size_t n_k, int n_workers);

/* Rows, the same values for every worker. What an earlier operand made in the room is lost; a sync
 * lies between its last product and this one's first. */
struct operand operand_rows(const float *x, size_t x_stride, size_t n, size_t n_k,
                            const struct operand_room *room);

/* Rows [first, first + n) of another, with the form that it has. Where a product wants a different
 * one, it stays with f32. */
struct operand operand_part(const struct operand *o, size_t first, size_t n);

/* Brings the rows to that form, unless they have it already; all workers come here. Returns false
 * where there is no room for it. */
bool operand_make(struct worker *w, struct operand *o, const struct operand_kind *kind);

#endif
