/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/view.h"

struct address view_listener_address(const struct listener_config *l)
{
    struct address at = l->address;
    uint32_t bound = atomic_load_explicit(&l->state->port, memory_order_relaxed);

    if (bound != 0)
        at.port = (uint16_t)bound;
    return at;
}

bool view_draining(const struct admin_view *v)
{
    return atomic_load_explicit(&v->process->draining, memory_order_relaxed) ||
           atomic_load_explicit(&v->process->health_failed, memory_order_relaxed) != 0;
}

const char *view_state_text(const struct admin_view *v)
{
    return view_draining(v) ? "DRAINING" : "LIVE";
}
