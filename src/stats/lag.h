/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a loop keeps waiting what is ready or due: a turn that takes long, or a loop that comes
 * to its turn late because the machine had no time for it. One writer, any readers.
 */
#ifndef STATS_LAG_H
#define STATS_LAG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "stats/histogram.h"

#define LAG_NOTED   NS_PER_MS /* less is a turn like any other, and not noted */
#define LAG_SECONDS 10

/* Zeroed memory has none. */
struct lag {
    _Atomic uint64_t peaks[LAG_SECONDS]; /* the longest of a second: second + 1 above, us below */
    struct histogram times;              /* of turns with LAG_NOTED or more */
};

/*
 * Of a turn that ended at |end|: the loop began to wait at |began|, was to be woken at |due| at the
 * latest, and was awake at |woke|.
 */
static inline span_ns lag_of(mono_ns began, mono_ns due, mono_ns woke, mono_ns end)
{
    mono_ns ready = due < woke ? due : woke;

    return mono_since(ready > began ? ready : began, end); /* before, the last turn was the cause */
}

/* By the owner only; of a turn that ended at |now|. */
void lag_note(struct lag *l, span_ns lag, mono_ns now);

/* The longest of the last |seconds|, the present one included; 0: none was noted. */
span_ns lag_worst(const struct lag *l, mono_ns now, unsigned seconds);

/*
 * Is the loop so late that what it measures says little of others? Kept turn by turn from zeroed
 * memory: lags of LAG_SICK and more, each soon after the other, for LAG_SICK_FOR; or a single one
 * of LAG_STOPPED, for that long after it.
 */
struct lag_health {
    mono_ns first; /* of lags that came soon after each other */
    mono_ns last;
    mono_ns stopped; /* the end of the last single one; 0: none */
};

#define LAG_SICK     (20 * NS_PER_MS)
#define LAG_SICK_FOR NS_PER_S
#define LAG_SOON     (NS_PER_S / 4)
#define LAG_STOPPED  (NS_PER_S / 2)

/* LAG_SICK or more, that ended at |now|. */
void lag_health_note(struct lag_health *h, span_ns lag, mono_ns now);
bool lag_health_is_sick(const struct lag_health *h, mono_ns now);

#endif
