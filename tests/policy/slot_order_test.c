/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is: the one who came first, on whatever worker. */
#include "policy/slot_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#define WORKERS 4

static struct slot_order order;
static struct slot_line lines[WORKERS];

static int make(void **state)
{
    (void)state;
    slot_order_init(&order, lines, WORKERS);
    return 0;
}

static void nobody_waits_at_first(void **state)
{
    (void)state;

    assert_int_equal(slot_order_waiting(&order), 0);
    assert_int_equal(slot_order_next(&order), SLOT_NOBODY);
    assert_false(slot_order_may_keep(&order, 0));
}

static void who_came_first_is_next(void **state)
{
    (void)state;

    slot_order_join(&order, 2, 30);
    slot_order_join(&order, 3, 10);
    slot_order_join(&order, 1, 20);
    assert_int_equal(slot_order_waiting(&order), 3);
    assert_int_equal(slot_order_next(&order), 3);
    slot_order_leave(&order, 3, MONO_NEVER);
    assert_int_equal(slot_order_next(&order), 1);
    slot_order_leave(&order, 1, MONO_NEVER);
    assert_int_equal(slot_order_next(&order), 2);
    slot_order_leave(&order, 2, MONO_NEVER);
    assert_int_equal(slot_order_next(&order), SLOT_NOBODY);
    assert_int_equal(slot_order_waiting(&order), 0);
}

static void a_worker_has_the_age_of_its_first(void **state)
{
    (void)state;

    slot_order_join(&order, 0, 10);
    slot_order_join(&order, 0, 10);
    slot_order_join(&order, 1, 20);
    slot_order_leave(&order, 0, 25); /* its first is gone, the second came at 25 */
    assert_int_equal(slot_order_waiting(&order), 2);
    assert_int_equal(slot_order_next(&order), 1);
}

static void a_connection_is_kept_while_the_others_are_not_much_older(void **state)
{
    const mono_ns slack = WORKERS * SLOT_ORDER_SLACK;
    (void)state;

    slot_order_join(&order, 1, NS_PER_S);
    slot_order_join(&order, 0, NS_PER_S + slack);
    assert_true(slot_order_may_keep(&order, 1));
    assert_true(slot_order_may_keep(&order, 0));
    assert_false(slot_order_may_keep(&order, 2)); /* it has nobody to keep it for */
    slot_order_leave(&order, 0, NS_PER_S + slack + 1);
    assert_false(slot_order_may_keep(&order, 0));
    assert_true(slot_order_may_keep(&order, 1));
}

static void who_is_told_is_told_once_until_he_has_heard(void **state)
{
    (void)state;

    assert_true(slot_order_tell(&order, 1));
    assert_false(slot_order_tell(&order, 1));
    assert_true(slot_order_tell(&order, 2));
    slot_order_heard(&order, 1);
    assert_true(slot_order_tell(&order, 1));
    assert_false(slot_order_tell(&order, 2));
}

/* --- the law, on random histories, against queues that are looked through --- */

#define QUEUE 64

struct queue {
    mono_ns at[QUEUE];
    uint32_t count;
};

static mono_ns first_of(const struct queue *q)
{
    return q->count == 0 ? MONO_NEVER : q->at[0];
}

static void take(struct queue *q, uint32_t n)
{
    for (uint32_t i = n; i + 1 < q->count; i++)
        q->at[i] = q->at[i + 1];
    q->count--;
}

static void check(const struct queue *queues)
{
    mono_ns oldest = MONO_NEVER;
    uint32_t waiting = 0, next = slot_order_next(&order);

    for (uint32_t i = 0; i < WORKERS; i++) {
        waiting += queues[i].count;
        oldest = mono_min(oldest, first_of(&queues[i]));
    }
    assert_int_equal(slot_order_waiting(&order), waiting);
    assert_int_equal(next == SLOT_NOBODY, waiting == 0);
    if (waiting == 0)
        return;
    assert_int_equal(first_of(&queues[next]), oldest);
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_int_equal(slot_order_may_keep(&order, i),
                         queues[i].count > 0 &&
                             first_of(&queues[i]) - oldest <= WORKERS * SLOT_ORDER_SLACK);
}

static void one_history(uint64_t seed)
{
    struct queue queues[WORKERS] = {{.count = 0}};
    struct rng rng;
    mono_ns now = 0;

    rng_init(&rng, seed);
    slot_order_init(&order, lines, WORKERS);
    for (unsigned step = 0; step < 400; step++) {
        uint32_t w = rng_below(&rng, WORKERS);
        struct queue *q = &queues[w];

        now += rng_below(&rng, 4 * (uint32_t)SLOT_ORDER_SLACK);
        if (rng_below(&rng, 2) == 0 && q->count < QUEUE) {
            q->at[q->count++] = now;
            slot_order_join(&order, w, first_of(q));
        } else if (q->count > 0) {
            take(q, rng_below(&rng, q->count));
            slot_order_leave(&order, w, first_of(q));
        }
        check(queues);
    }
}

static void the_next_is_always_the_oldest_of_all(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 200; seed++)
        one_history(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nobody_waits_at_first, make),
        cmocka_unit_test_setup(who_came_first_is_next, make),
        cmocka_unit_test_setup(a_worker_has_the_age_of_its_first, make),
        cmocka_unit_test_setup(a_connection_is_kept_while_the_others_are_not_much_older, make),
        cmocka_unit_test_setup(who_is_told_is_told_once_until_he_has_heard, make),
        cmocka_unit_test(the_next_is_always_the_oldest_of_all),
    };

    return cmocka_run_group_tests_name("slot_order", tests, NULL, NULL);
}
