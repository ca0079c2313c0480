/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/arrivals.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void constant_ones_follow_the_schedule_without_drift(void **state)
{
    struct arrivals a;
    (void)state;

    arrivals_init(&a, ARRIVALS_CONSTANT, 15, 1); /* k6's example: 66,666,666 ns apart */
    assert_int_equal(arrivals_next(&a), 0);
    assert_int_equal(arrivals_next(&a), 66666666);
    for (unsigned i = 2; i < 5400; i++)
        arrivals_next(&a);
    assert_int_equal(arrivals_next(&a), 360 * NS_PER_S); /* the 5401st start of 360 s */
}

static void slow_rates_wait_long(void **state)
{
    struct arrivals a;
    (void)state;

    arrivals_init(&a, ARRIVALS_CONSTANT, 0.01, 1);
    assert_int_equal(arrivals_next(&a), 0);
    assert_int_equal(arrivals_next(&a), 100 * NS_PER_S);
}

/* In each second of many: mean and variance of a Poisson count are both the rate. */
static void poisson_ones_have_the_mean_and_variance_of_their_rate(void **state)
{
    enum { SECONDS = 4000 };
    static unsigned count[SECONDS];
    struct arrivals a;
    double sum = 0;
    double squares = 0;
    (void)state;

    arrivals_init(&a, ARRIVALS_POISSON, 50, 11);
    for (;;) {
        span_ns at = arrivals_next(&a);

        if (at >= SECONDS * NS_PER_S)
            break;
        count[at / NS_PER_S]++;
    }
    for (unsigned i = 0; i < SECONDS; i++) {
        sum += count[i];
        squares += (double)count[i] * count[i];
    }
    assert_true(fabs(sum / SECONDS - 50) < 0.5); /* standard error 0.11 */
    assert_true(fabs(squares / SECONDS - (sum / SECONDS) * (sum / SECONDS) - 50) < 5);
}

static void the_first_poisson_one_does_not_come_at_zero(void **state)
{
    (void)state;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct arrivals a;

        arrivals_init(&a, ARRIVALS_POISSON, 1000, seed);
        assert_true(arrivals_next(&a) > 0);
    }
}

static void poisson_gaps_have_no_memory(void **state)
{
    struct arrivals a;
    span_ns before = 0;
    unsigned longer = 0;  /* than one mean */
    unsigned further = 0; /* of those: than two */
    (void)state;

    arrivals_init(&a, ARRIVALS_POISSON, 1000, 3);
    for (unsigned i = 0; i < 100000; i++) {
        span_ns at = arrivals_next(&a);

        longer += at - before > NS_PER_MS;
        further += at - before > 2 * NS_PER_MS;
        before = at;
    }
    assert_true(fabs(longer / 100000.0 - exp(-1.0)) < 0.01);
    assert_true(fabs((double)further / longer - exp(-1.0)) < 0.015);
}

/* Law: arrivals never go back, whatever the rate; and the same seed gives the same ones. */
static void arrivals_never_go_back_and_follow_the_seed(void **state)
{
    const double rates[] = {0.001, 0.5, 1, 333.3, 1e6};
    (void)state;

    for (unsigned r = 0; r < 5; r++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct arrivals a;
            struct arrivals b;
            span_ns before = 0;

            arrivals_init(&a, seed % 2 ? ARRIVALS_POISSON : ARRIVALS_CONSTANT, rates[r], seed);
            arrivals_init(&b, a.kind, rates[r], seed);
            for (unsigned i = 0; i < 500; i++) {
                span_ns at = arrivals_next(&a);

                assert_true(at >= before);
                assert_int_equal(at, arrivals_next(&b));
                before = at;
            }
        }
}

static void different_seeds_give_different_arrivals(void **state)
{
    struct arrivals a;
    struct arrivals b;
    (void)state;

    arrivals_init(&a, ARRIVALS_POISSON, 100, 1);
    arrivals_init(&b, ARRIVALS_POISSON, 100, 2);
    assert_true(arrivals_next(&a) != arrivals_next(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_ones_follow_the_schedule_without_drift),
        cmocka_unit_test(slow_rates_wait_long),
        cmocka_unit_test(poisson_ones_have_the_mean_and_variance_of_their_rate),
        cmocka_unit_test(the_first_poisson_one_does_not_come_at_zero),
        cmocka_unit_test(poisson_gaps_have_no_memory),
        cmocka_unit_test(arrivals_never_go_back_and_follow_the_seed),
        cmocka_unit_test(different_seeds_give_different_arrivals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
