/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of connectionPool: what a limit does not limit. */
#include <inttypes.h>

#include "control/lint_trap.h"

static const struct config_node *tcp(const struct lint_subject *s)
{
    return s->cluster_written->policy.pool.tcp.head.node;
}

static const struct config_node *http(const struct lint_subject *s)
{
    return s->cluster_written->policy.pool.http.head.node;
}

LINT_TRAP(lint_connections_not_requests)
{
    const struct circuit_limits *l = &s->cluster->limits;

    if (l->max_connections == LIMIT_NONE || l->max_requests != LIMIT_NONE ||
        l->host.max_requests != LIMIT_NONE)
        return NULL;
    lint_say(&w->why,
             "maxConnections %u bounds connections, not requests: on HTTP/1.1 request %u waits for "
             "one, on HTTP/2 one connection carries 1,024 requests at once or as many as the host "
             "allows, so that %u connections are %" PRIu64 " requests",
             l->max_connections, l->max_connections + 1, l->max_connections,
             UINT64_C(1024) * l->max_connections);
    lint_say(&w->instead,
             "http.http2MaxRequests: %u to bound what is under way (it holds for HTTP/1.1 too)",
             l->max_connections);
    return lint_at(tcp(s), "maxConnections");
}

LINT_TRAP(lint_waiting_unbounded)
{
    const struct circuit_limits *l = &s->cluster->limits;

    if (l->max_connections == LIMIT_NONE || l->max_pending != LIMIT_NONE ||
        l->max_requests != LIMIT_NONE || l->queue_timeout != MONO_NEVER)
        return NULL;
    lint_say(&w->why,
             "maxConnections %u refuses nobody: request %u and all after it wait for a connection, "
             "any number of them, each until its route's timeout",
             l->max_connections, l->max_connections + 1);
    lint_say(&w->instead,
             "http.http1MaxPendingRequests: as many as %u connections work off while a caller "
             "still waits; for answers of 100 ms and a wait of 1 s that is %" PRIu64
             "; or resilience.queueTimeout: 1s",
             l->max_connections, UINT64_C(10) * l->max_connections);
    return lint_at(tcp(s), "maxConnections");
}

/*
 * Who waits for a connect of its own takes a place among the pending where there is no
 * maxConnections, or where the limits are Envoy's (docs/decisions.md).
 */
LINT_TRAP(lint_queue_below_connections)
{
    const struct circuit_limits *l = &s->cluster->limits;
    bool bounded = l->max_connections != LIMIT_NONE;
    bool at_hosts = as_envoy(s->cluster->differences, DIFFERENCE_QUEUE_PER_HOST);
    uint32_t places = bounded ? l->max_connections : lint_hosts(s);

    if (l->max_pending == LIMIT_NONE || (bounded && !at_hosts) || l->max_pending >= places)
        return NULL;
    lint_say(&w->why,
             "a request without an idle connection takes a place among the pending while one is "
             "opened for it: of %u that come at once after a start or an ejection, %u wait%s and "
             "%u are refused (503 UO), although %s",
             places, l->max_pending, l->max_pending == 1 ? "s" : "", places - l->max_pending,
             bounded ? "maxConnections has room for all" : "there is an idle host for each");
    lint_say(&w->instead, "http1MaxPendingRequests: %u or more%s", places,
             bounded ? "" : ", or a maxConnections, with which a connect takes no such place");
    return lint_at(http(s), "http1MaxPendingRequests");
}

LINT_TRAP(lint_no_keep_alive)
{
    if (s->cluster->limits.max_requests_per_connection != 1)
        return NULL;
    lint_say(&w->why, "maxRequestsPerConnection 1: each request opens a connection of its own and "
                      "pays a round trip (or three with TLS) for it; at 1,000 requests a second "
                      "60,000 ports wait in TIME_WAIT, of about 28,000 that there are to a host");
    lint_say(&w->instead, "maxRequestsPerConnection: 1000, or leave it out (no limit)");
    return lint_at(http(s), "maxRequestsPerConnection");
}

LINT_TRAP(lint_zero_limit)
{
    static const char *const keys[] = {"maxConnections", "http1MaxPendingRequests",
                                       "http2MaxRequests", "maxRetries", NULL};

    for (unsigned i = 0; keys[i] != NULL; i++) {
        const struct config_node *in = i == 0 ? tcp(s) : http(s);

        if (!lint_written_zero(in, keys[i]))
            continue;
        lint_say(&w->why, "%s 0 is, in Istio's words, as if it were not written: no limit",
                 keys[i]);
        lint_say(&w->instead, "%s: 1, the smallest limit there is, or leave it out", keys[i]);
        return lint_at(in, keys[i]);
    }
    return NULL;
}
