/* SPDX-License-Identifier: Apache-2.0 */
/* Retries through the whole data plane in virtual time: law 4 with all hosts failing, one alone. */
#include "sim/plane.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_all_hosts_failing_the_budget_is_the_bound),
        cmocka_unit_test(a_host_that_fails_alone_is_not_seen_by_clients),
    };

    return cmocka_run_group_tests_name("plane_retries", tests, NULL, NULL);
}
