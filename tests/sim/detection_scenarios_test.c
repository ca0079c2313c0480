/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of reference/scenarios.md about detection, by their names, through the whole data
 * plane in virtual time. Where a scenario gives a share or a percentile, several seeds are run.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/detection_plane.h"

#define SEEDS          20
#define MINORITY_SEEDS 10

/* --- T-000-1: one of ten hosts lets a fifth of its requests time out --- */

/* 18 % of the requests are never answered, 0.5 % are reset. */
static void loses_a_fifth(uint32_t host)
{
    server(host)->mood.hang_permille = 180;
    server(host)->mood.reset_permille = 5;
}

static void start_t_000_1(uint64_t seed)
{
    prepare(seed, PROFILE_ADAPTIVE);
    p.settings.route.timeout = p.settings.route.per_try_timeout = 4 * S;
    p.settings.retry.policy.attempts = 0;
    p.settings.cluster.lb = LB_ROUND_ROBIN; /* 10 rps each, whatever it does */
}

static void t_000_1_without_ejection_a_fiftieth_fails(void **state)
{
    struct score s;
    (void)state;

    start_t_000_1(1);
    p.settings.cluster.detection.on = false;
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    begin(&plain_habits);
    run(5 * S);
    loses_a_fifth(3);
    mark();
    run(120 * S);
    s = score(0, 110 * S);
    assert_true(score_success(&s) > 0.979 && score_success(&s) < 0.985);
    finish();
}

/* What the seeds came to. */
struct tally {
    uint64_t asked, answered;
    double p99_ratio; /* sum over the seeds, of afterwards to before */
    uint32_t in_time;
};

static void tally_add(struct tally *t, const struct score *before, const struct score *after)
{
    t->asked += after->asked;
    t->answered += after->answered;
    t->p99_ratio += (double)after->p99 / (double)before->p99;
}

static void t_000_1_the_host_is_suspect_and_out_in_time_and_nobody_else(void **state)
{
    struct tally t = {.asked = 0};
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct score before, after;

        start_t_000_1(seed);
        begin(&plain_habits);
        run(20 * S);
        mark();
        before = score_before();
        loses_a_fifth(3);
        run(44 * S);
        after = score(20 * S, 40 * S);
        tally_add(&t, &before, &after);
        /* The first timeout comes no sooner than 4 s after the fault. */
        t.in_time += cut_after(3) <= 9 * S && out_after(3) <= 14 * S;
        assert_int_equal(onlooker_outs(&seen, ~BIT(3)), 0);
        finish();
    }
    assert_true(t.in_time >= SEEDS * 95 / 100);
    assert_true((double)t.answered >= 0.999 * (double)t.asked);
    assert_true(t.p99_ratio / SEEDS <= 1.2);
}

/* --- beside it --- */

/* Evenly: 18 of a hundred are never answered, and each 200th is reset; or |hangs| of a thousand. */
static uint32_t hangs;
static double owing[2];

static void loses_evenly(struct server *s, const struct wish *wish, const struct message_head *head,
                         struct answer_plan *plan)
{
    (void)s;
    (void)wish;
    (void)head;
    if (is_due(&owing[0], hangs))
        plan->delay = MONO_NEVER;
    else if (is_due(&owing[1], 5))
        plan->broken = BREAK_BEFORE_HEAD;
}

/* Nothing but the rule "more than 20 % of timeouts and resets within 30 s". */
static void begin_with_the_rule_alone(uint32_t lost)
{
    struct cluster *c = &p.settings.cluster;

    start_t_000_1(1);
    detection_set_profile(&c->detection, PROFILE_RULES);
    c->detection.rules = &rules_default[1];
    c->detection.rule_count = 1;
    c->detection.rules_act = true;
    c->detection.detect.latency = c->detection.detect.errors = c->detection.detect.connections =
        false;
    c->outlier.consecutive_5xx = c->outlier.consecutive_local_origin = 0;
    begin(&plain_habits);
    run(20 * S);
    mark();
    hangs = lost;
    memset(owing, 0, sizeof(owing));
    server(3)->decide = loses_evenly;
    run(120 * S);
}

static void t_000_1_the_rule_of_20_percent_alone_stays_silent(void **state)
{
    (void)state;

    begin_with_the_rule_alone(180);
    assert_int_equal(said("endpoint.rule"), 0);
    assert_int_equal(life(3)->state, LIFE_HEALTHY);
    assert_int_equal(onlooker_cut(&seen, 999), 0);
    finish();
    begin_with_the_rule_alone(230); /* so it is not deaf */
    assert_true(plane_out(&p, 3));
    assert_int_equal(decision(3, DECISION_EJECTED, 0)->rule, RULE_TIMEOUT_OR_RESET);
    finish();
}

static void t_000_1_explain_answers_the_four_questions(void **state)
{
    const char *all, *decided;
    (void)state;

    start_t_000_1(1);
    begin(&plain_habits);
    run(20 * S);
    mark();
    expect_words(why(3), "Would it help to leave it out?");
    loses_a_fifth(3);
    run(40 * S);
    assert_true(plane_out(&p, 3));
    decided = words(decision(3, DECISION_EJECTED, 0));
    expect_words(decided, "10.0.0.4:8000 of cluster backend is ejected"); /* is it unusually bad? */
    expect_words(decided, "of 11.0 nats");
    expect_words(decided,
                 "it comes back on proof (probes that succeed)"); /* what brings it back? */
    all = why(3);
    expect_words(all, "Has it helped to leave it out?");
    expect_words(all,
                 "capacity passes: without it the others would be at"); /* can they carry it? */
    finish();
}

/*
 * --- T-000-1b: a host that is slow on a few requests only ---
 *
 * How long it takes is chance: B19 of reference/detection.md measures 18, 9 and 31 s in the mean.
 */

static void slow_on_a_twentieth(struct pace *of)
{
    of->tail_permille = 50;
    of->tail = 20;
}

static void stands_still_for_1_s(struct pace *of)
{
    of->freeze_every = 5 * S;
    of->freeze_for = S;
}

static void stands_still_for_half_a_second(struct pace *of)
{
    of->freeze_every = 5 * S;
    of->freeze_for = S / 2;
}

/* Latency alone is not enough: something rises beside it, or it is three times as slow for 2 s. */
static void expect_cosignal(const struct decision *d)
{
    static const enum detect_line others[] = {DETECT_ERRORS_SOME, DETECT_ERRORS_MANY,
                                              DETECT_CONNECTS, DETECT_AGE};
    double most = 0;

    for (uint32_t i = 0; i < 4; i++)
        most = d->sums[others[i]] > most ? d->sums[others[i]] : most;
    assert_true(most > d->threshold / 2 || (d->line == DETECT_RANK && d->sure_for >= 2 * S));
}

/* In |least| of the runs at least it is a suspect in time. */
static void slow_now_and_then(void (*strike)(struct pace *of), uint32_t least)
{
    uint32_t in_time = 0;

    for (uint64_t seed = 1; seed <= MINORITY_SEEDS; seed++) {
        const struct decision *d;

        start_t_000_1(seed);
        begin(&plain_habits);
        run(20 * S);
        mark();
        server(3)->mood.pace.freeze_from = fault_at - world_span(&p.rig.world, 5 * S);
        strike(&server(3)->mood.pace);
        run(40 * S);
        in_time += cut_after(3) <= 30 * S;
        d = decision(3, DECISION_SUSPECTED, 0);
        if (d != NULL)
            assert_int_not_equal(d->line, DETECT_RANK); /* that alone fails here */
        for (uint32_t n = 0; (d = decision(3, DECISION_EJECTED, n)) != NULL; n++)
            expect_cosignal(d);
        expect_only(BIT(3));
        finish();
    }
    assert_true(in_time >= least);
}

static void t_000_1b_slow_on_a_few_requests_it_is_a_suspect_within_30_s(void **state)
{
    (void)state;

    slow_now_and_then(slow_on_a_twentieth, 8); /* of 60 seeds 56 are in time, 39 of the last kind */
    slow_now_and_then(stands_still_for_1_s, MINORITY_SEEDS);
    slow_now_and_then(stands_still_for_half_a_second, 6);
}

/* --- T-000-10: all are three times as slow --- */

static void slow_down(span_ns ramp, double spread)
{
    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        double by = spread * (2 * rng_unit(&p.rig.world.rng) - 1);

        server(i)->mood.pace.slow = pow(3, 1 + by);
        server(i)->mood.pace.slow_from = p.rig.world.now;
        server(i)->mood.pace.slow_ramp = ramp;
    }
}

static const span_ns ramps[] = {0, 5 * S, 30 * S};

/* How many went before the fleet was known to be slow; afterwards nobody may. */
static uint32_t outs_early(void)
{
    const struct decision *slow = decision(OF_ALL, DECISION_FLEET_SLOWDOWN, 0);
    uint32_t early = 0;

    assert_non_null(slow);
    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        const struct decision *d;

        for (uint32_t n = 0; (d = decision(i, DECISION_EJECTED, n)) != NULL; n++) {
            assert_true(d->when <= slow->when);
            early++;
        }
    }
    return early;
}

static void t_000_10_all_three_times_as_slow_and_nobody_goes(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        begin(&plain_habits);
        run(20 * S);
        mark();
        slow_down(ramps[seed % 3], 0);
        run(60 * S);
        assert_int_equal(outs_early(), 0);
        expect_only(0);
        assert_true(said("cluster.fleet_slowdown") > 0);
        assert_int_equal(onlooker_verdict(&seen), SCOPE_DEPENDENCY);
        assert_true(was_logged("cluster.verdict", "look at what all of them depend on"));
        finish();
    }
}

#define UNEQUAL_SEEDS 21

static void t_000_10_unequally_slow_hardly_one_goes_before_the_fleet_is_known_to_be(void **state)
{
    uint32_t early = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= UNEQUAL_SEEDS; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        begin(&plain_habits);
        run(20 * S);
        mark();
        slow_down(ramps[seed % 3], 0.35);
        run(40 * S);
        early += outs_early();
        assert_true(was_said(SCOPE_DEPENDENCY) || was_said(SCOPE_FLEET));
        finish();
    }
    assert_true(early <= 0.05 * UNEQUAL_SEEDS);
}

/* Where that makes a tenth of the attempts time out: they are not made again. */
static void t_000_10_retries_are_held_while_all_are_slow(void **state)
{
    uint64_t asked, made, again;
    struct score s;
    (void)state;

    prepare(1, PROFILE_ADAPTIVE);
    p.settings.route.per_try_timeout = 100 * MS;
    begin(&plain_habits);
    run(20 * S);
    mark();
    slow_down(0, 0);
    run(10 * S);
    asked = rig_http_sum(&p.rig, HTTP_downstream_rq_total);
    made = rig_cluster_sum(&p.rig, CLUSTER_upstream_rq_total);
    again = rig_cluster_sum(&p.rig, CLUSTER_upstream_rq_retry);
    run(30 * S);
    asked = rig_http_sum(&p.rig, HTTP_downstream_rq_total) - asked;
    made = rig_cluster_sum(&p.rig, CLUSTER_upstream_rq_total) - made;
    again = rig_cluster_sum(&p.rig, CLUSTER_upstream_rq_retry) - again;
    assert_int_equal(again, 0);
    assert_true(made <= asked + 2);
    s = score(10 * S, 38 * S);
    assert_int_equal(s.answered, s.asked); /* none was cut off that could not be tried again */
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        server(i)->mood.error_permille = 100;
    again = rig_cluster_sum(&p.rig, CLUSTER_upstream_rq_retry);
    run(10 * S);
    assert_int_equal(rig_cluster_sum(&p.rig, CLUSTER_upstream_rq_retry), again);
    assert_true(rig_cluster_sum(&p.rig, CLUSTER_retry_held) > 50);
    expect_only(0);
    finish();
}

/* --- beside T-000-1: a host that takes requests and answers none --- */

/* Whether a request is a large one is known by its answer only; here all answers are. */
static void
where_all_answers_are_large_one_that_never_answers_is_seen_by_the_age_of_requests(void **state)
{
    (void)state;

    prepare(1, PROFILE_ADAPTIVE);
    p.settings.route.large_body = 0;
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    begin(&plain_habits);
    run(20 * S);
    mark();
    server(3)->mood.hang_permille = 1000;
    run(10 * S);
    assert_in_range(out_after(3), 0, S);
    assert_int_equal(decision(3, DECISION_EJECTED, 0)->line, DETECT_AGE);
    expect_only(BIT(3));
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_1_without_ejection_a_fiftieth_fails),
        cmocka_unit_test(t_000_1_the_host_is_suspect_and_out_in_time_and_nobody_else),
        cmocka_unit_test(t_000_1_the_rule_of_20_percent_alone_stays_silent),
        cmocka_unit_test(t_000_1_explain_answers_the_four_questions),
        cmocka_unit_test(t_000_1b_slow_on_a_few_requests_it_is_a_suspect_within_30_s),
        cmocka_unit_test(
            where_all_answers_are_large_one_that_never_answers_is_seen_by_the_age_of_requests),
        cmocka_unit_test(t_000_10_all_three_times_as_slow_and_nobody_goes),
        cmocka_unit_test(t_000_10_unequally_slow_hardly_one_goes_before_the_fleet_is_known_to_be),
        cmocka_unit_test(t_000_10_retries_are_held_while_all_are_slow),
    };

    return cmocka_run_group_tests_name("sim/detection_scenarios", tests, NULL, NULL);
}
