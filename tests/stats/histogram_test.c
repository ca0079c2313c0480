/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOP ((UINT64_C(1) << 33) - 1) /* largest value of the last bin */

static struct histogram first, second, sum, both;

static void clear_all(void)
{
    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    memset(&sum, 0, sizeof(sum));
    memset(&both, 0, sizeof(both));
}

static uint64_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *random >> 16;
}

/* Any magnitude is as likely as any other. */
static uint64_t any_value(uint64_t *random)
{
    unsigned bits = (unsigned)(next(random) % 34);

    return bits == 0 ? 0 : next(random) & ((UINT64_C(1) << bits) - 1);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void values_below_64_have_a_bin_each(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 64; v++) {
        assert_int_equal(histogram_bin(v), v);
        assert_int_equal(histogram_bin_low((unsigned)v), v);
        assert_int_equal(histogram_bin_high((unsigned)v), v);
    }
    assert_int_equal(histogram_bin(64), histogram_bin(65));
    assert_int_not_equal(histogram_bin(65), histogram_bin(66));
}

static void bins_join_without_gap_or_overlap_and_rise(void **state)
{
    (void)state;
    assert_int_equal(histogram_bin_low(0), 0);
    for (unsigned i = 0; i < HISTOGRAM_BINS; i++) {
        assert_true(histogram_bin_low(i) <= histogram_bin_high(i));
        if (i > 0)
            assert_true(histogram_bin_low(i) == histogram_bin_high(i - 1) + 1);
        assert_int_equal(histogram_bin(histogram_bin_low(i)), i);
        assert_int_equal(histogram_bin(histogram_bin_high(i)), i);
    }
    assert_true(histogram_bin_high(HISTOGRAM_BINS - 1) == TOP);
}

static void a_bin_is_no_wider_than_a_thirty_second_of_its_values(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HISTOGRAM_BINS; i++)
        assert_true((histogram_bin_high(i) - histogram_bin_low(i)) * 32 <= histogram_bin_low(i));
}

static void what_is_too_large_counts_in_the_last_bin(void **state)
{
    (void)state;
    clear_all();
    assert_int_equal(histogram_bin(TOP + 1), HISTOGRAM_BINS - 1);
    assert_int_equal(histogram_bin(UINT64_MAX), HISTOGRAM_BINS - 1);
    histogram_record(&first, UINT64_MAX);
    assert_true(histogram_quantile(&first, 1.0) == TOP);
    assert_int_equal(histogram_at_most(&first, UINT64_MAX), 1);
}

static void an_empty_one_says_zero(void **state)
{
    (void)state;
    clear_all();
    assert_int_equal(histogram_quantile(&first, 0.99), 0);
    assert_int_equal(histogram_at_most(&first, UINT64_MAX), 0);
    assert_true(histogram_mean(&first) == 0.0);
}

static void quantiles_are_by_nearest_rank(void **state)
{
    (void)state;
    clear_all();
    for (uint64_t v = 1; v <= 50; v++)
        histogram_record(&first, v);
    assert_int_equal(histogram_quantile(&first, 0.0), 1);
    assert_int_equal(histogram_quantile(&first, -1.0), 1);
    assert_int_equal(histogram_quantile(&first, 0.01), 1);
    assert_int_equal(histogram_quantile(&first, 0.02), 1);
    assert_int_equal(histogram_quantile(&first, 0.021), 2);
    assert_int_equal(histogram_quantile(&first, 0.5), 25);
    assert_int_equal(histogram_quantile(&first, 0.9), 45);
    assert_int_equal(histogram_quantile(&first, 0.98), 49);
    assert_int_equal(histogram_quantile(&first, 1.0), 50);
    assert_int_equal(histogram_quantile(&first, 7.0), 50);
}

static void rounding_noise_does_not_move_a_rank(void **state)
{
    (void)state;
    clear_all();
    for (uint64_t v = 1; v <= 25; v++)
        histogram_record(&first, v);
    /* 0.28 x 25 is 7.000000000000001 in doubles */
    assert_int_equal(histogram_quantile(&first, 0.28), 7);
}

static void count_below_a_bound_takes_whole_bins_only(void **state)
{
    (void)state;
    clear_all();
    for (uint64_t v = 0; v < 70; v++)
        histogram_record(&first, v);
    assert_int_equal(histogram_at_most(&first, 0), 1);
    assert_int_equal(histogram_at_most(&first, 63), 64);
    assert_int_equal(histogram_at_most(&first, 64), 64); /* its bin goes to 65 */
    assert_int_equal(histogram_at_most(&first, 65), 66);
    assert_int_equal(histogram_at_most(&first, 1000), 70);
}

static void mean_is_of_the_values_not_of_the_bins(void **state)
{
    (void)state;
    clear_all();
    histogram_record(&first, 1000001);
    histogram_record(&first, 1000004);
    assert_true(histogram_mean(&first) == 1000002.5);
    assert_int_equal(first.sum, 2000005);
}

/* The law the module exists for. */
static void quantiles_are_within_a_thirty_second_of_the_exact_ones(void **state)
{
    static const double quantiles[] = {0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0};
    static uint64_t samples[500];
    (void)state;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t random = seed;
        size_t n = 1 + next(&random) % 500;

        clear_all();
        for (size_t i = 0; i < n; i++) {
            samples[i] = any_value(&random);
            histogram_record(&first, samples[i]);
        }
        qsort(samples, n, sizeof(samples[0]), ascending);
        for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
            size_t rank = 1; /* smallest r with r/n >= q, the other way round than the code */

            while (rank < n && (double)rank < quantiles[i] * (double)n - 1e-9)
                rank++;

            uint64_t exact = samples[rank - 1];
            uint64_t got = histogram_quantile(&first, quantiles[i]);

            assert_true(got >= exact);
            assert_true(got - exact <= exact / 32);
        }
    }
}

static void merging_is_as_if_all_had_been_recorded_in_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint64_t random = seed;

        clear_all();
        for (int i = 0; i < 400; i++) {
            uint64_t v = any_value(&random);

            histogram_record(next(&random) % 3 == 0 ? &first : &second, v);
            histogram_record(&both, v);
        }
        histogram_merge(&sum, &first);
        histogram_merge(&sum, &second);
        assert_memory_equal(&sum, &both, sizeof(sum));
    }
}

/* A reader may see a bin raised whose count is not yet: what it merges must still agree. */
static void a_merge_counts_what_it_saw_in_the_bins(void **state)
{
    (void)state;
    clear_all();
    histogram_record(&first, 10);
    first.bins[20]++;
    histogram_merge(&sum, &first);
    assert_int_equal(sum.count, 2);
    assert_int_equal(histogram_quantile(&sum, 1.0), 20);
}

static void counts_below_bounds_never_fall(void **state)
{
    uint64_t random = 7;
    uint64_t before = 0;
    (void)state;

    clear_all();
    for (int i = 0; i < 3000; i++)
        histogram_record(&first, any_value(&random));
    for (uint64_t bound = 0; bound < TOP; bound = bound * 5 / 4 + 1) {
        uint64_t n = histogram_at_most(&first, bound);

        assert_true(n >= before && n <= 3000);
        before = n;
    }
    assert_int_equal(histogram_at_most(&first, TOP), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_below_64_have_a_bin_each),
        cmocka_unit_test(bins_join_without_gap_or_overlap_and_rise),
        cmocka_unit_test(a_bin_is_no_wider_than_a_thirty_second_of_its_values),
        cmocka_unit_test(what_is_too_large_counts_in_the_last_bin),
        cmocka_unit_test(an_empty_one_says_zero),
        cmocka_unit_test(quantiles_are_by_nearest_rank),
        cmocka_unit_test(rounding_noise_does_not_move_a_rank),
        cmocka_unit_test(count_below_a_bound_takes_whole_bins_only),
        cmocka_unit_test(mean_is_of_the_values_not_of_the_bins),
        cmocka_unit_test(quantiles_are_within_a_thirty_second_of_the_exact_ones),
        cmocka_unit_test(merging_is_as_if_all_had_been_recorded_in_one),
        cmocka_unit_test(a_merge_counts_what_it_saw_in_the_bins),
        cmocka_unit_test(counts_below_bounds_never_fall),
    };

    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
