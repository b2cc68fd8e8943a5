/*
 * What this machine could do at best: how fast its threads together read from memory, and how fast
 * they multiply and add on registers alone with the instructions of a level. Measured, not looked
 * up, since a virtual machine's share of both changes by the second: only speeds of the same
 * seconds compare.
 */
#ifndef CORE_MACHINE_H
#define CORE_MACHINE_H

#include "core/compute.h"

struct machine;

/* All threads of a compute together. An operation is a multiplication or an addition; 0 where the
 * level has no such dots. */
struct machine_limits {
    double read_bytes_per_s;
    double f32_per_s, bf16_per_s, int8_per_s;
};

/* Takes the memory that is read from: some times what a processor caches, but no more than a
 * quarter of what the process may use. ERR_RUNTIME. */
struct machine *machine_new(struct err *e);
void machine_free(struct machine *m);

/* What the machine gives at this moment, for about a tenth of a second. What a cache held before is
 * gone afterwards. */
void machine_measure(struct machine *m, struct compute *c, struct machine_limits *limits);

/* Each member of *best becomes the larger one. */
void machine_raise(struct machine_limits *best, const struct machine_limits *limits);

/* The processor's name as the system tells it into out[0..size). */
void machine_cpu(char *out, size_t size);

/* The name of the compute's level, "avx2". */
const char *machine_level(const struct compute *c);

#endif
