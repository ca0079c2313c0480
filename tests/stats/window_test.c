/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void zeroed_memory_counts_nothing(void **state)
{
    const struct window w = {.at = {0}};
    (void)state;

    assert_int_equal(window_sum(&w, 0), 0);
    assert_int_equal(window_sum(&w, 5 * NS_PER_S), 0);
}

static void what_is_older_than_ten_seconds_does_not_count(void **state)
{
    struct window w = {.at = {0}};
    (void)state;

    window_add(&w, 0);
    window_add(&w, NS_PER_S - 1);
    window_add(&w, NS_PER_S);
    assert_int_equal(window_sum(&w, NS_PER_S), 3);
    assert_int_equal(window_sum(&w, 10 * NS_PER_S - 1), 3);
    assert_int_equal(window_sum(&w, 10 * NS_PER_S), 1);
    assert_int_equal(window_sum(&w, 11 * NS_PER_S), 0);
}

static void a_second_long_gone_does_not_come_back_with_its_cell(void **state)
{
    struct window w = {.at = {0}};
    (void)state;

    for (int i = 0; i < 5; i++)
        window_add(&w, 3 * NS_PER_S);
    window_add(&w, 13 * NS_PER_S);
    assert_int_equal(window_sum(&w, 13 * NS_PER_S), 1);
}

/* Against the plain definition, on random histories. */
static void it_counts_what_was_added_in_the_last_ten_seconds(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct window w = {.at = {0}};
        mono_ns at[500], now = 0;
        struct rng rng;

        rng_init(&rng, seed);
        for (unsigned n = 0; n < 500; n++) {
            uint64_t expected = 0;

            now += rng_next(&rng) % (rng_below(&rng, 50) == 0 ? 20 * NS_PER_S : 300 * NS_PER_MS);
            window_add(&w, now);
            at[n] = now;
            for (unsigned i = 0; i <= n; i++)
                expected += now / NS_PER_S - at[i] / NS_PER_S < WINDOW_SECONDS;
            assert_int_equal(window_sum(&w, now), expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_memory_counts_nothing),
        cmocka_unit_test(what_is_older_than_ten_seconds_does_not_count),
        cmocka_unit_test(a_second_long_gone_does_not_come_back_with_its_cell),
        cmocka_unit_test(it_counts_what_was_added_in_the_last_ten_seconds),
    };

    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
