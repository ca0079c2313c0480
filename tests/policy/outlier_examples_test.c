/* SPDX-License-Identifier: Apache-2.0 */
/* The worked examples of envoy-semantics.md 12 for consecutive rules, and facts of the real Envoy.
 */
#include "outlier_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* --- the worked examples of envoy-semantics.md 12; "adapted" says where Firebreak differs --- */

/* Adapted: in Envoy the 10 % cap refuses; here it rounds up to one, and the few hosts refuse. */
static void o1_adapted_three_hosts_five_503_are_refused_until_five_more(void **state)
{
    struct world w;
    (void)state;

    start(&w, 3, &envoy);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.considered, 1);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_FEW_HEALTHY);
    answer(&w, 0, 503, 4);
    assert_int_equal(w.refused, 1);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.refused, 2);
    assert_int_equal(w.judge.ejected, 0);
}

/* Adapted: 6 hosts instead of 3, since below four healthy ones law 1 asks for more. */
static void o2_adapted_five_503_eject_at_once(void **state)
{
    const struct outlier_config c = with_cap(50);
    struct world w;
    (void)state;

    start(&w, 6, &c);
    answer(&w, 0, 503, 4);
    assert_int_equal(w.ejected_by, OUTLIER_NONE);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(w.verdict.eject_for, 30 * S);
    assert_true(w.hosts[0].ejected);
}

/* Adapted: 9 hosts at 20 % instead of 3 at 50 %. Checked after the action: 2 of 9 is 22.2 %. */
static void o3_adapted_the_second_goes_over_the_cap_and_stays(void **state)
{
    const struct outlier_config c = with_cap(20);
    struct world w;
    (void)state;

    start(&w, 9, &c);
    answer(&w, 0, 503, 5);
    answer(&w, 1, 503, 5);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_CAP);
    assert_int_equal(w.refused, 1);
    assert_int_equal(w.judge.ejected, 1);
}

/* Adapted: Envoy ejects the only host at 100 %; law 1 never does. */
static void o4_adapted_the_last_host_stays_whatever_the_cap(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 1, &c);
    answer(&w, 0, 500, 50);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_LAST_HOST);
    assert_int_equal(w.refused, 10);
    assert_false(w.hosts[0].ejected);
}

static void o5_a_404_ends_the_run(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    answer(&w, 0, 500, 4);
    answer(&w, 0, 404, 1);
    answer(&w, 0, 500, 4);
    assert_int_equal(w.considered, 0);
    answer(&w, 0, 500, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

static void o6_a_500_ends_the_gateway_run_and_5xx_takes_the_fifth(void **state)
{
    struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    c.consecutive_gateway = 3;
    start(&w, 10, &c);
    answer(&w, 0, 503, 2);
    answer(&w, 0, 500, 1);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.considered, 0);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

static void o7_five_refused_connects_eject_as_5xx(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
    assert_int_equal(w.considered, 0);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

/* A gRPC status in trailers is an answer 200 to this module; one in headers comes as its HTTP code.
 */
static void o8_and_o9_grpc_counts_by_the_code_it_comes_as(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    answer(&w, 0, 200, 5);
    assert_int_equal(w.considered, 0);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

static void o10_a_host_comes_back_at_the_first_sweep_after_its_time(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    w.now = 1003 * S;
    answer(&w, 0, 503, 5);
    for (w.now = 1010 * S; w.now < 1040 * S; w.now += 10 * S) {
        assert_int_equal(sweep(&w), 0);
        assert_true(w.hosts[0].ejected);
    }
    assert_int_equal(sweep(&w), 1);
    assert_false(w.hosts[0].ejected);
    assert_int_equal(w.judge.ejected, 0);
}

static void o15_each_ejection_soon_after_the_last_is_longer(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    for (uint32_t n = 1; n <= 4; n++) {
        mono_ns out = w.now;

        answer(&w, 0, 503, 5);
        assert_int_equal(w.verdict.eject_for, n * 30 * S);
        while (w.hosts[0].ejected) {
            w.now += 10 * S;
            sweep(&w);
        }
        assert_int_equal(w.now - out, n * 30 * S);
    }
}

static void o16_split_answers_of_503_are_5xx_and_leave_the_local_run(void **state)
{
    struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    c.split = true;
    start(&w, 10, &c);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(w.runs[0].run_local, 0);
}

/* --- facts of issue 4, section 3 --- */

static void split_off_refusals_eject_on_the_5th_as_gateway_on_the_7th_as_5xx(void **state)
{
    struct outlier_config c = with_cap(50);
    struct world w;
    (void)state;

    c.consecutive_5xx = 7;
    c.consecutive_gateway = 5;
    start(&w, 10, &c);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
    assert_int_equal(w.considered, 0);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_GATEWAY);

    c.consecutive_gateway = 0;
    start(&w, 10, &c);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 6);
    assert_int_equal(w.considered, 0);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

static void split_on_refusals_eject_as_local_origin_and_no_other_rule_sees_them(void **state)
{
    struct outlier_config c = with_cap(50);
    struct world w;
    (void)state;

    c.split = true;
    c.consecutive_5xx = 3;
    c.consecutive_gateway = 2;
    start(&w, 10, &c);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
    assert_int_equal(w.considered, 0);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
}

static void four_503_a_500_and_two_503_eject_on_the_7th_by_5xx(void **state)
{
    struct outlier_config c = with_cap(50);
    struct world w;
    (void)state;

    c.consecutive_5xx = 7;
    c.consecutive_gateway = 5;
    start(&w, 10, &c);
    answer(&w, 0, 503, 4);
    answer(&w, 0, 500, 1);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.considered, 0);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_5XX);
}

/* Firebreak's difference: in Envoy each connect that works would end the run. */
static void split_a_host_that_accepts_and_never_answers_does_not_escape(void **state)
{
    struct outlier_config c = with_cap(50);
    struct world w;
    (void)state;

    c.split = true;
    start(&w, 10, &c);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(w.judge.ejected, 0);
        report(&w, 0, OUTLIER_CONNECTED, 0);
        report(&w, 0, OUTLIER_TIMED_OUT, 0);
    }
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
}

static void split_an_answer_ends_the_local_run_even_one_of_500(void **state)
{
    struct outlier_config c = with_cap(50);
    struct world w;
    (void)state;

    c.split = true;
    start(&w, 10, &c);
    failed(&w, 0, OUTLIER_RESET, 4);
    answer(&w, 0, 500, 1);
    failed(&w, 0, OUTLIER_TIMED_OUT, 4);
    assert_int_equal(w.considered, 0);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(o1_adapted_three_hosts_five_503_are_refused_until_five_more),
        cmocka_unit_test(o2_adapted_five_503_eject_at_once),
        cmocka_unit_test(o3_adapted_the_second_goes_over_the_cap_and_stays),
        cmocka_unit_test(o4_adapted_the_last_host_stays_whatever_the_cap),
        cmocka_unit_test(o5_a_404_ends_the_run),
        cmocka_unit_test(o6_a_500_ends_the_gateway_run_and_5xx_takes_the_fifth),
        cmocka_unit_test(o7_five_refused_connects_eject_as_5xx),
        cmocka_unit_test(o8_and_o9_grpc_counts_by_the_code_it_comes_as),
        cmocka_unit_test(o10_a_host_comes_back_at_the_first_sweep_after_its_time),
        cmocka_unit_test(o15_each_ejection_soon_after_the_last_is_longer),
        cmocka_unit_test(o16_split_answers_of_503_are_5xx_and_leave_the_local_run),
        cmocka_unit_test(split_off_refusals_eject_on_the_5th_as_gateway_on_the_7th_as_5xx),
        cmocka_unit_test(split_on_refusals_eject_as_local_origin_and_no_other_rule_sees_them),
        cmocka_unit_test(four_503_a_500_and_two_503_eject_on_the_7th_by_5xx),
        cmocka_unit_test(split_a_host_that_accepts_and_never_answers_does_not_escape),
        cmocka_unit_test(split_an_answer_ends_the_local_run_even_one_of_500),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
