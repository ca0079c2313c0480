/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of success rate and failure percentage: sets of hosts too small for them. */
#include "control/lint_trap.h"

static const struct config_outlier_more *written(const struct lint_subject *s)
{
    return &s->cluster_written->resilience.outlier;
}

static bool enforced(const struct outlier_config *c, enum outlier_trigger a, enum outlier_trigger b)
{
    return c->enabled && (c->enforcing[a] > 0 || (c->split && c->enforcing[b] > 0));
}

static const struct config_node *too_few(const struct lint_subject *s, struct lint_words *w,
                                         uint32_t needed, const struct config_node *at)
{
    lint_say(&w->why,
             "it looks only where minimumHosts %u have requests enough in an interval, and there "
             "are %u: it never acts",
             needed, s->cluster->endpoint_count);
    lint_say(&w->instead, "minimumHosts: %u, or consecutive5xxErrors instead, which need no peers",
             s->cluster->endpoint_count);
    return lint_at(at, "minimumHosts");
}

LINT_TRAP(lint_rates_too_few_hosts)
{
    const struct outlier_config *c = &s->cluster->outlier;
    uint32_t hosts = lint_hosts(s);

    if (hosts == 0)
        return NULL;
    if (enforced(c, OUTLIER_SUCCESS_RATE, OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN) &&
        written(s)->success_rate.head.node != NULL && hosts < c->rates.success_hosts)
        return too_few(s, w, c->rates.success_hosts, written(s)->success_rate.head.node);
    if (enforced(c, OUTLIER_FAILURE_PERCENTAGE, OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN) &&
        written(s)->failure_percentage.head.node != NULL && hosts < c->rates.failure_hosts)
        return too_few(s, w, c->rates.failure_hosts, written(s)->failure_percentage.head.node);
    return NULL;
}

/* sqrt(hosts - 1) in thousandths, rounded down. */
static uint32_t farthest(uint32_t hosts)
{
    uint64_t square = UINT64_C(1000000) * (hosts - 1);
    uint64_t root = 0;

    while ((root + 1) * (root + 1) <= square)
        root++;
    return (uint32_t)root;
}

/* More hosts than this are as far apart as any factor; the root is not looked for. */
#define FACTOR_HOSTS_MAX 1000u

LINT_TRAP(lint_success_rate_blind)
{
    const struct outlier_config *c = &s->cluster->outlier;
    uint32_t hosts = lint_hosts(s);

    if (!enforced(c, OUTLIER_SUCCESS_RATE, OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN) ||
        written(s)->success_rate.head.node == NULL || hosts < c->rates.success_hosts || hosts < 2 ||
        hosts > FACTOR_HOSTS_MAX || farthest(hosts) > c->rates.success_factor)
        return NULL;
    lint_say(
        &w->why,
        "one bad host among %u is always sqrt(%u - 1) = %u.%03u standard deviations below the "
        "mean, however bad it is, and stdevFactor %u asks for more than %u.%03u: it never goes",
        hosts, hosts, farthest(hosts) / 1000, farthest(hosts) % 1000, c->rates.success_factor,
        c->rates.success_factor / 1000, c->rates.success_factor % 1000);
    lint_say(&w->instead,
             "stdevFactor: %u, or failurePercentage instead, which asks each host alone",
             farthest(hosts) * 9 / 10);
    return lint_at(written(s)->success_rate.head.node, "stdevFactor");
}
