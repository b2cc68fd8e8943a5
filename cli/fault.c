/*
 * A handler of SIGBUS. No read of weights could be checked beforehand, and none can go on, so the
 * process ends here, by calls that a handler may make; what has been written stays as it is, as
 * after any other signal. The thread whose read failed runs the handler, on its own stack.
 */
#include "cli/fault.h"

#include "cli/terminal.h"
#include "core/utf8.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const struct checkpoint *_Atomic watched;
static const char *label;
static bool on_terminal;

/* Puts text, or as much as there is room for, behind what `sentence` holds. */
static void append(char *sentence, size_t capacity, const char *text)
{
    const size_t used = strlen(sentence), n = min_size(strlen(text), capacity - 1 - used);
    memcpy(sentence + used, text, n);
    sentence[used + n] = '\0';
}

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void blame(const char *dir, const char *file)
{
    char sentence[sizeof((struct err *)0)->text] = "";
    append(sentence, sizeof sentence, dir);
    append(sentence, sizeof sentence, ": ");
    append(sentence, sizeof sentence, file);
    append(sentence, sizeof sentence, ": was cut short while in use, or its disk fails");
    utf8_clean(sentence, sizeof sentence);
    if (on_terminal)
        say("\n"); /* there may be a part of a line: of the answer, or of progress */
    say(label);
    say(sentence);
    say("\n");
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const struct checkpoint *const c = watched;
    const bool by_read = info->si_code > 0; /* not sent by a process */
    const char *const file = c && by_read ? checkpoint_file_at(c, info->si_addr) : NULL;
    (void)context;
    if (!file) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    while (atomic_flag_test_and_set(&said))
        pause(); /* another thread's read has failed as well, and ends the process */
    blame(checkpoint_dir(c), file);
    _exit(ERR_RUNTIME);
}

void fault_watch(const struct checkpoint *c)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    watched = c;
    label = terminal_error_label();
    on_terminal = isatty(STDERR_FILENO) != 0;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
