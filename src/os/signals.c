/* SPDX-License-Identifier: Apache-2.0 */
#include "os/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/signalfd.h>

#include "io/error.h"
#include "os/error.h"
#include "os/watch.h"

struct os_signals {
    int fd;
    struct os_watch *watch;
    void (*told)(void *owner, enum os_signal signal);
    void *owner;
};

static const struct {
    int number;
    enum os_signal signal;
} ours[] = {
    {SIGTERM, OS_SIGNAL_TERM},
    {SIGINT, OS_SIGNAL_INT},
    {SIGHUP, OS_SIGNAL_HUP},
    {SIGUSR1, OS_SIGNAL_USR1},
};

#define OURS (sizeof(ours) / sizeof(ours[0]))

static void our_set(sigset_t *set)
{
    sigemptyset(set);
    for (unsigned i = 0; i < OURS; i++)
        sigaddset(set, ours[i].number);
}

void os_signals_block(void)
{
    sigset_t set;

    our_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void os_signals_unblock(void)
{
    sigset_t set;

    our_set(&set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
}

static void tell(struct os_signals *s, uint32_t number)
{
    for (unsigned i = 0; i < OURS; i++) {
        if (ours[i].number == (int)number)
            s->told(s->owner, ours[i].signal);
    }
}

/* One a call: the owner may free |s| at any. The descriptor is level-triggered; more come next. */
static void signals_ready(void *owner, int fd, unsigned ready)
{
    struct os_signals *s = owner;
    struct signalfd_siginfo info;
    (void)ready;

    if (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        tell(s, info.ssi_signo);
}

int os_signals_create(struct poller *p, void (*told)(void *owner, enum os_signal signal),
                      void *owner, struct os_signals **out)
{
    struct os_signals *s = calloc(1, sizeof(*s));
    sigset_t set;
    int error;

    if (s == NULL)
        return IO_NO_MEMORY;
    our_set(&set);
    *s = (struct os_signals){.told = told, .owner = owner};
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    error = s->fd < 0 ? os_error(errno) : os_watch_add(p, s->fd, OS_READABLE, &s->watch);
    if (error != IO_OK) {
        os_signals_free(s);
        return error;
    }
    os_watch_own(s->watch, signals_ready, s);
    *out = s;
    return IO_OK;
}

void os_signals_free(struct os_signals *s)
{
    if (s == NULL)
        return;
    os_watch_remove(s->watch);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}
