/*
 * The name of a command -> its function -> the exit code. What is wrong is said here, in a
 * sentence that comes from where it was found.
 */
#include "cli/command.h"
#include "cli/completions.h"
#include "cli/help.h"
#include "cli/terminal.h"
#include "core/thread.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A descriptor 0, 1 or 2 that came closed would otherwise be the next file that is opened, and the
 * answer would go there. It is opened the wrong way round, so that its use still fails. */
static void open_missing_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* "tgen help" and "tgen help COMMAND". */
static bool run_help(int argc, char **argv, struct err *e)
{
    const char *const name = argc > 2 ? argv[2] : "help";
    if (argc > 3)
        return err_set(e, ERR_USAGE, "one command at a time, not \"%s\" as well", argv[3]);
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help_print(command_list, e);
    const struct command *command = command_find(name);
    if (!command)
        return err_set(e, ERR_USAGE, "there is no command \"%s\"; see tgen help", name);
    return help_print(command, e);
}

/* A mistyped command would be a prompt, and a script would take the story for what it asked for. */
static void tell_near_command(const struct options *o)
{
    const char *const word = o->n_plain_words > 0 ? o->words[0] : "";
    for (const struct command *c = command_list + 1; c->name; c++)
        if (options_distance(word, strlen(word), c->name) <= strlen(c->name) / 4)
            terminal_note(o->quiet,
                          "\"%s\" is taken as the beginning of the prompt; the command is %s", word,
                          c->name);
}

static bool run(const struct command *command, const struct options *o, bool named, struct err *e)
{
    if (o->help)
        return help_print(command, e);
    if (o->version)
        return help_print_version(e);
    if (o->given[OPT_COMPLETIONS])
        return completions_print((enum completions_shell)o->completions, e);
    if (!named && o->n_plain_words > 0 && command_find(o->words[0]))
        return err_set(e, ERR_USAGE,
                       "the command goes first: tgen %s ...; as a prompt it goes behind -p or --",
                       o->words[0]);
    if (!named)
        tell_near_command(o);
    return command->run(o, e);
}

static bool run_words(int argc, char **argv, struct err *e)
{
    if (argc > 1 && strcmp(argv[1], "help") == 0)
        return run_help(argc, argv, e);
    struct options o = {.n_words = 0};
    const struct command *named = argc > 1 ? command_find(argv[1]) : NULL;
    const struct command *command = named ? named : command_list;
    const bool ok = options_init(&o, argc, e) &&
                    options_parse(&o, argc, argv, named ? 2 : 1, command->bit, command->name, e) &&
                    run(command, &o, named, e);
    options_free(&o);
    return ok;
}

struct invocation {
    int argc;
    char **argv;
    bool ok;
    struct err e;
};

static void *run_invocation(void *context)
{
    struct invocation *const i = context;
    i->ok = run_words(i->argc, i->argv, &i->e);
    return NULL;
}

int main(int argc, char **argv)
{
    open_missing_descriptors();
    signal(SIGXFSZ, SIG_IGN); /* a file at its largest size is then an error like a full disk */
    struct invocation i = {.argc = argc, .argv = argv};
    const int error = thread_run_first(run_invocation, &i);
    if (error)
        err_set(&i.e, ERR_RUNTIME, "no thread can be started: %s", strerror(error));
    if (i.ok)
        return 0;
    terminal_error(&i.e);
    return (int)i.e.code;
}
