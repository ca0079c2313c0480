/* SPDX-License-Identifier: Apache-2.0 */
/* What is shared by the whole process, beside the clusters: bounds, cells, the drain flag. */
#ifndef MODEL_PROCESS_STATE_H
#define MODEL_PROCESS_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/evidence_ring.h"
#include "policy/limit.h"
#include "stats/metrics.h"

struct process_state {
    uint32_t workers;
    struct worker_cells *worker_cells; /* [worker] */
    struct evidence_ring *rings;       /* [worker] */
    struct worker_cells *before;       /* [worker]: what was counted before the last reset */
    struct limit downstream;           /* client connections open */
    struct limit upstream;             /* connections to hosts open */
    struct limit requests;             /* requests under way, all clusters */
    uint32_t downstream_max;           /* 70 % of the descriptors */
    uint32_t upstream_max;             /* the rest, less a reserve: listeners, admin, logs, names */
    uint32_t requests_max;             /* the smaller of 70 % of the descriptors and memoryLimit /
                                          request_memory_max */
    _Atomic uint64_t
        replay;          /* bytes of bodies kept for another attempt, beside the usual buffers */
    uint64_t replay_max; /* an eighth of memoryLimit */
    mono_ns started;
    _Atomic bool draining;
    _Atomic uint32_t health_failed; /* 1: /healthcheck/fail, and each answer ends its connection */
};

/*
 * The most memory one request can hold, and what memoryLimit is divided by: its head as it came and
 * as it goes on, and one buffer each way. What retries keep beyond that has a bound of its own.
 */
#define REQUEST_MEMORY_MAX (448u * 1024)

/* |descriptors|: the soft limit in force; |memory_limit|: bytes. NULL: no memory. */
struct process_state *process_state_create(uint32_t workers, uint64_t descriptors,
                                           uint64_t memory_limit, mono_ns now);
/* What a worker has counted since the last reset. */
uint64_t process_state_worker(const struct process_state *p, uint32_t worker, enum worker_metric m);
/* Control thread only. The counters of all workers begin anew at zero. */
void process_state_reset(struct process_state *p);

void process_state_free(struct process_state *p);

#endif
