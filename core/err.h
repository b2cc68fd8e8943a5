/*
 * One failure: what kind it is (which is also the exit code) and one sentence for the user.
 *
 * A struct err lives on the stack of whoever can report it and is handed down as the last
 * parameter. The place that knows the cause writes the sentence with err_set; a caller that knows
 * the object ("models/x/config.json") puts its name in front once with err_prefix. Only the cli
 * prints.
 */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#include "core/base.h"

enum err_code {
    ERR_NONE = 0,
    ERR_RUNTIME = 1,      /* I/O, memory, a model that computes no numbers */
    ERR_USAGE = 2,        /* the command line */
    ERR_LOAD = 3,         /* a model or tokenizer that cannot be loaded */
    ERR_CONTEXT = 4,      /* the prompt does not fit the context, or the context is full */
    ERR_INTERRUPTED = 130 /* SIGINT */
};

struct err {
    enum err_code code;
    char text[1024]; /* one sentence without a full stop; always terminated */
};

/* Writes the failure into *e and returns false, so that `return err_set(e, ...)` reads well. */
bool err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts "PREFIX: " in front of the sentence that is there. Returns false as well. */
bool err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The sentence for a failed allocation. Returns false. */
bool err_no_memory(struct err *e);

/* ERR_INTERRUPTED without a sentence: whoever pressed Ctrl-C knows. Returns false. */
bool err_interrupted(struct err *e);

#endif
