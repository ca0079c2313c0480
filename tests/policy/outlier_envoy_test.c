/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a cluster follows Envoy: the worked examples of envoy-semantics.md 12 to the letter, its
 * table of caps, and each difference by itself. The same examples under law 1 are in
 * outlier_examples_test.c, those of the rates in outlier_statistics_test.c.
 */
#include "outlier_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Envoy's, with a gateway rule that is only counted. */
static struct outlier_config exact(uint32_t percent)
{
    struct outlier_config c = with_cap(percent);

    c.differences = DIFFERENCES_ENVOY;
    c.consecutive_gateway = 5;
    c.enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 0;
    return c;
}

/* Triggers that would have counted as detected, and what became of them. */
static void o1_three_hosts_at_ten_percent_lose_nobody(void **state)
{
    const struct outlier_config c = exact(10);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    answer(&w, 0, 500, 5);
    assert_int_equal(w.considered, 1);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_CAP);
    answer(&w, 0, 500, 4);
    assert_int_equal(w.considered, 1);
    answer(&w, 0, 500, 1);
    assert_int_equal(w.considered, 2);
    assert_int_equal(w.judge.ejected, 0);
}

static void o2_at_fifty_percent_the_first_goes_at_once(void **state)
{
    const struct outlier_config c = exact(50);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    answer(&w, 0, 503, 4);
    assert_int_equal(w.judge.ejected, 0);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(w.verdict.eject_for, 30 * S);
}

static void o3_and_the_second_stays(void **state)
{
    const struct outlier_config c = exact(50);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    answer(&w, 0, 500, 5);
    answer(&w, 1, 500, 5);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_CAP);
    assert_int_equal(w.judge.ejected, 1);
}

static void o4_the_only_host_goes_at_a_hundred_percent_or_if_one_always_may(void **state)
{
    struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    start(&w, 1, &c);
    answer(&w, 0, 500, 5);
    assert_int_equal(w.judge.ejected, 1);
    c = exact(10);
    start(&w, 1, &c);
    answer(&w, 0, 500, 5);
    assert_int_equal(w.judge.ejected, 0);
    c.always_eject_one = true;
    start(&w, 1, &c);
    answer(&w, 0, 500, 5);
    assert_int_equal(w.judge.ejected, 1);
}

static void o5_a_404_ends_the_run(void **state)
{
    const struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    answer(&w, 0, 500, 4);
    answer(&w, 0, 404, 1);
    answer(&w, 0, 500, 4);
    assert_int_equal(w.considered, 0);
}

static void o6_a_500_ends_the_gateway_run(void **state)
{
    struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    c.consecutive_gateway = 3;
    c.enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 100;
    start(&w, 3, &c);
    answer(&w, 0, 503, 2);
    answer(&w, 0, 500, 1);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.judge.ejected, 0);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

static void o7_five_refused_connects_go_as_5xx(void **state)
{
    const struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
    assert_int_equal(w.judge.ejected, 0);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

/* What the codec will report of gRPC: a status in trailers was a 200 already, one in the headers is
 * the HTTP status it maps to (14: 503). */
static void o8_grpc_errors_in_trailers_are_no_errors(void **state)
{
    const struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    answer(&w, 0, 200, 5);
    assert_int_equal(w.considered, 0);
}

static void o9_grpc_errors_alone_are_ejected_as_5xx_and_the_gateway_is_only_counted(void **state)
{
    const struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.triggers, GATEWAY | ANY_5XX);
    assert_int_equal(w.considered, 2);
    assert_int_equal(w.refused, 1); /* not enforced */
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

static void o10_a_host_ejected_between_sweeps_returns_at_a_sweep(void **state)
{
    const struct outlier_config c = exact(100);
    struct world w;
    mono_ns began;
    (void)state;

    start(&w, 3, &c);
    began = w.now;
    w.now = began + 3 * S;
    answer(&w, 0, 503, 5);
    for (uint32_t t = 10; t <= 40; t += 10) {
        w.now = began + t * S;
        assert_int_equal(sweep(&w), t == 40);
    }
}

/* Four times, each at once after the return. */
static void o15_the_time_grows_by_the_base(void **state)
{
    const struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    for (uint32_t n = 1; n <= 4; n++) {
        answer(&w, 0, 503, 5);
        assert_int_equal(w.verdict.eject_for, n * 30 * S);
        w.now += w.verdict.eject_for;
        assert_int_equal(sweep(&w), 1);
    }
}

static void o16_answers_of_503_are_no_local_failures(void **state)
{
    struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    c.split = true;
    start(&w, 3, &c);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(w.runs[0].run_local, 0);
}

static void o17_enforcing_of_zero_only_counts(void **state)
{
    struct outlier_config c = exact(100);
    struct world w;
    (void)state;

    c.consecutive_gateway = 0;
    c.enforcing[OUTLIER_CONSECUTIVE_5XX] = 0;
    start(&w, 3, &c);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.considered, 1);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_NOT_ENFORCED);
    assert_int_equal(w.judge.ejected, 0);
    assert_int_equal(w.hosts[0].multiplier, 0);
}

static void the_cap_is_what_the_table_says(void **state)
{
    static const struct {
        uint32_t hosts, percent, out, always;
    } rows[] = {
        {1, 10, 0, 1},  {1, 50, 0, 1},  {1, 100, 1, 1}, {2, 33, 0, 1},     {2, 50, 1, 1},
        {2, 100, 2, 2}, {3, 33, 0, 1},  {3, 50, 1, 1},  {3, 100, 3, 3},    {5, 10, 0, 1},
        {5, 20, 1, 1},  {5, 33, 1, 1},  {5, 50, 2, 2},  {5, 100, 5, 5},    {9, 10, 0, 1},
        {9, 20, 1, 1},  {9, 33, 2, 2},  {9, 50, 4, 4},  {9, 100, 9, 9},    {10, 10, 1, 1},
        {10, 20, 2, 2}, {10, 33, 3, 3}, {10, 50, 5, 5}, {20, 100, 20, 20}, {20, 5, 1, 1},
        {20, 0, 0, 1},  {5, 250, 5, 5},
    };
    (void)state;

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct outlier_config c = exact(rows[i / 2].percent);
        uint32_t out = i % 2 ? rows[i / 2].always : rows[i / 2].out;
        struct world w;

        c.always_eject_one = i % 2;
        start(&w, rows[i / 2].hosts, &c);
        for (uint32_t h = 0; h < rows[i / 2].hosts; h++)
            answer(&w, h, 500, 5);
        if (w.judge.ejected != out)
            fail_msg("%u hosts, %u %%, always %zu: %u out, not %u", rows[i / 2].hosts,
                     rows[i / 2].percent, i % 2, w.judge.ejected, out);
    }
}

/* --- each difference by itself --- */

static void each_part_of_law_one_is_lifted_by_its_difference(void **state)
{
    static const struct {
        uint32_t hosts, percent;
        difference_set envoy;
        uint32_t out;
    } rows[] = {
        {5, 10, 0, 1},
        {5, 10, 1 << DIFFERENCE_CAP_ROUNDS_TO_NOBODY, 0},
        {2, 100, 0, 0},
        {2, 100, 1 << DIFFERENCE_LAST_HOST_EJECTED, 0},
        {2, 100, 1 << DIFFERENCE_FEW_HEALTHY_EJECTED, 1},
        {2, 100, 1 << DIFFERENCE_FEW_HEALTHY_EJECTED | 1 << DIFFERENCE_LAST_HOST_EJECTED, 2},
        {8, 100, 1 << DIFFERENCE_LAST_HOST_EJECTED, 5},
        {8, 100, 1 << DIFFERENCE_FEW_HEALTHY_EJECTED, 7},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outlier_config c = with_cap(rows[i].percent);
        struct world w;

        c.differences = rows[i].envoy;
        start(&w, rows[i].hosts, &c);
        for (uint32_t h = 0; h < rows[i].hosts; h++)
            answer(&w, h, 503, 5);
        if (w.judge.ejected != rows[i].out)
            fail_msg("row %zu: %u out, not %u", i, w.judge.ejected, rows[i].out);
    }
}

/* An accepting host that never answers, one request after another. */
static void silent_host(struct world *w, const struct outlier_config *c, enum outlier_report ready)
{
    start(w, 10, c);
    for (uint32_t i = 0; i < 20 && w->judge.ejected == 0; i++) {
        report(w, 0, ready, 0);
        report(w, 0, OUTLIER_TIMED_OUT, 0);
    }
}

static void a_host_that_accepts_and_never_answers_escapes_only_as_envoy(void **state)
{
    struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    c.split = true;
    silent_host(&w, &c, OUTLIER_CONNECTED);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
    silent_host(&w, &c, OUTLIER_REUSED);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
    c.differences = 1 << DIFFERENCE_CONNECT_ENDS_LOCAL_RUN;
    silent_host(&w, &c, OUTLIER_CONNECTED);
    assert_int_equal(w.considered, 0);
    silent_host(&w, &c, OUTLIER_REUSED);
    assert_int_equal(w.considered, 0);
    start(&w, 10, &c); /* requests that overlap: five wait before the first has timed out */
    for (uint32_t i = 0; i < 5; i++)
        report(&w, 0, OUTLIER_REUSED, 0);
    failed(&w, 0, OUTLIER_TIMED_OUT, 5);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
}

/* --- the facts of the issue, as a rule of acceptance 1 --- */

static struct outlier_config acceptance(void)
{
    struct outlier_config c = exact(50);

    c.consecutive_5xx = 7;
    c.enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 100;
    c.interval = 30 * S;
    c.base_ejection = 300 * S;
    return c;
}

static void the_facts_of_the_real_envoy(void **state)
{
    static const struct {
        bool split, only_5xx;
        enum outlier_report what;
        uint32_t statuses[8]; /* of answers; 0 ends them */
        uint32_t at;          /* the one that ejects, from 1 */
        enum outlier_trigger by;
    } rows[] = {
        {false,
         false,
         OUTLIER_ANSWERED,
         {503, 503, 503, 503, 500, 503, 503},
         7,
         OUTLIER_CONSECUTIVE_5XX},
        {false,
         false,
         OUTLIER_ANSWERED,
         {500, 500, 500, 500, 500, 500, 500},
         7,
         OUTLIER_CONSECUTIVE_5XX},
        {false, false, OUTLIER_ANSWERED, {503, 503, 503, 503, 503}, 5, OUTLIER_CONSECUTIVE_GATEWAY},
        {false, false, OUTLIER_CONNECT_FAILED, {0}, 5, OUTLIER_CONSECUTIVE_GATEWAY},
        {false, true, OUTLIER_CONNECT_FAILED, {0}, 7, OUTLIER_CONSECUTIVE_5XX},
        {true, false, OUTLIER_CONNECT_FAILED, {0}, 5, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN},
        {true, true, OUTLIER_CONNECT_FAILED, {0}, 5, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outlier_config c = acceptance();
        struct world w;
        uint32_t n = 0;

        c.split = rows[i].split;
        if (rows[i].only_5xx)
            c.enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 0;
        start(&w, 2, &c);
        while (w.judge.ejected == 0 && n < 20)
            report(&w, 0, rows[i].what, rows[i].statuses[n++ % 8]);
        if (n != rows[i].at || w.ejected_by != rows[i].by)
            fail_msg("row %zu: out at %u by %s", i, n, outlier_trigger_text(w.ejected_by));
    }
}

/* Split: gateway and 5xx rules see no refusal at all. */
static void with_split_the_rules_for_answers_see_no_refusals(void **state)
{
    struct outlier_config c = acceptance();
    struct world w;
    (void)state;

    c.split = true;
    c.enforcing[OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] = 0;
    start(&w, 2, &c);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 40);
    assert_int_equal(w.judge.ejected, 0);
    assert_int_equal(w.considered, 8); /* detected by the local rule, each fifth */
}

static void lengths(const struct outlier_config *c, uint32_t n, span_ns *out)
{
    struct world w;

    start(&w, 2, c);
    for (uint32_t i = 0; i < n; i++) {
        answer(&w, 0, 500, 7);
        out[i] = w.verdict.eject_for;
        w.now += out[i];
        sweep(&w);
    }
}

static void a_base_of_five_minutes_never_grows_and_one_of_two_seconds_does(void **state)
{
    struct outlier_config c = acceptance();
    span_ns got[3];
    (void)state;

    lengths(&c, 3, got);
    assert_true(got[0] == 300 * S && got[1] == 300 * S && got[2] == 300 * S);
    c.base_ejection = 2 * S;
    lengths(&c, 3, got);
    assert_true(got[0] == 2 * S && got[1] == 4 * S && got[2] == 6 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(o1_three_hosts_at_ten_percent_lose_nobody),
        cmocka_unit_test(o2_at_fifty_percent_the_first_goes_at_once),
        cmocka_unit_test(o3_and_the_second_stays),
        cmocka_unit_test(o4_the_only_host_goes_at_a_hundred_percent_or_if_one_always_may),
        cmocka_unit_test(o5_a_404_ends_the_run),
        cmocka_unit_test(o6_a_500_ends_the_gateway_run),
        cmocka_unit_test(o7_five_refused_connects_go_as_5xx),
        cmocka_unit_test(o8_grpc_errors_in_trailers_are_no_errors),
        cmocka_unit_test(o9_grpc_errors_alone_are_ejected_as_5xx_and_the_gateway_is_only_counted),
        cmocka_unit_test(o10_a_host_ejected_between_sweeps_returns_at_a_sweep),
        cmocka_unit_test(o15_the_time_grows_by_the_base),
        cmocka_unit_test(o16_answers_of_503_are_no_local_failures),
        cmocka_unit_test(o17_enforcing_of_zero_only_counts),
        cmocka_unit_test(the_cap_is_what_the_table_says),
        cmocka_unit_test(each_part_of_law_one_is_lifted_by_its_difference),
        cmocka_unit_test(a_host_that_accepts_and_never_answers_escapes_only_as_envoy),
        cmocka_unit_test(the_facts_of_the_real_envoy),
        cmocka_unit_test(with_split_the_rules_for_answers_see_no_refusals),
        cmocka_unit_test(a_base_of_five_minutes_never_grows_and_one_of_two_seconds_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
