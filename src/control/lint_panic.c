/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of minHealthPercent: panic that is off, late, or out of reach. */
#include "control/lint_trap.h"
#include "control/reach.h"

static const struct config_node *block(const struct lint_subject *s)
{
    return s->cluster_written->policy.outlier.head.node;
}

bool lint_can_be_empty(const struct lint_subject *s)
{
    const struct cluster *c = s->cluster;
    uint32_t hosts = lint_hosts(s);
    struct reach r;

    return hosts > 0 && reach_compute(&c->outlier, hosts, &r) && r.by_evidence == hosts &&
           (c->panic.policy == PANIC_FAIL_FAST || !panic_is_on(&c->panic, 0, hosts));
}

LINT_TRAP(lint_cap_empties_cluster)
{
    const struct outlier_config *o = &s->cluster->outlier;
    uint32_t hosts = lint_hosts(s);

    if (block(s) == NULL || !lint_can_be_empty(s))
        return NULL;
    lint_say(&w->why,
             "maxEjectionPercent %u of %u hosts is %u: %u failures in a row of each, and every "
             "request gets 503 UH for %s to %s, even if all hosts are well again a second later",
             o->max_ejection_percent, hosts, hosts, o->consecutive_5xx,
             lint_span(o->base_ejection).text, lint_span(o->base_ejection + o->interval).text);
    lint_say(&w->instead,
             "minHealthPercent: 50, so that all serve when fewer than half are healthy, or "
             "maxEjectionPercent: %u, which keeps one in",
             100 * (hosts - 1) / hosts);
    return lint_at(block(s), "maxEjectionPercent");
}

LINT_TRAP(lint_min_health_zero)
{
    if (!lint_written_zero(block(s), "minHealthPercent"))
        return NULL;
    lint_say(&w->why, "minHealthPercent 0 is panic off, as if it were not written: when no host is "
                      "healthy every request gets 503 UH, though some host might answer");
    lint_say(&w->instead, "minHealthPercent: 50, which lets all serve when fewer than half are "
                          "healthy, or leave it out");
    return lint_at(block(s), "minHealthPercent");
}

/* How many hosts are left where as many are out as can be; false: no panic is asked for. */
static bool left(const struct lint_subject *s, uint32_t *healthy)
{
    const struct cluster *c = s->cluster;
    struct reach r;

    if (block(s) == NULL || c->panic.threshold == 0 || lint_hosts(s) == 0 ||
        !reach_compute(&c->outlier, lint_hosts(s), &r))
        return false;
    *healthy = lint_hosts(s) - r.by_evidence;
    return true;
}

/* The least cap with which so many can be out that there is panic; 0: there is none. */
static uint32_t percent_for_panic(const struct cluster *c, uint32_t hosts)
{
    struct outlier_config config = c->outlier;
    struct reach r;
    uint32_t from;

    if (!reach_panic(&c->panic, hosts, &from))
        return 0;
    config.max_ejection_percent = (100 * (hosts - from) + hosts - 1) / hosts;
    if (!reach_compute(&config, hosts, &r) || hosts - r.by_evidence > from)
        return 0;
    return config.max_ejection_percent;
}

LINT_TRAP(lint_min_health_cannot_act)
{
    const struct cluster *c = s->cluster;
    uint32_t hosts = lint_hosts(s);
    uint32_t healthy, percent;

    if (!left(s, &healthy) || panic_is_on(&c->panic, healthy, hosts))
        return NULL;
    lint_say(&w->why,
             "minHealthPercent %u is panic below %u %% healthy hosts, but at most %u of %u can be "
             "ejected (maxEjectionPercent %u): %u.%u %% stay healthy, ",
             c->panic.threshold, c->panic.threshold, hosts - healthy, hosts,
             c->outlier.max_ejection_percent, 100 * healthy / hosts, 1000 * healthy / hosts % 10);
    if (100 * healthy >= c->panic.threshold * hosts)
        lint_say(&w->why, "which is not fewer: it never acts");
    else
        lint_say(&w->why, "and there is no panic while 71.43 %% or more are: it never acts");
    percent = percent_for_panic(c, hosts);
    if (percent > 0)
        lint_say(&w->instead,
                 "maxEjectionPercent: %u, with which it can come to that; or leave "
                 "minHealthPercent out, if the cap is what is meant to protect",
                 percent);
    else
        text_str(&w->instead, "no minHealthPercent: no cap lets it come to that here");
    return lint_at(block(s), "minHealthPercent");
}

LINT_TRAP(lint_min_health_late)
{
    const struct cluster *c = s->cluster;
    uint32_t hosts = lint_hosts(s);
    uint32_t healthy, from;

    if (!left(s, &healthy) || !panic_is_on(&c->panic, healthy, hosts) ||
        !reach_panic(&c->panic, hosts, &from))
        return NULL;
    if (100 * (from + 1) >= c->panic.threshold * hosts)
        return NULL;
    lint_say(
        &w->why,
        "minHealthPercent %u does not act at %u of %u healthy hosts (%u %%): there is no panic "
        "while 71.43 %% or more are healthy, so it begins at %u of %u",
        c->panic.threshold, from + 1, hosts, 100 * (from + 1) / hosts, from, hosts);
    lint_say(&w->instead, "minHealthPercent: %u, which says when it begins",
             100 * from / hosts + 1);
    return lint_at(block(s), "minHealthPercent");
}
