/*
 * One walk over the options per shell. The texts of the tables hold no quotation marks, brackets or
 * colons where a shell would read them as syntax; the tests have each shell parse the result.
 */
#include "cli/completions.h"

#include "cli/command.h"
#include "cli/stream.h"

static bool is_listed(const struct option_spec *spec, unsigned command)
{
    return spec->group && (spec->commands & command) != 0;
}

/* "auto|f32" -> "auto f32" */
static void add_choices(struct buffer *t, const struct option_spec *spec)
{
    for (const char *c = options_words(spec); *c != '\0'; c++)
        buffer_add(t, *c == '|' ? " " : c, 1);
}

static void add_command_names(struct buffer *t)
{
    for (const struct command *c = command_list; c->name; c++)
        buffer_addf(t, "%s ", c->name);
    buffer_add_string(t, "help");
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* The pattern of a case that completes the value of this option. */
static void add_bash_pattern(struct buffer *t, const struct option_spec *spec)
{
    buffer_addf(t, "    --%s", spec->name);
    if (spec->letter != 0)
        buffer_addf(t, " | -%c", spec->letter);
    buffer_add_string(t, ")\n        ");
}

static void add_bash_values(struct buffer *t)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_spec *spec = &options_table[i];
        if (!spec->group || spec->kind == OPTION_FLAG)
            continue;
        add_bash_pattern(t, spec);
        if (spec->kind == OPTION_PATH || spec->kind == OPTION_MODEL) {
            buffer_addf(t,
                        "compopt -o filenames 2>/dev/null\n"
                        "        mapfile -t COMPREPLY < <(compgen -%c -- \"$cur\")",
                        spec->kind == OPTION_PATH ? 'f' : 'd');
        } else if (options_words(spec)) {
            buffer_add_string(t, "COMPREPLY=($(compgen -W \"");
            add_choices(t, spec);
            buffer_add_string(t, "\" -- \"$cur\"))");
        } else {
            buffer_add_string(t, "COMPREPLY=()");
        }
        buffer_add_string(t, "\n        return\n        ;;\n");
    }
}

static void add_bash_case(struct buffer *t, const char *pattern, unsigned command)
{
    buffer_addf(t, "    %s) words=\"", pattern);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (is_listed(&options_table[i], command))
            buffer_addf(t, "--%s ", options_table[i].name);
    buffer_add_string(t, "\" ;;\n");
}

static void add_bash(struct buffer *t)
{
    buffer_add_string(
        t, "# bash completion for tgen\n"
           "_tgen() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local words= commands=\"");
    add_command_names(t);
    buffer_add_string(t, "\"\n" /* --option=value comes as three words */
                         "    [[ $cur == = ]] && cur=\n"
                         "    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}\n"
                         "    case $before in\n");
    add_bash_values(t);
    buffer_add_string(t, "    esac\n"
                         "    case ${COMP_WORDS[1]} in\n"
                         "    help) words=$commands ;;\n");
    for (const struct command *c = command_list + 1; c->name; c++)
        add_bash_case(t, c->name, c->bit);
    add_bash_case(t, "*", command_list->bit);
    buffer_add_string(t, "    esac\n"
                         "    ((COMP_CWORD == 1)) && words+=\" $commands\"\n"
                         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                         "}\n"
                         "complete -o default -F _tgen tgen\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* One argument of _arguments: '(-n --max-tokens)'{-n+,--max-tokens=}'[help]:N:' */
static void add_zsh_option(struct buffer *t, const struct option_spec *spec)
{
    const bool has_value = spec->kind != OPTION_FLAG;
    buffer_add_string(t, "            ");
    if (spec->kind == OPTION_LIST)
        buffer_addf(t, "'*--%s='", spec->name);
    else if (spec->letter != 0)
        buffer_addf(t, "'(-%c --%s)'{-%c%s,--%s%s}", spec->letter, spec->name, spec->letter,
                    has_value ? "+" : "", spec->name, has_value ? "=" : "");
    else
        buffer_addf(t, "'--%s%s'", spec->name, has_value ? "=" : "");
    buffer_addf(t, "'[%s]", spec->help);
    if (options_words(spec)) {
        buffer_add_string(t, ":value:(");
        add_choices(t, spec);
        buffer_add_string(t, ")");
    } else if (has_value) {
        buffer_addf(t, ":value:%s",
                    spec->kind == OPTION_PATH ? "_files"
                                              : (spec->kind == OPTION_MODEL ? "_files -/" : ""));
    }
    buffer_add_string(t, "'\n");
}

static void add_zsh_case(struct buffer *t, const char *pattern, unsigned command)
{
    buffer_addf(t, "    %s)\n        arguments=(\n", pattern);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (is_listed(&options_table[i], command))
            add_zsh_option(t, &options_table[i]);
    buffer_add_string(t, "        ) ;;\n");
}

static void add_zsh(struct buffer *t)
{
    buffer_add_string(t, "#compdef tgen\n"
                         "_tgen() {\n"
                         "    local -a arguments\n"
                         "    case $words[2] in\n");
    for (const struct command *c = command_list + 1; c->name; c++)
        add_zsh_case(t, c->name, c->bit);
    add_zsh_case(t, "*", command_list->bit);
    buffer_add_string(t, "    esac\n    _arguments -s -S $arguments '1:command or prompt:(");
    add_command_names(t);
    buffer_add_string(t, ")' '*:text:_files'\n}\n_tgen \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

/* The commands that take the option, as words; nothing where all do. */
static void add_fish_condition(struct buffer *t, unsigned commands)
{
    if (commands == FOR_ALL)
        return;
    buffer_add_string(t, " -n '");
    if (commands & command_list->bit) {
        buffer_add_string(t, "not __fish_seen_subcommand_from");
        commands = ~commands;
    } else {
        buffer_add_string(t, "__fish_seen_subcommand_from");
    }
    for (const struct command *c = command_list + 1; c->name; c++)
        if (commands & c->bit)
            buffer_addf(t, " %s", c->name);
    buffer_add_string(t, "'");
}

static void add_fish(struct buffer *t)
{
    buffer_add_string(t, "# fish completion for tgen\n");
    for (const struct command *c = command_list; c->name; c++)
        buffer_addf(t, "complete -c tgen -n __fish_is_first_arg -a %s -d '%s'\n", c->name,
                    c->summary);
    buffer_add_string(t, "complete -c tgen -n __fish_is_first_arg -a help -d 'tells more'\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_spec *spec = &options_table[i];
        if (!spec->group)
            continue;
        buffer_add_string(t, "complete -c tgen");
        add_fish_condition(t, spec->commands);
        if (spec->letter != 0)
            buffer_addf(t, " -s %c", spec->letter);
        buffer_addf(t, " -l %s", spec->name);
        if (spec->kind == OPTION_PATH) {
            buffer_add_string(t, " -r -F");
        } else if (spec->kind == OPTION_MODEL) {
            buffer_add_string(t, " -x -a '(__fish_complete_directories)'");
        } else if (options_words(spec)) {
            buffer_add_string(t, " -x -a '");
            add_choices(t, spec);
            buffer_add_string(t, "'");
        } else if (spec->kind != OPTION_FLAG) {
            buffer_add_string(t, " -x");
        }
        buffer_addf(t, " -d '%s'\n", spec->help);
    }
}

bool completions_print(enum completions_shell shell, struct err *e)
{
    static void (*const add[])(struct buffer *) = {
        [COMPLETIONS_BASH] = add_bash, [COMPLETIONS_ZSH] = add_zsh, [COMPLETIONS_FISH] = add_fish};
    struct buffer t = {0};
    add[shell](&t);
    const bool ok = stream_print(&t, e);
    buffer_free(&t);
    return ok;
}
