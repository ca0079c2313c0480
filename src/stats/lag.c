/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/lag.h"

#define US_MASK UINT64_C(0xffffffff)

/* Seconds are counted from 1, so that zeroed memory is of none. */
static uint64_t second_of(mono_ns now)
{
    return (now / NS_PER_S + 1) & US_MASK;
}

void lag_note(struct lag *l, span_ns lag, mono_ns now)
{
    uint64_t second = second_of(now);
    _Atomic uint64_t *cell = &l->peaks[second % LAG_SECONDS];
    uint64_t us = lag / NS_PER_US;
    uint64_t word = second << 32 | (us < US_MASK ? us : US_MASK);

    histogram_record(&l->times, us);
    if (atomic_load_explicit(cell, memory_order_relaxed) < word)
        atomic_store_explicit(cell, word, memory_order_relaxed);
}

span_ns lag_worst(const struct lag *l, mono_ns now, unsigned seconds)
{
    uint64_t second = second_of(now);
    uint64_t worst = 0;

    for (unsigned i = 0; i < LAG_SECONDS; i++) {
        uint64_t word = atomic_load_explicit(&l->peaks[i], memory_order_relaxed);
        uint64_t age = (second - (word >> 32)) & US_MASK;

        if (word != 0 && age < seconds && (word & US_MASK) > worst)
            worst = word & US_MASK;
    }
    return worst * NS_PER_US;
}

void lag_health_note(struct lag_health *h, span_ns lag, mono_ns now)
{
    if (h->first == 0 || mono_since(h->last, now) > LAG_SOON + lag)
        h->first = now;
    h->last = now;
    if (lag >= LAG_STOPPED)
        h->stopped = now;
}

bool lag_health_is_sick(const struct lag_health *h, mono_ns now)
{
    if (h->stopped != 0 && mono_since(h->stopped, now) < LAG_SICK_FOR)
        return true;
    return h->first != 0 && mono_since(h->last, now) <= LAG_SOON &&
           mono_since(h->first, h->last) >= LAG_SICK_FOR;
}
