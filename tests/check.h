/*
 * cmocka with the headers that it wants before it, and what tests of refusals share.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/err.h"

/* The failure must be of that kind and its sentence must hold `part`; a sentence that does not is
 * shown. */
static inline void check_sentence(const struct err *e, enum err_code code, const char *part)
{
    if (e->code != code || !strstr(e->text, part)) {
        print_error("got %d \"%s\", expected %d and in it \"%s\"\n", (int)e->code, e->text,
                    (int)code, part);
        fail();
    }
}

#endif
