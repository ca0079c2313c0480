/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about a cluster. The numbers of ejection are the judge's own (reach.h). */
#include "control/explain.h"

#include <stdio.h>

#include "control/explain_parts.h"
#include "control/lint_trap.h"
#include "control/reach.h"

void explain_heading(struct text *t, const char *word)
{
    lint_say(t, "  %-10s ", word);
}

void explain_next_line(struct text *t)
{
    text_str(t, "\n             ");
}

static const char *hosts_word(uint32_t n)
{
    return n == 1 ? "host" : "hosts";
}

/* --- who goes --- */

/* Returns what stands before the next one. */
static const char *put_run(struct text *t, const char *before, uint32_t run, const char *what)
{
    if (run == 0)
        return before;
    lint_say(t, "%s%u %s", before, run, what);
    return ", or ";
}

static void put_rates(struct text *t, const struct outlier_config *c)
{
    const struct outlier_rate_rules *r = &c->rates;

    if (c->enforcing[OUTLIER_SUCCESS_RATE] > 0) {
        explain_next_line(t);
        lint_say(t,
                 "or in a sweep: where %u hosts or more had %u requests in the interval, whose "
                 "success rate is %u/1000 standard deviations below the mean,",
                 r->success_hosts, r->success_volume, r->success_factor);
    }
    if (c->enforcing[OUTLIER_FAILURE_PERCENTAGE] > 0) {
        explain_next_line(t);
        lint_say(t,
                 "or in a sweep: where %u hosts or more had %u requests in the interval, of whose "
                 "requests %u %% or more failed,",
                 r->failure_hosts, r->failure_volume, r->failure_percent);
    }
}

/* What ends a run. */
static void put_ends(struct text *t, const struct outlier_config *c)
{
    if (!c->split)
        text_str(t, "failures to get an answer count as 503 and 504 in these runs; an answer below "
                    "500 ends them\n");
    else if (as_envoy(c->differences, DIFFERENCE_CONNECT_ENDS_LOCAL_RUN))
        text_str(t, "counted apart: answers below 500 end a run of answers, any connection ends a "
                    "run of failures\n");
    else
        text_str(t, "counted apart: answers below 500 end a run of answers, any answer ends a run "
                    "of failures\n");
}

static void put_rules(struct text *t, const struct outlier_config *c)
{
    const char *before = "a host goes after ";

    explain_heading(t, "ejection");
    before = put_run(t, before, outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_5XX),
                     "answers 5xx in a row");
    before = put_run(t, before, outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_GATEWAY),
                     "answers 502, 503 or 504 in a row");
    before = put_run(t, before, outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN),
                     "failures in a row to get an answer (refused, reset, timed out)");
    if (before[0] == 'a' && !outlier_rates_eject(c)) {
        text_str(t, "no rule ejects: what is seen is counted at most\n");
        return;
    }
    text_str(t, before[0] == 'a' ? "" : "; at once,");
    put_rates(t, c);
    explain_next_line(t);
    put_ends(t, c);
}

static void put_reach(struct text *t, const struct outlier_config *c, const struct reach *r)
{
    explain_heading(t, "at most");
    lint_say(t, "%u of %u %s out at once (maxEjectionPercent %u)", r->by_evidence, r->hosts,
             hosts_word(r->hosts), c->max_ejection_percent);
    if (r->by_evidence > 0 && r->by_runs == 0)
        text_str(t, ", and that");
    else if (r->by_evidence > r->by_runs)
        lint_say(t, ", the last %u of them", r->by_evidence - r->by_runs);
    if (r->by_evidence > r->by_runs) {
        explain_next_line(t);
        lint_say(t,
                 "only on total evidence: no success in %u attempts and %s, or %u connects "
                 "refused in %s,",
                 OUTLIER_FAILING_ATTEMPTS, lint_span(OUTLIER_FAILING_SPAN).text,
                 OUTLIER_REFUSED_ATTEMPTS, lint_span(OUTLIER_REFUSED_SPAN).text);
        explain_next_line(t);
        text_str(t, "while another host answers");
    }
    text_char(t, '\n');
    if (r->by_evidence > 0 && r->by_evidence < r->hosts) {
        explain_heading(t, "then");
        lint_say(t, "the other %u carr%s %u %% of the usual load\n", r->hosts - r->by_evidence,
                 r->hosts - r->by_evidence == 1 ? "ies" : "y",
                 lint_share(r->hosts, r->hosts - r->by_evidence));
    }
}

/* Where the cluster does as Envoy does, and would not have to. */
static void put_differences(struct text *t, difference_set differences)
{
    const char *before = "follows Envoy: ";

    for (unsigned i = 0; i < DIFFERENCE_COUNT; i++) {
        if (!as_envoy(differences, (enum difference)i))
            continue;
        if (before[0] == 'f')
            explain_heading(t, "semantics");
        else
            explain_next_line(t);
        lint_say(t, "%s%s (%s)", before, difference_info[i].text, difference_info[i].key);
        before = "";
    }
    if (before[0] == '\0')
        text_char(t, '\n');
}

/* --- for how long --- */

static void put_lengths(struct text *t, const struct outlier_config *c, const struct reach *r)
{
    explain_heading(t, "for");
    for (uint32_t i = 0; i < r->steps; i++)
        lint_say(t, "%s%s", i == 0 ? "" : ", ", lint_span(r->lengths[i]).text);
    if (r->grows_on)
        lint_say(t, " ... up to %s", lint_span(r->longest).text);
    else
        lint_say(t, r->steps == 1 ? ", each time" : ", then %s each time",
                 lint_span(r->lengths[r->steps - 1]).text);
    if (c->jitter > 0)
        lint_say(t, ", each with up to %s more", lint_span(c->jitter).text);
    text_str(t, ";");
    explain_next_line(t);
    lint_say(t,
             "a host comes back in the first sweep after that, one every %s: the first time "
             "after %s to %s;",
             lint_span(c->interval).text, lint_span(r->lengths[0]).text,
             lint_span(r->lengths[0] + c->interval).text);
    explain_next_line(t);
    text_str(t, "each quiet sweep afterwards takes one step off\n");
}

/* --- what a caller sees --- */

static const char *in_panic(enum panic_policy p)
{
    switch (p) {
    case PANIC_SERVE_ALL:
        return "every host serves, the ejected ones too";
    case PANIC_LEAST_BAD:
        return "the ejected ones that are out for longest serve as well";
    case PANIC_FAIL_FAST:
        return "every request gets 503 UH at once";
    case PANIC_POLICY_COUNT:
        break;
    }
    return "";
}

static void put_nobody_left(struct text *t, const struct panic_config *p, const struct reach *r)
{
    uint32_t from;
    bool panics = reach_panic(p, r->hosts, &from);

    explain_heading(t, "a caller");
    if (panics && r->hosts - r->by_evidence <= from) {
        lint_say(t, "meets panic (minHealthPercent %u) with %u of %u hosts healthy or fewer: %s\n",
                 p->threshold, from, r->hosts, in_panic(p->policy));
        return;
    }
    if (r->by_evidence == r->hosts)
        text_str(t, "gets 503 UH (no healthy upstream) while all are out\n");
    else
        lint_say(t, "never meets an empty set: %u of %u stay in, whatever fails%s\n",
                 r->hosts - r->by_evidence, r->hosts,
                 panics ? "; there is no panic with so many" : "");
}

static void put_limit(struct text *t, const char *what, uint32_t limit, const char *then)
{
    if (limit == LIMIT_NONE)
        return;
    lint_say(t, "%u %s (%s)", limit, what, then);
    explain_next_line(t);
}

static void put_limits(struct text *t, const struct cluster *c)
{
    const struct circuit_limits *l = &c->limits;

    explain_heading(t, "limits");
    put_limit(t, "connections", l->max_connections, "the next request waits; upstream_cx_overflow");
    put_limit(t, "requests waiting for one", l->max_pending,
              "the next gets 503 UO; upstream_rq_pending_overflow");
    put_limit(t, "requests under way", l->max_requests,
              "the next gets 503 UO; upstream_rq_active_overflow");
    put_limit(t, "connections to one host", l->host.max_connections, "another host, or a wait");
    put_limit(t, "requests waiting for one host", l->host.max_pending, "another host, or 503 UO");
    put_limit(t, "requests under way on one host", l->host.max_requests, "another host, or 503 UO");
    if (l->queue_timeout != MONO_NEVER) {
        lint_say(t, "503 UO after a wait of %s for a connection", lint_span(l->queue_timeout).text);
        explain_next_line(t);
    }
    if (l->max_requests_per_connection > 0) {
        lint_say(t, "%u requests on a connection, then it is closed",
                 l->max_requests_per_connection);
        explain_next_line(t);
    }
    if (l->max_connections == LIMIT_NONE && l->max_pending == LIMIT_NONE &&
        l->max_requests == LIMIT_NONE)
        text_str(t, "none of its own: 70 % of the process' descriptors, and memoryLimit\n");
    else
        text_str(t, "over all workers together; beyond that, what the process has\n");
}

static void put_route(struct text *t, const struct route *r, const struct bytes listener)
{
    explain_next_line(t);
    lint_say(t, "%.*s %s%.*s%s: ", (int)listener.len, (const char *)listener.data,
             r->match == PATH_EXACT ? "" : "", (int)r->path.len, (const char *)r->path.data,
             r->match == PATH_EXACT ? " exactly" : "*");
    if (r->timeout == MONO_NEVER)
        text_str(t, "no timeout");
    else
        lint_say(t, "504 UT after %s", lint_span(r->timeout).text);
    if (r->per_try_timeout != MONO_NEVER)
        lint_say(t, ", each attempt after %s", lint_span(r->per_try_timeout).text);
    if (r->idle_timeout != MONO_NEVER)
        lint_say(t, ", or when nothing moves for %s", lint_span(r->idle_timeout).text);
}

static void put_timeouts(struct text *t, const struct snapshot *s, uint32_t cluster)
{
    const struct cluster *c = &s->clusters[cluster];

    explain_heading(t, "timeouts");
    lint_say(t, "connect %s; an idle connection is closed after %s",
             lint_span(c->connect_timeout).text, lint_span(c->idle_timeout).text);
    for (uint32_t i = 0; i < s->listener_count; i++)
        for (uint32_t k = 0; k < s->listeners[i].route_count; k++)
            if (s->listeners[i].routes[k].cluster == cluster)
                put_route(t, &s->listeners[i].routes[k], s->listeners[i].name);
    text_char(t, '\n');
}

static void put_route_retries(struct text *t, const struct route *route)
{
    const struct retry_policy *p = &route->retry->policy;
    const char *before = " on ";

    lint_say(t, "route %.*s: up to %u", (int)route->path.len, (const char *)route->path.data,
             p->attempts);
    for (uint32_t i = 0; retry_on_text(i) != NULL; i++) {
        if ((p->on >> i & 1) == 0)
            continue;
        text_str(t, before);
        text_str(t, retry_on_text(i));
        before = ", ";
    }
    explain_next_line(t);
}

static void put_at_once(struct text *t, const struct cluster *c)
{
    if (c->retry_share.given)
        lint_say(t, "at once: %u.%u%% of the requests, never fewer than %u",
                 c->retry_share.permille / 10, c->retry_share.permille % 10, c->retry_share.least);
    else if (c->limits.max_retries == LIMIT_NONE)
        text_str(t, "at once: any number, maxRetries is not written");
    else
        lint_say(t, "at once: %u, by maxRetries; %u where no connectionPool is written",
                 c->limits.max_retries, default_limits.max_retries);
    explain_next_line(t);
}

static void put_retries(struct text *t, const struct snapshot *s, uint32_t cluster)
{
    const struct cluster *c = &s->clusters[cluster];
    bool any = false;

    explain_heading(t, "retries");
    for (uint32_t i = 0; i < s->listener_count; i++)
        for (uint32_t k = 0; k < s->listeners[i].route_count; k++) {
            const struct route *route = &s->listeners[i].routes[k];

            if (route->cluster != cluster || route->retry == NULL ||
                route->retry->policy.attempts == 0)
                continue;
            put_route_retries(t, route);
            any = true;
        }
    if (any)
        put_at_once(t, c);
    text_str(t, c->connect_failover ? "a connect that fails moves the request to another host, once"
                                    : "a connect that fails stays where it is");
    if (!any)
        text_str(t, "; no other retries");
    explain_next_line(t);
    lint_say(t, "all within %u.%u%% of the requests and %u a second, %u saved up\n",
             c->retry_budget.earn_permille / 10, c->retry_budget.earn_permille % 10,
             c->retry_budget.floor_per_s, c->retry_budget.capacity);
}

static bool has_names(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->endpoint_count; i++)
        if (!bytes_equal(c->endpoints[i].hostname, c->endpoints[i].text))
            return true;
    return false;
}

bool explain_cluster(struct text *t, const struct snapshot *s, uint32_t cluster)
{
    const struct cluster *c = &s->clusters[cluster];
    struct reach r;

    if (!reach_compute(&c->outlier, c->endpoint_count, &r))
        return false;
    text_str(t, "cluster ");
    config_quote(t, c->name);
    lint_say(t, ": %u %s, %s%s\n", c->endpoint_count, hosts_word(c->endpoint_count),
             lb_kind_text(c->lb),
             has_names(c) ? "; some are names: there are as many hosts as they have addresses, and "
                            "the numbers are for one each"
                          : "");
    put_rules(t, &c->outlier);
    if (r.steps > 0) {
        put_reach(t, &c->outlier, &r);
        if (!c->outlier.return_on_proof)
            put_lengths(t, &c->outlier, &r);
        put_nobody_left(t, &c->panic, &r);
    }
    explain_detection(t, c);
    put_differences(t, c->outlier.differences);
    put_limits(t, c);
    put_timeouts(t, s, cluster);
    put_retries(t, s, cluster);
    return true;
}
