/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and joining threads. */
#ifndef OS_THREADS_H
#define OS_THREADS_H

#include <pthread.h>

struct os_thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
    char name[16]; /* as /proc and gdb show it; longer ones are cut */
};

/*
 * Runs |run(arg)|. The thread takes no signals but those of its own faults. |t| must stay where it
 * is until os_thread_join. IO_OK or an io_error.
 */
int os_thread_start(struct os_thread *t, const char *name, void (*run)(void *arg), void *arg);

void os_thread_join(struct os_thread *t);

/*
 * Keeps the calling thread on the |index|-th of the CPUs it may run on (modulo their number).
 * IO_OK or an io_error: then it runs where the kernel likes, as before.
 */
int os_thread_pin(unsigned index);

/* The calling thread gives way to others, as far as the kernel lets it. */
void os_thread_give_way(void);

#endif
