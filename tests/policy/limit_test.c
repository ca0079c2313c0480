/* SPDX-License-Identifier: Apache-2.0 */
/* The limit: exact, whatever the number of threads. */
#include "policy/limit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void takes_up_to_the_most_and_not_one_more(void **state)
{
    struct limit l;
    (void)state;

    limit_init(&l);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(limit_take(&l, 3));
    assert_false(limit_take(&l, 3));
    assert_int_equal(limit_used(&l), 3);
}

static void what_is_given_back_can_be_taken_again(void **state)
{
    struct limit l;
    (void)state;

    limit_init(&l);
    assert_true(limit_take(&l, 1));
    limit_give(&l);
    assert_int_equal(limit_used(&l), 0);
    assert_true(limit_take(&l, 1));
    assert_false(limit_take(&l, 1));
}

static void zero_always_refuses_and_none_never(void **state)
{
    struct limit l;
    (void)state;

    limit_init(&l);
    assert_false(limit_take(&l, 0));
    for (uint32_t i = 0; i < 100000; i++)
        assert_true(limit_take(&l, LIMIT_NONE));
    assert_false(limit_take(&l, 0));
    assert_int_equal(limit_used(&l), 100000);
}

static void a_smaller_limit_refuses_until_enough_is_given_back(void **state)
{
    struct limit l;
    (void)state;

    limit_init(&l);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(limit_take(&l, 5));
    for (uint32_t i = 5; i >= 2; i--) {
        assert_false(limit_take(&l, 2));
        limit_give(&l);
    }
    assert_int_equal(limit_used(&l), 1);
    assert_true(limit_take(&l, 2));
}

#define THREADS 4
#define OPS     100000
#define TAKES   2000000 /* long enough that the threads meet even on a busy machine */
#define MOST    3

struct crowd {
    struct limit limit;
    pthread_barrier_t start;
    _Atomic uint32_t holders; /* counted apart from the limit */
    _Atomic uint32_t excess;  /* times more than MOST held one */
    _Atomic uint64_t granted;
};

static void *take_and_give(void *argument)
{
    struct crowd *c = argument;
    uint64_t granted = 0;

    pthread_barrier_wait(&c->start);
    for (uint32_t i = 0; i < OPS; i++) {
        if (!limit_take(&c->limit, MOST))
            continue;
        granted++;
        if (atomic_fetch_add(&c->holders, 1) + 1 > MOST || limit_used(&c->limit) > MOST)
            atomic_fetch_add(&c->excess, 1);
        atomic_fetch_sub(&c->holders, 1);
        limit_give(&c->limit);
    }
    atomic_fetch_add(&c->granted, granted);
    return NULL;
}

static void is_never_exceeded_and_ends_empty_under_four_threads(void **state)
{
    static struct crowd c;
    pthread_t threads[THREADS];
    (void)state;

    limit_init(&c.limit);
    pthread_barrier_init(&c.start, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &c), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&c.start);
    assert_int_equal(c.excess, 0);
    assert_int_equal(limit_used(&c.limit), 0);
    assert_true(c.granted >= OPS); /* one at a time would already get that many */
}

static void *take_only(void *argument)
{
    struct crowd *c = argument;
    uint64_t granted = 0;

    pthread_barrier_wait(&c->start);
    for (uint32_t i = 0; i < TAKES; i++)
        granted += limit_take(&c->limit, THREADS * TAKES / 2);
    atomic_fetch_add(&c->granted, granted);
    return NULL;
}

static void *take_what_there_is_room_for(void *argument)
{
    struct crowd *c = argument;
    uint64_t granted = 0;

    pthread_barrier_wait(&c->start);
    for (uint32_t i = 0; i < TAKES; i++)
        granted += limit_take(&c->limit, THREADS * TAKES);
    atomic_fetch_add(&c->granted, granted);
    return NULL;
}

/* Losing a race against another thread is no reason to refuse. */
static void never_refuses_while_there_is_room(void **state)
{
    static struct crowd c;
    pthread_t threads[THREADS];
    (void)state;

    limit_init(&c.limit);
    pthread_barrier_init(&c.start, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_what_there_is_room_for, &c), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&c.start);
    assert_int_equal(c.granted, THREADS * TAKES);
    assert_int_equal(limit_used(&c.limit), THREADS * TAKES);
}

/* Nobody gives back: so exactly the most is granted, neither more nor fewer. */
static void grants_exactly_the_most_under_four_threads(void **state)
{
    static struct crowd c;
    pthread_t threads[THREADS];
    (void)state;

    limit_init(&c.limit);
    pthread_barrier_init(&c.start, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_only, &c), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&c.start);
    assert_int_equal(c.granted, THREADS * TAKES / 2);
    assert_int_equal(limit_used(&c.limit), THREADS * TAKES / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_up_to_the_most_and_not_one_more),
        cmocka_unit_test(what_is_given_back_can_be_taken_again),
        cmocka_unit_test(zero_always_refuses_and_none_never),
        cmocka_unit_test(a_smaller_limit_refuses_until_enough_is_given_back),
        cmocka_unit_test(is_never_exceeded_and_ends_empty_under_four_threads),
        cmocka_unit_test(never_refuses_while_there_is_room),
        cmocka_unit_test(grants_exactly_the_most_under_four_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
