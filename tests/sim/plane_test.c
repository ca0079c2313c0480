/* SPDX-License-Identifier: Apache-2.0 */
/* The whole data plane in one particular situation each; in all of them the laws are watching. */
#include "sim/plane.h"

#include "model/flags.h"

static struct plane p;

static void one_request_is_answered(void **state)
{
    uint64_t id;
    (void)state;

    plane_settings(&p, 10, 2);
    plane_go(&p);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 200);
    assert_int_equal(plane_fact(&p, id)->records, 1);
    assert_int_equal(plane_fact(&p, id)->record_attempts, 1);
    plane_end(&p);
}

/* --- hosts that cannot be reached --- */

static void a_refusing_host_is_not_seen_by_callers_and_is_ejected(void **state)
{
    (void)state;

    plane_settings(&p, 5, 2);
    plane_go(&p);
    server_refuse(&p.rig.servers[2]);
    plane_traffic(&p, 100, 20 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 100);
    assert_true(plane_out(&p, 2));
    assert_int_equal(p.laws.ejections, 1);
    assert_int_equal(plane_count(&p, CLUSTER_connect_failover),
                     3); /* as many as it took to judge */
    plane_end(&p);
}

static void a_black_hole_costs_a_connect_timeout_and_no_failure(void **state)
{
    (void)state;

    plane_settings(&p, 5, 1);
    p.settings.cluster.connect_timeout = NS_PER_S;
    plane_go(&p);
    server_set_road(&p.rig.servers[0], ROAD_BLACK_HOLE);
    plane_traffic(&p, 50, 100 * NS_PER_MS);
    plane_run(&p, 3 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 50);
    assert_true(plane_out(&p, 0));
    assert_true(plane_count(&p, CLUSTER_connect_failover) >= 3);
    assert_true(plane_count(&p, CLUSTER_upstream_cx_connect_timeout) >= 3);
    plane_end(&p);
}

static void a_host_that_falls_silent_is_ejected_for_its_timeouts(void **state)
{
    (void)state;

    plane_settings(&p, 5, 2);
    p.settings.route.timeout = NS_PER_S;
    plane_go(&p);
    plane_traffic(&p, 50, 10 * NS_PER_MS); /* connections are open */
    server_set_road(&p.rig.servers[1], ROAD_BLACK_HOLE);
    plane_traffic(&p, 200, 20 * NS_PER_MS);
    plane_run(&p, 5 * NS_PER_S);
    assert_true(plane_out(&p, 1));
    assert_int_equal(p.laws.ejections, 1);
    assert_true(plane_answered(&p, 5) > 0);
    assert_int_equal(plane_answered(&p, 2) + plane_answered(&p, 5), 250);
    plane_end(&p);
}

static void without_failover_a_refusal_is_503_uf(void **state)
{
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.connect_failover = false;
    plane_go(&p);
    server_refuse(&p.rig.servers[0]);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UF);
    assert_false(plane_out(&p, 0)); /* the last host never goes */
    plane_end(&p);
}

static void the_last_of_three_hosts_stay_whatever_they_do(void **state)
{
    (void)state;

    plane_settings(&p, 3, 2);
    plane_go(&p);
    for (unsigned i = 0; i < 3; i++) {
        p.rig.servers[i].mood.error_permille = 1000;
        p.rig.servers[i].mood.error_status = 503;
    }
    plane_traffic(&p, 600, 20 * NS_PER_MS);
    assert_true(p.laws.ejections <= 1);
    plane_run(&p, NS_PER_S);
    plane_end(&p);
}

static void a_connect_that_fails_moves_a_request_once_and_not_on_and_on(void **state)
{
    uint64_t id;
    (void)state;

    plane_settings(&p, 5, 1);
    p.settings.cluster.outlier.enabled = false;
    plane_go(&p);
    for (unsigned i = 0; i < 5; i++)
        server_refuse(&p.rig.servers[i]);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_attempts, 2);
    assert_int_equal(plane_count(&p, CLUSTER_connect_failover), 1);
    plane_end(&p);
}

/* Host 1 of five has |mood|; it goes, and comes back when its time is over and it is well. */
static void is_ejected_and_comes_back(const struct server_mood *mood)
{
    plane_settings(&p, 5, 2);
    plane_go(&p);
    p.rig.servers[1].mood = *mood;
    plane_traffic(&p, 100, 20 * NS_PER_MS);
    assert_true(plane_out(&p, 1));
    assert_int_equal(p.laws.ejections, 1);
    p.rig.servers[1].mood = server_fine;
    plane_run(&p, 70 * NS_PER_S); /* 30 s, and the sweep each 30 s */
    assert_false(plane_out(&p, 1));
    plane_traffic(&p, 50, 20 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(p.laws.ejections, 1);
    plane_end(&p);
}

static void a_host_that_fails_is_ejected_and_comes_back(void **state)
{
    struct server_mood errors = server_fine;
    struct server_mood resets = server_fine;
    struct server_mood slams = server_fine;
    (void)state;

    errors.error_permille = 1000;
    is_ejected_and_comes_back(&errors);
    resets.reset_permille = 1000;
    is_ejected_and_comes_back(&resets);
    slams.accept_reset = true;
    is_ejected_and_comes_back(&slams);
}

/* --- connections that are used again --- */

/* The host closes an idle connection while the next request is on its way to it. */
static uint64_t race(enum method method)
{
    struct ask ask = ASK_PLAIN;
    uint64_t id;

    plane_settings(&p, 1, 1);
    plane_go(&p);
    p.rig.servers[0].site->path.latency = 50 * NS_PER_MS;
    p.rig.servers[0].mood.idle_close = 200 * NS_PER_MS;
    plane_plan(&p, 0)->delay = 0;
    plane_get(&p);
    plane_run(&p, 350 * NS_PER_MS); /* asked at 0, there at 150 + connect; closed at about 350 */
    while (p.rig.servers[0].conn_count > 0 && p.rig.servers[0].blame_at == 0)
        plane_run(&p, NS_PER_MS); /* until the FIN is on its way */
    ask.method = method;
    if (method != METHOD_GET) {
        ask.upload = FRAMING_LENGTH;
        ask.body = 10;
    }
    plane_plan(&p, 0)->delay = 0;
    id = plane_ask(&p, &ask);
    plane_run(&p, 2 * NS_PER_S);
    return id;
}

static void a_get_that_loses_the_race_of_keep_alive_is_sent_again(void **state)
{
    uint64_t id = race(METHOD_GET);
    (void)state;

    plane_expect(&p, id, 200);
    assert_int_equal(plane_count(&p, CLUSTER_reuse_resend), 1);
    assert_int_equal(plane_fact(&p, id)->record_attempts, 2);
    plane_end(&p);
}

static void a_put_that_loses_it_is_sent_again_with_its_body(void **state)
{
    uint64_t id = race(METHOD_PUT);
    (void)state;

    plane_expect(&p, id, 200); /* the host has checked the body's every byte */
    assert_int_equal(plane_count(&p, CLUSTER_reuse_resend), 1);
    plane_end(&p);
}

static void a_post_that_loses_it_is_503_uc_and_never_sent_twice(void **state)
{
    uint64_t id = race(METHOD_POST);
    (void)state;

    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UC);
    assert_int_equal(plane_count(&p, CLUSTER_reuse_resend), 0);
    plane_end(&p);
}

static void kill_9_loses_only_what_was_in_flight(void **state)
{
    uint64_t lost = 0;
    (void)state;

    plane_settings(&p, 4, 2);
    plane_go(&p);
    for (unsigned i = 0; i < 4; i++)
        p.rig.servers[i].mood.service = 30 * NS_PER_MS;
    for (unsigned round = 0; round < 3; round++) {
        plane_traffic(&p, 100, 5 * NS_PER_MS);
        lost += p.rig.servers[1].conn_count;
        server_kill(&p.rig.servers[1], DEATH_OF_PROCESS);
        plane_traffic(&p, 100, 5 * NS_PER_MS);
        assert_true(server_listen(&p.rig.servers[1]));
        plane_run(&p, 40 * NS_PER_S); /* so that it is in again */
    }
    assert_int_equal(plane_answered(&p, 2) + plane_answered(&p, 5), 600);
    assert_true(plane_answered(&p, 5) <= lost);
    plane_end(&p);
}

/* --- answers that come early, late, or never whole --- */

static void an_early_413_reaches_the_client_that_still_uploads(void **state)
{
    struct ask ask = ASK_PLAIN;
    uint64_t ids[3];
    (void)state;

    plane_settings(&p, 1, 1);
    plane_go(&p);
    ask.method = METHOD_POST;
    ask.upload = FRAMING_CHUNKED;
    ask.body = 4000000;
    for (unsigned i = 0; i < 3; i++) {
        struct answer_plan *plan = plane_plan(&p, 0);

        plan->status = 413;
        plan->early = true;
        plan->stops_reading = i != 0;
        plan->says_close = i != 2;
        ids[i] = plane_ask(&p, &ask);
        plane_run(&p, 10 * NS_PER_S);
        plane_expect(&p, ids[i], 413);
        assert_int_equal(plane_fact(&p, ids[i])->server, 0);
    }
    plane_end(&p);
}

static void a_limit_on_bodies_answers_413_itself(void **state)
{
    struct ask ask = ASK_PLAIN;
    uint64_t sized, chunked;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.listener.limits.body_bytes = 10000;
    plane_go(&p);
    ask.method = METHOD_POST;
    ask.upload = FRAMING_LENGTH;
    ask.body = 1000000;
    sized = plane_ask(&p, &ask);
    ask.upload = FRAMING_CHUNKED;
    chunked = plane_ask(&p, &ask);
    plane_run(&p, 10 * NS_PER_S);
    plane_expect(&p, sized, 413);
    plane_expect(&p, chunked, 413);
    plane_end(&p);
}

static void a_cut_answer_never_looks_whole(void **state)
{
    struct ask ask = ASK_PLAIN;
    uint64_t cut = 0;
    (void)state;

    plane_settings(&p, 1, 1);
    plane_go(&p);
    for (unsigned i = 0; i < 24; i++) {
        struct answer_plan *plan = plane_plan(&p, 0);
        uint64_t id;

        plan->broken = BREAK_IN_BODY;
        plan->break_at = i == 0 ? 0 : 5000;
        ask.answer = 10000;
        ask.framing = (enum framing)(FRAMING_LENGTH + i % 3);
        ask.http10 = i % 4 == 3;
        plan->break_softly = i % 2 == 0 && ask.framing != FRAMING_TO_CLOSE;
        id = plane_ask(&p, &ask);
        plane_run(&p, 2 * NS_PER_S);
        assert_false(plane_fact(&p, id)->outcome == OUTCOME_ANSWERED &&
                     plane_fact(&p, id)->status == 200);
        assert_int_equal(plane_fact(&p, id)->record_flags & FLAG_UC, FLAG_UC);
        cut += plane_fact(&p, id)->record_status == 200;
    }
    assert_true(cut > 20);
    /* As Envoy counts: reset by both sides, and the connection closed under no request. */
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_rq_rx_reset), cut);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_rq_tx_reset), cut);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_destroy_active_rq), 0);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_rx_reset), 0);
    plane_end(&p);
}

static void the_last_request_of_a_connection_may_be_cut_too(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_requests_per_connection = 2;
    plane_go(&p);
    plane_get(&p);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_max_requests), 0);
    plane_plan(&p, 0)->broken = BREAK_IN_BODY;
    plane_get(&p);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_max_requests), 1);
    plane_end(&p);
}

/* --- back-pressure --- */

/* Bytes the proxy has been told of and not written on; what it wrote of its own counts against. */
static int64_t held(const struct plane *plane)
{
    return (int64_t)(plane->rig.process.received - plane->rig.process.taken);
}

static void a_client_that_stops_reading_costs_one_buffer(void **state)
{
    struct ask ask = ASK_PLAIN;
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.route.timeout = 1000 * NS_PER_S;
    plane_go(&p);
    ask.answer = 5000000;
    ask.read_gap = 30 * NS_PER_S; /* a piece each */
    id = plane_ask(&p, &ask);
    plane_run(&p, 10 * NS_PER_S);
    assert_true(p.rig.process.received > 64 * 1024);
    assert_true(held(&p) <= 2 * (int64_t)LINK_LOAN_MAX);
    plane_run(&p, 5 * NS_PER_S);
    assert_true(held(&p) <= 2 * (int64_t)LINK_LOAN_MAX);
    assert_int_equal(plane_fact(&p, id)->outcome, OUTCOME_PENDING);
    plane_run(&p, 5000 * NS_PER_S);
    plane_end(&p);
}

static void a_slow_reader_gets_every_byte(void **state)
{
    struct ask ask = ASK_PLAIN;
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.route.timeout = 1000 * NS_PER_S;
    plane_go(&p);
    ask.answer = 5000000;
    ask.read_gap = 10 * NS_PER_MS;
    ask.framing = FRAMING_CHUNKED;
    id = plane_ask(&p, &ask);
    plane_run(&p, 100 * NS_PER_S);
    plane_expect(&p, id, 200);
    plane_end(&p);
}

static void a_host_that_stops_reading_costs_one_buffer(void **state)
{
    struct ask ask = ASK_PLAIN;
    struct answer_plan *plan;
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.listener.body_timeout = 20 * NS_PER_S;
    plane_go(&p);
    plan = plane_plan(&p, 0);
    plan->stops_reading = true;
    plan->delay = MONO_NEVER;
    ask.method = METHOD_POST;
    ask.upload = FRAMING_LENGTH;
    ask.body = 5000000;
    id = plane_ask(&p, &ask);
    plane_run(&p, 10 * NS_PER_S);
    assert_true(p.rig.process.received > 64 * 1024);
    assert_true(held(&p) <= 2 * (int64_t)LINK_LOAN_MAX);
    plane_run(&p, 30 * NS_PER_S);
    assert_int_equal(plane_fact(&p, id)->outcome, OUTCOME_ANSWERED);
    assert_int_equal(plane_fact(&p, id)->status / 100, 4);
    plane_end(&p);
}

/* --- C045: when the clock starts --- */

static void a_steady_upload_may_take_longer_than_the_route_timeout(void **state)
{
    struct ask ask = ASK_PLAIN;
    uint64_t steady, hung;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.route.timeout = 2 * NS_PER_S;
    plane_go(&p);
    ask.method = METHOD_POST;
    ask.upload = FRAMING_LENGTH;
    ask.body = 100000;
    ask.upload_piece = 1000;
    ask.upload_gap = 100 * NS_PER_MS;
    steady = plane_ask(&p, &ask);
    plane_plan(&p, 0)->delay = MONO_NEVER;
    hung = plane_ask(&p, &ask);
    plane_run(&p, 11 * NS_PER_S);
    plane_expect(&p, steady, 200);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_fact(&p, hung)->outcome, OUTCOME_PENDING); /* at 10 s it was whole */
    plane_run(&p, 2 * NS_PER_S);
    plane_expect(&p, hung, 504);
    assert_int_equal(plane_fact(&p, hung)->record_flags, FLAG_UT);
    plane_end(&p);
}

static void a_long_answer_knows_no_clock_where_none_is_set(void **state)
{
    struct ask ask = ASK_PLAIN;
    struct answer_plan *plan;
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.route.timeout = 100 * NS_PER_S;
    p.settings.route.idle_timeout = NS_PER_S;
    plane_go(&p);
    plan = plane_plan(&p, 0);
    plan->drip_piece = 100;
    plan->drip_gap = 500 * NS_PER_MS;
    ask.answer = 2000;
    id = plane_ask(&p, &ask);
    plane_run(&p, 12 * NS_PER_S);
    plane_expect(&p, id, 200);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_request_is_answered),
        cmocka_unit_test(a_refusing_host_is_not_seen_by_callers_and_is_ejected),
        cmocka_unit_test(a_black_hole_costs_a_connect_timeout_and_no_failure),
        cmocka_unit_test(a_host_that_falls_silent_is_ejected_for_its_timeouts),
        cmocka_unit_test(without_failover_a_refusal_is_503_uf),
        cmocka_unit_test(the_last_of_three_hosts_stay_whatever_they_do),
        cmocka_unit_test(a_connect_that_fails_moves_a_request_once_and_not_on_and_on),
        cmocka_unit_test(a_host_that_fails_is_ejected_and_comes_back),
        cmocka_unit_test(a_put_that_loses_it_is_sent_again_with_its_body),
        cmocka_unit_test(a_get_that_loses_the_race_of_keep_alive_is_sent_again),
        cmocka_unit_test(a_post_that_loses_it_is_503_uc_and_never_sent_twice),
        cmocka_unit_test(kill_9_loses_only_what_was_in_flight),
        cmocka_unit_test(an_early_413_reaches_the_client_that_still_uploads),
        cmocka_unit_test(a_limit_on_bodies_answers_413_itself),
        cmocka_unit_test(a_cut_answer_never_looks_whole),
        cmocka_unit_test(the_last_request_of_a_connection_may_be_cut_too),
        cmocka_unit_test(a_client_that_stops_reading_costs_one_buffer),
        cmocka_unit_test(a_slow_reader_gets_every_byte),
        cmocka_unit_test(a_host_that_stops_reading_costs_one_buffer),
        cmocka_unit_test(a_steady_upload_may_take_longer_than_the_route_timeout),
        cmocka_unit_test(a_long_answer_knows_no_clock_where_none_is_set),
    };

    return cmocka_run_group_tests_name("plane", tests, NULL, NULL);
}
