/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void workers_then_the_queue_then_nothing(void **state)
{
    struct slots s;
    struct list jobs[5];
    (void)state;

    slots_init(&s, 2, 2);
    for (unsigned i = 0; i < 5; i++)
        list_init(&jobs[i]);
    assert_int_equal(slots_arrive(&s, &jobs[0]), SLOTS_RUN);
    assert_int_equal(slots_arrive(&s, &jobs[1]), SLOTS_RUN);
    assert_int_equal(slots_arrive(&s, &jobs[2]), SLOTS_WAIT);
    assert_int_equal(slots_arrive(&s, &jobs[3]), SLOTS_WAIT);
    assert_int_equal(slots_arrive(&s, &jobs[4]), SLOTS_FULL);
    assert_true(list_empty(&jobs[0]) && list_empty(&jobs[4]));
}

static void a_worker_that_is_done_takes_who_waits_longest(void **state)
{
    struct slots s;
    struct list jobs[3];
    (void)state;

    slots_init(&s, 1, 5);
    for (unsigned i = 0; i < 3; i++) {
        list_init(&jobs[i]);
        slots_arrive(&s, &jobs[i]);
    }
    assert_ptr_equal(slots_leave(&s), &jobs[1]);
    assert_int_equal(s.busy, 1);
    assert_ptr_equal(slots_leave(&s), &jobs[2]);
    assert_null(slots_leave(&s));
    assert_int_equal(s.busy, 0);
}

static void who_gives_up_makes_room(void **state)
{
    struct slots s;
    struct list jobs[4];
    (void)state;

    slots_init(&s, 1, 2);
    for (unsigned i = 0; i < 4; i++)
        list_init(&jobs[i]);
    for (unsigned i = 0; i < 3; i++)
        slots_arrive(&s, &jobs[i]);
    slots_forget(&s, &jobs[1]);
    assert_int_equal(slots_arrive(&s, &jobs[3]), SLOTS_WAIT);
    assert_ptr_equal(slots_leave(&s), &jobs[2]);
    assert_ptr_equal(slots_leave(&s), &jobs[3]);
}

static void without_a_queue_nobody_waits(void **state)
{
    struct slots s;
    struct list jobs[2];
    (void)state;

    slots_init(&s, 1, 0);
    list_init(&jobs[0]);
    list_init(&jobs[1]);
    assert_int_equal(slots_arrive(&s, &jobs[0]), SLOTS_RUN);
    assert_int_equal(slots_arrive(&s, &jobs[1]), SLOTS_FULL);
}

/* Law: never more at work or in line than there is room; nobody waits while a worker rests. */
static void random_histories_keep_the_bounds(void **state)
{
    enum { MANY = 40 };
    (void)state;

    for (uint64_t seed = 0; seed < 200; seed++) {
        struct slots s;
        struct rng rng;
        struct list jobs[MANY];

        rng_init(&rng, seed);
        slots_init(&s, 1 + rng_below(&rng, 5), rng_below(&rng, 6));
        for (unsigned i = 0; i < MANY; i++)
            list_init(&jobs[i]);
        for (unsigned step = 0; step < 500; step++) {
            struct list *job = &jobs[rng_below(&rng, MANY)];
            uint32_t present = s.busy + s.waiting;

            if (!list_empty(job) && rng_below(&rng, 3) == 0) {
                slots_forget(&s, job);
                assert_int_equal(s.busy + s.waiting, present - 1);
            } else if (list_empty(job) && rng_below(&rng, 2) == 0) {
                enum slots_verdict v = slots_arrive(&s, job);

                assert_int_equal(s.busy + s.waiting, present + (v != SLOTS_FULL));
                assert_int_equal(v == SLOTS_FULL, present == s.workers + s.room);
            } else if (s.busy > 0) {
                slots_leave(&s);
                assert_int_equal(s.busy + s.waiting, present - 1);
            }
            assert_true(s.busy <= s.workers && s.waiting <= s.room);
            assert_true(s.waiting == 0 || s.busy == s.workers);
            assert_int_equal(s.waiting == 0, list_empty(&s.queue));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_then_the_queue_then_nothing),
        cmocka_unit_test(a_worker_that_is_done_takes_who_waits_longest),
        cmocka_unit_test(who_gives_up_makes_room),
        cmocka_unit_test(without_a_queue_nobody_waits),
        cmocka_unit_test(random_histories_keep_the_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
