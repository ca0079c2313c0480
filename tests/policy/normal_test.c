/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/normal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void known_points_are_right_to_eight_digits(void **state)
{
    static const struct {
        double p, z;
    } rows[] = {
        {0.5, 0},
        {0.8413447460685429, 1},
        {0.9772498680518208, 2},
        {0.9986501019683699, 3},
        {0.975, 1.959963984540054},
        {0.99, 2.3263478740408408},
        {0.6914624612740131, 0.5},
        {0.025, -1.959963984540054},
        {0.0013498980316300946, -3},
        {2.866515718791946e-07, -5},
        {9.865876450376946e-10, -6},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double z = normal_quantile(rows[i].p);

        if (fabs(z - rows[i].z) > 1e-8 * fmax(1, fabs(rows[i].z)))
            fail_msg("p %.12g: %.12g, not %.12g", rows[i].p, z, rows[i].z);
    }
}

/* The distribution function undoes it: on random points, in the middle and far out. */
static void is_undone_by_the_distribution_function(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        double p = exp(-20 * rng_unit(&rng)) * 0.999;
        double back = 0.5 * erfc(-normal_quantile(p) / sqrt(2));

        if (p > 0 && fabs(back - p) > 6e-8 * p)
            fail_msg("p %.12g: back %.12g", p, back);
    }
}

static void is_odd_about_the_middle_and_never_falls(void **state)
{
    double before = -1e9;
    (void)state;

    for (int i = 1; i < 4096; i++) {
        double p = i / 4096.0;

        assert_true(normal_quantile(p) > before);
        assert_true(fabs(normal_quantile(p) + normal_quantile(1 - p)) < 1e-12);
        before = normal_quantile(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_points_are_right_to_eight_digits),
        cmocka_unit_test(is_undone_by_the_distribution_function),
        cmocka_unit_test(is_odd_about_the_middle_and_never_falls),
    };

    return cmocka_run_group_tests_name("normal", tests, NULL, NULL);
}
