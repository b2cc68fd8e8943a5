/* Completions for the shells, made from the tables of commands and options. */
#ifndef CLI_COMPLETIONS_H
#define CLI_COMPLETIONS_H

#include "core/err.h"

/* In the order of the words that --completions takes. */
enum completions_shell { COMPLETIONS_BASH, COMPLETIONS_ZSH, COMPLETIONS_FISH };

/* A script on stdout, for that shell's usual place. */
bool completions_print(enum completions_shell shell, struct err *e);

#endif
