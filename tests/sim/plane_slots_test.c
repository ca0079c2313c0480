/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits through the whole data plane: numbers as seen on Envoy 1.40, and the order in which those
 * who wait are served, over several workers (reference/envoy-semantics.md 2, 12: C1, C1b).
 */
#include "sim/plane.h"

#include "model/flags.h"

static struct plane p;
static span_ns held; /* each answer */

static void hold(struct server *server, const struct wish *wish, const struct message_head *head,
                 struct answer_plan *plan)
{
    (void)server;
    (void)wish;
    (void)head;
    plan->delay = held;
}

static void hold_all(span_ns span)
{
    held = span;
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        p.rig.servers[i].decide = hold;
}

/* One host that holds each answer for a second. */
static void holding(uint32_t workers, uint32_t connections, uint32_t pending)
{
    plane_settings(&p, 1, workers);
    p.settings.cluster.limits.max_connections = connections;
    p.settings.cluster.limits.max_pending = pending;
    p.settings.route.timeout = 60 * NS_PER_S;
    plane_go(&p);
    hold_all(NS_PER_S);
}

/* |count| requests, one each 20 ms; the first one's id. */
static uint64_t ask_many(unsigned count)
{
    uint64_t first = plane_get(&p);

    plane_run(&p, 20 * NS_PER_MS);
    for (unsigned i = 1; i < count; i++) {
        plane_get(&p);
        plane_run(&p, 20 * NS_PER_MS);
    }
    return first;
}

static void expect_refused(uint64_t id)
{
    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UO);
}

/* --- as seen on Envoy 1.40 --- */

/* The real one counts 7 where requests and answers come one by one, 6 where two come together. */
static void six_requests_on_two_connections_come_in_three_waves(void **state)
{
    uint64_t first;
    (void)state;

    holding(1, 2, 1000);
    first = ask_many(6);
    for (unsigned wave = 1; wave <= 3; wave++) {
        assert_int_equal(plane_answered(&p, 2), 2 * (wave - 1));
        plane_run(&p, NS_PER_S);
    }
    for (uint64_t i = 0; i < 6; i++)
        plane_expect(&p, first + i, 200);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 2);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_overflow), 7);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 0);
    plane_end(&p);
}

static void of_eight_requests_three_are_refused_where_three_may_wait(void **state)
{
    uint64_t first;
    (void)state;

    holding(1, 2, 3);
    first = ask_many(8);
    for (uint64_t i = 5; i < 8; i++)
        expect_refused(first + i);
    plane_run(&p, 4 * NS_PER_S);
    for (uint64_t i = 0; i < 5; i++)
        plane_expect(&p, first + i, 200);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 3);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_overflow), 5);
    plane_end(&p);
}

static void c1_one_waits_and_one_is_refused(void **state)
{
    uint64_t first;
    (void)state;

    holding(1, 1, 1);
    first = ask_many(3);
    expect_refused(first + 2);
    plane_run(&p, 3 * NS_PER_S);
    plane_expect(&p, first, 200);
    plane_expect(&p, first + 1, 200);
    assert_true(plane_count(&p, CLUSTER_upstream_cx_overflow) >= 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 1);
    plane_end(&p);
}

/* --- a cold pool --- */

static void burst(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        plane_get(&p);
}

static void a_connect_of_ones_own_takes_no_place_where_connections_are_limited(void **state)
{
    (void)state;

    holding(1, 1, 1);
    burst(2);
    plane_run(&p, 4 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 2);
    plane_end(&p);
}

static void c1b_as_envoy_the_first_takes_the_only_place_while_it_connects(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.cluster.limits.max_pending = 1;
    p.settings.cluster.differences = DIFFERENCES_ENVOY;
    plane_go(&p);
    burst(2);
    plane_run(&p, 4 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 1);
    assert_int_equal(plane_answered(&p, 5), 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 1);
    plane_end(&p);
}

/* Without maxConnections nothing else would bound who waits for a host that does not answer. */
static void a_connect_of_ones_own_takes_a_place_where_connections_are_not_limited(void **state)
{
    (void)state;

    holding(1, LIMIT_NONE, 3);
    burst(8);
    plane_run(&p, 4 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 3);
    assert_int_equal(plane_answered(&p, 5), 5);
    plane_end(&p);
}

/* --- as Envoy, where that is asked for --- */

static void as_envoy_the_numbers_are_the_same_on_one_host(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 2;
    p.settings.cluster.limits.max_pending = 3;
    p.settings.cluster.differences = DIFFERENCES_ENVOY;
    plane_go(&p);
    hold_all(NS_PER_S);
    ask_many(8);
    plane_run(&p, 4 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 5);
    assert_int_equal(plane_answered(&p, 5), 3);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_overflow), 5);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 2);
    plane_end(&p);
}

/* As seen on Envoy: 3, and for each of three connections that end with their only request, 3, 1, 0.
 */
static void as_envoy_a_connection_at_its_last_request_makes_two_wishes(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.cluster.limits.max_requests_per_connection = 1;
    p.settings.cluster.differences = DIFFERENCES_ENVOY;
    plane_go(&p);
    hold_all(NS_PER_S);
    ask_many(4);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_overflow), 3);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_overflow), 6);
    plane_run(&p, 5 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 4);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_overflow), 9);
    plane_end(&p);
}

static void as_envoy_each_host_may_have_one_connection_beyond_the_limit(void **state)
{
    (void)state;

    plane_settings(&p, 3, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.cluster.differences = DIFFERENCES_ENVOY;
    plane_go(&p);
    hold_all(NS_PER_S);
    ask_many(6);
    plane_run(&p, 500 * NS_PER_MS);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 3);
    plane_run(&p, 3 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 6);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 3);
    plane_end(&p);
}

static void as_envoy_one_failed_connect_fails_all_who_wait(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.cluster.connect_timeout = NS_PER_S;
    p.settings.cluster.connect_failover = false;
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.differences = DIFFERENCES_ENVOY;
    plane_go(&p);
    server_set_road(&p.rig.servers[0], ROAD_BLACK_HOLE);
    burst(5);
    plane_run(&p, 1200 * NS_PER_MS);
    assert_int_equal(plane_answered(&p, 5), 5);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_failure_eject), 5);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_connect_fail), 1);
    plane_end(&p);
}

/* --- the order, over all workers --- */

#define CROWD 60

/* How much earlier than one that was served before it a request came, at most. */
static span_ns worst_overtaking(uint64_t first)
{
    span_ns worst = 0;

    for (uint64_t i = first; i < first + CROWD; i++) {
        for (uint64_t k = i + 1; k < first + CROWD; k++) {
            const struct fact *a = plane_fact(&p, i), *b = plane_fact(&p, k);

            if (b->ended < a->ended && mono_since(a->begun, b->begun) > worst)
                worst = mono_since(a->begun, b->begun);
        }
    }
    return worst;
}

static void first_come_first_served(uint32_t workers, uint32_t connections)
{
    uint64_t first;

    plane_settings(&p, 1, workers);
    p.settings.cluster.limits.max_connections = connections;
    p.settings.route.timeout = 60 * NS_PER_S;
    plane_go(&p);
    hold_all(200 * NS_PER_MS);
    first = p.rig.ledger.count + 1;
    for (unsigned i = 0; i < CROWD; i++) {
        plane_get(&p);
        plane_run(&p, 30 * NS_PER_MS);
    }
    plane_run(&p, 20 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), CROWD);
    assert_true(worst_overtaking(first) <= workers * 5 * NS_PER_MS + 30 * NS_PER_MS);
    plane_end(&p);
}

static void who_waits_is_served_in_the_order_of_coming_on_whatever_worker(void **state)
{
    (void)state;

    first_come_first_served(1, 2);
    first_come_first_served(2, 2);
    first_come_first_served(4, 2);
    first_come_first_served(4, 1);
    first_come_first_served(8, 3);
}

/* Two slots are never both idle while somebody waits: 60 answers of 200 ms take six seconds. */
static void slots_do_not_lie_idle_while_requests_wait(void **state)
{
    (void)state;

    plane_settings(&p, 1, 4);
    p.settings.cluster.limits.max_connections = 2;
    p.settings.route.timeout = 60 * NS_PER_S;
    plane_go(&p);
    hold_all(200 * NS_PER_MS);
    burst(CROWD);
    plane_run(&p, 6500 * NS_PER_MS);
    assert_int_equal(plane_answered(&p, 2), CROWD);
    plane_end(&p);
}

static void an_idle_connection_of_one_worker_is_given_up_for_a_request_of_another(void **state)
{
    (void)state;

    plane_settings(&p, 1, 4);
    p.settings.cluster.limits.max_connections = 2;
    p.settings.cluster.idle_timeout = 3600 * NS_PER_S;
    plane_go(&p);
    for (unsigned i = 0; i < 40; i++) {
        client_close_idle(&p.rig.client); /* so that the next comes to any worker */
        uint64_t id = plane_get(&p);

        plane_run(&p, NS_PER_S);
        plane_expect(&p, id, 200);
        assert_true(mono_since(plane_fact(&p, id)->begun, plane_fact(&p, id)->ended) <
                    100 * NS_PER_MS);
    }
    assert_true(plane_count(&p, CLUSTER_upstream_cx_total) > 2);
    plane_end(&p);
}

/* A connect each answer would use up the ports: connections stay where they are while that is fair.
 */
static void order_does_not_cost_a_connect_a_request(void **state)
{
    (void)state;

    plane_settings(&p, 1, 4);
    p.settings.cluster.limits.max_connections = 4;
    p.settings.route.timeout = 60 * NS_PER_S;
    plane_go(&p);
    hold_all(NS_PER_MS);
    for (unsigned i = 0; i < 40; i++) {
        burst(100);
        plane_run(&p, 50 * NS_PER_MS);
    }
    plane_run(&p, 5 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 4000);
    assert_true(plane_count(&p, CLUSTER_upstream_cx_total) < 1000);
    plane_end(&p);
}

/* --- how long one may wait --- */

static void who_waits_longer_than_queue_timeout_is_refused(void **state)
{
    uint64_t first, second, third;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.cluster.limits.queue_timeout = 1500 * NS_PER_MS;
    plane_go(&p);
    hold_all(NS_PER_S);
    first = plane_get(&p);
    plane_run(&p, 10 * NS_PER_MS);
    second = plane_get(&p);
    plane_run(&p, 10 * NS_PER_MS);
    third = plane_get(&p);
    plane_run(&p, 1450 * NS_PER_MS);
    assert_int_equal(plane_fact(&p, third)->outcome, OUTCOME_PENDING);
    plane_run(&p, 100 * NS_PER_MS);
    expect_refused(third);
    plane_run(&p, 2 * NS_PER_S);
    plane_expect(&p, first, 200);
    plane_expect(&p, second, 200);
    assert_int_equal(plane_count(&p, CLUSTER_queue_timeout), 1);
    assert_int_equal(p.laws.ejections, 0);
    plane_end(&p);
}

/* The same in the queues of the hosts, where Envoy is followed. */
static void who_waits_too_long_at_a_host_is_refused(void **state)
{
    (void)state;

    plane_settings(&p, 2, 1);
    p.settings.cluster.differences = DIFFERENCES_ENVOY;
    p.settings.cluster.limits.max_connections = 1; /* and one a host beyond it */
    p.settings.cluster.limits.queue_timeout = 1500 * NS_PER_MS;
    p.settings.cluster.limits.host.max_pending = 2;
    plane_go(&p);
    hold_all(2 * NS_PER_S);
    plane_traffic(&p, 7, 10 * NS_PER_MS); /* three at each host, and one too many */
    expect_refused(7);
    plane_run(&p, 1420 * NS_PER_MS);
    for (uint64_t id = 1; id <= 6; id++)
        assert_int_equal(plane_fact(&p, id)->outcome, OUTCOME_PENDING);
    plane_run(&p, 150 * NS_PER_MS);
    for (uint64_t id = 3; id <= 6; id++)
        expect_refused(id);
    plane_run(&p, 2 * NS_PER_S);
    plane_expect(&p, 1, 200);
    plane_expect(&p, 2, 200);
    assert_int_equal(plane_count(&p, CLUSTER_queue_timeout), 4);
    assert_int_equal(p.laws.ejections, 0);
    plane_end(&p);
}

/* The connect has its own time limit, and a failed one is the host's. */
static void no_queue_timeout_ends_a_connect(difference_set envoy)
{
    uint64_t id;

    plane_settings(&p, 1, 1);
    p.settings.cluster.differences = envoy;
    p.settings.cluster.limits.max_connections = 1;
    p.settings.cluster.limits.queue_timeout = 10 * NS_PER_MS;
    p.settings.cluster.connect_timeout = 500 * NS_PER_MS;
    plane_go(&p);
    server_set_road(&p.rig.servers[0], ROAD_BLACK_HOLE);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UF);
    plane_end(&p);
}

static void queue_timeout_does_not_end_a_connect(void **state)
{
    (void)state;
    no_queue_timeout_ends_a_connect(DIFFERENCES_FIREBREAK);
}

static void queue_timeout_of_a_host_does_not_end_a_connect(void **state)
{
    (void)state;
    no_queue_timeout_ends_a_connect(DIFFERENCES_ENVOY);
}

/* --- how long a connection may live --- */

static void an_old_connection_gets_no_further_request_and_is_closed_once_it_has_none(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.max_connection_duration = 5 * NS_PER_S;
    plane_go(&p);
    plane_traffic(&p, 4, NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 1);
    plane_run(&p, 2 * NS_PER_S); /* idle: closed on the day */
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 0);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_max_duration_reached), 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_idle_timeout), 0);
    hold_all(7 * NS_PER_S);
    plane_get(&p);
    plane_run(&p, 6 * NS_PER_S); /* busy: left alone */
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 1);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 0);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_max_duration_reached), 2);
    assert_int_equal(plane_answered(&p, 2), 5);
    plane_end(&p);
}

static void who_waits_is_not_given_a_connection_that_is_too_old(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.limits.max_connections = 1;
    p.settings.cluster.max_connection_duration = 500 * NS_PER_MS;
    plane_go(&p);
    hold_all(NS_PER_S);
    ask_many(3);
    plane_run(&p, 4 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 3);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 3);
    plane_end(&p);
}

/* --- limits of each host --- */

static void hosts(uint32_t count, uint32_t workers)
{
    plane_settings(&p, count, workers);
    p.settings.route.timeout = 60 * NS_PER_S;
}

static void at_its_own_connection_limit_another_host_is_taken_and_then_one_waits(void **state)
{
    (void)state;

    hosts(3, 2);
    p.settings.cluster.limits.host.max_connections = 2;
    plane_go(&p);
    hold_all(NS_PER_S);
    burst(9);
    plane_run(&p, 200 * NS_PER_MS);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(limit_used(&rig_state(&p.rig)->hosts.at[i]->connections), 2);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active), 6);
    assert_true(plane_count(&p, CLUSTER_upstream_cx_overflow) >= 3);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 9);
    plane_end(&p);
}

static void whatever_the_balancer_draws_a_host_with_room_is_found(void **state)
{
    (void)state;

    hosts(3, 1);
    p.settings.cluster.lb = LB_RANDOM;
    p.settings.cluster.limits.host.max_connections = 2;
    plane_go(&p);
    hold_all(NS_PER_S);
    for (unsigned i = 0; i < 4; i++) {
        burst(6);
        plane_run(&p, 200 * NS_PER_MS);
        assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active), 6);
        plane_run(&p, 2 * NS_PER_S);
    }
    assert_int_equal(plane_answered(&p, 2), 24);
    plane_end(&p);
}

static void at_its_own_request_limit_another_host_is_taken_and_then_one_is_refused(void **state)
{
    (void)state;

    hosts(3, 2);
    p.settings.cluster.limits.host.max_requests = 2;
    plane_go(&p);
    hold_all(NS_PER_S);
    burst(9);
    plane_run(&p, 200 * NS_PER_MS);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active), 6);
    assert_int_equal(plane_answered(&p, 5), 3);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active_overflow), 3);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 6);
    burst(6); /* on connections that are there */
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 12);
    plane_end(&p);
}

static void who_waits_for_a_silent_host_is_bounded_and_the_others_take_the_rest(void **state)
{
    (void)state;

    hosts(2, 1);
    p.settings.cluster.limits.host.max_pending = 3;
    p.settings.cluster.connect_timeout = 5 * NS_PER_S;
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.connect_failover = false;
    plane_go(&p);
    plane_traffic(&p, 1, 0);
    server_set_road(&p.rig.servers[0], ROAD_BLACK_HOLE);
    for (unsigned i = 0; i < 20; i++) {
        plane_get(&p);
        plane_run(&p, 50 * NS_PER_MS);
    }
    assert_int_equal(limit_used(&rig_state(&p.rig)->hosts.at[0]->pending), 3);
    assert_true(plane_answered(&p, 2) >= 17);
    assert_int_equal(plane_answered(&p, 5), 0);
    plane_run(&p, 10 * NS_PER_S);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(six_requests_on_two_connections_come_in_three_waves),
        cmocka_unit_test(of_eight_requests_three_are_refused_where_three_may_wait),
        cmocka_unit_test(c1_one_waits_and_one_is_refused),
        cmocka_unit_test(a_connect_of_ones_own_takes_no_place_where_connections_are_limited),
        cmocka_unit_test(c1b_as_envoy_the_first_takes_the_only_place_while_it_connects),
        cmocka_unit_test(a_connect_of_ones_own_takes_a_place_where_connections_are_not_limited),
        cmocka_unit_test(as_envoy_the_numbers_are_the_same_on_one_host),
        cmocka_unit_test(as_envoy_a_connection_at_its_last_request_makes_two_wishes),
        cmocka_unit_test(as_envoy_each_host_may_have_one_connection_beyond_the_limit),
        cmocka_unit_test(as_envoy_one_failed_connect_fails_all_who_wait),
        cmocka_unit_test(who_waits_is_served_in_the_order_of_coming_on_whatever_worker),
        cmocka_unit_test(slots_do_not_lie_idle_while_requests_wait),
        cmocka_unit_test(an_idle_connection_of_one_worker_is_given_up_for_a_request_of_another),
        cmocka_unit_test(order_does_not_cost_a_connect_a_request),
        cmocka_unit_test(who_waits_longer_than_queue_timeout_is_refused),
        cmocka_unit_test(who_waits_too_long_at_a_host_is_refused),
        cmocka_unit_test(queue_timeout_of_a_host_does_not_end_a_connect),
        cmocka_unit_test(queue_timeout_does_not_end_a_connect),
        cmocka_unit_test(an_old_connection_gets_no_further_request_and_is_closed_once_it_has_none),
        cmocka_unit_test(at_its_own_connection_limit_another_host_is_taken_and_then_one_waits),
        cmocka_unit_test(who_waits_is_not_given_a_connection_that_is_too_old),
        cmocka_unit_test(whatever_the_balancer_draws_a_host_with_room_is_found),
        cmocka_unit_test(at_its_own_request_limit_another_host_is_taken_and_then_one_is_refused),
        cmocka_unit_test(who_waits_for_a_silent_host_is_bounded_and_the_others_take_the_rest),
    };

    return cmocka_run_group_tests_name("plane_slots", tests, NULL, NULL);
}
