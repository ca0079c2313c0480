/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One host of a cluster: who it is, what all workers know of it, and what each has counted. It
 * outlives the snapshots that name it.
 */
#ifndef MODEL_HOST_STATE_H
#define MODEL_HOST_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/bytes.h"
#include "base/list.h"
#include "policy/host.h"
#include "stats/metrics.h"

struct host_state {
    struct host host;       /* what policy sees */
    struct address address; /* this and |text| never change, and are the host's own */
    struct bytes text;      /* as shown: "127.0.0.1:9001" */
    /* Control thread only, all of them versions of snapshots; how a host goes: control/succession.h
     */
    uint64_t named_by;     /* the last one that names it */
    uint64_t absent_since; /* once all workers are at this one, none picks it; 0: present */
    uint64_t gone_since;   /* the first one whose view has it no more; 0: not gone */
    _Atomic uint64_t before[ENDPOINT_METRIC_COUNT]; /* counted before the last reset */
    mono_ns drain_since;                            /* by hand; 0: it is not drained */
    bool drained; /* nothing was left on it, and that was logged */
    uint32_t workers;
    void *raw;                     /* its memory */
    struct endpoint_cells cells[]; /* [worker] */
};

/* Healthy, nothing counted. NULL: no memory. */
struct host_state *host_state_create(const struct address *address, struct bytes text,
                                     uint32_t workers);
void host_state_free(struct host_state *h);

static inline struct host_state *host_state_of(struct host *h)
{
    return CONTAINER_OF(h, struct host_state, host);
}

/* Control thread only. Its counters begin anew at zero; gauges stay. */
void host_state_reset(struct host_state *h);

/* Sum over all workers, since the last reset. */
uint64_t host_state_sum(const struct host_state *h, enum endpoint_metric m);

#endif
