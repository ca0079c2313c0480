/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of reference/scenarios.md about guards, by their names, through the whole data
 * plane: T-000-3 (can the others carry the load?) and T-000-4 (few are healthy).
 */
#include "sim/detection_plane.h"

/* --- T-000-3: ten hosts, a hundred requests a second each; two are five times as slow --- */

#define BAD_1 3
#define BAD_2 7

/* |rate| requests a second, evenly. */
static void steady(uint32_t rate, span_ns length)
{
    mono_ns begun = p.rig.world.now;

    for (uint64_t n = 1; p.rig.world.now < begun + length; n++) {
        plane_get(&p);
        run(begun + n * S / rate - p.rig.world.now);
    }
}

/* Four workers at 40 ms: a hundred a second, and each host says how much of it is used. */
static void begin_t_000_3(void)
{
    prepare(1, PROFILE_ADAPTIVE);
    p.settings.workers = 1;
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    p.settings.retry.policy.attempts = 0;
    p.settings.route.timeout = p.settings.route.per_try_timeout = 15 * S; /* slow is no failure */
    begin(NULL);
    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        server(i)->mood.service = 40 * MS;
        server(i)->mood.pace.sigma = 0.1;
        server(i)->capacity = 100;
        slots_init(&server(i)->slots, 4, 1000);
    }
}

/* How many of the two go. */
static uint32_t go_at(uint32_t rate)
{
    begin_t_000_3();
    steady(rate, 20 * S);
    mark();
    server(BAD_1)->mood.pace.slow = server(BAD_2)->mood.pace.slow = 5;
    steady(rate, 20 * S);
    expect_only(BIT(BAD_1) | BIT(BAD_2));
    return plane_out(&p, BAD_1) + plane_out(&p, BAD_2);
}

/* By the hosts' own words, each of its latest requests. */
static void expect_load(const struct decision *d, double load)
{
    assert_non_null(d);
    assert_true(d->load > load - 0.003 && d->load < load + 0.003);
}

static void expect_refused(uint32_t host, double load)
{
    const struct decision *d = refused(host, GUARD_CAPACITY);

    expect_load(d, load);
    expect_words(words(d), "guard capacity");
    assert_int_equal(decided(host, DECISION_EJECTED), 0);
    assert_int_equal(life(host)->state, LIFE_SUSPECT);
    assert_in_range(seen.hosts[host].least_share, 0, 500); /* its weight is cut instead, at once */
    assert_in_range(cut_after(host), 0, 2 * S);
}

static void t_000_3_at_600_rps_both_bad_hosts_go_with_75_percent_left_to_the_others(void **state)
{
    const struct decision *one, *two;
    (void)state;

    assert_int_equal(go_at(600), 2);
    one = decision(BAD_1, DECISION_EJECTED, 0);
    two = decision(BAD_2, DECISION_EJECTED, 0);
    assert_non_null(one);
    assert_non_null(two);
    expect_load(two->load > one->load ? one : two, 0.667);
    expect_load(two->load > one->load ? two : one, 0.75);
    assert_true(one->load <= 0.75 && two->load <= 0.75);
    assert_in_range(out_after(BAD_1), 0, 2 * S);
    assert_in_range(out_after(BAD_2), 0, 2 * S);
    assert_int_equal(score(0, 15 * S).asked, score(0, 15 * S).answered);
    finish();
}

static void t_000_3_at_610_rps_one_goes_and_the_guard_capacity_keeps_the_other(void **state)
{
    uint32_t first, second;
    (void)state;

    assert_int_equal(go_at(610), 1);
    first = plane_out(&p, BAD_1) ? BAD_1 : BAD_2;
    second = BAD_1 + BAD_2 - first;
    expect_load(decision(first, DECISION_EJECTED, 0), 0.678);
    expect_refused(second, 0.7625);
    finish();
}

static void t_000_3_at_680_rps_none_goes_and_their_weight_is_cut(void **state)
{
    (void)state;

    assert_int_equal(go_at(680), 0);
    expect_refused(BAD_1, 0.756);
    expect_refused(BAD_2, 0.756);
    finish();
}

/* --- T-000-4: few are healthy; failures alone, the capacity is ample, cap 80 % --- */

static void begin_t_000_4(uint32_t hosts, enum detection_profile profile)
{
    prepare(1, profile);
    p.settings.hosts = hosts;
    p.settings.cluster.outlier.max_ejection_percent = 80;
    p.settings.cluster.detection.detect.latency = false;
    p.settings.cluster.detection.rules_act = profile == PROFILE_RULES;
    p.settings.retry.policy.attempts = 0;
    begin(&plain_habits);
    run(15 * S);
    mark();
}

static void half_fail(uint32_t host)
{
    server(host)->mood.error_permille = 500;
    run(30 * S);
}

static void refuses_all(uint32_t host, span_ns length)
{
    server_kill(server(host), DEATH_BY_RESET);
    run(length);
}

static void be_well(uint32_t host)
{
    server(host)->mood = server(host)->usual_mood;
    assert_true(server_listen(server(host)));
    run(40 * S);
    assert_int_equal(life(host)->state, LIFE_HEALTHY);
}

static void expect_stays(uint32_t host, enum decision_guard g)
{
    assert_false(plane_out(&p, host));
    assert_non_null(refused(host, g));
    expect_words(words(refused(host, g)), decision_guard_name(g));
    assert_int_equal(seen.hosts[host].outs, 0);
}

static void first_go(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        half_fail(i);
        assert_true(plane_out(&p, i));
    }
}

static void of_six(enum detection_profile profile)
{
    begin_t_000_4(6, profile);
    first_go(3);
    half_fail(3);
    expect_stays(3, GUARD_FEW_HEALTHY);
    expect_words(why(3), "few_healthy HOLDS: 3 hosts serve");
    be_well(3);
    refuses_all(3, 10 * S); /* total evidence, and no other one has gone on it */
    assert_true(plane_out(&p, 3));
    refuses_all(4, S);          /* the same of the next one: only one at a time */
    expect_stays(4, GUARD_CAP); /* is asked first: five of six are more than 80 % */
    expect_words(why(4), "few_healthy HOLDS");
    expect_words(why(4), "and one is out already");
    expect_only(0xf);
    finish();
}

static void t_000_4_of_six_three_go_and_a_fourth_only_on_total_evidence(void **state)
{
    (void)state;

    of_six(PROFILE_ADAPTIVE);
    of_six(PROFILE_STARTER);
    of_six(PROFILE_RULES);
}

static void t_000_4_the_last_host_never_goes(void **state)
{
    char answer[256];
    (void)state;

    begin_t_000_4(2, PROFILE_ADAPTIVE);
    refuses_all(0, 10 * S);
    assert_true(plane_out(&p, 0));
    refuses_all(1, 30 * S);
    assert_false(plane_out(&p, 1));
    expect_words(why(1), "last_host HOLDS: 1 host serves");
    assert_int_equal(plane_order(&p, HOST_DEED_EJECT, 1, answer, sizeof(answer)),
                     HOST_ANSWER_REFUSED);
    expect_words(answer, "because of last_host");
    expect_only(BIT(0));
    finish();
}

static void t_000_4_of_three_one_stays_at_50_percent_and_goes_when_it_refuses_all(void **state)
{
    (void)state;

    begin_t_000_4(3, PROFILE_ADAPTIVE);
    half_fail(1);
    expect_stays(1, GUARD_FEW_HEALTHY);
    be_well(1);
    refuses_all(1, 5 * S);
    assert_true(plane_out(&p, 1));
    expect_only(BIT(1));
    finish();
}

static void t_000_4_of_ten_seven_go_and_the_eighth_is_refused(void **state)
{
    (void)state;

    begin_t_000_4(10, PROFILE_ADAPTIVE);
    first_go(7);
    half_fail(7);
    expect_stays(7, GUARD_FEW_HEALTHY);
    expect_only(0x7f);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_3_at_600_rps_both_bad_hosts_go_with_75_percent_left_to_the_others),
        cmocka_unit_test(t_000_3_at_610_rps_one_goes_and_the_guard_capacity_keeps_the_other),
        cmocka_unit_test(t_000_3_at_680_rps_none_goes_and_their_weight_is_cut),
        cmocka_unit_test(t_000_4_of_six_three_go_and_a_fourth_only_on_total_evidence),
        cmocka_unit_test(t_000_4_the_last_host_never_goes),
        cmocka_unit_test(t_000_4_of_three_one_stays_at_50_percent_and_goes_when_it_refuses_all),
        cmocka_unit_test(t_000_4_of_ten_seven_go_and_the_eighth_is_refused),
    };

    return cmocka_run_group_tests_name("sim/scenarios_guards", tests, NULL, NULL);
}
