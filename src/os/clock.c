/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"

#include <time.h>

static uint64_t reading(clockid_t id)
{
    struct timespec t;

    if (clock_gettime(id, &t) != 0)
        return 0; /* only for an unknown clock, and both are older than this program */
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static mono_ns os_clock_read(struct clock *c)
{
    (void)c;
    return reading(CLOCK_MONOTONIC);
}

static wall_ns os_clock_wall(struct clock *c)
{
    (void)c;
    return reading(CLOCK_REALTIME);
}

void os_clock_init(struct clock *c)
{
    *c = (struct clock){.read = os_clock_read, .wall = os_clock_wall};
}

void os_clock_sleep(span_ns d)
{
    const struct timespec t = {.tv_sec = (time_t)(d / NS_PER_S), .tv_nsec = (long)(d % NS_PER_S)};

    nanosleep(&t, NULL);
}
