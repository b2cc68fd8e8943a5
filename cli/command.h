/*
 * What tgen can do: a line each, and a file each that does it.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/options.h"
#include "core/err.h"

struct command {
    const char *name;
    unsigned bit;        /* FOR_... */
    const char *words;   /* what may follow the options, as --help shows it */
    const char *summary; /* a line of --help */
    /* Does it, printing the answer on stdout. False and *e where it failed; e->code is the exit
     * code of the program then, and an empty sentence means that the user knows. */
    bool (*run)(const struct options *o, struct err *e);
};

/* The first is the default; the last has no name. */
extern const struct command command_list[];

/* The command of that name, or NULL. */
const struct command *command_find(const char *name);

bool command_generate(const struct options *o, struct err *e);
bool command_batch(const struct options *o, struct err *e);
bool command_score(const struct options *o, struct err *e);
bool command_choose(const struct options *o, struct err *e);
bool command_tokenize(const struct options *o, struct err *e);
bool command_detokenize(const struct options *o, struct err *e);
bool command_quantize(const struct options *o, struct err *e);
bool command_inspect(const struct options *o, struct err *e);
bool command_bench(const struct options *o, struct err *e);

#endif
