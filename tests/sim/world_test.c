/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"

struct bell {
    struct world_event event;
    struct world *world;
    unsigned rings;
    mono_ns last;
    mono_ns again; /* armed anew by its own ringing for so much later; 0: not */
};

static unsigned order[64];
static unsigned order_count;

static void ring(struct world_event *e, mono_ns now)
{
    struct bell *b = CONTAINER_OF(e, struct bell, event);

    assert_true(now == b->world->now);
    b->rings++;
    b->last = now;
    if (b->again != 0 && b->rings < 10)
        world_arm(b->world, e, now + b->again);
}

static void ring_in_order(struct world_event *e, mono_ns now)
{
    ring(e, now);
    if (order_count < 64)
        order[order_count++] = (unsigned)CONTAINER_OF(e, struct bell, event)->again;
    (void)now;
}

static void bell_init(struct bell *b, struct world *w)
{
    *b = (struct bell){.world = w};
    world_event_init(&b->event, ring);
}

static void the_clock_stands_where_the_event_is(void **state)
{
    struct world w;
    struct bell b;
    (void)state;

    world_init(&w, 1);
    bell_init(&b, &w);
    assert_true(clock_read(&w.clock) > 0);
    world_arm(&w, &b.event, w.now + 5 * NS_PER_S);
    assert_true(world_armed(&b.event));
    world_run_for(&w, 5 * NS_PER_S - 1);
    assert_int_equal(b.rings, 0);
    assert_int_equal(world_elapsed(&w), 5 * NS_PER_S - 1);
    world_run_for(&w, 1);
    assert_int_equal(b.rings, 1);
    assert_false(world_armed(&b.event));
    assert_int_equal(clock_read(&w.clock), w.begun + 5 * NS_PER_S);
    world_release(&w);
}

static void an_instant_in_the_past_is_now(void **state)
{
    struct world w;
    struct bell b;
    (void)state;

    world_init(&w, 1);
    bell_init(&b, &w);
    world_arm(&w, &b.event, 1);
    assert_int_equal(b.rings, 0); /* never inside the call */
    world_run_for(&w, 0);
    assert_int_equal(b.rings, 1);
    assert_int_equal(b.last, w.begun);
    world_release(&w);
}

static void never_is_not_armed(void **state)
{
    struct world w;
    struct bell b;
    (void)state;

    world_init(&w, 1);
    bell_init(&b, &w);
    world_arm(&w, &b.event, w.now + 1);
    world_arm(&w, &b.event, MONO_NEVER);
    assert_false(world_armed(&b.event));
    world_cancel(&w, &b.event); /* harmless */
    world_run(&w, MONO_NEVER);
    assert_int_equal(b.rings, 0);
    world_release(&w);
}

static void events_of_one_instant_keep_the_order_of_arming(void **state)
{
    struct world w;
    struct bell bells[20];
    (void)state;

    world_init(&w, 1);
    order_count = 0;
    for (unsigned i = 0; i < 20; i++) {
        bell_init(&bells[i], &w);
        world_event_init(&bells[i].event, ring_in_order);
        bells[i].rings = 100; /* does not arm itself */
        bells[i].again = i;
        world_arm(&w, &bells[i].event, w.now + NS_PER_S);
    }
    world_arm(&w, &bells[3].event, w.now + NS_PER_S); /* armed anew: the last */
    world_run_for(&w, 2 * NS_PER_S);
    assert_int_equal(order_count, 20);
    assert_int_equal(order[19], 3);
    for (unsigned i = 0; i < 19; i++)
        assert_int_equal(order[i], i < 3 ? i : i + 1);
    world_release(&w);
}

static void an_event_may_arm_itself(void **state)
{
    struct world w;
    struct bell b;
    (void)state;

    world_init(&w, 1);
    bell_init(&b, &w);
    b.again = NS_PER_S;
    world_arm(&w, &b.event, w.now + NS_PER_S);
    world_run_for(&w, 3 * NS_PER_S);
    assert_int_equal(b.rings, 3);
    world_release(&w);
}

/* The law of the heap, on random histories: each fires at its instant, in order, if not cancelled.
 */
static void whatever_is_armed_fires_once_and_in_time(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        static struct bell bells[200];
        mono_ns due[200];
        struct world w;
        struct rng rng;

        world_init(&w, seed);
        rng_init(&rng, seed);
        for (unsigned i = 0; i < 200; i++) {
            bell_init(&bells[i], &w);
            due[i] = MONO_NEVER;
        }
        for (unsigned step = 0; step < 2000; step++) {
            uint32_t i = rng_below(&rng, 200);

            switch (rng_below(&rng, 4)) {
            case 0:
                world_cancel(&w, &bells[i].event);
                due[i] = MONO_NEVER;
                break;
            case 1:
                world_run_for(&w, rng_below(&rng, 50));
                break;
            default:
                due[i] = w.now + 1 + rng_below(&rng, 1000);
                world_arm(&w, &bells[i].event, due[i]);
                break;
            }
            for (i = 0; i < 200; i++) {
                if (due[i] > w.now) {
                    assert_true(world_armed(&bells[i].event) == (due[i] != MONO_NEVER));
                    continue;
                }
                assert_int_equal(bells[i].last, due[i]);
                due[i] = MONO_NEVER;
            }
        }
        world_release(&w);
    }
}

static void the_wall_clock_steps_and_the_other_does_not(void **state)
{
    struct world w;
    wall_ns before;
    mono_ns mono;
    (void)state;

    world_init(&w, 1);
    before = clock_wall(&w.clock);
    mono = clock_read(&w.clock);
    world_step_wall(&w, -3600 * (int64_t)NS_PER_S);
    assert_int_equal(clock_wall(&w.clock), before - 3600 * NS_PER_S);
    assert_int_equal(clock_read(&w.clock), mono);
    world_run_for(&w, NS_PER_S);
    assert_int_equal(clock_wall(&w.clock), before - 3599 * NS_PER_S);
    world_release(&w);
}

/* --- loops --- */

struct runner {
    struct world_loop loop;
    unsigned turns;
    mono_ns wakeup;
    bool done;
    bool wakes_itself;
    mono_ns last;
};

static mono_ns runner_wakeup(void *owner)
{
    return ((struct runner *)owner)->wakeup;
}

static void runner_turn(void *owner)
{
    struct runner *r = owner;

    r->turns++;
    r->last = r->loop.world->now;
    if (r->wakes_itself)
        world_loop_wake(&r->loop);
    if (r->wakeup != MONO_NEVER && r->wakeup <= r->last && !r->wakes_itself)
        r->wakeup = MONO_NEVER;
}

static bool runner_done(void *owner)
{
    return ((struct runner *)owner)->done;
}

static const struct world_loop_ops runner_ops = {runner_wakeup, runner_turn, runner_done};

static void runner_start(struct runner *r, struct world *w)
{
    *r = (struct runner){.wakeup = MONO_NEVER};
    world_loop_init(&r->loop, w, &runner_ops, r);
    world_loop_start(&r->loop);
}

static void a_loop_runs_when_woken_and_when_its_time_has_come(void **state)
{
    struct world w;
    struct runner r;
    (void)state;

    world_init(&w, 1);
    runner_start(&r, &w);
    r.wakeup = w.now + NS_PER_S;
    world_run_for(&w, NS_PER_S - 1);
    assert_int_equal(r.turns, 1); /* the first */
    world_run_for(&w, 1);
    assert_int_equal(r.turns, 2);
    world_run_for(&w, 10 * NS_PER_S);
    assert_int_equal(r.turns, 2);
    world_loop_wake(&r.loop);
    world_loop_wake(&r.loop); /* twice is once */
    world_run_for(&w, 0);
    assert_int_equal(r.turns, 3);
    world_release(&w);
}

static void a_woken_loop_may_be_late_but_not_by_more_than_was_said(void **state)
{
    struct world w;
    struct runner r;
    mono_ns latest = 0;
    (void)state;

    world_init(&w, 1);
    w.turn_delay = 100 * NS_PER_US;
    runner_start(&r, &w);
    for (unsigned i = 0; i < 200; i++) {
        mono_ns woken;

        world_run_for(&w, NS_PER_S);
        woken = w.now;
        world_loop_wake(&r.loop);
        world_run_for(&w, NS_PER_S);
        assert_true(r.last >= woken && r.last - woken <= 100 * NS_PER_US);
        if (r.last - woken > latest)
            latest = r.last - woken;
    }
    assert_true(latest > 50 * NS_PER_US);
    r.loop.prompt = true;
    world_loop_wake(&r.loop);
    world_run_for(&w, 0);
    assert_int_equal(r.last, w.now);
    world_release(&w);
}

static void a_loop_that_is_held_runs_once_when_it_may_again(void **state)
{
    struct world w;
    struct runner r;
    mono_ns free_at;
    (void)state;

    world_init(&w, 1);
    runner_start(&r, &w);
    world_run_for(&w, NS_PER_S);
    r.wakeup = w.now + 100 * NS_PER_MS;
    world_loop_hold(&r.loop, w.now + NS_PER_S);
    free_at = w.now + NS_PER_S;
    world_loop_wake(&r.loop);
    world_run_for(&w, 500 * NS_PER_MS);
    world_loop_wake(&r.loop);
    world_run_for(&w, 500 * NS_PER_MS - 1);
    assert_int_equal(r.turns, 1);
    world_run_for(&w, NS_PER_S);
    assert_int_equal(r.turns, 2);
    assert_true(r.last == free_at);
    assert_true(w.held == NS_PER_S);
    world_loop_wake(&r.loop);
    world_run_for(&w, NS_PER_S);
    assert_int_equal(r.turns, 3);
    world_release(&w);
}

static void a_loop_that_is_done_or_stopped_runs_no_more(void **state)
{
    struct world w;
    struct runner r;
    (void)state;

    world_init(&w, 1);
    runner_start(&r, &w);
    r.done = true;
    world_run_for(&w, 1);
    world_loop_wake(&r.loop);
    world_run_for(&w, NS_PER_S);
    assert_int_equal(r.turns, 1);
    runner_start(&r, &w);
    world_loop_stop(&r.loop);
    world_run_for(&w, NS_PER_S);
    assert_int_equal(r.turns, 0);
    world_release(&w);
}

static void a_loop_that_spins_breaks_a_law(void **state)
{
    struct world w;
    struct runner r;
    (void)state;

    world_init(&w, 42);
    runner_start(&r, &w);
    r.wakes_itself = true;
    world_run_for(&w, NS_PER_S);
    assert_true(w.failed);
    assert_non_null(strstr(w.failure, "no spin"));
    assert_non_null(strstr(w.failure, "seed 42"));
    assert_true(r.turns < 2000);
    world_release(&w);
}

static mono_ns long_ago(void *owner)
{
    (void)owner;
    return 1;
}

static void a_wakeup_that_is_always_past_is_a_spin_too(void **state)
{
    static const struct world_loop_ops ops = {long_ago, runner_turn, runner_done};
    struct world w;
    struct runner r;
    (void)state;

    world_init(&w, 1);
    runner_start(&r, &w);
    r.loop.ops = &ops;
    world_run_for(&w, NS_PER_S);
    assert_true(w.failed);
    assert_int_equal(world_elapsed(&w), 0);
    world_release(&w);
}

static mono_ns each_ms(void *owner)
{
    return ((struct runner *)owner)->loop.world->now + NS_PER_MS;
}

static void a_loop_with_a_timer_each_millisecond_does_not_spin(void **state)
{
    static const struct world_loop_ops ops = {each_ms, runner_turn, runner_done};
    struct world w;
    struct runner r;
    (void)state;

    world_init(&w, 1);
    runner_start(&r, &w);
    r.loop.ops = &ops;
    world_run_for(&w, 5 * NS_PER_S);
    assert_false(w.failed);
    assert_int_equal(r.turns, 5001);
    world_release(&w);
}

/* --- failing, digest, chance --- */

static void the_first_failure_stays_and_stops_the_world(void **state)
{
    struct world w;
    struct bell b;
    (void)state;

    world_init(&w, 9);
    bell_init(&b, &w);
    world_run_for(&w, 1500 * NS_PER_MS);
    world_fail(&w, "law 6", "two records; request", 17);
    world_fail(&w, "law 7", "other", 1);
    assert_string_equal(w.failure, "law 6: two records; request (17) [seed 9, at 1.500000 s]");
    world_arm(&w, &b.event, w.now);
    world_run_for(&w, NS_PER_S);
    assert_int_equal(b.rings, 0);
    world_release(&w);
}

static uint64_t digest_of(struct bytes b)
{
    struct world w;

    world_init(&w, 1);
    world_digest_bytes(&w, b);
    return world_digest(&w);
}

static void the_digest_sees_every_byte_and_their_order(void **state)
{
    char text[] = "the quick brown fox jumps";
    uint64_t whole = digest_of(bytes_of(text));
    (void)state;

    assert_int_equal(whole, digest_of(bytes_of(text)));
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        text[i] ^= 1;
        assert_int_not_equal(whole, digest_of(bytes_of(text)));
        text[i] ^= 1;
        assert_int_not_equal(whole, digest_of(bytes_from(text, i)));
    }
    assert_int_not_equal(digest_of(BYTES("ab")), digest_of(BYTES("ba")));
    assert_int_not_equal(digest_of(BYTES("")), digest_of(bytes_from("\0", 1)));
}

static void chance_is_as_said(void **state)
{
    struct world w;
    unsigned hits = 0;
    double sum = 0;
    (void)state;

    world_init(&w, 5);
    for (unsigned i = 0; i < 100000; i++) {
        hits += world_chance(&w, 100);
        assert_false(world_chance(&w, 0));
        assert_true(world_chance(&w, 1000));
        assert_true(world_span(&w, 7) <= 7);
        sum += (double)world_exponential(&w, NS_PER_S);
    }
    assert_int_equal(world_span(&w, 0), 0);
    assert_in_range(hits, 9500, 10500);
    assert_true(sum > 0.98e14 && sum < 1.02e14);
    world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_stands_where_the_event_is),
        cmocka_unit_test(an_instant_in_the_past_is_now),
        cmocka_unit_test(never_is_not_armed),
        cmocka_unit_test(events_of_one_instant_keep_the_order_of_arming),
        cmocka_unit_test(an_event_may_arm_itself),
        cmocka_unit_test(whatever_is_armed_fires_once_and_in_time),
        cmocka_unit_test(the_wall_clock_steps_and_the_other_does_not),
        cmocka_unit_test(a_loop_runs_when_woken_and_when_its_time_has_come),
        cmocka_unit_test(a_woken_loop_may_be_late_but_not_by_more_than_was_said),
        cmocka_unit_test(a_loop_that_is_held_runs_once_when_it_may_again),
        cmocka_unit_test(a_loop_that_is_done_or_stopped_runs_no_more),
        cmocka_unit_test(a_loop_that_spins_breaks_a_law),
        cmocka_unit_test(a_wakeup_that_is_always_past_is_a_spin_too),
        cmocka_unit_test(a_loop_with_a_timer_each_millisecond_does_not_spin),
        cmocka_unit_test(the_first_failure_stays_and_stops_the_world),
        cmocka_unit_test(the_digest_sees_every_byte_and_their_order),
        cmocka_unit_test(chance_is_as_said),
    };

    return cmocka_run_group_tests_name("world", tests, NULL, NULL);
}
