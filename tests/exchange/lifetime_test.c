/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/lifetime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEC NS_PER_S

static void without_an_age_there_is_no_end(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 1);
    assert_true(lifetime_end(5 * SEC, 0, &rng) == MONO_NEVER);
}

static void ends_fill_the_last_tenth_of_the_age(void **state)
{
    struct rng rng;
    unsigned tenths[10] = {0};
    mono_ns least = MONO_NEVER, most = 0;
    (void)state;

    rng_init(&rng, 2);
    for (unsigned i = 0; i < 10000; i++) {
        mono_ns end = lifetime_end(7 * SEC, 100 * SEC, &rng);

        assert_in_range(end, 97 * SEC, 107 * SEC);
        least = mono_min(least, end);
        most = end > most ? end : most;
        tenths[end == 107 * SEC ? 9 : (end - 97 * SEC) / SEC]++;
    }
    assert_true(least == 97 * SEC && most == 107 * SEC);
    for (unsigned i = 0; i < 10; i++)
        assert_in_range(tenths[i], 800, 1200);
}

static void an_age_beyond_the_end_of_time_is_none(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 3);
    for (unsigned i = 0; i < 100; i++)
        assert_true(lifetime_end(UINT64_MAX / 2, UINT64_MAX, &rng) == MONO_NEVER);
}

static void an_idle_connection_goes_at_its_end_or_when_idle_too_long(void **state)
{
    (void)state;
    assert_int_equal(lifetime_idle(10 * SEC, 60 * SEC, MONO_NEVER, 2 * SEC), 70 * SEC);
    assert_int_equal(lifetime_idle(10 * SEC, 60 * SEC, 71 * SEC, 2 * SEC), 70 * SEC);
    assert_int_equal(lifetime_idle(10 * SEC, 60 * SEC, 40 * SEC, 2 * SEC), 40 * SEC);
    assert_true(lifetime_idle(10 * SEC, UINT64_MAX, MONO_NEVER, 2 * SEC) == MONO_NEVER);
}

static void it_is_left_alone_for_the_grace_but_never_longer_than_it_may_be_idle(void **state)
{
    (void)state;
    assert_int_equal(lifetime_idle(10 * SEC, 60 * SEC, 11 * SEC, 2 * SEC), 12 * SEC);
    assert_int_equal(lifetime_idle(10 * SEC, 60 * SEC, 10 * SEC, 2 * SEC), 12 * SEC);
    assert_int_equal(lifetime_idle(10 * SEC, 60 * SEC, 3 * SEC, 2 * SEC), 12 * SEC);
    assert_int_equal(lifetime_idle(10 * SEC, 1 * SEC, 3 * SEC, 2 * SEC), 11 * SEC);
}

/* Whatever is asked: not before now, not after |idle|, past |end| by no more than the grace. */
static void the_law_of_idle_connections(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 4);
    for (unsigned i = 0; i < 100000; i++) {
        mono_ns now = rng_below(&rng, 100);
        span_ns idle = rng_below(&rng, 50);
        span_ns grace = rng_below(&rng, 20);
        mono_ns end = rng_below(&rng, 5) == 0 ? MONO_NEVER : rng_below(&rng, 200);
        mono_ns until = lifetime_idle(now, idle, end, grace);

        assert_true(until >= now && until <= now + idle);
        assert_true(until == now + idle || until >= now + grace);
        assert_true(until == now + idle || until >= end);
        if (end != MONO_NEVER)
            assert_true(until <= (end > now + grace ? end : now + grace));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_an_age_there_is_no_end),
        cmocka_unit_test(ends_fill_the_last_tenth_of_the_age),
        cmocka_unit_test(an_age_beyond_the_end_of_time_is_none),
        cmocka_unit_test(an_idle_connection_goes_at_its_end_or_when_idle_too_long),
        cmocka_unit_test(it_is_left_alone_for_the_grace_but_never_longer_than_it_may_be_idle),
        cmocka_unit_test(the_law_of_idle_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
