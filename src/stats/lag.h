/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a loop keeps waiting what is ready or due: a turn that takes long, or a loop that comes
 * to its turn late because the machine had no time for it. One writer, any readers.
 */
#ifndef STATS_LAG_H
#define STATS_LAG_H

#include <stdatomic.h>
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

#endif
