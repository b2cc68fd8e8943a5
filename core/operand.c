/*
 * Makes the forms of rows. Those of few rows are made by every worker for itself, which is cheaper
 * than waiting; those of many are shared out.
 */
#include "core/operand.h"

#include "core/kernels/kernels.h"

#include <string.h>

enum {
    FEW_ROWS = 4, /* up to so many are made by every worker */
    SUM_ROWS = 8, /* partial sums (linear.c) have a double buffer for so many rows; a row of floats
                     is no larger than two rows of bf16, in which room is counted */
};

/* Bytes of a row in its largest form, bf16: int8 takes less, even with the smallest groups. */
static bool room_row_bytes(size_t n_k, size_t *bytes)
{
    if (!checked_add(n_k, KERNELS_I8_BLOCK, bytes) || !checked_mul(*bytes, 2, bytes))
        return false;
    *bytes = *bytes / CACHE_LINE * CACHE_LINE;
    return true;
}

/* How many rows the room holds. */
static bool room_forms(size_t n_rows, int n_workers, size_t *n)
{
    return checked_add(n_rows, (size_t)n_workers * FEW_ROWS, n);
}

bool operand_room_bytes(size_t n_rows, size_t n_k, int n_workers, size_t *bytes)
{
    size_t row, n;
    return room_row_bytes(n_k, &row) && room_forms(n_rows, n_workers, &n) &&
           checked_add(n, 2 * 2 * SUM_ROWS, &n) && checked_mul(n, row, bytes);
}

struct operand_room operand_room(void *base, size_t n_rows, size_t n_k, int n_workers)
{
    struct operand_room room = {.n_rows = n_rows, .n_sums = SUM_ROWS * n_k};
    size_t n;
    if (room_row_bytes(n_k, &room.row_bytes) && room_forms(n_rows, n_workers, &n)) {
        room.base = base;
        room.sums = (float *)base + n * (room.row_bytes / sizeof(float));
    }
    return room;
}

struct operand operand_rows(const float *x, size_t x_stride, size_t n, size_t n_k,
                            const struct operand_room *room)
{
    return (struct operand){
        .x = x, .x_stride = x_stride, .n = n, .n_k = n_k, .room = room && room->base ? room : NULL};
}

struct operand operand_part(const struct operand *o, size_t first, size_t n)
{
    struct operand part = *o;
    part.x += first * o->x_stride;
    part.n = n;
    part.is_part = true;
    if (o->kind.form != OPERAND_F32)
        part.made += first * o->room->row_bytes;
    return part;
}

/* As to_i8 does it, piece by piece. */
static void make_ordered(const struct kernels *kernels, const struct operand *o, const float *x,
                         unsigned char *to)
{
    enum { PIECE = 4 * KERNELS_I8_BLOCK, GROUP = 32, PER_GROUP = sizeof(float) + sizeof(int32_t) };
    const struct operand_kind *const kind = &o->kind;
    const size_t size = sizeof(float), n_groups = (o->n_k + kind->group - 1) / kind->group;
    unsigned char *const scales = to + kernels_i8_codes(o->n_k);
    unsigned char *const sums = scales + size * n_groups;
    for (size_t k = 0; k < o->n_k; k += PIECE) {
        float ordered[PIECE];
        unsigned char made[PIECE + PIECE / GROUP * PER_GROUP] __attribute__((aligned(64)));
        const size_t n = min_size(o->n_k - k, PIECE), n_codes = kernels_i8_codes(n);
        const size_t g = k / kind->group * size, n_g = (n + kind->group - 1) / kind->group * size;
        for (size_t i = 0; i < n; i++)
            ordered[i] = x[kind->order[k + i]];
        kernels->to_i8(made, ordered, n, kind->group, kind->form == OPERAND_I8_SPLIT);
        memcpy(to + k, made, n_codes);
        memcpy(scales + g, made + n_codes, n_g);
        memcpy(sums + g, made + n_codes + n_g, n_g);
    }
}

static void make_row(const struct kernels *kernels, const struct operand *o, size_t i,
                     unsigned char *to)
{
    const float *const x = o->x + i * o->x_stride;
    const struct operand_kind *const kind = &o->kind;
    uint16_t *const bf16 = (void *)to;
    if (kind->form == OPERAND_BF16 && kind->n_first) {
        kernels->to_quads(bf16, x, kind->n_first);
        kernels->to_quads(bf16 + kind->n_first, x + kind->n_first, o->n_k - kind->n_first);
    } else if (kind->form == OPERAND_BF16)
        kernels->to_bf16(bf16, x, o->n_k);
    else if (kind->order)
        make_ordered(kernels, o, x, to);
    else
        kernels->to_i8(to, x, o->n_k, kind->group, kind->form == OPERAND_I8_SPLIT);
}

/* Matrices that read the same rows are often sorted alike. */
static bool is_made(const struct operand *o, const struct operand_kind *kind)
{
    const uint32_t *const a = o->kind.order, *const b = kind->order;
    return o->kind.form == kind->form && o->kind.group == kind->group &&
           o->kind.n_first == kind->n_first &&
           (a == b || (a && b && memcmp(a, b, o->n_k * sizeof *a) == 0));
}

bool operand_make(struct worker *w, struct operand *o, const struct operand_kind *kind)
{
    const struct operand_room *const room = o->room;
    if (is_made(o, kind))
        return true;
    size_t row_bytes;
    if (!room || o->is_part || !room_row_bytes(o->n_k, &row_bytes) || row_bytes > room->row_bytes)
        return false;
    const bool own = o->n <= FEW_ROWS;
    size_t begin = 0, end = o->n, first = 0;
    if (own) {
        first = room->n_rows + (size_t)w->index * FEW_ROWS;
    } else {
        if (o->n > room->n_rows)
            return false;
        if (o->kind.form != OPERAND_F32)
            worker_sync(w); /* others may still read the form before */
        worker_share(w, o->n, 1, &begin, &end);
    }
    unsigned char *const rows = room->base + first * room->row_bytes;
    o->kind = *kind;
    o->made = rows;
    for (size_t i = begin; i < end; i++)
        make_row(w->kernels, o, i, rows + i * room->row_bytes);
    if (!own)
        worker_sync(w);
    return true;
}
