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

#endif
