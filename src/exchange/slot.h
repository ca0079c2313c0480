/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors to connection slots: taken and given back, and whose turn it is where requests of
 * several workers wait for one (policy/slot_order.h). A slot is the right to hold one connection;
 * the process' descriptors, maxConnections and the host's own limit bound how many there are.
 */
#ifndef EXCHANGE_SLOT_H
#define EXCHANGE_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange/cluster_rt.h"
#include "model/process_state.h"

#define SLOT_NO_WORKER UINT32_MAX

enum slot {
    SLOT_TAKEN,
    SLOT_HOST_FULL,    /* as many connections as one host may have */
    SLOT_CLUSTER_FULL, /* as many as the cluster, or the process, may have */
    SLOT_NO_DESCRIPTOR /* the same, and no connection of the cluster's could fall free */
};

/* A slot for one more connection to |host|. */
enum slot slot_take(struct cluster_rt *rt, struct process_state *process, uint32_t host);

/* The same, beyond maxConnections: Envoy lets a pool that has no connection at all open one. */
enum slot slot_take_beyond(struct cluster_rt *rt, struct process_state *process, uint32_t host);

/*
 * The connection was not to be had for reasons of our own. SLOT_CLUSTER_FULL: there is one that may
 * fall free; until a connect works again, slots count as used up.
 */
enum slot slot_unused(struct cluster_rt *rt, struct process_state *process, uint32_t host);

/* The connection is gone: gives the slot back. */
void slot_give(struct cluster_rt *rt, struct process_state *process, uint32_t host);

/* A connect is under way: nothing of our own prevents it. */
void slot_used(struct cluster_rt *rt);

/* How many could be taken now, as far as one can know. */
uint32_t slot_free_count(struct cluster_rt *rt, const struct process_state *process);

/* Do more requests wait than would get a slot without one more connection being given up? */
bool slot_needed(struct cluster_rt *rt, const struct process_state *process);

/* Has some worker a connection without a request, or one under way? */
bool slot_idle_somewhere(const struct cluster_rt *rt);

/* A wish for a connection was turned down by maxConnections. */
void slot_count_overflow(struct cluster_rt *rt);

/* --- whose turn it is; |first|: since when this worker's first request waits --- */

void slot_join(struct cluster_rt *rt, mono_ns first);
void slot_leave(struct cluster_rt *rt, mono_ns first);
uint32_t slot_waiting(const struct cluster_rt *rt);
uint32_t slot_next(const struct cluster_rt *rt);
bool slot_may_keep(const struct cluster_rt *rt);
bool slot_tell(struct cluster_rt *rt, uint32_t worker);
void slot_heard(struct cluster_rt *rt, uint32_t worker);

#endif
