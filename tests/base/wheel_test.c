/* SPDX-License-Identifier: Apache-2.0 */
/* The wheel against what it promises, and against a naive list of timers on random histories. */
#include "base/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"

#define MS NS_PER_MS

static struct timer *fired_timers[64];
static unsigned fired_count;

static void note(struct timer *t, mono_ns now)
{
    (void)now;
    fired_timers[fired_count++ % 64] = t;
}

static int reset(void **state)
{
    (void)state;
    fired_count = 0;
    return 0;
}

static void fires_at_the_end_of_its_tick_and_never_before(void **state)
{
    struct wheel w;
    struct timer t;
    (void)state;

    wheel_init(&w, 0);
    timer_init(&t, note);
    wheel_arm(&w, &t, 5 * MS + 1);
    assert_int_equal(wheel_next(&w), 6 * MS);
    assert_int_equal(wheel_run(&w, 5 * MS + 1), 0);
    assert_int_equal(wheel_run(&w, 6 * MS - 1), 0);
    assert_true(timer_armed(&t));
    assert_int_equal(wheel_run(&w, 6 * MS), 1);
    assert_false(timer_armed(&t));
    assert_int_equal(t.at, MONO_NEVER);
    wheel_arm(&w, &t, 7 * MS);
    assert_int_equal(wheel_run(&w, 7 * MS - 1), 0);
    assert_int_equal(wheel_run(&w, 7 * MS), 1);
}

static void nothing_armed_means_never(void **state)
{
    struct wheel w;
    struct timer t;
    (void)state;

    wheel_init(&w, 17 * MS);
    timer_init(&t, note);
    assert_int_equal(wheel_next(&w), MONO_NEVER);
    wheel_cancel(&w, &t);
    wheel_arm(&w, &t, 18 * MS);
    wheel_arm(&w, &t, MONO_NEVER);
    assert_false(timer_armed(&t));
    assert_int_equal(wheel_next(&w), MONO_NEVER);
    assert_int_equal(w.armed, 0);
    assert_int_equal(wheel_run(&w, NS_PER_S), 0);
}

static void the_past_fires_at_the_next_run_even_within_the_same_tick(void **state)
{
    struct wheel w;
    struct timer t;
    (void)state;

    wheel_init(&w, 10 * MS + 5);
    timer_init(&t, note);
    wheel_arm(&w, &t, 3 * MS);
    assert_true(wheel_next(&w) <= 10 * MS + 5);
    assert_int_equal(wheel_run(&w, 10 * MS + 5), 1);
    wheel_arm(&w, &t, 10 * MS);
    assert_int_equal(wheel_run(&w, 10 * MS + 6), 1);
}

static void a_cancelled_timer_never_fires_wherever_it_lay(void **state)
{
    const mono_ns when[] = {0,
                            1 * MS,
                            63 * MS,
                            64 * MS,
                            4096 * MS,
                            300000 * MS,
                            20000000 * MS,
                            1000000000 * MS,
                            NS_PER_S * 86400 * 40,
                            MONO_NEVER - 1};
    (void)state;

    for (size_t i = 0; i < sizeof(when) / sizeof(when[0]); i++) {
        struct wheel w;
        struct timer t;

        wheel_init(&w, 0);
        timer_init(&t, note);
        wheel_arm(&w, &t, when[i]);
        assert_int_equal(w.armed, 1);
        wheel_cancel(&w, &t);
        assert_true(t.at == MONO_NEVER);
        assert_int_equal(w.armed, 0);
        assert_int_equal(wheel_next(&w), MONO_NEVER);
        assert_int_equal(wheel_run(&w, MONO_NEVER - 1), 0);
    }
}

static void far_timers_fire_on_time(void **state)
{
    const mono_ns day = NS_PER_S * 86400;
    const mono_ns when[] = {12 * day, 13 * day, 25 * day, 1000 * day, 5000 * day + 7};
    (void)state;

    for (size_t i = 0; i < sizeof(when) / sizeof(when[0]); i++) {
        struct wheel w;
        struct timer t;

        wheel_init(&w, 5 * MS);
        timer_init(&t, note);
        wheel_arm(&w, &t, when[i]);
        assert_true(wheel_next(&w) <= when[i]);
        assert_int_equal(wheel_run(&w, when[i] - 1 - when[i] % MS), 0);
        assert_int_equal(wheel_run(&w, when[i] + MS - 1), 1);
    }
}

/* Armed from afar, then from near: they meet in one slot only after moving down. */
static void timers_of_one_tick_fire_in_the_order_of_arming(void **state)
{
    const mono_ns target = NS_PER_S * 86400 * 30;
    const mono_ns ahead[] = {
        NS_PER_S * 86400 * 29, NS_PER_S * 86400, 3600 * NS_PER_S, 60 * NS_PER_S,
        5 * NS_PER_S,          100 * MS,         50 * MS,         2 * MS};
    struct timer t[24];
    struct wheel w;
    unsigned n = 0;
    (void)state;

    wheel_init(&w, 0);
    for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
        wheel_run(&w, target - ahead[i]);
        for (int k = 0; k < 3; k++) {
            timer_init(&t[n], note);
            wheel_arm(&w, &t[n++], target);
        }
    }
    wheel_arm(&w, &t[4], target); /* arming anew moves it to the end */
    assert_int_equal(wheel_run(&w, target + NS_PER_S), n);
    for (unsigned i = 0; i < n - 1; i++)
        assert_ptr_equal(fired_timers[i], &t[i < 4 ? i : i + 1]);
    assert_ptr_equal(fired_timers[n - 1], &t[4]);
}

static void one_run_over_many_ticks_fires_in_the_order_of_ticks(void **state)
{
    const mono_ns when[] = {5000 * MS, 3 * MS, 70 * MS, 1 * MS, 64 * MS, 63 * MS, 300000 * MS};
    const unsigned order[] = {3, 1, 5, 4, 2, 0, 6};
    struct timer t[7];
    struct wheel w;
    (void)state;

    wheel_init(&w, 0);
    for (unsigned i = 0; i < 7; i++) {
        timer_init(&t[i], note);
        wheel_arm(&w, &t[i], when[i]);
    }
    assert_int_equal(wheel_run(&w, 400000 * MS), 7);
    for (unsigned i = 0; i < 7; i++)
        assert_ptr_equal(fired_timers[i], &t[order[i]]);
}

static struct wheel *in_callback;
static struct timer *victim;
static mono_ns victim_at;

static void rearm_itself(struct timer *t, mono_ns now)
{
    note(t, now);
    assert_false(timer_armed(t));
    wheel_arm(in_callback, t, now - MS);
}

static void cancel_victim(struct timer *t, mono_ns now)
{
    note(t, now);
    wheel_cancel(in_callback, victim);
}

static void rearm_victim(struct timer *t, mono_ns now)
{
    note(t, now);
    wheel_arm(in_callback, victim, victim_at);
}

static void armed_for_the_past_by_a_callback_waits_for_the_next_run(void **state)
{
    struct wheel w;
    struct timer t;
    (void)state;

    wheel_init(&w, 0);
    in_callback = &w;
    timer_init(&t, rearm_itself);
    wheel_arm(&w, &t, MS);
    assert_int_equal(wheel_run(&w, 100 * MS), 1);
    assert_int_equal(wheel_run(&w, 100 * MS), 1);
    assert_true(timer_armed(&t));
    assert_int_equal(w.armed, 1);
}

static void a_callback_may_cancel_one_that_is_due_in_the_same_run(void **state)
{
    struct timer killer, other;
    struct wheel w;
    (void)state;

    wheel_init(&w, 0);
    in_callback = &w;
    victim = &other;
    timer_init(&killer, cancel_victim);
    timer_init(&other, note);
    wheel_arm(&w, &killer, 5 * MS);
    wheel_arm(&w, &other, 5 * MS);
    assert_int_equal(wheel_run(&w, 9 * MS), 1);
    assert_false(timer_armed(&other));
    assert_int_equal(wheel_next(&w), MONO_NEVER);
}

static void a_callback_may_put_off_one_that_is_due_in_the_same_run(void **state)
{
    struct timer mover, other;
    struct wheel w;
    (void)state;

    wheel_init(&w, 0);
    in_callback = &w;
    victim = &other;
    victim_at = 80 * MS;
    timer_init(&mover, rearm_victim);
    timer_init(&other, note);
    wheel_arm(&w, &mover, 5 * MS);
    wheel_arm(&w, &other, 6 * MS);
    assert_int_equal(wheel_run(&w, 9 * MS), 1);
    assert_int_equal(wheel_run(&w, 79 * MS), 0);
    assert_int_equal(wheel_run(&w, 80 * MS), 1);
}

static void a_clock_that_steps_back_fires_nothing(void **state)
{
    struct wheel w;
    struct timer t;
    (void)state;

    wheel_init(&w, 100 * MS);
    timer_init(&t, note);
    wheel_arm(&w, &t, 50 * MS);
    assert_int_equal(wheel_run(&w, 10 * MS), 0);
    assert_int_equal(wheel_run(&w, 100 * MS), 1);
}

/*
 * The law. A naive wheel: every timer in one array with its tick and the number of its arming; due
 * ones fire in the order of (tick, number). What is armed for the past goes by arming alone, before
 * what becomes due in the run.
 */
#define TIMERS 40

struct twin {
    struct timer timer;
    bool armed;
    uint64_t tick;   /* zero: was past when armed */
    uint64_t number; /* of its arming */
};

static struct {
    struct wheel *wheel;
    struct twin *twins;
    struct rng *rng;
    uint64_t number;
    uint64_t now_tick;
    const struct twin *expected[TIMERS];
    unsigned expected_count;
    unsigned seen;
} law;

static void law_fire(struct timer *t, mono_ns now);

/* Spans from below a tick to beyond the far end, each scale as likely. */
static mono_ns random_instant(mono_ns now)
{
    uint64_t span = rng_next(law.rng) >> (20 + rng_below(law.rng, 44));

    if (rng_below(law.rng, 6) == 0)
        return mono_since(span, now);
    if (rng_below(law.rng, 4) == 0) /* many on the same tick */
        return mono_after(now, rng_below(law.rng, 3) * MS);
    return mono_after(now, span);
}

static void law_arm(struct twin *x, mono_ns at)
{
    uint64_t tick = at / MS + (at % MS != 0);

    wheel_arm(law.wheel, &x->timer, at);
    x->armed = true;
    x->tick = tick <= law.now_tick ? 0 : tick;
    x->number = law.number++;
}

static void law_cancel(struct twin *x)
{
    wheel_cancel(law.wheel, &x->timer);
    x->armed = false;
}

static bool earlier(const struct twin *a, const struct twin *b)
{
    return a->tick < b->tick || (a->tick == b->tick && a->number < b->number);
}

/* Sorts what is due into |expected|. */
static void law_expect(void)
{
    law.expected_count = 0;
    law.seen = 0;
    for (unsigned i = 0; i < TIMERS; i++) {
        unsigned at = law.expected_count;

        if (!law.twins[i].armed || law.twins[i].tick > law.now_tick)
            continue;
        for (; at > 0 && earlier(&law.twins[i], law.expected[at - 1]); at--)
            law.expected[at] = law.expected[at - 1];
        law.expected[at] = &law.twins[i];
        law.expected_count++;
    }
}

/* A callback changed |x|: if it still was to fire in this run, it no longer is. */
static void law_forget(const struct twin *x)
{
    for (unsigned i = law.seen; i < law.expected_count; i++)
        if (law.expected[i] == x)
            law.expected[i] = NULL;
}

static void law_fire(struct timer *t, mono_ns now)
{
    struct twin *x = CONTAINER_OF(t, struct twin, timer);
    struct twin *other = &law.twins[rng_below(law.rng, TIMERS)];

    while (law.seen < law.expected_count && law.expected[law.seen] == NULL)
        law.seen++;
    assert_true(law.seen < law.expected_count);
    assert_ptr_equal(law.expected[law.seen], x);
    law.seen++;
    x->armed = false;
    if (rng_below(law.rng, 3) == 0) {
        law_forget(other);
        law_cancel(other);
    } else if (rng_below(law.rng, 2) == 0) {
        law_forget(other);
        law_arm(other, random_instant(now));
    }
}

static mono_ns earliest_due(void)
{
    uint64_t tick = UINT64_MAX;

    for (unsigned i = 0; i < TIMERS; i++)
        if (law.twins[i].armed && law.twins[i].tick < tick)
            tick = law.twins[i].tick;
    return tick > MONO_NEVER / MS ? MONO_NEVER : tick * MS;
}

static void law_run(mono_ns now)
{
    law.now_tick = now / MS;
    law_expect();
    wheel_run(law.wheel, now);
    while (law.seen < law.expected_count && law.expected[law.seen] == NULL)
        law.seen++;
    assert_int_equal(law.seen, law.expected_count);
}

static void law_check(mono_ns now)
{
    mono_ns due = earliest_due();
    uint64_t armed = 0;

    for (unsigned i = 0; i < TIMERS; i++) {
        armed += law.twins[i].armed;
        assert_int_equal(law.twins[i].armed, timer_armed(&law.twins[i].timer));
    }
    assert_int_equal(law.wheel->armed, armed);
    assert_true(wheel_next(law.wheel) <= (due < now ? now : due));
    if (armed == 0)
        assert_int_equal(wheel_next(law.wheel), MONO_NEVER);
}

static mono_ns law_step(mono_ns now)
{
    struct twin *x = &law.twins[rng_below(law.rng, TIMERS)];
    mono_ns next = wheel_next(law.wheel);

    switch (rng_below(law.rng, 8)) {
    case 0:
        law_cancel(x);
        break;
    case 1:
        now = mono_after(now, rng_next(law.rng) >> (20 + rng_below(law.rng, 44)));
        law_run(now);
        break;
    case 2: /* as a loop does: exactly when told to, or just before */
        if (next != MONO_NEVER && next > now)
            now = next - rng_below(law.rng, 2);
        law_run(now);
        break;
    case 3:
        now = mono_after(now, rng_below(law.rng, 1500000));
        law_run(now);
        break;
    default:
        law_arm(x, random_instant(now));
        break;
    }
    return now;
}

static void fires_as_a_naive_list_does_on_random_histories(void **state)
{
    struct wheel *w = memory_take(sizeof(*w));
    struct twin *twins = memory_take_array(TIMERS, sizeof(*twins));
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng;
        mono_ns now;

        rng_init(&rng, seed);
        now = rng_next(&rng) >> (8 + rng_below(&rng, 56));
        law.wheel = w;
        law.twins = twins;
        law.rng = &rng;
        law.number = 0;
        law.now_tick = now / MS;
        wheel_init(w, now);
        for (unsigned i = 0; i < TIMERS; i++) {
            timer_init(&twins[i].timer, law_fire);
            twins[i].armed = false;
        }
        for (unsigned step = 0; step < 1500 && now < MONO_NEVER / 2; step++) {
            now = law_step(now);
            law_check(now);
        }
    }
    memory_give(twins);
    memory_give(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fires_at_the_end_of_its_tick_and_never_before, reset),
        cmocka_unit_test_setup(nothing_armed_means_never, reset),
        cmocka_unit_test_setup(the_past_fires_at_the_next_run_even_within_the_same_tick, reset),
        cmocka_unit_test_setup(a_cancelled_timer_never_fires_wherever_it_lay, reset),
        cmocka_unit_test_setup(far_timers_fire_on_time, reset),
        cmocka_unit_test_setup(timers_of_one_tick_fire_in_the_order_of_arming, reset),
        cmocka_unit_test_setup(one_run_over_many_ticks_fires_in_the_order_of_ticks, reset),
        cmocka_unit_test_setup(armed_for_the_past_by_a_callback_waits_for_the_next_run, reset),
        cmocka_unit_test_setup(a_callback_may_cancel_one_that_is_due_in_the_same_run, reset),
        cmocka_unit_test_setup(a_callback_may_put_off_one_that_is_due_in_the_same_run, reset),
        cmocka_unit_test_setup(a_clock_that_steps_back_fires_nothing, reset),
        cmocka_unit_test_setup(fires_as_a_naive_list_does_on_random_histories, reset),
    };

    return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
