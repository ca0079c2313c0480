/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of DestinationRules: what the entry for a port, or a subset, does not inherit. */
#include "control/config_resolve.h"
#include "control/lint_trap.h"

static const struct config_policy *top(const struct lint_subject *s)
{
    return s->cluster_written->rule != NULL ? &s->cluster_written->rule->spec.policy : NULL;
}

/* A block that is above and not below, or NULL. */
static const struct config_node *missing(const struct field_head *above,
                                         const struct field_head *below)
{
    return below->node == NULL ? above->node : NULL;
}

LINT_TRAP(lint_port_drops_blocks)
{
    const struct config_policy *policy = top(s);
    const struct config_port_policy *port;
    const struct config_node *pool, *outlier;

    if (policy == NULL || s->cluster_written->subset != NULL)
        return NULL;
    port = config_resolve_entry(policy, s->cluster_written->port);
    if (port == NULL)
        return NULL;
    pool = missing(&policy->pool.head, &port->pool.head);
    outlier = missing(&policy->outlier.head, &port->outlier.head);
    if (pool == NULL && outlier == NULL)
        return NULL;
    lint_say(&w->why,
             "the entry for port %u replaces all of the rule's trafficPolicy and inherits nothing: "
             "%s%s%s (line %u) %s not hold for it, as if nobody had written %s",
             port->port.number, pool != NULL ? "connectionPool" : "",
             pool != NULL && outlier != NULL ? " and " : "",
             outlier != NULL ? "outlierDetection" : "",
             pool != NULL ? pool->key->line : outlier->key->line,
             pool != NULL && outlier != NULL ? "do" : "does",
             pool != NULL && outlier != NULL ? "them" : "it");
    lint_say(&w->instead, "the same block%s in this entry, with what is meant for this port",
             pool != NULL && outlier != NULL ? "s" : "");
    return port->head.node;
}

LINT_TRAP(lint_subset_drops_blocks)
{
    const struct config_subset *subset = s->cluster_written->subset;
    const struct config_policy *policy = top(s);
    const struct config_node *lost;
    const char *half = "tcp";

    if (policy == NULL || subset == NULL || subset->policy.pool.head.node == NULL ||
        policy->pool.head.node == NULL)
        return NULL;
    lost = missing(&policy->pool.tcp.head, &subset->policy.pool.tcp.head);
    if (lost == NULL) {
        half = "http";
        lost = missing(&policy->pool.http.head, &subset->policy.pool.http.head);
    }
    if (lost == NULL)
        return NULL;
    lint_say(&w->why,
             "a subset's connectionPool replaces the rule's as a whole, it is not merged with it: "
             "connectionPool.%s of line %u does not hold for it",
             half, lost->key->line);
    lint_say(&w->instead, "%s: here as well, with the keys of line %u", half, lost->key->line);
    return subset->policy.pool.head.node->key;
}
