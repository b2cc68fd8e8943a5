/*
 * Answers back in the order of their lines: each line takes a slot when it is read, its answer is
 * put there once it is finished, and leaves when all before it have left.
 */
#ifndef CLI_BATCH_ORDER_H
#define CLI_BATCH_ORDER_H

#include "cli/buffer.h"

struct batch_order_slot {
    struct buffer answer;
    bool ready;
    struct batch_order_slot *next;
};

/* All zero is an empty one. */
struct batch_order {
    struct batch_order_slot *first, *last;
};

/* The slot behind all others; NULL without memory. */
struct batch_order_slot *batch_order_add(struct batch_order *order, struct err *e);

/* Puts the answer into its slot and leaves *answer empty. */
void batch_order_fill(struct batch_order_slot *slot, struct buffer *answer);

/* Takes out the first answer where it is ready; the caller frees it. */
bool batch_order_take(struct batch_order *order, struct buffer *answer);

void batch_order_free(struct batch_order *order);

#endif
