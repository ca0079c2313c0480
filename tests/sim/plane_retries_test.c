/* SPDX-License-Identifier: Apache-2.0 */
/* Retries through the whole data plane in virtual time: law 4 with all hosts failing, one alone. */
#include "sim/plane.h"

#include "model/flags.h"

static struct plane p;

static void with_all_hosts_failing_the_budget_is_the_bound(void **state)
{
    (void)state;

    plane_settings(&p, 4, 2);
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.retry_budget =
        (struct retry_budget_config){.earn_permille = 100, .capacity = 10};
    p.settings.retry.policy.on = RETRY_ON_5XX;
    p.settings.retry.policy.attempts = 3;
    plane_go(&p);
    for (uint32_t i = 0; i < 4; i++) {
        server_blame(&p.rig.servers[i]);
        p.rig.servers[i].mood.error_permille = 1000;
        p.rig.servers[i].mood.error_status = 503;
    }
    plane_traffic(&p, 1000, 5 * NS_PER_MS);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 5), 1000);
    assert_in_range(plane_count(&p, CLUSTER_upstream_rq_total), 1090, 1110);
    assert_true(plane_count(&p, CLUSTER_upstream_rq_retry_overflow) > 500);
    plane_end(&p);
}

static void a_host_that_fails_alone_is_not_seen_by_clients(void **state)
{
    (void)state;

    plane_settings(&p, 10, 2);
    p.settings.cluster.outlier.enabled = false;
    p.settings.retry.policy.on = RETRY_ON_5XX;
    p.settings.retry.policy.attempts = 1;
    plane_go(&p);
    server_blame(&p.rig.servers[3]);
    p.rig.servers[3].mood.error_permille = 1000;
    p.rig.servers[3].mood.error_status = 503;
    plane_traffic(&p, 500, 10 * NS_PER_MS);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 500);
    assert_in_range(plane_count(&p, CLUSTER_upstream_rq_retry), 45, 70);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry_success),
                     plane_count(&p, CLUSTER_upstream_rq_retry));
    plane_end(&p);
}

static void fails(uint32_t host, span_ns after)
{
    server_blame(&p.rig.servers[host]);
    p.rig.servers[host].mood.error_permille = 1000;
    p.rig.servers[host].mood.error_status = 503;
    p.rig.servers[host].mood.service = after;
}

/* R1 of the reference: two retries of a host that always says 503. */
static void r1_used_up_retries_show_the_last_answer_and_urx(void **state)
{
    const struct fact *f;
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.cluster.outlier.enabled = false;
    p.settings.retry.policy.on = RETRY_ON_5XX;
    p.settings.retry.policy.attempts = 2;
    plane_go(&p);
    fails(0, NS_PER_MS);
    id = plane_get(&p);
    plane_run(&p, 2 * NS_PER_S);
    plane_expect(&p, id, 503);
    f = plane_fact(&p, id);
    assert_int_equal(f->record_flags, FLAG_URX);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_total), 3);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry), 2);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry_limit_exceeded), 1);
    assert_int_equal(cluster_state_retry_sum(rig_state(&p.rig), RETRY_STAT_upstream_rq_5xx), 2);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_5xx), 1);
    plane_end(&p);
}

static uint64_t asked(uint32_t host)
{
    return host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[host]), ENDPOINT_rq_total);
}

/*
 * C4 and C5 of the reference: so many requests at once, half of them on a host that fails all of
 * its own soon, the others and all retries on one that takes its time.
 */
static void retries_at_once(uint32_t requests, uint32_t allowed)
{
    uint64_t failed;

    plane_settings(&p, 2, 1);
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    p.settings.cluster.retry_share =
        (struct retry_share){.given = true, .permille = 200, .least = 3};
    p.settings.retry.policy.on = RETRY_ON_5XX;
    p.settings.retry.policy.attempts = 1;
    plane_go(&p);
    plane_traffic(&p, 200, NS_PER_MS); /* so that a few retries are little */
    plane_run(&p, NS_PER_S);
    failed = 0 - asked(0);
    fails(0, 100 * NS_PER_MS);
    p.rig.servers[1].mood.service = 3 * NS_PER_S;
    for (uint32_t i = 0; i < requests; i++)
        plane_get(&p);
    plane_run(&p, NS_PER_S);
    failed += asked(0);
    assert_in_range(failed, requests / 2 - 1, requests / 2 + 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry), allowed);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry_overflow), failed - allowed);
    plane_run(&p, 20 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 5), failed - allowed);
    assert_int_equal(plane_answered(&p, 2), 200 + requests - failed + allowed);
    plane_end(&p);
}

static void c4_c5_a_share_of_what_is_under_way_and_never_below_its_least(void **state)
{
    (void)state;

    retries_at_once(30, 6);
    retries_at_once(10, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_all_hosts_failing_the_budget_is_the_bound),
        cmocka_unit_test(a_host_that_fails_alone_is_not_seen_by_clients),
        cmocka_unit_test(r1_used_up_retries_show_the_last_answer_and_urx),
        cmocka_unit_test(c4_c5_a_share_of_what_is_under_way_and_never_below_its_least),
    };

    return cmocka_run_group_tests_name("plane_retries", tests, NULL, NULL);
}
