/*
 * Writes to stderr only, at most a few times a second. The time that is left is guessed from the
 * lines that this process has answered, since those of an earlier run took none of its time. Counts
 * nothing itself: the caller passes all numbers.
 */
#include "cli/batch_progress.h"

#include "cli/terminal.h"
#include "core/clock.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static const double ON_TERMINAL = 0.25, ELSEWHERE = 60; /* seconds between two lines */

void batch_progress_begin(struct batch_progress *p, bool quiet)
{
    const double now = clock_seconds();
    /* The same condition as for colour: the line needs escape sequences too. */
    *p = (struct batch_progress){
        .quiet = quiet, .on_terminal = terminal_has_colour(STDERR_FILENO), .began = now};
    p->next = now + (p->on_terminal ? ON_TERMINAL : ELSEWHERE);
}

/* "2:05:09" or "5:09" into out[0..size). */
static const char *write_time(double seconds, char *out, size_t size)
{
    const unsigned long s = (unsigned long)fmin(seconds + 0.5, 3.6e8);
    if (s >= 3600)
        snprintf(out, size, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, size, "%lu:%02lu", s / 60, s % 60);
    return out;
}

void batch_progress_tell(struct batch_progress *p, size_t n_before, size_t n_done, size_t n_total,
                         size_t n_tokens)
{
    char left[32], rest[64] = "", total[32] = "";
    const double now = clock_seconds();
    if (p->quiet || now < p->next)
        return;
    p->next = now + (p->on_terminal ? ON_TERMINAL : ELSEWHERE);
    const double seconds = now - p->began;
    const size_t n_answered = n_before + n_done;
    if (n_total > 0)
        snprintf(total, sizeof total, "/%zu", n_total);
    if (n_done > 0 && n_total > n_answered)
        snprintf(rest, sizeof rest, ", %s left",
                 write_time(seconds / (double)n_done * (double)(n_total - n_answered), left,
                            sizeof left));
    fprintf(stderr, "%s%zu%s lines, %.1f tokens/s%s%s",
            p->on_terminal ? "\r\033[2m" : "tgen: ", n_answered, total, (double)n_tokens / seconds,
            rest, p->on_terminal ? "\033[0m\033[K" : "\n");
    p->visible = p->on_terminal;
}

void batch_progress_end(struct batch_progress *p)
{
    if (p->visible)
        fputs("\r\033[K", stderr);
    p->visible = false;
}
