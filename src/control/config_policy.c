/* SPDX-License-Identifier: Apache-2.0 */
#include "control/config_policy.h"

/* Entries of one portLevelSettings. */
#define PORTS_MAX 1000u

static void add_error(struct config_errors *errors, const struct config_node *at,
                      const char *message)
{
    config_errors_at(errors, at->source);
    config_error_add(errors, at->line, at->column, message, NULL);
}

static void check_outlier(struct config_errors *errors, const struct config_outlier *outlier)
{
    const struct config_node *local =
        config_node_find(outlier->head.node, "consecutiveLocalOriginFailures");

    if (local == NULL || outlier->is.split || bytes_equal(local->text, BYTES("0")))
        return;
    add_error(errors, local->key,
              "'consecutiveLocalOriginFailures' only counts with 'splitExternalLocalOriginErrors: "
              "on': outlier detection consecutive local origin failures is specified, but split "
              "external local origin errors is set to false");
}

static void check_entry(struct config_errors *errors, const struct config_port_policy *entries,
                        uint32_t i)
{
    const struct config_port_policy *entry = &entries[i];

    if (entry->head.node == NULL)
        return;
    check_outlier(errors, &entry->outlier);
    if (entry->pool.head.node == NULL && entry->outlier.head.node == NULL &&
        entry->balancer.head.node == NULL && entry->tls.head.node == NULL)
        add_error(errors, entry->head.node,
                  "port traffic policy must have at least one field: connectionPool, "
                  "outlierDetection, loadBalancer or tls");
    for (uint32_t k = 0; k < i; k++) {
        if (entries[k].port.number != entry->port.number || entry->port.number == 0)
            continue;
        add_error(errors, entry->head.node, "an entry for the same port is there already");
        return;
    }
}

void config_policy_check(struct config_errors *errors, const struct config_policy *policy)
{
    check_outlier(errors, &policy->outlier);
    if (policy->ports.count > PORTS_MAX) {
        add_error(errors, policy->ports.node, "more than 1000 ports");
        return;
    }
    for (uint32_t i = 0; i < policy->ports.count && !config_errors_full(errors); i++)
        check_entry(errors, policy->ports.at, i);
}

void config_policy_of_rule(const struct config_rule *rule, uint32_t port, struct config_policy *out)
{
    if (rule != NULL)
        config_resolve_port(&rule->spec.policy, port, out);
    else
        config_resolve_none(out);
}
