/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/knee.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

/* Up to |free| under way nothing waits; beyond, latency grows as the queue does. */
static double log_ratio(uint32_t ahead, uint32_t free)
{
    return ahead < free ? 0 : log((ahead + 1.0) / free);
}

/* Forty requests at each level. */
static void learn(struct knee *k, uint32_t from, uint32_t to, uint32_t free)
{
    for (int round = 0; round < 40; round++)
        for (uint32_t ahead = from; ahead <= to; ahead++)
            knee_learn(k, ahead, log_ratio(ahead, free));
}

static void nothing_seen_is_no_load(void **state)
{
    const struct knee k = {0};
    (void)state;

    assert_int_equal(knee_at(&k), 0);
    assert_true(knee_load(&k, 10, 9) == 0);
    assert_true(knee_load(&k, 10, 0) == 0);
}

static void latency_that_never_grew_has_no_knee(void **state)
{
    struct knee k = {0};
    (void)state;

    learn(&k, 0, 20, 64);
    assert_int_equal(knee_at(&k), 0);
    assert_true(knee_load(&k, 10, 1) == 0);
}

/* By the definition: the mean of all levels from there on, each seen as often. */
static double mean_beyond(uint32_t level, uint32_t to, uint32_t free)
{
    double sum = 0;

    for (uint32_t ahead = level; ahead <= to; ahead++)
        sum += log_ratio(ahead, free);
    return level > to ? 0 : sum / (to - level + 1);
}

static void assert_knee(const struct knee *k, uint32_t to, uint32_t free)
{
    uint32_t knee = knee_at(k);

    if (knee == 0) {
        assert_true(mean_beyond(to, to, free) < log(1.5) + 0.01);
        return;
    }
    assert_true(mean_beyond(knee, to, free) > log(1.5) - 0.01);
    assert_true(knee == 1 || mean_beyond(knee - 1, to, free) < log(1.5) + 0.01);
}

static void is_where_latency_is_half_as_much_again_from_there_on(void **state)
{
    (void)state;
    for (uint32_t free = 2; free < 24; free++) {
        for (uint32_t to = free + 1; to < 2 * free + 8; to += 3) {
            struct knee k = {0};

            learn(&k, 0, to, free);
            assert_knee(&k, to, free);
        }
    }
}

static void a_few_slow_requests_say_nothing(void **state)
{
    struct knee k = {0};
    (void)state;

    learn(&k, 0, 0, 64);
    for (int i = 0; i < 29; i++)
        knee_learn(&k, 10, 3);
    assert_int_equal(knee_at(&k), 0);
    for (int i = 0; i < 20; i++)
        knee_learn(&k, 10, 3);
    assert_int_equal(knee_at(&k), 1);
}

static void levels_too_seldom_seen_are_taken_together(void **state)
{
    struct knee k = {0};
    (void)state;

    for (int i = 0; i < 8; i++)
        for (uint32_t ahead = 0; ahead < 12; ahead++)
            knee_learn(&k, ahead, ahead < 8 ? 0 : 2);
    assert_int_equal(knee_at(&k), 4); /* 0 .. 3 are the first thirty; the mean from 4 on is 1 */
}

static void beyond_the_last_level_all_are_one(void **state)
{
    struct knee k = {0};
    (void)state;

    learn(&k, 0, KNEE_LEVELS - 2, 64);
    assert_int_equal(knee_at(&k), 0);
    for (uint32_t i = 0; i < 40; i++)
        knee_learn(&k, i == 0 ? KNEE_LEVELS - 1 : UINT32_MAX - i, 0.42);
    assert_int_equal(knee_at(&k), KNEE_LEVELS - 1);
}

static void load_is_shared_by_those_that_are_left(void **state)
{
    struct knee k = {0};
    double all, knee;
    (void)state;

    learn(&k, 0, 16, 8);
    for (int i = 0; i < 4000; i++)
        knee_learn(&k, 4, 0);
    knee = knee_at(&k);
    all = knee_load(&k, 10, 10);
    assert_true(knee > 4 && fabs(all * knee - 4) < 0.01);
    assert_true(fabs(knee_load(&k, 10, 5) - 2 * all) < 1e-9);
    assert_true(isinf(knee_load(&k, 10, 0)));
}

/* What was learnt long ago gives way. */
static void a_host_that_grew_has_another_knee(void **state)
{
    struct knee k = {0};
    (void)state;

    for (int i = 0; i < 40; i++)
        learn(&k, 0, 16, 8);
    assert_knee(&k, 16, 8);
    for (int i = 0; i < 30; i++)
        learn(&k, 0, 32, 16);
    assert_knee(&k, 32, 16);
}

/*
 * The law: on random histories the mean of what was seen from the knee on is slower than the
 * first levels' by half, and from one level sooner on it is not, but for what noise does.
 */
struct seen {
    double sum[KNEE_LEVELS], count[KNEE_LEVELS];
};

static double mean_from(const struct seen *s, uint32_t level)
{
    double sum = 0, count = 0;

    for (uint32_t i = level; i < KNEE_LEVELS; i++) {
        sum += s->sum[i];
        count += s->count[i];
    }
    return count > 0 ? sum / count : 0;
}

static void on_random_histories_all_from_the_knee_on_is_slower_by_half(void **state)
{
    uint32_t found = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct knee k = {0};
        struct seen s = {.sum = {0}};
        struct rng rng;
        uint32_t free, knee;

        rng_init(&rng, seed);
        free = 2 + rng_below(&rng, 24);
        for (int i = 0; i < 6000; i++) {
            uint32_t ahead = rng_below(&rng, 2 + free * 2);
            double ratio = log_ratio(ahead, free) + rng_unit(&rng) - 0.5;

            knee_learn(&k, ahead, ratio);
            s.sum[ahead] += ratio;
            s.count[ahead] += 1;
        }
        knee = knee_at(&k);
        if (knee == 0)
            continue;
        found++;
        assert_true(mean_from(&s, knee) > log(1.5) - 0.1);
        assert_true(knee == 1 || mean_from(&s, knee - 1) < log(1.5) + 0.1);
    }
    assert_true(found > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_seen_is_no_load),
        cmocka_unit_test(latency_that_never_grew_has_no_knee),
        cmocka_unit_test(is_where_latency_is_half_as_much_again_from_there_on),
        cmocka_unit_test(a_few_slow_requests_say_nothing),
        cmocka_unit_test(levels_too_seldom_seen_are_taken_together),
        cmocka_unit_test(beyond_the_last_level_all_are_one),
        cmocka_unit_test(load_is_shared_by_those_that_are_left),
        cmocka_unit_test(a_host_that_grew_has_another_knee),
        cmocka_unit_test(on_random_histories_all_from_the_knee_on_is_slower_by_half),
    };

    return cmocka_run_group_tests_name("knee", tests, NULL, NULL);
}
