/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/actor.h"

static mono_ns wakeup(void *owner)
{
    (void)owner;
    return MONO_NEVER;
}

static void turn(void *owner)
{
    poller_dispatch(actor_poller(owner));
}

static bool done(void *owner)
{
    (void)owner;
    return false;
}

static const struct world_loop_ops ops = {.wakeup = wakeup, .turn = turn, .done = done};

void actor_loop_init(struct actor_loop *a, struct net *n)
{
    net_process_init(&a->process);
    world_loop_init(&a->loop, n->world, &ops, a);
    a->loop.prompt = true;
    sim_poller_init(&a->poller, n, &a->process, &a->loop);
    world_loop_start(&a->loop);
}

void actor_loop_release(struct actor_loop *a)
{
    world_loop_stop(&a->loop);
}
