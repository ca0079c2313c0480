/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer whose instant mostly moves later: it is left armed at the earlier instant, and armed anew
 * only when that has come. So a deadline that every request pushes on costs no wheel operation a
 * request.
 */
#ifndef PROXY_ALARM_H
#define PROXY_ALARM_H

#include "base/wheel.h"

struct alarm {
    struct timer timer;
    mono_ns due; /* MONO_NEVER: not wanted */
};

static inline void alarm_init(struct alarm *a, timer_fire fire)
{
    timer_init(&a->timer, fire);
    a->due = MONO_NEVER;
}

static inline void alarm_set(struct alarm *a, struct wheel *w, mono_ns due)
{
    a->due = due;
    if (due != MONO_NEVER && (!timer_armed(&a->timer) || due < a->timer.at))
        wheel_arm(w, &a->timer, due);
}

static inline void alarm_cancel(struct alarm *a, struct wheel *w)
{
    a->due = MONO_NEVER;
    wheel_cancel(w, &a->timer);
}

/* First thing in the timer's callback: false where it came too early (and is armed anew). */
static inline bool alarm_is_due(struct alarm *a, struct wheel *w, mono_ns now)
{
    if (now >= a->due)
        return true;
    if (a->due != MONO_NEVER)
        wheel_arm(w, &a->timer, a->due);
    return false;
}

#endif
