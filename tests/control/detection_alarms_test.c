/* SPDX-License-Identifier: Apache-2.0 */
/* Which accusations are counted as false, through the watch. */
#include "control/watch_world.h"

#include "control/detection_say.h"
#include "control/effect_watch.h"
#include "control/outlier_deeds.h"

static const struct badness slow = {10, 0}, failing = {1, 50};

static struct watched *watched(struct world *w)
{
    return w->watch->all[0];
}

static uint64_t accusations(struct world *w)
{
    return stat(w, OUTLIER_STAT_accusations);
}

static uint64_t false_alarms(struct world *w)
{
    return stat(w, OUTLIER_STAT_false_alarms);
}

/* Three errors running, and never again. */
static void stumble(struct world *w)
{
    for (uint32_t i = 0; i < 3; i++)
        put(w, BAD, EVIDENCE_ERROR, 20000, 0);
    serve(w, ALL, &fine, 40 * S);
}

static void a_stumble_is_a_false_alarm_and_a_fault_that_stays_is_none(void **state)
{
    struct set_up u = observing();
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 10 * S);
    assert_int_equal(accusations(&w), 0);
    stumble(&w);
    assert_in_range(accusations(&w), 1, 2); /* by one line of errors, or both */
    assert_int_equal(false_alarms(&w), accusations(&w));
    assert_int_equal(stat(&w, OUTLIER_STAT_false_alarm_rate), 24000 * false_alarms(&w));
    serve(&w, ALL, &failing, 60 * S);
    assert_int_equal(false_alarms(&w) + 2, accusations(&w)); /* one for as long as it lasts */
    serve(&w, ALL, &fine, 60 * S);
    assert_int_equal(false_alarms(&w) + 2, accusations(&w));
    stop(&w);
}

static void a_slow_host_that_is_cut_is_none(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 10 * S);
    serve(&w, ALL, &slow, 20 * S);
    assert_int_equal(life(&w, BAD), LIFE_SUSPECT);
    assert_true(accusations(&w) > 0);
    serve(&w, ALL, &fine, 60 * S);
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    assert_int_equal(false_alarms(&w), 0);
    stop(&w);
}

/* All of them are slow: some pass the threshold, and none is to blame. */
static void what_all_have_is_none(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 20 * S);
    for (uint32_t i = 0; i < 200; i++) {
        for (uint32_t slot = 0; slot < HOSTS; slot++)
            put(&w, slot, slot % 2 == 0 ? EVIDENCE_ERROR : EVIDENCE_OK, 200000 + slot * 20000, 0);
        pass_to(&w, w.now + 100 * MS);
    }
    assert_true(accusations(&w) > 0);
    serve(&w, ALL, &fine, 60 * S);
    assert_int_equal(false_alarms(&w), 0);
    stop(&w);
}

/* One comes later still than the others, but all of them are late. */
static void who_is_accused_while_all_are_slow_is_none(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 20 * S);
    for (uint32_t i = 0; i < 18; i++) {
        for (uint32_t slot = 0; slot < HOSTS; slot++)
            put(&w, slot, EVIDENCE_OK, (slot == BAD ? 200000 : 60000) + 1000 * i, 0);
        pass_to(&w, w.now + 100 * MS);
    }
    serve(&w, ALL, &fine, 60 * S);
    assert_true(accusations(&w) > 0);
    assert_int_equal(false_alarms(&w), 0);
    stop(&w);
}

/* Its evidence is void then, which is not the same as gone. */
static void who_is_put_out_while_he_stands_accused_is_none(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    struct world w;
    (void)state;

    u.outlier.max_ejection_percent = 10;
    start(&w, &u);
    serve(&w, ALL, &fine, 10 * S);
    assert_int_equal(outlier_watch_eject(w.watch, w.state, 0, w.now), OUTLIER_GUARD_NONE);
    for (uint32_t i = 0; i < 3; i++)
        put(&w, BAD, EVIDENCE_ERROR, 20000, 0);
    serve(&w, ALL & ~1u, &fine, 2 * S);
    assert_true(accusations(&w) > 0);
    assert_false(out(&w, BAD));
    assert_true(outlier_watch_pardon(w.watch, w.state, 0, w.now));
    assert_int_equal(outlier_watch_eject(w.watch, w.state, BAD, w.now), OUTLIER_GUARD_NONE);
    serve(&w, ALL & ~(1u << BAD), &fine, 2 * S);
    assert_int_equal(false_alarms(&w), 0);
    stop(&w);
}

static void an_ejection_by_a_line_that_was_for_nothing_is_one_and_by_hand_none(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    (void)state;

    for (uint32_t by_hand = 0; by_hand < 2; by_hand++) {
        struct world w;

        start(&w, &u);
        serve(&w, ALL, &fine, 40 * S);
        if (by_hand == 0)
            effect_accused(watched(&w), DETECT_RANK);
        assert_int_equal(by_hand ? outlier_watch_eject(w.watch, w.state, BAD, w.now)
                                 : deeds_detected(watched(&w), BAD, w.now),
                         OUTLIER_GUARD_NONE);
        serve(&w, ALL, &fine, 60 * S);
        assert_false(out(&w, BAD));
        assert_int_equal(cell_read(&w.state->effect[EFFECT_STAT_false_ejections]), 1);
        assert_int_equal(false_alarms(&w), 1 - by_hand);
        stop(&w);
    }
}

/* 100 a second: at 11 nats 45 a day are for 200. */
static void what_the_threshold_gives_is_of_the_present_rate_and_drift_is_the_judge_s(void **state)
{
    struct set_up u = observing();
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 60 * S);
    assert_in_range(stat(&w, OUTLIER_STAT_false_alarm_rate_expected), 20000, 25000);
    assert_int_equal(stat(&w, OUTLIER_STAT_drift),
                     1000 * watched(&w)->detection->judge.deviation + 0.5);
    assert_in_range(stat(&w, OUTLIER_STAT_drift), 1, 200);
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stumble_is_a_false_alarm_and_a_fault_that_stays_is_none),
        cmocka_unit_test(a_slow_host_that_is_cut_is_none),
        cmocka_unit_test(what_all_have_is_none),
        cmocka_unit_test(who_is_accused_while_all_are_slow_is_none),
        cmocka_unit_test(who_is_put_out_while_he_stands_accused_is_none),
        cmocka_unit_test(an_ejection_by_a_line_that_was_for_nothing_is_one_and_by_hand_none),
        cmocka_unit_test(what_the_threshold_gives_is_of_the_present_rate_and_drift_is_the_judge_s),
    };

    return cmocka_run_group_tests_name("control/detection_alarms", tests, NULL, NULL);
}
