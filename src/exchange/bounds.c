/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/bounds.h"

#include "policy/limit.h"

void bounds_add_client(struct process_state *p)
{
    (void)limit_take(&p->downstream, LIMIT_NONE);
}

void bounds_give_client(struct process_state *p)
{
    limit_give(&p->downstream);
}

bool bounds_client_room(const struct process_state *p)
{
    return limit_used(&p->downstream) < p->downstream_max;
}

bool bounds_take_upstream(struct process_state *p)
{
    return limit_take(&p->upstream, p->upstream_max);
}

void bounds_give_upstream(struct process_state *p)
{
    limit_give(&p->upstream);
}

bool bounds_take_replay(struct process_state *p, uint64_t bytes)
{
    uint64_t used = atomic_load_explicit(&p->replay, memory_order_relaxed);

    while (bytes <= p->replay_max && used <= p->replay_max - bytes) {
        if (atomic_compare_exchange_weak_explicit(&p->replay, &used, used + bytes,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    return false;
}

void bounds_give_replay(struct process_state *p, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&p->replay, bytes, memory_order_relaxed);
}
