/* SPDX-License-Identifier: Apache-2.0 */
/* A loop for those who are not under test: clients and servers. It runs at once, and only on
 * events. */
#ifndef SIM_ACTOR_H
#define SIM_ACTOR_H

#include "sim/net.h"

struct actor_loop {
    struct world_loop loop;
    struct sim_poller poller;
    struct net_process process;
};

/* Started. */
void actor_loop_init(struct actor_loop *a, struct net *n);
void actor_loop_release(struct actor_loop *a);

static inline struct poller *actor_poller(struct actor_loop *a)
{
    return &a->poller.base;
}

#endif
