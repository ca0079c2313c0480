/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all workers share of one host: its health, its load, the evidence about it. Atomics only.
 * A host's health is one atomic: written by the control thread, seen by each worker at its next
 * pick.
 */
#ifndef POLICY_HOST_H
#define POLICY_HOST_H

#include <stdatomic.h>
#include <stdint.h>

#include "policy/outlier.h"

enum host_health {
    HOST_HEALTHY,
    HOST_EJECTED,
    HOST_ABSENT, /* no longer configured; what is under way on it ends */
    HOST_HEALTH_COUNT
};

struct host {
    _Alignas(64) _Atomic uint32_t health; /* enum host_health */
    _Atomic uint32_t in_flight;           /* attempts on it, all workers */
    struct outlier_runs runs;

    /* To be shown; written by the control thread. */
    _Atomic uint32_t ejections;
    _Atomic uint32_t last_trigger; /* enum outlier_trigger */
    _Atomic uint64_t ejected_at;
    _Atomic uint64_t eject_until; /* earliest; the sweep decides */
};

/*
 * All hosts of a cluster, each in its slot. A host keeps its slot as long as anybody may think of
 * it, whatever becomes of the configuration: slots may be named where a host is meant.
 */
struct host_set {
    struct host *const *at; /* [slot]; NULL: empty */
    uint32_t count;
    _Atomic uint32_t *epoch; /* of the cluster; raised after any health changed */
};

static inline enum host_health host_health(const struct host *h)
{
    return (enum host_health)atomic_load_explicit(&h->health, memory_order_acquire);
}

/* Control thread only. Raises the epoch. */
static inline void host_set_health(const struct host_set *s, uint32_t index,
                                   enum host_health health)
{
    atomic_store_explicit(&s->at[index]->health, (uint32_t)health, memory_order_release);
    atomic_fetch_add_explicit(s->epoch, 1, memory_order_release);
}

#endif
