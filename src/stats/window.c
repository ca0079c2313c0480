/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/window.h"

#define COUNT_MASK UINT64_C(0xffffffff)

/* Seconds are counted from 1, so that zeroed memory is of none. */
static uint64_t second_of(mono_ns now)
{
    return (now / NS_PER_S + 1) & COUNT_MASK;
}

void window_add(struct window *w, mono_ns now)
{
    uint64_t second = second_of(now);
    _Atomic uint64_t *cell = &w->at[second % WINDOW_SECONDS];
    uint64_t word = atomic_load_explicit(cell, memory_order_relaxed);

    if (word >> 32 != second)
        word = second << 32;
    if ((word & COUNT_MASK) != COUNT_MASK)
        atomic_store_explicit(cell, word + 1, memory_order_relaxed);
}

uint64_t window_sum(const struct window *w, mono_ns now)
{
    uint64_t second = second_of(now);
    uint64_t sum = 0;

    for (unsigned i = 0; i < WINDOW_SECONDS; i++) {
        uint64_t word = atomic_load_explicit(&w->at[i], memory_order_relaxed);
        uint64_t age = second - (word >> 32);

        if (word != 0 && age < WINDOW_SECONDS)
            sum += word & COUNT_MASK;
    }
    return sum;
}
