/* SPDX-License-Identifier: Apache-2.0 */
/* The whole data plane at its limits, and what must never be mixed up (C051, C057). */
#include "sim/plane.h"

#include "model/flags.h"

static struct plane p;

/* --- C051: the proxy's own limits eject nobody --- */

static void own_limits(struct plane *plane)
{
    plane_settings(plane, 3, 2);
    plane->settings.cluster.outlier.consecutive_gateway = 3;
    plane->settings.cluster.outlier.consecutive_5xx = 3;
    plane->settings.cluster.outlier.split = false;
    plane->settings.cluster.limits.max_connections = 6;
    plane->settings.cluster.limits.max_pending = 3;
}

/* 400 a second for ten seconds. */
static void storm(struct plane *plane, const struct ask *ask)
{
    for (unsigned i = 0; i < 3; i++)
        plane->rig.servers[i].mood.service = 25 * NS_PER_MS;
    for (unsigned i = 0; i < 4000; i++) {
        (void)client_ask(&plane->rig.client, ask);
        plane_run(plane, 2500 * NS_PER_US);
    }
    plane_run(plane, 20 * NS_PER_S);
    assert_int_equal(plane->laws.ejections, 0);
}

static void own_overflow_ejects_nobody(void **state)
{
    const struct ask plain = ASK_PLAIN;
    (void)state;

    own_limits(&p);
    plane_go(&p);
    storm(&p, &plain);
    assert_true(plane_count(&p, CLUSTER_upstream_rq_pending_overflow) > 100);
    assert_true(plane_answered(&p, 5) > 100);
    plane_end(&p);
}

static void own_request_limit_ejects_nobody(void **state)
{
    const struct ask plain = ASK_PLAIN;
    (void)state;

    own_limits(&p);
    p.settings.cluster.limits.max_connections = LIMIT_NONE;
    p.settings.cluster.limits.max_requests = 4;
    plane_go(&p);
    storm(&p, &plain);
    assert_true(plane_count(&p, CLUSTER_upstream_rq_active_overflow) > 100);
    plane_end(&p);
}

static void client_cancels_eject_nobody(void **state)
{
    struct ask ask = ASK_PLAIN;
    (void)state;

    own_limits(&p);
    p.settings.cluster.limits = default_limits;
    plane_go(&p);
    ask.cancel_after = 20 * NS_PER_MS;
    storm(&p, &ask);
    assert_true(p.rig.ledger.outcomes[OUTCOME_CANCELLED] > 3000);
    plane_end(&p);
}

static void a_timeout_in_our_own_queue_ejects_nobody(void **state)
{
    const struct ask plain = ASK_PLAIN;
    (void)state;

    own_limits(&p);
    p.settings.cluster.limits.max_pending = 1000;
    p.settings.route.timeout = 400 * NS_PER_MS;
    plane_go(&p);
    storm(&p, &plain);
    assert_true(plane_answered(&p, 5) > 100);
    plane_end(&p);
}

static void want_of_ports_is_not_the_hosts_fault(void **state)
{
    uint64_t id;
    (void)state;

    own_limits(&p);
    plane_go(&p);
    p.rig.process.connect_fault = IO_NO_PORTS;
    for (unsigned i = 0; i < 30; i++) {
        id = plane_get(&p);
        plane_run(&p, 20 * NS_PER_MS);
        plane_expect(&p, id, 503);
        assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UF);
    }
    assert_int_equal(p.laws.ejections, 0);
    p.rig.process.connect_fault = IO_OK;
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 200);
    plane_end(&p);
}

static void an_upload_that_waits_for_a_connection_has_its_deadline(void **state)
{
    struct ask ask = ASK_PLAIN;
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.route.timeout = 5 * NS_PER_S;
    plane_go(&p);
    plane_plan(&p, 0)->delay = MONO_NEVER;
    plane_plan(&p, 1)->delay = MONO_NEVER;
    (void)plane_get(&p); /* takes the one connection */
    plane_run(&p, NS_PER_S);
    ask.method = METHOD_POST;
    ask.upload = FRAMING_LENGTH;
    ask.body = 1000;
    ask.upload_piece = 100;
    ask.upload_gap = 10 * NS_PER_MS;
    id = plane_ask(&p, &ask);
    plane_run(&p, 4500 * NS_PER_MS);
    assert_int_equal(plane_fact(&p, id)->outcome, OUTCOME_PENDING);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 504);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UT);
    plane_end(&p);
}

/* --- C057: a late answer never answers the next request --- */

enum late {
    LATE_TIMEOUT,
    LATE_CANCEL,
    LATE_HALF_ANSWER,
    LATE_HALF_REQUEST,
    LATE_HEAD,
    LATE_PER_TRY
};

static void spoil_first(enum late how, struct ask *ask, struct answer_plan *plan)
{
    plan->delay = 400 * NS_PER_MS;
    switch (how) {
    case LATE_TIMEOUT:
    case LATE_PER_TRY:
        break;
    case LATE_CANCEL:
        ask->cancel_after = 200 * NS_PER_MS;
        break;
    case LATE_HALF_ANSWER:
        plan->delay = 10 * NS_PER_MS;
        plan->drip_piece = 40;
        plan->drip_gap = 150 * NS_PER_MS;
        break;
    case LATE_HALF_REQUEST:
        ask->method = METHOD_POST;
        ask->upload = FRAMING_LENGTH;
        ask->body = 1000;
        ask->upload_piece = 500;
        ask->upload_gap = 50 * NS_PER_MS;
        ask->never_ends = true;
        ask->cancel_after = 200 * NS_PER_MS;
        break;
    case LATE_HEAD:
        ask->method = METHOD_HEAD;
        break;
    }
}

static void late_answer(enum late how)
{
    struct ask first = ASK_PLAIN;
    uint64_t one, two;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.route.timeout = how == LATE_PER_TRY ? NS_PER_S : 200 * NS_PER_MS;
    if (how == LATE_PER_TRY)
        p.settings.route.per_try_timeout = 200 * NS_PER_MS;
    plane_go(&p);
    spoil_first(how, &first, plane_plan(&p, 0));
    plane_plan(&p, 1)->delay = NS_PER_MS;
    one = plane_ask(&p, &first);
    plane_run(&p, 250 * NS_PER_MS);
    two = plane_get(&p); /* the client checks id and every byte */
    plane_run(&p, 5 * NS_PER_S);
    plane_expect(&p, two, 200);
    assert_int_not_equal(plane_fact(&p, one)->status, 200 + 300 * (how == LATE_HALF_ANSWER));
    plane_end(&p);
}

static void a_late_answer_never_answers_the_next_request(void **state)
{
    (void)state;

    for (unsigned how = LATE_TIMEOUT; how <= LATE_PER_TRY; how++)
        late_answer((enum late)how);
}

/* --- slots shared by workers --- */

static void two_connections_serve_all_workers(uint32_t workers)
{
    plane_settings(&p, 2, workers);
    p.settings.cluster.limits.max_connections = 2;
    p.settings.route.timeout = 60 * NS_PER_S;
    plane_go(&p);
    plane_traffic(&p, 400, 10 * NS_PER_MS);
    plane_run(&p, 20 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 400);
    assert_true(plane_count(&p, CLUSTER_upstream_cx_overflow) > 0);
    plane_end(&p);
}

static void max_connections_2_is_exact_and_starves_no_worker(void **state)
{
    (void)state;

    two_connections_serve_all_workers(1);
    two_connections_serve_all_workers(2);
    two_connections_serve_all_workers(4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_overflow_ejects_nobody),
        cmocka_unit_test(own_request_limit_ejects_nobody),
        cmocka_unit_test(client_cancels_eject_nobody),
        cmocka_unit_test(a_timeout_in_our_own_queue_ejects_nobody),
        cmocka_unit_test(want_of_ports_is_not_the_hosts_fault),
        cmocka_unit_test(an_upload_that_waits_for_a_connection_has_its_deadline),
        cmocka_unit_test(a_late_answer_never_answers_the_next_request),
        cmocka_unit_test(max_connections_2_is_exact_and_starves_no_worker),
    };

    return cmocka_run_group_tests_name("plane_limits", tests, NULL, NULL);
}
