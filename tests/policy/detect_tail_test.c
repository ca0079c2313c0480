/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for what is late only now and then: the tail, and stalls. */
#include "detect_world.h"

#include "policy/detect_verdict.h"

#define H    DETECT_THRESHOLD
#define STEP (0.26 * H)

/* Two are more than a hundredth of what the others have kept. */
static void what_is_late_is_not_said_by_the_hosts_that_are(void **state)
{
    struct world *w = world_new(10);
    uint32_t usual;
    (void)state;

    half_seconds(w, 40);
    usual = w->judge.p99[0];
    w->times[3] = w->times[7] = 10;
    half_seconds(w, 20);
    assert_true(w->memory[3].late_since != 0 && w->memory[7].late_since != 0);
    assert_in_range(w->judge.p99[0], usual / 2, usual * 2);
    assert_in_range(w->judge.late_after[0], usual * 2, usual * 10);
    world_free(w);
}

/* It stands still for a half second: five requests are late while they are open, and end in the
 * next one. */
static void stand_still(struct world *w, uint32_t host, bool told)
{
    for (int n = 0; n < DETECT_GLANCES; n++) {
        for (uint32_t i = 0; i < w->judge.count; i++) {
            if (i != host)
                tell(w, i, EVIDENCE_OK, healthy_us(w));
            else if (told)
                tell(w, i, EVIDENCE_LATE, 400000);
        }
    }
    detect_turn(&w->judge);
    for (int n = 0; n < DETECT_GLANCES; n++)
        tell(w, host, EVIDENCE_OK, 500000);
    half_second(w);
}

static void a_request_that_is_late_while_it_is_open_counts_then_and_not_again(void **state)
{
    const double most = DETECT_STEP_SHARE * DETECT_THRESHOLD;
    struct world *w = world_new(10);
    double before;
    (void)state;

    half_seconds(w, 40);
    stand_still(w, 3, false); /* known by its end only: all of it in one half second */
    assert_true(sum(w, 3, DETECT_TAIL) <= most);
    assert_true(sum(w, 3, DETECT_TAIL) > most / 2);
    half_seconds(w, 60);
    assert_true(sum(w, 3, DETECT_TAIL) == 0);
    stand_still(w, 3, true);
    before = sum(w, 3, DETECT_TAIL);
    assert_true(before <= most && before > most / 2); /* their ends have added nothing */
    assert_int_equal(w->memory[3].told_late, 0);
    for (int n = 0; n < DETECT_GLANCES; n++)
        tell(w, 3, EVIDENCE_OK, 500000); /* but what is late anew does */
    half_second(w);
    assert_true(sum(w, 3, DETECT_TAIL) > before + most / 2);
    world_free(w);
}

static void one_answer_in_ten_very_late_is_seen_by_the_tail_not_by_ranks(void **state)
{
    struct world *w = world_new(HOSTS);
    bool tail = false;
    (void)state;

    half_seconds(w, 100);
    for (uint32_t n = 0; n < 80; n++) {
        double before;

        if (n % 2 == 0)
            tell(w, 3, EVIDENCE_OK, 1000000);
        before = w->memory[3].sum[DETECT_TAIL];
        half_second(w);
        assert_true(sum(w, 3, DETECT_TAIL) <= before + STEP + 1e-9);
        tail |= holds(w, 3, DETECT_TAIL);
        assert_false(holds(w, 3, DETECT_RANK));
    }
    assert_true(tail);
    half_seconds(w, 200);
    assert_true(sum(w, 3, DETECT_TAIL) < H / 4);
    world_free(w);
}

/* One request in a hundred, with a second in between: nothing else is wrong with it. */
static void a_host_that_stalls_now_and_then_is_seen_by_the_line_made_for_it(void **state)
{
    struct world *w = world_new(10);
    uint32_t stalled = 0;
    (void)state;

    half_seconds(w, 60);
    for (; stalled < 20 && !holds(w, 3, DETECT_STALLS); stalled++) {
        tell(w, 3, EVIDENCE_LATE, 400000);
        half_second(w);
        tell(w, 3, EVIDENCE_OK, 800000); /* its end: it has counted already */
        half_seconds(w, 9);
        assert_false(holds(w, 3, DETECT_TAIL) || holds(w, 3, DETECT_RANK));
    }
    assert_in_range(stalled, 4, 8);
    assert_int_equal(verdict_of(&w->judge, &(struct detection_config){.profile = PROFILE_ADAPTIVE},
                                3, DETECT_STALLS)
                         .deed,
                     VERDICT_SUSPECT);
    world_free(w);
}

/* Four are enough, though what is well in between takes off a little. */
static void four_stalls_a_few_seconds_apart_are_enough(void **state)
{
    struct world *w = world_new(10);
    (void)state;

    half_seconds(w, 300);
    for (uint32_t n = 0; n < 4; n++) {
        assert_false(holds(w, 3, DETECT_STALLS));
        half_seconds(w, 5);
        tell(w, 3, EVIDENCE_OK, 800000);
        half_second(w);
    }
    assert_true(holds(w, 3, DETECT_STALLS));
    world_free(w);
}

/* One request of each freeze stands still for long, and nothing of the other is usual for one. */
static void two_hosts_that_freeze_are_seen_after_three_freezes(void **state)
{
    struct world *w = world_new(10);
    (void)state;

    half_seconds(w, 60);
    for (uint32_t n = 0; n < 3; n++) {
        for (uint32_t i = 3; i < 5; i++) {
            assert_false(holds(w, i, DETECT_STALLS));
            tell(w, i, EVIDENCE_LATE, 400000);
        }
        half_second(w);
        for (uint32_t i = 3; i < 5; i++)
            tell(w, i, EVIDENCE_TIMEOUT, 2000000);
        assert_true(n < 2 || (holds(w, 3, DETECT_STALLS) && holds(w, 4, DETECT_STALLS)));
        half_seconds(w, 5);
    }
    assert_true(w->judge.stalls[1].share < 0.0002); /* what they had is not usual */
    world_free(w);
}

/* Whoever answers well between two freezes is no better for that. */
static void the_pause_between_two_freezes_is_known_until_it_is_longer(void **state)
{
    struct world *w = world_new(10);
    (void)state;

    half_seconds(w, 60);
    for (uint32_t n = 0; n < 4; n++) {
        assert_int_equal(detect_pause(&w->judge, 3), n < 2 ? 0 : 5 * NS_PER_S);
        tell(w, 3, EVIDENCE_LATE, 400000);
        half_second(w);
        tell(w, 3, EVIDENCE_TIMEOUT, 2000000);
        half_seconds(w, 9);
    }
    for (uint32_t n = 10; n <= 12; n++, half_second(w))
        assert_true(detect_may_stall(&w->judge, 3));
    assert_false(detect_may_stall(&w->judge, 3));
    assert_false(detect_may_stall(&w->judge, 4));
    detect_acquit(&w->judge, 3);
    assert_int_equal(detect_pause(&w->judge, 3), 0);
    world_free(w);
}

/* It is not stalls that it has to be well of. */
static void who_is_slow_all_the_time_has_no_pauses(void **state)
{
    struct world *w = world_new(10);
    (void)state;

    half_seconds(w, 60);
    w->times[3] = 10;
    half_seconds(w, 20);
    assert_true(detect_accuses_at_all(&w->judge, 3));
    assert_int_equal(detect_pause(&w->judge, 3), 0);
    assert_false(detect_may_stall(&w->judge, 3));
    world_free(w);
}

/* Where each host has it, it is nobody's fault, and what it takes to be accused of it is more. */
static void what_stalls_everywhere_accuses_nobody(void **state)
{
    struct world *w = world_new(10);
    (void)state;

    half_seconds(w, 60);
    for (uint32_t n = 0; n < 1000; n++) {
        tell(w, (n * 7) % 10, EVIDENCE_OK, 800000);
        half_seconds(w, 4);
        for (uint32_t i = 0; i < 10; i++)
            assert_false(holds(w, i, DETECT_STALLS));
    }
    assert_true(w->judge.stalls[0].share > 0.003 && w->judge.stalls[0].share < 0.008);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_late_is_not_said_by_the_hosts_that_are),
        cmocka_unit_test(a_request_that_is_late_while_it_is_open_counts_then_and_not_again),
        cmocka_unit_test(one_answer_in_ten_very_late_is_seen_by_the_tail_not_by_ranks),
        cmocka_unit_test(a_host_that_stalls_now_and_then_is_seen_by_the_line_made_for_it),
        cmocka_unit_test(four_stalls_a_few_seconds_apart_are_enough),
        cmocka_unit_test(two_hosts_that_freeze_are_seen_after_three_freezes),
        cmocka_unit_test(the_pause_between_two_freezes_is_known_until_it_is_longer),
        cmocka_unit_test(who_is_slow_all_the_time_has_no_pauses),
        cmocka_unit_test(what_stalls_everywhere_accuses_nobody),
    };

    return cmocka_run_group_tests_name("policy/detect_tail", tests, NULL, NULL);
}
