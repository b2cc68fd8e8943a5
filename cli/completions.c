/*
 * One walk over the options per shell. The texts of the tables hold no quotation marks, brackets or
 * colons where a shell would read them as syntax; the tests have each shell parse the result.
 */
#include "cli/completions.h"

#include <string.h>

#include "cli/command.h"
#include "cli/stream.h"

static bool is_listed(const struct option_spec *spec, unsigned command)
{
    return spec->group != NULL && (spec->commands & command) != 0;
}

/* "auto|f32" -> "auto f32" */
static void add_choices(struct text *t, const char *metavar)
{
    for (const char *c = metavar; *c != '\0'; c++)
        text_add(t, *c == '|' ? " " : c, 1);
}

static void add_command_names(struct text *t)
{
    for (const struct command *c = command_list; c->name != NULL; c++)
        text_addf(t, "%s ", c->name);
    text_add_string(t, "help");
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* The pattern of a case that completes the value of this option. */
static void add_bash_pattern(struct text *t, const struct option_spec *spec)
{
    text_addf(t, "    --%s", spec->name);
    if (spec->letter != 0)
        text_addf(t, " | -%c", spec->letter);
    text_add_string(t, ")\n        ");
}

static void add_bash_values(struct text *t)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_spec *spec = &options_table[i];
        if (spec->group == NULL || spec->kind == OPTION_FLAG)
            continue;
        add_bash_pattern(t, spec);
        if (spec->kind == OPTION_PATH || spec->kind == OPTION_MODEL) {
            text_addf(t, "COMPREPLY=($(compgen -%c -- \"$cur\"))",
                      spec->kind == OPTION_PATH ? 'f' : 'd');
        } else if (spec->kind == OPTION_CHOICE) {
            text_add_string(t, "COMPREPLY=($(compgen -W \"");
            add_choices(t, spec->metavar);
            text_add_string(t, "\" -- \"$cur\"))");
        } else {
            text_add_string(t, "COMPREPLY=()");
        }
        text_add_string(t, "\n        return\n        ;;\n");
    }
}

static void add_bash(struct text *t)
{
    text_add_string(t, "# bash completion for tgen\n"
                       "_tgen() {\n"
                       "    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
                       "    case ${COMP_WORDS[COMP_CWORD - 1]} in\n");
    add_bash_values(t);
    text_add_string(t, "    esac\n    case ${COMP_WORDS[1]} in\n");
    for (const struct command *c = command_list + 1; c->name != NULL; c++) {
        text_addf(t, "    %s) words=\"", c->name);
        for (size_t i = 0; i < OPTION_COUNT; i++) {
            if (is_listed(&options_table[i], c->bit))
                text_addf(t, "--%s ", options_table[i].name);
        }
        text_add_string(t, "\" ;;\n");
    }
    text_add_string(t, "    help) words=\"");
    add_command_names(t);
    text_add_string(t, "\" ;;\n    *) words=\"");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (is_listed(&options_table[i], command_list->bit))
            text_addf(t, "--%s ", options_table[i].name);
    }
    text_add_string(t, "\"\n        ((COMP_CWORD == 1)) && words+=\"");
    add_command_names(t);
    text_add_string(t, "\"\n        ;;\n"
                       "    esac\n"
                       "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                       "}\n"
                       "complete -o default -F _tgen tgen\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* One argument of _arguments: '(-n --max-tokens)'{-n+,--max-tokens=}'[help]:N:' */
static void add_zsh_option(struct text *t, const struct option_spec *spec)
{
    const bool has_value = spec->kind != OPTION_FLAG;
    text_add_string(t, "            ");
    if (spec->kind == OPTION_LIST)
        text_addf(t, "'*--%s='", spec->name);
    else if (spec->letter != 0)
        text_addf(t, "'(-%c --%s)'{-%c%s,--%s%s}", spec->letter, spec->name, spec->letter,
                  has_value ? "+" : "", spec->name, has_value ? "=" : "");
    else
        text_addf(t, "'--%s%s'", spec->name, has_value ? "=" : "");
    text_addf(t, "'[%s]", spec->help);
    if (spec->kind == OPTION_CHOICE) {
        text_add_string(t, ":value:(");
        add_choices(t, spec->metavar);
        text_add_string(t, ")");
    } else if (has_value) {
        text_addf(t, ":value:%s",
                  spec->kind == OPTION_PATH ? "_files"
                                            : (spec->kind == OPTION_MODEL ? "_files -/" : ""));
    }
    text_add_string(t, "'\n");
}

static void add_zsh(struct text *t)
{
    text_add_string(t, "#compdef tgen\n"
                       "_tgen() {\n"
                       "    local -a arguments\n"
                       "    case $words[2] in\n");
    for (const struct command *c = command_list + 1; c->name != NULL; c++) {
        text_addf(t, "    %s)\n        arguments=(\n            '1:command:(%s)'\n", c->name,
                  c->name);
        for (size_t i = 0; i < OPTION_COUNT; i++) {
            if (is_listed(&options_table[i], c->bit))
                add_zsh_option(t, &options_table[i]);
        }
        text_add_string(t, "        ) ;;\n");
    }
    text_add_string(t, "    *)\n        arguments=(\n            '1:command or prompt:(");
    add_command_names(t);
    text_add_string(t, ")'\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (is_listed(&options_table[i], command_list->bit))
            add_zsh_option(t, &options_table[i]);
    }
    text_add_string(t, "        ) ;;\n"
                       "    esac\n"
                       "    _arguments -s -S $arguments '*:text:_files'\n"
                       "}\n"
                       "_tgen \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

/* The commands that take the option, as words; nothing where all do. */
static void add_fish_condition(struct text *t, unsigned commands)
{
    if (commands == FOR_ALL)
        return;
    text_add_string(t, " -n '");
    if (commands & command_list->bit) {
        text_add_string(t, "not __fish_seen_subcommand_from");
        commands = ~commands;
    } else {
        text_add_string(t, "__fish_seen_subcommand_from");
    }
    for (const struct command *c = command_list + 1; c->name != NULL; c++) {
        if (commands & c->bit)
            text_addf(t, " %s", c->name);
    }
    text_add_string(t, "'");
}

static void add_fish(struct text *t)
{
    text_add_string(t, "# fish completion for tgen\n");
    for (const struct command *c = command_list; c->name != NULL; c++)
        text_addf(t, "complete -c tgen -n __fish_is_first_arg -a %s -d '%s'\n", c->name,
                  c->summary);
    text_add_string(t, "complete -c tgen -n __fish_is_first_arg -a help -d 'tells more'\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_spec *spec = &options_table[i];
        if (spec->group == NULL)
            continue;
        text_add_string(t, "complete -c tgen");
        add_fish_condition(t, spec->commands);
        if (spec->letter != 0)
            text_addf(t, " -s %c", spec->letter);
        text_addf(t, " -l %s", spec->name);
        if (spec->kind == OPTION_PATH) {
            text_add_string(t, " -r -F");
        } else if (spec->kind == OPTION_MODEL) {
            text_add_string(t, " -x -a '(__fish_complete_directories)'");
        } else if (spec->kind == OPTION_CHOICE) {
            text_add_string(t, " -x -a '");
            add_choices(t, spec->metavar);
            text_add_string(t, "'");
        } else if (spec->kind != OPTION_FLAG) {
            text_add_string(t, " -x");
        }
        text_addf(t, " -d '%s'\n", spec->help);
    }
}

bool completions_print(enum completions_shell shell, struct err *e)
{
    static void (*const add[])(struct text *) = {
        [COMPLETIONS_BASH] = add_bash, [COMPLETIONS_ZSH] = add_zsh, [COMPLETIONS_FISH] = add_fish};
    struct text t = {0};
    add[shell](&t);
    const bool ok = stream_print(&t, e);
    text_free(&t);
    return ok;
}
