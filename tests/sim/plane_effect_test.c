/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did an ejection help? Through the whole data plane in virtual time: what is useless is undone,
 * what is claimed to have been spared is what a twin without ejections loses, T-000-8, T-000-20.
 */
#include "sim/effect_plane.h"

/* --- a dependency that all share --- */

static void all_slow(uint32_t times, uint32_t errors)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        faults[i].slow = times;
        faults[i].errors = errors;
    }
}

/* Back within 10 s: undone, or sooner by proof. */
static void forced_under(enum detection_profile profile, uint32_t slow, uint32_t errors,
                         bool by_proof)
{
    span_ns out;

    effect_settings(profile, DETECTION_ENFORCE, 11);
    effect_go();
    serve(30 * S);
    all_slow(slow, errors);
    serve(5 * S);
    force_out(3);
    assert_true(plane_out(&p, 3));
    out = serve_until(3, false, 60 * S);
    assert_in_range(out, 0, 10 * S);
    serve(S);
    assert_int_equal(effect_stat(EFFECT_STAT_undone), !by_proof);
    assert_int_equal(effect_stat(EFFECT_STAT_useless) + effect_stat(EFFECT_STAT_harmful),
                     !by_proof);
    assert_int_equal(effect_stat(EFFECT_STAT_helped), 0);
    assert_int_equal(sim_log_count(&p.rig.log, "endpoint.ejection_undone"), !by_proof);
    plane_run(&p, 5 * S);
    plane_end(&p);
}

static void T_000_8_shared_database_slow_and_an_ejection_forced_is_undone_within_10_s(void **state)
{
    (void)state;

    forced_under(PROFILE_STARTER, 4, 0, false);
    forced_under(PROFILE_ADAPTIVE, 4, 0, false);
    forced_under(PROFILE_STARTER, 1, 400, false);
    forced_under(PROFILE_ADAPTIVE, 1, 400, true); /* it fails no more than all do */
}

static void where_only_looked_on_nothing_is_undone(void **state)
{
    (void)state;

    effect_settings(PROFILE_STARTER, DETECTION_OBSERVE, 12);
    effect_go();
    serve(30 * S);
    all_slow(4, 0);
    serve(5 * S);
    force_out(3);
    serve(10 * S);
    assert_true(plane_out(&p, 3));
    assert_int_equal(
        account_of(3)->verdict == EFFECT_USELESS || account_of(3)->verdict == EFFECT_HARMFUL, true);
    assert_int_equal(effect_stat(EFFECT_STAT_undone), 0);
    plane_run(&p, 5 * S);
    plane_end(&p);
}

static void an_ejection_of_a_sick_host_is_not_undone(void **state)
{
    (void)state;

    effect_settings(PROFILE_ADAPTIVE, DETECTION_ENFORCE, 13);
    effect_go();
    serve(30 * S);
    faults[3].errors = 1000;
    (void)serve_until(3, true, 10 * S);
    serve(30 * S);
    assert_true(plane_out(&p, 3));
    assert_int_equal(account_of(3)->verdict, EFFECT_HELPED);
    all_slow(4, 0);
    faults[3].errors = 1000; /* the dependency, too: it stays out on its own account */
    serve(15 * S);
    assert_true(plane_out(&p, 3));
    assert_int_equal(effect_stat(EFFECT_STAT_undone), 0);
    plane_run(&p, 5 * S);
    plane_end(&p);
}

/* --- what was spared, and the twin --- */

struct losses {
    double failures;
    double slow;
};

/* Of the requests that began within. */
static struct losses lost(mono_ns from, mono_ns to, span_ns slow)
{
    struct losses l = {0, 0};

    for (uint64_t id = 1; id <= p.rig.ledger.count; id++) {
        const struct fact *f = plane_fact(&p, id);
        bool failed = f->outcome != OUTCOME_ANSWERED || f->status >= 500;

        if (f->begun < from || f->begun >= to)
            continue;
        l.failures += failed;
        l.slow += !failed && f->ended - f->begun > slow;
    }
    return l;
}

struct twin {
    const char *name;
    struct fault fault;
    span_ns lasts;
    bool of_slow; /* what is spared is slow answers, not failures */
};

#define BEGINS (40 * S)

static void run_fault(const struct twin *t, enum detection_mode mode, uint64_t seed)
{
    effect_settings(PROFILE_ADAPTIVE, mode, seed);
    effect_go();
    serve(BEGINS - (p.rig.world.now % S));
    faults[3] = t->fault;
    if (mode == DETECTION_OBSERVE) {
        serve(t->lasts);
        faults[3] = (struct fault){0};
        serve(20 * S);
    }
}

static void finish(void)
{
    plane_run(&p, 5 * S);
    plane_end(&p);
}

struct spared {
    double claimed;
    double really;
};

/* The claim of a run that acts, and what its twin that only looks on has lost more. */
static struct spared compare(const struct twin *t, uint64_t seed)
{
    mono_ns begun, out, back;
    span_ns limit;
    struct losses with, without;
    struct spared s;

    run_fault(t, DETECTION_ENFORCE, seed);
    begun = p.rig.world.now;
    (void)serve_until(3, true, 20 * S);
    out = p.rig.world.now;
    serve(begun + t->lasts - out);
    faults[3] = (struct fault){0};
    limit = account_of(3)->slow_after[CLASS_READ] * NS_PER_US;
    (void)serve_until(3, false, 15 * S);
    back = p.rig.world.now;
    serve(2 * S);
    s.claimed =
        (double)effect_stat(t->of_slow ? EFFECT_STAT_slow_avoided : EFFECT_STAT_failures_avoided);
    plane_run(&p, 5 * S);
    with = lost(out, back, limit);
    assert_true(with.failures == 0); /* nobody sees the probes that fail */
    plane_end(&p);
    run_fault(t, DETECTION_OBSERVE, seed);
    plane_run(&p, 5 * S);
    without = lost(out, back, limit);
    plane_end(&p);
    s.really = t->of_slow ? without.slow - with.slow : without.failures - with.failures;
    return s;
}

static const struct twin twins[] = {
    {"every request fails", {.errors = 1000}, 100 * S, false},
    {"half of them fail", {.errors = 500}, 200 * S, false},
    {"no request is answered", {.hangs = 1000}, 60 * S, false},
    {"answers come ten times as late", {.slow = 10}, 100 * S, true},
};
#define TWINS (sizeof(twins) / sizeof(twins[0]))
#define SEEDS 3

static void claimed_savings_are_within_10_percent_of_a_twin_that_does_not_act(void **state)
{
    (void)state;

    print_message("| fault of one of ten | seed | claimed | twin lost more | off by |\n");
    print_message("|---|---|---|---|---|\n");
    for (size_t i = 0; i < TWINS; i++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct spared s = compare(&twins[i], seed);
            double off = s.claimed / s.really - 1;

            print_message("| %s | %u | %.0f | %.0f | %+.1f %% |\n", twins[i].name, (unsigned)seed,
                          s.claimed, s.really, 100 * off);
            assert_true(s.really > 100);
            assert_true(fabs(off) <= 0.1);
        }
    }
}

/* --- T-000-8: timeouts --- */

/* Before 1.8 % of all time out; host 3 goes, and the others have |others|. */
static void timeouts_left(double others, uint64_t events)
{
    struct cluster *c = &p.settings.cluster;
    double sick = 18 + 9 * (18 - others); /* so that the mean of ten is 18 in a thousand */

    effect_settings(PROFILE_STARTER, DETECTION_ENFORCE, 14);
    c->detection.detect.latency = c->detection.detect.errors = c->detection.detect.connections =
        false; /* nobody goes but by hand */
    c->detection.life.base = c->detection.life.max = 600 * S;
    effect_go();
    for (uint32_t i = 0; i < HOSTS; i++)
        faults[i].hangs = (uint32_t)(i == 3 ? sick : others);
    serve(120 * S);
    force_out(3);
    serve(301 * S);
    assert_true(plane_out(&p, 3));
    assert_int_equal(effect_stat(EFFECT_STAT_thresholds_need_work), events);
    assert_int_equal(sim_log_count(&p.rig.log, "cluster.thresholds_need_work"), events);
    assert_true(fabs((double)effect_stat(EFFECT_STAT_timeout_ratio) - 1000 * others / 18) < 30);
    finish();
}

static void T_000_8_timeouts_down_by_22_percent_is_an_event_and_by_33_percent_is_none(void **state)
{
    (void)state;

    timeouts_left(14, 1);
    timeouts_left(12, 0);
}

/* --- T-000-20: ejected for nothing --- */

static void T_000_20_a_healthy_host_forced_out_counts_as_false_and_a_sick_one_does_not(void **state)
{
    (void)state;

    for (uint32_t sick = 0; sick < 2; sick++) {
        effect_settings(PROFILE_ADAPTIVE, DETECTION_ENFORCE, 15);
        p.settings.cluster.detection.detect.errors = sick == 0;
        effect_go();
        serve(30 * S);
        faults[3].errors = sick == 0 ? 0 : 400;
        serve(5 * S);
        force_out(3);
        serve(5 * S);
        faults[3].errors = 0;
        (void)serve_until(3, false, 20 * S);
        serve(12 * S);
        assert_int_equal(effect_stat(EFFECT_STAT_false_ejections), 1 - sick);
        assert_int_equal(effect_stat(EFFECT_STAT_reejections), 0);
        assert_in_range(effect_stat(EFFECT_STAT_time_out_mean), 100, 25000);
        assert_int_equal(effect_stat(EFFECT_STAT_accounts_open), 0);
        assert_int_equal(effect_stat(EFFECT_STAT_capacity_left), 1000);
        force_out(3);
        serve(S);
        assert_int_equal(effect_stat(EFFECT_STAT_reejections), 1);
        assert_int_equal(effect_stat(EFFECT_STAT_capacity_left), 900);
        finish();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(T_000_8_shared_database_slow_and_an_ejection_forced_is_undone_within_10_s),
        cmocka_unit_test(where_only_looked_on_nothing_is_undone),
        cmocka_unit_test(an_ejection_of_a_sick_host_is_not_undone),
        cmocka_unit_test(T_000_8_timeouts_down_by_22_percent_is_an_event_and_by_33_percent_is_none),
        cmocka_unit_test(
            T_000_20_a_healthy_host_forced_out_counts_as_false_and_a_sick_one_does_not),
        cmocka_unit_test(claimed_savings_are_within_10_percent_of_a_twin_that_does_not_act),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
