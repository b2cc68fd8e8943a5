/*
 * 80 columns: the option on the left, what it does on the right, its default behind that or, where
 * it does not fit, below.
 */
#include "cli/help.h"

#include "cli/stream.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 28, WIDTH = 80 };

static void add_option(struct buffer *t, const struct option_spec *spec,
                       const struct options *defaults)
{
    char left[64], fallback[64];
    const bool has_value = spec->metavar != NULL;
    const int n = snprintf(left, sizeof left, "  %c%c%c --%s%s%s", spec->letter ? '-' : ' ',
                           spec->letter ? spec->letter : ' ', spec->letter ? ',' : ' ', spec->name,
                           has_value ? " " : "", has_value ? spec->metavar : "");
    buffer_add_string(t, left);
    if (n >= COLUMN)
        buffer_addf(t, "\n%*s%s", COLUMN, "", spec->help);
    else
        buffer_addf(t, "%*s%s", COLUMN - n, "", spec->help);
    options_default(spec, defaults, fallback, sizeof fallback);
    if (fallback[0] != '\0') {
        const size_t needed =
            COLUMN + strlen(spec->help) + strlen(fallback) + strlen(" (default )");
        if (needed > WIDTH)
            buffer_addf(t, "\n%*s(default %s)", COLUMN, "", fallback);
        else
            buffer_addf(t, " (default %s)", fallback);
    }
    buffer_add_string(t, "\n");
}

static void add_options(struct buffer *t, unsigned command, const struct options *defaults)
{
    const char *group = "";
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_spec *spec = &options_table[i];
        if (!(spec->commands & command) || !spec->group)
            continue;
        if (strcmp(spec->group, group) != 0)
            buffer_addf(t, "\n%s:\n", spec->group);
        group = spec->group;
        add_option(t, spec, defaults);
    }
}

static void add_commands(struct buffer *t)
{
    buffer_add_string(t, "\nCommands (tgen help COMMAND tells more):\n");
    for (const struct command *c = command_list; c->name; c++)
        buffer_addf(t, "  tgen %-*s%s\n", COLUMN - 7, c->name, c->summary);
    buffer_add_string(
        t, "\nThe prompt comes from FILE, from standard input and from the words of the\n"
           "command line, in this order. One that is the name of a command goes behind\n"
           "-p or --.\n");
}

bool help_print(const struct command *c, struct err *e)
{
    struct options defaults;
    if (!options_init(&defaults, 0, e))
        return false;
    struct buffer t = {0};
    const bool whole = c == command_list;
    buffer_addf(&t, "usage: tgen %s%s[options]%s%s\n", whole ? "" : c->name, whole ? "" : " ",
                c->words[0] != '\0' ? " " : "", c->words);
    if (whole)
        buffer_add_string(&t, "Text from a language model.\n");
    else
        buffer_addf(&t, "%s: %s.\n", c->name, c->summary);
    if (whole)
        add_commands(&t);
    add_options(&t, c->bit, &defaults);
    const bool ok = stream_print(&t, e);
    buffer_free(&t);
    options_free(&defaults);
    return ok;
}

bool help_print_version(struct err *e)
{
    static const char version[] = "tgen " TGEN_VERSION "\n";
    return stream_write(STREAM_STDOUT, "standard output", version, sizeof version - 1, e);
}

bool help_no_prompt(const char *command, struct err *e)
{
    char tgen[32];
    const bool is_default = strcmp(command, command_list->name) == 0;
    snprintf(tgen, sizeof tgen, "tgen%s%s", is_default ? "" : " ", is_default ? "" : command);
    fprintf(stderr,
            "%s needs a text:\n"
            "  %s \"Once upon a time\"\n"
            "  %s -f FILE\n"
            "  echo \"Once upon a time\" | %s\n"
            "tgen help %s lists the options.\n",
            tgen, tgen, tgen, tgen, command);
    *e = (struct err){.code = ERR_USAGE};
    return false;
}
