/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is where requests of several workers wait for a connection: first come, first
 * served over all of them. Each worker says, in a line of its own, since when its first request
 * waits; whoever frees a slot finds there who is to have it. Atomics only.
 */
#ifndef POLICY_SLOT_ORDER_H
#define POLICY_SLOT_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

#define SLOT_NOBODY UINT32_MAX

/*
 * A connection that falls free serves its own worker's first request, though another worker's came
 * up to so much earlier, times the workers: else each answer under load would cost a connect, and
 * the ports would soon be used up. So order's sake closes at most 200 connections a second.
 */
#define SLOT_ORDER_SLACK (5 * NS_PER_MS)

/* Of one worker. */
struct slot_line {
    _Alignas(64) _Atomic uint64_t since; /* its first request waits; MONO_NEVER: none does */
    _Atomic bool told;                   /* a message about a free slot is on its way to it */
};

struct slot_order {
    _Alignas(64) _Atomic uint32_t waiting; /* requests, on any worker */
    uint32_t workers;
    struct slot_line *lines; /* [worker] */
};

void slot_order_init(struct slot_order *o, struct slot_line *lines, uint32_t workers);

/* A request more, or less, waits on |worker|, whose first one now waits |since|. */
void slot_order_join(struct slot_order *o, uint32_t worker, mono_ns since);
void slot_order_leave(struct slot_order *o, uint32_t worker, mono_ns since);

/* The worker whose first request waits longest; SLOT_NOBODY: none waits. */
uint32_t slot_order_next(const struct slot_order *o);

/* A connection of |worker| has fallen free: may its own first request have it? */
bool slot_order_may_keep(const struct slot_order *o, uint32_t worker);

/* |worker| is to be told of a free slot. False: a message is on its way already. */
bool slot_order_tell(struct slot_order *o, uint32_t worker);

/* The message has come, or could not be sent. Before looking at what is free. */
void slot_order_heard(struct slot_order *o, uint32_t worker);

/* Ordered behind whatever the asking thread gave back before. */
static inline uint32_t slot_order_waiting(const struct slot_order *o)
{
    return atomic_load_explicit(&o->waiting, memory_order_seq_cst);
}

#endif
