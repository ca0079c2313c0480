/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of retries: what they multiply, and what keeps them from it. */
#include "control/lint_trap.h"
#include "control/reach.h"

/* Beyond this share of the requests a budget is none. */
#define BUDGET_WIDE_PERMILLE 500

static uint32_t attempts(const struct route *r)
{
    return r->retry == NULL ? 0 : r->retry->policy.attempts;
}

static const struct config_node *retry_block(const struct lint_subject *s)
{
    return s->route_written->retry.head.node;
}

static const struct config_node *ejection_block(const struct lint_subject *s)
{
    return s->cluster_written->policy.outlier.head.node;
}

/* The cluster's own word, or Istio's; NULL: the default holds. */
static const struct config_node *budget_block(const struct lint_subject *s)
{
    const struct config_node *own = s->cluster_written->resilience.retry_budget.head.node;

    return own != NULL ? own : s->cluster_written->policy.retry_budget.head.node;
}

/* A route that retries to this cluster; NULL: there is none. */
static const struct route *retrying(const struct lint_subject *s)
{
    const struct snapshot *all = s->snapshot;

    for (uint32_t i = 0; i < all->listener_count; i++) {
        const struct listener_config *l = &all->listeners[i];

        for (uint32_t k = 0; k < l->route_count; k++)
            if (&all->clusters[l->routes[k].cluster] == s->cluster && attempts(&l->routes[k]) > 0)
                return &l->routes[k];
    }
    return NULL;
}

static void put_budget(struct text *t, const struct retry_budget_config *b)
{
    lint_say(t, "%u.%u %% of the requests and %u a second, %u saved up", b->earn_permille / 10,
             b->earn_permille % 10, b->floor_per_s, b->capacity);
}

LINT_TRAP(lint_retries_without_budget)
{
    if (attempts(s->route) == 0 || budget_block(s) != NULL || ejection_block(s) != NULL)
        return NULL;
    lint_say(&w->why,
             "retries, and no retryBudget is written: when everything fails, attempts %u is %u "
             "times the load in Istio and Envoy; here the default bounds it to ",
             attempts(s->route), attempts(s->route) + 1);
    put_budget(&w->why, &s->cluster->retry_budget);
    lint_say(&w->instead,
             "resilience: {retryBudget: {ratio: 20%%, floor: 3/s, capacity: 10}} in cluster "
             "'%.*s', so that who reads it knows",
             (int)s->cluster->name.len, (const char *)s->cluster->name.data);
    return retry_block(s)->key;
}

/* One that only reads: or says nothing of methods, since then mostly reads are retried. */
static bool only_reads(const struct route *r)
{
    for (uint32_t i = 0; i < r->method_count; i++)
        if (!bytes_equal(r->methods[i], BYTES("GET")) &&
            !bytes_equal(r->methods[i], BYTES("HEAD")) &&
            !bytes_equal(r->methods[i], BYTES("OPTIONS")))
            return false;
    return true;
}

LINT_TRAP(lint_retries_more_than_one)
{
    uint32_t n = attempts(s->route);

    if (n < 2 || !only_reads(s->route))
        return NULL;
    lint_say(
        &w->why,
        "attempts %u: where one host of ten is bad, one retry on another is enough and is 10 %% "
        "more load; when all hosts fail, %u retries are %u times the load on a service that "
        "cannot carry it once",
        n, n, n + 1);
    lint_say(&w->instead, "attempts: 1");
    return lint_at(retry_block(s), "attempts");
}

LINT_TRAP(lint_retries_do_not_fit)
{
    const struct route *r = s->route;
    uint64_t fit;

    if (attempts(r) == 0 || r->per_try_timeout == MONO_NEVER || r->timeout == MONO_NEVER ||
        r->per_try_timeout >= r->timeout)
        return NULL;
    fit = (r->timeout + r->per_try_timeout - 1) / r->per_try_timeout;
    if (fit >= attempts(r) + UINT64_C(1))
        return NULL;
    lint_say(&w->why,
             "attempts %u with perTryTimeout %s need up to %u x %s = %s, and timeout is %s: only "
             "%u of the %u attempts can begin",
             attempts(r), lint_span(r->per_try_timeout).text, attempts(r) + 1,
             lint_span(r->per_try_timeout).text,
             lint_span((attempts(r) + UINT64_C(1)) * r->per_try_timeout).text,
             lint_span(r->timeout).text, (uint32_t)fit, attempts(r) + 1);
    lint_say(&w->instead, "perTryTimeout: %s, or attempts: %u",
             lint_span(r->timeout / (attempts(r) + 1) / NS_PER_MS * NS_PER_MS).text,
             (uint32_t)fit - 1);
    return lint_at(s->route_written->head.node, "perTryTimeout");
}

LINT_TRAP(lint_retries_without_per_try)
{
    const uint32_t waits = RETRY_ON_5XX | RETRY_ON_GATEWAY_ERROR | RETRY_ON_RESET;

    if (attempts(s->route) == 0 || s->route->per_try_timeout != MONO_NEVER ||
        (s->route->retry->policy.on & waits) == 0 || s->route->timeout == MONO_NEVER)
        return NULL;
    lint_say(&w->why,
             "retries without perTryTimeout: an attempt on a host that hangs lasts until timeout "
             "%s, and then there is no time for another",
             lint_span(s->route->timeout).text);
    lint_say(&w->instead, "perTryTimeout: %s",
             lint_span(s->route->timeout / (attempts(s->route) + 1) / NS_PER_MS * NS_PER_MS).text);
    return retry_block(s)->key;
}

LINT_TRAP(lint_budget_too_wide)
{
    const struct retry_budget_config *b = &s->cluster->retry_budget;
    const struct config_node *block = s->cluster_written->resilience.retry_budget.head.node;

    if (block == NULL || b->earn_permille <= BUDGET_WIDE_PERMILLE)
        return NULL;
    lint_say(&w->why,
             "a retryBudget of %u.%u %% lets the hosts get %u.%02u times the requests when "
             "everything fails: a service that broke at 1 will not come back at that",
             b->earn_permille / 10, b->earn_permille % 10, (1000 + b->earn_permille) / 1000,
             (1000 + b->earn_permille) % 1000 / 10);
    lint_say(&w->instead, "ratio: 20%%");
    return lint_at(block, "ratio");
}

LINT_TRAP(lint_budget_never_pays)
{
    const struct config_node *block = s->cluster_written->resilience.retry_budget.head.node;
    const struct retry_budget_config *b = &s->cluster->retry_budget;

    if (block == NULL || retrying(s) == NULL ||
        (b->capacity > 0 && b->earn_permille + b->floor_per_s > 0))
        return NULL;
    lint_say(&w->why, "a route to this cluster retries, but a retryBudget of ");
    put_budget(&w->why, b);
    lint_say(&w->why,
             b->capacity == 0 ? ": no retry is ever made"
                              : ": after the first %u no retry is ever made",
             b->capacity);
    lint_say(&w->instead, "ratio: 20%%, floor: 3/s, capacity: 10; or take the route's retry out");
    return block->key;
}

LINT_TRAP(lint_limits_without_max_retries)
{
    const struct circuit_limits *l = &s->cluster->limits;
    const struct config_node *pool = s->cluster_written->policy.pool.head.node;

    if (pool == NULL || l->max_retries != LIMIT_NONE || s->cluster->retry_share.given ||
        retrying(s) == NULL ||
        (l->max_connections == LIMIT_NONE && l->max_pending == LIMIT_NONE &&
         l->max_requests == LIMIT_NONE))
        return NULL;
    lint_say(&w->why,
             "connectionPool limits connections or requests, but not retries: maxRetries is not "
             "written, so any number may be in back-off or under way at once, and take the places "
             "of first attempts; only the budget (");
    put_budget(&w->why, &s->cluster->retry_budget);
    lint_say(&w->why, ") is left, and in Istio not even that");
    lint_say(&w->instead, "http.maxRetries: 3, or trafficPolicy.retryBudget: {percent: 20}");
    return pool->key;
}

LINT_TRAP(lint_ejection_without_budget)
{
    const struct route *r = retrying(s);
    struct reach e;

    if (ejection_block(s) == NULL || budget_block(s) != NULL || r == NULL ||
        !reach_compute(&s->cluster->outlier, lint_hosts(s), &e) || e.by_evidence == 0)
        return NULL;
    lint_say(&w->why,
             "hosts are ejected and requests retried, and no retryBudget is written: with %u of %u "
             "out the others get %u %% of their load, and attempts %u makes up to %u %% of it when "
             "they begin to fail too (here the default bounds it to ",
             e.by_evidence, e.hosts, lint_share(e.hosts, e.hosts - e.by_evidence), attempts(r),
             lint_share(e.hosts * (attempts(r) + 1), e.hosts - e.by_evidence));
    put_budget(&w->why, &s->cluster->retry_budget);
    lint_say(&w->why, ")");
    lint_say(&w->instead, "resilience: {retryBudget: {ratio: 20%%, floor: 3/s, capacity: 10}}, so "
                          "that the pair is changed together");
    return ejection_block(s)->key;
}

LINT_TRAP(lint_budget_without_ejection)
{
    const struct cluster *c = s->cluster;
    const struct config_node *budget = budget_block(s);
    uint32_t hosts = lint_hosts(s);
    struct reach e;

    if (budget == NULL || retrying(s) == NULL || hosts < 2 ||
        !reach_compute(&c->outlier, hosts, &e) || e.by_evidence > 0)
        return NULL;
    lint_say(&w->why,
             "a retry budget, but nobody is ever ejected: one bad host of %u fails %u.%u %% of all "
             "first attempts for as long as it is bad, and takes as much of the budget (%u.%u %%) "
             "with it, %s",
             hosts, 100 / hosts, 1000 / hosts % 10, c->retry_budget.earn_permille / 10,
             c->retry_budget.earn_permille % 10,
             1000 / hosts >= c->retry_budget.earn_permille
                 ? "which it uses up: what it fails then goes to the callers"
                 : "which is missing when it is needed");
    lint_say(&w->instead,
             "an outlierDetection that can act: consecutive5xxErrors: 5, and a "
             "maxEjectionPercent of %u or more",
             (100 + hosts - 1) / hosts);
    return budget->key;
}

/* --- against what is running --- */

static bool same_ejection(const struct outlier_config *a, const struct outlier_config *b)
{
    return a->consecutive_5xx == b->consecutive_5xx &&
           a->consecutive_gateway == b->consecutive_gateway &&
           a->consecutive_local_origin == b->consecutive_local_origin && a->split == b->split &&
           a->enabled == b->enabled && a->base_ejection == b->base_ejection &&
           a->max_ejection_percent == b->max_ejection_percent;
}

static bool same_budget(const struct cluster *a, const struct cluster *b)
{
    return a->retry_budget.earn_permille == b->retry_budget.earn_permille &&
           a->retry_budget.floor_per_s == b->retry_budget.floor_per_s &&
           a->retry_budget.capacity == b->retry_budget.capacity &&
           a->retry_share.given == b->retry_share.given &&
           a->retry_share.permille == b->retry_share.permille &&
           a->retry_share.least == b->retry_share.least &&
           a->limits.max_retries == b->limits.max_retries;
}

LINT_TRAP(lint_pair_changed_by_half)
{
    const struct cluster *now = s->cluster, *before = s->before;
    const struct config_node *at;
    struct reach was, is;
    bool ejection;

    if (before == NULL)
        return NULL;
    ejection = !same_ejection(&now->outlier, &before->outlier);
    if (ejection != same_budget(now, before) ||
        !reach_compute(&before->outlier, before->endpoint_count, &was) ||
        !reach_compute(&now->outlier, now->endpoint_count, &is))
        return NULL;
    lint_say(&w->why,
             "only %s of the pair changes. Before, %u of %u hosts could be out, and the others "
             "carry %u %% of their load and retries of ",
             ejection ? "ejection" : "the retry budget", was.by_evidence, was.hosts,
             lint_share(was.hosts, was.hosts - was.by_evidence));
    put_budget(&w->why, &before->retry_budget);
    lint_say(&w->why, "; now it is %u of %u, %u %%, and ", is.by_evidence, is.hosts,
             lint_share(is.hosts, is.hosts - is.by_evidence));
    put_budget(&w->why, &now->retry_budget);
    lint_say(&w->instead, "%s as well, or accept this with the reason why it may stay",
             ejection ? "the retryBudget that goes with it"
                      : "the outlierDetection that goes with it");
    at = ejection ? ejection_block(s) : budget_block(s);
    return at != NULL ? at->key : s->cluster_written->head.node;
}
