/* SPDX-License-Identifier: Apache-2.0 */
/* How far ejection can go: against the arithmetic of the design, done by hand. */
#include "control/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/snapshot.h"

static struct reach of(uint32_t hosts, uint32_t percent)
{
    struct outlier_config c = default_outlier;
    struct reach r;

    c.max_ejection_percent = percent;
    assert_true(reach_compute(&c, hosts, &r));
    return r;
}

static void the_cap_is_whole_hosts_but_one_of_two_or_more(void **state)
{
    static const struct {
        uint32_t hosts, percent, by_runs, by_evidence;
    } rows[] = {
        {1, 100, 0, 0}, /* the last host never goes */
        {2, 10, 0, 1},  /* fewer than four healthy: only on total evidence */
        {2, 100, 0, 1}, /* and one of them only */
        {3, 100, 0, 1}, {4, 10, 1, 1},   {4, 50, 1, 2},        {4, 100, 1, 2},
        {5, 100, 2, 3}, {9, 10, 1, 1},   {10, 10, 1, 1},       {10, 20, 2, 2},
        {10, 50, 5, 5}, {10, 100, 7, 8}, {10, 80, 7, 8},       {10, 70, 7, 7},
        {25, 33, 8, 8}, {100, 1, 1, 1},  {1000, 50, 500, 500}, {4, 0, 0, 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reach r = of(rows[i].hosts, rows[i].percent);

        if (r.by_runs != rows[i].by_runs || r.by_evidence != rows[i].by_evidence)
            fail_msg("%u hosts, %u %%: %u and %u", rows[i].hosts, rows[i].percent, r.by_runs,
                     r.by_evidence);
    }
}

static void check_lengths(span_ns base, const unsigned *seconds, uint32_t steps, bool grows_on)
{
    struct outlier_config c = default_outlier;
    struct reach r;

    c.base_ejection = base;
    assert_true(reach_compute(&c, 10, &r));
    assert_int_equal(r.steps, steps);
    assert_int_equal(r.grows_on, grows_on);
    for (uint32_t i = 0; i < steps; i++)
        assert_int_equal(r.lengths[i], seconds[i] * NS_PER_S);
}

static void ejections_grow_by_the_base_up_to_the_maximum(void **state)
{
    static const unsigned thirty[] = {30, 60, 90, 120, 150, 180, 210, 240};
    static const unsigned hundred[] = {100, 200, 300};
    static const unsigned two_hundred[] = {200, 300};
    static const unsigned five_minutes[] = {300};
    static const unsigned ten_minutes[] = {600};
    (void)state;

    check_lengths(30 * NS_PER_S, thirty, 8, true);
    check_lengths(100 * NS_PER_S, hundred, 3, false);
    check_lengths(200 * NS_PER_S, two_hundred, 2, false);
    check_lengths(300 * NS_PER_S, five_minutes, 1, false);
    check_lengths(600 * NS_PER_S, ten_minutes, 1, false);
}

static void where_detection_is_off_nobody_goes(void **state)
{
    struct outlier_config c = default_outlier;
    struct reach r;
    (void)state;

    c.enabled = false;
    assert_true(reach_compute(&c, 10, &r));
    assert_int_equal(r.by_evidence, 0);
    assert_int_equal(r.steps, 0);

    c = default_outlier;
    c.consecutive_5xx = c.consecutive_gateway = c.consecutive_local_origin = 0;
    assert_true(reach_compute(&c, 10, &r));
    assert_int_equal(r.by_evidence, 0);
    c.consecutive_gateway = 3;
    assert_true(reach_compute(&c, 10, &r));
    assert_int_equal(r.by_evidence, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cap_is_whole_hosts_but_one_of_two_or_more),
        cmocka_unit_test(ejections_grow_by_the_base_up_to_the_maximum),
        cmocka_unit_test(where_detection_is_off_nobody_goes),
    };

    return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
