/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's clocks: CLOCK_MONOTONIC and, to be shown, CLOCK_REALTIME. From any thread. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "io/clock.h"

void os_clock_init(struct clock *c);

/* The calling thread sleeps for |d|, or less where a signal comes. Not for loops: they wait in a
 * poller. */
void os_clock_sleep(span_ns d);

#endif
