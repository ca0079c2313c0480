/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's clocks: CLOCK_MONOTONIC and, to be shown, CLOCK_REALTIME. From any thread. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "io/clock.h"

void os_clock_init(struct clock *c);

#endif
