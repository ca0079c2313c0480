/* SPDX-License-Identifier: Apache-2.0 */
/* How long detection takes, by the formula of B17: against the reference's numbers. */
#include "policy/detect_delay.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void near(double is, double should, double within)
{
    assert_true(fabs(is - should) <= within);
}

static void of_latency_it_is_what_the_formula_says(void **state)
{
    (void)state;

    /* ln 3 / 0.5 = 2.197 standard deviations: gain 1.697 */
    near(detect_answers_slower(11, 3, 0.5), 12.166 / 1.69722, 0.01);
    near(detect_answers_slower(11, 2, 0.5), 12.166 / 0.88629, 0.01);
    /* a rank says no more than three standard deviations */
    near(detect_answers_slower(11, 1000, 0.5), 12.166 / 2.5, 0.001);
}

static void what_is_no_slower_than_the_design_is_never_seen(void **state)
{
    (void)state;

    assert_true(detect_answers_slower(11, 1, 0.5) < 0);
    assert_true(detect_answers_slower(11, 1.2, 0.5) < 0);
    assert_true(detect_answers_slower(11, 1.3, 0.5) > 100);
}

static void of_failures_the_quicker_line_counts(void **state)
{
    (void)state;

    near(detect_answers_failing(11, 0, 1), 12.166 / log(500), 0.001);
    near(detect_answers_failing(11, 0.001, 0.05),
         12.166 / (0.05 * log(50) + 0.95 * log(0.95 / 0.999)), 0.01);
    assert_true(detect_answers_failing(11, 0.001, 0.001) < 0);
}

static void what_is_common_is_never_blamed_on_one(void **state)
{
    (void)state;

    assert_true(detect_answers_failing(11, 0.3, 1) < 0);
    assert_true(detect_answers_failing(11, 0.5, 0.5) < 0);
    assert_true(detect_answers_failing(11, 0.9, 1) < 0);
}

static void more_of_it_is_seen_sooner(void **state)
{
    double last = INFINITY;
    (void)state;

    for (double share = 0.05; share <= 1; share += 0.05) {
        double now = detect_answers_failing(11, 0.001, share);

        assert_true(now > 0 && now < last);
        last = now;
    }
    for (double times = 2, before = INFINITY; times < 4; times += 0.25) {
        double now = detect_answers_slower(11, times, 0.5);

        assert_true(now < before);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_latency_it_is_what_the_formula_says),
        cmocka_unit_test(what_is_no_slower_than_the_design_is_never_seen),
        cmocka_unit_test(of_failures_the_quicker_line_counts),
        cmocka_unit_test(what_is_common_is_never_blamed_on_one),
        cmocka_unit_test(more_of_it_is_seen_sooner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
