/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on how many of something exist at once, exact over all workers: taken by compare and
 * swap, so never exceeded, not even for a moment, and never refused while there is room.
 * The most allowed is configuration and so an argument; only the use is state.
 */
#ifndef POLICY_LIMIT_H
#define POLICY_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LIMIT_NONE UINT32_MAX /* no limit */

struct limit {
    _Alignas(64) _Atomic uint32_t used;
};

void limit_init(struct limit *l);

/* Takes one if fewer than |max| are taken. A |max| of 0 always refuses. */
bool limit_take(struct limit *l, uint32_t max);

/* Gives one back. Ordered before whatever this thread looks at next. */
void limit_give(struct limit *l);

static inline uint32_t limit_used(const struct limit *l)
{
    return atomic_load_explicit(&l->used, memory_order_relaxed);
}

#endif
