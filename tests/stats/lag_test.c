/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/lag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#define MS NS_PER_MS

static void woken_in_time_it_is_the_length_of_the_turn(void **state)
{
    (void)state;

    assert_int_equal(lag_of(0, 50 * MS, 10 * MS, 13 * MS), 3 * MS);
    assert_int_equal(lag_of(0, MONO_NEVER, 10 * MS, 13 * MS), 3 * MS);
    assert_int_equal(lag_of(0, 50 * MS, 50 * MS, 50 * MS), 0);
}

static void woken_late_it_counts_from_when_the_timer_was_due(void **state)
{
    (void)state;

    assert_int_equal(lag_of(0, 50 * MS, 70 * MS, 71 * MS), 21 * MS);
}

/* What was due while the turn before still went on is that turn's lag. */
static void it_never_counts_what_was_before_the_wait(void **state)
{
    (void)state;

    assert_int_equal(lag_of(40 * MS, 10 * MS, 41 * MS, 43 * MS), 3 * MS);
    assert_int_equal(lag_of(40 * MS, 0, 40 * MS, 40 * MS), 0);
}

static void a_clock_that_steps_back_gives_none(void **state)
{
    (void)state;

    assert_int_equal(lag_of(40 * MS, 10 * MS, 30 * MS, 20 * MS), 0);
}

static void zeroed_memory_has_none(void **state)
{
    static const struct lag l;
    (void)state;

    assert_int_equal(lag_worst(&l, 0, LAG_SECONDS), 0);
    assert_int_equal(lag_worst(&l, 5 * NS_PER_S, LAG_SECONDS), 0);
}

static void the_worst_of_a_second_stays(void **state)
{
    static struct lag l;
    (void)state;

    lag_note(&l, 3 * MS, NS_PER_S);
    lag_note(&l, 7 * MS, NS_PER_S + 1);
    lag_note(&l, 5 * MS, NS_PER_S + 2);
    assert_int_equal(lag_worst(&l, NS_PER_S + 2, 1), 7 * MS);
    assert_int_equal(atomic_load(&l.times.count), 3);
    assert_int_equal(atomic_load(&l.times.sum), 15000);
}

static void what_is_older_than_asked_does_not_count(void **state)
{
    static struct lag l;
    (void)state;

    lag_note(&l, 30 * MS, 2 * NS_PER_S);
    lag_note(&l, 20 * MS, 5 * NS_PER_S);
    assert_int_equal(lag_worst(&l, 6 * NS_PER_S, 1), 0);
    assert_int_equal(lag_worst(&l, 6 * NS_PER_S, 2), 20 * MS);
    assert_int_equal(lag_worst(&l, 6 * NS_PER_S, 5), 30 * MS);
    assert_int_equal(lag_worst(&l, 12 * NS_PER_S - 1, LAG_SECONDS), 30 * MS);
    assert_int_equal(lag_worst(&l, 12 * NS_PER_S, LAG_SECONDS), 20 * MS);
    assert_int_equal(lag_worst(&l, 15 * NS_PER_S, LAG_SECONDS), 0);
}

static void the_longest_there_can_be_is_bounded_and_not_lost(void **state)
{
    static struct lag l;
    (void)state;

    lag_note(&l, MONO_NEVER, NS_PER_S);
    assert_int_equal(lag_worst(&l, NS_PER_S, 1), (uint64_t)UINT32_MAX * NS_PER_US);
}

/* Against the plain definition, on random histories. */
static void it_is_the_worst_that_was_noted_in_the_last_seconds(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        static struct lag l;
        uint64_t us[300];
        mono_ns at[300], now = 0;
        struct rng rng;

        rng_init(&rng, seed);
        l = (struct lag){.peaks = {0}};
        for (unsigned n = 0; n < 300; n++) {
            unsigned seconds = 1 + rng_below(&rng, LAG_SECONDS);
            uint64_t worst = 0;

            now += rng_below(&rng, 3000) * MS;
            at[n] = now;
            us[n] = 1000 + rng_below(&rng, 100000);
            lag_note(&l, us[n] * NS_PER_US, now);
            for (unsigned i = 0; i <= n; i++)
                if (now / NS_PER_S - at[i] / NS_PER_S < seconds && us[i] > worst)
                    worst = us[i];
            assert_int_equal(lag_worst(&l, now, seconds), worst * NS_PER_US);
        }
    }
}

static void lags_soon_after_each_other_for_a_second_make_it_sick(void **state)
{
    struct lag_health h = {0};
    mono_ns now = 5 * NS_PER_S;
    (void)state;

    for (int i = 0; i < 10; i++, now += 100 * MS) {
        lag_health_note(&h, 21 * MS, now);
        assert_false(lag_health_is_sick(&h, now));
    }
    lag_health_note(&h, 21 * MS, now);
    assert_true(lag_health_is_sick(&h, now));
    assert_true(lag_health_is_sick(&h, now + LAG_SOON));
    assert_false(lag_health_is_sick(&h, now + LAG_SOON + 1));
}

static void single_lags_are_no_sickness(void **state)
{
    struct lag_health h = {0};
    (void)state;

    assert_false(lag_health_is_sick(&h, 9 * NS_PER_S));
    for (mono_ns now = NS_PER_S; now < 20 * NS_PER_S; now += 300 * MS) {
        lag_health_note(&h, 30 * MS, now);
        assert_false(lag_health_is_sick(&h, now));
    }
}

static void a_stop_makes_it_sick_for_a_second(void **state)
{
    struct lag_health h = {0};
    (void)state;

    lag_health_note(&h, LAG_STOPPED - 1, 3 * NS_PER_S);
    assert_false(lag_health_is_sick(&h, 3 * NS_PER_S));
    lag_health_note(&h, LAG_STOPPED, 4 * NS_PER_S);
    assert_true(lag_health_is_sick(&h, 4 * NS_PER_S));
    assert_true(lag_health_is_sick(&h, 5 * NS_PER_S - 1));
    assert_false(lag_health_is_sick(&h, 5 * NS_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lags_soon_after_each_other_for_a_second_make_it_sick),
        cmocka_unit_test(single_lags_are_no_sickness),
        cmocka_unit_test(a_stop_makes_it_sick_for_a_second),
        cmocka_unit_test(woken_in_time_it_is_the_length_of_the_turn),
        cmocka_unit_test(woken_late_it_counts_from_when_the_timer_was_due),
        cmocka_unit_test(it_never_counts_what_was_before_the_wait),
        cmocka_unit_test(a_clock_that_steps_back_gives_none),
        cmocka_unit_test(zeroed_memory_has_none),
        cmocka_unit_test(the_worst_of_a_second_stays),
        cmocka_unit_test(what_is_older_than_asked_does_not_count),
        cmocka_unit_test(the_longest_there_can_be_is_bounded_and_not_lost),
        cmocka_unit_test(it_is_the_worst_that_was_noted_in_the_last_seconds),
    };

    return cmocka_run_group_tests_name("lag", tests, NULL, NULL);
}
