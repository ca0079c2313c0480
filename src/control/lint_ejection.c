/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of outlier detection: who can go, for how long, and what it sees. */
#include "control/lint_trap.h"
#include "control/reach.h"

/* Above this share out at once the survivors feel it. */
#define CAP_SAFE_PERCENT 25
#define CAP_HALF_PERCENT 50
/* Fewer hosts than this: each is much of the whole. */
#define FEW_HOSTS 4
/* Fewer than this have no majority that could say who is the bad one. */
#define PEERS_LEAST 3

/* outlierDetection as written; NULL: the defaults of `run --to`, which nobody has to be warned of.
 */
static const struct config_node *block(const struct lint_subject *s)
{
    return s->cluster_written->policy.outlier.head.node;
}

static uint32_t hosts(const struct lint_subject *s)
{
    return lint_hosts(s);
}

/* What the percentage alone says, as Envoy takes it: whole hosts, none of less than one. */
static uint32_t by_percent(const struct lint_subject *s)
{
    uint32_t percent = s->cluster->outlier.max_ejection_percent;

    return (uint32_t)((uint64_t)hosts(s) * (percent > 100 ? 100 : percent) / 100);
}

/* The least whole percentage that lets |out| of |all| go. */
static uint32_t percent_for(uint32_t out, uint32_t all)
{
    return (uint32_t)(((uint64_t)out * 100 + all - 1) / all);
}

/* Where our own word says it; NULL: the block does, or nobody. */
static const struct config_node *own_cap(const struct lint_subject *s)
{
    const struct config_node *at = s->cluster_written->resilience.ejection.head.node;

    return lint_written(at, "cap") && s->cluster_written->resilience.ejection.cap_permille / 10 ==
                                          s->cluster->outlier.max_ejection_percent
               ? at
               : NULL;
}

/* Who says how many may be out. */
struct cap {
    const struct config_node *map;
    const char *key;
    const char *called;
    const char *unit;
};

/* The one in force; no |map|: it is the default, which nobody has to be warned of. */
static struct cap cap_of(const struct lint_subject *s)
{
    if (block(s) != NULL && s->cluster_written->policy.outlier.is.max_ejection_percent ==
                                s->cluster->outlier.max_ejection_percent)
        return (struct cap){block(s), "maxEjectionPercent", "maxEjectionPercent", ""};
    return (struct cap){own_cap(s), "cap", "ejection.cap", "%"};
}

static const struct config_node *own_cap_rounds(const struct lint_subject *s, struct lint_words *w)
{
    uint32_t percent = s->cluster->outlier.max_ejection_percent;

    lint_say(
        &w->why,
        "ejection.cap %u%% of %u hosts is %u.%02u of a host, which would be nobody: one of two "
        "or more may always go, but never a second one while it is out",
        percent, hosts(s), hosts(s) * percent / 100, hosts(s) * percent % 100);
    lint_say(&w->instead, "cap: %u%%, which says one host of the %u", percent_for(1, hosts(s)),
             hosts(s));
    return lint_at(own_cap(s), "cap");
}

LINT_TRAP(lint_cap_rounds_to_nobody)
{
    uint32_t percent = s->cluster->outlier.max_ejection_percent;

    struct reach r;

    if (own_cap(s) != NULL && hosts(s) >= 2 && by_percent(s) == 0)
        return own_cap_rounds(s, w);
    if (block(s) == NULL || hosts(s) < 2 || by_percent(s) > 0 ||
        !reach_compute(&s->cluster->outlier, hosts(s), &r) || r.steps == 0)
        return NULL;
    lint_say(&w->why, "maxEjectionPercent %u%s of %u hosts is %u.%02u of a host: ", percent,
             lint_written(block(s), "maxEjectionPercent") ? "" : " (where it is not written)",
             hosts(s), hosts(s) * percent / 100, hosts(s) * percent % 100);
    text_str(&w->why,
             r.by_evidence == 0
                 ? "nobody is ever ejected, however it fails"
                 : "Istio and Envoy would eject nobody, ever; Firebreak lets one of two or "
                   "more go");
    lint_say(&w->instead, "maxEjectionPercent: %u, which says one host of the %u",
             percent_for(1, hosts(s)), hosts(s));
    return lint_at(block(s), "maxEjectionPercent");
}

static void say_half_of_few(const struct lint_subject *s, const struct cap *cap, uint32_t out,
                            struct text *why)
{
    uint32_t left = hosts(s) - out;

    lint_say(why, "%s %u%s of %u hosts is ", cap->called, s->cluster->outlier.max_ejection_percent,
             cap->unit, hosts(s));
    if (left == 0)
        lint_say(why,
                 "all of them: %sFirebreak keeps the last host, which then carries %u %% of its "
                 "load",
                 cap->map == block(s) ? "in Istio nobody is left, and every request gets 503 UH; "
                                      : "",
                 lint_share(hosts(s), 1));
    else
        lint_say(why,
                 "%u: the %u left carr%s %u %% of the usual load, just when something is wrong",
                 out, left, left == 1 ? "ies" : "y", lint_share(hosts(s), left));
}

LINT_TRAP(lint_cap_half_of_few)
{
    uint32_t percent = s->cluster->outlier.max_ejection_percent;
    uint32_t out = by_percent(s);
    struct cap cap = cap_of(s);

    if (cap.map == NULL || percent < CAP_HALF_PERCENT || hosts(s) < 2 || hosts(s) >= FEW_HOSTS ||
        out == 0 || lint_can_be_empty(s))
        return NULL;
    say_half_of_few(s, &cap, out, &w->why);
    lint_say(&w->instead,
             "at least %u endpoints, so that 25 %% is a whole host and the others "
             "carry a third more at most",
             FEW_HOSTS);
    if (percent > percent_for(1, hosts(s)))
        lint_say(&w->instead, "; with %u, %s: %u%s lets one go", hosts(s), cap.called,
                 percent_for(1, hosts(s)), cap.unit);
    return lint_at(cap.map, cap.key);
}

LINT_TRAP(lint_cap_without_limit)
{
    uint32_t percent = s->cluster->outlier.max_ejection_percent;
    struct cap cap = cap_of(s);
    struct reach r;

    if (cap.map == NULL || percent <= CAP_SAFE_PERCENT || hosts(s) < 2 ||
        s->cluster->limits.max_requests != LIMIT_NONE ||
        s->cluster->limits.host.max_requests != LIMIT_NONE)
        return NULL;
    if (!reach_compute(&s->cluster->outlier, hosts(s), &r) || r.by_evidence == 0)
        return NULL;
    lint_say(&w->why,
             "%s %u%s lets %u of %u hosts go: the other %u get %u %% of their usual load, and "
             "nothing limits the requests they are given at once, so that they fail next",
             cap.called, percent, cap.unit, r.by_evidence, hosts(s), hosts(s) - r.by_evidence,
             lint_share(hosts(s), hosts(s) - r.by_evidence));
    lint_say(&w->instead,
             "connectionPool.http.http2MaxRequests: what %u hosts carry at once (it holds for "
             "HTTP/1.1 too), or resilience.perHost.maxRequests: what one does",
             hosts(s) - r.by_evidence);
    if (hosts(s) >= FEW_HOSTS)
        lint_say(&w->instead, ", or %s: %u%s", cap.called, CAP_SAFE_PERCENT, cap.unit);
    return lint_at(cap.map, cap.key);
}

LINT_TRAP(lint_few_peers)
{
    const struct config_node *endpoints = s->cluster_written->endpoints.node;

    if (endpoints == NULL || hosts(s) == 0 || hosts(s) >= PEERS_LEAST)
        return NULL;
    if (hosts(s) == 1)
        lint_say(&w->why, "one endpoint: there is no other to compare it with or to send requests "
                          "to, so it is never ejected");
    else
        lint_say(&w->why,
                 "two endpoints: with one bad and one good there is no majority, so one "
                 "goes only on total evidence (no success in %u attempts and %s, or every "
                 "connect refused), and the other then carries 200 %% of its load",
                 OUTLIER_FAILING_ATTEMPTS, lint_span(OUTLIER_FAILING_SPAN).text);
    lint_say(&w->instead, "at least %u endpoints", PEERS_LEAST);
    return endpoints->key != NULL ? endpoints->key : endpoints;
}

LINT_TRAP(lint_ejection_never_grows)
{
    const struct outlier_config *c = &s->cluster->outlier;
    struct reach r;

    if (block(s) == NULL || !reach_compute(c, s->cluster->endpoint_count, &r) || r.steps != 1)
        return NULL;
    lint_say(&w->why,
             "an ejection lasts base x number, at most max(300s, base): min(%s x n, %s) is %s the "
             "first time and every time, it never grows",
             lint_span(c->base_ejection).text, lint_span(r.longest).text,
             lint_span(r.lengths[0]).text);
    lint_say(&w->instead, "baseEjectionTime: 30s, which gives 30s, 60s, 90s ... up to 300s to a "
                          "host that keeps failing");
    return lint_at(block(s), "baseEjectionTime");
}

LINT_TRAP(lint_interval_over_ejection)
{
    const struct outlier_config *c = &s->cluster->outlier;

    if (block(s) == NULL || c->interval <= c->base_ejection)
        return NULL;
    lint_say(&w->why,
             "hosts come back only in the sweep, every interval: an ejection of %s ends between %s "
             "and %s after it began, so interval %s decides, not baseEjectionTime",
             lint_span(c->base_ejection).text, lint_span(c->base_ejection).text,
             lint_span(c->base_ejection + c->interval).text, lint_span(c->interval).text);
    lint_say(&w->instead, "interval: %s, or less",
             lint_span(c->base_ejection / 3 > NS_PER_MS ? c->base_ejection / 3 : NS_PER_MS).text);
    return lint_at(block(s), "interval");
}

static uint32_t gateway_run(const struct outlier_config *c)
{
    return outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_GATEWAY);
}

static bool answers_eject(const struct outlier_config *c)
{
    return outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_5XX) != 0 || gateway_run(c) != 0 ||
           outlier_rates_eject(c);
}

LINT_TRAP(lint_gateway_blind)
{
    const struct outlier_config *c = &s->cluster->outlier;

    if (block(s) == NULL || gateway_run(c) == 0 || !c->split)
        return NULL;
    if (lint_written(block(s), "consecutiveLocalOriginFailures") &&
        c->consecutive_local_origin <= gateway_run(c))
        return NULL;
    lint_say(
        &w->why,
        "with splitExternalLocalOriginErrors on, consecutiveGatewayErrors %u sees only answers "
        "502, 503 and 504: refused connects, resets and timeouts count for "
        "consecutiveLocalOriginFailures alone, which is %u%s",
        gateway_run(c), c->consecutive_local_origin,
        lint_written(block(s), "consecutiveLocalOriginFailures") ? "" : " unless written");
    lint_say(&w->instead,
             "consecutiveLocalOriginFailures: %u beside it, or splitExternalLocalOriginErrors: off",
             gateway_run(c));
    return lint_at(block(s), "consecutiveGatewayErrors");
}

LINT_TRAP(lint_gateway_never_first)
{
    const struct outlier_config *c = &s->cluster->outlier;

    if (block(s) == NULL || c->consecutive_5xx == 0 || gateway_run(c) <= c->consecutive_5xx)
        return NULL;
    lint_say(&w->why,
             "each 502, 503 and 504 lengthens the run of 5xx too: consecutive5xxErrors %u is full "
             "before consecutiveGatewayErrors %u can be, which never acts",
             c->consecutive_5xx, gateway_run(c));
    lint_say(&w->instead, "consecutiveGatewayErrors: %u or less, or leave it out",
             c->consecutive_5xx > 1 ? c->consecutive_5xx - 1 : 1);
    return lint_at(block(s), "consecutiveGatewayErrors");
}

LINT_TRAP(lint_only_local_ejects)
{
    const struct outlier_config *c = &s->cluster->outlier;

    if (block(s) == NULL || !c->split || answers_eject(c))
        return NULL;
    lint_say(&w->why,
             "with splitExternalLocalOriginErrors on and both rules for answers off, only refused "
             "connects, resets and timeouts eject (%u in a row): a host that answers 500 to "
             "everything stays in",
             c->consecutive_local_origin);
    lint_say(&w->instead, "consecutive5xxErrors: 5");
    return lint_at(block(s), "consecutive5xxErrors");
}

LINT_TRAP(lint_no_rule)
{
    const struct outlier_config *c = &s->cluster->outlier;

    if (block(s) == NULL || c->split || answers_eject(c))
        return NULL;
    lint_say(&w->why, "outlierDetection is there, but consecutive5xxErrors 0 and "
                      "consecutiveGatewayErrors 0 are off, and no other rule is on: nobody is ever "
                      "ejected");
    lint_say(&w->instead, "consecutive5xxErrors: 5");
    return lint_at(block(s), "consecutive5xxErrors");
}

LINT_TRAP(lint_local_origin_escaped)
{
    const struct outlier_config *c = &s->cluster->outlier;
    const char *key = "consecutiveLocalOriginFailures";

    if (block(s) == NULL || !c->split ||
        !as_envoy(c->differences, DIFFERENCE_CONNECT_ENDS_LOCAL_RUN))
        return NULL;
    lint_say(&w->why,
             "as in Envoy, each connect that works ends the run of local-origin failures: a host "
             "that accepts connections and never answers has a run of 1, again and again, of the "
             "%u that eject it, and stays in",
             c->consecutive_local_origin);
    lint_say(&w->instead, "resilience: {differences: {connectEndsLocalRun: firebreak}}, where only "
                          "an answer ends the run, or splitExternalLocalOriginErrors: off");
    return lint_at(block(s), lint_written(block(s), key) ? key : "splitExternalLocalOriginErrors");
}

LINT_TRAP(lint_one_error_ejects)
{
    const struct outlier_config *c = &s->cluster->outlier;
    const char *key = "consecutive5xxErrors";

    if (block(s) == NULL)
        return NULL;
    if (c->split && c->consecutive_local_origin == 1)
        key = "consecutiveLocalOriginFailures";
    else if (gateway_run(c) == 1)
        key = "consecutiveGatewayErrors";
    else if (c->consecutive_5xx != 1)
        return NULL;
    lint_say(&w->why,
             "%s 1: a single error takes a host out for %s or more; with one error in 1,000 "
             "requests and 100 requests a second that is one ejection every 10 s",
             key, lint_span(c->base_ejection).text);
    lint_say(&w->instead,
             "%s: 5 (with one error in 1,000, five in a row come by chance once in "
             "10^15 requests)",
             key);
    return lint_at(block(s), key);
}

LINT_TRAP(lint_zero_cap)
{
    if (!lint_written_zero(block(s), "maxEjectionPercent"))
        return NULL;
    lint_say(&w->why,
             "maxEjectionPercent 0 is, in Istio's words, as if it were not written: it is "
             "%u, and hosts are ejected",
             s->cluster->outlier.max_ejection_percent);
    lint_say(&w->instead, "consecutive5xxErrors: 0 and consecutiveGatewayErrors: 0 to eject "
                          "nobody, or the percentage that you want");
    return lint_at(block(s), "maxEjectionPercent");
}

LINT_TRAP(lint_zero_local_origin)
{
    if (!s->cluster->outlier.split ||
        !lint_written_zero(block(s), "consecutiveLocalOriginFailures"))
        return NULL;
    lint_say(&w->why,
             "consecutiveLocalOriginFailures 0 is, in Istio's words, as if it were not "
             "written: it is %u, and with splitExternalLocalOriginErrors on it cannot be "
             "switched off",
             s->cluster->outlier.consecutive_local_origin);
    lint_say(&w->instead, "the number of failures in a row that you want, or "
                          "splitExternalLocalOriginErrors: off");
    return lint_at(block(s), "consecutiveLocalOriginFailures");
}
