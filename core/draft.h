/*
 * Guesses how a text goes on from how it went on before: where its last ids have stood already,
 * what followed them then is a good guess for what follows now. Prompt lookup decoding (Saxena
 * 2023), inference with reference (Yang et al. 2023). Knows ids only; whether a guess is right is
 * for the model to say.
 */
#ifndef CORE_DRAFT_H
#define CORE_DRAFT_H

#include "core/base.h"
#include "core/err.h"

enum {
    DRAFT_SHORTEST = 2, /* a match has at least so many ids */
    DRAFT_LONGEST = 32, /* and no more of them are compared */
    DRAFT_PLACES = 16   /* so many earlier places are looked at, the nearest first */
};

struct draft; /* the ids of a text, and an index of the pairs in them */

/* The bytes that draft_new takes for a text of up to max_ids ids. */
size_t draft_bytes(int max_ids);

struct draft *draft_new(int max_ids, struct err *e);
void draft_free(struct draft *d);

/* The text grows by an id. What comes behind max_ids ids is not learnt, and ends the guessing. */
void draft_push(struct draft *d, int32_t id);

/* out[0..n) = the ids that may come next, as they came behind the longest match of the text's end
 * with an earlier part of it (the last of the longest). Where that part reaches up to the end, the
 * guess goes round in it. Returns the length of the match, at most DRAFT_LONGEST; 0: nothing
 * matches, out is unchanged. */
int draft_guess(struct draft *d, int32_t *out, int n);

#endif
