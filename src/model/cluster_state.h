/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is learnt and counted about a cluster while the process runs: shared by all workers and
 * the control thread, and longer lived than any one snapshot. Atomics only; counted.
 */
#ifndef MODEL_CLUSTER_STATE_H
#define MODEL_CLUSTER_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "model/host_state.h"
#include "model/limit_rows.h"
#include "policy/evidence.h"
#include "policy/host.h"
#include "policy/host_load.h"
#include "policy/limit.h"
#include "policy/retry_budget.h"
#include "policy/slot_order.h"
#include "stats/metrics.h"

#define HOST_NO_SLOT UINT32_MAX

/* Of the last interval; OUTLIER_NO_RATE: not worked out. */
struct outlier_shown {
    _Atomic double average; /* success in percent */
    _Atomic double threshold;
};

struct cluster_state {
    _Atomic uint32_t refs;
    uint32_t workers;
    _Atomic uint32_t epoch; /* raised after the health of a host changed */
    struct host_set hosts;  /* as of the newest snapshot; control thread only, workers have views */
    struct host **slots;    /* the same, to be changed */
    uint32_t slot_room;
    uint32_t first_empty;                /* no slot before it is empty */
    uint32_t named;                      /* hosts of the snapshot in force; control thread only */
    _Atomic uint64_t membership_changes; /* how often hosts came or went, the first ones included */
    struct limit connections;
    struct limit pending;
    struct limit requests;
    struct limit retries; /* in back-off or under way */
    struct retry_budget retry_budget;
    _Atomic bool dry; /* the last connect failed for want of ports, memory or such */
    struct limit_episode episodes[LIMIT_ROW_COUNT]; /* control thread only */
    struct host_load_typical typical;
    _Atomic uint32_t late_after[EVIDENCE_CLASS_MAX];   /* microseconds; 0: not known; by the control
                                                          thread, here and below */
    _Atomic uint32_t probe_within[EVIDENCE_CLASS_MAX]; /* microseconds; 0: not known */
    _Atomic bool mistrusts;                            /* some host is to be tried, or is cut */
    _Atomic bool retries_held;    /* the fleet is slow: more attempts would make it worse */
    struct slot_order queue;      /* who waits where maxConnections is reached */
    struct cluster_cells **cells; /* [worker] */
    void **local;                 /* [worker]: what that worker has of the cluster; its alone */
    _Atomic uint64_t panic_since; /* mono_ns; MONO_NEVER: no panic; by the control thread */
    _Atomic uint64_t discovery[DISCOVERY_METRIC_COUNT]; /* by the control thread, here and below */
    _Atomic uint64_t outlier[OUTLIER_METRIC_COUNT]; /* by the control thread, as are the rates */
    _Atomic uint64_t effect[EFFECT_METRIC_COUNT];
    struct outlier_shown rates[OUTLIER_ORIGIN_COUNT];
    _Atomic uint64_t before[CLUSTER_METRIC_COUNT]; /* counted before the last reset */
    struct flag_cells flags_before;
    _Atomic uint64_t retry_before[RETRY_METRIC_COUNT];
    struct status_cells statuses_before[STATUS_TABLE_COUNT];
};

/* With |hosts| hosts that have no address. One reference, the caller's. NULL: no memory. */
struct cluster_state *cluster_state_create(uint32_t hosts, uint32_t workers);
struct cluster_state *cluster_state_take(struct cluster_state *s);
void cluster_state_drop(struct cluster_state *s);

/* Control thread only. A new host, healthy, in an empty slot. HOST_NO_SLOT: no memory. */
uint32_t cluster_state_add(struct cluster_state *s, const struct address *address,
                           struct bytes text);

/* Control thread only. Frees the host in |slot|, which nobody may think of any more. */
void cluster_state_vacate(struct cluster_state *s, uint32_t slot);

/* The hosts as they are now, in |arena|, to be kept by whoever may not see them change. */
bool cluster_state_view(struct cluster_state *s, struct arena *arena, struct host_set *out);

/* Control thread only. Counters of the cluster and its hosts begin anew at zero; gauges stay. */
void cluster_state_reset(struct cluster_state *s);

/* Sum over all workers, since the last reset. */
uint64_t cluster_state_sum(const struct cluster_state *s, enum cluster_metric m);
/* The same of a response flag, by its index. */
uint64_t cluster_state_flag(const struct cluster_state *s, uint32_t flag);

uint64_t cluster_state_retry_sum(const struct cluster_state *s, enum retry_metric m);

/* Over the last ten seconds. */
struct amplification {
    uint64_t requests; /* first attempts */
    uint64_t extra;    /* retries, failovers, resends */
};

struct amplification cluster_state_amplification(const struct cluster_state *s, mono_ns now);

#endif
