/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of a cluster as an operator is told of them: by the name they are configured under,
 * with the present use, the counter that rises where they cut, and what a request sees then.
 */
#ifndef MODEL_LIMIT_ROWS_H
#define MODEL_LIMIT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/limit.h"
#include "stats/metrics.h"

struct cluster;

#define LIMIT_ROWS(X)                                                                              \
    X(CONNECTIONS, "maxConnections", upstream_cx_overflow, "requests wait")                        \
    X(PENDING, "http1MaxPendingRequests", upstream_rq_pending_overflow, "503 UO")                  \
    X(REQUESTS, "http2MaxRequests", upstream_rq_active_overflow, "503 UO")                         \
    X(RETRIES, "maxRetries", retry_places_refused, "the failure is passed on, UO")                 \
    X(BUDGET, "resilience.retryBudget", retry_budget_refused, "the failure is passed on, UO")

#define X(name, key, metric, effect) LIMIT_ROW_##name,
enum limit_row_kind { LIMIT_ROWS(X) LIMIT_ROW_COUNT };
#undef X

struct limit_row {
    const char *key;
    const char *effect;
    enum cluster_metric cut;
    uint32_t most; /* LIMIT_NONE: no limit */
    uint32_t used;
};

/* How many retries there may be at once: maxRetries, or what Istio's retryBudget makes of it now.
 */
uint32_t limit_retries_max(const struct cluster *c);

struct limit_row limit_row_of(const struct cluster *c, enum limit_row_kind kind);

static inline bool limit_row_reached(const struct limit_row *r)
{
    return r->most != LIMIT_NONE && r->used >= r->most;
}

/* A limit at work, as the control thread has seen it; kept with the cluster's state. */
struct limit_episode {
    uint64_t seen;   /* of the counter, at the last look */
    uint64_t before; /* the same, when the episode began */
    mono_ns last;    /* look at which it had risen */
    bool on;
};

#endif
