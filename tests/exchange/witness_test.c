/* SPDX-License-Identifier: Apache-2.0 */
/* What an exchange tells of its attempts, and the probes that are made good: from scripted events.
 */
#include "exchange/witness.h"

#include <stdlib.h>

#include "exchange/exchange_world.h"
#include "policy/evidence_ring.h"
#include "policy/retry_budget.h"

#define MS     NS_PER_MS
#define PROBED 1u

/* A worker that is listened to. */
struct scene {
    struct fixture f;
    struct witness witness;
    struct evidence_ring *ring;
};

static struct fixture *open_scene(struct scene *s)
{
    struct fixture *f = &s->f;

    open_fixture(f, 1);
    s->ring = aligned_alloc(64, sizeof(*s->ring));
    assert_non_null(s->ring);
    memset(s->ring, 0, sizeof(*s->ring));
    s->witness = (struct witness){.ring = s->ring};
    f->rt.witness = &s->witness;
    f->cluster.detection = default_detection;
    f->cluster.connect_failover = false;
    f->route.large_body = 64 * 1024;
    return f;
}

/* The request is over; nothing is held, nothing watched. */
static void close_scene(struct scene *s)
{
    if (s->f.x.state == EXCHANGE_DELIVERING)
        SAY(&s->f, EVENT_DELIVERED);
    check_clean(&s->f);
    assert_int_equal(s->witness.open, 0);
    assert_false(s->f.x.watched);
    exchange_release(&s->f.x);
    close_fixture(&s->f);
    free(s->ring);
}

static struct evidence told(struct scene *s)
{
    struct evidence e;

    assert_true(evidence_ring_take(s->ring, &e));
    assert_ptr_equal(e.cluster, s->f.cluster.state);
    return e;
}

static void told_nothing(struct scene *s)
{
    struct evidence e;

    assert_false(evidence_ring_take(s->ring, &e));
}

/* Told of one attempt, and of no other. */
static struct evidence told_only(struct scene *s, enum evidence_outcome outcome)
{
    struct evidence e = told(s);

    assert_int_equal(e.outcome, outcome);
    assert_int_equal(e.at, s->f.now);
    told_nothing(s);
    return e;
}

static void connect_and_send(struct fixture *f, bool reused)
{
    SAY(f, EVENT_CONNECTED, .reused = reused);
    assert_int_equal(f->x.state, EXCHANGE_SENT);
    exchange_sent(&f->x, f->now);
}

/* A GET that lies whole with its host, which took 3 ms to connect to. */
static void ask(struct fixture *f)
{
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    f->now += 3 * MS;
    connect_and_send(f, false);
}

static void wait_for_time(struct fixture *f)
{
    f->now = exchange_wakeup(&f->x);
    SAY(f, EVENT_TIME, .replayable = true);
}

/* --- answers --- */

static void an_answer_is_told_at_its_end_with_its_times(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    struct evidence e;
    uint32_t host;
    (void)state;

    ask(f);
    host = exchange_host(&f->x);
    f->now += 20 * MS;
    SAY(f, EVENT_HEAD, .status = 200, .replayable = true);
    told_nothing(&s);
    f->now += 5 * MS;
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 3000);
    e = told_only(&s, EVIDENCE_OK);
    assert_int_equal(e.host, host);
    assert_int_equal(e.class, CLASS_READ);
    assert_int_equal(e.flags, EVIDENCE_FRESH);
    assert_int_equal(e.connect_us, 3000);
    assert_int_equal(e.queue_us, 3000);
    assert_int_equal(e.first_us, 25000); /* a small one is as late as its last byte */
    assert_int_equal(e.last_us, 25000);
    assert_int_equal(e.kib, 2);
    close_scene(&s);
}

static void a_large_answer_is_as_late_as_its_head_and_of_a_class_of_its_own(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    struct evidence e;
    (void)state;

    ask(f);
    f->now += 20 * MS;
    SAY(f, EVENT_HEAD, .status = 200, .replayable = true);
    f->now += 500 * MS;
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 64 * 1024);
    e = told_only(&s, EVIDENCE_OK);
    assert_int_equal(e.class, CLASS_LARGE);
    assert_int_equal(e.first_us, 20000);
    assert_int_equal(e.last_us, 520000);
    assert_int_equal(e.kib, 64);
    close_scene(&s);
}

static void a_request_s_time_begins_when_it_lies_whole_with_its_host(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    struct evidence e;
    (void)state;

    begin_method(f, false);
    SAY(f, EVENT_BEGIN);
    connect_and_send(f, true);
    assert_int_equal(s.witness.open, 0); /* its client is not through yet */
    f->now += 7 * SEC;
    SAY(f, EVENT_REQUEST_COMPLETE);
    assert_int_equal(s.witness.open, 1);
    f->now += 9 * MS;
    SAY(f, EVENT_HEAD, .status = 201);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 10);
    e = told_only(&s, EVIDENCE_OK);
    assert_int_equal(e.first_us, 9000);
    assert_int_equal(e.connect_us, EVIDENCE_NO_TIME); /* it had served others before */
    assert_int_equal(e.flags, 0);
    close_scene(&s);
}

static void statuses_are_ok_gateway_or_error(void **state)
{
    static const struct {
        uint32_t status;
        enum evidence_outcome is;
    } table[] = {
        {200, EVIDENCE_OK},      {304, EVIDENCE_OK},      {404, EVIDENCE_OK},
        {429, EVIDENCE_OK},      {500, EVIDENCE_ERROR},   {501, EVIDENCE_ERROR},
        {502, EVIDENCE_GATEWAY}, {503, EVIDENCE_GATEWAY}, {504, EVIDENCE_GATEWAY},
        {505, EVIDENCE_ERROR},   {599, EVIDENCE_ERROR},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct fixture *f = open_scene(&s);
        struct evidence e;

        ask(f);
        SAY(f, EVENT_HEAD, .status = table[i].status, .replayable = true);
        SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 0);
        e = told_only(&s, table[i].is);
        assert_int_equal(e.last_us == EVIDENCE_NO_TIME, table[i].is != EVIDENCE_OK);
        close_scene(&s);
    }
}

/* --- failures --- */

static void connects_that_fail_are_refused_or_failed_and_ours_are_nothing(void **state)
{
    static const struct {
        enum attempt_fault fault;
        int is;
    } table[] = {
        {FAULT_REFUSED, EVIDENCE_REFUSED},
        {FAULT_UNREACHABLE, EVIDENCE_CONNECT_FAILED},
        {FAULT_UNCONNECTED, EVIDENCE_CONNECT_FAILED},
        {FAULT_CONNECT_TIMEOUT, EVIDENCE_CONNECT_FAILED},
        {FAULT_LOCAL, -1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct fixture *f = open_scene(&s);

        begin_method(f, true);
        SAY(f, EVENT_REQUEST_COMPLETE);
        SAY(f, EVENT_BEGIN);
        SAY(f, EVENT_MUST_WAIT);
        SAY(f, EVENT_CONNECT_FAILED, .fault = table[i].fault, .replayable = true);
        if (table[i].is < 0)
            told_nothing(&s);
        else
            assert_int_equal(told_only(&s, (enum evidence_outcome)table[i].is).connect_us,
                             EVIDENCE_NO_TIME);
        close_scene(&s);
    }
}

static void a_lost_connection_is_a_reset_before_the_head_and_a_cut_after_it(void **state)
{
    (void)state;

    for (int late = 0; late < 2; late++) {
        struct scene s;
        struct fixture *f = open_scene(&s);

        ask(f);
        if (late)
            SAY(f, EVENT_HEAD, .status = 200, .replayable = true);
        f->now += 4 * MS;
        SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
        assert_int_equal(told_only(&s, late ? EVIDENCE_CUT : EVIDENCE_RESET).last_us,
                         EVIDENCE_NO_TIME);
        close_scene(&s);
    }
}

/* A connection that the host had closed before our bytes came. */
static void a_request_that_is_sent_again_on_a_fresh_connection_is_told_once(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    connect_and_send(f, true);
    SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .untouched = true, .replayable = true);
    assert_true(did(f, ACTION_ATTEMPT_FRESH));
    told_nothing(&s);
    connect_and_send(f, false);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 5);
    assert_int_equal(told_only(&s, EVIDENCE_OK).flags, EVIDENCE_FRESH | EVIDENCE_RETRY);
    close_scene(&s);
}

static void no_answer_in_time_is_a_timeout_and_says_how_long_was_waited(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->route.timeout = 2 * SEC;
    ask(f);
    wait_for_time(f);
    assert_int_equal(told_only(&s, EVIDENCE_TIMEOUT).first_us, 1997000);
    close_scene(&s);
}

/* Law 2: its time went by while it waited here. */
static void a_deadline_that_we_have_spent_is_nothing(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->route.timeout = 2 * SEC;
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    SAY(f, EVENT_MUST_WAIT);
    f->now += 1500 * MS;
    connect_and_send(f, true);
    wait_for_time(f);
    told_nothing(&s);
    close_scene(&s);
}

static void what_the_proxy_refuses_is_nothing(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->cluster.limits.max_requests = 0;
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    SAY(f, EVENT_CONNECTED, .reused = true);
    told_nothing(&s);
    close_scene(&s);

    f = open_scene(&s);
    f->cluster.limits.max_pending = 0;
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    SAY(f, EVENT_MUST_WAIT);
    told_nothing(&s);
    close_scene(&s);

    f = open_scene(&s);
    begin_method(f, false);
    SAY(f, EVENT_BEGIN);
    connect_and_send(f, true);
    SAY(f, EVENT_REFUSED, .reason = REASON_BODY_TIMEOUT);
    told_nothing(&s);
    close_scene(&s);
}

static void a_body_that_stalls_is_cut_unless_its_client_holds_it_up(void **state)
{
    (void)state;

    for (int held_up = 0; held_up < 2; held_up++) {
        struct scene s;
        struct fixture *f = open_scene(&s);

        ask(f);
        SAY(f, EVENT_HEAD, .status = 200, .replayable = true);
        f->now = exchange_wakeup(&f->x);
        SAY(f, EVENT_TIME, .held_up = held_up != 0);
        assert_int_equal(f->x.state, EXCHANGE_DONE);
        if (held_up)
            told_nothing(&s);
        else
            told_only(&s, EVIDENCE_CUT);
        close_scene(&s);
    }
}

/* --- the client --- */

static void a_client_that_leaves_says_how_long_it_waited_for_the_host(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask(f);
    f->now += 800 * MS;
    SAY(f, EVENT_CLIENT_GONE);
    assert_int_equal(told_only(&s, EVIDENCE_ABANDONED).first_us, 800000);
    close_scene(&s);
}

static void a_client_that_leaves_elsewhere_says_nothing(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    begin_method(f, true); /* it waits for a connection */
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    SAY(f, EVENT_MUST_WAIT);
    SAY(f, EVENT_CLIENT_GONE);
    told_nothing(&s);
    close_scene(&s);

    f = open_scene(&s); /* it has not sent all */
    begin_method(f, false);
    SAY(f, EVENT_BEGIN);
    connect_and_send(f, true);
    SAY(f, EVENT_CLIENT_GONE);
    told_nothing(&s);
    close_scene(&s);

    f = open_scene(&s); /* it has the head already */
    ask(f);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_CLIENT_GONE);
    told_nothing(&s);
    close_scene(&s);
}

/* --- late --- */

static void set_late(struct fixture *f, uint32_t us)
{
    atomic_store(&f->cluster.state->late_after[CLASS_READ], us);
}

static void one_that_is_late_is_told_of_once_and_then_of_its_end(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask(f);
    f->now += 99 * SEC;
    witness_look(&f->rt, f->now); /* it is not known what is late */
    told_nothing(&s);
    f->now -= 99 * SEC;
    set_late(f, 50000);
    f->now += 50 * MS - 1000;
    witness_look(&f->rt, f->now);
    told_nothing(&s);
    f->now += 1000;
    witness_look(&f->rt, f->now);
    assert_int_equal(told_only(&s, EVIDENCE_LATE).first_us, 50000);
    assert_int_equal(s.witness.open, 0);
    f->now += 10 * MS;
    witness_look(&f->rt, f->now);
    told_nothing(&s);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(&s, EVIDENCE_OK).first_us, 60000);
    close_scene(&s);
}

static void one_whose_head_has_come_is_not_late(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    set_late(f, 1000);
    ask(f);
    SAY(f, EVENT_HEAD, .status = 200);
    f->now += SEC;
    witness_look(&f->rt, f->now);
    told_nothing(&s);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    told_only(&s, EVIDENCE_OK);
    close_scene(&s);
}

static void where_detection_is_off_nothing_is_told(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->cluster.detection.on = false;
    set_late(f, 1000);
    ask(f);
    assert_int_equal(s.witness.open, 0);
    SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    told_nothing(&s);
    close_scene(&s);
}

static void a_watch_that_sleeps_is_to_be_told(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    assert_true(evidence_ring_sleep(s.ring));
    ask(f);
    SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    assert_true(s.witness.tell);
    told_only(&s, EVIDENCE_RESET);
    close_scene(&s);
}

/* --- probes --- */

static uint32_t tokens(const struct fixture *f)
{
    return retry_budget_tokens(&f->cluster.state->retry_budget, &f->cluster.retry_budget, f->now);
}

/* Host PROBED is out, and may be given |n| requests. */
static void grant(struct fixture *f, uint32_t n)
{
    host_set_health(&f->cluster.state->hosts, PROBED, HOST_EJECTED);
    atomic_store(&f->cluster.state->hosts.at[PROBED]->probes, n);
    atomic_store(&f->cluster.state->probing, true);
}

static void ask_probe(struct fixture *f)
{
    grant(f, 1);
    f->cluster.retry_budget.earn_permille = 0;
    f->cluster.retry_budget.floor_per_s = 0;
    ask(f);
    assert_int_equal(exchange_host(&f->x), PROBED);
    assert_true(f->x.attempts[0].probe);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity - 1);
}

/* The probe was told of as one; another host answers, at once, and the client sees just that. */
static void made_good(struct scene *s, enum evidence_outcome outcome)
{
    struct fixture *f = &s->f;
    struct evidence e = told_only(s, outcome);

    assert_int_equal(e.host, PROBED);
    assert_true((e.flags & EVIDENCE_PROBE) != 0);
    assert_true(did(f, ACTION_ATTEMPT));
    assert_false(did(f, ACTION_RESPOND));
    assert_false(did(f, ACTION_FORWARD));
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    connect_and_send(f, true);
    SAY(f, EVENT_HEAD, .status = 200);
    assert_true(did(f, ACTION_FORWARD));
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(s, EVIDENCE_OK).flags, EVIDENCE_RETRY);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity - 1); /* that is what it is for */
    SAY(f, EVENT_DELIVERED);
    assert_int_equal(f->x.status, 200);
    assert_int_equal(f->x.reason, REASON_VIA_UPSTREAM);
    assert_int_equal(f->x.flags, FLAG_NONE);
}

static void a_probe_that_passes_gives_its_token_back(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_probe(f);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(&s, EVIDENCE_OK).flags, EVIDENCE_PROBE | EVIDENCE_FRESH);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity);
    close_scene(&s);
}

static void a_probe_whose_client_leaves_gives_its_token_back(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_probe(f);
    SAY(f, EVENT_CLIENT_GONE);
    told_only(&s, EVIDENCE_ABANDONED);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity);
    close_scene(&s);
}

static void a_probe_that_is_answered_with_a_5xx_is_made_good(void **state)
{
    (void)state;

    for (uint32_t status = 500; status <= 504; status++) {
        struct scene s;
        struct fixture *f = open_scene(&s);

        ask_probe(f);
        SAY(f, EVENT_HEAD, .status = status, .replayable = true);
        made_good(&s, status < 502 ? EVIDENCE_ERROR : EVIDENCE_GATEWAY);
        close_scene(&s);
    }
}

static void a_probe_that_is_reset_is_made_good(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_probe(f);
    SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    made_good(&s, EVIDENCE_RESET);
    close_scene(&s);
}

static void a_probe_that_cannot_connect_is_made_good(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    grant(f, 1);
    f->cluster.retry_budget.earn_permille = 0;
    f->cluster.retry_budget.floor_per_s = 0;
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    SAY(f, EVENT_MUST_WAIT);
    SAY(f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    made_good(&s, EVIDENCE_REFUSED);
    close_scene(&s);
}

/* Also where retries are held, where the route has none, and whatever is known to be late. */
static void a_probe_that_is_not_answered_is_made_good_in_time(void **state)
{
    static const struct {
        span_ns known;
        span_ns total;
        span_ns per_try;
        span_ns waits;
    } table[] = {
        {80 * MS, 15 * SEC, MONO_NEVER, 80 * MS},
        {80 * MS, 15 * SEC, 30 * MS, 30 * MS},
        {0, 2 * SEC, MONO_NEVER, SEC}, /* half of the time is the other's */
        {9 * SEC, 2 * SEC, MONO_NEVER, SEC},
        {0, 60 * SEC, MONO_NEVER, 5 * SEC},
        {0, MONO_NEVER, MONO_NEVER, 5 * SEC},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct fixture *f = open_scene(&s);
        mono_ns asked;

        f->route.timeout = table[i].total;
        f->route.per_try_timeout = table[i].per_try;
        atomic_store(&f->cluster.state->probe_timeout, table[i].known);
        atomic_store(&f->cluster.state->retries_held, i % 2 == 0);
        if (i % 2 == 0)
            with_retries(f, RETRY_ON_5XX, 2);
        ask_probe(f);
        asked = f->now;
        wait_for_time(f);
        assert_int_equal(f->now - asked, table[i].waits);
        made_good(&s, EVIDENCE_TIMEOUT);
        close_scene(&s);
    }
}

/* Only what may reach two hosts, and lies here whole, is given to one that is out. */
static void no_probe_is_made_of_what_cannot_be_made_good(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    grant(f, 1);
    begin_method(f, false);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    SAY(f, EVENT_CLIENT_GONE);
    check_clean(f);
    begin_method(f, true);
    SAY(f, EVENT_BEGIN);
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    SAY(f, EVENT_CLIENT_GONE);
    check_clean(f);
    while (retry_budget_spend(&f->cluster.state->retry_budget, &f->cluster.retry_budget, f->now))
        ;
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    SAY(f, EVENT_CLIENT_GONE);
    assert_int_equal(f->cluster.state->hosts.at[PROBED]->probes, 1); /* it is still granted */
    close_scene(&s);
}

static void so_many_probes_as_are_granted_are_made(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    uint32_t probes = 0;
    (void)state;

    grant(f, 3);
    for (uint32_t i = 0; i < 9; i++) {
        begin_method(f, true);
        SAY(f, EVENT_REQUEST_COMPLETE);
        SAY(f, EVENT_BEGIN);
        probes += exchange_host(&f->x) == PROBED;
        connect_and_send(f, true);
        SAY(f, EVENT_HEAD, .status = 200);
        SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
        SAY(f, EVENT_DELIVERED);
    }
    assert_int_equal(probes, 3);
    close_scene(&s);
}

/* --- a fleet that is slow --- */

static void while_retries_are_held_no_failure_is_retried_and_no_try_given_up(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    with_retries(f, RETRY_ON_5XX, 2);
    atomic_store(&f->cluster.state->retries_held, true);
    ask(f);
    SAY(f, EVENT_HEAD, .status = 503, .replayable = true);
    assert_true(did(f, ACTION_FORWARD));
    assert_int_equal(metric(f, CLUSTER_retry_held), 1);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    told_only(&s, EVIDENCE_GATEWAY);
    close_scene(&s);

    f = open_scene(&s);
    with_retries(f, RETRY_ON_5XX, 2);
    f->route.per_try_timeout = 100 * MS;
    atomic_store(&f->cluster.state->retries_held, true);
    ask(f);
    wait_for_time(f);
    assert_int_equal(f->x.state, EXCHANGE_SENT); /* the host may go on, till the end */
    told_nothing(&s);
    wait_for_time(f);
    assert_int_equal(f->x.status, 504);
    assert_int_equal(told_only(&s, EVIDENCE_TIMEOUT).first_us, 15 * 1000 * 1000 - 3000);
    close_scene(&s);
}

static void a_route_without_retries_gives_up_in_time_though_they_are_held(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->route.per_try_timeout = 100 * MS;
    atomic_store(&f->cluster.state->retries_held, true);
    ask(f);
    wait_for_time(f);
    assert_int_equal(f->x.status, 504);
    assert_int_equal(told_only(&s, EVIDENCE_TIMEOUT).first_us, 100000);
    close_scene(&s);
}

static void a_retry_is_told_as_one(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    uint32_t first;
    (void)state;

    with_retries(f, RETRY_ON_5XX, 1);
    ask(f);
    first = exchange_host(&f->x);
    SAY(f, EVENT_HEAD, .status = 503, .replayable = true);
    assert_int_equal(told_only(&s, EVIDENCE_GATEWAY).host, first);
    connect_and_send(f, true);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(&s, EVIDENCE_OK).flags, EVIDENCE_RETRY);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_told_at_its_end_with_its_times),
        cmocka_unit_test(a_large_answer_is_as_late_as_its_head_and_of_a_class_of_its_own),
        cmocka_unit_test(a_request_s_time_begins_when_it_lies_whole_with_its_host),
        cmocka_unit_test(statuses_are_ok_gateway_or_error),
        cmocka_unit_test(connects_that_fail_are_refused_or_failed_and_ours_are_nothing),
        cmocka_unit_test(a_lost_connection_is_a_reset_before_the_head_and_a_cut_after_it),
        cmocka_unit_test(a_request_that_is_sent_again_on_a_fresh_connection_is_told_once),
        cmocka_unit_test(no_answer_in_time_is_a_timeout_and_says_how_long_was_waited),
        cmocka_unit_test(a_deadline_that_we_have_spent_is_nothing),
        cmocka_unit_test(what_the_proxy_refuses_is_nothing),
        cmocka_unit_test(a_body_that_stalls_is_cut_unless_its_client_holds_it_up),
        cmocka_unit_test(a_client_that_leaves_says_how_long_it_waited_for_the_host),
        cmocka_unit_test(a_client_that_leaves_elsewhere_says_nothing),
        cmocka_unit_test(one_that_is_late_is_told_of_once_and_then_of_its_end),
        cmocka_unit_test(one_whose_head_has_come_is_not_late),
        cmocka_unit_test(where_detection_is_off_nothing_is_told),
        cmocka_unit_test(a_watch_that_sleeps_is_to_be_told),
        cmocka_unit_test(a_probe_that_passes_gives_its_token_back),
        cmocka_unit_test(a_probe_whose_client_leaves_gives_its_token_back),
        cmocka_unit_test(a_probe_that_is_answered_with_a_5xx_is_made_good),
        cmocka_unit_test(a_probe_that_is_reset_is_made_good),
        cmocka_unit_test(a_probe_that_cannot_connect_is_made_good),
        cmocka_unit_test(a_probe_that_is_not_answered_is_made_good_in_time),
        cmocka_unit_test(no_probe_is_made_of_what_cannot_be_made_good),
        cmocka_unit_test(so_many_probes_as_are_granted_are_made),
        cmocka_unit_test(while_retries_are_held_no_failure_is_retried_and_no_try_given_up),
        cmocka_unit_test(a_route_without_retries_gives_up_in_time_though_they_are_held),
        cmocka_unit_test(a_retry_is_told_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
