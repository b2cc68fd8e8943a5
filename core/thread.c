/*
 * Sets the stack size of every thread. Products keep blocks of weights and sums on the stack, as
 * large as a cache; that memory costs nothing until it is touched. The Makefile warns of frames
 * that are larger than the size below allows. The first thread's stack ends where the limit of the
 * process says: where that is too small, a thread of the right size takes its place. Owns nothing.
 */
#include "core/thread.h"

#include "core/base.h"

#include <signal.h>
#include <sys/resource.h>

/* The deepest stack holds a block of columns (quant_columns.c) and the sums of an AMX kernel, 1.2
 * MB together. */
enum { STACK = 2 << 20 };

static void block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL}; /* of what the thread does itself */
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

int thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    pthread_attr_t attributes;
    sigset_t before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = pthread_attr_setstacksize(&attributes, STACK);
    block_signals(&before);
    if (!error)
        error = pthread_create(thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Arguments and environment lie on the first stack as well, and may take a quarter of it. */
static bool first_stack_suffices(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 2 * STACK;
}

struct replacement {
    void *(*run)(void *context);
    void *context;
    sigset_t signals; /* as the replaced thread had them */
};

static void *replace(void *context)
{
    const struct replacement *r = context;
    pthread_sigmask(SIG_SETMASK, &r->signals, NULL);
    return r->run(r->context);
}

int thread_run_first(void *(*run)(void *context), void *context)
{
    if (first_stack_suffices()) {
        run(context);
        return 0;
    }
    pthread_t thread;
    struct replacement r = {.run = run, .context = context};
    block_signals(&r.signals);
    int error = thread_start(&thread, replace, &r);
    if (!error)
        error = pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &r.signals, NULL);
    return error;
}
