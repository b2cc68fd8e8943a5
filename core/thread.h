/*
 * Starts threads whose stack is large enough for every product, whatever the system's default is.
 * They block all signals that come from outside: a signal must interrupt the thread that waits for
 * input.
 */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

#include <pthread.h>

/* Returns 0 or an error number, as pthread_create does. */
int thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* Calls run(context) for a process's first thread, whose stack has the size that the user allows:
 * on that thread, or, where it is too small, on another that also takes its signals. Returns when
 * run has, 0 or an error number as above. What run returns is dropped. */
int thread_run_first(void *(*run)(void *context), void *context);

#endif
