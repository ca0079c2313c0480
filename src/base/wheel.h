/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hierarchical timer wheel, one millisecond a tick: arming and cancelling cost O(1).
 * Method: Varghese and Lauck, "Hashed and hierarchical timing wheels", scheme 6/7.
 *
 * A timer never fires before its instant and fires at the first wheel_run whose |now| is at or
 * after the end of its tick (less than 1 ms late). Timers of one tick fire in the order in which
 * they were armed, so that the same history gives the same order.
 */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/units.h"

#define WHEEL_LEVELS 5
#define WHEEL_SLOTS  64

struct timer;
typedef void (*timer_fire)(struct timer *t, mono_ns now);

/* Embed by value; timer_init once. */
struct timer {
    struct list link; /* of its slot; to itself while not armed */
    mono_ns at;       /* MONO_NEVER while not armed */
    timer_fire fire;
    uint8_t level;
    uint8_t slot;
};

struct wheel {
    uint64_t tick;                   /* the tick up to which all has fired */
    uint64_t occupied[WHEEL_LEVELS]; /* a bit a slot: not empty */
    struct list slots[WHEEL_LEVELS][WHEEL_SLOTS];
    struct list due; /* armed for the past: fire at the next run */
    struct list far; /* beyond the top level, about 12 days: looked at again when that turns over */
    uint64_t armed;
};

void wheel_init(struct wheel *w, mono_ns now);

static inline void timer_init(struct timer *t, timer_fire fire)
{
    list_init(&t->link);
    t->at = MONO_NEVER;
    t->fire = fire;
    t->level = 0;
    t->slot = 0;
}

static inline bool timer_armed(const struct timer *t)
{
    return !list_empty(&t->link);
}

/* Arms, or arms anew. MONO_NEVER cancels. An instant in the past fires at the next wheel_run. */
void wheel_arm(struct wheel *w, struct timer *t, mono_ns at);

/* Takes a timer that is not armed. */
void wheel_cancel(struct wheel *w, struct timer *t);

/*
 * The instant at which wheel_run should next be called: never later than the first timer is due
 * to fire, possibly earlier (to cascade). MONO_NEVER: nothing is armed.
 */
mono_ns wheel_next(const struct wheel *w);

/*
 * Fires what is due at |now|. A callback may arm and cancel any timer, itself included; one armed
 * for the past by a callback fires in the next run, not this one. Returns how many fired.
 */
unsigned wheel_run(struct wheel *w, mono_ns now);

#endif
