/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/attempts.h"

#include <assert.h>

#include "exchange/retrying.h"
#include "exchange/witness.h"
#include "policy/host.h"
#include "policy/limit.h"

/* --- evidence --- */

void attempt_learn(struct exchange *x, enum outlier_report report, uint32_t status, mono_ns now,
                   struct actions *out)
{
    uint32_t host = attempt_present(x)->host;
    outlier_triggers triggers;

    if (witness_doubts(x->cluster, report))
        return;
    triggers = outlier_learn(&x->cluster->hosts.at[host]->runs, &x->cluster->config->outlier,
                             report, status, now);
    if (triggers != 0)
        actions_add(out,
                    (struct action){.kind = ACTION_ACCUSE, .host = host, .triggers = triggers});
}

/* --- limits --- */

void attempt_give_place(struct exchange *x)
{
    if (x->holds_pending)
        limit_give(&x->cluster->state->pending);
    x->holds_pending = false;
}

static void give_host_place(struct exchange *x)
{
    if (x->holds_host_pending)
        limit_give(&attempt_host(x)->pending);
    x->holds_host_pending = false;
}

void attempt_give_pending(struct exchange *x)
{
    if (!x->waits)
        return;
    x->waits = false;
    x->try_deadline = MONO_NEVER;
    attempt_give_place(x);
    give_host_place(x);
    cluster_rt_uncount(x->cluster, CLUSTER_upstream_rq_pending_active);
    endpoint_rt_uncount(x->cluster, attempt_present(x)->host, ENDPOINT_rq_pending_active);
}

static void give_host_request(struct exchange *x)
{
    if (x->holds_host_request)
        limit_give(&attempt_host(x)->requests);
    x->holds_host_request = false;
}

static void give_request(struct exchange *x)
{
    if (!x->holds_request)
        return;
    x->holds_request = false;
    limit_give(&x->cluster->state->requests);
    cluster_rt_uncount(x->cluster, CLUSTER_upstream_rq_active);
    endpoint_rt_uncount(x->cluster, attempt_present(x)->host, ENDPOINT_rq_active);
}

/* --- attempts --- */

/* So that a host is not forgotten while a request's record may name it. */
static void hold_host(struct exchange *x, uint32_t host)
{
    cell_add(&endpoint_rt_cells(x->cluster, host)->held, 1);
}

static void unhold_host(struct exchange *x, uint32_t host)
{
    cell_sub(&endpoint_rt_cells(x->cluster, host)->held, 1);
}

void exchange_release(struct exchange *x)
{
    uint32_t remembered =
        x->attempt_count < RECORD_ATTEMPTS_MAX ? x->attempt_count : RECORD_ATTEMPTS_MAX;

    for (uint32_t i = 0; i < remembered; i++)
        unhold_host(x, x->attempts[i].host);
    x->attempt_count = 0;
}

void attempt_start(struct exchange *x, uint32_t host, enum action_kind how, mono_ns now,
                   struct actions *out)
{
    uint32_t ahead;

    x->attempt_count++;
    if (x->attempt_count > RECORD_ATTEMPTS_MAX)
        unhold_host(x, attempt_present(x)->host);
    hold_host(x, host);
    *attempt_present(x) = (struct attempt){
        .host = host,
        .outcome = ATTEMPT_PENDING,
        .picked_at = now,
        .connected_at = MONO_NEVER,
        .ended_at = MONO_NEVER,
    };
    ahead = atomic_fetch_add_explicit(&attempt_host(x)->in_flight, 1, memory_order_relaxed);
    attempt_present(x)->ahead = (uint16_t)(ahead < UINT16_MAX ? ahead : UINT16_MAX);
    x->state = EXCHANGE_PICKED;
    x->try_deadline = MONO_NEVER;
    actions_add(out, (struct action){.kind = how, .host = host});
}

void attempt_again(struct exchange *x, uint32_t host, enum action_kind how, mono_ns now,
                   struct actions *out)
{
    retrying_count_extra(x, now);
    attempt_start(x, host, how, now, out);
}

bool attempt_open(const struct exchange *x)
{
    return x->attempt_count > 0 &&
           x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX].outcome == ATTEMPT_PENDING;
}

void attempt_end(struct exchange *x, enum attempt_outcome outcome, uint32_t flags, mono_ns now)
{
    struct attempt *a = attempt_present(x);

    assert(a->outcome == ATTEMPT_PENDING);
    witness_forget(x);
    attempt_give_pending(x);
    give_host_request(x);
    give_request(x);
    a->outcome = outcome;
    a->flags |= flags;
    a->ended_at = now;
    x->try_deadline = MONO_NEVER;
    atomic_fetch_sub_explicit(&attempt_host(x)->in_flight, 1, memory_order_relaxed);
}

void attempt_count_error(struct exchange *x)
{
    endpoint_rt_count(x->cluster, attempt_present(x)->host, ENDPOINT_rq_error);
}

mono_ns attempt_asked_at(const struct exchange *x)
{
    const struct attempt *a = &x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX];

    if (a->connected_at == MONO_NEVER)
        return a->picked_at;
    return exchange_request_complete(x) && x->complete_at > a->connected_at ? x->complete_at
                                                                            : a->connected_at;
}

/* --- waiting --- */

bool attempt_take_host_place(struct exchange *x)
{
    x->holds_host_pending =
        limit_take(&attempt_host(x)->pending, x->cluster->config->limits.host.max_pending);
    return x->holds_host_pending;
}

void exchange_move(struct exchange *x, uint32_t host)
{
    struct attempt *a = attempt_present(x);

    assert(x->state == EXCHANGE_QUEUED || x->state == EXCHANGE_PICKED);
    give_host_place(x);
    witness_forget(x);
    atomic_fetch_sub_explicit(&attempt_host(x)->in_flight, 1, memory_order_relaxed);
    if (x->waits)
        endpoint_rt_uncount(x->cluster, a->host, ENDPOINT_rq_pending_active);
    unhold_host(x, a->host);
    hold_host(x, host);
    a->host = host;
    atomic_fetch_add_explicit(&attempt_host(x)->in_flight, 1, memory_order_relaxed);
    if (x->waits)
        endpoint_rt_count(x->cluster, host, ENDPOINT_rq_pending_active);
}

/* Where maxConnections bounds the connects, only who waits for a slot is pending. */
static bool connects_pend(const struct cluster_rt *rt)
{
    return rt->config->limits.max_connections == LIMIT_NONE || cluster_rt_queues_at_hosts(rt);
}

bool exchange_await_connect(struct exchange *x)
{
    assert(x->state == EXCHANGE_QUEUED);
    if (!x->holds_host_pending && !attempt_take_host_place(x))
        return false;
    x->try_deadline = MONO_NEVER; /* the connect has a time limit of its own */
    if (!connects_pend(x->cluster))
        attempt_give_place(x);
    witness_open(x);
    return true;
}

void exchange_await_slot(struct exchange *x, mono_ns now)
{
    assert(x->state == EXCHANGE_QUEUED);
    if (!cluster_rt_queues_at_hosts(x->cluster))
        give_host_place(x);
    x->try_deadline = mono_after(now, x->cluster->config->limits.queue_timeout);
}

const char *attempt_outcome_text(enum attempt_outcome outcome)
{
    switch (outcome) {
    case ATTEMPT_PENDING:
        return "pending";
    case ATTEMPT_ANSWERED:
        return "answered";
    case ATTEMPT_CONNECT_FAILED:
        return "connect_failed";
    case ATTEMPT_RESET:
        return "reset";
    case ATTEMPT_TIMED_OUT:
        return "timed_out";
    case ATTEMPT_CANCELLED:
        return "cancelled";
    case ATTEMPT_OVERFLOW:
        return "overflow";
    }
    return "?";
}
