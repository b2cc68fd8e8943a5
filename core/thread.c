/*
 * Sets the stack size of every thread. Products keep blocks of weights and sums on the stack, as
 * large as a cache; that memory costs nothing until it is touched. The Makefile warns of frames
 * that are larger than the size below allows. Owns nothing.
 */
#include "core/thread.h"

#include "core/base.h"

#include <signal.h>

/* The deepest stack holds a block of columns (quant_columns.c) and the sums of an AMX kernel, 1.2
 * MB together. */
enum { STACK = 2 << 20 };

int thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL}; /* of what the thread does itself */
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (!error)
        error = pthread_create(thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}
