/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/retrying.h"

#include "exchange/attempts.h"
#include "policy/lb.h"
#include "policy/limit.h"
#include "policy/retry_budget.h"

/* --- hosts --- */

static struct lb_tried tried_hosts(const struct exchange *x)
{
    struct lb_tried tried = {.count = 0};

    for (uint32_t i = 0; i < x->attempt_count && i < LB_TRIED_MAX; i++)
        tried.at[tried.count++] = x->attempts[i].host;
    return tried;
}

uint32_t retrying_other_host(struct exchange *x)
{
    struct lb_tried tried = tried_hosts(x);
    uint32_t other = cluster_rt_pick_other(x->cluster, &tried);

    return other == CLUSTER_RT_ALL_FULL ? LB_NO_HOST : other;
}

uint32_t retrying_any_host(struct exchange *x)
{
    uint32_t other = LB_NO_HOST;

    if (!exchange_follows_envoy(x, DIFFERENCE_RETRY_ALWAYS_WAITS))
        other = retrying_other_host(x);
    return other != LB_NO_HOST ? other : cluster_rt_pick(x->cluster);
}

/* --- what an attempt costs --- */

static bool spend(struct exchange *x, mono_ns now)
{
    if (exchange_follows_envoy(x, DIFFERENCE_RETRY_UNBUDGETED))
        return true;
    return retry_budget_spend(&x->cluster->state->retry_budget, &x->cluster->config->retry_budget,
                              now);
}

void retrying_charge(struct exchange *x, mono_ns now)
{
    (void)spend(x, now);
}

bool retrying_afford(struct exchange *x, mono_ns now)
{
    if (spend(x, now))
        return true;
    cluster_rt_count(x->cluster, CLUSTER_retry_budget_refused, 1);
    return false;
}

/* A place among the retries, and a token; both or none. */
static bool take_place(struct exchange *x, mono_ns now)
{
    struct limit *retries = &x->cluster->state->retries;

    if (!limit_take(retries, limit_retries_max(x->cluster->config))) {
        cluster_rt_count(x->cluster, CLUSTER_retry_places_refused, 1);
        return false;
    }
    if (!retrying_afford(x, now)) {
        limit_give(retries);
        return false;
    }
    x->holds_retry = true;
    return true;
}

void retrying_give_place(struct exchange *x)
{
    if (!x->holds_retry)
        return;
    x->holds_retry = false;
    limit_give(&x->cluster->state->retries);
}

void retrying_call_off(struct exchange *x)
{
    if (x->state == EXCHANGE_WAITING && x->holds_retry)
        retry_budget_refund(&x->cluster->state->retry_budget);
    retrying_give_place(x);
}

/* --- amplification --- */

void retrying_count_first(struct exchange *x, mono_ns now)
{
    retry_budget_earn(&x->cluster->state->retry_budget, &x->cluster->config->retry_budget);
    window_add(&x->cluster->cells->first_attempts, now);
}

void retrying_count_extra(struct exchange *x, mono_ns now)
{
    window_add(&x->cluster->cells->extra_attempts, now);
}

static bool traffic_normal(const struct exchange *x, mono_ns now)
{
    struct amplification a = cluster_state_amplification(x->cluster->state, now);

    return retry_traffic_normal(a.requests, a.extra);
}

/* --- the question --- */

static struct retry_failure whole(const struct exchange *x, const struct retrying_case *c)
{
    struct retry_failure f = c->failure;

    f.sent = x->sent;
    return f;
}

bool retrying_wanted(const struct exchange *x, const struct retrying_case *c)
{
    const struct retry_failure f = whole(x, c);

    return x->retry != NULL && retry_matches(x->retry, &f);
}

bool retrying_any_method(const struct exchange *x)
{
    return x->retry != NULL && x->cluster != NULL &&
           exchange_follows_envoy(x, DIFFERENCE_RETRY_ANY_METHOD);
}

/* Is there time for it? */
static bool in_time(const struct exchange *x, span_ns wait, mono_ns now)
{
    if (exchange_follows_envoy(x, DIFFERENCE_RETRY_TOO_LATE))
        wait = 0;
    return mono_after(now, wait) < x->deadline || x->deadline == MONO_NEVER;
}

/* Nothing of an answer is with the client; and either the host has seen nothing, or it may see it
 * again. */
static bool harmless(const struct exchange *x, const struct retrying_case *c)
{
    return !x->interim && (!x->sent || (x->repeatable && c->replayable));
}

/* Another host at once, while little is retried; else the same back-off for all. */
static struct retrying_choice where(struct exchange *x, const struct retrying_case *c, mono_ns now)
{
    uint32_t host = LB_NO_HOST;

    if (!c->local && !exchange_follows_envoy(x, DIFFERENCE_RETRY_ALWAYS_WAITS) &&
        traffic_normal(x, now))
        host = retrying_other_host(x);
    if (host != LB_NO_HOST)
        return (struct retrying_choice){.what = RETRYING_NOW, .host = host};
    return (struct retrying_choice){
        .what = RETRYING_LATER,
        .wait = retry_backoff(x->retry, x->retries, x->cluster->rng),
    };
}

struct retrying_choice retrying_choose(struct exchange *x, const struct retrying_case *c,
                                       mono_ns now)
{
    const struct retrying_choice not = {.what = RETRYING_NOT};
    struct retrying_choice choice;

    retrying_give_place(x); /* the outcome is known */
    if (!retrying_wanted(x, c)) {
        if (x->retries > 0)
            cluster_rt_count(x->cluster, CLUSTER_upstream_rq_retry_success, 1);
        return not ;
    }
    if (!harmless(x, c))
        return not ;
    if (x->retries >= x->retry->attempts) {
        x->flags |= FLAG_URX;
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_retry_limit_exceeded, 1);
        return not ;
    }
    if (atomic_load_explicit(&x->cluster->state->retries_held, memory_order_relaxed)) {
        cluster_rt_count(x->cluster, CLUSTER_retry_held, 1);
        return not ;
    }
    x->retries++;
    choice = where(x, c, now);
    if (!in_time(x, choice.wait, now)) {
        cluster_rt_count(x->cluster, CLUSTER_retry_too_late, 1);
        return not ;
    }
    if (!take_place(x, now)) {
        x->flags |= FLAG_UO;
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_retry_overflow, 1);
        return not ;
    }
    return choice;
}
