/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole data plane in panic (T-004-6). Hosts are put out by hand here, beside the judge: law 1
 * would not let him go so far.
 */
#include "sim/plane.h"

#include "model/flags.h"

static struct plane p;

static void go(uint32_t hosts, enum panic_policy policy, uint32_t threshold)
{
    plane_settings(&p, hosts, 2);
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.panic = (struct panic_config){policy, threshold};
    plane_go(&p);
    p.rig.world.watch = NULL;
}

static void put(uint32_t from, uint32_t to, enum host_health health)
{
    for (uint32_t i = from; i < to; i++)
        host_set_health(&rig_state(&p.rig)->hosts, i, health);
}

static uint64_t served(uint32_t host)
{
    return host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[host]), ENDPOINT_rq_total);
}

static void serve_all_serves_by_everyone_and_nobody_sees_uh(void **state)
{
    (void)state;

    go(2, PANIC_SERVE_ALL, 50);
    put(0, 1, HOST_EJECTED);
    plane_traffic(&p, 10, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(served(0), 0); /* 50 % is not below 50 % */
    assert_int_equal(plane_count(&p, CLUSTER_lb_healthy_panic), 0);
    put(1, 2, HOST_EJECTED);
    plane_traffic(&p, 20, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_in_range(served(0), 9, 11); /* each of the two workers goes round by itself */
    assert_int_equal(served(0) + served(1), 30);
    assert_int_equal(plane_answered(&p, 2), 30);
    assert_int_equal(plane_count(&p, CLUSTER_lb_healthy_panic), 20);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_none_healthy), 0);
    plane_end(&p);
}

/* P1 to P4 of the reference: ten hosts, so many healthy, 100 requests; how many the others got. */
static uint64_t of_ten(uint32_t healthy, uint32_t threshold)
{
    uint64_t others = 0;

    go(10, PANIC_SERVE_ALL, threshold);
    put(healthy, 10, HOST_EJECTED);
    plane_traffic(&p, 100, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 100);
    for (uint32_t i = healthy; i < 10; i++)
        others += served(i);
    assert_int_equal(plane_count(&p, CLUSTER_lb_healthy_panic), others > 0 ? 100 : 0);
    plane_end(&p);
    return others;
}

static void p1_to_p4_of_the_reference(void **state)
{
    (void)state;

    assert_in_range(of_ten(4, 50), 50, 70); /* all ten serve */
    assert_int_equal(of_ten(5, 50), 0);     /* not below */
    assert_int_equal(of_ten(8, 90), 0);     /* with 1.4 times their share they carry all */
    assert_in_range(of_ten(7, 90), 20, 40);
}

static void in_panic_connections_are_kept_as_ever(void **state)
{
    (void)state;

    go(2, PANIC_SERVE_ALL, 50);
    put(0, 2, HOST_EJECTED);
    plane_traffic(&p, 100, 50 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 100);
    assert_in_range(plane_count(&p, CLUSTER_upstream_cx_total), 1, 4); /* two workers, two hosts */
    put(1, 2, HOST_HEALTHY); /* no panic any more: what is open to the other one is closed */
    plane_traffic(&p, 20, 50 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_in_range(plane_count(&p, CLUSTER_upstream_cx_active), 1, 2);
    assert_int_equal(
        host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[0]), ENDPOINT_cx_active), 0);
    plane_end(&p);
}

/* One connection idle and one busy towards each host, when all are ejected. */
static void eject_under_traffic(difference_set differences)
{
    plane_settings(&p, 1, 1);
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.panic = (struct panic_config){PANIC_SERVE_ALL, 50};
    p.settings.cluster.differences = differences;
    plane_go(&p);
    p.rig.world.watch = NULL;
    plane_plan(&p, 0)->delay = NS_PER_S;
    plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
    plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 2);
    put(0, 1, HOST_EJECTED);
    plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
}

static void an_ejection_closes_connections_in_panic_as_envoy_only(void **state)
{
    (void)state;

    eject_under_traffic(DIFFERENCES_FIREBREAK);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 2);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 2);
    plane_end(&p);

    eject_under_traffic(difference_put(DIFFERENCES_FIREBREAK, DIFFERENCE_EJECTION_CLOSES, true));
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 3); /* the idle one is gone */
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 2);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), 1); /* and so is the busy one */
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_max_duration_reached), 0);
    put(0, 1, HOST_EJECTED); /* no news: what came after it stays */
    plane_get(&p);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 3);
    assert_int_equal(plane_answered(&p, 2), 4);
    plane_end(&p);
}

static void without_panic_nobody_is_left_and_it_says_uh(void **state)
{
    uint64_t id;
    (void)state;

    go(2, PANIC_SERVE_ALL, 0);
    put(0, 2, HOST_EJECTED);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UH);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_none_healthy), 1);
    assert_int_equal(plane_count(&p, CLUSTER_lb_healthy_panic), 0);
    plane_end(&p);
}

static void fail_fast_says_uh_at_once_though_one_is_healthy(void **state)
{
    uint64_t id;
    (void)state;

    go(4, PANIC_FAIL_FAST, 50);
    put(0, 3, HOST_EJECTED);
    id = plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
    plane_expect(&p, id, 503);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UH);
    assert_int_equal(plane_count(&p, CLUSTER_lb_healthy_panic), 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_total), 0);
    put(0, 1, HOST_HEALTHY);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 200);
    plane_end(&p);
}

static void least_bad_serves_by_those_out_for_longest(void **state)
{
    (void)state;

    go(5, PANIC_LEAST_BAD, 60);
    for (uint32_t i = 0; i < 4; i++)
        rig_state(&p.rig)->hosts.at[i]->ejected_at = 400 - 100 * i;
    put(0, 4, HOST_EJECTED);
    plane_traffic(&p, 30, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(served(0) + served(1), 0);
    for (uint32_t i = 2; i < 5; i++)
        assert_in_range(served(i), 9, 11);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serve_all_serves_by_everyone_and_nobody_sees_uh),
        cmocka_unit_test(p1_to_p4_of_the_reference),
        cmocka_unit_test(in_panic_connections_are_kept_as_ever),
        cmocka_unit_test(an_ejection_closes_connections_in_panic_as_envoy_only),
        cmocka_unit_test(without_panic_nobody_is_left_and_it_says_uh),
        cmocka_unit_test(fail_fast_says_uh_at_once_though_one_is_healthy),
        cmocka_unit_test(least_bad_serves_by_those_out_for_longest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
