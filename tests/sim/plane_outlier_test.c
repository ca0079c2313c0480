/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outlier detection through the whole data plane, in virtual time: the facts of issue 4 that people
 * get wrong, the worked examples of envoy-semantics.md 12 (O8 and O9 speak gRPC: on the pure policy
 * only), and T-004-4 to T-004-6.
 */
#include "sim/plane.h"

#include "model/flags.h"
#include "model/host_state.h"

#define S NS_PER_S

static struct plane p;

/* What host 0 answers, one after another; then 200. The others answer 200. */
static struct {
    uint32_t at[600];
    uint32_t count;
    uint32_t next;
} script;

static void say(const uint32_t *statuses, uint32_t count)
{
    memcpy(script.at, statuses, count * sizeof(*statuses));
    script.count = count;
    script.next = 0;
}

static void say_often(uint32_t status, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        script.at[i] = status;
    script.count = times;
    script.next = 0;
}

static void decide(struct server *s, const struct wish *wish, const struct message_head *head,
                   struct answer_plan *plan)
{
    (void)s;
    (void)wish;
    (void)head;
    if (script.next < script.count)
        plan->status = script.at[script.next++];
}

/* Envoy's exactly, but that changes of health are not held back; Istio's numbers of acceptance 1.
 */
static void settings(uint32_t hosts, uint32_t percent)
{
    const difference_set merged = (difference_set)1 << DIFFERENCE_REEJECTION_SLOWER |
                                  (difference_set)1 << DIFFERENCE_EJECTED_STILL_PICKED;
    struct outlier_config *o = &p.settings.cluster.outlier;

    plane_settings(&p, hosts, 1);
    p.settings.cluster.differences = DIFFERENCES_ENVOY & ~merged;
    p.settings.cluster.connect_failover = false;
    p.settings.cluster.panic.threshold = 0;
    o->split = false;
    o->consecutive_5xx = 7;
    o->consecutive_gateway = 5;
    o->consecutive_local_origin = 5;
    o->interval = 30 * S;
    o->base_ejection = 300 * S;
    o->max_ejection_percent = percent;
    say_often(200, 0);
}

/* Envoy's defaults, as section 12 has them. */
static void defaults(uint32_t hosts, uint32_t percent)
{
    settings(hosts, percent);
    p.settings.cluster.outlier.consecutive_5xx = 5;
    p.settings.cluster.outlier.enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 0;
    p.settings.cluster.outlier.interval = 10 * S;
    p.settings.cluster.outlier.base_ejection = 30 * S;
}

static void go(void)
{
    plane_go(&p);
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        p.rig.servers[i].decide = NULL;
    p.rig.servers[0].decide = decide;
}

static const struct host *host(uint32_t i)
{
    return rig_state(&p.rig)->hosts.at[i];
}

static uint64_t stat(enum outlier_metric m)
{
    return cell_read(&rig_state(&p.rig)->outlier[m]);
}

static uint64_t arrivals(uint32_t i)
{
    return p.rig.servers[i].arrivals;
}

/* Requests until host 0 is out, with |hosts| in turn; how many reached it. At most |most|. */
static uint32_t until_out(uint32_t most)
{
    uint64_t before =
        host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[0]), ENDPOINT_rq_error);
    uint32_t reached = 0;

    for (uint32_t i = 0; i < most * p.settings.hosts && !plane_out(&p, 0); i++) {
        plane_get(&p);
        plane_run(&p, 100 * NS_PER_MS);
    }
    reached = (uint32_t)(host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[0]),
                                        ENDPOINT_rq_error) -
                         before);
    return reached;
}

/* --- facts, and the runs of T-004-4 --- */

static void T_004_4_runs_one_by_one(void **state)
{
    static const struct {
        const char *name;
        bool split, only_5xx, refused;
        uint32_t statuses[8];
        uint32_t count;
        uint32_t out_after; /* failures; 0: it stays in */
        enum outlier_trigger by;
        uint64_t gateway_detected;
    } rows[] = {
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
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t failures;

        settings(2, 50);
        p.settings.cluster.outlier.split = rows[i].split;
        if (rows[i].only_5xx)
            p.settings.cluster.outlier.consecutive_gateway = 0;
        say(rows[i].statuses, rows[i].count);
        go();
        if (rows[i].refused)
            server_refuse(&p.rig.servers[0]);
        failures = until_out(10);
        if (plane_out(&p, 0) != (rows[i].out_after > 0) ||
            (rows[i].out_after > 0 &&
             (failures != rows[i].out_after || host(0)->last_trigger != (uint32_t)rows[i].by)))
            fail_msg("%s: out %d after %u by %s", rows[i].name, plane_out(&p, 0), failures,
                     outlier_trigger_text((enum outlier_trigger)host(0)->last_trigger));
        assert_int_equal(stat(OUTLIER_STAT_ejections_detected_consecutive_gateway_failure),
                         rows[i].gateway_detected);
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

/* Ejects host 0 anew; when it is back, how long it was out. */
static span_ns out_for(uint32_t failures)
{
    mono_ns since;

    say_often(500, failures);
    assert_int_equal(until_out(failures), failures);
    since = host(0)->ejected_at;
    while (plane_out(&p, 0))
        plane_run(&p, 50 * NS_PER_MS);
    return p.rig.world.now - since;
}

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
    assert_non_null(
        strstr((const char *)sim_files_content(&p.rig.files, "events").data, "\"enforced\":false"));
    plane_run(&p, S);
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
        cmocka_unit_test(a_host_that_accepts_and_never_answers_escapes_as_envoy_only),
        cmocka_unit_test(a_reejected_host_is_picked_for_another_second_as_envoy_only),
        cmocka_unit_test(hosts_ejected_together_are_still_picked_as_envoy_only),
        cmocka_unit_test(ejections_and_returns_are_in_the_event_log),
        cmocka_unit_test(a_full_disk_hurts_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
