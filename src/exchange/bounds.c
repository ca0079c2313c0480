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
