/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/rng.h"

#define MANY 200

/* An appointment that notes when it came. */
struct noted {
    struct appointment appointment;
    struct schedule *schedule;
    unsigned id;
    mono_ns fired_at;
    mono_ns again; /* armed for that when it fires; MONO_NEVER: not */
    struct noted *cancels;
};

static unsigned sequence[4096];
static unsigned fired;

static void note(struct appointment *a, mono_ns now)
{
    struct noted *n = CONTAINER_OF(a, struct noted, appointment);

    n->fired_at = now;
    sequence[fired++] = n->id;
    if (n->cancels != NULL)
        schedule_cancel(n->schedule, &n->cancels->appointment);
    if (n->again != MONO_NEVER) {
        schedule_arm(n->schedule, a, n->again);
        n->again = MONO_NEVER;
    }
}

static void set_up(struct schedule *s, struct noted *n, unsigned count)
{
    fired = 0;
    schedule_init(s);
    for (unsigned i = 0; i < count; i++) {
        n[i] = (struct noted){.schedule = s, .id = i, .again = MONO_NEVER};
        appointment_init(&n[i].appointment, note);
    }
}

static void fires_at_its_nanosecond_and_not_before(void **state)
{
    struct schedule s;
    struct noted n[1];
    (void)state;

    set_up(&s, n, 1);
    assert_true(schedule_next(&s) == MONO_NEVER);
    schedule_arm(&s, &n[0].appointment, 1000001);
    assert_true(schedule_next(&s) == 1000001);
    assert_int_equal(schedule_run(&s, 1000000), 0);
    assert_true(appointment_armed(&n[0].appointment));
    assert_int_equal(schedule_run(&s, 1000001), 1);
    assert_false(appointment_armed(&n[0].appointment));
    assert_int_equal(schedule_run(&s, MONO_NEVER), 0);
}

static void earlier_ones_come_first_and_equal_ones_as_they_were_armed(void **state)
{
    struct schedule s;
    struct noted n[6];
    const mono_ns at[] = {5, 3, 5, 1, 3, 5};
    const unsigned order[] = {3, 1, 4, 0, 2, 5};
    (void)state;

    set_up(&s, n, 6);
    for (unsigned i = 0; i < 6; i++)
        schedule_arm(&s, &n[i].appointment, at[i]);
    assert_int_equal(schedule_run(&s, 9), 6);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(sequence[i], order[i]);
}

static void arming_anew_moves_it_and_never_cancels_it(void **state)
{
    struct schedule s;
    struct noted n[2];
    (void)state;

    set_up(&s, n, 2);
    schedule_arm(&s, &n[0].appointment, 10);
    schedule_arm(&s, &n[1].appointment, 20);
    schedule_arm(&s, &n[0].appointment, 30);
    assert_true(schedule_next(&s) == 20);
    schedule_arm(&s, &n[1].appointment, MONO_NEVER);
    assert_true(schedule_next(&s) == 30);
    schedule_cancel(&s, &n[1].appointment);
    schedule_cancel(&s, &n[0].appointment);
    assert_true(schedule_next(&s) == MONO_NEVER);
}

static void what_a_callback_arms_for_the_past_fires_in_the_same_run(void **state)
{
    struct schedule s;
    struct noted n[1];
    (void)state;

    set_up(&s, n, 1);
    n[0].again = 7;
    schedule_arm(&s, &n[0].appointment, 5);
    assert_int_equal(schedule_run(&s, 10), 2);
    n[0].again = 11;
    schedule_arm(&s, &n[0].appointment, 5);
    assert_int_equal(schedule_run(&s, 10), 1);
    assert_true(schedule_next(&s) == 11);
}

static void a_callback_may_cancel_one_that_is_due_too(void **state)
{
    struct schedule s;
    struct noted n[2];
    (void)state;

    set_up(&s, n, 2);
    n[0].cancels = &n[1];
    schedule_arm(&s, &n[0].appointment, 1);
    schedule_arm(&s, &n[1].appointment, 1);
    assert_int_equal(schedule_run(&s, 1), 1);
    assert_int_equal(n[1].fired_at, 0);
}

/* What a plain array says is next; MANY: nothing. */
static unsigned naive_next(const mono_ns *at, const uint64_t *order)
{
    unsigned next = MANY;

    for (unsigned i = 0; i < MANY; i++)
        if (at[i] != MONO_NEVER &&
            (next == MANY || at[i] < at[next] || (at[i] == at[next] && order[i] < order[next])))
            next = i;
    return next;
}

/* Law: whatever is armed, moved and cancelled, it fires in the order a plain array gives. */
static void random_histories_fire_as_a_plain_array_says(void **state)
{
    static struct noted n[MANY];
    (void)state;

    for (uint64_t seed = 0; seed < 60; seed++) {
        struct schedule s;
        struct rng rng;
        mono_ns at[MANY];
        uint64_t order[MANY] = {0};
        mono_ns now = 0;

        rng_init(&rng, seed);
        set_up(&s, n, MANY);
        for (unsigned i = 0; i < MANY; i++)
            at[i] = MONO_NEVER;
        for (uint64_t step = 1; step < 1500; step++) {
            unsigned i = rng_below(&rng, MANY);

            if (rng_below(&rng, 4) > 0) {
                at[i] = now + rng_below(&rng, 50);
                order[i] = step;
                schedule_arm(&s, &n[i].appointment, at[i]);
            } else if (rng_below(&rng, 3) > 0) {
                at[i] = MONO_NEVER;
                schedule_cancel(&s, &n[i].appointment);
            } else {
                now += rng_below(&rng, 20);
                fired = 0;
                schedule_run(&s, now);
                for (unsigned k = 0; k < fired; k++) {
                    unsigned next = naive_next(at, order);

                    assert_int_equal(sequence[k], next);
                    assert_true(at[next] <= now);
                    at[next] = MONO_NEVER;
                }
            }
            i = naive_next(at, order);
            assert_true(schedule_next(&s) == (i == MANY ? MONO_NEVER : at[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fires_at_its_nanosecond_and_not_before),
        cmocka_unit_test(earlier_ones_come_first_and_equal_ones_as_they_were_armed),
        cmocka_unit_test(arming_anew_moves_it_and_never_cancels_it),
        cmocka_unit_test(what_a_callback_arms_for_the_past_fires_in_the_same_run),
        cmocka_unit_test(a_callback_may_cancel_one_that_is_due_too),
        cmocka_unit_test(random_histories_fire_as_a_plain_array_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
