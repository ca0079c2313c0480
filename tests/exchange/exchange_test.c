/* SPDX-License-Identifier: Apache-2.0 */
/* One request's life: each way it can end, and law 6 on random histories. */
#include "exchange/exchange_world.h"

static void an_answer_goes_through(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    sent(&f);
    SAY(&f, EVENT_HEAD, .status = 200);
    assert_true(did(&f, ACTION_FORWARD));
    SAY(&f, EVENT_UPSTREAM_COMPLETE);
    assert_true(did(&f, ACTION_RELEASE));
    assert_int_equal(host_state_sum(host_state_of(f.cluster.hosts.at[f.x.attempts[0].host]),
                                    ENDPOINT_rq_success),
                     1);
    check_end(&f, REASON_VIA_UPSTREAM, 200, FLAG_NONE);
}

static void no_route_is_404(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, true);
    f.x.route = NULL;
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    assert_true(did(&f, ACTION_RESPOND));
    check_end(&f, REASON_NO_ROUTE, 404, FLAG_NR);
}

static void no_healthy_host_is_503_uh(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    for (uint32_t i = 0; i < HOSTS; i++)
        host_set_health(&f.cluster.state->hosts, i, HOST_EJECTED);
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    assert_int_equal(metric(&f, CLUSTER_upstream_cx_none_healthy), 1);
    check_end(&f, REASON_NO_HEALTHY, 503, FLAG_UH);
}

static void a_full_queue_refuses_and_blames_nobody(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.cluster.limits.max_pending = 0;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    assert_false(did(&f, ACTION_ACCUSE));
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_pending_overflow), 1);
    assert_int_equal(f.x.attempts[0].outcome, ATTEMPT_OVERFLOW);
    assert_int_equal(charged(&f), 0);
    check_end(&f, REASON_OVERFLOW, 503, FLAG_UO);
}

static void the_request_limit_refuses_and_gives_the_connection_back(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.cluster.limits.max_requests = 0;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_CONNECTED, .reused = true);
    assert_true(did(&f, ACTION_RELEASE));
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_active_overflow), 1);
    check_end(&f, REASON_OVERFLOW, 503, FLAG_UO);
}

static void the_process_bound_refuses(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.process->requests_max = 0;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    check_end(&f, REASON_PROCESS_FULL, 503, FLAG_UO);
}

static void a_failed_connect_moves_to_another_host_once(void **state)
{
    struct fixture f;
    uint32_t first;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, false);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    first = f.out.at[0].host;
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED);
    assert_true(did(&f, ACTION_ATTEMPT));
    assert_int_not_equal(exchange_host(&f.x), first);
    assert_int_equal(metric(&f, CLUSTER_connect_failover), 1);
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED);
    assert_false(did(&f, ACTION_ATTEMPT));
    check_end(&f, REASON_CONNECT_REFUSED, 503, FLAG_UF);
}

static void without_failover_the_first_failed_connect_is_the_answer(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.cluster.connect_failover = false;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_CONNECT_TIMEOUT);
    check_end(&f, REASON_CONNECT_TIMEOUT, 503, FLAG_UF);
}

static void our_own_want_of_descriptors_blames_nobody_and_moves_nowhere(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    SAY(&f, EVENT_CONNECT_FAILED, .fault = FAULT_LOCAL);
    assert_false(did(&f, ACTION_ATTEMPT));
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(f.cluster.state->hosts.at[i]->runs.run_local, 0);
        assert_int_equal(f.cluster.state->hosts.at[i]->runs.refused, 0);
    }
    check_end(&f, REASON_CONNECT_LOCAL, 503, FLAG_UF);
}

static void a_dead_reused_connection_is_tried_again_on_a_fresh_one(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    sent(&f);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .untouched = true, .replayable = true);
    assert_true(did(&f, ACTION_ATTEMPT_FRESH));
    assert_int_equal(exchange_host(&f.x), f.x.attempts[0].host);
    assert_int_equal(charged(&f), 0);
    SAY(&f, EVENT_CONNECTED, .reused = false);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .untouched = true, .replayable = true);
    assert_false(did(&f, ACTION_ATTEMPT_FRESH));
    assert_int_equal(charged(&f), 1);
    check_end(&f, REASON_RESET, 503, FLAG_UC);
}

static const struct {
    const char *name;
    bool idempotent, reused, untouched, replayable;
} not_resent[] = {
    {"a POST", false, true, true, true},
    {"a fresh connection", true, false, true, true},
    {"an answer had begun", true, true, false, true},
    {"a body that is gone", true, true, true, false},
};

static void a_lost_request_is_not_sent_twice_where_it_might_matter(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof(not_resent) / sizeof(not_resent[0]); i++) {
        struct fixture f;

        open_fixture(&f, 1);
        begin_method(&f, not_resent[i].idempotent);
        SAY(&f, EVENT_REQUEST_COMPLETE);
        SAY(&f, EVENT_BEGIN);
        SAY(&f, EVENT_CONNECTED, .reused = not_resent[i].reused);
        SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .untouched = not_resent[i].untouched,
            .replayable = not_resent[i].replayable);
        check_end(&f, REASON_RESET, 503, FLAG_UC);
    }
}

static void no_http_is_502_upe(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    sent(&f);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_PROTOCOL, .untouched = false, .replayable = true);
    check_end(&f, REASON_PROTOCOL_ERROR, 502, FLAG_UPE);
}

static void an_answer_cut_short_cuts_the_client_off(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    sent(&f);
    SAY(&f, EVENT_HEAD, .status = 200);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET);
    assert_true(did(&f, ACTION_CUT));
    assert_false(did(&f, ACTION_RESPOND));
    check_end(&f, REASON_RESET_LATE, 200, FLAG_UC);
}

/* Each cut of an answer: where in it, and what Envoy makes of it. */
static const struct {
    bool answering, untouched, envoy;
    enum reason reason;
    uint32_t status, flags, malformed;
} cuts[] = {
    {false, true, false, REASON_RESET, 503, FLAG_UC, 0},
    {false, true, true, REASON_RESET, 503, FLAG_UC, 0},
    {false, false, false, REASON_RESET, 503, FLAG_UC, 0},
    {false, false, true, REASON_PROTOCOL_ERROR, 502, FLAG_UPE, 1},
    {true, false, false, REASON_RESET_LATE, 200, FLAG_UC, 0},
    {true, false, true, REASON_PROTOCOL_LATE, 200, FLAG_UPE, 1},
};

static void a_cut_answer_is_malformed_as_envoy_only(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct fixture f;

        open_fixture(&f, 1);
        f.cluster.differences =
            difference_put(DIFFERENCES_FIREBREAK, DIFFERENCE_CUT_IS_MALFORMED, cuts[i].envoy);
        sent(&f);
        if (cuts[i].answering)
            SAY(&f, EVENT_HEAD, .status = 200);
        SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET, .untouched = cuts[i].untouched);
        assert_int_equal(metric(&f, CLUSTER_upstream_cx_protocol_error), cuts[i].malformed);
        assert_int_equal(f.x.cut, cuts[i].answering);
        check_end(&f, cuts[i].reason, cuts[i].status, cuts[i].flags);
    }
}

static void a_tunnel_that_breaks_is_no_answer_that_is_cut(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.cluster.differences = DIFFERENCES_ENVOY;
    sent(&f);
    SAY(&f, EVENT_TUNNEL, .status = 101);
    SAY(&f, EVENT_BROKEN, .fault = FAULT_RESET);
    assert_int_equal(metric(&f, CLUSTER_upstream_cx_protocol_error), 0);
    check_end(&f, REASON_RESET_LATE, 101, FLAG_UC);
}

static void a_failed_connect_says_why(void **state)
{
    static const struct {
        enum attempt_fault fault;
        enum reason reason;
    } rows[] = {
        {FAULT_REFUSED, REASON_CONNECT_REFUSED},    {FAULT_UNREACHABLE, REASON_CONNECT_UNREACHABLE},
        {FAULT_UNCONNECTED, REASON_CONNECT_FAILED}, {FAULT_CONNECT_TIMEOUT, REASON_CONNECT_TIMEOUT},
        {FAULT_LOCAL, REASON_CONNECT_LOCAL},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;

        open_fixture(&f, 1);
        f.cluster.connect_failover = false;
        begin_method(&f, true);
        SAY(&f, EVENT_REQUEST_COMPLETE);
        SAY(&f, EVENT_BEGIN);
        SAY(&f, EVENT_CONNECT_FAILED, .fault = rows[i].fault);
        check_end(&f, rows[i].reason, 503, FLAG_UF);
    }
}

static void the_total_timeout_starts_at_the_end_of_the_request(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, false);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_CONNECTED, .reused = true);
    f.now += 60 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.out.count, 0);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    assert_int_equal(exchange_wakeup(&f.x), f.now + 15 * SEC);
    f.now += 15 * SEC - 1;
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.out.count, 0);
    f.now += 1;
    SAY(&f, EVENT_TIME);
    assert_true(did(&f, ACTION_ABANDON));
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_timeout), 1);
    assert_int_equal(charged(&f), 1);
    check_end(&f, REASON_TIMEOUT, 504, FLAG_UT);
}

static void a_timeout_in_the_queue_is_no_evidence(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    f.now += 15 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_cancelled), 1);
    assert_int_equal(charged(&f), 0);
    check_end(&f, REASON_TIMEOUT, 504, FLAG_UT);
}

static void the_try_timeout_starts_with_the_connection(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.route.per_try_timeout = 2 * SEC;
    begin_method(&f, true);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_MUST_WAIT);
    f.now += 3 * SEC;
    SAY(&f, EVENT_CONNECTED, .reused = false);
    assert_int_equal(exchange_wakeup(&f.x), f.now + 2 * SEC);
    f.now += 2 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(metric(&f, CLUSTER_upstream_rq_per_try_timeout), 1);
    check_end(&f, REASON_PER_TRY_TIMEOUT, 504, FLAG_UT);
}

static void a_head_that_came_ends_the_try_timeout(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.route.per_try_timeout = 2 * SEC;
    sent(&f);
    SAY(&f, EVENT_HEAD, .status = 200);
    f.now += 3 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.out.count, 0);
    SAY(&f, EVENT_UPSTREAM_COMPLETE);
    check_end(&f, REASON_VIA_UPSTREAM, 200, FLAG_NONE);
}

static void silence_ends_a_stream(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.route.timeout = MONO_NEVER;
    f.route.idle_timeout = 5 * SEC;
    sent(&f);
    f.now += 3 * SEC;
    exchange_touch(&f.x, f.now);
    f.now += 3 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.out.count, 0);
    f.now += 2 * SEC;
    SAY(&f, EVENT_TIME);
    check_end(&f, REASON_STREAM_IDLE, 504, FLAG_SI);
}

static void a_slow_upload_is_408(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    begin_method(&f, false);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_CONNECTED, .reused = true);
    for (int i = 0; i < 3; i++) {
        f.now += 100 * SEC;
        exchange_touch(&f.x, f.now);
    }
    SAY(&f, EVENT_TIME);
    assert_int_equal(charged(&f), 0);
    check_end(&f, REASON_BODY_TIMEOUT, 408, FLAG_NONE);
}

static void who_reads_a_whole_answer_slowly_is_not_cut_by_the_route_timeout(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.route.idle_timeout = 60 * SEC;
    sent(&f);
    SAY(&f, EVENT_HEAD, .status = 200);
    SAY(&f, EVENT_UPSTREAM_COMPLETE);
    f.now += 20 * SEC; /* the route's is 15 */
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.out.count, 0);
    f.now += 40 * SEC;
    assert_true(exchange_wakeup(&f.x) <= f.now);
    SAY(&f, EVENT_TIME);
    assert_true(did(&f, ACTION_CUT));
    check_clean(&f);
    close_fixture(&f);
}

/* An answer that came early; the rest of the request only later. */
static void a_request_whole_after_its_answer_starts_no_clock(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    f.route.idle_timeout = 60 * SEC;
    begin_method(&f, false);
    SAY(&f, EVENT_BEGIN);
    SAY(&f, EVENT_CONNECTED, .reused = true);
    SAY(&f, EVENT_HEAD, .status = 200);
    SAY(&f, EVENT_UPSTREAM_COMPLETE);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    f.now += 20 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.out.count, 0);
    SAY(&f, EVENT_DELIVERED);
    check_clean(&f);
    close_fixture(&f);
}

static void a_local_answer_nobody_reads_ends_without_a_route_too(void **state)
{
    struct fixture f;
    struct exchange_setup setup = {.body_timeout = 300 * SEC, .idle_timeout = 5 * SEC};
    (void)state;

    open_fixture(&f, 1);
    setup.process = f.process;
    exchange_init(&f.x, &setup, f.now);
    SAY(&f, EVENT_REQUEST_COMPLETE);
    SAY(&f, EVENT_BEGIN);
    assert_true(did(&f, ACTION_RESPOND));
    assert_int_equal(exchange_wakeup(&f.x), f.now + 5 * SEC);
    f.now += 5 * SEC;
    SAY(&f, EVENT_TIME);
    assert_true(did(&f, ACTION_CUT));
    check_clean(&f);
    close_fixture(&f);
}

static void a_tunnel_knows_only_silence(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    sent(&f);
    SAY(&f, EVENT_TUNNEL, .status = 101);
    f.now += 20 * SEC;
    SAY(&f, EVENT_TIME);
    assert_int_equal(f.out.count, 0);
    f.now += 300 * SEC;
    SAY(&f, EVENT_TIME);
    assert_true(did(&f, ACTION_CUT));
    check_end(&f, REASON_STREAM_IDLE, 101, FLAG_SI);
}

/* What it came by may be gone long before it ends. */
static void a_tunnel_goes_on_by_a_route_of_its_own(void **state)
{
    const struct route own = {.idle_timeout = 7 * SEC};
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    sent(&f);
    SAY(&f, EVENT_TUNNEL, .status = 101);
    exchange_settle(&f.x, &own);
    assert_ptr_equal(f.x.route, &own);
    assert_null(f.x.retry);
    assert_int_equal(exchange_wakeup(&f.x), f.now + 7 * SEC);
    f.now += 3 * SEC;
    SAY(&f, EVENT_REFUSED, .reason = REASON_HOST_DRAIN);
    assert_true(did(&f, ACTION_CUT));
    assert_true(did(&f, ACTION_ABANDON));
    assert_false(did(&f, ACTION_ACCUSE));
    check_end(&f, REASON_HOST_DRAIN, 101, FLAG_LR);
}

static void a_client_that_leaves_is_no_failure_of_the_host(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    sent(&f);
    SAY(&f, EVENT_CLIENT_GONE);
    assert_true(did(&f, ACTION_ABANDON));
    assert_int_equal(charged(&f), 0);
    assert_int_equal(f.cluster.state->hosts.at[f.x.attempts[0].host]->runs.without_success, 0);
    check_end(&f, REASON_CLIENT_GONE, 0, FLAG_DC);
}

static void five_500s_accuse_the_host(void **state)
{
    struct fixture f;
    (void)state;

    open_fixture(&f, 1);
    for (int i = 1; i <= 5; i++) {
        begin_method(&f, true);
        SAY(&f, EVENT_REQUEST_COMPLETE);
        SAY(&f, EVENT_BEGIN);
        exchange_step(&f.x, &(struct exchange_event){.kind = EVENT_MUST_WAIT}, f.now, &f.out);
        exchange_move(&f.x, 1);
        SAY(&f, EVENT_CONNECTED, .reused = true);
        SAY(&f, EVENT_HEAD, .status = 500);
        assert_int_equal(did(&f, ACTION_ACCUSE), i == 5);
        if (i == 5)
            assert_int_equal(f.out.at[0].host, 1);
        SAY(&f, EVENT_UPSTREAM_COMPLETE);
        SAY(&f, EVENT_DELIVERED);
        check_clean(&f);
    }
    close_fixture(&f);
}

/* --- law 6 --- */

/* What the glue may say in each state, with |r| to choose by. */
static struct exchange_event anything(const struct exchange *x, struct rng *r)
{
    static const enum exchange_event_kind always[] = {EVENT_TIME, EVENT_CLIENT_GONE, EVENT_REFUSED};
    struct exchange_event e = {
        .fault = (enum attempt_fault)(1 + rng_below(r, 5)),
        .reason = REASON_TOO_LARGE,
        .status = 200 + rng_below(r, 400),
        .reused = rng_below(r, 2) == 0,
        .untouched = rng_below(r, 2) == 0,
        .replayable = rng_below(r, 2) == 0,
        .marked = rng_below(r, 8) == 0,
        .rate_limited = rng_below(r, 8) == 0,
    };

    if (!exchange_request_complete(x) && rng_below(r, 3) == 0) {
        e.kind = EVENT_REQUEST_COMPLETE;
        return e;
    }
    if (rng_below(r, 8) == 0) {
        e.kind = always[rng_below(r, 3)];
        return e;
    }
    switch (x->state) {
    case EXCHANGE_NEW:
        e.kind = EVENT_BEGIN;
        break;
    case EXCHANGE_PICKED:
        e.kind = rng_below(r, 2) == 0 ? EVENT_MUST_WAIT : EVENT_CONNECTED;
        break;
    case EXCHANGE_QUEUED:
        e.kind = rng_below(r, 2) == 0 ? EVENT_CONNECT_FAILED : EVENT_CONNECTED;
        break;
    case EXCHANGE_SENT:
        e.kind = rng_below(r, 3) == 0 ? EVENT_BROKEN : EVENT_HEAD;
        break;
    case EXCHANGE_WAITING:
        e.kind = EVENT_TIME;
        break;
    case EXCHANGE_ANSWERING:
        e.kind = rng_below(r, 3) == 0 ? EVENT_BROKEN : EVENT_UPSTREAM_COMPLETE;
        break;
    case EXCHANGE_DELIVERING:
    case EXCHANGE_DONE:
        e.kind = EVENT_DELIVERED;
        break;
    }
    return e;
}

struct tally {
    unsigned finished, responded, forwarded, cut, attempts, sends, ends;
};

static void tally(struct tally *t, const struct actions *out)
{
    for (unsigned i = 0; i < out->count; i++) {
        enum action_kind k = out->at[i].kind;

        t->finished += k == ACTION_FINISH;
        t->responded += k == ACTION_RESPOND;
        t->forwarded += k == ACTION_FORWARD;
        t->cut += k == ACTION_CUT;
        t->attempts += k == ACTION_ATTEMPT || k == ACTION_ATTEMPT_FRESH;
        t->sends += k == ACTION_SEND;
        t->ends += k == ACTION_RELEASE || k == ACTION_ABANDON || k == ACTION_DISCARD;
    }
}

static void run_random_life(struct fixture *f, struct rng *r)
{
    struct tally t = {0};

    begin_method(f, rng_below(r, 2) == 0);
    f->x.sent = rng_below(r, 2) == 0;
    for (int step = 0; step < 200 && f->x.state != EXCHANGE_DONE; step++) {
        f->now += rng_below(r, 4) == 0 ? 4 * SEC : 1000;
        say(f, anything(&f->x, r));
        tally(&t, &f->out);
    }
    assert_int_equal(t.finished, 1);
    assert_true(t.responded + t.forwarded <= 1);
    assert_true(t.attempts <= 3 + f->retry.policy.attempts);
    assert_true(t.sends <= t.attempts);
    assert_true(t.ends >= t.sends);
    assert_int_equal(f->x.attempt_count, t.attempts);
    for (uint32_t i = 0; i < f->x.attempt_count && i < RECORD_ATTEMPTS_MAX; i++)
        assert_int_not_equal(f->x.attempts[i].outcome, ATTEMPT_PENDING);
    if (t.responded == 1)
        assert_true(f->x.status == reasons[f->x.reason].status || t.cut == 1 ||
                    f->x.reason == REASON_CLIENT_GONE);
    check_clean(f);
    SAY(f, EVENT_CLIENT_GONE);
    assert_int_equal(f->out.count, 0);
}

static void every_request_ends_exactly_once_whatever_happens(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fixture f;
        struct rng r;

        rng_init(&r, seed);
        open_fixture(&f, seed);
        f.cluster.limits.max_pending = rng_below(&r, 3);
        f.cluster.limits.max_requests = rng_below(&r, 3);
        if (rng_below(&r, 2) == 0)
            with_retries(&f, rng_below(&r, 1u << RETRY_CONDITION_COUNT), rng_below(&r, 11));
        f.cluster.limits.max_retries = rng_below(&r, 3);
        f.cluster.retry_budget.capacity = rng_below(&r, 20);
        for (int i = 0; i < 30; i++)
            run_random_life(&f, &r);
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_goes_through),
        cmocka_unit_test(no_route_is_404),
        cmocka_unit_test(no_healthy_host_is_503_uh),
        cmocka_unit_test(a_full_queue_refuses_and_blames_nobody),
        cmocka_unit_test(the_request_limit_refuses_and_gives_the_connection_back),
        cmocka_unit_test(the_process_bound_refuses),
        cmocka_unit_test(a_failed_connect_moves_to_another_host_once),
        cmocka_unit_test(without_failover_the_first_failed_connect_is_the_answer),
        cmocka_unit_test(our_own_want_of_descriptors_blames_nobody_and_moves_nowhere),
        cmocka_unit_test(a_dead_reused_connection_is_tried_again_on_a_fresh_one),
        cmocka_unit_test(a_lost_request_is_not_sent_twice_where_it_might_matter),
        cmocka_unit_test(no_http_is_502_upe),
        cmocka_unit_test(an_answer_cut_short_cuts_the_client_off),
        cmocka_unit_test(a_cut_answer_is_malformed_as_envoy_only),
        cmocka_unit_test(a_tunnel_that_breaks_is_no_answer_that_is_cut),
        cmocka_unit_test(a_failed_connect_says_why),
        cmocka_unit_test(the_total_timeout_starts_at_the_end_of_the_request),
        cmocka_unit_test(a_timeout_in_the_queue_is_no_evidence),
        cmocka_unit_test(the_try_timeout_starts_with_the_connection),
        cmocka_unit_test(a_head_that_came_ends_the_try_timeout),
        cmocka_unit_test(silence_ends_a_stream),
        cmocka_unit_test(a_slow_upload_is_408),
        cmocka_unit_test(who_reads_a_whole_answer_slowly_is_not_cut_by_the_route_timeout),
        cmocka_unit_test(a_request_whole_after_its_answer_starts_no_clock),
        cmocka_unit_test(a_local_answer_nobody_reads_ends_without_a_route_too),
        cmocka_unit_test(a_tunnel_knows_only_silence),
        cmocka_unit_test(a_tunnel_goes_on_by_a_route_of_its_own),
        cmocka_unit_test(a_client_that_leaves_is_no_failure_of_the_host),
        cmocka_unit_test(five_500s_accuse_the_host),
        cmocka_unit_test(every_request_ends_exactly_once_whatever_happens),
    };

    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
