/* SPDX-License-Identifier: Apache-2.0 */
/* How long simulated servers work, and what of that is a fault. */
#include "sim/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define DRAWS 20001
#define USUAL (20 * NS_PER_MS)

static struct world w;
static span_ns drawn[DRAWS];

static int setup(void **state)
{
    (void)state;
    world_init(&w, 7);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_release(&w);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const span_ns *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorted, into |drawn|; how many of them are blamed. */
static uint32_t draw_many(const struct pace *p, enum method method)
{
    uint32_t blamed = 0;

    for (uint32_t i = 0; i < DRAWS; i++) {
        struct pace_time t = pace_draw(p, &w, USUAL, method);

        drawn[i] = t.work;
        blamed += t.blamed;
    }
    qsort(drawn, DRAWS, sizeof(*drawn), compare);
    return blamed;
}

static double permille(uint32_t share)
{
    return (double)drawn[(DRAWS - 1) * share / 1000] / (double)USUAL;
}

static void expect_near(double is, double due, double within)
{
    if (is < due * (1 - within) || is > due * (1 + within))
        fail_msg("%f is not %f", is, due);
}

static void without_a_fault_it_is_the_usual_time_and_an_exponential(void **state)
{
    const struct pace p = {.slow = 0};
    (void)state;

    assert_int_equal(draw_many(&p, METHOD_GET), 0);
    expect_near(permille(0), 1.0, 0.001);
    expect_near(permille(500), 1.693, 0.03);
}

static void a_log_normal_time_has_its_median_and_its_spread(void **state)
{
    const struct pace p = {.sigma = 0.5};
    (void)state;

    assert_int_equal(draw_many(&p, METHOD_GET), 0);
    expect_near(permille(500), 1.0, 0.03);
    expect_near(permille(841), 1.649, 0.03); /* e^sigma */
    expect_near(permille(159), 0.606, 0.03);
    expect_near(permille(990), 3.2, 0.08);
}

static void slow_is_slow_by_its_factor_from_its_instant_on(void **state)
{
    const struct pace p = {.sigma = 0.5, .slow = 3, .slow_from = w.now + 10 * NS_PER_S};
    (void)state;

    assert_int_equal(draw_many(&p, METHOD_GET), 0);
    expect_near(permille(500), 1.0, 0.03);
    world_run_for(&w, 10 * NS_PER_S);
    assert_int_equal(draw_many(&p, METHOD_GET), DRAWS);
    expect_near(permille(500), 3.0, 0.03);
}

static void a_ramp_gets_there_little_by_little(void **state)
{
    const struct pace p = {.sigma = 0.5, .slow = 5, .slow_from = w.now, .slow_ramp = 8 * NS_PER_S};
    (void)state;

    for (uint32_t s = 2; s <= 10; s += 2) {
        world_run_for(&w, 2 * NS_PER_S);
        (void)draw_many(&p, METHOD_GET);
        expect_near(permille(500), s < 8 ? 1 + s / 2.0 : 5, 0.03);
    }
}

static void a_share_of_requests_is_slow_and_only_they_are_blamed(void **state)
{
    const struct pace p = {.sigma = 0.1, .tail_permille = 50, .tail = 20};
    uint32_t blamed;
    (void)state;

    blamed = draw_many(&p, METHOD_GET);
    expect_near(blamed, DRAWS * 0.05, 0.1);
    expect_near(permille(500), 1.0, 0.03);
    expect_near(permille(975), 20.0, 0.05);
}

static void one_class_alone_is_slow(void **state)
{
    const struct pace reads = {.sigma = 0.5, .slow = 4, .whom = PACE_READS};
    const struct pace writes = {.sigma = 0.5, .slow = 4, .whom = PACE_WRITES};
    (void)state;

    assert_int_equal(draw_many(&reads, METHOD_HEAD), DRAWS);
    assert_int_equal(draw_many(&reads, METHOD_POST), 0);
    assert_int_equal(draw_many(&writes, METHOD_GET), 0);
    assert_int_equal(draw_many(&writes, METHOD_PUT), DRAWS);
}

static void heavy_requests_take_longer_and_nobody_is_blamed(void **state)
{
    const struct pace p = {.sigma = 0.1, .heavy_permille = 600, .heavy = 10};
    uint32_t heavy = 0;
    (void)state;

    assert_int_equal(draw_many(&p, METHOD_GET), 0);
    expect_near(permille(200), 1.0, 0.1);
    expect_near(permille(700), 10.0, 0.1);
    for (uint32_t i = 0; i < DRAWS; i++)
        heavy += pace_draw(&p, &w, USUAL, METHOD_GET).heavy;
    expect_near(heavy, DRAWS * 0.6, 0.03);
}

static void while_it_is_frozen_nothing_goes_on(void **state)
{
    const struct pace p = {.freeze_every = 5000, .freeze_for = 1000};
    (void)state;

    assert_int_equal(pace_thawed(&p, 0, 4000), 4000);  /* just done */
    assert_int_equal(pace_thawed(&p, 0, 4001), 5001);  /* the last of it waits */
    assert_int_equal(pace_thawed(&p, 3990, 20), 1020); /* the freeze comes in between */
    assert_int_equal(pace_thawed(&p, 4000, 20), 1020); /* it begins in it */
    assert_int_equal(pace_thawed(&p, 4999, 20), 21);
    assert_int_equal(pace_thawed(&p, 5000, 20), 20);
    assert_int_equal(pace_thawed(&p, 0, 8000), 9000);
    assert_int_equal(pace_thawed(&p, 0, 8001), 10001);
    assert_true(pace_thawed(&p, 0, MONO_NEVER) == MONO_NEVER);
}

/* Whatever is asked: work is done in the time that it runs, no sooner and no later. */
static void thawed_time_holds_as_much_running_time_as_there_is_work(void **state)
{
    const struct pace p = {.freeze_every = 97, .freeze_for = 31};
    (void)state;

    for (uint32_t i = 0; i < 2000; i++) {
        mono_ns now = rng_below(&w.rng, 1000);
        span_ns work = 1 + rng_below(&w.rng, 500);
        span_ns takes = pace_thawed(&p, now, work);
        span_ns ran = 0;

        for (mono_ns t = now; t < now + takes; t++)
            ran += t % 97 < 66;
        assert_int_equal(ran, work);
        assert_true((now + takes - 1) % 97 < 66); /* the last of it was work */
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_fault_it_is_the_usual_time_and_an_exponential),
        TEST(a_log_normal_time_has_its_median_and_its_spread),
        TEST(slow_is_slow_by_its_factor_from_its_instant_on),
        TEST(a_ramp_gets_there_little_by_little),
        TEST(a_share_of_requests_is_slow_and_only_they_are_blamed),
        TEST(one_class_alone_is_slow),
        TEST(heavy_requests_take_longer_and_nobody_is_blamed),
        TEST(while_it_is_frozen_nothing_goes_on),
        TEST(thawed_time_holds_as_much_running_time_as_there_is_work),
    };

    return cmocka_run_group_tests_name("sim/pace", tests, NULL, NULL);
}
