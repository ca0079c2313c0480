/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instants to the nanosecond, where base/wheel rounds up to its millisecond: the lab must not add
 * half a millisecond to each service time and arrival it claims to have made. An intrusive pairing
 * heap (Fredman, Sedgewick, Sleator, Tarjan 1986): arming allocates nothing and cannot fail.
 *
 * What is due at one instant fires in the order in which it was armed.
 */
#ifndef LAB_SCHEDULE_H
#define LAB_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.h"

struct appointment;
typedef void (*appointment_fire)(struct appointment *a, mono_ns now);

/* Embed by value; appointment_init once. */
struct appointment {
    mono_ns at; /* MONO_NEVER while not armed */
    uint64_t order;
    appointment_fire fire;
    struct appointment *child;
    struct appointment *next; /* sibling */
    struct appointment *back; /* sibling before, or the parent of the first child */
};

struct schedule {
    struct appointment *first;
    uint64_t order;
};

static inline void schedule_init(struct schedule *s)
{
    *s = (struct schedule){NULL, 0};
}

static inline void appointment_init(struct appointment *a, appointment_fire fire)
{
    *a = (struct appointment){.at = MONO_NEVER, .fire = fire};
}

static inline bool appointment_armed(const struct appointment *a)
{
    return a->at != MONO_NEVER;
}

/* Arms, or arms anew. MONO_NEVER cancels. */
void schedule_arm(struct schedule *s, struct appointment *a, mono_ns at);

/* Takes one that is not armed. */
void schedule_cancel(struct schedule *s, struct appointment *a);

/* When schedule_run should next be called; MONO_NEVER: nothing is armed. */
static inline mono_ns schedule_next(const struct schedule *s)
{
    return s->first == NULL ? MONO_NEVER : s->first->at;
}

/*
 * Fires what is due at |now|. A callback may arm and cancel any; what it arms for an instant not
 * after |now| fires in this run too, so whoever is behind catches up. Returns how many fired.
 */
unsigned schedule_run(struct schedule *s, mono_ns now);

#endif
