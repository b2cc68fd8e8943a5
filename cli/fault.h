/*
 * Says which file is to blame where a mapped one cannot be read any more: somebody has cut it
 * short, or its disk fails. The system's answer would be SIGBUS, without a word.
 */
#ifndef CLI_FAULT_H
#define CLI_FAULT_H

#include "core/checkpoint.h"

/* From here on a read of c's files that fails ends the process with one sentence and ERR_RUNTIME;
 * every other SIGBUS acts as before. NULL: no file is watched any more, as must be the case when c
 * closes. */
void fault_watch(const struct checkpoint *c);

#endif
