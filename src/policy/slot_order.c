/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/slot_order.h"

#include <assert.h>

void slot_order_init(struct slot_order *o, struct slot_line *lines, uint32_t workers)
{
    atomic_init(&o->waiting, 0);
    o->workers = workers;
    o->lines = lines;
    for (uint32_t i = 0; i < workers; i++) {
        atomic_init(&lines[i].since, MONO_NEVER);
        atomic_init(&lines[i].told, false);
    }
}

/* The line before the number: who sees that somebody waits finds out who. */
void slot_order_join(struct slot_order *o, uint32_t worker, mono_ns since)
{
    assert(worker < o->workers && since != MONO_NEVER);
    atomic_store_explicit(&o->lines[worker].since, since, memory_order_seq_cst);
    atomic_fetch_add_explicit(&o->waiting, 1, memory_order_seq_cst);
}

void slot_order_leave(struct slot_order *o, uint32_t worker, mono_ns since)
{
    uint32_t before;

    assert(worker < o->workers);
    atomic_store_explicit(&o->lines[worker].since, since, memory_order_seq_cst);
    before = atomic_fetch_sub_explicit(&o->waiting, 1, memory_order_seq_cst);
    assert(before > 0);
}

static mono_ns since_of(const struct slot_order *o, uint32_t worker)
{
    return atomic_load_explicit(&o->lines[worker].since, memory_order_seq_cst);
}

uint32_t slot_order_next(const struct slot_order *o)
{
    uint32_t next = SLOT_NOBODY;
    mono_ns oldest = MONO_NEVER;

    for (uint32_t i = 0; i < o->workers; i++) {
        mono_ns since = since_of(o, i);

        if (since < oldest) {
            oldest = since;
            next = i;
        }
    }
    return next;
}

bool slot_order_may_keep(const struct slot_order *o, uint32_t worker)
{
    mono_ns own = since_of(o, worker);
    uint32_t next = slot_order_next(o);

    if (own == MONO_NEVER)
        return false;
    return next == SLOT_NOBODY || next == worker ||
           own <= mono_after(since_of(o, next), o->workers * SLOT_ORDER_SLACK);
}

bool slot_order_tell(struct slot_order *o, uint32_t worker)
{
    return !atomic_exchange_explicit(&o->lines[worker].told, true, memory_order_seq_cst);
}

void slot_order_heard(struct slot_order *o, uint32_t worker)
{
    atomic_store_explicit(&o->lines[worker].told, false, memory_order_seq_cst);
}
