/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is learnt and counted about a cluster while the process runs: shared by all workers and
 * the control thread, and longer lived than any one snapshot. Atomics only; counted.
 */
#ifndef MODEL_CLUSTER_STATE_H
#define MODEL_CLUSTER_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "policy/host.h"
#include "policy/limit.h"
#include "stats/metrics.h"

struct cluster_state {
    _Atomic uint32_t refs;
    uint32_t workers;
    struct host_set hosts; /* in the order of the configuration */
    struct limit connections;
    struct limit pending;
    struct limit requests;
    _Atomic uint32_t waiting;     /* requests, on any worker, that wait for a connection slot */
    struct cluster_cells **cells; /* [worker] */
    struct endpoint_cells **endpoint_cells;         /* [worker][host] */
    _Atomic uint64_t outlier[OUTLIER_METRIC_COUNT]; /* by the control thread */
};

/* One reference, the caller's. NULL: no memory. */
struct cluster_state *cluster_state_create(uint32_t hosts, uint32_t workers);
struct cluster_state *cluster_state_take(struct cluster_state *s);
void cluster_state_drop(struct cluster_state *s);

/* Sums over all workers. */
uint64_t cluster_state_sum(const struct cluster_state *s, enum cluster_metric m);
uint64_t endpoint_state_sum(const struct cluster_state *s, uint32_t host, enum endpoint_metric m);

#endif
