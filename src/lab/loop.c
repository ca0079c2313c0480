/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/loop.h"

#include <signal.h>
#include <stddef.h>

#include <sys/prctl.h>

#include "io/error.h"
#include "os/clock.h"
#include "os/poller.h"

/* Under nohup: a blocked signal reaches us even where it is to be ignored. */
static bool hangup_is_ignored(void)
{
    struct sigaction action;

    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void told(void *owner, enum os_signal signal)
{
    struct lab_loop *l = owner;

    if (signal == OS_SIGNAL_USR1 || (signal == OS_SIGNAL_HUP && hangup_is_ignored()))
        return;
    l->stopped = l->interrupted = true;
}

int lab_loop_open(struct lab_loop *l)
{
    int err;

    *l = (struct lab_loop){.poller = NULL};
    os_signals_block();
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* else 50 us late each time */
    os_clock_init(&l->clock);
    schedule_init(&l->schedule);
    l->now = clock_read(&l->clock);
    err = os_poller_create(&l->poller);
    if (err == IO_OK)
        err = os_signals_create(l->poller, told, l, &l->signals);
    if (err != IO_OK)
        lab_loop_close(l);
    return err;
}

void lab_loop_turn(struct lab_loop *l)
{
    poller_wait(l->poller, mono_until(clock_read(&l->clock), schedule_next(&l->schedule)));
    l->now = clock_read(&l->clock);
    poller_dispatch(l->poller);
    schedule_run(&l->schedule, l->now);
}

void lab_loop_run(struct lab_loop *l)
{
    while (!l->stopped)
        lab_loop_turn(l);
}

void lab_loop_close(struct lab_loop *l)
{
    os_signals_free(l->signals);
    os_poller_free(l->poller);
    l->signals = NULL;
    l->poller = NULL;
}
