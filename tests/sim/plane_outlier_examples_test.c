/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worked examples of envoy-semantics.md 12 through the whole data plane, in virtual time. O8
 * and O9 speak gRPC: on the pure policy only (tests/policy/outlier_envoy_test.c).
 */
#include "sim/outlier_plane.h"

/* --- the worked examples --- */

static void fail_runs(uint32_t status, uint32_t times)
{
    say_often(status, times);
    while (script.next < script.count) {
        plane_get(&p);
        plane_run(&p, 20 * NS_PER_MS);
    }
    plane_run(&p, 20 * NS_PER_MS);
}

static void o1_three_hosts_with_the_defaults_lose_nobody(void **state)
{
    (void)state;

    defaults(3, 10);
    go();
    fail_runs(503, 5);
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_5xx), 1);
    assert_int_equal(stat(OUTLIER_STAT_ejections_overflow), 2); /* the gateway run's, which is */
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 0);   /* refused before the dice */
    fail_runs(503, 4);
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_5xx), 1);
    plane_run(&p, S);
    plane_end(&p);
}

/* O2 and O3: half of three is one. */
static void o2_o3_at_fifty_percent_the_first_of_three_goes_and_the_second_stays(void **state)
{
    (void)state;

    defaults(3, 50);
    go();
    fail_runs(503, 5);
    assert_true(plane_out(&p, 0));
    assert_int_equal(stat(OUTLIER_STAT_ejections_overflow), 0);
    p.rig.servers[1].decide = decide;
    fail_runs(500, 5);
    assert_false(plane_out(&p, 1));
    assert_int_equal(stat(OUTLIER_STAT_ejections_overflow), 1);
    plane_run(&p, S);
    plane_end(&p);
}

static void o4_the_only_host(uint32_t percent, bool always, uint32_t panic)
{
    uint64_t id;

    defaults(1, percent);
    p.settings.cluster.outlier.always_eject_one = always;
    p.settings.cluster.panic.threshold = panic;
    go();
    fail_runs(500, 5);
    assert_true(plane_out(&p, 0));
    id = plane_get(&p);
    plane_run(&p, S);
    plane_expect(&p, id, panic == 0 ? 503 : 200);
    if (panic == 0)
        assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UH);
    plane_end(&p);
}

static void o4_the_only_host_goes_and_panic_decides_what_then(void **state)
{
    (void)state;

    o4_the_only_host(100, false, 0);
    o4_the_only_host(10, true, 0);
    o4_the_only_host(100, false, 50);
}

static void o5_o6_what_ends_a_run(void **state)
{
    static const uint32_t a_404[] = {500, 500, 500, 500, 404, 500, 500, 500, 500};
    static const uint32_t a_500[] = {503, 503, 500, 503, 503};
    (void)state;

    defaults(2, 100);
    say(a_404, 9);
    go();
    plane_traffic(&p, 20, 20 * NS_PER_MS);
    plane_run(&p, S);
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_5xx), 0);
    plane_end(&p);
    defaults(2, 100);
    p.settings.cluster.outlier.consecutive_gateway = 3;
    p.settings.cluster.outlier.enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 100;
    say(a_500, 5);
    go();
    assert_int_equal(until_out(10), 5);
    assert_int_equal(host(0)->last_trigger, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_gateway_failure), 0);
    plane_end(&p);
}

static void o7_five_refused_connects_are_five_503(void **state)
{
    (void)state;

    defaults(2, 100);
    go();
    server_refuse(&p.rig.servers[0]);
    assert_int_equal(until_out(10), 5);
    assert_int_equal(host(0)->last_trigger, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_gateway_failure), 1);
    assert_int_equal(stat(OUTLIER_STAT_ejections_enforced_consecutive_gateway_failure), 0);
    plane_run(&p, S);
    plane_end(&p);
}

static void o10_out_three_seconds_after_a_sweep_back_at_the_fourth(void **state)
{
    mono_ns begun;
    (void)state;

    defaults(2, 100);
    go();
    begun = p.rig.world.now;
    plane_run(&p, 12800 * NS_PER_MS);
    fail_runs(500, 5);
    assert_in_range(host(0)->ejected_at - begun, 12900 * NS_PER_MS, 13100 * NS_PER_MS);
    while (plane_out(&p, 0))
        plane_run(&p, 10 * NS_PER_MS);
    assert_in_range(p.rig.world.now - begun, 50 * S, 50 * S + 100 * NS_PER_MS);
    plane_end(&p);
}

/* Each of five hosts gets |requests| before the first sweep; host 0 fails |bad| of its own. */
static void five_with_rates(uint32_t requests, uint32_t bad, uint32_t second_bad)
{
    static uint32_t mixed[600];

    p.settings.cluster.outlier.consecutive_5xx = 0;
    p.settings.cluster.outlier.consecutive_gateway = 0;
    go();
    for (uint32_t i = 0; i < requests; i++)
        mixed[i] = i < bad ? 500 : 200;
    say(mixed, requests);
    for (uint32_t i = 0; i < requests * 5; i++) {
        p.rig.servers[1].mood.error_permille = i / 5 < second_bad ? 1000 : 0;
        p.rig.servers[1].mood.error_status = 500;
        plane_get(&p);
        plane_run(&p, 12 * NS_PER_MS);
    }
    p.rig.servers[1].mood.error_permille = 0;
    plane_run(&p, 8 * S); /* one sweep */
}

static void o11_to_o13_success_rates(void **state)
{
    static const struct {
        uint32_t bad, second_bad, out;
        double threshold;
    } rows[] = {{50, 0, 1, 52}, {40, 0, 1, 61.6}, {100, 100, 0, -33.0806}};
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        double threshold;

        defaults(5, 20);
        p.settings.cluster.outlier.enforcing[OUTLIER_SUCCESS_RATE] = 100;
        five_with_rates(100, rows[i].bad, rows[i].second_bad);
        threshold = rig_state(&p.rig)->rates[OUTLIER_EXTERNAL].threshold;
        assert_true(threshold > rows[i].threshold - 0.001 && threshold < rows[i].threshold + 0.001);
        assert_int_equal(plane_out(&p, 0), rows[i].out);
        assert_int_equal(stat(OUTLIER_STAT_ejections_enforced_success_rate), rows[i].out);
        assert_int_equal(stat(OUTLIER_STAT_ejections_success_rate), rows[i].out);
        assert_int_equal(stat(OUTLIER_STAT_ejections_total), rows[i].out);
        plane_end(&p);
    }
}

static void o14_failure_percentages(void **state)
{
    (void)state;

    defaults(5, 100);
    p.settings.cluster.outlier.enforcing[OUTLIER_FAILURE_PERCENTAGE] = 100;
    five_with_rates(60, 51, 50);
    assert_true(plane_out(&p, 0));
    assert_false(plane_out(&p, 1));
    assert_int_equal(host(0)->last_trigger, OUTLIER_FAILURE_PERCENTAGE);
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_failure_percentage), 1);
    assert_true(host(0)->success_rate[OUTLIER_EXTERNAL] == 15);
    plane_end(&p);
}

/* Each within an interval of the return. */
static void o15_four_ejections_soon_after_one_another(void **state)
{
    (void)state;

    defaults(2, 100);
    go();
    for (uint32_t n = 1; n <= 4; n++)
        assert_in_range(out_for(5), n * 30 * S, n * 30 * S + 10 * S + 100 * NS_PER_MS);
    plane_end(&p);
}

/* Is |text| in the event log? */
static bool written(const char *text)
{
    struct bytes all = sim_files_content(&p.rig.files, "events");
    size_t n = strlen(text);

    for (size_t at = 0; at + n <= all.len; at++)
        if (memcmp(all.data + at, text, n) == 0)
            return true;
    return false;
}

static void o16_o17_split_answers_and_enforcing_of_zero(void **state)
{
    (void)state;

    defaults(2, 100);
    p.settings.cluster.outlier.split = true;
    go();
    fail_runs(503, 5);
    assert_true(plane_out(&p, 0));
    assert_int_equal(host(0)->last_trigger, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(host(0)->runs.run_local, 0);
    plane_run(&p, S);
    plane_end(&p);
    defaults(2, 100);
    p.settings.cluster.outlier.enforcing[OUTLIER_CONSECUTIVE_5XX] = 0;
    p.settings.event_log = BYTES("events");
    go();
    fail_runs(500, 5);
    assert_false(plane_out(&p, 0));
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_5xx), 1);
    assert_int_equal(stat(OUTLIER_STAT_ejections_enforced_consecutive_5xx), 0);
    assert_int_equal(stat(OUTLIER_STAT_ejections_total), 1); /* Envoy's: it passed the cap */
    assert_true(written("\"enforced\":false"));
    plane_run(&p, S);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(o1_three_hosts_with_the_defaults_lose_nobody),
        cmocka_unit_test(o2_o3_at_fifty_percent_the_first_of_three_goes_and_the_second_stays),
        cmocka_unit_test(o4_the_only_host_goes_and_panic_decides_what_then),
        cmocka_unit_test(o5_o6_what_ends_a_run),
        cmocka_unit_test(o7_five_refused_connects_are_five_503),
        cmocka_unit_test(o10_out_three_seconds_after_a_sweep_back_at_the_fourth),
        cmocka_unit_test(o11_to_o13_success_rates),
        cmocka_unit_test(o14_failure_percentages),
        cmocka_unit_test(o15_four_ejections_soon_after_one_another),
        cmocka_unit_test(o16_o17_split_answers_and_enforcing_of_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
