/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/distribution.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define DRAWS 40000

static struct distribution parsed(const char *text)
{
    struct distribution d;

    assert_null(distribution_parse(bytes_of(text), &d));
    return d;
}

static int ascending(const void *a, const void *b)
{
    const span_ns *x = a;
    const span_ns *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Draws, sorted. */
static span_ns *drawn(const char *text)
{
    static span_ns values[DRAWS];
    struct distribution d = parsed(text);
    struct rng rng;

    rng_init(&rng, 1);
    for (unsigned i = 0; i < DRAWS; i++)
        values[i] = distribution_draw(&d, &rng);
    qsort(values, DRAWS, sizeof(values[0]), ascending);
    return values;
}

static double mean(const span_ns *values)
{
    double sum = 0;

    for (unsigned i = 0; i < DRAWS; i++)
        sum += (double)values[i];
    return sum / DRAWS;
}

static double deviation(const span_ns *values)
{
    double m = mean(values);
    double sum = 0;

    for (unsigned i = 0; i < DRAWS; i++)
        sum += ((double)values[i] - m) * ((double)values[i] - m);
    return sqrt(sum / DRAWS);
}

static double quantile(const span_ns *values, double q)
{
    return (double)values[(unsigned)(q * (DRAWS - 1))];
}

static void assert_near(double value, double expected, double share)
{
    if (fabs(value - expected) > expected * share)
        fail_msg("%f is not within %f of %f", value, share, expected);
}

static void none_and_const_do_not_vary(void **state)
{
    span_ns *v = drawn("none");
    (void)state;

    assert_int_equal(v[DRAWS - 1], 0);
    v = drawn("const:5ms");
    assert_int_equal(v[0], 5 * NS_PER_MS);
    assert_int_equal(v[DRAWS - 1], 5 * NS_PER_MS);
}

static void exponential_has_its_mean_its_deviation_and_its_tail(void **state)
{
    const span_ns *v = drawn("exp:10ms");
    (void)state;

    assert_near(mean(v), 10e6, 0.02);
    assert_near(deviation(v), 10e6, 0.03);
    assert_near(quantile(v, 0.5), 10e6 * log(2.0), 0.03);
    assert_near(quantile(v, 0.99), 10e6 * log(100.0), 0.05);
}

static void lognormal_has_its_median_and_its_spread(void **state)
{
    const span_ns *v = drawn("lognormal:10ms:0.5");
    (void)state;

    assert_near(quantile(v, 0.5), 10e6, 0.02);
    assert_near(mean(v), 10e6 * exp(0.125), 0.02);
    assert_near(quantile(v, 0.8413447), 10e6 * exp(0.5), 0.02); /* one sigma up */
    assert_near(quantile(v, 0.1586553), 10e6 * exp(-0.5), 0.02);
}

static void lognormal_without_sigma_is_its_median(void **state)
{
    const span_ns *v = drawn("lognormal:10ms:0");
    (void)state;

    assert_near((double)v[0], 10e6, 1e-6);
    assert_near((double)v[DRAWS - 1], 10e6, 1e-6);
}

static void uniform_covers_its_range_evenly(void **state)
{
    const span_ns *v = drawn("uniform:1ms:21ms");
    (void)state;

    assert_true(v[0] >= NS_PER_MS);
    assert_true(v[DRAWS - 1] < 21 * NS_PER_MS);
    assert_near(mean(v), 11e6, 0.02);
    assert_near(quantile(v, 0.25), 6e6, 0.03);
    assert_near(deviation(v), 20e6 / sqrt(12.0), 0.02);
}

static void an_extreme_draw_stays_bounded(void **state)
{
    const span_ns *v = drawn("lognormal:24h:5");
    (void)state;

    assert_true(v[DRAWS - 1] == DISTRIBUTION_MAX);
}

static void the_same_seed_draws_the_same(void **state)
{
    struct distribution d = parsed("lognormal:10ms:0.5");
    struct rng a;
    struct rng b;
    (void)state;

    rng_init(&a, 7);
    rng_init(&b, 7);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(distribution_draw(&d, &a), distribution_draw(&d, &b));
}

static void what_is_written_is_what_was_parsed(void **state)
{
    const char *texts[] = {"none", "const:5ms", "exp:1.5s", "lognormal:10ms:0.50",
                           "uniform:1ms:20ms"};
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct distribution d = parsed(texts[i]);
        char room[64];
        struct text t;

        text_init(&t, room, sizeof(room));
        distribution_write(&t, &d);
        assert_string_equal(text_end(&t), texts[i]);
    }
}

static void what_is_wrong_is_refused_and_changes_nothing(void **state)
{
    const char *texts[] = {"",
                           "gauss:1ms",
                           "none:1ms",
                           "const",
                           "const:",
                           "const:5",
                           "const:5ms:1",
                           "const:25h",
                           "exp:1ms:2ms",
                           "lognormal:10ms",
                           "lognormal:10ms:",
                           "lognormal:10ms:x",
                           "lognormal:10ms:.",
                           "lognormal:10ms:5.1",
                           "lognormal:10ms:0.5:1",
                           "lognormal:10ms:1.2.3",
                           "uniform:5ms:1ms",
                           "uniform:5ms",
                           "CONST:5ms"};
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct distribution d = {.kind = DISTRIBUTION_UNIFORM, .a = 1, .b = 2};

        if (distribution_parse(bytes_of(texts[i]), &d) == NULL)
            fail_msg("\"%s\" was taken", texts[i]);
        assert_int_equal(d.kind, DISTRIBUTION_UNIFORM);
        assert_int_equal(d.a, 1);
    }
}

static void sigma_is_read_with_its_places(void **state)
{
    (void)state;

    assert_near(parsed("lognormal:10ms:0.25").sigma, 0.25, 1e-9);
    assert_near(parsed("lognormal:10ms:1.05").sigma, 1.05, 1e-9);
    assert_near(parsed("lognormal:10ms:5").sigma, 5.0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_and_const_do_not_vary),
        cmocka_unit_test(exponential_has_its_mean_its_deviation_and_its_tail),
        cmocka_unit_test(lognormal_has_its_median_and_its_spread),
        cmocka_unit_test(lognormal_without_sigma_is_its_median),
        cmocka_unit_test(uniform_covers_its_range_evenly),
        cmocka_unit_test(an_extreme_draw_stays_bounded),
        cmocka_unit_test(the_same_seed_draws_the_same),
        cmocka_unit_test(what_is_written_is_what_was_parsed),
        cmocka_unit_test(what_is_wrong_is_refused_and_changes_nothing),
        cmocka_unit_test(sigma_is_read_with_its_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
