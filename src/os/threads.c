/* SPDX-License-Identifier: Apache-2.0 */
#include "os/threads.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/error.h"
#include "os/error.h"

static void *enter(void *arg)
{
    struct os_thread *t = arg;

    (void)pthread_setname_np(pthread_self(), t->name);
    t->run(t->arg);
    return NULL;
}

/* All but what a fault of the thread itself raises. */
static void maskable(sigset_t *set)
{
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

    sigfillset(set);
    for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(set, faults[i]);
}

int os_thread_start(struct os_thread *t, const char *name, void (*run)(void *arg), void *arg)
{
    sigset_t blocked, before;
    int number;

    *t = (struct os_thread){.run = run, .arg = arg};
    strncpy(t->name, name, sizeof(t->name) - 1);
    maskable(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before); /* inherited: no gap in the new thread */
    number = pthread_create(&t->id, NULL, enter, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (number == EAGAIN)
        return IO_NO_MEMORY; /* or a limit on threads: the like of it */
    return os_error(number);
}

void os_thread_join(struct os_thread *t)
{
    (void)pthread_join(t->id, NULL);
}

int os_thread_pin(unsigned index)
{
    cpu_set_t allowed, one;
    unsigned at;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return os_error(errno);
    at = index % (unsigned)CPU_COUNT(&allowed);
    CPU_ZERO(&one);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && at-- == 0) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    if (sched_setaffinity(0, sizeof(one), &one) != 0)
        return os_error(errno);
    return IO_OK;
}

#define NICE_BEHIND_OTHERS 10

/* Linux keeps the value by thread, whatever POSIX says. */
void os_thread_give_way(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE_BEHIND_OTHERS);
}
