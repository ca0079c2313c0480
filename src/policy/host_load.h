/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How costly a host is to ask, as the balancer sees it: how much later than is typical its answers
 * come, and how many fail. Shared by all workers, without locks: of two that write at once one is
 * lost. What was seen long ago counts less, so that a host nobody asks any more is asked again.
 * Pure.
 *
 * Source: Finagle's Peak EWMA (reference/detection.md B11), with the ratio to the typical latency
 * of the request's class in place of the latency, so that a host that was given the heavy requests
 * is not dear for it; and a failure costs, so that failing fast does not attract.
 */
#ifndef POLICY_HOST_LOAD_H
#define POLICY_HOST_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/evidence.h"

/* Costs are in thousandths of the typical one. */
#define HOST_LOAD_TYPICAL 1000u

/* Zeroed memory is a host nothing is known of: as any other. */
struct host_load {
    _Atomic uint32_t latency; /* thousandths of what is typical, beyond it; smoothed */
    _Atomic uint32_t failing; /* thousandths; smoothed */
    _Atomic uint32_t at;      /* when that was, milliseconds */
};

/* What is typical of each class of a cluster: microseconds, smoothed; 0: not known. */
struct host_load_typical {
    _Atomic uint32_t us[EVIDENCE_CLASS_MAX];
    _Atomic uint32_t failing;                 /* millionths */
    _Atomic uint32_t usual;                   /* thousandths: who fails no more is as any other */
    _Atomic(const struct host_load *) failed; /* the last host that did; never looked into */
};

/* An attempt has ended. */
void host_load_learn(struct host_load *l, struct host_load_typical *typical,
                     const struct evidence *s);

/* Counts for half after half that time, and for nothing after all of it. */
#define HOST_LOAD_SPAN (5 * NS_PER_S)

#define HOST_LOAD_SPAN_MS  (HOST_LOAD_SPAN / NS_PER_MS)
#define HOST_LOAD_AHEAD_MS 1000u /* of another worker, whose turn began later, at most */

/* What is left by now of |was|. */
static inline uint32_t host_load_left(const struct host_load *l, uint32_t was, mono_ns now)
{
    uint32_t at = atomic_load_explicit(&l->at, memory_order_relaxed);
    uint32_t gone = (uint32_t)(now / NS_PER_MS) - at;

    if (-gone <= HOST_LOAD_AHEAD_MS)
        return was;
    return gone >= HOST_LOAD_SPAN_MS
               ? 0
               : (uint32_t)((uint64_t)was * (HOST_LOAD_SPAN_MS - gone) / HOST_LOAD_SPAN_MS);
}

/* Of a host that is later than is typical, or has failed lately. */
uint32_t host_load_cost_of(const struct host_load *l, const struct host_load_typical *typical,
                           mono_ns now);

/* Thousandths of the typical cost; never below it. */
static inline uint32_t host_load_cost(const struct host_load *l,
                                      const struct host_load_typical *typical, mono_ns now)
{
    uint32_t latency = atomic_load_explicit(&l->latency, memory_order_relaxed);
    uint32_t failing = atomic_load_explicit(&l->failing, memory_order_relaxed);

    return (latency | failing) == 0 ? HOST_LOAD_TYPICAL : host_load_cost_of(l, typical, now);
}

#endif
