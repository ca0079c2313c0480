/* SPDX-License-Identifier: Apache-2.0 */
#include "control/config_resolve.h"

/* The blocks that a port's entry can have: its absent ones are absent in the result. */
#define PORT_BLOCKS(X)                                                                             \
    X(pool, "connectionPool")                                                                      \
    X(outlier, "outlierDetection")                                                                 \
    X(balancer, "loadBalancer")                                                                    \
    X(tls, "tls")

const struct config_port_policy *config_resolve_entry(const struct config_policy *policy,
                                                      uint32_t port)
{
    const struct config_port_policy *entries = policy->ports.at;

    for (uint32_t i = 0; i < policy->ports.count; i++)
        if (entries[i].port.number == port)
            return &entries[i];
    return NULL;
}

void config_resolve_none(struct config_policy *out)
{
    *out = (struct config_policy){.head = {NULL}};
    fields_preset(&config_policy_fields, out);
}

static void take_entry(struct config_policy *policy, const struct config_port_policy *entry)
{
    policy->head = entry->head;
#define X(block, name) policy->block = entry->block;
    PORT_BLOCKS(X)
#undef X
}

void config_resolve_port(const struct config_policy *policy, uint32_t port,
                         struct config_policy *out)
{
    const struct config_port_policy *entry = config_resolve_entry(policy, port);

    if (entry == NULL) {
        *out = *policy;
    } else {
        config_resolve_none(out);
        take_entry(out, entry);
    }
    out->ports = (struct field_items){.node = NULL};
}

void config_resolve_subset(const struct config_policy *subset, uint32_t port,
                           struct config_policy *policy)
{
    const struct config_port_policy *entry = config_resolve_entry(subset, port);

    if (subset->head.node == NULL)
        return;
    if (subset->retry_budget.head.node != NULL)
        policy->retry_budget = subset->retry_budget;
    if (entry != NULL) {
        take_entry(policy, entry);
        return;
    }
#define X(block, name)                                                                             \
    if (subset->block.head.node != NULL)                                                           \
        policy->block = subset->block;
    PORT_BLOCKS(X)
#undef X
}

struct config_clash config_resolve_both(struct config_policy *policy,
                                        const struct config_policy *other)
{
#define X(block, name)                                                                             \
    if (policy->block.head.node == NULL)                                                           \
        policy->block = other->block;                                                              \
    else if (other->block.head.node != NULL)                                                       \
        return (struct config_clash){name, policy->block.head.node, other->block.head.node};
    PORT_BLOCKS(X)
    X(retry_budget, "retryBudget")
#undef X
    return (struct config_clash){.block = NULL};
}

enum lb_kind config_resolve_balancer(const struct config_balancer *balancer)
{
    static const enum lb_kind kinds[] = {LB_P2C, LB_P2C, LB_P2C, LB_ROUND_ROBIN, LB_RANDOM};

    return balancer->simple < sizeof(kinds) / sizeof(kinds[0]) ? kinds[balancer->simple] : LB_P2C;
}
