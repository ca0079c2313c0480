/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of timeouts: those that are not there, and those that cannot fire. */
#include <inttypes.h>

#include "control/lint_trap.h"

/* A timeout of more p99s than that protects nobody from a slow host. */
#define TIMEOUT_P99S 2

/* The route's own word, else the cluster's; 0: not said. */
static span_ns expected_p99(const struct lint_subject *s)
{
    span_ns own = s->route_written->expect.p99;

    return own != 0 ? own : s->cluster_written->expect.p99;
}

static const struct config_node *node(const struct lint_subject *s)
{
    return s->route_written->head.node;
}

LINT_TRAP(lint_timeout_absent)
{
    span_ns p99 = expected_p99(s);

    if (lint_written(node(s), "timeout"))
        return NULL;
    lint_say(&w->why,
             "no timeout: %s applies, so one host that hangs holds each of its callers "
             "that long",
             lint_span(s->route->timeout).text);
    if (p99 != 0)
        lint_say(&w->instead, "timeout: %s, twice the expected p99 of %s",
                 lint_span(TIMEOUT_P99S * p99).text, lint_span(p99).text);
    else
        lint_say(&w->instead, "timeout: twice what 99 of 100 answers need (and say that in expect: "
                              "{p99: ...}); timeout: none, if this route really has none");
    return node(s);
}

LINT_TRAP(lint_timeout_none)
{
    if (!lint_written(node(s), "timeout") || s->route->timeout != MONO_NEVER)
        return NULL;
    if (s->route->idle_timeout == MONO_NEVER)
        lint_say(&w->why,
                 "neither a timeout nor an idleTimeout: a host that hangs holds a request, "
                 "its connection and its caller for ever, and is never blamed for it");
    else
        lint_say(&w->why,
                 "no timeout: a host that hangs holds a request until nothing has moved "
                 "for %s (idleTimeout), and one that answers a byte a minute for ever",
                 lint_span(s->route->idle_timeout).text);
    lint_say(&w->instead,
             "timeout: twice the p99 for requests that end; a route of their own, with "
             "this trap accepted, for streams that do not");
    return lint_at(node(s), "timeout");
}

LINT_TRAP(lint_timeout_over_p99)
{
    span_ns p99 = expected_p99(s);

    if (p99 == 0 || !lint_written(node(s), "timeout") || s->route->timeout == MONO_NEVER ||
        s->route->timeout <= TIMEOUT_P99S * p99)
        return NULL;
    lint_say(&w->why,
             "timeout %s is %" PRIu64 ".%" PRIu64
             " times the expected p99 of %s: a caller of a bad "
             "host waits that long for an answer that will not come, and at 100 requests a second "
             "%" PRIu64 " of them hang at once",
             lint_span(s->route->timeout).text, s->route->timeout / p99,
             s->route->timeout % p99 * 10 / p99, lint_span(p99).text,
             100 * (s->route->timeout / NS_PER_MS) / 1000);
    lint_say(&w->instead, "timeout: %s", lint_span(TIMEOUT_P99S * p99).text);
    return lint_at(node(s), "timeout");
}

LINT_TRAP(lint_timeout_under_p99)
{
    span_ns p99 = expected_p99(s);

    if (p99 == 0 || s->route->timeout >= p99)
        return NULL;
    lint_say(&w->why,
             "timeout %s is less than the expected p99 of %s: on a good day more than one request "
             "in 100 gets 504 UT, and its host is blamed",
             lint_span(s->route->timeout).text, lint_span(p99).text);
    lint_say(&w->instead, "timeout: %s", lint_span(TIMEOUT_P99S * p99).text);
    return lint_at(node(s), "timeout");
}

LINT_TRAP(lint_per_try_never_fires)
{
    const struct route *r = s->route;

    if (r->per_try_timeout == MONO_NEVER || r->per_try_timeout < r->timeout)
        return NULL;
    lint_say(&w->why,
             "perTryTimeout %s never fires: the request is over at timeout %s, and no time is left "
             "for another attempt",
             lint_span(r->per_try_timeout).text, lint_span(r->timeout).text);
    lint_say(&w->instead, "perTryTimeout: %s, which leaves as much for a second attempt",
             lint_span(r->timeout / 2 / NS_PER_MS * NS_PER_MS).text);
    return lint_at(node(s), "perTryTimeout");
}

LINT_TRAP(lint_connect_never_fires)
{
    const struct cluster *c = s->cluster;

    if (s->route->timeout == MONO_NEVER || c->connect_timeout < s->route->timeout)
        return NULL;
    lint_say(&w->why,
             "the cluster's connectTimeout is %s%s and the request is over at timeout %s: a host "
             "that drops packets is not found out before, and no time is left to go to another",
             lint_span(c->connect_timeout).text,
             lint_written(s->cluster_written->head.node, "connectTimeout") ||
                     lint_written(s->cluster_written->policy.pool.tcp.head.node, "connectTimeout")
                 ? ""
                 : " (where nothing is written)",
             lint_span(s->route->timeout).text);
    lint_say(&w->instead,
             "connectTimeout: 300ms in cluster '%.*s' (a connect inside a site takes "
             "a few), or a longer timeout here",
             (int)c->name.len, (const char *)c->name.data);
    return lint_at(node(s), "timeout");
}

LINT_TRAP(lint_queue_never_over)
{
    const struct circuit_limits *l = &s->cluster->limits;

    if (l->queue_timeout == MONO_NEVER || s->route->timeout == MONO_NEVER ||
        l->queue_timeout < s->route->timeout)
        return NULL;
    lint_say(
        &w->why,
        "the cluster's queueTimeout %s never fires: the request is over at timeout %s (504 UT), "
        "so that a full queue looks like a slow host",
        lint_span(l->queue_timeout).text, lint_span(s->route->timeout).text);
    lint_say(&w->instead,
             "queueTimeout: %s in cluster '%.*s', a quarter of it, or a longer timeout",
             lint_span(s->route->timeout / 4 / NS_PER_MS * NS_PER_MS).text,
             (int)s->cluster->name.len, (const char *)s->cluster->name.data);
    return lint_at(node(s), "timeout");
}
