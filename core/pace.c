/*
 * With chances h(1), h(2), ... that the first, second, ... guessed id is right, a pass that carries
 * k of them gives 1 + h(1) + h(1) h(2) + ... + h(1)..h(k) tokens: a guess counts only where all
 * before it were right, and the match is an id longer for each. Divided by the seconds of k + 1
 * rows, that is what is maximised (Leviathan et al. 2023, "Fast inference from transformers via
 * speculative decoding", section 3.3, with measured costs).
 *
 * Seconds are disturbed upwards only: by other programs, by memory that is touched for the first
 * time. So a time falls at once to what was seen and rises slowly; and what has seemed too slow is
 * tried again now and then, for no more than a small part of the time.
 */
#include "core/pace.h"

#include "core/base.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const double FIRST_ROW_COST = 0.35; /* of another row, in one-row passes, until known */
static const double CHEAP_ROW = 0.1;       /* the least that another row may cost, likewise */
static const double TRIALS = 0.003;   /* of the time goes into trying what did not seem to pay */
static const double MOST_SPARE = 1;   /* passes of one row that trials may cost at once */
static const double LEAST_LOSS = 0.1; /* that a trial is charged with */
static const double RISE = 0.05;      /* how far a time follows a slower one, ... */
static const double MOST_RISE = 1.02; /* ... and no further than that */
static const double WORTH = 1.03;     /* the factor by which guesses must be faster */
static const double FIRST_WEIGHT = 2; /* of a chance before anything is seen, in guesses */
static const double MOST_WEIGHT = 16; /* guesses that a chance remembers */

void pace_init(struct pace *p)
{
    *p = (struct pace){.time = {{.seconds = 0}}};
    /* Until this text has told: long matches are quotations, short ones mostly chance. */
    for (int i = 0; i <= PACE_LONGEST_MATCH; i++)
        p->chance[i] = (struct pace_chance){fmin(0.1 * i, 0.8), FIRST_WEIGHT};
}

/* Known: seen in more than one pass. The first may have been slow for reasons that do not come
 * back. */
static bool is_known(const struct pace *p, int n_rows)
{
    return p->time[n_rows].n_seen > 1;
}

void pace_saw_pass(struct pace *p, int n_rows, double seconds)
{
    assert(n_rows >= 1 && n_rows <= PACE_MOST_ROWS);
    struct pace_time *const t = &p->time[n_rows];
    if (t->n_seen == 0 || seconds < t->seconds)
        t->seconds = seconds;
    else
        t->seconds = fmin(t->seconds + RISE * (seconds - t->seconds), t->seconds * MOST_RISE);
    t->n_seen += t->n_seen < 2;
}

static int class_of(int match)
{
    return min_int(match, PACE_LONGEST_MATCH);
}

/* Counts for matches of other lengths too, the less the more they differ. */
void pace_saw_guess(struct pace *p, int match, bool right)
{
    for (int i = 1; i <= PACE_LONGEST_MATCH; i++) {
        struct pace_chance *const c = &p->chance[i];
        const double weight = ldexp(1, -abs(i - class_of(match)));
        c->weight = fmin(c->weight + weight, MOST_WEIGHT);
        c->right += weight / c->weight * ((right ? 1 : 0) - c->right);
    }
}

/* What a pass with that many rows is likely to take: seen, or on a line through its neighbours; no
 * more than its rows would take one by one. */
static double expect_seconds(const struct pace *p, int n_rows)
{
    int below = n_rows, above = n_rows;
    while (!is_known(p, below))
        below--;
    while (above <= PACE_MOST_ROWS && !is_known(p, above))
        above++;
    const double from = p->time[below].seconds;
    double row = FIRST_ROW_COST * from;
    if (above > below && above <= PACE_MOST_ROWS)
        row = (p->time[above].seconds - from) / (above - below);
    else if (below > 1)
        row = (from - p->time[1].seconds) / (below - 1);
    return fmin(from + (n_rows - below) * fmax(row, 0), n_rows * p->time[1].seconds);
}

/* What it would take if rows were cheap, and all that was seen an accident. */
static double hope_seconds(const struct pace *p, int n_rows)
{
    const double cheap = p->time[1].seconds * (1 + (n_rows - 1) * CHEAP_ROW);
    return fmin(cheap, expect_seconds(p, n_rows));
}

/* Unknown numbers of rows are tried in small steps: a bad surprise costs little then. */
static int most_rows(const struct pace *p)
{
    int most = 2;
    for (int r = 2; r <= PACE_MOST_ROWS; r++)
        if (is_known(p, r))
            most = 2 * r;
    return min_int(most, PACE_MOST_ROWS);
}

/* How many guesses, up to `most`, give the most tokens a second by this estimate of seconds. A pass
 * without any is the rate to beat, by the factor WORTH: too small a gain is noise. */
static int best_number(const struct pace *p, const double *tokens, int most,
                       double (*seconds)(const struct pace *p, int n_rows))
{
    double best = WORTH / p->time[1].seconds;
    int n = 0;
    for (int k = 1; k <= most; k++) {
        const double rate = tokens[k] / seconds(p, k + 1);
        if (rate > best) {
            best = rate;
            n = k;
        }
    }
    return n;
}

int pace_guesses(struct pace *p, int match, int most)
{
    double tokens[PACE_MOST_ROWS] = {1}, chance = 1;
    if (!is_known(p, 1))
        return 0;
    most = min_int(most, most_rows(p) - 1);
    for (int k = 1; k <= most; k++) {
        chance *= p->chance[class_of(match + k - 1)].right;
        tokens[k] = tokens[k - 1] + chance;
    }
    const int n = best_number(p, tokens, most, expect_seconds);
    const int trial = best_number(p, tokens, most, hope_seconds);
    const double one = p->time[1].seconds;
    const double loss =
        expect_seconds(p, trial + 1) - tokens[trial] / tokens[n] * expect_seconds(p, n + 1);
    const double charge = fmax(loss, LEAST_LOSS * one);
    p->spare = fmin(p->spare + TRIALS * one, MOST_SPARE * one);
    if (trial == n || charge > p->spare)
        return n;
    p->spare -= charge;
    return trial;
}
