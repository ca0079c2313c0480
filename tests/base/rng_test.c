/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: the published sequence, the same everywhere, and no bias to be seen. */
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The first numbers of the authors' program from the state 1, 2, 3, 4. */
static void the_sequence_is_xoshiro256_plus_plus(void **state)
{
    static const uint64_t expected[] = {UINT64_C(41943041), UINT64_C(58720359),
                                        UINT64_C(3588806011781223), UINT64_C(3591011842654386),
                                        UINT64_C(9228616714210784205)};
    struct rng r = {.s = {1, 2, 3, 4}};
    (void)state;

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_true(rng_next(&r) == expected[i]);
}

/* splitmix64 from seed 0, as its author publishes it. */
static void seeding_is_splitmix64(void **state)
{
    struct rng r;
    (void)state;

    rng_init(&r, 0);
    assert_true(r.s[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(r.s[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(r.s[2] == UINT64_C(0x06c45d188009454f));
    assert_true(r.s[3] == UINT64_C(0xf88bb8a8724c81ec));
}

static void one_seed_gives_one_sequence(void **state)
{
    struct rng a, b, c;
    unsigned differ = 0;
    (void)state;

    rng_init(&a, 42);
    rng_init(&b, 42);
    rng_init(&c, 43);
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rng_next(&a);

        assert_true(x == rng_next(&b));
        differ += x != rng_next(&c);
    }
    assert_int_equal(differ, 1000);
}

static void below_one_is_zero_and_below_the_largest_reaches_far(void **state)
{
    struct rng r;
    uint32_t highest = 0;
    (void)state;

    rng_init(&r, 1);
    for (int i = 0; i < 1000; i++) {
        uint32_t x = rng_below(&r, UINT32_MAX);

        assert_int_equal(rng_below(&r, 1), 0);
        assert_true(x < UINT32_MAX);
        highest = x > highest ? x : highest;
    }
    assert_true(highest > UINT32_MAX / 100 * 98);
}

/* Chi-square with n - 1 degrees of freedom; the bound is far beyond its 99.99 % point. */
static void small_ranges_are_uniform(void **state)
{
    (void)state;

    for (uint32_t n = 2; n <= 12; n++) {
        uint32_t seen[12] = {0};
        double chi = 0, expected = 100000.0 / n;
        struct rng r;

        rng_init(&r, n);
        for (int i = 0; i < 100000; i++)
            seen[rng_below(&r, n)]++;
        for (uint32_t i = 0; i < n; i++)
            chi += (seen[i] - expected) * (seen[i] - expected) / expected;
        assert_true(chi < 40);
    }
}

/* Of 3 × 2^30 numbers the naive product would give every third twice as often. */
static void a_large_range_is_without_bias(void **state)
{
    struct rng r;
    uint32_t thirds[3] = {0};
    (void)state;

    rng_init(&r, 5);
    for (int i = 0; i < 90000; i++)
        thirds[rng_below(&r, UINT32_C(3) << 30) % 3]++;
    for (int i = 0; i < 3; i++)
        assert_true(thirds[i] > 29300 && thirds[i] < 30700);
}

static void the_unit_interval_is_half_open_and_even(void **state)
{
    struct rng r;
    double sum = 0, lowest = 1, highest = 0;
    (void)state;

    rng_init(&r, 6);
    for (int i = 0; i < 100000; i++) {
        double x = rng_unit(&r);

        assert_true(x >= 0 && x < 1);
        sum += x;
        lowest = x < lowest ? x : lowest;
        highest = x > highest ? x : highest;
    }
    assert_true(sum > 49500 && sum < 50500);
    assert_true(lowest < 0.001 && highest > 0.999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_is_xoshiro256_plus_plus),
        cmocka_unit_test(seeding_is_splitmix64),
        cmocka_unit_test(one_seed_gives_one_sequence),
        cmocka_unit_test(below_one_is_zero_and_below_the_largest_reaches_far),
        cmocka_unit_test(small_ranges_are_uniform),
        cmocka_unit_test(a_large_range_is_without_bias),
        cmocka_unit_test(the_unit_interval_is_half_open_and_even),
    };

    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
