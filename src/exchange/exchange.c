/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/exchange.h"

#include <assert.h>

#include "base/rng.h"
#include "policy/host.h"
#include "policy/lb.h"
#include "policy/limit.h"
#include "policy/outlier_runs.h"

/* A connect that fails moves a request at most once (DESIGN.md: connectFailover). */
#define FAILOVERS_MAX 1

/* A dead reused connection is no fault of the host's: once more, on a fresh one, is enough. */
#define RESENDS_MAX 1

static void act(struct actions *out, struct action a)
{
    assert(out->count < ACTIONS_MAX);
    out->at[out->count++] = a;
}

static void act_simple(struct actions *out, enum action_kind kind)
{
    act(out, (struct action){.kind = kind});
}

static struct attempt *present(struct exchange *x)
{
    return &x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX];
}

static struct host *present_host(struct exchange *x)
{
    return x->cluster->hosts.at[present(x)->host];
}

static bool follows_envoy(const struct exchange *x, enum difference which)
{
    return as_envoy(x->cluster->config->differences, which);
}

/* --- evidence --- */

static void learn(struct exchange *x, enum outlier_report report, uint32_t status, mono_ns now,
                  struct actions *out)
{
    uint32_t host = present(x)->host;
    outlier_triggers triggers = outlier_learn(&x->cluster->hosts.at[host]->runs,
                                              &x->cluster->config->outlier, report, status, now);

    if (triggers != 0)
        act(out, (struct action){.kind = ACTION_ACCUSE, .host = host, .triggers = triggers});
}

/* --- limits --- */

static void give_place(struct exchange *x)
{
    if (x->holds_pending)
        limit_give(&x->cluster->state->pending);
    x->holds_pending = false;
}

static void give_host_place(struct exchange *x)
{
    if (x->holds_host_pending)
        limit_give(&present_host(x)->pending);
    x->holds_host_pending = false;
}

static void give_pending(struct exchange *x)
{
    if (!x->waits)
        return;
    x->waits = false;
    x->try_deadline = MONO_NEVER;
    give_place(x);
    give_host_place(x);
    cluster_rt_uncount(x->cluster, CLUSTER_upstream_rq_pending_active);
    endpoint_rt_uncount(x->cluster, present(x)->host, ENDPOINT_rq_pending_active);
}

static void give_host_request(struct exchange *x)
{
    if (x->holds_host_request)
        limit_give(&present_host(x)->requests);
    x->holds_host_request = false;
}

static void give_request(struct exchange *x)
{
    if (!x->holds_request)
        return;
    x->holds_request = false;
    limit_give(&x->cluster->state->requests);
    cluster_rt_uncount(x->cluster, CLUSTER_upstream_rq_active);
    endpoint_rt_uncount(x->cluster, present(x)->host, ENDPOINT_rq_active);
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

static void attempt_start(struct exchange *x, uint32_t host, enum action_kind how, mono_ns now,
                          struct actions *out)
{
    x->attempt_count++;
    if (x->attempt_count > RECORD_ATTEMPTS_MAX)
        unhold_host(x, present(x)->host);
    hold_host(x, host);
    *present(x) = (struct attempt){
        .host = host,
        .outcome = ATTEMPT_PENDING,
        .picked_at = now,
        .connected_at = MONO_NEVER,
        .ended_at = MONO_NEVER,
    };
    atomic_fetch_add_explicit(&present_host(x)->in_flight, 1, memory_order_relaxed);
    x->state = EXCHANGE_PICKED;
    x->try_deadline = MONO_NEVER;
    act(out, (struct action){.kind = how, .host = host});
}

static bool attempt_open(const struct exchange *x)
{
    return x->attempt_count > 0 &&
           x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX].outcome == ATTEMPT_PENDING;
}

/* Closes the present attempt's books; what becomes of its connection is said by an action. */
static void attempt_end(struct exchange *x, enum attempt_outcome outcome, uint32_t flags,
                        mono_ns now)
{
    struct attempt *a = present(x);

    assert(a->outcome == ATTEMPT_PENDING);
    give_pending(x);
    give_host_request(x);
    give_request(x);
    a->outcome = outcome;
    a->flags |= flags;
    a->ended_at = now;
    x->try_deadline = MONO_NEVER;
    atomic_fetch_sub_explicit(&present_host(x)->in_flight, 1, memory_order_relaxed);
}

static void count_error(struct exchange *x)
{
    endpoint_rt_count(x->cluster, present(x)->host, ENDPOINT_rq_error);
}

/* --- endings --- */

static void finish(struct exchange *x, struct actions *out)
{
    if (x->holds_process) {
        x->holds_process = false;
        limit_give(&x->process->requests);
    }
    x->state = EXCHANGE_DONE;
    act_simple(out, ACTION_FINISH);
}

static void give_reason(struct exchange *x, enum reason reason)
{
    x->reason = reason;
    x->flags |= reasons[reason].flag;
}

/* The answer is there: how long the client takes to read the rest is the idle timeout's. */
static void end_deadlines(struct exchange *x)
{
    x->deadline = MONO_NEVER;
    x->body_deadline = MONO_NEVER;
}

/* A local answer, where none has begun; else the client's connection is broken off. */
static void fail(struct exchange *x, enum reason reason, struct actions *out)
{
    give_reason(x, reason);
    if (x->status == 0 && reasons[reason].status != 0) {
        x->status = reasons[reason].status;
        x->state = EXCHANGE_DELIVERING;
        end_deadlines(x);
        act(out, (struct action){.kind = ACTION_RESPOND, .reason = reason});
        return;
    }
    if (x->flags == FLAG_NONE)
        x->flags = FLAG_LR; /* the answer was cut by us: its record must not look like a success */
    act(out, (struct action){.kind = ACTION_CUT, .reason = reason});
    finish(x, out);
}

/* --- the beginning --- */

static void on_begin(struct exchange *x, mono_ns now, struct actions *out)
{
    uint32_t host;

    if (x->route == NULL || x->cluster == NULL) {
        fail(x, x->route == NULL ? REASON_NO_ROUTE : REASON_NO_CLUSTER, out);
        return;
    }
    if (!limit_take(&x->process->requests, x->process->requests_max)) {
        fail(x, REASON_PROCESS_FULL, out);
        return;
    }
    x->holds_process = true;
    host = cluster_rt_pick(x->cluster);
    if (host == CLUSTER_RT_NO_HOST) {
        cluster_rt_count(x->cluster, CLUSTER_upstream_cx_none_healthy, 1);
        fail(x, REASON_NO_HEALTHY, out);
        return;
    }
    if (host == CLUSTER_RT_ALL_FULL) {
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_active_overflow, 1);
        fail(x, REASON_OVERFLOW, out);
        return;
    }
    attempt_start(x, host, ACTION_ATTEMPT, now, out);
}

static void start_try_clock(struct exchange *x, mono_ns now)
{
    if (x->state == EXCHANGE_SENT && exchange_request_complete(x) &&
        x->route->per_try_timeout < x->route->timeout)
        x->try_deadline = mono_after(now, x->route->per_try_timeout);
}

static void on_request_complete(struct exchange *x, mono_ns now)
{
    x->complete_at = now;
    x->body_deadline = MONO_NEVER;
    if (x->route == NULL || x->state == EXCHANGE_DELIVERING)
        return;
    if (!x->tunnel)
        x->deadline = mono_after(now, x->route->timeout);
    start_try_clock(x, now);
}

/* --- waiting --- */

static bool take_host_place(struct exchange *x)
{
    x->holds_host_pending =
        limit_take(&present_host(x)->pending, x->cluster->config->limits.host.max_pending);
    return x->holds_host_pending;
}

void exchange_move(struct exchange *x, uint32_t host)
{
    struct attempt *a = present(x);

    assert(x->state == EXCHANGE_QUEUED || x->state == EXCHANGE_PICKED);
    give_host_place(x);
    atomic_fetch_sub_explicit(&present_host(x)->in_flight, 1, memory_order_relaxed);
    if (x->waits)
        endpoint_rt_uncount(x->cluster, a->host, ENDPOINT_rq_pending_active);
    unhold_host(x, a->host);
    hold_host(x, host);
    a->host = host;
    atomic_fetch_add_explicit(&present_host(x)->in_flight, 1, memory_order_relaxed);
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
    if (!x->holds_host_pending && !take_host_place(x))
        return false;
    x->try_deadline = MONO_NEVER; /* the connect has a time limit of its own */
    if (!connects_pend(x->cluster))
        give_place(x);
    return true;
}

void exchange_await_slot(struct exchange *x, mono_ns now)
{
    assert(x->state == EXCHANGE_QUEUED);
    give_host_place(x);
    x->try_deadline = mono_after(now, x->cluster->config->limits.queue_timeout);
}

/* --- getting a connection --- */

/* A limit of ours refuses the attempt, and the request with it. */
static void overflow(struct exchange *x, enum cluster_metric counter, mono_ns now,
                     struct actions *out)
{
    cluster_rt_count(x->cluster, counter, 1);
    count_error(x);
    attempt_end(x, ATTEMPT_OVERFLOW, FLAG_UO, now);
    fail(x, REASON_OVERFLOW, out);
}

/* At its host, or at another where many wait there already. */
static bool find_host_place(struct exchange *x)
{
    for (uint32_t n = 0; n <= x->cluster->hosts.count; n++) {
        uint32_t host;

        if (take_host_place(x))
            return true;
        host = cluster_rt_pick(x->cluster);
        if (host >= CLUSTER_RT_ALL_FULL)
            return false;
        exchange_move(x, host);
    }
    return false;
}

static void on_must_wait(struct exchange *x, mono_ns now, struct actions *out)
{
    const struct circuit_limits *most = &x->cluster->config->limits;

    assert(x->state == EXCHANGE_PICKED);
    x->holds_pending = limit_take(&x->cluster->state->pending, most->max_pending);
    if (!x->holds_pending || !find_host_place(x)) {
        give_place(x);
        act_simple(out, ACTION_ABANDON);
        overflow(x, CLUSTER_upstream_rq_pending_overflow, now, out);
        return;
    }
    x->waits = true;
    x->state = EXCHANGE_QUEUED;
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_pending_total, 1);
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_pending_active, 1);
    endpoint_rt_count(x->cluster, present(x)->host, ENDPOINT_rq_pending_active);
}

static bool take_host_request(struct exchange *x)
{
    uint32_t most = x->cluster->config->limits.host.max_requests;

    if (most == LIMIT_NONE)
        return true;
    x->holds_host_request = limit_take(&present_host(x)->requests, most);
    return x->holds_host_request;
}

static bool take_request(struct exchange *x)
{
    x->holds_request =
        limit_take(&x->cluster->state->requests, x->cluster->config->limits.max_requests);
    return x->holds_request;
}

/* While it waited for its connection, others filled the host: to one with room, if there is one. */
static void leave_full_host(struct exchange *x, mono_ns now, struct actions *out)
{
    uint32_t host = cluster_rt_pick(x->cluster);

    act_simple(out, ACTION_RELEASE);
    if (host >= CLUSTER_RT_ALL_FULL) {
        overflow(x, CLUSTER_upstream_rq_active_overflow, now, out);
        return;
    }
    attempt_end(x, ATTEMPT_OVERFLOW, FLAG_NONE, now);
    attempt_start(x, host, ACTION_ATTEMPT, now, out);
}

static void on_connected(struct exchange *x, const struct exchange_event *e, mono_ns now,
                         struct actions *out)
{
    assert(x->state == EXCHANGE_PICKED || x->state == EXCHANGE_QUEUED);
    give_pending(x);
    learn(x, e->reused ? OUTLIER_REUSED : OUTLIER_CONNECTED, 0, now, out);
    if (!take_host_request(x)) {
        leave_full_host(x, now, out);
        return;
    }
    if (!take_request(x)) {
        act_simple(out, ACTION_RELEASE);
        overflow(x, CLUSTER_upstream_rq_active_overflow, now, out);
        return;
    }
    x->reused = e->reused;
    x->state = EXCHANGE_SENT;
    present(x)->connected_at = now;
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_total, 1);
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_active, 1);
    endpoint_rt_count(x->cluster, present(x)->host, ENDPOINT_rq_total);
    endpoint_rt_count(x->cluster, present(x)->host, ENDPOINT_rq_active);
    start_try_clock(x, now);
    act_simple(out, ACTION_SEND);
}

static enum reason connect_reason(enum attempt_fault fault)
{
    switch (fault) {
    case FAULT_LOCAL:
        return REASON_CONNECT_LOCAL;
    case FAULT_CONNECT_TIMEOUT:
        return REASON_CONNECT_TIMEOUT;
    case FAULT_NONE:
    case FAULT_REFUSED:
    case FAULT_RESET:
    case FAULT_PROTOCOL:
        break;
    }
    return REASON_CONNECT_FAILED;
}

/* A host this request was not yet on; LB_NO_HOST where there is none or moving is not allowed. */
static uint32_t other_host(struct exchange *x, enum attempt_fault fault)
{
    struct lb_tried tried = {.count = 0};
    uint32_t other;

    if (fault == FAULT_LOCAL || !x->cluster->config->connect_failover ||
        x->failovers >= FAILOVERS_MAX)
        return LB_NO_HOST;
    for (uint32_t i = 0; i < x->attempt_count && i < LB_TRIED_MAX; i++)
        tried.at[tried.count++] = x->attempts[i].host;
    other = cluster_rt_pick_other(x->cluster, &tried);
    return other == CLUSTER_RT_ALL_FULL ? LB_NO_HOST : other;
}

static void on_connect_failed(struct exchange *x, const struct exchange_event *e, mono_ns now,
                              struct actions *out)
{
    uint32_t other;

    assert(x->state == EXCHANGE_PICKED || x->state == EXCHANGE_QUEUED);
    if (e->fault != FAULT_LOCAL) {
        learn(x, OUTLIER_CONNECT_FAILED, 0, now, out);
        count_error(x);
    }
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_pending_failure_eject, 1);
    attempt_end(x, ATTEMPT_CONNECT_FAILED, reasons[connect_reason(e->fault)].flag, now);
    other = other_host(x, e->fault);
    if (other == LB_NO_HOST) {
        fail(x, connect_reason(e->fault), out);
        return;
    }
    x->failovers++;
    cluster_rt_count(x->cluster, CLUSTER_connect_failover, 1);
    attempt_start(x, other, ACTION_ATTEMPT, now, out);
}

/* --- the answer --- */

static void on_head(struct exchange *x, const struct exchange_event *e, mono_ns now,
                    struct actions *out)
{
    assert(x->state == EXCHANGE_SENT);
    learn(x, OUTLIER_ANSWERED, e->status, now, out);
    endpoint_rt_count(x->cluster, present(x)->host,
                      e->status >= 500 ? ENDPOINT_rq_error : ENDPOINT_rq_success);
    present(x)->status = e->status;
    x->status = e->status;
    x->head_at = now;
    x->reason = REASON_VIA_UPSTREAM;
    x->try_deadline = MONO_NEVER;
    x->state = EXCHANGE_ANSWERING;
    act_simple(out, ACTION_FORWARD);
}

static void on_tunnel(struct exchange *x, const struct exchange_event *e, mono_ns now,
                      struct actions *out)
{
    on_head(x, e, now, out);
    x->tunnel = true;
    x->deadline = MONO_NEVER;
    x->body_deadline = MONO_NEVER;
}

static void on_upstream_complete(struct exchange *x, mono_ns now, struct actions *out)
{
    assert(x->state == EXCHANGE_ANSWERING);
    attempt_end(x, ATTEMPT_ANSWERED, FLAG_NONE, now);
    x->state = EXCHANGE_DELIVERING;
    end_deadlines(x);
    act_simple(out, ACTION_RELEASE);
}

/* Was it the race of keep-alive, a connection the host had closed before our bytes came? */
static bool may_resend(const struct exchange *x, const struct exchange_event *e)
{
    return !follows_envoy(x, DIFFERENCE_LOST_REUSE_FAILS) && x->reused && e->untouched &&
           e->replayable && x->idempotent && e->fault == FAULT_RESET && x->resends < RESENDS_MAX;
}

static void on_broken_early(struct exchange *x, const struct exchange_event *e, mono_ns now,
                            struct actions *out)
{
    enum reason reason = e->fault == FAULT_PROTOCOL ? REASON_PROTOCOL_ERROR : REASON_RESET;
    uint32_t host = present(x)->host;

    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_rx_reset, 1);
    act_simple(out, ACTION_ABANDON);
    if (may_resend(x, e)) {
        attempt_end(x, ATTEMPT_RESET, FLAG_UC, now);
        x->resends++;
        cluster_rt_count(x->cluster, CLUSTER_reuse_resend, 1);
        attempt_start(x, host, ACTION_ATTEMPT_FRESH, now, out);
        return;
    }
    learn(x, OUTLIER_RESET, 0, now, out);
    count_error(x);
    attempt_end(x, ATTEMPT_RESET, reasons[reason].flag, now);
    fail(x, reason, out);
}

static void on_broken(struct exchange *x, const struct exchange_event *e, mono_ns now,
                      struct actions *out)
{
    enum reason reason = e->fault == FAULT_PROTOCOL ? REASON_PROTOCOL_LATE : REASON_RESET_LATE;

    assert(x->state == EXCHANGE_SENT || x->state == EXCHANGE_ANSWERING);
    if (x->state == EXCHANGE_SENT) {
        on_broken_early(x, e, now, out);
        return;
    }
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_rx_reset, 1);
    act_simple(out, ACTION_ABANDON);
    if (!x->tunnel)
        learn(x, OUTLIER_RESET, 0, now, out);
    attempt_end(x, ATTEMPT_RESET, reasons[reason].flag, now);
    fail(x, reason, out);
}

/* --- time --- */

static bool sent_and_silent(const struct exchange *x)
{
    return x->state == EXCHANGE_SENT && exchange_request_complete(x);
}

/*
 * Was at least half of the time the host's? The rest went by while the request waited here for a
 * connection: a deadline that we had spent is nothing against the host (law 2).
 */
static bool had_its_share(struct exchange *x, mono_ns now)
{
    mono_ns since = present(x)->connected_at;

    if (since < x->complete_at)
        since = x->complete_at;
    return follows_envoy(x, DIFFERENCE_TIMEOUT_ALWAYS_COUNTS) || now < x->deadline ||
           mono_since(since, now) >= x->route->timeout / 2;
}

/* Ends whatever attempt there is. It is evidence only where the whole request lay with the host. */
static void time_out_attempt(struct exchange *x, enum reason reason, mono_ns now,
                             struct actions *out)
{
    bool timed_out = sent_and_silent(x) && reasons[reason].flag == FLAG_UT;

    if (!attempt_open(x))
        return;
    if (x->state == EXCHANGE_QUEUED)
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_cancelled, 1);
    else
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_tx_reset, 1);
    if (x->state != EXCHANGE_QUEUED && reasons[reason].flag == FLAG_UT)
        endpoint_rt_count(x->cluster, present(x)->host, ENDPOINT_rq_timeout);
    act_simple(out, ACTION_ABANDON);
    if (timed_out)
        count_error(x);
    if (timed_out && had_its_share(x, now))
        learn(x, OUTLIER_TIMED_OUT, 0, now, out);
    attempt_end(x, timed_out ? ATTEMPT_TIMED_OUT : ATTEMPT_CANCELLED, reasons[reason].flag, now);
}

static mono_ns idle_deadline(const struct exchange *x)
{
    return mono_after(x->active_at, x->route == NULL ? x->idle_timeout : x->route->idle_timeout);
}

static enum reason why_time(const struct exchange *x, mono_ns now)
{
    if (now >= x->try_deadline)
        return x->state == EXCHANGE_QUEUED ? REASON_QUEUE_TIMEOUT : REASON_PER_TRY_TIMEOUT;
    if (now >= x->deadline)
        return REASON_TIMEOUT;
    if (now >= x->body_deadline)
        return REASON_BODY_TIMEOUT;
    if (now >= idle_deadline(x))
        return exchange_request_complete(x) ? REASON_STREAM_IDLE : REASON_STREAM_IDLE_REQUEST;
    return REASON_NONE;
}

static void count_timeout(struct exchange *x, enum reason reason)
{
    if (reason == REASON_QUEUE_TIMEOUT)
        cluster_rt_count(x->cluster, CLUSTER_queue_timeout, 1);
    if (!attempt_open(x))
        return;
    if (reason == REASON_TIMEOUT)
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_timeout, 1);
    if (reason == REASON_PER_TRY_TIMEOUT)
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_per_try_timeout, 1);
}

static void on_time(struct exchange *x, mono_ns now, struct actions *out)
{
    enum reason reason = why_time(x, now);

    if (reason == REASON_NONE)
        return;
    count_timeout(x, reason);
    time_out_attempt(x, reason, now, out);
    fail(x, reason, out);
}

/* --- the client, and the proxy itself --- */

static void drop_attempt(struct exchange *x, uint32_t flags, mono_ns now, struct actions *out)
{
    if (!attempt_open(x))
        return;
    cluster_rt_count(x->cluster,
                     x->state == EXCHANGE_QUEUED ? CLUSTER_upstream_rq_cancelled
                                                 : CLUSTER_upstream_rq_tx_reset,
                     1);
    act_simple(out, ACTION_ABANDON);
    attempt_end(x, ATTEMPT_CANCELLED, flags, now);
}

static void on_client_gone(struct exchange *x, mono_ns now, struct actions *out)
{
    drop_attempt(x, FLAG_DC, now, out);
    give_reason(x, REASON_CLIENT_GONE);
    finish(x, out);
}

static void on_refused(struct exchange *x, const struct exchange_event *e, mono_ns now,
                       struct actions *out)
{
    drop_attempt(x, reasons[e->reason].flag, now, out);
    fail(x, e->reason, out);
}

/* --- the whole --- */

void exchange_init(struct exchange *x, const struct exchange_setup *setup, mono_ns now)
{
    x->state = EXCHANGE_NEW;
    x->cluster = setup->cluster;
    x->route = setup->route;
    x->process = setup->process;
    x->started_at = now;
    x->complete_at = MONO_NEVER;
    x->head_at = MONO_NEVER;
    x->deadline = MONO_NEVER;
    x->try_deadline = MONO_NEVER;
    x->body_deadline = mono_after(now, setup->body_timeout);
    x->active_at = now;
    x->idle_timeout = setup->idle_timeout;
    x->status = 0;
    x->flags = FLAG_NONE;
    x->reason = REASON_NONE;
    x->attempt_count = 0;
    x->failovers = 0;
    x->resends = 0;
    x->idempotent = setup->idempotent;
    x->reused = false;
    x->holds_process = false;
    x->holds_pending = false;
    x->holds_host_pending = false;
    x->holds_request = false;
    x->holds_host_request = false;
    x->waits = false;
    x->tunnel = false;
}

void exchange_step(struct exchange *x, const struct exchange_event *event, mono_ns now,
                   struct actions *out)
{
    out->count = 0;
    if (x->state == EXCHANGE_DONE)
        return;
    switch (event->kind) {
    case EVENT_BEGIN:
        on_begin(x, now, out);
        return;
    case EVENT_REQUEST_COMPLETE:
        on_request_complete(x, now);
        return;
    case EVENT_MUST_WAIT:
        on_must_wait(x, now, out);
        return;
    case EVENT_CONNECTED:
        on_connected(x, event, now, out);
        return;
    case EVENT_CONNECT_FAILED:
        on_connect_failed(x, event, now, out);
        return;
    case EVENT_HEAD:
        on_head(x, event, now, out);
        return;
    case EVENT_TUNNEL:
        on_tunnel(x, event, now, out);
        return;
    case EVENT_UPSTREAM_COMPLETE:
        on_upstream_complete(x, now, out);
        return;
    case EVENT_DELIVERED:
        finish(x, out);
        return;
    case EVENT_BROKEN:
        on_broken(x, event, now, out);
        return;
    case EVENT_TIME:
        on_time(x, now, out);
        return;
    case EVENT_CLIENT_GONE:
        on_client_gone(x, now, out);
        return;
    case EVENT_REFUSED:
        on_refused(x, event, now, out);
        return;
    }
}

mono_ns exchange_wakeup(const struct exchange *x)
{
    if (x->state == EXCHANGE_DONE)
        return MONO_NEVER;
    return mono_min(mono_min(x->deadline, x->try_deadline),
                    mono_min(x->body_deadline, idle_deadline(x)));
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
