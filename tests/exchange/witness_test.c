/* SPDX-License-Identifier: Apache-2.0 */
/* What an exchange tells of its attempts: from scripted events. */
#include "exchange/witness_world.h"

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
    assert_int_equal(e.queue_us, 3000);
    assert_int_equal(e.first_us, 25000); /* as late as its last byte */
    close_scene(&s);
}

/* The head after 20 ms, the body in 500 more. */
static struct evidence of_body(uint64_t bytes, bool held_up)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    struct evidence e;

    ask(f);
    f->now += 20 * MS;
    SAY(f, EVENT_HEAD, .status = 200, .replayable = true);
    f->now += 500 * MS;
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = bytes, .held_up = held_up);
    e = told_only(&s, EVIDENCE_OK);
    close_scene(&s);
    return e;
}

static void an_answer_is_as_late_as_its_last_byte_unless_its_client_holds_it_up(void **state)
{
    (void)state;

    assert_int_equal(of_body(20000, false).first_us, 520000);
    assert_int_equal(of_body(20000, true).first_us, 20000);
    assert_int_equal(of_body(8192, true).first_us, 20000);
    assert_int_equal(of_body(8191, true).first_us, 520000); /* all of it lay here */
}

static void of_a_large_body_the_mean_time_of_64_kib_counts(void **state)
{
    (void)state;

    assert_int_equal(of_body(64 * 1024, false).first_us, 520000);
    assert_int_equal(of_body(640 * 1024, false).first_us, 70000);
    assert_int_equal(of_body(UINT64_C(1) << 50, false).first_us, 20000);
    assert_int_equal(of_body(640 * 1024, true).first_us, 20000);
}

static void a_large_answer_is_of_a_class_of_its_own(void **state)
{
    (void)state;

    assert_int_equal(of_body(64 * 1024 - 1, false).class, CLASS_READ);
    assert_int_equal(of_body(64 * 1024, false).class, CLASS_LARGE);
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

        ask(f);
        SAY(f, EVENT_HEAD, .status = table[i].status, .replayable = true);
        SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 0);
        (void)told_only(&s, table[i].is);
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
            (void)told_only(&s, (enum evidence_outcome)table[i].is);
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
        (void)told_only(&s, late ? EVIDENCE_CUT : EVIDENCE_RESET);
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

static void what_finds_no_room_is_lost_and_counted(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    struct evidence e = {.at = 1};
    (void)state;

    while (evidence_ring_put(s.ring, &e) != EVIDENCE_LOST)
        e.outcome = EVIDENCE_RESET; /* which is never thinned */
    ask(f);
    SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    assert_int_equal(s.witness.lost, 1);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_told_at_its_end_with_its_times),
        cmocka_unit_test(an_answer_is_as_late_as_its_last_byte_unless_its_client_holds_it_up),
        cmocka_unit_test(of_a_large_body_the_mean_time_of_64_kib_counts),
        cmocka_unit_test(a_large_answer_is_of_a_class_of_its_own),
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
        cmocka_unit_test(what_finds_no_room_is_lost_and_counted),
    };

    return cmocka_run_group_tests_name("exchange/witness", tests, NULL, NULL);
}
