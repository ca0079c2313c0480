/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of detection: what it will not see, who will not come back, which word does not hold. */
#include <math.h>

#include "control/detection_reach.h"
#include "control/lint_trap.h"

#define PEERS_LEAST 3 /* hosts, for latency to be compared */

static const struct config_resilience *own(const struct lint_subject *s)
{
    return &s->cluster_written->resilience;
}

static const struct config_node *block(const struct lint_subject *s)
{
    return s->cluster_written->policy.outlier.head.node;
}

static bool adaptive(const struct lint_subject *s)
{
    return s->cluster->detection.on && s->cluster->detection.profile == PROFILE_ADAPTIVE;
}

static const struct config_node *at_profile(const struct lint_subject *s)
{
    return lint_at(own(s)->head.node, "profile");
}

LINT_TRAP(lint_adaptive_few_peers)
{
    uint32_t hosts = lint_hosts(s);

    if (!adaptive(s) || hosts == 0 || hosts >= PEERS_LEAST)
        return NULL;
    lint_say(&w->why,
             "a host's latency is compared with the median of two others at least, and it has %u: "
             "a slow host is never ejected for being slow",
             hosts - 1);
    lint_say(&w->instead,
             "at least %u endpoints; until then a timeout near the p99 makes slowness "
             "a failure, which is seen with two",
             PEERS_LEAST);
    return at_profile(s);
}

LINT_TRAP(lint_detection_blind)
{
    const struct detect_config *c = &s->cluster->detection.detect;

    if (!adaptive(s) || c->latency || c->errors || c->connections)
        return NULL;
    lint_say(&w->why, "latency, errors and connections are all off: of the six lines of evidence "
                      "of profile adaptive none is left");
    lint_say(&w->instead,
             "detect: {latency: on, errors: on, connections: on}, or profile: starter");
    return own(s)->detect.head.node->key;
}

/* --- capacity --- */

#define LOAD_HIGH_PERMILLE 900u

LINT_TRAP(lint_max_load_high)
{
    const struct config_node *at = own(s)->capacity.head.node;
    uint32_t load = own(s)->capacity.max_load_permille;
    uint32_t hosts = lint_hosts(s);
    uint32_t left = (1000 - load) * 1000 / load;

    if (at == NULL || load <= LOAD_HIGH_PERMILLE)
        return NULL;
    lint_say(&w->why, "maxLoad %u.%u %%: ", load / 10, load % 10);
    if (hosts > 1)
        lint_say(&w->why,
                 "of %u hosts one may go while they are at %u %% of the load where latency begins "
                 "to grow; ",
                 hosts, load * (hosts - 1) / hosts / 10);
    lint_say(&w->why,
             "the others then are that near to it, and %u.%u %% more traffic, or retries, takes "
             "them past it (queues grow without end from 100 %%; fleets that retry were seen to "
             "break at 80 to 85 %%)",
             left / 10, left % 10);
    lint_say(&w->instead, "maxLoad: 75%%");
    return lint_at(at, "maxLoad");
}

/* --- the way back --- */

#define FAIRLY_SURE 5 /* successes in a row */

LINT_TRAP(lint_readmit_few_successes)
{
    const struct config_node *at = own(s)->readmit.head.node;
    uint32_t n = own(s)->readmit.successes;

    if (at == NULL || n >= FAIRLY_SURE)
        return NULL;
    lint_say(&w->why,
             "readmit.successes %u: a host that fails every second request passes %s in a row in "
             "one round of %u, and is back; 20 in a row it passes once in 1,048,576",
             n, n == 1 ? "one" : "so many", 1u << n);
    lint_say(&w->instead, "successes: 20");
    return lint_at(at, "successes");
}

static bool pays(const struct retry_budget_config *b)
{
    return b->capacity > 0 && b->earn_permille + b->floor_per_s > 0;
}

LINT_TRAP(lint_probes_without_budget)
{
    const struct retry_budget_config *b = &s->cluster->retry_budget;
    const struct config_node *at = own(s)->retry_budget.head.node;

    if (at == NULL || !s->cluster->outlier.return_on_proof || pays(b))
        return NULL;
    lint_say(&w->why,
             "a host that is out comes back by probes, live requests that are made good elsewhere "
             "where they fail, and the retryBudget pays for that: with ratio %u.%u%%, floor %u/s "
             "and capacity %u ",
             b->earn_permille / 10, b->earn_permille % 10, b->floor_per_s, b->capacity);
    if (b->capacity == 0)
        lint_say(&w->why, "no probe is ever sent, and who is out stays out");
    else
        lint_say(&w->why,
                 "no probe is sent after the first %u that fail, and who is out then "
                 "stays out",
                 b->capacity);
    lint_say(&w->instead, "ratio: 20%%, floor: 3/s, capacity: 10 (a floor of 1/s alone is enough "
                          "for probes)");
    return at->key;
}

static void say_proof(struct text *t, const struct life_config *l)
{
    if (l->quick)
        lint_say(t, "the first %s after it went", lint_span(l->after).text);
    else
        lint_say(t, "the first after a quarantine of %s", lint_span(l->base).text);
}

LINT_TRAP(lint_return_on_proof)
{
    const struct outlier_config *o = &s->cluster->outlier;
    const struct config_outlier *rule = &s->cluster_written->policy.outlier;

    if (block(s) == NULL || !o->return_on_proof)
        return NULL;
    lint_say(&w->why,
             "profile %s beside outlierDetection: our return rule holds for both. A host is back "
             "after %u probes in a row, ",
             detection_profile_text(s->cluster->detection.profile),
             s->cluster->detection.life.successes);
    say_proof(&w->why, &s->cluster->detection.life);
    lint_say(&w->why, ", not by the clock %s to %s after it went (baseEjectionTime, interval)",
             lint_span(rule->is.base_ejection).text,
             lint_span(rule->is.base_ejection + o->interval).text);
    if (rule->is.max_ejection_percent != o->max_ejection_percent)
        lint_say(&w->why, "; and of maxEjectionPercent %u and ejection.cap %u%% the stricter one",
                 rule->is.max_ejection_percent, o->max_ejection_percent);
    lint_say(&w->instead, "no profile, if Envoy's return by the clock is wanted (detection then "
                          "only observes); else accept this");
    return at_profile(s);
}

/* --- words without effect --- */

static const char *idle_beside_rule(const struct config_resilience *r)
{
    if (r->readmit.head.node != NULL)
        return "readmit";
    if (r->capacity.head.node != NULL)
        return "capacity";
    if (r->escalate.head.node != NULL)
        return "escalate";
    return lint_written(r->ejection.head.node, "base") || lint_written(r->ejection.head.node, "max")
               ? "ejection"
               : NULL;
}

static const char *idle_under_envoy(const struct config_resilience *r)
{
    if (lint_written(r->head.node, "profile"))
        return "profile";
    return r->detect.head.node != NULL ? "detect" : idle_beside_rule(r);
}

static const struct config_node *idle(const struct lint_subject *s, struct lint_words *w,
                                      const char *key, const char *why, const char *instead)
{
    lint_say(&w->why, "'%s' does nothing here: %s", key, why);
    lint_say(&w->instead, "%s, or leave '%s' out", instead, key);
    return lint_at(own(s)->head.node, key);
}

LINT_TRAP(lint_detection_idle)
{
    const struct config_resilience *r = own(s);

    if (!s->cluster->detection.on && idle_under_envoy(r) != NULL)
        return idle(s, w, idle_under_envoy(r),
                    "with semantics: envoy there is no detection beyond Envoy's own",
                    "semantics: firebreak");
    if (block(s) != NULL && !lint_written(r->head.node, "profile") && idle_beside_rule(r) != NULL)
        return idle(s, w, idle_beside_rule(r),
                    "beside outlierDetection, and without a profile, detection only observes",
                    "profile: starter beside it");
    if (s->cluster->detection.life.quick || !lint_written(r->readmit.head.node, "after"))
        return NULL;
    lint_say(&w->why,
             "with profile %s the first probe comes after the quarantine (%s, then longer): "
             "readmit.after %s does nothing",
             detection_profile_text(s->cluster->detection.profile),
             lint_span(s->cluster->detection.life.base).text, lint_span(r->readmit.after).text);
    lint_say(&w->instead, "profile: adaptive, or ejection.base for the quarantine");
    return lint_at(r->readmit.head.node, "after");
}

LINT_TRAP(lint_observe_left_on)
{
    uint32_t hosts = lint_hosts(s);

    if (!s->cluster->detection.on || !lint_written(own(s)->head.node, "mode") ||
        s->cluster->detection.mode != DETECTION_OBSERVE)
        return NULL;
    text_str(&w->why, "mode: observe: no share is cut and nobody ejected by detection, whatever it "
                      "finds");
    if (hosts > 1)
        lint_say(&w->why, "; one bad host of %u goes on to spoil 1/%u = %u.%u %% of the requests",
                 hosts, hosts, 100 / hosts, 1000 / hosts % 10);
    lint_say(&w->instead,
             "mode: enforce, once what is logged as endpoint.observed is what you "
             "would have done (docs/adoption.md); until then accept this, with a date");
    return lint_at(own(s)->head.node, "mode");
}

/* --- false alarms --- */

static struct detection_fault seen_by(const struct detect_config *c, uint32_t hosts)
{
    if (c->latency && hosts >= PEERS_LEAST)
        return (struct detection_fault){.rate = 1, .times = 3};
    return (struct detection_fault){.rate = 1, .times = 1, .failing = 0.5};
}

LINT_TRAP(lint_false_alarms_too_few)
{
    const struct config_node *at = own(s)->detect.head.node;
    const struct detection_config *d = &s->cluster->detection;
    uint32_t hosts = lint_hosts(s);
    struct detection_fault fault = seen_by(&d->detect, hosts);
    span_ns took;

    if (!d->on || hosts < 2 || !lint_written(at, "falseAlarms"))
        return NULL;
    took = detection_reach(&d->detect, hosts, &fault);
    if (took <= d->life.base)
        return NULL;
    lint_say(&w->why, "falseAlarms asks for %.1f nats: at 1 request/s a host, one of %u that ",
             d->detect.threshold, hosts);
    text_str(&w->why,
             fault.failing > 0 ? "fails every second request" : "takes three times as long");
    if (took == MONO_NEVER)
        text_str(&w->why, " is never accused");
    else
        lint_say(&w->why, " is accused after %s", lint_span(took - took % (100 * NS_PER_MS)).text);
    lint_say(&w->why,
             ", longer than the %s for which it is then out: it does more harm before "
             "than is saved",
             lint_span(d->life.base).text);
    lint_say(&w->instead, "no falseAlarms (11 nats: the gates and guards make most of what passes "
                          "harmless), or ejection.base: 30s or more");
    return lint_at(at, "falseAlarms");
}
