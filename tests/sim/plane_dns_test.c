/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that come and go with a name's addresses, under traffic. */
#include "sim/plane.h"

#include "io/error.h"

static struct plane p;

static void go(uint32_t hosts, uint64_t which)
{
    plane_settings(&p, hosts, 2);
    p.settings.name = "backend.test";
    plane_go(&p);
    sim_resolver_name(&p.rig.resolver, "backend.test")->ttl = 2 * NS_PER_S;
    rig_name_hosts(&p.rig, which);
    plane_run(&p, 100 * NS_PER_MS); /* the first answer */
}

static uint64_t arrived(uint32_t host)
{
    return p.rig.servers[host].arrivals;
}

static uint64_t stat(enum discovery_metric m)
{
    return cell_read(&rig_state(&p.rig)->discovery[m]);
}

static void every_address_of_a_name_serves(void **state)
{
    (void)state;

    go(4, 0xf);
    plane_traffic(&p, 80, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 80);
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(arrived(i), 19, 21);
    assert_int_equal(stat(DISCOVERY_update_failure), 0);
    assert_true(stat(DISCOVERY_update_success) >= 1);
    plane_end(&p);
}

static void hosts_leave_and_join_and_no_request_is_lost(void **state)
{
    uint64_t before;
    (void)state;

    go(4, 0x3);
    for (uint32_t i = 0; i < 4; i++)
        p.rig.servers[i].mood.service = 300 * NS_PER_MS;
    plane_traffic(&p, 100, 10 * NS_PER_MS);
    assert_int_equal(arrived(2) + arrived(3), 0);
    rig_name_hosts(&p.rig, 0xe); /* 0 goes, with requests under way; 2 and 3 come */
    plane_traffic(&p, 250, 10 * NS_PER_MS);
    before = arrived(0);
    plane_traffic(&p, 100, 10 * NS_PER_MS);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(arrived(0), before);
    assert_true(arrived(2) > 50 && arrived(3) > 50);
    assert_int_equal(plane_answered(&p, 2), 450);
    assert_int_equal(p.rig.servers[0].conn_count, 0); /* closed as they fell idle */
    plane_end(&p);
}

static void a_name_server_that_fails_takes_nobody_away(void **state)
{
    struct sim_name *n;
    (void)state;

    go(3, 0x7);
    n = sim_resolver_name(&p.rig.resolver, "backend.test");
    n->error = IO_TIMED_OUT;
    plane_traffic(&p, 300, 40 * NS_PER_MS);
    n->error = IO_OK;
    n->count = 0; /* an answer without addresses */
    plane_traffic(&p, 1500, 40 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 1800);
    for (uint32_t i = 0; i < 3; i++)
        assert_in_range(arrived(i), 550, 650);
    assert_true(stat(DISCOVERY_update_failure) >= 2);
    assert_true(stat(DISCOVERY_update_empty) >= 1);
    plane_end(&p);
}

/* C069 a: the whole set is replaced; the old hosts take no more, then break off what they have. */
static void c069_all_addresses_change_at_once(void **state)
{
    uint64_t old;
    (void)state;

    go(6, 0x07);
    sim_resolver_name(&p.rig.resolver, "backend.test")->ttl = 5 * NS_PER_S;
    plane_traffic(&p, 400, 50 * NS_PER_MS);
    rig_name_hosts(&p.rig, 0x38);
    plane_traffic(&p, 150, 50 * NS_PER_MS); /* longer than the time to live */
    old = arrived(0) + arrived(1) + arrived(2);
    for (uint32_t i = 0; i < 3; i++)
        server_refuse(&p.rig.servers[i]);
    plane_traffic(&p, 200, 50 * NS_PER_MS);
    for (uint32_t i = 0; i < 3; i++)
        server_kill(&p.rig.servers[i], DEATH_BY_RESET);
    plane_traffic(&p, 100, 50 * NS_PER_MS);
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(arrived(0) + arrived(1) + arrived(2), old);
    assert_int_equal(plane_answered(&p, 2), 850);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_connect_fail), 0);
    plane_end(&p);
}

/* C069 c: the same set in another order each time is no change. */
static void c069_a_rotating_answer_changes_nothing(void **state)
{
    struct sim_name *n;
    uint64_t changes, opened;
    (void)state;

    go(4, 0xf);
    n = sim_resolver_name(&p.rig.resolver, "backend.test");
    plane_traffic(&p, 100, 20 * NS_PER_MS);
    changes = rig_state(&p.rig)->membership_changes;
    opened = plane_count(&p, CLUSTER_upstream_cx_total);
    for (int turn = 0; turn < 20; turn++) {
        struct address first = n->at[0];

        memmove(&n->at[0], &n->at[1], 3 * sizeof(first));
        n->at[3] = first;
        plane_traffic(&p, 30, 100 * NS_PER_MS);
    }
    plane_run(&p, NS_PER_S);
    assert_int_equal(rig_state(&p.rig)->membership_changes, changes);
    assert_in_range(plane_count(&p, CLUSTER_upstream_cx_total), opened, opened + 4);
    assert_true(stat(DISCOVERY_update_success) > 20);
    assert_int_equal(plane_answered(&p, 2), 700);
    plane_end(&p);
}

/* What was learnt about a host stays with it while others come and go. */
static void an_ejected_host_stays_out_through_a_refresh(void **state)
{
    (void)state;

    go(8, 0x1f);
    p.rig.servers[1].mood.error_permille = 1000;
    p.rig.servers[1].mood.error_status = 503;
    plane_traffic(&p, 60, 10 * NS_PER_MS);
    assert_true(plane_out(&p, 1));
    rig_name_hosts(&p.rig, 0x3f);
    plane_run(&p, 3 * NS_PER_S);
    rig_name_hosts(&p.rig, 0x3e);
    plane_run(&p, 3 * NS_PER_S);
    assert_true(plane_out(&p, 1));
    assert_int_equal(cell_read(&rig_state(&p.rig)->outlier[OUTLIER_STAT_ejections_active]), 1);
    plane_run(&p, 70 * NS_PER_S);
    assert_false(plane_out(&p, 1));
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_of_a_name_serves),
        cmocka_unit_test(hosts_leave_and_join_and_no_request_is_lost),
        cmocka_unit_test(a_name_server_that_fails_takes_nobody_away),
        cmocka_unit_test(c069_all_addresses_change_at_once),
        cmocka_unit_test(c069_a_rotating_answer_changes_nothing),
        cmocka_unit_test(an_ejected_host_stays_out_through_a_refresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
