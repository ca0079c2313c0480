/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outlier detection through the whole data plane, in virtual time: the facts of issue 4 that people
 * get wrong, T-004-4 to T-004-6, the differences from Envoy, the event log.
 */
#include "sim/outlier_plane.h"

/* --- facts, and the runs of T-004-4 --- */

static const struct {
    const char *name;
    bool split, only_5xx, refused;
    uint32_t statuses[8];
    uint32_t count;
    uint32_t out_after; /* failures; 0: it stays in */
    enum outlier_trigger by;
    uint64_t gateway_detected;
} runs[] = {
    {"500 x 7",
     false,
     false,
     false,
     {500, 500, 500, 500, 500, 500, 500},
     7,
     7,
     OUTLIER_CONSECUTIVE_5XX,
     0},
    {"500 x 6, 200",
     false,
     false,
     false,
     {500, 500, 500, 500, 500, 500, 200},
     7,
     0,
     OUTLIER_NONE,
     0},
    {"503 x 5",
     false,
     false,
     false,
     {503, 503, 503, 503, 503},
     5,
     5,
     OUTLIER_CONSECUTIVE_GATEWAY,
     1},
    {"503 x 4, 500, 503 x 2",
     false,
     false,
     false,
     {503, 503, 503, 503, 500, 503, 503},
     7,
     7,
     OUTLIER_CONSECUTIVE_5XX,
     0},
    {"refused x 5", false, false, true, {0}, 0, 5, OUTLIER_CONSECUTIVE_GATEWAY, 1},
    {"refused x 7, 5xx alone", false, true, true, {0}, 0, 7, OUTLIER_CONSECUTIVE_5XX, 0},
    {"refused x 5, split", true, false, true, {0}, 0, 5, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN, 0},
};

static void T_004_4_runs_one_by_one(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        uint32_t failures;

        settings(2, 50);
        p.settings.cluster.outlier.split = runs[i].split;
        if (runs[i].only_5xx)
            p.settings.cluster.outlier.consecutive_gateway = 0;
        say(runs[i].statuses, runs[i].count);
        go();
        if (runs[i].refused)
            server_refuse(&p.rig.servers[0]);
        failures = until_out(10);
        if (plane_out(&p, 0) != (runs[i].out_after > 0) ||
            (runs[i].out_after > 0 &&
             (failures != runs[i].out_after || host(0)->last_trigger != (uint32_t)runs[i].by)))
            fail_msg("%s: out %d after %u by %s", runs[i].name, plane_out(&p, 0), failures,
                     outlier_trigger_text((enum outlier_trigger)host(0)->last_trigger));
        assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_gateway_failure),
                         runs[i].gateway_detected);
        plane_run(&p, S);
        plane_end(&p);
    }
}

/* What the proxy itself refuses is no evidence, a hundred times over. */
static void T_004_4_overflow_ejects_nobody(void **state)
{
    const struct ask ask = ASK_PLAIN;
    (void)state;

    settings(2, 50);
    p.settings.cluster.limits.max_requests = 1;
    go();
    p.rig.servers[0].mood.service = p.rig.servers[1].mood.service = 500 * NS_PER_MS;
    for (uint32_t i = 0; i < 130; i++) {
        plane_ask(&p, &ask);
        plane_run(&p, 10 * NS_PER_MS);
    }
    plane_run(&p, 5 * S);
    assert_true(plane_count(&p, CLUSTER_upstream_rq_active_overflow) >= 100);
    assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_5xx), 0);
    assert_int_equal(p.laws.ejections, 0);
    plane_end(&p);
}

static void seven_500_in_a_row_eject_within_one_turn(void **state)
{
    uint64_t id;
    (void)state;

    settings(2, 50);
    say_often(500, 50);
    go();
    for (uint32_t i = 0; i < 13; i++) {
        id = plane_get(&p);
        plane_run(&p, 100 * NS_PER_MS);
    }
    assert_int_equal(script.next, 7);
    plane_expect(&p, id, 500);
    /* Before the client has the answer. */
    assert_in_range(host(0)->ejected_at, plane_fact(&p, id)->begun, plane_fact(&p, id)->ended);
    plane_traffic(&p, 20, 10 * NS_PER_MS);
    plane_run(&p, S);
    assert_int_equal(script.next, 7); /* not one more */
    plane_end(&p);
}

/* --- T-004-5 --- */

static void T_004_5_five_minutes_never_grow(void **state)
{
    (void)state;

    settings(2, 50);
    go();
    for (uint32_t n = 0; n < 3; n++)
        assert_in_range(out_for(7), 300 * S, 330 * S + 100 * NS_PER_MS);
    plane_end(&p);
}

static void T_004_5_thirty_seconds_grow_to_the_sweep_and_quiet_sweeps_take_it_off(void **state)
{
    (void)state;

    settings(2, 50);
    p.settings.cluster.outlier.base_ejection = 30 * S;
    go();
    for (uint32_t n = 1; n <= 3; n++)
        assert_in_range(out_for(7), n * 30 * S, (n + 1) * 30 * S + 100 * NS_PER_MS);
    assert_int_equal(host(0)->judged.multiplier, 3);
    plane_run(&p, 65 * S); /* two quiet sweeps */
    assert_int_equal(host(0)->judged.multiplier, 1);
    assert_in_range(out_for(7), 60 * S, 90 * S + 100 * NS_PER_MS);
    plane_end(&p);
}

static void a_base_of_two_seconds_gives_two_four_six(void **state)
{
    (void)state;

    settings(2, 50);
    p.settings.cluster.outlier.base_ejection = 2 * S;
    p.settings.cluster.outlier.interval = 250 * NS_PER_MS;
    go();
    p.rig.servers[0].mood.error_permille = 1000; /* no quiet sweep between */
    p.rig.servers[0].mood.error_status = 500;
    for (uint32_t n = 1; n <= 3; n++) {
        mono_ns since;

        while (!plane_out(&p, 0)) {
            plane_get(&p);
            plane_run(&p, 5 * NS_PER_MS);
        }
        since = host(0)->ejected_at;
        assert_int_equal(host(0)->eject_until - since, n * 2 * S);
        while (plane_out(&p, 0))
            plane_run(&p, 10 * NS_PER_MS);
        assert_in_range(p.rig.world.now - since, n * 2 * S, n * 2 * S + 300 * NS_PER_MS);
    }
    plane_run(&p, S);
    plane_end(&p);
}

static void T_004_5_four_failing_hosts_at_fifty_percent_lose_two(void **state)
{
    (void)state;

    settings(4, 50);
    go();
    p.rig.servers[0].decide = NULL;
    for (uint32_t i = 0; i < 4; i++) {
        p.rig.servers[i].mood.error_permille = 1000;
        p.rig.servers[i].mood.error_status = 500;
    }
    plane_traffic(&p, 100, 50 * NS_PER_MS);
    plane_run(&p, S);
    assert_int_equal(p.laws.ejections, 2);
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 2);
    assert_true(stat(OUTLIER_STAT_ejections_overflow) > 0);
    assert_int_equal(stat(OUTLIER_STAT_ejections_enforced_total), 2);
    plane_end(&p);
}

/* --- T-004-6: two pods answer 500 for two seconds, then 200; 50 requests a second --- */

static uint32_t most_out;

static void two_pods(void)
{
    go();
    p.rig.servers[0].decide = NULL;
    most_out = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        for (uint32_t h = 0; h < 2; h++) {
            p.rig.servers[h].mood.error_permille = i < 100 ? 1000 : 0;
            p.rig.servers[h].mood.error_status = 500;
        }
        plane_get(&p);
        plane_run(&p, 20 * NS_PER_MS);
        if (plane_out(&p, 0) + plane_out(&p, 1) > (int)most_out)
            most_out = (uint32_t)(plane_out(&p, 0) + plane_out(&p, 1));
    }
    plane_run(&p, S);
}

static void numbers_of_t_004_6(void)
{
    p.settings.cluster.outlier.interval = S;
    p.settings.cluster.outlier.base_ejection = 10 * S;
}

static void T_004_6_exact_with_a_cap_of_100_nobody_is_left_though_all_are_well(void **state)
{
    (void)state;

    settings(2, 100);
    numbers_of_t_004_6();
    two_pods();
    assert_int_equal(most_out, 2);
    /* Out in the first second, well after two, and 503 UH until the sweep after ten. */
    assert_in_range(plane_count(&p, CLUSTER_upstream_cx_none_healthy), 8 * 50, 12 * 50);
    assert_int_equal(p.laws.ejections, 2);
    plane_end(&p);
}

static void T_004_6_with_cap_and_min_health_of_50_one_is_out_and_nobody_sees_uh(void **state)
{
    (void)state;

    settings(2, 50);
    p.settings.cluster.panic.threshold = 50;
    numbers_of_t_004_6();
    two_pods();
    assert_int_equal(most_out, 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_none_healthy), 0);
    assert_int_equal(plane_count(&p, CLUSTER_lb_healthy_panic), 0);
    plane_end(&p);
}

static void T_004_6_cap_100_with_min_health_50_is_panic_and_nobody_sees_uh(void **state)
{
    (void)state;

    settings(2, 100);
    p.settings.cluster.panic.threshold = 50;
    numbers_of_t_004_6();
    two_pods();
    assert_int_equal(most_out, 2);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_none_healthy), 0);
    assert_true(plane_count(&p, CLUSTER_lb_healthy_panic) > 300);
    plane_end(&p);
}

static void T_004_6_ours_never_empties_the_cluster(void **state)
{
    (void)state;

    settings(2, 100);
    p.settings.cluster.differences = DIFFERENCES_FIREBREAK;
    numbers_of_t_004_6();
    two_pods();
    assert_true(most_out <= 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_none_healthy), 0);
    plane_end(&p);
}

/* --- differences --- */

/* Host 0 accepts and never answers; one request after another. */
static bool silent_host_goes(difference_set envoy)
{
    bool out;

    defaults(2, 100);
    p.settings.cluster.differences = envoy;
    p.settings.cluster.outlier.split = true;
    p.settings.route.timeout = 200 * NS_PER_MS;
    go();
    p.rig.servers[0].decide = NULL;
    p.rig.servers[0].mood.hang_permille = 1000;
    plane_traffic(&p, 40, 500 * NS_PER_MS);
    plane_run(&p, S);
    out = p.laws.ejections > 0;
    plane_end(&p);
    return out;
}

static void a_host_that_accepts_and_never_answers_escapes_as_envoy_only(void **state)
{
    const difference_set few = (difference_set)1 << DIFFERENCE_FEW_HEALTHY_EJECTED;
    (void)state;

    assert_true(silent_host_goes(few));
    assert_false(silent_host_goes(few | (difference_set)1 << DIFFERENCE_CONNECT_ENDS_LOCAL_RUN));
}

/* Requests that reach host 0 between its second ejection and the end of a second, 20 ms apart. */
static uint64_t picked_after_reejection(difference_set envoy)
{
    uint64_t before, after;

    defaults(2, 50);
    p.settings.cluster.differences =
        DIFFERENCES_FIREBREAK | (difference_set)1 << DIFFERENCE_FEW_HEALTHY_EJECTED | envoy;
    p.settings.cluster.outlier.interval = S;
    p.settings.cluster.outlier.base_ejection = 2 * S;
    go();
    p.rig.servers[0].decide = NULL;
    p.rig.servers[0].mood.error_permille = 1000;
    p.rig.servers[0].mood.error_status = 500;
    while (stat(OUTLIER_STAT_ejections_enforced_total) < 2) {
        plane_get(&p);
        plane_run(&p, 20 * NS_PER_MS);
    }
    before = arrivals(0);
    plane_traffic(&p, 75, 20 * NS_PER_MS);
    plane_run(&p, 100 * NS_PER_MS);
    after = arrivals(0);
    assert_true(plane_out(&p, 0));
    plane_run(&p, S);
    plane_end(&p);
    return after - before;
}

static void a_reejected_host_is_picked_for_another_second_as_envoy_only(void **state)
{
    (void)state;

    assert_int_equal(picked_after_reejection(0), 0);
    assert_int_equal(picked_after_reejection((difference_set)1 << DIFFERENCE_EJECTED_STILL_PICKED),
                     0);
    assert_in_range(picked_after_reejection((difference_set)1 << DIFFERENCE_REEJECTION_SLOWER), 15,
                    26);
}

/* Hosts 0 and 1 of ten fail together: how many requests reach them after both were ejected. */
static uint64_t picked_after_two(difference_set envoy)
{
    uint64_t before, after;

    defaults(10, 50);
    p.settings.cluster.differences = envoy;
    go();
    p.rig.servers[0].decide = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        p.rig.servers[i].mood.error_permille = 1000;
        p.rig.servers[i].mood.error_status = 500;
    }
    while (stat(OUTLIER_STAT_ejections_enforced_total) < 2) {
        plane_get(&p);
        plane_run(&p, 10 * NS_PER_MS);
    }
    before = arrivals(0) + arrivals(1);
    plane_traffic(&p, 150, 10 * NS_PER_MS);
    after = arrivals(0) + arrivals(1);
    assert_true(plane_out(&p, 0) && plane_out(&p, 1));
    plane_run(&p, S);
    plane_end(&p);
    return after - before;
}

static void hosts_ejected_together_are_still_picked_as_envoy_only(void **state)
{
    (void)state;

    assert_int_equal(picked_after_two(0), 0);
    assert_int_equal(picked_after_two((difference_set)1 << DIFFERENCE_REEJECTION_SLOWER), 0);
    assert_in_range(picked_after_two((difference_set)1 << DIFFERENCE_EJECTED_STILL_PICKED), 8, 14);
}

/* --- the event log --- */

static uint32_t lines_with(const char *what)
{
    struct bytes all = sim_files_content(&p.rig.files, "events");
    uint32_t n = 0;

    for (size_t i = 0; i + strlen(what) <= all.len; i++)
        n += memcmp(all.data + i, what, strlen(what)) == 0;
    return n;
}

static void ejections_and_returns_are_in_the_event_log(void **state)
{
    (void)state;

    settings(2, 50);
    p.settings.event_log = BYTES("events");
    p.settings.cluster.outlier.base_ejection = 30 * S;
    go();
    out_for(7);
    out_for(7);
    assert_int_equal(lines_with("\n"), 4);
    assert_int_equal(lines_with("\"action\":\"EJECT\",\"num_ejections\":"), 2);
    assert_int_equal(lines_with("\"action\":\"UNEJECT\",\"num_ejections\":2,\"enforced\":false}\n"),
                     1);
    assert_int_equal(lines_with("\"cluster_name\":\"backend\",\"upstream_url\":\"10.0.0.1:8000\""),
                     4);
    assert_int_equal(lines_with("\"enforced\":true,\"eject_consecutive_event\":{}}\n"), 2);
    assert_int_equal(lines_with("{\"type\":\"CONSECUTIVE_5XX\",\"timestamp\":\""), 4);
    assert_int_equal(lines_with("\"secs_since_last_action\":\""), 3); /* not of the first */
    plane_end(&p);
}

static void a_full_disk_hurts_nobody(void **state)
{
    (void)state;

    settings(2, 50);
    p.settings.event_log = BYTES("events");
    p.settings.cluster.outlier.base_ejection = 30 * S;
    go();
    p.rig.files.space = 100; /* not even one line */
    assert_in_range(out_for(7), 30 * S, 61 * S);
    assert_int_equal(sim_log_count(&p.rig.log, "event_log.trouble"), 1);
    p.rig.files.space = UINT64_C(1) << 30;
    out_for(7);
    assert_int_equal(lines_with("\n"), 4); /* those that had to wait too, and whole */
    assert_int_equal(lines_with("{\"type\":"), 4);
    assert_int_equal(sim_log_count(&p.rig.log, "event_log.recovered"), 1);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(T_004_4_runs_one_by_one),
        cmocka_unit_test(T_004_4_overflow_ejects_nobody),
        cmocka_unit_test(seven_500_in_a_row_eject_within_one_turn),
        cmocka_unit_test(T_004_5_five_minutes_never_grow),
        cmocka_unit_test(T_004_5_thirty_seconds_grow_to_the_sweep_and_quiet_sweeps_take_it_off),
        cmocka_unit_test(a_base_of_two_seconds_gives_two_four_six),
        cmocka_unit_test(T_004_5_four_failing_hosts_at_fifty_percent_lose_two),
        cmocka_unit_test(T_004_6_exact_with_a_cap_of_100_nobody_is_left_though_all_are_well),
        cmocka_unit_test(T_004_6_with_cap_and_min_health_of_50_one_is_out_and_nobody_sees_uh),
        cmocka_unit_test(T_004_6_cap_100_with_min_health_50_is_panic_and_nobody_sees_uh),
        cmocka_unit_test(T_004_6_ours_never_empties_the_cluster),
        cmocka_unit_test(a_host_that_accepts_and_never_answers_escapes_as_envoy_only),
        cmocka_unit_test(a_reejected_host_is_picked_for_another_second_as_envoy_only),
        cmocka_unit_test(hosts_ejected_together_are_still_picked_as_envoy_only),
        cmocka_unit_test(ejections_and_returns_are_in_the_event_log),
        cmocka_unit_test(a_full_disk_hurts_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
