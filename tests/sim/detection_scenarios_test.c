/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of reference/scenarios.md about detection, by their names, through the whole data
 * plane in virtual time. Where a scenario gives a share or a percentile, several seeds are run.
 */
#include <stdlib.h>

#include "sim/detection_plane.h"

#define SEEDS 20

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_1_without_ejection_a_fiftieth_fails),
        cmocka_unit_test(t_000_1_the_host_is_suspect_and_out_in_time_and_nobody_else),
    };

    return cmocka_run_group_tests_name("sim/detection_scenarios", tests, NULL, NULL);
}
