/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host drained by hand, or that says goodbye itself, through the whole data plane: T-000-15 as
 * far as HTTP/1 goes. GOAWAY comes with HTTP/2.
 */
#include "sim/plane.h"

#include "model/flags.h"

static struct plane p;

static enum host_answer order(enum host_deed deed, uint32_t host, char *said, size_t size)
{
    return plane_order(&p, deed, host, said, size);
}

static uint64_t of_host(uint32_t host, enum endpoint_metric m)
{
    return host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[host]), m);
}

static uint64_t logged(const char *event)
{
    return sim_log_count(&p.rig.log, event);
}

/* |count| requests at once, each of which the hosts answer after |delay|. */
static void burst(unsigned count, span_ns delay)
{
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        p.rig.servers[i].mood.service = delay;
    for (unsigned i = 0; i < count; i++)
        plane_get(&p);
}

static void t_000_15_fifty_kept_alive_connections_go_as_they_fall_idle(void **state)
{
    char said[256];
    uint64_t served;
    (void)state;

    plane_settings(&p, 2, 2);
    plane_go(&p);
    burst(100, 400 * NS_PER_MS);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 100);
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 50);
    burst(40, 400 * NS_PER_MS); /* half of them are at work on host 0 when the mark comes */
    plane_run(&p, 100 * NS_PER_MS);
    assert_in_range(of_host(0, ENDPOINT_rq_active), 19, 21);
    served = of_host(0, ENDPOINT_rq_total);
    assert_int_equal(order(HOST_DEED_DRAIN, 0, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_non_null(strstr(said, "requests and 50 connections left"));
    plane_run(&p, 10 * NS_PER_MS); /* the idle ones go at once, without any new request */
    assert_in_range(of_host(0, ENDPOINT_cx_active), 19, 21);
    assert_int_equal(logged("endpoint.drained"), 0);
    burst(60, 400 * NS_PER_MS);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(of_host(0, ENDPOINT_rq_total), served); /* not one new request */
    assert_int_equal(plane_answered(&p, 2), 200);            /* and none was lost */
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 0);
    assert_int_equal(of_host(0, ENDPOINT_rq_active), 0);
    assert_int_equal(logged("endpoint.drained"), 1);
    assert_int_equal(cell_read(&rig_state(&p.rig)->outlier[OUTLIER_STAT_ejections_enforced_total]),
                     0);
    assert_int_equal(cell_read(&rig_state(&p.rig)->outlier[OUTLIER_STAT_ejections_active]), 0);
    plane_end(&p);
}

static void a_drained_host_that_is_taken_back_serves_again(void **state)
{
    char said[256];
    (void)state;

    plane_settings(&p, 2, 1);
    plane_go(&p);
    assert_int_equal(order(HOST_DEED_UNDRAIN, 1, said, sizeof(said)), HOST_ANSWER_ALREADY);
    assert_int_equal(order(HOST_DEED_DRAIN, 1, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_int_equal(order(HOST_DEED_DRAIN, 1, said, sizeof(said)), HOST_ANSWER_ALREADY);
    plane_traffic(&p, 10, 20 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(of_host(1, ENDPOINT_rq_total), 0);
    assert_int_equal(order(HOST_DEED_UNDRAIN, 1, said, sizeof(said)), HOST_ANSWER_DONE);
    plane_traffic(&p, 10, 20 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(of_host(1, ENDPOINT_rq_total), 5);
    assert_int_equal(plane_answered(&p, 2), 20);
    plane_end(&p);
}

/* The operator's word stands, even where it leaves nobody. */
static void the_last_host_drained_leaves_nobody_and_that_is_said(void **state)
{
    char said[256];
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    plane_go(&p);
    assert_int_equal(order(HOST_DEED_DRAIN, 0, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_non_null(strstr(said, "no healthy host is left in this cluster"));
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UH);
    plane_end(&p);
}

/* Requests that wait for a slot at the cluster are new ones: none may end up on a drained host. */
static void who_waits_for_a_slot_gets_no_drained_host(void **state)
{
    char said[256];
    uint64_t served;
    (void)state;

    plane_settings(&p, 2, 2);
    p.settings.cluster.limits.max_connections = 2;
    plane_go(&p);
    burst(20, 200 * NS_PER_MS);
    plane_run(&p, 50 * NS_PER_MS);
    served = of_host(0, ENDPOINT_rq_total);
    assert_int_equal(order(HOST_DEED_DRAIN, 0, said, sizeof(said)), HOST_ANSWER_DONE);
    plane_run(&p, 10 * NS_PER_S);
    assert_int_equal(of_host(0, ENDPOINT_rq_total), served);
    assert_int_equal(plane_answered(&p, 2), 20);
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 0);
    plane_end(&p);
}

/* Through the judge: counted, shown, let back by the sweep or pardoned; guarded like any other. */
static void a_host_is_ejected_by_hand_and_pardoned(void **state)
{
    char said[256];
    (void)state;

    plane_settings(&p, 10, 2);
    plane_go(&p);
    p.rig.servers[3].blamable = true;
    server_blame(&p.rig.servers[3]);
    assert_int_equal(order(HOST_DEED_PARDON, 3, said, sizeof(said)), HOST_ANSWER_ALREADY);
    assert_int_equal(order(HOST_DEED_EJECT, 3, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_true(plane_out(&p, 3));
    assert_int_equal(cell_read(&rig_state(&p.rig)->outlier[OUTLIER_STAT_ejections_active]), 1);
    assert_int_equal(order(HOST_DEED_EJECT, 3, said, sizeof(said)), HOST_ANSWER_ALREADY);
    plane_traffic(&p, 40, 10 * NS_PER_MS);
    assert_int_equal(of_host(3, ENDPOINT_rq_total), 0);
    assert_int_equal(order(HOST_DEED_PARDON, 3, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_false(plane_out(&p, 3));
    plane_traffic(&p, 40, 10 * NS_PER_MS);
    assert_true(of_host(3, ENDPOINT_rq_total) > 2);
    for (uint32_t i = 4; i < 6; i++)
        server_blame(&p.rig.servers[i]);
    assert_int_equal(order(HOST_DEED_EJECT, 4, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_int_equal(order(HOST_DEED_EJECT, 5, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_int_equal(order(HOST_DEED_EJECT, 6, said, sizeof(said)), HOST_ANSWER_REFUSED);
    assert_non_null(strstr(said, "because of cap")); /* 20 % of ten */
    plane_run(&p, 65 * NS_PER_S);
    assert_false(plane_out(&p, 4)); /* the sweep lets it back */
    plane_end(&p);
}

/* Law 1 counts who serves: a drained host is no peer to leave the load to. */
static void the_last_one_that_serves_is_not_ejected_beside_drained_ones(void **state)
{
    char said[256];
    (void)state;

    plane_settings(&p, 6, 1);
    plane_go(&p);
    for (uint32_t i = 1; i < 6; i++)
        assert_int_equal(order(HOST_DEED_DRAIN, i, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_int_equal(order(HOST_DEED_EJECT, 0, said, sizeof(said)), HOST_ANSWER_REFUSED);
    assert_non_null(strstr(said, "because of last_host"));
    assert_int_equal(order(HOST_DEED_UNDRAIN, 1, said, sizeof(said)), HOST_ANSWER_DONE);
    assert_int_equal(order(HOST_DEED_EJECT, 0, said, sizeof(said)), HOST_ANSWER_REFUSED);
    assert_non_null(strstr(said, "because of few_healthy"));
    plane_end(&p);
}

/* Kept-alive connections never pin traffic: each goes at its age, and not all at once. */
static void connections_go_at_their_age(void **state)
{
    uint64_t before;
    (void)state;

    plane_settings(&p, 2, 1);
    p.settings.cluster.max_connection_age = 10 * NS_PER_S;
    plane_go(&p);
    burst(100, 400 * NS_PER_MS);
    plane_run(&p, 8 * NS_PER_S);
    before = plane_count(&p, CLUSTER_upstream_cx_active);
    assert_int_equal(before, 100);
    plane_run(&p, 1900 * NS_PER_MS); /* the first nine tenths are over for some */
    assert_in_range(plane_count(&p, CLUSTER_upstream_cx_active), 1, 99);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 0);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_max_duration_reached), 100);
    plane_traffic(&p, 10, 100 * NS_PER_MS);
    plane_run(&p, 6 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 110);
    plane_end(&p);
}

/* Of clients' connections: those in use are told by their next answer, idle ones are closed. */
static void client_connections_go_at_their_age(void **state)
{
    uint64_t first;
    (void)state;

    plane_settings(&p, 2, 2);
    p.settings.listener.max_connection_age = 10 * NS_PER_S;
    plane_go(&p);
    burst(20, 10 * NS_PER_MS);
    plane_run(&p, 8900 * NS_PER_MS);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_active), 20);
    first = rig_http_sum(&p.rig, HTTP_downstream_cx_total);
    assert_int_equal(first, 20);
    plane_run(&p, NS_PER_S); /* the first nine tenths are over for some: none is in use */
    assert_in_range(rig_http_sum(&p.rig, HTTP_downstream_cx_active), 1, 19);
    plane_run(&p, NS_PER_S);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_active), 0);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_max_duration_reached), 20);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_idle_timeout), 0);

    plane_traffic(&p, 200,
                  500 * NS_PER_MS); /* 100 s on one connection: each is told, none closed */
    assert_in_range(rig_http_sum(&p.rig, HTTP_downstream_cx_total), first + 10, first + 12);
    plane_run(&p, 11 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 220);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_max_duration_reached),
                     rig_http_sum(&p.rig, HTTP_downstream_cx_total));
    plane_end(&p);
}

static void a_client_that_has_just_asked_is_not_closed_but_told(void **state)
{
    (void)state;

    plane_settings(&p, 2, 1);
    p.settings.listener.max_connection_age = 10 * NS_PER_S;
    plane_go(&p);
    plane_traffic(&p, 1, 8900 * NS_PER_MS);
    plane_traffic(&p, 1, 1500 * NS_PER_MS); /* 10.4 s: its end was in between */
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_active), 1);
    plane_traffic(&p, 1, 100 * NS_PER_MS);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_active), 0);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_total), 1);
    assert_int_equal(plane_answered(&p, 2), 3);
    plane_end(&p);
}

/* Its end comes under a long upload and its answer: the request is whole, and the last one. */
static void no_request_is_cut_at_its_connections_age(void **state)
{
    struct ask slow = ASK_PLAIN;
    uint64_t id;
    (void)state;

    plane_settings(&p, 2, 1);
    p.settings.listener.max_connection_age = 2 * NS_PER_S;
    plane_go(&p);
    slow.method = METHOD_POST;
    slow.body = 6000;
    slow.upload_piece = 1000;
    slow.upload_gap = NS_PER_S;
    id = plane_ask(&p, &slow);
    plane_run(&p, 20 * NS_PER_S);
    plane_expect(&p, id, 200);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_max_duration_reached), 1);
    assert_int_equal(rig_http_sum(&p.rig, HTTP_downstream_cx_active), 0);
    plane_end(&p);
}

/* A host that says goodbye by itself: its connections go with their answers, none is ejected. */
static void t_000_15_hosts_that_say_connection_close_are_no_failures(void **state)
{
    (void)state;

    plane_settings(&p, 2, 2);
    plane_go(&p);
    p.rig.servers[0].mood.says_close_permille = 1000;
    plane_traffic(&p, 60, 20 * NS_PER_MS);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 60);
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 0);
    assert_true(of_host(0, ENDPOINT_cx_total) >= 25);
    assert_int_equal(p.laws.ejections, 0);
    plane_end(&p);
}

/* As with Envoy: no connection outlives the ejection idle, and none waits for a request to go. */
static void an_ejected_hosts_idle_connections_go_at_once(void **state)
{
    (void)state;

    plane_settings(&p, 5, 2);
    p.settings.cluster.outlier.consecutive_5xx = 22; /* more than one burst */
    p.settings.cluster.outlier.consecutive_gateway = 0;
    plane_go(&p);
    burst(100, 100 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 20);
    p.rig.servers[0].mood.error_permille = 1000;
    p.rig.servers[0].mood.error_status = 500;
    burst(100, 100 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 20);
    burst(50, 100 * NS_PER_MS); /* these are enough */
    plane_run(&p, NS_PER_S);
    assert_int_equal(host_health(rig_state(&p.rig)->hosts.at[0]), HOST_EJECTED);
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 0);
    assert_true(of_host(1, ENDPOINT_cx_active) >= 10);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_15_fifty_kept_alive_connections_go_as_they_fall_idle),
        cmocka_unit_test(a_drained_host_that_is_taken_back_serves_again),
        cmocka_unit_test(the_last_host_drained_leaves_nobody_and_that_is_said),
        cmocka_unit_test(who_waits_for_a_slot_gets_no_drained_host),
        cmocka_unit_test(a_host_is_ejected_by_hand_and_pardoned),
        cmocka_unit_test(the_last_one_that_serves_is_not_ejected_beside_drained_ones),
        cmocka_unit_test(connections_go_at_their_age),
        cmocka_unit_test(client_connections_go_at_their_age),
        cmocka_unit_test(a_client_that_has_just_asked_is_not_closed_but_told),
        cmocka_unit_test(no_request_is_cut_at_its_connections_age),
        cmocka_unit_test(t_000_15_hosts_that_say_connection_close_are_no_failures),
        cmocka_unit_test(an_ejected_hosts_idle_connections_go_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
