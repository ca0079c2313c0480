/* SPDX-License-Identifier: Apache-2.0 */
/* How soon the judge accuses, as it is said by `firebreak check --explain`. */
#include "control/detection_reach.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/snapshot.h"
#include "policy/detection.h"

static double seconds(const struct detect_config *c, uint32_t hosts, double rate, double times,
                      double failing)
{
    const struct detection_fault fault = {.rate = rate, .times = times, .failing = failing};
    span_ns took = detection_reach(c, hosts, &fault);

    return took == MONO_NEVER ? INFINITY : (double)took / (double)NS_PER_S;
}

static double slower(uint32_t hosts, double rate, double times)
{
    return seconds(&default_detection.detect, hosts, rate, times, 0);
}

static void the_more_requests_the_sooner_down_to_four_half_seconds(void **state)
{
    double one = slower(10, 1, 3), ten = slower(10, 10, 3), hundred = slower(10, 100, 3);
    (void)state;

    assert_true(one > ten && ten >= hundred);
    assert_true(hundred >= 1.4); /* a half second adds 0.26 of the threshold at most */
    assert_true(ten <= 3);       /* detection.md B18: 1.6 s */
    assert_true(one >= 4 && one <= 20);
}

static void the_slower_the_sooner(void **state)
{
    (void)state;

    assert_true(slower(10, 2, 2) > slower(10, 2, 3));
    assert_true(slower(10, 2, 3) >= slower(10, 2, 10));
}

static void where_nothing_is_wrong_nobody_is_accused(void **state)
{
    (void)state;

    assert_true(isinf(slower(10, 10, 1)));
}

static void what_is_off_accuses_nobody(void **state)
{
    struct detect_config errors_only = default_detection.detect;
    (void)state;

    errors_only.latency = false;
    assert_true(isinf(seconds(&errors_only, 10, 10, 10, 0)));
    assert_true(seconds(&errors_only, 10, 10, 1, 1) < 1);
    assert_true(isfinite(slower(3, 10, 3)));
}

static void fewer_false_alarms_take_longer(void **state)
{
    struct detect_config weekly = default_detection.detect;
    (void)state;

    weekly.threshold = detection_threshold(1, DETECTION_FLEET_RATE);
    assert_true(seconds(&weekly, 10, 1, 3, 0) >=
                slower(10, 1, 3)); /* the second look may take longer */
    assert_true(seconds(&weekly, 10, 10, 1, 0.5) >
                seconds(&default_detection.detect, 10, 10, 1, 0.5));
}

static void the_same_question_gets_the_same_answer(void **state)
{
    (void)state;

    for (uint32_t hosts = 3; hosts < 20; hosts += 4)
        assert_true(slower(hosts, 5, 4) == slower(hosts, 5, 4));
    assert_true(slower(12, 5, 4) == slower(1000, 5, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_more_requests_the_sooner_down_to_four_half_seconds),
        cmocka_unit_test(the_slower_the_sooner),
        cmocka_unit_test(where_nothing_is_wrong_nobody_is_accused),
        cmocka_unit_test(what_is_off_accuses_nobody),
        cmocka_unit_test(fewer_false_alarms_take_longer),
        cmocka_unit_test(the_same_question_gets_the_same_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
