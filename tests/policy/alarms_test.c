/* SPDX-License-Identifier: Apache-2.0 */
/* Which accusations were false, and how many a day. */
#include "policy/alarms.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/normal.h"

#define H    11.0
#define HOUR (3600 * NS_PER_S)

static void one_that_passes_off_is_false_and_said_once(void **state)
{
    enum alarm a = ALARM_NONE;
    (void)state;

    assert_false(alarm_follow(&a, 0, H));
    assert_true(alarm_raise(&a));
    assert_false(alarm_raise(&a)); /* the same one */
    assert_false(alarm_follow(&a, 14, H));
    assert_false(alarm_follow(&a, 2.76, H));
    assert_true(alarm_follow(&a, 2.75, H));
    assert_false(alarm_follow(&a, 0, H));
    assert_true(alarm_raise(&a)); /* another */
}

static void one_that_grows_is_borne_out_and_is_one_until_it_is_gone(void **state)
{
    enum alarm a = ALARM_NONE;
    (void)state;

    assert_true(alarm_raise(&a));
    assert_false(alarm_follow(&a, 16.5, H));
    assert_false(alarm_raise(&a));
    assert_false(alarm_follow(&a, 5, H));
    assert_false(alarm_raise(&a));
    assert_false(alarm_follow(&a, 0, H));
    assert_true(alarm_raise(&a));
}

static void what_is_common_is_neither(void **state)
{
    enum alarm a = ALARM_NONE;
    (void)state;

    alarm_settle(&a);
    assert_true(alarm_raise(&a));
    alarm_settle(&a);
    assert_false(alarm_raise(&a));
    assert_false(alarm_follow(&a, 0, H));
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6 * (1 + fabs(b));
}

static void of_less_than_an_hour_nothing_is_made(void **state)
{
    struct alarms a = {.hour = 0};
    mono_ns begun = 1000 * HOUR + 5 * NS_PER_S;
    (void)state;

    alarms_turn(&a, begun);
    assert_true(alarms_a_day(&a, begun) == 0);
    alarms_add(&a, begun + 60 * NS_PER_S);
    assert_true(near(alarms_a_day(&a, begun + 60 * NS_PER_S), 24));
    alarms_turn(&a, begun + HOUR);
    assert_true(near(alarms_a_day(&a, begun + HOUR), 24));
    alarms_turn(&a, begun + 2 * HOUR);
    assert_true(near(alarms_a_day(&a, begun + 2 * HOUR), 12));
}

static void after_a_day_they_are_forgotten(void **state)
{
    struct alarms a = {.hour = 0};
    mono_ns begun = 1000 * HOUR;
    (void)state;

    alarms_turn(&a, begun);
    for (uint32_t i = 0; i < 6; i++)
        alarms_add(&a, begun + 30 * 60 * NS_PER_S);
    alarms_turn(&a, begun + 24 * HOUR - 1);
    assert_true(near(alarms_a_day(&a, begun + 24 * HOUR - 1), 6));
    alarms_turn(&a, begun + 24 * HOUR);
    assert_true(alarms_a_day(&a, begun + 24 * HOUR) == 0);
    alarms_add(&a, begun + 24 * HOUR);
    assert_true(near(alarms_a_day(&a, begun + 24 * HOUR), 24.0 / 23));
    alarms_turn(&a, begun + 1000 * HOUR); /* nothing was looked at for long */
    assert_true(alarms_a_day(&a, begun + 1000 * HOUR) == 0);
}

/*
 * A CUSUM for a shift of one standard deviation: on samples without it accusations are false, all
 * but one in e^5.5; on samples with it they are borne out.
 */
static void of_nothing_nearly_all_are_false_and_of_a_shift_nearly_none(void **state)
{
    (void)state;

    for (int shifted = 0; shifted < 2; shifted++) {
        struct rng rng;
        double sum = 0;
        uint32_t raised = 0, wrong = 0;
        enum alarm a = ALARM_NONE;

        rng_init(&rng, 7);
        for (uint32_t n = 0; raised < 2000; n++) {
            double z = normal_quantile(fmax(rng_unit(&rng), 1e-12)) + shifted;

            sum = fmin(fmax(0, sum + z - 0.5), 1.5 * 5);
            if (sum > 5)
                raised += alarm_raise(&a);
            wrong += alarm_follow(&a, sum, 5);
            if (shifted && a == ALARM_SETTLED) {
                sum = 0; /* the host is mended */
                (void)alarm_follow(&a, sum, 5);
            }
        }
        if (shifted)
            assert_in_range(wrong, 0, 200);
        else
            assert_in_range(wrong, 1700, 2000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_passes_off_is_false_and_said_once),
        cmocka_unit_test(one_that_grows_is_borne_out_and_is_one_until_it_is_gone),
        cmocka_unit_test(what_is_common_is_neither),
        cmocka_unit_test(of_less_than_an_hour_nothing_is_made),
        cmocka_unit_test(after_a_day_they_are_forgotten),
        cmocka_unit_test(of_nothing_nearly_all_are_false_and_of_a_shift_nearly_none),
    };

    return cmocka_run_group_tests_name("policy/alarms", tests, NULL, NULL);
}
