/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/alarm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

struct sleeper {
    struct alarm alarm;
    struct wheel wheel;
    unsigned fired; /* by the wheel */
    unsigned rang;  /* when it was due */
};

static void fire(struct timer *t, mono_ns now)
{
    struct sleeper *s = CONTAINER_OF(t, struct sleeper, alarm.timer);

    s->fired++;
    if (alarm_is_due(&s->alarm, &s->wheel, now))
        s->rang++;
}

static void start(struct sleeper *s)
{
    wheel_init(&s->wheel, 0);
    alarm_init(&s->alarm, fire);
    s->fired = 0;
    s->rang = 0;
}

static void an_instant_that_moves_later_costs_nothing_until_then(void **state)
{
    struct sleeper s;
    (void)state;

    start(&s);
    for (unsigned i = 1; i <= 100; i++)
        alarm_set(&s.alarm, &s.wheel, i * NS_PER_S);
    wheel_run(&s.wheel, NS_PER_S);
    assert_int_equal(s.fired, 1);
    assert_int_equal(s.rang, 0);
    wheel_run(&s.wheel, 100 * NS_PER_S);
    assert_int_equal(s.fired, 2);
    assert_int_equal(s.rang, 1);
    assert_false(timer_armed(&s.alarm.timer));
}

static void one_that_moves_earlier_rings_earlier(void **state)
{
    struct sleeper s;
    (void)state;

    start(&s);
    alarm_set(&s.alarm, &s.wheel, 9 * NS_PER_S);
    alarm_set(&s.alarm, &s.wheel, 2 * NS_PER_S);
    wheel_run(&s.wheel, 2 * NS_PER_S);
    assert_int_equal(s.rang, 1);
}

static void one_not_wanted_any_more_is_silent(void **state)
{
    struct sleeper s;
    (void)state;

    start(&s);
    alarm_set(&s.alarm, &s.wheel, NS_PER_S);
    alarm_set(&s.alarm, &s.wheel, MONO_NEVER);
    wheel_run(&s.wheel, 2 * NS_PER_S);
    assert_int_equal(s.rang, 0);
    alarm_set(&s.alarm, &s.wheel, 3 * NS_PER_S);
    alarm_cancel(&s.alarm, &s.wheel);
    assert_false(timer_armed(&s.alarm.timer));
    wheel_run(&s.wheel, 4 * NS_PER_S);
    assert_int_equal(s.rang, 0);
}

/* Law: it rings once, in the first run at or after the instant that was set last. */
static void it_rings_for_the_last_instant_set(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 3);
    for (unsigned round = 0; round < 300; round++) {
        struct sleeper s;
        mono_ns now = 0, due = MONO_NEVER;
        unsigned rang = 0;

        start(&s);
        for (unsigned step = 0; step < 200; step++) {
            if (rng_below(&rng, 3) == 0) {
                due =
                    rng_below(&rng, 5) == 0 ? MONO_NEVER : now + rng_below(&rng, 5000) * NS_PER_MS;
                alarm_set(&s.alarm, &s.wheel, due);
            } else if (rng_below(&rng, 20) == 0) {
                due = MONO_NEVER;
                alarm_cancel(&s.alarm, &s.wheel);
            }
            now += rng_below(&rng, 2000) * NS_PER_MS;
            wheel_run(&s.wheel, now);
            if (due <= now) {
                rang++;
                due = MONO_NEVER;
            }
            assert_int_equal(s.rang, rang);
            assert_true(wheel_next(&s.wheel) <= due);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instant_that_moves_later_costs_nothing_until_then),
        cmocka_unit_test(one_that_moves_earlier_rings_earlier),
        cmocka_unit_test(one_not_wanted_any_more_is_silent),
        cmocka_unit_test(it_rings_for_the_last_instant_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
