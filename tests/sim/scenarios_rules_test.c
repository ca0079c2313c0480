/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of reference/scenarios.md about what teams write down, by their names, through the
 * whole data plane: the borders of T-000-9, and T-000-19 (few requests). On the pure policy:
 * tests/policy/detect_rules_test.c.
 */
#include <stdlib.h>

#include "sim/detection_plane.h"

#define BAD 1

/* What host BAD does to its requests, which are counted from 0. */
static struct {
    bool (*fails)(uint32_t n);
    bool (*hangs)(uint32_t n);
    bool (*resets)(uint32_t n);
    bool (*is_late)(uint32_t n);
    uint32_t n;
} script;

static bool asks(bool (*question)(uint32_t n), uint32_t n)
{
    return question != NULL && question(n);
}

#define USUAL (20 * MS)
#define LATE  (100 * MS) /* each 25th of everybody's */

static bool is_25th(uint64_t n)
{
    return n % 25 == 24;
}

static void decide_well(struct server *s, const struct wish *wish, const struct message_head *head,
                        struct answer_plan *plan)
{
    (void)wish;
    (void)head;
    plan->delay = is_25th(s->arrivals) ? LATE : USUAL;
}

static void decide(struct server *s, const struct wish *wish, const struct message_head *head,
                   struct answer_plan *plan)
{
    uint32_t n = script.n++;

    decide_well(s, wish, head, plan);
    if (asks(script.is_late, n))
        plan->delay = plan->delay * 26 / 10;
    if (asks(script.fails, n))
        plan->status = 500;
    if (asks(script.hangs, n))
        plan->delay = MONO_NEVER;
    if (asks(script.resets, n))
        plan->broken = BREAK_BEFORE_HEAD;
}

/* One rule and nothing beside it; one worker, each host in turn. */
static void begin_rule(const struct rule *rule, uint32_t hosts)
{
    struct cluster *c = &p.settings.cluster;

    prepare(1, PROFILE_RULES);
    p.settings.hosts = hosts;
    p.settings.workers = 1;
    c->lb = LB_ROUND_ROBIN;
    c->detection.rules = rule;
    c->detection.rule_count = 1;
    c->detection.rules_act = true;
    c->detection.detect.latency = c->detection.detect.errors = c->detection.detect.connections =
        false;
    c->outlier.consecutive_5xx = c->outlier.consecutive_local_origin = 0;
    p.settings.retry.policy.attempts = 0;
    p.settings.route.timeout = p.settings.route.per_try_timeout = 400 * MS;
    begin(NULL);
    memset(&script, 0, sizeof(script));
    for (uint32_t i = 0; i < hosts; i++)
        server(i)->decide = i == BAD ? decide : decide_well;
    mark();
}

/* To each host a request, each |gap|. */
static void rounds(uint32_t count, span_ns gap)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t h = 0; h < p.settings.hosts; h++)
            plane_get(&p);
        run(gap);
    }
}

static void expect_by_rule(enum rule_signal signal)
{
    const struct decision *d = decision(BAD, DECISION_EJECTED, 0);

    assert_non_null(d);
    assert_true(plane_out(&p, BAD));
    assert_int_equal(d->cause, CAUSE_RULE);
    assert_int_equal(d->rule, signal);
    expect_words(words(d), rule_signal_text(signal));
    expect_only(BIT(BAD));
}

static void expect_nothing(void)
{
    assert_int_equal(journal_next(control_journal(p.rig.control)), first_decision);
    assert_int_equal(life(BAD)->state, LIFE_HEALTHY);
    assert_int_equal(said("endpoint.rule"), 0);
    expect_only(0);
}

static bool always(uint32_t n)
{
    (void)n;
    return true;
}

/* --- five answers 5xx in a row --- */

static bool first_five(uint32_t n)
{
    return n < 5;
}

static void t_000_9_five_5xx_in_a_row_within_29_s_are_a_candidate(void **state)
{
    (void)state;

    begin_rule(&rules_default[0], 4);
    script.fails = first_five;
    rounds(4, 7250 * MS);
    expect_nothing();
    rounds(1, 100 * MS);
    expect_by_rule(RULE_CONSECUTIVE_5XX);
    assert_in_range(decision(BAD, DECISION_EJECTED, 0)->when - fault_at, 29000 * MS, 29100 * MS);
    finish();
}

static void t_000_9_five_5xx_spread_over_31_s_are_none(void **state)
{
    (void)state;

    begin_rule(&rules_default[0], 4);
    script.fails = always;
    rounds(20, 7750 * MS);
    expect_nothing();
    finish();
}

/* --- a share of timeouts and resets --- */

/* Slices of the rule's time are of 3 s: a hundred requests in each, then half a second of quiet, so
 * that a timeout belongs to the slice of its request. */
static void slices(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        run(3 * S - p.rig.world.now % (3 * S));
        rounds(100, 25 * MS);
    }
}

static bool fifth_resets(uint32_t n)
{
    return n % 10 == 4;
}

static bool fifth_hangs(uint32_t n)
{
    return n % 10 == 9;
}

static bool fifth_resets_and_one_more(uint32_t n)
{
    return fifth_resets(n) || n == 998;
}

static void begin_share(void)
{
    begin_rule(&rules_default[1], 4);
    server(BAD)->mood.says_close_permille = 1000; /* none is lost in the race of keep-alive */
    script.resets = fifth_resets;
    script.hangs = fifth_hangs;
}

static void t_000_9_20_0_percent_of_timeouts_and_resets_are_no_candidate(void **state)
{
    (void)state;

    begin_share();
    slices(25);
    assert_int_equal(script.n, 2500);
    expect_nothing();
    finish();
}

static void t_000_9_20_1_percent_of_timeouts_and_resets_are_a_candidate(void **state)
{
    (void)state;

    begin_share();
    script.resets = fifth_resets_and_one_more;
    slices(9);
    expect_nothing();
    slices(1);
    run(500 * MS);
    expect_by_rule(RULE_TIMEOUT_OR_RESET);
    assert_true(decision(BAD, DECISION_EJECTED, 0)->statistic > 0.2);
    assert_true(decision(BAD, DECISION_EJECTED, 0)->statistic <= 0.201);
    finish();
}

/* --- p99 --- */

static uint32_t first_late, windows_late;

static bool in_late_windows(uint32_t n)
{
    return n >= first_late && n < first_late + 200 * windows_late;
}

/* Four in 200, none of them a late answer. */
static bool some_hang(uint32_t n)
{
    return in_late_windows(n) && n % 50 == 10;
}

/* After two windows that are well. */
static void late_for(uint32_t windows, bool (*hangs)(uint32_t n))
{
    begin_rule(&rules_default[2], 5);
    windows_late = windows;
    script.is_late = in_late_windows;
    script.hangs = hangs;
    run(10 * S - p.rig.world.now % (10 * S));
    first_late = 400;
    rounds(400 + 200 * windows, 50 * MS);
    assert_in_range(p.rig.world.now % (10 * S), 0, 10 * MS); /* windows are whole */
    rounds(100, 50 * MS);
}

static void expect_suspect(uint32_t windows)
{
    const struct decision *d = decision(BAD, DECISION_SUSPECTED, 0);

    assert_non_null(d);
    assert_int_equal(d->cause, CAUSE_RULE);
    assert_int_equal(d->rule, RULE_P99);
    assert_int_equal(life(BAD)->state, LIFE_SUSPECT);
    assert_int_equal(decided(BAD, DECISION_EJECTED), 0);
    assert_true(was_logged("endpoint.rule", windows == 2 ? "window 2" : "window 3"));
    expect_only(0);
}

static void
t_000_9_a_p99_of_2_6_times_in_3_windows_with_rising_timeouts_is_a_candidate(void **state)
{
    (void)state;

    late_for(3, some_hang);
    expect_by_rule(RULE_P99);
    assert_true(decision(BAD, DECISION_EJECTED, 0)->statistic >= 2.5);
    finish();
}

static void t_000_9_a_p99_of_2_6_times_in_2_windows_is_a_suspect(void **state)
{
    (void)state;

    late_for(2, some_hang);
    expect_suspect(2);
    finish();
}

static void t_000_9_a_p99_of_2_6_times_without_more_timeouts_is_a_suspect(void **state)
{
    (void)state;

    late_for(3, NULL);
    expect_suspect(3);
    assert_true(was_logged("endpoint.rule", "the signal beside it does not agree"));
    finish();
}

/* --- connects that fail --- */

/* Of its |n| requests each |gap| the first, the middle and the last find no way in. */
static void three_refused(uint32_t n, span_ns gap)
{
    begin_rule(&rules_default[4], 4);
    server(BAD)->mood.says_close_permille = 1000; /* a connect for each request */
    rounds(3, gap);
    for (uint32_t i = 0; i <= n; i++) {
        server_set_road(server(BAD), i % (n / 2) == 0 ? ROAD_REFUSES : ROAD_OPEN);
        rounds(1, i == n ? 100 * MS : gap);
    }
}

static void t_000_9_three_connects_that_fail_in_9_9_s_are_a_candidate(void **state)
{
    (void)state;

    three_refused(18, 550 * MS);
    expect_by_rule(RULE_CONNECT_FAILURE);
    assert_int_equal(score(0, 60 * S).asked, score(0, 60 * S).answered); /* another host answers */
    finish();
}

static void t_000_9_three_connects_that_fail_in_10_1_s_are_none(void **state)
{
    (void)state;

    three_refused(20, 505 * MS);
    expect_nothing();
    finish();
}

/* --- T-000-19: three hosts, a tenth of a request a second each --- */

static bool three_of_ten(uint32_t n)
{
    return n < 10 ? n % 3 == 1 : n >= 20;
}

/* All of the rules, and five answers 5xx in a row however long they take. */
static void begin_t_000_19(enum detection_profile profile)
{
    prepare(1, profile);
    p.settings.hosts = 3;
    p.settings.workers = 1;
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    p.settings.cluster.detection.rules_act = profile == PROFILE_RULES;
    p.settings.cluster.detection.detect.errors = false; /* the rules alone */
    p.settings.retry.policy.attempts = 0;
    begin(NULL);
    memset(&script, 0, sizeof(script));
    for (uint32_t i = 0; i < 3; i++)
        server(i)->decide = i == BAD ? decide : decide_well;
    script.fails = three_of_ten;
    mark();
}

static void t_000_19_three_failures_among_ten_requests_are_no_ratio(void **state)
{
    (void)state;

    begin_t_000_19(PROFILE_RULES);
    rounds(10, 10 * S);
    assert_int_equal(said("endpoint.rule"), 0);
    assert_int_equal(decided(BAD, DECISION_EJECTED) + decided(BAD, DECISION_REFUSED), 0);
    expect_only(0);
    rounds(10, 10 * S); /* well */
    rounds(4, 10 * S);
    assert_int_equal(decided(BAD, DECISION_REFUSED), 0);
    rounds(1, S); /* the fifth in a row: it would go, but three are few */
    assert_non_null(refused(BAD, GUARD_FEW_HEALTHY));
    assert_int_equal(refused(BAD, GUARD_FEW_HEALTHY)->cause, CAUSE_TRIGGER);
    assert_int_equal(refused(BAD, GUARD_FEW_HEALTHY)->trigger, OUTLIER_CONSECUTIVE_5XX);
    expect_only(0);
    finish();
}

static void t_000_19_explain_says_how_long_detection_takes(void **state)
{
    double seconds;
    (void)state;

    begin_t_000_19(PROFILE_RULES);
    script.fails = NULL;
    rounds(9, 10 * S);
    rounds(1, 5 * S); /* between two requests */
    expect_words(why(BAD), "at its present rate of 0.10 requests/s");
    assert_non_null(strstr(why(BAD), "all fail: 2 answers, "));
    seconds = strtod(strstr(why(BAD), "all fail: 2 answers, ") + 21, NULL);
    assert_true(seconds > 18 && seconds < 22);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_9_five_5xx_in_a_row_within_29_s_are_a_candidate),
        cmocka_unit_test(t_000_9_five_5xx_spread_over_31_s_are_none),
        cmocka_unit_test(t_000_9_20_0_percent_of_timeouts_and_resets_are_no_candidate),
        cmocka_unit_test(t_000_9_20_1_percent_of_timeouts_and_resets_are_a_candidate),
        cmocka_unit_test(
            t_000_9_a_p99_of_2_6_times_in_3_windows_with_rising_timeouts_is_a_candidate),
        cmocka_unit_test(t_000_9_a_p99_of_2_6_times_in_2_windows_is_a_suspect),
        cmocka_unit_test(t_000_9_a_p99_of_2_6_times_without_more_timeouts_is_a_suspect),
        cmocka_unit_test(t_000_9_three_connects_that_fail_in_9_9_s_are_a_candidate),
        cmocka_unit_test(t_000_9_three_connects_that_fail_in_10_1_s_are_none),
        cmocka_unit_test(t_000_19_three_failures_among_ten_requests_are_no_ratio),
        cmocka_unit_test(t_000_19_explain_says_how_long_detection_takes),
    };

    return cmocka_run_group_tests_name("sim/scenarios_rules", tests, NULL, NULL);
}
