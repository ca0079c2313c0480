/* SPDX-License-Identifier: Apache-2.0 */
/* What is our own holds against no host: connects lost on a lossy link, waits while we were sick.
 */
#include "policy/scope_world.h"

#define BAD 3

static const struct fault lost = {.times = 1, .lost = 1, .only = {1, 1}};

static double connects_of(uint32_t index)
{
    return detect_sum(&world.judge, index, DETECT_CONNECTS);
}

static void tell(uint32_t host, enum evidence_outcome outcome)
{
    struct evidence e = {.at = world.step * STEP, .outcome = (uint8_t)outcome, .first_us = 20000};

    detect_learn(&world.judge, host, &e);
}

static void connect_to(uint32_t host)
{
    struct evidence e = {.at = world.step * STEP,
                         .outcome = EVIDENCE_OK,
                         .flags = EVIDENCE_FRESH,
                         .first_us = 20000};

    detect_learn(&world.judge, host, &e);
}

/* Connects to |host| get no answer, so many one after the other, while it answers on others. */
static void lose(uint32_t host, uint32_t times)
{
    for (uint32_t n = 0; n < times; n++) {
        tell(host, EVIDENCE_CONNECT_FAILED);
        tell(host, EVIDENCE_OK);
    }
}

static void set_loss(double share)
{
    for (uint32_t i = 0; i < world.hosts; i++)
        world.planted.on[i].resent = share;
}

static enum scope_kind whose(void)
{
    (void)scope_look(&world.scope);
    return scope_of(&world.scope, BAD, DETECT_CONNECTS);
}

static void begin(void)
{
    start(10, 0, 20, 300);
    world.pooled = true;
    run(WARM);
}

/* Two are enough against a host whose peers' segments all come through. */
static void connects_that_get_lost_accuse_while_no_segment_does(void **state)
{
    (void)state;

    begin();
    lose(BAD, 2);
    assert_true(detect_accuses(&world.judge, BAD, DETECT_CONNECTS));
    run(NS_PER_S / 2);
    assert_true(connects_of(BAD) > DETECT_THRESHOLD);
    stop();
}

/* It answers on its other connections: a moment, to see whether segments get lost elsewhere. */
static void a_host_that_answers_meanwhile_is_held_for_a_moment_and_goes(void **state)
{
    (void)state;

    begin();
    lose(BAD, 2);
    assert_int_equal(whose(), SCOPE_CALLER);
    run(SCOPE_PATIENCE - 2 * STEP);
    assert_int_equal(world.ejected, 0);
    run(4 * STEP);
    assert_int_equal(world.ejected, 1 << BAD);
    stop();
}

static void who_does_not_answer_or_refuses_is_not_held_for_it(void **state)
{
    (void)state;

    begin();
    world.step++; /* since it answered last */
    tell(BAD, EVIDENCE_CONNECT_FAILED);
    tell(BAD, EVIDENCE_CONNECT_FAILED);
    assert_false(detect_only_loses(&world.judge, BAD));
    tell(BAD, EVIDENCE_OK);
    assert_true(detect_only_loses(&world.judge, BAD));
    tell(BAD, EVIDENCE_REFUSED);
    tell(BAD, EVIDENCE_OK);
    assert_false(detect_only_loses(&world.judge, BAD));
    stop();
}

/* What came before the retransmits were known, and what comes after it. */
static void lost_connects_say_little_where_segments_to_others_get_lost(void **state)
{
    (void)state;

    begin();
    set_loss(0.1);
    lose(BAD, 2);
    run(NS_PER_S);
    assert_int_equal(world.ejected, 0);
    assert_true(connects_of(BAD) < DETECT_THRESHOLD / 2);
    assert_true(world.memory[BAD].loss > 0.05 && world.memory[BAD].loss < 0.3);
    lose(BAD, 2);
    assert_false(detect_accuses(&world.judge, BAD, DETECT_CONNECTS));
    stop();
}

/* Three of two hundred in the last half second, none before: a run of three is held already. */
static void a_loss_that_has_just_begun_is_seen(void **state)
{
    (void)state;

    begin();
    for (uint32_t i = 0; i < 10; i++)
        scope_learn_path(&world.scope, i, 20, i < 3 ? 1 : 0);
    run(NS_PER_S / 2);
    assert_true(world.memory[BAD].loss > 0.01);
    assert_true(scope_may_be_lost(&world.scope, BAD));
    run(2 * NS_PER_S);
    assert_false(scope_may_be_lost(&world.scope, BAD));
    stop();
}

/* Less than what makes the whole link the caller's: it is known all the same. */
static void a_few_segments_lost_are_a_reason_to_ask_for_more(void **state)
{
    (void)state;

    begin();
    set_loss(0.02);
    run(LONG);
    assert_int_equal(verdict(), SCOPE_NONE);
    lose(BAD, 3);
    assert_false(detect_accuses(&world.judge, BAD, DETECT_CONNECTS));
    assert_true(scope_may_be_lost(&world.scope, BAD));
    lose(BAD, 6);
    assert_true(detect_accuses(&world.judge, BAD, DETECT_CONNECTS));
    assert_false(scope_may_be_lost(&world.scope, BAD));
    assert_true(scope_may_be_lost(&world.scope, BAD + 1)); /* told before its evidence */
    tell(BAD + 1, EVIDENCE_REFUSED);
    assert_false(scope_may_be_lost(&world.scope, BAD + 1));
    stop();
}

static void no_run_is_bad_luck_where_no_segment_gets_lost(void **state)
{
    (void)state;

    begin();
    lose(BAD, 3);
    run(NS_PER_S / 2);
    assert_false(scope_may_be_lost(&world.scope, BAD));
    world.judge.config.threshold = 30;
    assert_false(scope_may_be_lost(&world.scope, BAD));
    stop();
}

/* A link that stays as lossy takes nothing more off; and what a good connect cleared is no more. */
static void each_lost_connect_is_weighed_anew_once(void **state)
{
    double sum;
    (void)state;

    begin();
    lose(BAD, 2);
    detect_weigh_lost(&world.judge, BAD, 0.1);
    sum = connects_of(BAD);
    assert_true(sum > 3 && sum < 4); /* 2 ln 5 */
    for (uint32_t n = 0; n < 4; n++)
        detect_weigh_lost(&world.judge, BAD, 0.1);
    assert_true(fabs(connects_of(BAD) - sum) < 1e-9);
    while (connects_of(BAD) > 0)
        connect_to(BAD);
    lose(BAD, 1);
    assert_int_equal(world.memory[BAD].unanswered, 1);
    stop();
}

static void refusals_are_brought_by_a_link_however_lossy(void **state)
{
    (void)state;

    begin();
    set_loss(0.03);
    run(LONG);
    tell(BAD, EVIDENCE_REFUSED);
    tell(BAD, EVIDENCE_REFUSED);
    assert_true(detect_accuses(&world.judge, BAD, DETECT_CONNECTS));
    run(SCOPE_PATIENCE + 2 * STEP);
    assert_int_equal(world.ejected, 1 << BAD);
    stop();
}

/* A request a second and host: now and then a second passes in which none of them is lost. */
static void a_lossy_link_is_told_from_few_requests_and_goes_on_being_it(void **state)
{
    uint32_t turns;
    (void)state;

    for (uint64_t seed = 330; seed < 335; seed++) {
        start(10, 0, 1, seed);
        run(6 * WARM);
        set_loss(0.2);
        for (uint32_t n = 0; n < 60 && verdict() != SCOPE_CALLER; n++)
            run(NS_PER_S);
        turns = world.kinds[SCOPE_CALLER];
        run(30 * NS_PER_S);
        assert_true(world.kinds[SCOPE_CALLER] - turns >= 57); /* of 60 */
        set_loss(0);
        run(LONG);
        assert_int_equal(verdict(), SCOPE_NONE);
        stop();
    }
}

/* A host that is dead has its segments sent again and again: no excuse for the next one. */
static void the_losses_of_one_host_excuse_no_other(void **state)
{
    (void)state;

    begin();
    world.planted.on[7].resent = 1;
    run(LONG);
    world.planted.on[BAD] = lost;
    run(2 * NS_PER_S);
    assert_true((world.ejected & 1 << BAD) != 0);
    stop();
}

/* Cut off, we see no host: what was held against one before that was known is over with it. */
static void what_was_waited_for_while_we_were_sick_is_forgotten(void **state)
{
    (void)state;

    begin();
    tell(BAD, EVIDENCE_CONNECT_FAILED);
    tell(BAD, EVIDENCE_CONNECT_FAILED);
    for (uint32_t n = 0; n < 2; n++)
        tell(BAD, EVIDENCE_LATE);
    tell(BAD, EVIDENCE_ERROR);
    assert_true(detect_accuses(&world.judge, BAD, DETECT_CONNECTS));
    assert_true(detect_sum(&world.judge, BAD, DETECT_AGE) > 0);
    world.caller = SCOPE_CALLER_CUT_OFF;
    world.rate = 0;
    run(NS_PER_S / 2);
    assert_true(connects_of(BAD) <= 0);
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        bool error = line == DETECT_ERRORS_SOME || line == DETECT_ERRORS_MANY;

        assert_int_equal(detect_sum(&world.judge, BAD, (enum detect_line)line) > 0, error);
    }
    world.caller = SCOPE_CALLER_WELL;
    run(LONG);
    assert_int_equal(world.ejected, 0);
    stop();
}

static void some_late_loops_void_nothing(void **state)
{
    (void)state;

    begin();
    tell(BAD, EVIDENCE_CONNECT_FAILED);
    world.caller = SCOPE_CALLER_PARTLY;
    run(NS_PER_S / 2);
    assert_true(connects_of(BAD) > 5);
    stop();
}

/* --- laws --- */

static double made_of(const struct detect_step *s)
{
    return fmin(fmax(s->from + s->gain, s->least), s->most);
}

/* Sums follow from what is kept of each half second, whatever was weighed anew; never up by it. */
static void what_is_weighed_anew_is_never_more_and_can_be_done_again(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        start(4, 0, 5, 310 + seed);
        for (uint32_t n = 0; n < 400; n++) {
            uint32_t host = rng_below(&world.rng, 4);
            double before = connects_of(host);
            struct detect_step now, then;

            lose(host, rng_below(&world.rng, 3));
            if (rng_below(&world.rng, 3) == 0)
                tell(host, EVIDENCE_REFUSED);
            before = connects_of(host);
            if (rng_below(&world.rng, 2) == 0)
                detect_weigh_lost(&world.judge, host, 0.3 * rng_unit(&world.rng));
            assert_true(connects_of(host) <= before && connects_of(host) >= 0);
            assert_true(detect_past(&world.judge, host, DETECT_CONNECTS, 0, &now));
            assert_true(fabs(made_of(&now) - connects_of(host)) < 1e-3);
            if (rng_below(&world.rng, 10) == 0)
                detect_turn(&world.judge);
            if (rng_below(&world.rng, 30) == 0)
                detect_void_waits(&world.judge);
            assert_true(detect_past(&world.judge, host, DETECT_CONNECTS, 0, &now));
            if (detect_past(&world.judge, host, DETECT_CONNECTS, 1, &then))
                assert_true(fabs(made_of(&then) - now.from) < 1e-3);
        }
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connects_that_get_lost_accuse_while_no_segment_does),
        cmocka_unit_test(a_host_that_answers_meanwhile_is_held_for_a_moment_and_goes),
        cmocka_unit_test(who_does_not_answer_or_refuses_is_not_held_for_it),
        cmocka_unit_test(lost_connects_say_little_where_segments_to_others_get_lost),
        cmocka_unit_test(a_loss_that_has_just_begun_is_seen),
        cmocka_unit_test(a_few_segments_lost_are_a_reason_to_ask_for_more),
        cmocka_unit_test(no_run_is_bad_luck_where_no_segment_gets_lost),
        cmocka_unit_test(each_lost_connect_is_weighed_anew_once),
        cmocka_unit_test(refusals_are_brought_by_a_link_however_lossy),
        cmocka_unit_test(a_lossy_link_is_told_from_few_requests_and_goes_on_being_it),
        cmocka_unit_test(the_losses_of_one_host_excuse_no_other),
        cmocka_unit_test(what_was_waited_for_while_we_were_sick_is_forgotten),
        cmocka_unit_test(some_late_loops_void_nothing),
        cmocka_unit_test(what_is_weighed_anew_is_never_more_and_can_be_done_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
