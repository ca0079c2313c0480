/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retries, as one exchange sees them: the examples R1 to R6, R9 and C3 to C5 of
 * reference/envoy-semantics.md 12, what may never be retried, and law 4 on random histories.
 */
#include "exchange/exchange_world.h"
#include "exchange/retry_headers.h"

/* Whatever is retried, retries wait: as if much was retried already. */
static void busy(struct fixture *f)
{
    for (int i = 0; i < 20; i++)
        window_add(&f->rt.cells->extra_attempts, f->now);
}

static uint64_t retried(const struct fixture *f, enum retry_metric m)
{
    return cell_read(&f->rt.cells->retry[m]);
}

static void connect_and_send(struct fixture *f)
{
    SAY(f, EVENT_CONNECTED, .reused = true);
    assert_int_equal(f->x.state, EXCHANGE_SENT);
    exchange_sent(&f->x, f->now);
}

/* A request whose first attempt was sent. */
static void ask(struct fixture *f, bool idempotent)
{
    begin_method(f, idempotent);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    connect_and_send(f);
}

static void open_with(struct fixture *f, uint32_t on, uint32_t attempts)
{
    open_fixture(f, 1);
    f->cluster.connect_failover = false;
    with_retries(f, on, attempts);
}

static void answer(struct fixture *f, uint32_t status)
{
    SAY(f, EVENT_HEAD, .status = status, .replayable = true);
}

static void answer_whole(struct fixture *f, uint32_t status, uint32_t flags)
{
    assert_true(did(f, ACTION_FORWARD));
    SAY(f, EVENT_UPSTREAM_COMPLETE);
    check_end(f, REASON_VIA_UPSTREAM, status, flags);
}

static void r1_used_up_retries_show_the_last_answer_and_urx(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 2);
    ask(&f, true);
    for (int i = 0; i < 2; i++) {
        answer(&f, 503);
        assert_true(did(&f, ACTION_DISCARD));
        assert_true(did(&f, ACTION_ATTEMPT));
        connect_and_send(&f);
    }
    answer(&f, 503);
    assert_false(did(&f, ACTION_ATTEMPT));
    assert_int_equal(f.x.attempt_count, 3);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry), 2);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_limit_exceeded), 1);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_success), 0);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_total), 3);
    assert_int_equal(retried(&f, RETRY_STAT_upstream_rq_5xx), 2);
    assert_int_equal(retried(&f, RETRY_STAT_upstream_rq_completed), 2);
    assert_int_equal(f.rt.cells->retry_statuses.code[0], 503);
    assert_int_equal(f.rt.cells->retry_statuses.count[0], 2);
    answer_whole(&f, 503, FLAG_URX);
}

static void r2_a_retry_that_helps_leaves_no_flag(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 2);
    ask(&f, true);
    answer(&f, 503);
    assert_int_not_equal(exchange_host(&f.x), f.x.attempts[0].host);
    assert_int_equal(f.x.attempts[0].outcome, ATTEMPT_ANSWERED);
    assert_int_equal(f.x.attempts[0].status, 503);
    connect_and_send(&f);
    answer(&f, 200);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_success), 1);
    answer_whole(&f, 200, FLAG_NONE);
}

static void r3_refused_connects_end_as_urx_uf(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_CONNECT_FAILURE, 1);
    begin_method(&f, false);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT));
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_limit_exceeded), 1);
    check_end(&f, REASON_CONNECT_REFUSED, 503, FLAG_URX | FLAG_UF);
}

static uint64_t host_metric(const struct fixture *f, uint32_t host, enum endpoint_metric m)
{
    return host_state_sum(host_state_of(f->cluster.hosts.at[host]), m);
}

static void an_answer_that_is_thrown_away_is_an_error_of_its_host_whatever_it_says(void **state)
{
    struct fixture f;
    uint32_t first;
    (void)state;

    open_with(&f, RETRY_ON_RETRIABLE_4XX, 1);
    ask(&f, true);
    first = exchange_host(&f.x);
    answer(&f, 409);
    assert_int_equal(host_metric(&f, first, ENDPOINT_rq_error), 1);
    connect_and_send(&f);
    answer(&f, 409);
    assert_int_equal(host_metric(&f, exchange_host(&f.x), ENDPOINT_rq_success), 1);
    assert_int_equal(host_metric(&f, first, ENDPOINT_rq_success), 0);
    answer_whole(&f, 409, FLAG_URX);
}

static void a_retry_that_ends_in_what_is_not_covered_has_succeeded(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_RETRIABLE_4XX, 2);
    ask(&f, true);
    answer(&f, 409);
    connect_and_send(&f);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_success), 1);
    check_end(&f, REASON_RESET, 503, FLAG_UC);
}

/* `attempts: 0` with conditions: a failure that they name has its retries used up. */
static void no_attempts_are_used_up_at_once_and_cost_no_failover(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 0);
    ask(&f, true);
    answer(&f, 503);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_limit_exceeded), 1);
    answer_whole(&f, 503, FLAG_URX);

    open_with(&f, RETRY_ON_CONNECT_FAILURE, 0);
    f.cluster.connect_failover = true;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT));
    connect_and_send(&f);
    answer(&f, 200);
    answer_whole(&f, 200, FLAG_NONE);
}

static void r4_per_try_timeouts_are_retried_within_the_route_timeout(void **state)
{
    struct fixture f;
    unsigned steps = 0;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 5);
    f.route.timeout = 250 * NS_PER_MS;
    f.route.per_try_timeout = 100 * NS_PER_MS;
    ask(&f, true);
    while (f.x.state != EXCHANGE_DELIVERING && steps++ < 20) {
        f.now = exchange_wakeup(&f.x);
        SAY(&f, EVENT_TIME, .replayable = true);
        if (f.x.state == EXCHANGE_PICKED)
            connect_and_send(&f);
    }
    assert_int_equal(f.x.attempt_count, 3);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_per_try_timeout), 2);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_timeout), 1);
    assert_int_equal(f.now, SEC + 250 * NS_PER_MS);
    check_end(&f, REASON_TIMEOUT, 504, FLAG_UT);
}

static void r5_without_a_policy_the_timeout_is_the_end(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.route.timeout = 100 * NS_PER_MS;
    ask(&f, true);
    f.now += 100 * NS_PER_MS;
    SAY(&f, EVENT_TIME, .replayable = true);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_timeout), 1);
    check_end(&f, REASON_TIMEOUT, 504, FLAG_UT);
}

static void r6_a_request_that_never_ends_starts_no_timeout(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.route.timeout = 100 * NS_PER_MS;
    begin_method(&f, true);
    SAY(&f, EVENT_BEGIN);
    connect_and_send(&f);
    f.now += 10 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.x.state, EXCHANGE_SENT);
    assert_true(exchange_wakeup(&f.x) > f.now + 100 * SEC);
    SAY(&f, EVENT_CLIENT_GONE);
    check_end(&f, REASON_CLIENT_GONE, 0, FLAG_DC);
}

static void r9_garbage_is_retried_as_a_reset_and_else_upe(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_RESET, 1);
    ask(&f, true);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_PROTOCOL, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT));
    connect_and_send(&f);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_PROTOCOL, .replayable = true);
    check_end(&f, REASON_PROTOCOL_ERROR, 502, FLAG_URX | FLAG_UPE);
}

static void c3_no_retries_at_once_is_uo_and_the_hosts_own_answer(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    f.cluster.limits.max_retries = 0;
    ask(&f, true);
    answer(&f, 500);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_overflow), 1);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry), 0);
    answer_whole(&f, 500, FLAG_UO);
}

/* Retries that may be made at once with |active| requests on connections. */
static uint32_t allowed_at_once(struct fixture *f, uint32_t active)
{
    struct exchange many[12];
    uint32_t n = 0;

    f->cluster.limits.max_retries = 0; /* the share takes its place */
    f->cluster.retry_share = (struct retry_share){.given = true, .permille = 200, .least = 3};
    f->cluster.retry_budget.capacity = 100;
    for (uint32_t i = 0; i < active; i++)
        assert_true(limit_take(&f->cluster.state->requests, LIMIT_NONE));
    for (; n < 12; n++) {
        ask(f, true);
        limit_give(&f->cluster.state->requests); /* it is one of the |active| */
        answer(f, 500);
        assert_true(limit_take(&f->cluster.state->requests, LIMIT_NONE));
        if (did(f, ACTION_FORWARD))
            return n;
        many[n] = f->x;
    }
    (void)many;
    return n;
}

static void c4_c5_a_share_of_what_is_under_way_and_never_below_its_least(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    assert_int_equal(allowed_at_once(&f, 30), 6);
    close_fixture(&f);
    open_with(&f, RETRY_ON_5XX, 1);
    assert_int_equal(allowed_at_once(&f, 2), 3);
    close_fixture(&f);
}

static void the_budget_refuses_as_max_retries_does(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 5);
    f.cluster.retry_budget = (struct retry_budget_config){.capacity = 1};
    ask(&f, true);
    answer(&f, 503);
    assert_true(did(&f, ACTION_ATTEMPT));
    connect_and_send(&f);
    answer(&f, 503);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_overflow), 1);
    assert_int_equal(limit_used(&f.cluster.state->retries), 0);
    answer_whole(&f, 503, FLAG_UO);
}

static void a_failed_connect_that_the_budget_refuses_keeps_its_own_flag(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_CONNECT_FAILURE, 5);
    f.cluster.retry_budget.capacity = 0;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    check_end(&f, REASON_CONNECT_REFUSED, 503, FLAG_UO | FLAG_UF);
}

static void a_failover_needs_no_token_but_a_resend_does(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.cluster.retry_budget.capacity = 0;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT));
    assert_int_equal(metric(&f, CLUSTER_retry_budget_refused), 0);
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    check_end(&f, REASON_CONNECT_REFUSED, 503, FLAG_UF);
    open_fixture(&f, 1);
    f.cluster.retry_budget.capacity = 0;
    ask(&f, true);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .untouched = true, .replayable = true);
    assert_int_equal(metric(&f, CLUSTER_retry_budget_refused), 1);
    check_end(&f, REASON_RESET, 503, FLAG_UC);
}

static void where_connects_are_retried_they_do_not_fail_over_as_well(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_CONNECT_FAILURE, 1);
    f.cluster.connect_failover = true;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    for (int i = 0; i < 2; i++) {
        SAY(&f, EVENT_MUST_WAIT);
        SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    }
    assert_int_equal(metric(&f, CLUSTER_connect_failover), 0);
    assert_int_equal(f.x.attempt_count, 2);
    check_end(&f, REASON_CONNECT_REFUSED, 503, FLAG_URX | FLAG_UF);
}

static void a_retry_waits_while_much_is_retried(void **state)
{
    struct fixture f;
    mono_ns due;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    busy(&f);
    ask(&f, true);
    answer(&f, 503);
    assert_true(did(&f, ACTION_DISCARD));
    assert_false(did(&f, ACTION_ATTEMPT));
    assert_int_equal(f.x.state, EXCHANGE_WAITING);
    assert_int_equal(limit_used(&f.cluster.state->retries), 1);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry), 0);
    due = exchange_wakeup(&f.x);
    assert_in_range(due, f.now, f.now + 24 * NS_PER_MS);
    if (due > f.now) {
        f.now = due - 1;
        SAY(&f, EVENT_TIME, .replayable = true);
        assert_int_equal(f.x.state, EXCHANGE_WAITING);
    }
    f.now = due;
    SAY(&f, EVENT_TIME, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT));
    assert_int_not_equal(exchange_host(&f.x), f.x.attempts[0].host);
    assert_int_equal(f.x.attempts[1].backoff, due - SEC);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry), 1);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_retry_backoff_exponential), 1);
    connect_and_send(&f);
    answer(&f, 200);
    answer_whole(&f, 200, FLAG_NONE);
}

static void where_all_hosts_were_tried_it_waits(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 5);
    ask(&f, true);
    for (int i = 0; i < HOSTS - 1; i++) {
        answer(&f, 503);
        assert_true(did(&f, ACTION_ATTEMPT));
        connect_and_send(&f);
    }
    answer(&f, 503);
    assert_int_equal(f.x.state, EXCHANGE_WAITING);
    f.now = exchange_wakeup(&f.x);
    SAY(&f, EVENT_TIME, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT));
    connect_and_send(&f);
    answer(&f, 200);
    answer_whole(&f, 200, FLAG_NONE);
}

static void nobody_left_after_the_wait_is_uh(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    busy(&f);
    ask(&f, true);
    answer(&f, 503);
    for (uint32_t i = 0; i < HOSTS; i++)
        host_set_health(&f.cluster.state->hosts, i, HOST_EJECTED);
    f.now = exchange_wakeup(&f.x);
    SAY(&f, EVENT_TIME, .replayable = true);
    assert_int_equal(
        retry_budget_tokens(&f.cluster.state->retry_budget, &f.cluster.retry_budget, f.now),
        10); /* it was never sent */
    check_end(&f, REASON_NO_HEALTHY, 503, FLAG_UH);
}

static void a_client_that_leaves_during_the_wait_costs_nothing(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    busy(&f);
    ask(&f, true);
    answer(&f, 503);
    assert_int_equal(f.x.state, EXCHANGE_WAITING);
    SAY(&f, EVENT_CLIENT_GONE);
    assert_int_equal(
        retry_budget_tokens(&f.cluster.state->retry_budget, &f.cluster.retry_budget, f.now), 10);
    check_end(&f, REASON_CLIENT_GONE, 0, FLAG_DC);
}

/* Law 5. */
static void what_cannot_finish_in_time_is_not_begun(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    busy(&f);
    f.retry.policy.base = 10 * SEC;
    f.retry.policy.max = 10 * SEC;
    f.route.timeout = NS_PER_MS;
    ask(&f, true);
    answer(&f, 503);
    assert_int_equal(metric(&f, CLUSTER_retry_too_late), 1);
    assert_int_equal(
        retry_budget_tokens(&f.cluster.state->retry_budget, &f.cluster.retry_budget, f.now), 10);
    answer_whole(&f, 503, FLAG_NONE);
}

static void the_route_timeout_covers_the_wait(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    busy(&f);
    f.retry.policy.base = 10 * SEC;
    f.retry.policy.max = 10 * SEC;
    begin_method(&f, true);
    SAY(&f, EVENT_BEGIN);
    connect_and_send(&f);
    answer(&f, 503); /* early: the request is not whole, its time has not begun */
    assert_int_equal(f.x.state, EXCHANGE_WAITING);
    f.x.try_deadline = f.now + 10 * SEC;
    f.x.timeout = SEC;
    SAY(&f, EVENT_REQUEST_COMPLETE);
    f.now += SEC;
    SAY(&f, EVENT_TIME, .replayable = true);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_timeout), 0);
    check_end(&f, REASON_TIMEOUT, 504, FLAG_UT);
}

static void the_route_timeout_is_never_retried(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, ~0u, 5);
    f.route.timeout = SEC;
    ask(&f, true);
    f.now += SEC;
    SAY(&f, EVENT_TIME, .replayable = true);
    assert_false(did(&f, ACTION_ATTEMPT));
    check_end(&f, REASON_TIMEOUT, 504, FLAG_UT);
}

static void overflow_is_never_retried(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, ~0u, 5);
    f.cluster.limits.max_pending = 0;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    assert_false(did(&f, ACTION_ATTEMPT));
    check_end(&f, REASON_OVERFLOW, 503, FLAG_UO);
}

static void nothing_is_retried_once_an_answer_has_begun(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, ~0u, 5);
    ask(&f, true);
    answer(&f, 200);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    assert_true(did(&f, ACTION_CUT));
    check_end(&f, REASON_RESET_LATE, 200, FLAG_UC);
    open_with(&f, ~0u, 5);
    ask(&f, true);
    exchange_interim(&f.x);
    answer(&f, 503);
    answer_whole(&f, 503, FLAG_NONE);
}

static void a_post_is_retried_only_where_it_is_named_or_nothing_was_sent(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    ask(&f, false);
    answer(&f, 503);
    answer_whole(&f, 503, FLAG_NONE);

    open_with(&f, RETRY_ON_5XX, 1);
    ask(&f, false);
    f.x.repeatable = true;
    answer(&f, 503);
    assert_true(did(&f, ACTION_ATTEMPT));
    SAY(&f, EVENT_CLIENT_GONE);
    check_end(&f, REASON_CLIENT_GONE, 0, FLAG_DC);

    open_with(&f, RETRY_ON_RESET_BEFORE_REQUEST, 1);
    begin_method(&f, false);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_CONNECTED);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT));
    SAY(&f, EVENT_CLIENT_GONE);
    check_end(&f, REASON_CLIENT_GONE, 0, FLAG_DC);
}

static void what_is_gone_of_the_body_cannot_be_sent_again(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    ask(&f, true);
    SAY(&f, EVENT_HEAD, .status = 503, .replayable = false);
    answer_whole(&f, 503, FLAG_NONE);
}

static void each_attempt_is_evidence_about_its_own_host(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    ask(&f, true);
    answer(&f, 503);
    connect_and_send(&f);
    answer(&f, 503);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(f.cluster.state->hosts.at[f.x.attempts[i].host]->runs.run_5xx, 1);
    answer_whole(&f, 503, FLAG_URX);
}

static void a_trusted_request_has_a_word_of_its_own(void **state)
{
    const struct retry_headers h = {
        .retry_on = BYTES("gateway-error, nonsense ,retriable-status-codes"),
        .max_retries = BYTES("3"),
        .statuses = BYTES("429, 77"),
        .timeout_ms = BYTES("500"),
        .per_try_ms = BYTES("0"),
    };
    const struct retry_headers odd = {.retry_on = BYTES("nothing"), .timeout_ms = BYTES("-1")};
    struct retry_policy own;
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, true);
    retry_headers_apply(&f.x, &h, &own);
    assert_ptr_equal(f.x.retry, &own);
    assert_int_equal(own.on, RETRY_ON_GATEWAY_ERROR | RETRY_ON_RETRIABLE_STATUS_CODES);
    assert_int_equal(own.attempts, 3);
    assert_int_equal(f.x.timeout, 500 * NS_PER_MS);
    assert_int_equal(f.x.per_try_timeout, MONO_NEVER);
    begin_method(&f, true);
    retry_headers_apply(&f.x, &odd, &own);
    assert_null(f.x.retry);
    assert_int_equal(f.x.timeout, 15 * SEC);
    close_fixture(&f);
}

static void a_request_cannot_ask_for_more_than_ten(void **state)
{
    const struct retry_headers h = {.retry_on = BYTES("5xx"),
                                    .max_retries = BYTES("18446744073709551615")};
    struct retry_policy own;
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, true);
    retry_headers_apply(&f.x, &h, &own);
    assert_int_equal(f.x.retry->attempts, RETRY_ATTEMPTS_MAX);
    close_fixture(&f);
}

static void where_envoy_is_followed_any_method_waits_and_no_budget_refuses(void **state)
{
    struct fixture f;
    (void)state;

    open_with(&f, RETRY_ON_5XX, 1);
    cluster_follow(&f.cluster, DIFFERENCES_ENVOY);
    f.cluster.retry_budget.capacity = 0;
    f.retry.policy.base = 10 * SEC;
    f.retry.policy.max = 10 * SEC;
    f.route.timeout = 1;
    ask(&f, false);
    answer(&f, 503);
    assert_int_equal(f.x.state, EXCHANGE_WAITING);
    f.now += 1;
    f.x.try_deadline = f.now + SEC;
    SAY(&f, EVENT_TIME, .replayable = true);
    check_end(&f, REASON_TIMEOUT, 504, FLAG_UT);
}

/* One request against hosts that mostly fail; returns at its end. */
static void live(struct fixture *f, struct rng *r)
{
    static const uint32_t statuses[] = {200, 500, 503, 409, 503};

    begin_method(f, rng_below(r, 4) != 0);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    for (int i = 0; i < 100 && f->x.state != EXCHANGE_DONE; i++) {
        switch (f->x.state) {
        case EXCHANGE_PICKED:
            SAY(f, EVENT_MUST_WAIT);
            break;
        case EXCHANGE_QUEUED:
            if (rng_below(r, 3) == 0)
                SAY(f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
            else
                connect_and_send(f);
            break;
        case EXCHANGE_SENT:
            if (rng_below(r, 3) == 0)
                SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .untouched = true, .replayable = true);
            else
                answer(f, statuses[rng_below(r, 5)]);
            break;
        case EXCHANGE_WAITING:
            f->now = exchange_wakeup(&f->x);
            SAY(f, EVENT_TIME, .replayable = true);
            break;
        case EXCHANGE_ANSWERING:
            SAY(f, EVENT_UPSTREAM_COMPLETE);
            break;
        case EXCHANGE_DELIVERING:
            SAY(f, EVENT_DELIVERED);
            break;
        case EXCHANGE_NEW:
        case EXCHANGE_DONE:
            break;
        }
    }
    assert_int_equal(f->x.state, EXCHANGE_DONE);
}

static void law_4_on_random_histories(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t attempts = 0, first = 0;
        struct fixture f;
        struct rng r;

        rng_init(&r, seed);
        open_fixture(&f, seed);
        f.cluster.outlier.enabled = false;
        with_retries(&f, RETRY_ON_5XX | RETRY_ON_RETRIABLE_4XX, 1 + rng_below(&r, 10));
        f.cluster.retry_budget = (struct retry_budget_config){.earn_permille = rng_below(&r, 1001),
                                                              .floor_per_s = rng_below(&r, 10),
                                                              .capacity = rng_below(&r, 30)};
        f.cluster.limits.max_retries = LIMIT_NONE;
        for (int i = 0; i < 300; i++) {
            const struct retry_budget_config *c = &f.cluster.retry_budget;
            uint64_t most;

            f.now += rng_below(&r, 20) * NS_PER_MS;
            live(&f, &r);
            attempts += f.x.attempt_count;
            first++;
            most = first * (1000 + c->earn_permille) + (f.now - SEC) / NS_PER_MS * c->floor_per_s +
                   c->capacity * UINT64_C(1000);
            assert_true(attempts * 1000 <= most);
        }
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r1_used_up_retries_show_the_last_answer_and_urx),
        cmocka_unit_test(r2_a_retry_that_helps_leaves_no_flag),
        cmocka_unit_test(r3_refused_connects_end_as_urx_uf),
        cmocka_unit_test(an_answer_that_is_thrown_away_is_an_error_of_its_host_whatever_it_says),
        cmocka_unit_test(a_retry_that_ends_in_what_is_not_covered_has_succeeded),
        cmocka_unit_test(no_attempts_are_used_up_at_once_and_cost_no_failover),
        cmocka_unit_test(r4_per_try_timeouts_are_retried_within_the_route_timeout),
        cmocka_unit_test(r5_without_a_policy_the_timeout_is_the_end),
        cmocka_unit_test(r6_a_request_that_never_ends_starts_no_timeout),
        cmocka_unit_test(r9_garbage_is_retried_as_a_reset_and_else_upe),
        cmocka_unit_test(c3_no_retries_at_once_is_uo_and_the_hosts_own_answer),
        cmocka_unit_test(c4_c5_a_share_of_what_is_under_way_and_never_below_its_least),
        cmocka_unit_test(the_budget_refuses_as_max_retries_does),
        cmocka_unit_test(a_failed_connect_that_the_budget_refuses_keeps_its_own_flag),
        cmocka_unit_test(a_failover_needs_no_token_but_a_resend_does),
        cmocka_unit_test(where_connects_are_retried_they_do_not_fail_over_as_well),
        cmocka_unit_test(a_retry_waits_while_much_is_retried),
        cmocka_unit_test(where_all_hosts_were_tried_it_waits),
        cmocka_unit_test(nobody_left_after_the_wait_is_uh),
        cmocka_unit_test(a_client_that_leaves_during_the_wait_costs_nothing),
        cmocka_unit_test(what_cannot_finish_in_time_is_not_begun),
        cmocka_unit_test(the_route_timeout_covers_the_wait),
        cmocka_unit_test(the_route_timeout_is_never_retried),
        cmocka_unit_test(overflow_is_never_retried),
        cmocka_unit_test(nothing_is_retried_once_an_answer_has_begun),
        cmocka_unit_test(a_post_is_retried_only_where_it_is_named_or_nothing_was_sent),
        cmocka_unit_test(what_is_gone_of_the_body_cannot_be_sent_again),
        cmocka_unit_test(each_attempt_is_evidence_about_its_own_host),
        cmocka_unit_test(a_trusted_request_has_a_word_of_its_own),
        cmocka_unit_test(a_request_cannot_ask_for_more_than_ten),
        cmocka_unit_test(where_envoy_is_followed_any_method_waits_and_no_budget_refuses),
        cmocka_unit_test(law_4_on_random_histories),
    };

    return cmocka_run_group_tests_name("retrying", tests, NULL, NULL);
}
