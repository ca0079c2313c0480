/* SPDX-License-Identifier: Apache-2.0 */
/* Cases C047 and C049 of tests/cases/README.md through the whole data plane, in virtual time. */
#include "sim/outlier_plane.h"

/* --- C047: every host ejected --- */

static void c047_settings(uint32_t hosts, difference_set envoy, uint32_t min_health)
{
    settings(hosts, 100);
    cluster_follow(&p.settings.cluster, envoy);
    p.settings.cluster.outlier.consecutive_5xx = 3;
    p.settings.cluster.outlier.consecutive_gateway = 0;
    p.settings.cluster.outlier.interval = S;
    p.settings.cluster.outlier.base_ejection = 60 * S;
    p.settings.cluster.panic.threshold = min_health;
}

static difference_set exactly_envoy(void)
{
    return DIFFERENCES_ENVOY & ~((difference_set)1 << DIFFERENCE_REEJECTION_SLOWER |
                                 (difference_set)1 << DIFFERENCE_EJECTED_STILL_PICKED);
}

static void all_answer(uint32_t status)
{
    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        p.rig.servers[i].decide = NULL;
        p.rig.servers[i].mood.service = NS_PER_MS;
        p.rig.servers[i].mood.error_permille = status == 200 ? 0 : 1000;
        p.rig.servers[i].mood.error_status = status;
    }
}

/* What the clients saw of 20 requests a second. */
struct seen {
    uint32_t fine;
    uint32_t by_hosts; /* a 500 of a host's own */
    uint32_t by_us;    /* 503 UH */
    span_ns longest_by_us;
};

static void note(struct seen *seen, const struct fact *f)
{
    assert_int_equal(f->outcome, OUTCOME_ANSWERED);
    if (f->status == 200) {
        seen->fine++;
    } else if (f->server != NO_SERVER) {
        assert_int_equal(f->status, 500);
        seen->by_hosts++;
    } else {
        assert_int_equal(f->status, 503);
        assert_int_equal(f->record_flags, FLAG_UH);
        seen->by_us++;
        if (f->ended - f->begun > seen->longest_by_us)
            seen->longest_by_us = f->ended - f->begun;
    }
}

static struct seen watch(uint32_t seconds)
{
    struct seen seen = {0};

    for (uint32_t i = 0; i < seconds * 20; i++) {
        uint64_t id = plane_get(&p);

        plane_run(&p, 50 * NS_PER_MS);
        note(&seen, plane_fact(&p, id));
    }
    return seen;
}

static bool panics(void)
{
    return atomic_load(&rig_state(&p.rig)->panic_since) != MONO_NEVER;
}

static void c047_a_without_panic_503_at_once_until_the_ejection_is_over(void **state)
{
    struct seen seen;
    (void)state;

    c047_settings(4, exactly_envoy(), 0);
    go();
    all_answer(500);
    seen = watch(2);
    assert_int_equal(seen.by_hosts, 12); /* three each */
    assert_int_equal(seen.by_us, 28);
    seen = watch(18);
    assert_int_equal(seen.by_us, 18 * 20);
    all_answer(200);
    seen = watch(39); /* they are well, and still out */
    assert_int_equal(seen.by_us, 39 * 20);
    assert_true(seen.longest_by_us < 5 * NS_PER_MS);
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 4);
    (void)watch(4);
    seen = watch(10);
    assert_int_equal(seen.fine, 200);
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 0);
    assert_false(panics());
    plane_end(&p);
}

/* What we do instead unless told otherwise: what makes all fail is not the fault of one. */
static void c047_a_by_ourselves_the_cluster_is_never_emptied(void **state)
{
    struct seen seen;
    (void)state;

    c047_settings(4, DIFFERENCES_FIREBREAK, 0);
    go();
    all_answer(500);
    seen = watch(20);
    assert_int_equal(seen.by_us, 0);
    assert_true(stat(OUTLIER_STAT_ejections_active) <= 1);
    all_answer(200);
    seen = watch(20);
    assert_int_equal(seen.fine, 400);
    plane_end(&p);
}

static void c047_b_below_the_threshold_all_serve_and_recover_with_the_hosts(void **state)
{
    uint64_t before[4];
    struct seen seen;
    (void)state;

    c047_settings(4, exactly_envoy(), 50);
    go();
    all_answer(500);
    (void)watch(2);
    assert_true(panics());
    assert_int_equal(sim_log_count(&p.rig.log, "cluster.panic"), 1);
    for (uint32_t i = 0; i < 4; i++)
        before[i] = arrivals(i);
    seen = watch(18);
    assert_int_equal(seen.by_hosts, 18 * 20);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(arrivals(i) - before[i], 18 * 5);
    all_answer(200);
    seen = watch(30);
    assert_int_equal(seen.fine, 600); /* at once, though the ejections go on */
    assert_true(plane_count(&p, CLUSTER_lb_healthy_panic) > 900);
    (void)watch(14);
    assert_false(panics());
    assert_int_equal(sim_log_count(&p.rig.log, "cluster.panic_over"), 1);
    plane_end(&p);
}

static void c047_c_the_only_host_goes_where_that_is_set_and_not_else(void **state)
{
    struct seen seen;
    (void)state;

    c047_settings(1, DIFFERENCES_FIREBREAK, 0);
    go();
    all_answer(500);
    seen = watch(20);
    assert_int_equal(seen.by_hosts, 400);
    assert_int_equal(stat(OUTLIER_STAT_ejections_total), 0);
    plane_end(&p);
    c047_settings(1, exactly_envoy(), 0);
    go();
    all_answer(500);
    seen = watch(20);
    assert_int_equal(seen.by_hosts, 3);
    assert_int_equal(seen.by_us, 397);
    plane_end(&p);
}

static void leave_only(uint64_t hosts)
{
    p.rig.settings = p.settings;
    assert_true(rig_reload(&p.rig, hosts));
    plane_run(&p, 10 * NS_PER_MS);
}

static uint32_t one_that_serves(void)
{
    uint32_t i = 0;

    while (plane_out(&p, i))
        i++;
    return i;
}

static void c047_d_percentages_are_of_those_that_are_left(void **state)
{
    struct seen seen;
    (void)state;

    c047_settings(4, exactly_envoy(), 0);
    p.settings.cluster.outlier.max_ejection_percent = 50;
    go();
    all_answer(500);
    (void)watch(5);
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 2); /* half of four */
    leave_only((uint64_t)1 << one_that_serves());
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 0); /* nothing is left over */
    seen = watch(15);
    assert_int_equal(seen.by_hosts, 300); /* of one host, half is nobody */
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 0);
    leave_only(0xf); /* who comes back begins anew: four again, of whom two may be out */
    for (uint32_t i = 0; i < 4; i++)
        assert_false(plane_out(&p, i));
    (void)watch(2);
    assert_int_equal(stat(OUTLIER_STAT_ejections_active), 2);
    plane_end(&p);
}

/* --- C049: how long an ejection lasts --- */

static void c049_settings(void)
{
    settings(5, 50);
    p.settings.cluster.outlier.consecutive_5xx = 3;
    p.settings.cluster.outlier.consecutive_gateway = 0;
    p.settings.cluster.outlier.interval = 5 * S;
    p.settings.cluster.outlier.base_ejection = 10 * S;
    p.settings.cluster.outlier.max_ejection = 40 * S;
    p.settings.cluster.outlier.jitter = 2 * S;
    go();
    p.rig.servers[0].decide = NULL;
    for (uint32_t i = 0; i < 5; i++)
        p.rig.servers[i].mood.service = NS_PER_MS;
}

static void host_0_answers(uint32_t status)
{
    p.rig.servers[0].mood.error_permille = status == 200 ? 0 : 1000;
    p.rig.servers[0].mood.error_status = status;
}

static void steady(span_ns span)
{
    for (mono_ns until = p.rig.world.now + span; p.rig.world.now < until;) {
        plane_get(&p);
        plane_run(&p, 50 * NS_PER_MS);
    }
}

/* Steady traffic until it is out and back; how long it is to be out by the judge's word. */
static span_ns next_ejection(void)
{
    span_ns span;

    while (!plane_out(&p, 0))
        steady(50 * NS_PER_MS);
    span = host(0)->eject_until - host(0)->ejected_at;
    while (plane_out(&p, 0))
        steady(50 * NS_PER_MS);
    return span;
}

/* Times in a row x base, at most 40 s; the jitter comes on top, as Envoy documents it. */
static void c049_lengths_grow_to_the_maximum_and_a_good_hour_takes_them_back(void **state)
{
    static const uint32_t lengths[] = {10, 20, 30, 40, 40, 40};
    bool jittered = false;
    (void)state;

    c049_settings();
    host_0_answers(500);
    for (uint32_t i = 0; i < 6; i++) {
        span_ns span = next_ejection();

        assert_in_range(span, lengths[i] * S, lengths[i] * S + 2 * S);
        jittered = jittered || span % S != 0;
    }
    assert_true(jittered);
    assert_int_equal(host(0)->judged.multiplier, 5); /* one beyond the maximum, and no more */
    host_0_answers(200);
    steady(60 * S); /* twelve sweeps */
    assert_int_equal(host(0)->judged.multiplier, 0);
    host_0_answers(500);
    assert_in_range(next_ejection(), 10 * S, 12 * S);
    plane_run(&p, S);
    plane_end(&p);
}

static void c049_while_a_host_is_out_nothing_decays(void **state)
{
    uint32_t multiplier;
    (void)state;

    c049_settings();
    host_0_answers(500);
    for (uint32_t i = 0; i < 3; i++)
        (void)next_ejection();
    while (!plane_out(&p, 0))
        steady(50 * NS_PER_MS);
    multiplier = host(0)->judged.multiplier;
    assert_int_equal(multiplier, 4);
    steady(30 * S); /* six sweeps, of forty seconds */
    assert_true(plane_out(&p, 0));
    assert_int_equal(host(0)->judged.multiplier, multiplier);
    plane_run(&p, 20 * S);
    plane_end(&p);
}

/* Envoy's rule, which is ours (docs/decisions.md): a sweep without an ejection is a quiet one. */
static void c049_without_traffic_it_decays_slowly_by_one_a_sweep(void **state)
{
    (void)state;

    c049_settings();
    host_0_answers(500);
    for (uint32_t i = 0; i < 4; i++)
        (void)next_ejection();
    assert_int_equal(host(0)->judged.multiplier, 4);
    plane_run(&p, 6 * S); /* the first sweep a whole interval after its return */
    assert_in_range(host(0)->judged.multiplier, 3, 4);
    plane_run(&p, 5 * S);
    assert_in_range(host(0)->judged.multiplier, 2, 3);
    plane_run(&p, 90 * S);
    assert_int_equal(host(0)->judged.multiplier, 0);
    assert_in_range(next_ejection(), 10 * S, 12 * S);
    plane_run(&p, S);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c047_a_without_panic_503_at_once_until_the_ejection_is_over),
        cmocka_unit_test(c047_a_by_ourselves_the_cluster_is_never_emptied),
        cmocka_unit_test(c047_b_below_the_threshold_all_serve_and_recover_with_the_hosts),
        cmocka_unit_test(c047_c_the_only_host_goes_where_that_is_set_and_not_else),
        cmocka_unit_test(c047_d_percentages_are_of_those_that_are_left),
        cmocka_unit_test(c049_lengths_grow_to_the_maximum_and_a_good_hour_takes_them_back),
        cmocka_unit_test(c049_while_a_host_is_out_nothing_decays),
        cmocka_unit_test(c049_without_traffic_it_decays_slowly_by_one_a_sweep),
    };

    return cmocka_run_group_tests_name("cases_outlier", tests, NULL, NULL);
}
