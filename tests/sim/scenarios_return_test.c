/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of reference/scenarios.md about the way back, by their names, through the whole
 * data plane: T-000-16 (on proof), T-000-17 (escalation), T-000-18 (flapping). Of T-000-16 the
 * shallow check that stays green is what the host says to connects: it takes each of them, and no
 * active health check exists yet that could say more.
 */
#include "sim/detection_plane.h"

#define BAD 3

/* What host BAD answers, counted from 0 since the last change; NULL: as it is in the mood for. */
static struct {
    bool (*fails)(uint32_t n);
    uint32_t n;
} script;

static void decide(struct server *s, const struct wish *wish, const struct message_head *head,
                   struct answer_plan *plan)
{
    (void)s;
    (void)wish;
    (void)head;
    if (script.fails != NULL && script.fails(script.n++))
        plan->status = 500;
}

static void now_fails(bool (*fails)(uint32_t n))
{
    script.fails = fails;
    script.n = 0;
}

static bool always(uint32_t n)
{
    (void)n;
    return true;
}

static bool twentieth(uint32_t n)
{
    return n == 19;
}

static void begin_at(enum detection_profile profile, uint32_t rate)
{
    const struct crowd_habits habits = {.rate = rate, .small = 200};

    prepare(1, profile);
    begin(&habits);
    now_fails(NULL);
    server(BAD)->decide = decide;
    run(20 * S);
    mark();
}

/* Runs until the host has come to |state|, |most| at most; how long that took. */
static span_ns run_until(enum life_state state, span_ns most)
{
    mono_ns begun = p.rig.world.now;

    while (life(BAD)->state != state && p.rig.world.now < begun + most)
        run(5 * MS);
    assert_int_equal(life(BAD)->state, state);
    return p.rig.world.now - begun;
}

/* --- T-000-16 --- */

/* Nobody sees what the probes are answered: another host makes up for those that fail. */
static void expect_all_answered(mono_ns from)
{
    struct score s = score_between(&p.rig.ledger, from, p.rig.world.now);

    assert_true(s.asked > 100);
    assert_int_equal(s.answered, s.asked);
}

static void t_000_16_nineteen_successes_and_a_failure_are_not_enough_twenty_are(void **state)
{
    mono_ns out;
    uint64_t arrivals;
    (void)state;

    begin_at(PROFILE_STARTER, 100);
    now_fails(always);
    (void)run_until(LIFE_EJECTED, 10 * S);
    out = p.rig.world.now;
    run(S); /* what was under way */
    now_fails(twentieth);
    arrivals = server(BAD)->arrivals;
    (void)run_until(LIFE_PROBING, 40 * S);
    assert_in_range(p.rig.world.now - out, 30 * S, 30 * S + 100 * MS);
    assert_in_range(server(BAD)->arrivals, arrivals, arrivals + 1); /* the first probe */
    (void)run_until(LIFE_EJECTED, 20 * S);
    assert_int_equal(script.n, 20);
    assert_true(plane_out(&p, BAD));
    assert_int_equal(decided(BAD, DECISION_RAMPING), 0);
    expect_all_answered(out);
    out = p.rig.world.now;
    (void)run_until(LIFE_PROBING, 40 * S);
    assert_in_range(p.rig.world.now - out, 30 * S, 30 * S + 100 * MS);
    (void)run_until(LIFE_RAMPING, 20 * S);
    assert_int_equal(script.n, 40);
    assert_false(plane_out(&p, BAD));
    assert_int_equal(decided(BAD, DECISION_RAMPING), 1);
    expect_all_answered(out);
    (void)run_until(LIFE_HEALTHY, 11 * S);
    assert_int_equal(seen.hosts[BAD].outs, 1);
    assert_int_equal(seen.hosts[BAD].share, LIFE_WHOLE);
    expect_only(BIT(BAD));
    finish();
}

static void t_000_16_a_failure_in_the_ramp_puts_it_out_at_once_and_for_longer(void **state)
{
    const struct decision *relapse;
    mono_ns failed = MONO_NEVER;
    (void)state;

    begin_at(PROFILE_STARTER, 100);
    now_fails(always);
    (void)run_until(LIFE_EJECTED, 10 * S);
    run(S);
    now_fails(NULL);
    (void)run_until(LIFE_RAMPING, 60 * S);
    now_fails(always);
    while (failed == MONO_NEVER) {
        run(MS);
        if (script.n > 0)
            failed = p.rig.world.now;
    }
    (void)run_until(LIFE_EJECTED, 200 * MS); /* its answer takes some 20 ms */
    relapse = decision(BAD, DECISION_EJECTED, 1);
    assert_non_null(relapse);
    assert_int_equal(relapse->cause, CAUSE_RELAPSED);
    assert_int_equal(relapse->before, LIFE_RAMPING);
    assert_int_equal(relapse->out_for, 60 * S);
    expect_words(words(relapse), "it failed again while its share grew");
    (void)run_until(LIFE_PROBING, 70 * S);
    assert_in_range(p.rig.world.now - relapse->when, 60 * S, 60 * S + 100 * MS);
    expect_only(BIT(BAD));
    finish();
}

/* It takes connects all the time, which is all that a shallow check asks. */
static void t_000_16_it_stays_out_for_30_60_90_and_at_most_300_s(void **state)
{
    (void)state;

    prepare(1, PROFILE_STARTER);
    p.settings.cluster.detection.life.times_per_hour = 0;
    p.settings.cluster.detection.life.repeated_for = 0;
    begin(&(const struct crowd_habits){.rate = 50, .small = 200});
    now_fails(NULL);
    server(BAD)->decide = decide;
    run(20 * S);
    mark();
    for (uint32_t n = 1; n <= 12; n++) {
        span_ns due = (n < 10 ? n * 30 : 300) * S;
        mono_ns out;

        now_fails(always);
        (void)run_until(LIFE_EJECTED, 20 * S);
        out = decision(BAD, DECISION_EJECTED, n - 1)->when;
        run(S);
        now_fails(NULL);
        (void)run_until(LIFE_PROBING, 310 * S);
        assert_in_range(decision(BAD, DECISION_PROBING, n - 1)->when - out, due, due + 100 * MS);
        (void)run_until(LIFE_RAMPING, 30 * S);
    }
    assert_int_equal(seen.hosts[BAD].outs, 12);
    expect_only(BIT(BAD));
    finish();
}

/* --- T-000-17 --- */

/* Bad for a moment: out, and in again by itself. */
static void out_and_back(void)
{
    now_fails(always);
    (void)run_until(LIFE_EJECTED, 30 * S);
    now_fails(NULL);
    (void)run_until(LIFE_HEALTHY, 60 * S);
}

static void out_at(mono_ns at)
{
    run(at - p.rig.world.now);
    now_fails(always);
    (void)run_until(LIFE_EJECTED, 30 * S);
    now_fails(NULL);
}

static void expect_human(uint32_t n)
{
    const struct decision *d = decision(BAD, DECISION_NEEDS_HUMAN, 0);
    uint64_t arrivals = server(BAD)->arrivals;

    assert_non_null(d);
    assert_int_equal(decided(BAD, DECISION_NEEDS_HUMAN), 1);
    assert_int_equal(said("endpoint.needs_human"), 1);
    expect_words(words(d), "replace it, roll it back, or check the rollout");
    expect_words(why(BAD), "needs a human");
    run(600 * S); /* it is well, and stays out, and is probed */
    assert_true(plane_out(&p, BAD));
    assert_int_equal(seen.hosts[BAD].outs, n);
    assert_in_range(server(BAD)->arrivals - arrivals, 20, 600); /* of 600 that were its share */
}

static void expect_pardon(void)
{
    char answer[256];
    uint64_t arrivals = server(BAD)->arrivals;

    assert_int_equal(plane_order(&p, HOST_DEED_PARDON, BAD, answer, sizeof(answer)),
                     HOST_ANSWER_DONE);
    run(60 * S);
    assert_int_equal(life(BAD)->state, LIFE_HEALTHY);
    assert_int_equal(seen.hosts[BAD].share, LIFE_WHOLE);
    assert_false(life(BAD)->needs_human);
    assert_in_range(server(BAD)->arrivals - arrivals, 30, 90); /* a tenth of 600 */
}

/* The third time out comes so long after the first. */
static void third_at(span_ns after)
{
    mono_ns first;

    begin_at(PROFILE_ADAPTIVE, 10);
    out_and_back();
    first = decision(BAD, DECISION_EJECTED, 0)->when;
    out_at(first + 1800 * S);
    (void)run_until(LIFE_HEALTHY, 60 * S);
    out_at(first + after - 10 * S);
}

static void t_000_17_the_third_ejection_in_minute_59_needs_a_human_until_the_pardon(void **state)
{
    (void)state;

    third_at(59 * 60 * S);
    expect_human(3);
    expect_pardon();
    expect_only(BIT(BAD));
    finish();
}

static void t_000_17_the_third_ejection_in_minute_61_is_as_any_other(void **state)
{
    (void)state;

    third_at(61 * 60 * S);
    (void)run_until(LIFE_HEALTHY, 60 * S);
    assert_int_equal(decided(BAD, DECISION_EJECTED), 3);
    assert_int_equal(said("endpoint.needs_human"), 0);
    assert_int_equal(seen.hosts[BAD].share, LIFE_WHOLE);
    expect_only(BIT(BAD));
    finish();
}

static void t_000_17_out_for_5_min_running_it_is_to_be_replaced(void **state)
{
    mono_ns out;
    (void)state;

    begin_at(PROFILE_ADAPTIVE, 10);
    now_fails(always);
    (void)run_until(LIFE_EJECTED, 30 * S);
    out = p.rig.world.now;
    run(299 * S);
    assert_int_equal(said("endpoint.needs_human"), 0);
    run(60 * S); /* at the first probe past them */
    assert_int_equal(said("endpoint.needs_human"), 1);
    assert_in_range(decision(BAD, DECISION_NEEDS_HUMAN, 0)->when - out, 299 * S, 330 * S);
    now_fails(NULL);
    expect_human(1);
    expect_pardon();
    expect_only(BIT(BAD));
    finish();
}

/* --- T-000-18 --- */

/* Returns and relapses by what was decided. */
struct flaps {
    uint32_t outs;
    uint32_t relapses; /* within ten minutes of a return */
    span_ns longest;   /* time out so far */
    span_ns rest;      /* before the first probe, of the latest */
    bool grew;         /* each time out was longer than the one before ... */
    bool rests_grew;   /* ... or each rest */
};

static struct flaps count_flaps(void)
{
    struct flaps f = {.grew = true, .rests_grew = true};
    const struct decision *out, *back;
    mono_ns returned = MONO_NEVER;

    for (; (out = decision(BAD, DECISION_EJECTED, f.outs)) != NULL; f.outs++) {
        f.relapses += returned != MONO_NEVER && out->when - returned <= 600 * S;
        f.rests_grew &= out->out_for > f.rest;
        f.rest = out->out_for;
        back = decision(BAD, DECISION_RAMPING, f.outs);
        if (back == NULL)
            continue; /* it is out still */
        returned = back->when;
        f.grew &= returned - out->when > f.longest;
        f.longest = returned - out->when;
    }
    return f;
}

static void flap(enum detection_profile profile, uint32_t errors, double slow, uint32_t hangs)
{
    struct flaps f;

    begin_at(profile, 50);
    for (uint32_t i = 0; i < 100; i++) {
        server(BAD)->mood.error_permille = errors;
        server(BAD)->mood.hang_permille = hangs;
        server(BAD)->mood.pace.slow = slow;
        run(3 * S);
        server(BAD)->mood = server(BAD)->usual_mood;
        run(3 * S);
    }
    f = count_flaps();
    assert_int_equal(f.outs, seen.hosts[BAD].outs);
    assert_in_range(f.outs, 1, 4);
    assert_true(profile == PROFILE_ADAPTIVE ? f.grew : f.rests_grew);
    assert_int_equal(cell_read(&rig_state(&p.rig)->effect[EFFECT_STAT_reejections]), f.relapses);
    expect_only(BIT(BAD));
    finish();
}

static void t_000_18_bad_for_3_s_and_good_for_3_s_it_flips_four_times_at_most(void **state)
{
    (void)state;

    flap(PROFILE_ADAPTIVE, 1000, 1, 0);
    flap(PROFILE_ADAPTIVE, 0, 10, 0);
    flap(PROFILE_ADAPTIVE, 0, 1, 1000);
    flap(PROFILE_STARTER, 1000, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_16_nineteen_successes_and_a_failure_are_not_enough_twenty_are),
        cmocka_unit_test(t_000_16_a_failure_in_the_ramp_puts_it_out_at_once_and_for_longer),
        cmocka_unit_test(t_000_16_it_stays_out_for_30_60_90_and_at_most_300_s),
        cmocka_unit_test(t_000_17_the_third_ejection_in_minute_59_needs_a_human_until_the_pardon),
        cmocka_unit_test(t_000_17_the_third_ejection_in_minute_61_is_as_any_other),
        cmocka_unit_test(t_000_17_out_for_5_min_running_it_is_to_be_replaced),
        cmocka_unit_test(t_000_18_bad_for_3_s_and_good_for_3_s_it_flips_four_times_at_most),
    };

    return cmocka_run_group_tests_name("sim/scenarios_return", tests, NULL, NULL);
}
