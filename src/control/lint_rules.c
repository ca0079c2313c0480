/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of resilience.rules: rules that cannot act, and one that acts too soon. */
#include "control/lint_trap.h"
#include "policy/detect_rules.h"

static const struct field_items *written(const struct lint_subject *s)
{
    return &s->cluster_written->resilience.rules;
}

static const struct detection_config *detection(const struct lint_subject *s)
{
    return &s->cluster->detection;
}

/* Rule |i| as it stands in the file. */
static const struct config_node *node_of(const struct lint_subject *s, uint32_t i)
{
    const struct config_detect_rule *each = written(s)->at;

    return each[i].head.node;
}

static bool given(const struct lint_subject *s)
{
    return written(s)->node != NULL && written(s)->count > 0 &&
           written(s)->count == detection(s)->rule_count;
}

LINT_TRAP(lint_rules_only_counted)
{
    if (!given(s) || detection(s)->rules_act)
        return NULL;
    if (!detection(s)->on)
        lint_say(&w->why,
                 "with `semantics: envoy` nothing is learnt beyond outlierDetection: %u "
                 "rules are never asked",
                 written(s)->count);
    else
        lint_say(&w->why,
                 "with profile %s rules eject nobody: what they find is only counted "
                 "(ejections_detected_rules)",
                 detection_profile_text(detection(s)->profile));
    lint_say(&w->instead, "profile: rules beside them, or profile: adaptive, which they add to");
    return written(s)->node->key != NULL ? written(s)->node->key : written(s)->node;
}

LINT_TRAP(lint_rule_lacks_peers)
{
    uint32_t hosts = lint_hosts(s);

    for (uint32_t i = 0; given(s) && hosts > 0 && hosts <= RULE_PEERS_LEAST; i++) {
        const struct rule *r = &detection(s)->rules[i];

        if (i == detection(s)->rule_count)
            return NULL;
        if (rule_kind_of(r->signal) != RULE_OF_MULTIPLE)
            continue;
        lint_say(&w->why,
                 "%s compares a host with the median of its peers, of whom there must be %u; of "
                 "%u endpoints each has %u: it never acts",
                 rule_signal_text(r->signal), RULE_PEERS_LEAST, hosts, hosts - 1);
        lint_say(&w->instead, "at least %u endpoints, or no such rule", RULE_PEERS_LEAST + 1);
        return lint_at(node_of(s, i), "signal");
    }
    return NULL;
}

LINT_TRAP(lint_rule_one_failure)
{
    for (uint32_t i = 0; given(s) && i < detection(s)->rule_count; i++) {
        const struct rule *r = &detection(s)->rules[i];

        if (!detection(s)->rules_act || r->at_least != 1)
            continue;
        lint_say(&w->why,
                 "%s at least 1: a single failure takes a host out for %s or more; with one in "
                 "1,000 requests and 100 requests a second that is one ejection every 10 s",
                 rule_signal_text(r->signal), lint_span(detection(s)->life.base).text);
        lint_say(&w->instead, "atLeast: 3 or more");
        return lint_at(node_of(s, i), "atLeast");
    }
    return NULL;
}
