/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of reference/scenarios.md about whose trouble it is, by their names, through the
 * whole data plane: T-000-11 (zones), T-000-12 (a version), T-000-13 (a host with the heavy
 * requests), T-000-14 (this proxy itself).
 */
#include "codec/message.h"
#include "sim/detection_plane.h"

#define SEEDS 3

static void be_alike(uint64_t hosts, void (*strike)(struct server *s))
{
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        if ((hosts & BIT(i)) != 0)
            strike(server(i));
}

static void slow_3(struct server *s)
{
    s->mood.pace.slow = 3;
}

static void half_fail(struct server *s)
{
    s->mood.error_permille = 500;
}

/* A segment in five has to be sent again. */
static void lossy(struct server *s)
{
    s->site->path.loss_permille = 200;
    server_blame(s);
}

/* --- T-000-11: nine hosts in three zones --- */

#define ZONE_A (BIT(0) | BIT(3) | BIT(6))
#define ZONE_B (BIT(1) | BIT(4) | BIT(7))

static void begin_t_000_11(uint64_t seed)
{
    prepare(seed, PROFILE_ADAPTIVE);
    p.settings.hosts = 9;
    p.settings.zones = 3;
    begin(&plain_habits);
    run(20 * S);
    mark();
}

/* Of all requests since the mark, the thousandths that |hosts| had. */
static uint32_t share_of(uint64_t hosts, const uint64_t *before)
{
    uint64_t all = 0, theirs = 0;

    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        uint64_t n = server(i)->arrivals - before[i];

        all += n;
        theirs += (hosts & BIT(i)) != 0 ? n : 0;
    }
    return (uint32_t)(1000 * theirs / (all == 0 ? 1 : all));
}

static void note_arrivals(uint64_t *out)
{
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        out[i] = server(i)->arrivals;
}

/* One zone has it: it gets less, nobody goes, and the cap is untouched. */
static void one_zone(void (*strike)(struct server *s))
{
    uint64_t before[RIG_HOSTS_MAX];

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin_t_000_11(seed);
        be_alike(ZONE_A, strike);
        run(15 * S);
        note_arrivals(before);
        run(15 * S);
        assert_true(was_said(SCOPE_ZONE));
        assert_int_equal(onlooker_verdict(&seen), SCOPE_ZONE);
        assert_true(was_logged("cluster.verdict", "zone zone-a"));
        assert_true(was_logged("cluster.verdict", "requests go to other zones"));
        assert_in_range(share_of(ZONE_A, before), 0, 200); /* of 333 */
        expect_only(0);
        assert_int_equal(outlier_stat(OUTLIER_STAT_ejections_enforced_total), 0);
        finish();
    }
}

static void t_000_11_a_lossy_zone_gets_less_and_none_of_its_hosts_goes(void **state)
{
    (void)state;
    one_zone(lossy);
}

static void t_000_11_the_same_of_a_slow_zone_and_of_one_that_fails(void **state)
{
    (void)state;
    one_zone(slow_3);
    one_zone(half_fail);
}

static void t_000_11_two_zones_and_no_host_goes(void **state)
{
    void (*const each[])(struct server * s) = {lossy, slow_3, half_fail};
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin_t_000_11(seed);
        be_alike(ZONE_A | ZONE_B, each[seed - 1]);
        run(30 * S);
        expect_only(0);
        assert_int_equal(outlier_stat(OUTLIER_STAT_ejections_enforced_total), 0);
        finish();
    }
}

static void t_000_11_one_bad_host_in_each_of_two_zones_are_two_nodes(void **state)
{
    void (*const each[])(struct server * s) = {slow_3, half_fail, half_fail};
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        p.settings.hosts = 9;
        p.settings.zones = 3;
        p.settings.cluster.outlier.max_ejection_percent = 30; /* 20 % of nine are one */
        begin(&plain_habits);
        run(20 * S);
        mark();
        be_alike(BIT(0) | BIT(4), each[seed - 1]);
        run(20 * S);
        assert_true(plane_out(&p, 0) && plane_out(&p, 4));
        assert_int_equal(onlooker_verdict(&seen), SCOPE_NODES);
        assert_false(was_said(SCOPE_ZONE));
        expect_only(BIT(0) | BIT(4));
        finish();
    }
}

/* --- T-000-12: v2 on some of ten hosts, all of them bad --- */

static void begin_t_000_12(uint64_t seed, uint64_t v2, void (*strike)(struct server *s))
{
    prepare(seed, PROFILE_ADAPTIVE);
    p.settings.versions = v2;
    begin(&plain_habits);
    run(20 * S);
    mark();
    be_alike(v2, strike);
}

static void
t_000_12_a_bad_version_on_three_hosts_is_to_be_rolled_back_and_spends_no_cap(void **state)
{
    void (*const each[])(struct server * s) = {slow_3, half_fail, half_fail};
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin_t_000_12(seed, BIT(2) | BIT(3) | BIT(4), each[seed - 1]);
        run(30 * S);
        assert_true(was_said(SCOPE_VERSION));
        assert_int_equal(onlooker_verdict(&seen), SCOPE_VERSION);
        assert_true(was_logged("cluster.verdict", "version v2"));
        assert_true(was_logged("cluster.verdict", "drain the version and roll it back"));
        expect_only(0);
        assert_int_equal(outlier_stat(OUTLIER_STAT_ejections_active), 0);
        assert_int_equal(outlier_stat(OUTLIER_STAT_ejections_enforced_total), 0);
        finish();
    }
}

static void t_000_12_a_bad_version_on_one_host_is_a_node(void **state)
{
    void (*const each[])(struct server * s) = {slow_3, half_fail, half_fail};
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin_t_000_12(seed, BIT(3), each[seed - 1]);
        run(15 * S);
        assert_true(plane_out(&p, 3));
        assert_true(was_said(SCOPE_NODE));
        assert_false(was_said(SCOPE_VERSION));
        expect_only(BIT(3));
        finish();
    }
}

/* --- T-000-13: a host is given more of the heavy requests --- */

#define HEAVY 10 /* times as much work */

/* By the answer's size, so that they are of class "large". */
static void t_000_13_a_host_with_60_percent_heavy_requests_stays(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        p.settings.route.large_body = 16 * 1024;
        begin(&plain_habits);
        for (uint32_t i = 0; i < p.settings.hosts; i++) {
            server(i)->mood.pace.heavy_permille = 200;
            server(i)->mood.pace.heavy = HEAVY;
            server(i)->mood.pace.heavy_bytes = 32 * 1024;
        }
        run(30 * S);
        mark();
        server(3)->mood.pace.heavy_permille = 600;
        run(60 * S);
        expect_only(0);
        finish();
    }
}

/* By a class that a route names: PUT, where a customer's header will do once routes know headers.
 */
static void heavy_puts(struct server *s, const struct wish *wish, const struct message_head *head,
                       struct answer_plan *plan)
{
    (void)s;
    (void)wish;
    plan->delay *= head->method_id == METHOD_PUT ? HEAVY : 1;
}

/* A worker that gives each host its turn; whose turn it is, of |n| requests, is known. */
static void t_000_13_the_same_by_a_class_that_a_route_names(void **state)
{
    (void)state;

    prepare(1, PROFILE_ADAPTIVE);
    p.settings.workers = 1;
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    p.settings.retry.policy.attempts = 0;
    p.settings.named_count = 1;
    p.settings.named[0] = (struct rig_named){.method = BYTES("PUT"), .class = BYTES("customer")};
    begin(NULL);
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        server(i)->decide = heavy_puts;
    for (uint32_t n = 0; n < 9000; n++) {
        bool skewed = n > 3000 && p.rig.ledger.count % 10 == 3;
        struct ask a = ASK_PLAIN;

        a.method = world_chance(&p.rig.world, skewed ? 600 : 200) ? METHOD_PUT : METHOD_GET;
        a.upload = a.method == METHOD_PUT ? FRAMING_LENGTH : FRAMING_NONE;
        plane_ask(&p, &a);
        run(10 * MS);
        if (n == 3000)
            mark();
    }
    expect_only(0);
    assert_int_equal(onlooker_cut(&seen, 999), 0);
    finish();
}

/* The answers of a host far away come later: no fault of its own. */
static void far_zone(uint32_t hosts)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        p.settings.hosts = hosts;
        p.settings.zones = 3;
        begin(&plain_habits);
        for (uint32_t i = 0; i < hosts; i++) {
            server(i)->mood.service = 2 * MS;
            server(i)->site->path.latency = 200 * NS_PER_US + (i % 3 == 1 ? 1 * MS : 0);
        }
        mark();
        run(60 * S);
        expect_only(0);
        assert_int_equal(onlooker_cut(&seen, 999), 0);
        finish();
    }
}

static void t_000_13_a_zone_that_is_2_ms_away_loses_no_host(void **state)
{
    (void)state;

    far_zone(9);  /* two peers in its zone: less how far it is */
    far_zone(12); /* three: compared with those */
}

/* --- T-000-14: it is us --- */

static void begin_t_000_14(uint64_t seed, uint32_t rate)
{
    const struct crowd_habits habits = {.rate = rate, .small = 200};

    prepare(seed, PROFILE_ADAPTIVE);
    begin(&habits);
    run(40 * S);
    mark();
}

static void our_own_link_loses_a_fifth(uint32_t rate)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin_t_000_14(seed, rate);
        be_alike(UINT64_MAX, lossy);
        net_site(&p.rig.net, &p.rig.address)->path.loss_permille = 200;
        run(40 * S);
        expect_only(0);
        assert_int_equal(onlooker_verdict(&seen), SCOPE_CALLER);
        assert_true(was_logged("cluster.verdict", "look at its own machine and network"));
        finish();
    }
}

static void t_000_14_our_own_link_loses_a_fifth_and_no_host_goes(void **state)
{
    (void)state;
    our_own_link_loses_a_fifth(100);
}

/* Each host has one request a second, and one in five seconds shows it. */
static void t_000_14_the_same_where_there_is_little_to_see_it_by(void **state)
{
    (void)state;
    our_own_link_loses_a_fifth(10);
}

static void t_000_14_a_worker_stopped_for_2_s_blames_no_host(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin_t_000_14(seed, 100);
        world_loop_hold(&p.rig.workers[seed % 2].loop, p.rig.world.now + 2 * S);
        run(20 * S);
        expect_only(0);
        assert_int_equal(onlooker_cut(&seen, 999), 0);
        assert_true(was_said(SCOPE_CALLER));
        assert_true(was_logged("cluster.verdict", "look at its own machine and network"));
        finish();
    }
}

static void t_000_14_all_workers_stopped_for_2_s_are_the_caller_and_blame_no_host(void **state)
{
    (void)state;

    begin_t_000_14(1, 100);
    for (uint32_t i = 0; i < p.settings.workers; i++)
        world_loop_hold(&p.rig.workers[i].loop, p.rig.world.now + 2 * S);
    run(20 * S);
    expect_only(0);
    assert_int_equal(onlooker_cut(&seen, 999), 0);
    assert_true(was_said(SCOPE_CALLER));
    assert_true(was_logged("cluster.verdict", "look at its own machine and network"));
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_11_a_lossy_zone_gets_less_and_none_of_its_hosts_goes),
        cmocka_unit_test(t_000_11_the_same_of_a_slow_zone_and_of_one_that_fails),
        cmocka_unit_test(t_000_11_two_zones_and_no_host_goes),
        cmocka_unit_test(t_000_11_one_bad_host_in_each_of_two_zones_are_two_nodes),
        cmocka_unit_test(
            t_000_12_a_bad_version_on_three_hosts_is_to_be_rolled_back_and_spends_no_cap),
        cmocka_unit_test(t_000_12_a_bad_version_on_one_host_is_a_node),
        cmocka_unit_test(t_000_13_a_host_with_60_percent_heavy_requests_stays),
        cmocka_unit_test(t_000_13_the_same_by_a_class_that_a_route_names),
        cmocka_unit_test(t_000_13_a_zone_that_is_2_ms_away_loses_no_host),
        cmocka_unit_test(t_000_14_our_own_link_loses_a_fifth_and_no_host_goes),
        cmocka_unit_test(t_000_14_the_same_where_there_is_little_to_see_it_by),
        cmocka_unit_test(t_000_14_a_worker_stopped_for_2_s_blames_no_host),
        cmocka_unit_test(t_000_14_all_workers_stopped_for_2_s_are_the_caller_and_blame_no_host),
    };

    return cmocka_run_group_tests_name("sim/scenarios_scope", tests, NULL, NULL);
}
