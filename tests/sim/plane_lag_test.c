/* SPDX-License-Identifier: Apache-2.0 */
/* How long a worker's loop kept anything waiting, as it notes it itself. */
#include "sim/plane.h"

static struct plane p;

static const struct lag *noted(void)
{
    return &p.rig.state->worker_cells[0].lag;
}

static uint64_t times(void)
{
    return atomic_load(&noted()->times.count);
}

static span_ns worst(void)
{
    return lag_worst(noted(), p.rig.world.now, LAG_SECONDS);
}

static void turns_that_take_no_time_are_not_noted(void **state)
{
    (void)state;

    plane_settings(&p, 2, 1);
    plane_go(&p);
    plane_traffic(&p, 200, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 200);
    assert_int_equal(times(), 0);
    assert_int_equal(worst(), 0);
    plane_end(&p);
}

/* --- a turn that takes long --- */

static span_ns slipped; /* the proxy's clock is so far ahead of the world's */
static span_ns slips;   /* by each record that is made */
static mono_ns (*world_clock)(struct clock *c);
static bool (*ledger_put)(struct record_sink *s, const struct request_record *r);

static mono_ns slipping_clock(struct clock *c)
{
    return world_clock(c) + slipped;
}

static bool slow_put(struct record_sink *s, const struct request_record *r)
{
    slipped += slips;
    return ledger_put(s, r);
}

static void go_slipping(void)
{
    plane_go(&p);
    slipped = slips = 0;
    world_clock = p.rig.world.clock.read;
    p.rig.world.clock.read = slipping_clock;
    ledger_put = p.rig.workers[0].sink.base.put;
    p.rig.workers[0].sink.base.put = slow_put;
}

static void ask_with_a_turn_of(span_ns length)
{
    slips = length;
    plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
}

static void a_turn_that_takes_long_is_noted_for_its_length(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    go_slipping();
    ask_with_a_turn_of(NS_PER_MS - 1);
    assert_int_equal(times(), 0);
    ask_with_a_turn_of(NS_PER_MS);
    assert_int_equal(times(), 1);
    ask_with_a_turn_of(15 * NS_PER_MS);
    ask_with_a_turn_of(4 * NS_PER_MS);
    assert_int_equal(times(), 3);
    assert_int_equal(worst(), 15 * NS_PER_MS);
    assert_int_equal(atomic_load(&noted()->times.sum), 20000);
    assert_int_equal(plane_answered(&p, 2), 4);
    plane_end(&p);
}

/* --- a loop that the machine has no time for --- */

static void woken_late_it_notes_how_late_its_timer_was(void **state)
{
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.route.timeout = 200 * NS_PER_MS;
    go_slipping();
    plane_plan(&p, 0)->delay = MONO_NEVER;
    id = plane_get(&p);
    plane_run(&p, 190 * NS_PER_MS);
    assert_int_equal(times(), 0);
    slipped += 30 * NS_PER_MS; /* it stood still for so long, in its sleep */
    plane_run(&p, 100 * NS_PER_MS);
    plane_expect(&p, id, 504);
    assert_int_equal(times(), 1);
    assert_int_equal(worst(), 30 * NS_PER_MS);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_that_take_no_time_are_not_noted),
        cmocka_unit_test(a_turn_that_takes_long_is_noted_for_its_length),
        cmocka_unit_test(woken_late_it_notes_how_late_its_timer_was),
    };

    return cmocka_run_group_tests_name("plane_lag", tests, NULL, NULL);
}
