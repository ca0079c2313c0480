/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/exchange.h"

#include <assert.h>

#include "exchange/attempts.h"
#include "exchange/probing.h"
#include "exchange/retrying.h"
#include "exchange/witness.h"
#include "policy/lb.h"
#include "policy/limit.h"

/* A connect that fails moves a request at most once (DESIGN.md: connectFailover). */
#define FAILOVERS_MAX 1

/* A dead reused connection is no fault of the host's: once more, on a fresh one, is enough. */
#define RESENDS_MAX 1

/* --- endings --- */

static void finish(struct exchange *x, struct actions *out)
{
    if (x->holds_process) {
        x->holds_process = false;
        limit_give(&x->process->requests);
    }
    retrying_call_off(x);
    x->state = EXCHANGE_DONE;
    actions_add_simple(out, ACTION_FINISH);
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
    x->try_deadline = MONO_NEVER;
    x->body_deadline = MONO_NEVER;
}

/* A local answer, where none has begun; else the client's connection is broken off. */
static void fail(struct exchange *x, enum reason reason, struct actions *out)
{
    retrying_call_off(x);
    give_reason(x, reason);
    if (x->status == 0 && reasons[reason].status != 0) {
        x->status = reasons[reason].status;
        x->state = EXCHANGE_DELIVERING;
        end_deadlines(x);
        actions_add(out, (struct action){.kind = ACTION_RESPOND, .reason = reason});
        return;
    }
    if (x->flags == FLAG_NONE)
        x->flags = FLAG_LR; /* the answer was cut by us: its record must not look like a success */
    x->cut = true;
    actions_add(out, (struct action){.kind = ACTION_CUT, .reason = reason});
    finish(x, out);
}

/* None is healthy, or those that are have as many requests as they may. */
static void no_host(struct exchange *x, uint32_t picked, struct actions *out)
{
    bool full = picked == CLUSTER_RT_ALL_FULL;

    cluster_rt_count(x->cluster,
                     full ? CLUSTER_upstream_rq_active_overflow : CLUSTER_upstream_cx_none_healthy,
                     1);
    fail(x, full ? REASON_OVERFLOW : REASON_NO_HEALTHY, out);
}

/* --- retries --- */

static void retry_start(struct exchange *x, uint32_t host, span_ns waited, mono_ns now,
                        struct actions *out)
{
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_retry, 1);
    attempt_again(x, host, ACTION_ATTEMPT, now, out);
    attempt_present(x)->backoff = waited;
}

/* The present attempt is over. */
static void go_on(struct exchange *x, const struct retrying_choice *choice, mono_ns now,
                  struct actions *out)
{
    if (choice->what == RETRYING_NOW) {
        retry_start(x, choice->host, 0, now, out);
        return;
    }
    x->state = EXCHANGE_WAITING;
    x->backoff = choice->wait;
    x->try_deadline = mono_after(now, choice->wait);
}

/* The back-off is over. */
static void retry_due(struct exchange *x, mono_ns now, struct actions *out)
{
    uint32_t host = retrying_any_host(x);

    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_retry_backoff_exponential, 1);
    if (host >= CLUSTER_RT_ALL_FULL) {
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_retry, 1);
        no_host(x, host, out);
        return;
    }
    retry_start(x, host, x->backoff, now, out);
}

/* --- the beginning --- */

static void on_begin(struct exchange *x, mono_ns now, struct actions *out)
{
    uint32_t host;
    enum attempt_trial trial;

    if (x->route == NULL || x->cluster == NULL) {
        fail(x, x->route == NULL ? REASON_NO_ROUTE : REASON_NO_CLUSTER, out);
        return;
    }
    if (!limit_take(&x->process->requests, x->process->requests_max)) {
        fail(x, REASON_PROCESS_FULL, out);
        return;
    }
    x->holds_process = true;
    host = probing_pick(x, &trial);
    if (host >= CLUSTER_RT_ALL_FULL) {
        no_host(x, host, out);
        return;
    }
    retrying_count_first(x, now);
    attempt_start(x, host, ACTION_ATTEMPT, now, out);
    attempt_present(x)->trial = (uint8_t)trial;
}

/* The host has the whole request. */
static void start_try_clock(struct exchange *x, mono_ns now)
{
    span_ns most;

    if (x->state != EXCHANGE_SENT || !exchange_request_complete(x))
        return;
    most = probing_timeout(x);
    if (most < x->timeout)
        x->try_deadline = mono_after(now, most);
    witness_open(x);
}

static void on_request_complete(struct exchange *x, mono_ns now)
{
    x->complete_at = now;
    x->body_deadline = MONO_NEVER;
    if (x->route == NULL || x->state == EXCHANGE_DELIVERING)
        return;
    if (!x->tunnel)
        x->deadline = mono_after(now, x->timeout);
    start_try_clock(x, now);
}

/* --- getting a connection --- */

/* A limit of ours refuses the attempt, and the request with it. */
static void overflow(struct exchange *x, enum cluster_metric counter, mono_ns now,
                     struct actions *out)
{
    cluster_rt_count(x->cluster, counter, 1);
    if (counter == CLUSTER_upstream_rq_active_overflow) /* there was a connection for it */
        attempt_count_error(x);
    attempt_end(x, ATTEMPT_OVERFLOW, FLAG_UO, now);
    fail(x, REASON_OVERFLOW, out);
}

/* At its host, or at another where many wait there already. */
static bool find_host_place(struct exchange *x)
{
    for (uint32_t n = 0; n <= x->cluster->hosts.count; n++) {
        uint32_t host;

        if (attempt_take_host_place(x))
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
        attempt_give_place(x);
        actions_add_simple(out, ACTION_ABANDON);
        overflow(x, CLUSTER_upstream_rq_pending_overflow, now, out);
        return;
    }
    x->waits = true;
    x->state = EXCHANGE_QUEUED;
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_pending_total, 1);
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_pending_active, 1);
    endpoint_rt_count(x->cluster, attempt_present(x)->host, ENDPOINT_rq_pending_active);
}

static bool take_host_request(struct exchange *x)
{
    uint32_t most = x->cluster->config->limits.host.max_requests;

    if (most == LIMIT_NONE)
        return true;
    x->holds_host_request = limit_take(&attempt_host(x)->requests, most);
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

    actions_add_simple(out, ACTION_RELEASE);
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
    attempt_give_pending(x);
    attempt_learn(x, e->reused ? OUTLIER_REUSED : OUTLIER_CONNECTED, 0, now, out);
    if (!take_host_request(x)) {
        leave_full_host(x, now, out);
        return;
    }
    if (!take_request(x)) {
        actions_add_simple(out, ACTION_RELEASE);
        overflow(x, CLUSTER_upstream_rq_active_overflow, now, out);
        return;
    }
    x->reused = e->reused;
    x->state = EXCHANGE_SENT;
    attempt_present(x)->connected_at = now;
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_total, 1);
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_active, 1);
    endpoint_rt_count(x->cluster, attempt_present(x)->host, ENDPOINT_rq_total);
    endpoint_rt_count(x->cluster, attempt_present(x)->host, ENDPOINT_rq_active);
    start_try_clock(x, now);
    actions_add_simple(out, ACTION_SEND);
}

static enum reason connect_reason(enum attempt_fault fault)
{
    switch (fault) {
    case FAULT_LOCAL:
        return REASON_CONNECT_LOCAL;
    case FAULT_CONNECT_TIMEOUT:
        return REASON_CONNECT_TIMEOUT;
    case FAULT_REFUSED:
        return REASON_CONNECT_REFUSED;
    case FAULT_UNREACHABLE:
        return REASON_CONNECT_UNREACHABLE;
    case FAULT_NONE:
    case FAULT_UNCONNECTED:
    case FAULT_RESET:
    case FAULT_PROTOCOL:
        break;
    }
    return REASON_CONNECT_FAILED;
}

/*
 * Nothing was sent: a host this request was not yet on, at once, once; where the route retries
 * failed connects by itself, that takes its place. LB_NO_HOST: not.
 */
static uint32_t failover_host(struct exchange *x, const struct retrying_case *c, mono_ns now)
{
    uint32_t other;

    if (c->local || !x->cluster->config->connect_failover || x->failovers >= FAILOVERS_MAX ||
        (retrying_wanted(x, c) && x->retry->attempts > 0))
        return LB_NO_HOST;
    other = retrying_other_host(x);
    if (other != LB_NO_HOST)
        retrying_charge(x, now);
    return other;
}

/* Another host answers in the tried one's place. */
static void take_over(struct exchange *x, uint32_t other, mono_ns now, struct actions *out)
{
    cluster_rt_count(x->cluster, CLUSTER_probe_made_good, 1);
    attempt_again(x, other, ACTION_ATTEMPT, now, out);
}

static void move_on(struct exchange *x, const struct exchange_event *e, mono_ns now,
                    struct actions *out)
{
    const struct retrying_case c = {
        .failure.kind = RETRY_FAILED_CONNECT,
        .replayable = e->replayable,
        .local = e->fault == FAULT_LOCAL,
    };
    uint32_t other = probing_remedy(x, e->replayable);
    struct retrying_choice choice;

    if (other != LB_NO_HOST) {
        take_over(x, other, now, out);
        return;
    }
    other = failover_host(x, &c, now);
    if (other != LB_NO_HOST) {
        x->failovers++;
        cluster_rt_count(x->cluster, CLUSTER_connect_failover, 1);
        attempt_again(x, other, ACTION_ATTEMPT, now, out);
        return;
    }
    choice = retrying_choose(x, &c, now);
    if (choice.what == RETRYING_NOT)
        fail(x, connect_reason(e->fault), out);
    else
        go_on(x, &choice, now, out);
}

static void on_connect_failed(struct exchange *x, const struct exchange_event *e, mono_ns now,
                              struct actions *out)
{
    assert(x->state == EXCHANGE_PICKED || x->state == EXCHANGE_QUEUED);
    if (e->fault != FAULT_LOCAL) {
        attempt_learn(x, OUTLIER_CONNECT_FAILED, 0, now, out);
        attempt_count_error(x);
        witness_end(x, e->fault == FAULT_REFUSED ? EVIDENCE_REFUSED : EVIDENCE_CONNECT_FAILED, now);
    }
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_pending_failure_eject, 1);
    attempt_end(x, ATTEMPT_CONNECT_FAILED, reasons[connect_reason(e->fault)].flag, now);
    move_on(x, e, now, out);
}

/* --- the answer --- */

static void weigh_head(struct exchange *x, const struct exchange_event *e, mono_ns now,
                       struct actions *out)
{
    assert(x->state == EXCHANGE_SENT);
    attempt_learn(x, OUTLIER_ANSWERED, e->status, now, out);
    attempt_present(x)->status = e->status;
    if (e->load != NULL)
        host_report_learn(&attempt_host(x)->report, e->load, now);
}

static void accept_head(struct exchange *x, const struct exchange_event *e, mono_ns now,
                        struct actions *out)
{
    endpoint_rt_count(x->cluster, attempt_present(x)->host,
                      e->status >= 500 ? ENDPOINT_rq_error : ENDPOINT_rq_success);
    x->status = e->status;
    x->head_at = now;
    x->reason = REASON_VIA_UPSTREAM;
    x->try_deadline = MONO_NEVER;
    witness_forget(x);
    x->state = EXCHANGE_ANSWERING;
    actions_add_simple(out, ACTION_FORWARD);
}

static enum evidence_outcome answered_with(uint32_t status)
{
    if (status < 500)
        return EVIDENCE_OK;
    return status >= 502 && status <= 504 ? EVIDENCE_GATEWAY : EVIDENCE_ERROR;
}

static void discard_answer(struct exchange *x, uint32_t status, mono_ns now, struct actions *out)
{
    retry_cells_add(x->cluster->cells, status);
    attempt_count_error(x);
    actions_add_simple(out, ACTION_DISCARD);
    witness_end(x, answered_with(status), now);
    attempt_end(x, ATTEMPT_ANSWERED, FLAG_NONE, now);
}

/* Is the answer thrown away for another attempt? */
static bool retry_answer(struct exchange *x, const struct exchange_event *e, mono_ns now,
                         struct actions *out)
{
    const struct retrying_case c = {
        .failure = {.kind = RETRY_FAILED_ANSWER,
                    .status = e->status,
                    .marked = e->marked,
                    .rate_limited = e->rate_limited},
        .replayable = e->replayable,
    };
    struct retrying_choice choice = retrying_choose(x, &c, now);

    if (choice.what == RETRYING_NOT)
        return false;
    discard_answer(x, e->status, now, out);
    go_on(x, &choice, now, out);
    return true;
}

/* A trial's failure is nobody's answer. */
static bool make_good(struct exchange *x, const struct exchange_event *e, mono_ns now,
                      struct actions *out)
{
    uint32_t other = e->status < 500 ? LB_NO_HOST : probing_remedy(x, e->replayable);

    if (other == LB_NO_HOST)
        return false;
    discard_answer(x, e->status, now, out);
    take_over(x, other, now, out);
    return true;
}

static void on_head(struct exchange *x, const struct exchange_event *e, mono_ns now,
                    struct actions *out)
{
    weigh_head(x, e, now, out);
    if (make_good(x, e, now, out))
        return;
    if (x->retry == NULL || !retry_answer(x, e, now, out))
        accept_head(x, e, now, out);
}

static void on_tunnel(struct exchange *x, const struct exchange_event *e, mono_ns now,
                      struct actions *out)
{
    weigh_head(x, e, now, out);
    accept_head(x, e, now, out);
    x->tunnel = true;
    x->deadline = MONO_NEVER;
    x->body_deadline = MONO_NEVER;
}

static void on_upstream_complete(struct exchange *x, const struct exchange_event *e, mono_ns now,
                                 struct actions *out)
{
    assert(x->state == EXCHANGE_ANSWERING);
    x->answer_bytes = e->bytes;
    x->held_up = e->held_up;
    if (!x->tunnel)
        witness_end(x, answered_with(x->status), now);
    if (attempt_present(x)->trial != TRIAL_NONE && x->status < 500)
        cluster_rt_probe_over(x->cluster);
    attempt_end(x, ATTEMPT_ANSWERED, FLAG_NONE, now);
    x->state = EXCHANGE_DELIVERING;
    end_deadlines(x);
    actions_add_simple(out, ACTION_RELEASE);
}

/* Was it the race of keep-alive, a connection the host had closed before our bytes came? */
static bool may_resend(const struct exchange *x, const struct exchange_event *e)
{
    return !exchange_follows_envoy(x, DIFFERENCE_LOST_REUSE_FAILS) && x->reused && e->untouched &&
           e->replayable && x->idempotent && e->fault == FAULT_RESET && !x->interim &&
           x->resends < RESENDS_MAX;
}

static void on_broken_early(struct exchange *x, const struct exchange_event *e, enum reason reason,
                            mono_ns now, struct actions *out)
{
    const struct retrying_case c = {
        .failure.kind = RETRY_FAILED_RESET,
        .replayable = e->replayable,
    };
    uint32_t host = attempt_present(x)->host;
    uint32_t other = probing_remedy(x, e->replayable);
    struct retrying_choice choice;

    actions_add_simple(out, ACTION_ABANDON);
    if (may_resend(x, e) && retrying_afford(x, now)) {
        attempt_end(x, ATTEMPT_RESET, FLAG_UC, now);
        x->resends++;
        cluster_rt_count(x->cluster, CLUSTER_reuse_resend, 1);
        attempt_again(x, host, ACTION_ATTEMPT_FRESH, now, out);
        return;
    }
    attempt_learn(x, OUTLIER_RESET, 0, now, out);
    attempt_count_error(x);
    witness_end(x, EVIDENCE_RESET, now);
    attempt_end(x, ATTEMPT_RESET, reasons[reason].flag, now);
    if (other != LB_NO_HOST) {
        take_over(x, other, now, out);
        return;
    }
    choice = retrying_choose(x, &c, now);
    if (choice.what == RETRYING_NOT)
        fail(x, reason, out);
    else
        go_on(x, &choice, now, out);
}

/* To Envoy an answer that the end of its connection cuts is no HTTP. */
static bool malformed(const struct exchange *x, const struct exchange_event *e)
{
    return e->fault == FAULT_PROTOCOL ||
           (!e->untouched && !x->tunnel && exchange_follows_envoy(x, DIFFERENCE_CUT_IS_MALFORMED));
}

static void on_broken(struct exchange *x, const struct exchange_event *e, mono_ns now,
                      struct actions *out)
{
    bool bad = malformed(x, e);
    enum reason reason = bad ? REASON_PROTOCOL_LATE : REASON_RESET_LATE;

    assert(x->state == EXCHANGE_SENT || x->state == EXCHANGE_ANSWERING);
    if (bad)
        cluster_rt_count(x->cluster, CLUSTER_upstream_cx_protocol_error, 1);
    if (x->state == EXCHANGE_SENT) {
        on_broken_early(x, e, bad ? REASON_PROTOCOL_ERROR : REASON_RESET, now, out);
        return;
    }
    actions_add_simple(out, ACTION_ABANDON);
    if (!x->tunnel) {
        attempt_learn(x, OUTLIER_RESET, 0, now, out);
        witness_end(x, EVIDENCE_CUT, now);
    }
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
    return exchange_follows_envoy(x, DIFFERENCE_TIMEOUT_ALWAYS_COUNTS) || now < x->deadline ||
           mono_since(attempt_asked_at(x), now) >= x->timeout / 2;
}

/* Ends whatever attempt there is. It is evidence only where the whole request lay with the host. */
static void time_out_attempt(struct exchange *x, enum reason reason, bool held_up, mono_ns now,
                             struct actions *out)
{
    bool timed_out = sent_and_silent(x) && reasons[reason].flag == FLAG_UT;

    if (!attempt_open(x))
        return;
    if (x->state == EXCHANGE_QUEUED)
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_cancelled, 1);
    if (x->state != EXCHANGE_QUEUED && reasons[reason].flag == FLAG_UT)
        endpoint_rt_count(x->cluster, attempt_present(x)->host, ENDPOINT_rq_timeout);
    actions_add_simple(out, ACTION_ABANDON);
    if (timed_out)
        attempt_count_error(x);
    if (timed_out && had_its_share(x, now)) {
        attempt_learn(x, OUTLIER_TIMED_OUT, 0, now, out);
        witness_end(x, EVIDENCE_TIMEOUT, now);
    } else if (x->state == EXCHANGE_ANSWERING && !x->tunnel && !held_up) {
        witness_end(x, EVIDENCE_CUT, now);
    }
    attempt_end(x, timed_out ? ATTEMPT_TIMED_OUT : ATTEMPT_CANCELLED, reasons[reason].flag, now);
}

static mono_ns idle_deadline(const struct exchange *x)
{
    return mono_after(x->active_at, x->route == NULL ? x->idle_timeout : x->route->idle_timeout);
}

static enum reason why_time(const struct exchange *x, mono_ns now)
{
    if (now >= x->try_deadline && x->state != EXCHANGE_WAITING)
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

static void end_in_time(struct exchange *x, enum reason reason, bool held_up, mono_ns now,
                        struct actions *out)
{
    if (reason == REASON_PER_TRY_TIMEOUT && probing_only_late(x, now)) {
        witness_end(x, EVIDENCE_ABANDONED, now);
        actions_add_simple(out, ACTION_ABANDON);
        attempt_end(x, ATTEMPT_CANCELLED, FLAG_NONE, now);
        return;
    }
    count_timeout(x, reason);
    time_out_attempt(x, reason, held_up, now, out);
}

static void on_time(struct exchange *x, const struct exchange_event *e, mono_ns now,
                    struct actions *out)
{
    const struct retrying_case c = {
        .failure.kind = RETRY_FAILED_TIME,
        .replayable = e->replayable,
    };
    struct retrying_choice choice = {.what = RETRYING_NOT};
    enum reason reason = why_time(x, now);
    uint32_t other = LB_NO_HOST;

    if (reason == REASON_NONE) {
        if (x->state == EXCHANGE_WAITING && now >= x->try_deadline)
            retry_due(x, now, out);
        return;
    }
    if (reason == REASON_PER_TRY_TIMEOUT) {
        other = probing_remedy(x, e->replayable);
        if (probing_goes_on(x, other, now))
            return;
    }
    end_in_time(x, reason, e->held_up, now, out);
    if (other != LB_NO_HOST) {
        take_over(x, other, now, out);
        return;
    }
    if (reason == REASON_PER_TRY_TIMEOUT)
        choice = retrying_choose(x, &c, now);
    if (choice.what == RETRYING_NOT)
        fail(x, reason, out);
    else
        go_on(x, &choice, now, out);
}

/* --- the client, and the proxy itself --- */

static void drop_attempt(struct exchange *x, uint32_t flags, mono_ns now, struct actions *out)
{
    if (!attempt_open(x))
        return;
    if (flags == FLAG_DC && sent_and_silent(x))
        witness_end(x, EVIDENCE_ABANDONED, now);
    if (attempt_present(x)->trial != TRIAL_NONE)
        cluster_rt_probe_over(x->cluster); /* nobody is left to make it good for */
    if (x->state == EXCHANGE_QUEUED)
        cluster_rt_count(x->cluster, CLUSTER_upstream_rq_cancelled, 1);
    actions_add_simple(out, ACTION_ABANDON);
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
    x->timeout = setup->route == NULL ? MONO_NEVER : setup->route->timeout;
    x->per_try_timeout = setup->route == NULL ? MONO_NEVER : setup->route->per_try_timeout;
    x->retry =
        setup->route == NULL || setup->route->retry == NULL ? NULL : &setup->route->retry->policy;
    x->status = 0;
    x->flags = FLAG_NONE;
    x->reason = REASON_NONE;
    x->attempt_count = 0;
    x->failovers = 0;
    x->resends = 0;
    x->retries = 0;
    x->idempotent = setup->idempotent;
    x->repeatable = setup->idempotent || setup->named || retrying_any_method(x);
    x->sent = false;
    x->interim = false;
    x->reused = false;
    x->holds_process = false;
    x->holds_pending = false;
    x->holds_host_pending = false;
    x->holds_request = false;
    x->holds_host_request = false;
    x->waits = false;
    x->holds_retry = false;
    x->tunnel = false;
    x->cut = false;
    x->class = setup->class;
    x->watched = false;
    x->answer_bytes = 0;
    x->held_up = false;
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
        on_upstream_complete(x, event, now, out);
        return;
    case EVENT_DELIVERED:
        finish(x, out);
        return;
    case EVENT_BROKEN:
        on_broken(x, event, now, out);
        return;
    case EVENT_TIME:
        on_time(x, event, now, out);
        return;
    case EVENT_CLIENT_GONE:
        on_client_gone(x, now, out);
        return;
    case EVENT_REFUSED:
        on_refused(x, event, now, out);
        return;
    }
}

void exchange_settle(struct exchange *x, const struct route *own)
{
    assert(x->tunnel);
    x->route = own;
    x->retry = NULL;
}

mono_ns exchange_wakeup(const struct exchange *x)
{
    if (x->state == EXCHANGE_DONE)
        return MONO_NEVER;
    return mono_min(mono_min(x->deadline, x->try_deadline),
                    mono_min(x->body_deadline, idle_deadline(x)));
}
