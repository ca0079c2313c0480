/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of one cluster side by side, as detection remembers them: what became of the attempts
 * on each, by class, and its latest latencies against those of its peers. Collected in steps, as
 * there may be thousands. Control thread only.
 */
#ifndef CONTROL_PEERS_H
#define CONTROL_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "model/snapshot.h"

#define PEER_QUANTILES 3 /* p50, p95, p99 */

struct peers;

/* |c| outlives it, and so do its hosts. NULL: no memory. */
struct peers *peers_create(const struct cluster *c);

/* One more step. False: all is collected. */
bool peers_collect(struct peers *p);

void peers_free(struct peers *p);

/* How an endpoint is. */
struct peer_state {
    const char *text; /* "healthy", ..., "draining", "needs_human" */
    span_ns since;
    uint32_t share; /* thousandths of a fair one */
    uint32_t in_flight;
    uint32_t times_out;
};

void peers_state(const struct peers *p, uint32_t endpoint, mono_ns now, struct peer_state *out);

/* One endpoint's attempts in one class. */
struct peer_row {
    uint64_t requests; /* attempts that have ended */
    uint64_t errors;   /* 5xx */
    uint64_t timeouts;
    uint64_t resets;              /* reset, cut */
    uint64_t connects;            /* that failed */
    double us[PEER_QUANTILES];    /* of the latest answers; negative: too few */
    double times[PEER_QUANTILES]; /* of the median of its peers' ones; negative: not known */
};

/* False: nothing was seen of it. */
bool peers_row(const struct peers *p, uint32_t endpoint, uint32_t class, struct peer_row *out);

#endif
