/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evidence about one host, shared by all workers: runs of failures, and the requests of the
 * interval under way. Each outcome of an attempt is fed to it; it says at once when a run is full.
 *
 * With `split`, a connect that works does not end the run of local failures, only an answer does:
 * so a host that accepts and never answers does not escape (difference connectEndsLocalRun).
 */
#ifndef POLICY_OUTLIER_RUNS_H
#define POLICY_OUTLIER_RUNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/outlier.h"

/* What became of one attempt that was really made. What the proxy itself refused is never one. */
enum outlier_report {
    OUTLIER_CONNECTED,      /* a connection was opened for it */
    OUTLIER_REUSED,         /* a connection was there for it */
    OUTLIER_ANSWERED,       /* response head; with its status */
    OUTLIER_TIMED_OUT,      /* no response head in time, though the request was sent */
    OUTLIER_CONNECT_FAILED, /* refused, unreachable, connect timeout */
    OUTLIER_RESET           /* broken after connect, or an answer that is no HTTP */
};

/* Of the interval under way. */
struct outlier_bucket {
    _Atomic uint32_t success;
    _Atomic uint32_t failure;
};

/* Shared by all workers; fields only touched by outlier_runs.c. */
struct outlier_runs {
    _Atomic uint32_t run_5xx;
    _Atomic uint32_t run_gateway;
    _Atomic uint32_t run_local;
    _Atomic uint32_t without_success; /* attempts since the last success (status < 500) */
    _Atomic uint32_t refused;       /* connect failures since a connect worked or an answer came */
    _Atomic uint64_t failing_since; /* mono_ns of the first of |without_success|; or MONO_NEVER */
    _Atomic uint64_t refused_since; /* mono_ns of the first of |refused|; or MONO_NEVER */
    _Atomic uint64_t last_success;  /* mono_ns; 0: never */
    struct outlier_bucket buckets[OUTLIER_ORIGIN_COUNT];
};

void outlier_runs_init(struct outlier_runs *r);

/*
 * Any worker. |status| only for OUTLIER_ANSWERED. A trigger is said with each full run. The caller
 * tells the judge; where a message is lost, the next full run triggers again.
 */
outlier_triggers outlier_learn(struct outlier_runs *r, const struct outlier_config *c,
                               enum outlier_report report, uint32_t status, mono_ns now);

/* What follows is for the judge. */

/* The run of |t| begins anew: called after the judge considered a trigger, whatever it said. */
void outlier_runs_restart(struct outlier_runs *r, enum outlier_trigger t);

/* All runs begin anew. */
void outlier_runs_restart_all(struct outlier_runs *r);

/* All that was held against the host is forgotten. */
void outlier_runs_forgive(struct outlier_runs *r);

struct outlier_count {
    uint64_t total;
    uint64_t success;
};

/* The interval is over: what was counted in it. A new one begins. */
struct outlier_count outlier_runs_take(struct outlier_runs *r, enum outlier_origin origin);

/*
 * Total evidence: no success in 20 attempts and 5 s, or every connect refused in 5 attempts and
 * 1 s. Since when; MONO_NEVER: there is none.
 */
#define OUTLIER_FAILING_ATTEMPTS 20
#define OUTLIER_FAILING_SPAN     (5 * NS_PER_S)
#define OUTLIER_REFUSED_ATTEMPTS 5
#define OUTLIER_REFUSED_SPAN     (1 * NS_PER_S)

mono_ns outlier_total_evidence(const struct outlier_runs *r, mono_ns now);

/* Is it fine, as a peer of a host that has been failing since |trouble|? It had a success since
 * then, in the last 10 s, and has no total evidence against itself. */
#define OUTLIER_PEER_FINE_SPAN (10 * NS_PER_S)

bool outlier_fine(const struct outlier_runs *r, mono_ns trouble, mono_ns now);

#endif
