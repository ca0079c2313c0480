/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's loop: one thread, a poller, a schedule, and an ear for signals. */
#ifndef LAB_LOOP_H
#define LAB_LOOP_H

#include <stdbool.h>

#include "base/units.h"
#include "io/clock.h"
#include "io/poller.h"
#include "lab/schedule.h"
#include "os/signals.h"

struct lab_loop {
    struct clock clock;
    struct poller *poller;
    struct schedule schedule;
    mono_ns now;      /* of this turn */
    bool stopped;     /* by lab_loop_stop or a signal: whoever turns the loop returns */
    bool interrupted; /* it was a signal */
    struct os_signals *signals;
};

/*
 * IO_OK or an io_error. SIGINT, SIGTERM and SIGHUP are blocked from here on and stop the loop;
 * SIGPIPE is ignored.
 */
int lab_loop_open(struct lab_loop *l);

/* Waits for something to happen or to be due, and does it. */
void lab_loop_turn(struct lab_loop *l);

/* Turns until it is stopped. */
void lab_loop_run(struct lab_loop *l);

static inline void lab_loop_stop(struct lab_loop *l)
{
    l->stopped = true;
}

void lab_loop_close(struct lab_loop *l);

#endif
