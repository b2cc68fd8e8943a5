/*
 * A linked list of slots in the order of the input. It holds finished texts only, so that it stays
 * small behind a slow line. Owns the answers until they are taken; writes nothing, which is
 * batch_job.c's business.
 */
#include "cli/batch_order.h"

#include <stdlib.h>

struct batch_order_slot *batch_order_add(struct batch_order *order, struct err *e)
{
    struct batch_order_slot *slot = calloc(1, sizeof *slot);
    if (!slot) {
        err_no_memory(e);
        return NULL;
    }
    if (order->last)
        order->last->next = slot;
    else
        order->first = slot;
    order->last = slot;
    return slot;
}

void batch_order_fill(struct batch_order_slot *slot, struct buffer *answer)
{
    slot->answer = *answer;
    slot->ready = true;
    *answer = (struct buffer){0};
}

bool batch_order_take(struct batch_order *order, struct buffer *answer)
{
    struct batch_order_slot *slot = order->first;
    if (!slot || !slot->ready)
        return false;
    *answer = slot->answer;
    order->first = slot->next;
    if (!order->first)
        order->last = NULL;
    free(slot);
    return true;
}

void batch_order_free(struct batch_order *order)
{
    while (order->first) {
        struct batch_order_slot *slot = order->first;
        order->first = slot->next;
        buffer_free(&slot->answer);
        free(slot);
    }
    order->last = NULL;
}
