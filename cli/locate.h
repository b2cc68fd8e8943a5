/*
 * A model's name -> its directory. Looks in the file system only and never at a network.
 *
 *   -m DIR            that directory
 *   -m org/name       the snapshot that refs/main names in the local Hugging Face cache
 *   (no -m)           $TGEN_MODEL, in the same two ways; else the bundled model: models/tales
 *                     beside the binary, else ../share/tgen/models/tales (`make install`)
 */
#ifndef CLI_LOCATE_H
#define CLI_LOCATE_H

#include "core/err.h"

/* The directory in malloc'ed memory, which the caller frees. `name` is what -m says, or NULL. NULL
 * and ERR_LOAD, with what to do about it in the sentence. */
char *locate_model(const char *name, struct err *e);

#endif
