/* SPDX-License-Identifier: Apache-2.0 */
/* Another configuration while requests are under way, through the whole data plane. */
#include "sim/plane.h"

#include "base/rng.h"

static struct plane p;

static void reload(uint64_t hosts)
{
    p.rig.settings = p.settings;
    assert_true(rig_reload(&p.rig, hosts));
    plane_run(&p, NS_PER_MS);
}

static uint64_t asked_of(uint32_t server)
{
    return p.rig.servers[server].arrivals;
}

static void a_host_that_goes_finishes_what_it_has_and_gets_no_more(void **state)
{
    uint64_t slow;
    uint32_t busy = 0;
    (void)state;

    plane_settings(&p, 3, 1);
    plane_go(&p);
    plane_plan(&p, 0)->delay = 5 * NS_PER_S;
    slow = plane_get(&p);
    plane_run(&p, NS_PER_S);
    while (asked_of(busy) == 0)
        busy++;
    reload(RIG_ALL_HOSTS & ~(1u << busy));
    plane_traffic(&p, 30, 20 * NS_PER_MS);
    assert_int_equal(asked_of(busy), 1);
    assert_int_equal(asked_of(0) + asked_of(1) + asked_of(2), 31);
    plane_run(&p, 5 * NS_PER_S);
    plane_expect(&p, slow, 200);
    assert_int_equal(plane_answered(&p, 2), 31);
    plane_end(&p);
}

static void all_hosts_may_be_replaced_at_once(void **state)
{
    (void)state;

    plane_settings(&p, 6, 2);
    plane_go(&p);
    reload(0x7);
    plane_traffic(&p, 40, 5 * NS_PER_MS);
    reload(0x38);
    plane_traffic(&p, 40, 5 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 80);
    assert_int_equal(asked_of(3) + asked_of(4) + asked_of(5), 40);
    plane_end(&p);
}

static void who_is_out_stays_out(void **state)
{
    uint64_t before;
    (void)state;

    plane_settings(&p, 5, 2);
    plane_go(&p);
    server_refuse(&p.rig.servers[2]);
    plane_traffic(&p, 100, 20 * NS_PER_MS);
    assert_true(plane_out(&p, 2));
    assert_true(server_listen(&p.rig.servers[2]));
    before = asked_of(2);
    p.settings.cluster.outlier.consecutive_5xx = 3;
    reload(RIG_ALL_HOSTS);
    plane_traffic(&p, 50, 20 * NS_PER_MS);
    assert_true(plane_out(&p, 2));
    assert_int_equal(asked_of(2), before);
    plane_run(&p, 60 * NS_PER_S);
    assert_false(plane_out(&p, 2));
    plane_end(&p);
}

static void a_host_that_comes_back_begins_anew(void **state)
{
    (void)state;

    plane_settings(&p, 5, 1);
    plane_go(&p);
    server_refuse(&p.rig.servers[1]);
    plane_traffic(&p, 60, 20 * NS_PER_MS);
    assert_true(plane_out(&p, 1));
    reload(0x1d);
    plane_run(&p, NS_PER_S);
    assert_true(server_listen(&p.rig.servers[1]));
    reload(0x1f);
    plane_traffic(&p, 50, 20 * NS_PER_MS);
    assert_int_equal(asked_of(1), 10);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 110);
    plane_end(&p);
}

static void who_waits_for_a_connection_goes_on_waiting(void **state)
{
    uint64_t ids[6];
    (void)state;

    plane_settings(&p, 2, 2);
    p.settings.cluster.limits.max_connections = 1;
    plane_go(&p);
    for (unsigned i = 0; i < 6; i++) {
        plane_plan(&p, 0)->delay = NS_PER_S;
        ids[i] = plane_get(&p);
        plane_run(&p, 10 * NS_PER_MS);
    }
    reload(0x2);
    plane_run(&p, 10 * NS_PER_S);
    for (unsigned i = 0; i < 6; i++)
        plane_expect(&p, ids[i], 200);
    plane_end(&p);
}

static void a_limit_that_rises_lets_them_go_at_once(void **state)
{
    uint64_t ids[4];
    (void)state;

    plane_settings(&p, 2, 1);
    p.settings.cluster.limits.max_connections = 1;
    plane_go(&p);
    for (unsigned i = 0; i < 4; i++) {
        plane_plan(&p, 0)->delay = 4 * NS_PER_S;
        ids[i] = plane_get(&p);
        plane_run(&p, 10 * NS_PER_MS);
    }
    p.settings.cluster.limits.max_connections = 4;
    reload(RIG_ALL_HOSTS);
    plane_run(&p, 5 * NS_PER_S);
    for (unsigned i = 0; i < 4; i++)
        plane_expect(&p, ids[i], 200);
    plane_end(&p);
}

/* Whatever is reloaded, however often: nobody notices, and slots do not pile up. */
static void nobody_notices_hundreds_of_reloads(void **state)
{
    struct rng rng;
    (void)state;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint32_t asked = 0;

        rng_init(&rng, seed);
        plane_settings(&p, 12, 3);
        plane_go(&p);
        for (unsigned round = 0; round < 200; round++) {
            uint32_t requests = rng_below(&rng, 6);

            if (rng_below(&rng, 3) != 0)
                reload(1u + rng_below(&rng, 0xfff));
            plane_traffic(&p, requests, rng_below(&rng, 3) * NS_PER_MS);
            plane_run(&p, rng_below(&rng, 20) * NS_PER_MS);
            asked += requests;
        }
        plane_run(&p, 2 * NS_PER_S);
        assert_int_equal(plane_answered(&p, 2), asked);
        assert_true(rig_state(&p.rig)->hosts.count <= 3 * 12);
        plane_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_goes_finishes_what_it_has_and_gets_no_more),
        cmocka_unit_test(all_hosts_may_be_replaced_at_once),
        cmocka_unit_test(who_is_out_stays_out),
        cmocka_unit_test(a_host_that_comes_back_begins_anew),
        cmocka_unit_test(who_waits_for_a_connection_goes_on_waiting),
        cmocka_unit_test(a_limit_that_rises_lets_them_go_at_once),
        cmocka_unit_test(nobody_notices_hundreds_of_reloads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
