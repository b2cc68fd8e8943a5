/* The words of --help, made from the tables of commands and options. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/command.h"

/* All about a command, on stdout; for the first one about tgen as a whole too. */
bool help_print(const struct command *c, struct err *e);

/* "tgen 0.1.0" on stdout. */
bool help_print_version(struct err *e);

/* A few lines on stderr for a user who typed a command and no prompt. Returns false with ERR_USAGE
 * and no sentence. */
bool help_no_prompt(const char *command, struct err *e);

#endif
