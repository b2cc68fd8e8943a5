/*
 * How many guessed ids a pass should carry along: as many as make the most tokens a second. Rows
 * that go through a model together cost less than one by one, how much less depends on the model,
 * the kernels and the machine; and a guess pays only if it is right. Both are learnt from what is
 * seen: the seconds of passes by their number of rows, and how often guesses were right by the
 * length of the match that they came from. Owns no clock: whoever runs the passes tells what they
 * took.
 */
#ifndef CORE_PACE_H
#define CORE_PACE_H

#include <stdbool.h>

enum {
    PACE_MOST_ROWS = 17,    /* of a pass: one token that is sure, and guesses */
    PACE_LONGEST_MATCH = 16 /* longer ones count as this */
};

struct pace {
    struct pace_time {
        double seconds; /* of a pass with that many rows */
        int n_seen;     /* such passes, counted up to 2 */
    } time[PACE_MOST_ROWS + 1];
    struct pace_chance {
        double right;  /* how likely a guess from a match of that length is right */
        double weight; /* of all that has told so, in guesses */
    } chance[PACE_LONGEST_MATCH + 1];
    double spare; /* seconds that trials may cost at present */
};

void pace_init(struct pace *p);

/* A pass with n_rows rows (1 .. PACE_MOST_ROWS) has taken that long. */
void pace_saw_pass(struct pace *p, int n_rows, double seconds);

/* The id guessed from a match of that length (1 or more) was right, or wrong. */
void pace_saw_guess(struct pace *p, int match, bool right);

/* How many ids, 0 .. most, the next pass should carry of a guess from a match of that length. */
int pace_guesses(struct pace *p, int match, int most);

#endif
