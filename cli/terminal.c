/*
 * stderr only, through stdio, which does not buffer it. What is printed may quote names out of
 * files that strangers made: it is cleaned here, or was by err_set.
 */
#include "cli/terminal.h"

#include "core/clock.h"
#include "core/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double PROGRESS_DELAY = 0.25; /* seconds; sooner would only flicker */

bool terminal_has_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return (!no_color || no_color[0] == '\0') && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

const char *terminal_error_label(void)
{
    return terminal_has_colour(STDERR_FILENO) ? "\033[1;31mtgen:\033[0m " : "tgen: ";
}

void terminal_error(const struct err *e)
{
    if (e->text[0] != '\0')
        fprintf(stderr, "%s%s\n", terminal_error_label(), e->text);
}

void terminal_note(bool quiet, const char *fmt, ...)
{
    if (quiet)
        return;
    char sentence[sizeof((struct err *)0)->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    utf8_clean(sentence, sizeof sentence);
    fprintf(stderr, "%s note: %s\n",
            terminal_has_colour(STDERR_FILENO) ? "\033[1mtgen:\033[0m" : "tgen:", sentence);
}

void terminal_stat(const char *label, const char *fmt, ...)
{
    char text[sizeof((struct err *)0)->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    utf8_clean(text, sizeof text);
    fprintf(stderr, "%-8s%s\n", label, text);
}

struct terminal_progress terminal_progress_begin(bool quiet, bool slow, const char *what)
{
    /* The same condition as for colour: the line needs escape sequences too. */
    return (struct terminal_progress){.what = what,
                                      .enabled = !quiet && terminal_has_colour(STDERR_FILENO),
                                      .from = clock_seconds() + (slow ? 0 : PROGRESS_DELAY)};
}

void terminal_progress(struct terminal_progress *p, size_t done, size_t total)
{
    if (!p->enabled || clock_seconds() < p->from)
        return;
    p->visible = true;
    fprintf(stderr, "\r\033[2m%s %zu/%zu\033[0m\033[K", p->what, done, total);
}

void terminal_progress_end(struct terminal_progress *p)
{
    if (p->visible)
        fputs("\r\033[K", stderr);
    p->visible = false;
}

char *terminal_bytes(size_t n, char *out, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (n < 1024) {
        snprintf(out, size, "%zu bytes", n);
        return out;
    }
    double amount = (double)n / 1024;
    size_t unit = 0;
    for (; amount >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
        amount /= 1024;
    snprintf(out, size, "%.1f %s", amount, units[unit]);
    return out;
}
