/* SPDX-License-Identifier: Apache-2.0 */
/* An exact limit: one atomic, changed only by compare and swap below the most allowed. */
#include "policy/limit.h"

#include <assert.h>

void limit_init(struct limit *l)
{
    atomic_init(&l->used, 0);
}

bool limit_take(struct limit *l, uint32_t max)
{
    uint32_t used = atomic_load_explicit(&l->used, memory_order_relaxed);

    /* A failed exchange loads |used| anew, so a refusal always rests on a value that was there. */
    while (used < max) {
        if (atomic_compare_exchange_weak_explicit(&l->used, &used, used + 1, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

void limit_give(struct limit *l)
{
    uint32_t used = atomic_fetch_sub_explicit(&l->used, 1, memory_order_seq_cst);

    assert(used > 0);
}
