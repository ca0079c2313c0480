/* SPDX-License-Identifier: Apache-2.0 */
/* A small part of docs/proof/detectors.md with fixed seeds, held to wide bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../bench/detect_world.h"

#define RUNS 5

static const struct load usual = {.name = "s .5", .sigma = 0.5};

struct outcome {
    double suspect[RUNS], out[RUNS]; /* seconds; as good as never: 1000 */
    uint32_t others;                 /* that were accused */
};

static void watch(struct run *r, uint32_t n, struct outcome *o)
{
    for (mono_ns from = r->now; r->now < from + 40 * NS_PER_S && o->out[n] > 999;) {
        run_step(r);
        for (uint32_t i = 0; i < r->hosts; i++) {
            enum detect_line line;
            enum verdict_deed deed = run_deed(r, i, &line);
            double at = (double)(r->now - from) / (double)NS_PER_S;

            if (i >= r->fault->bad)
                o->others += deed != VERDICT_NOTHING;
            else if (deed != VERDICT_NOTHING && o->suspect[n] > 999)
                o->suspect[n] = at;
            if (i < r->fault->bad && deed == VERDICT_EJECT && o->out[n] > 999)
                o->out[n] = at;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static struct outcome outcome_of(const struct load *load, const struct fault *fault)
{
    struct run *r = run_new(10, 10);
    struct outcome o = {.others = 0};

    r->load = load;
    r->fault = fault;
    for (uint32_t n = 0; n < RUNS; n++) {
        o.suspect[n] = o.out[n] = 1000;
        run_begin(r, 100 + n);
        while (r->now < 60 * NS_PER_S)
            run_step(r);
        r->fault_from = r->now;
        watch(r, n, &o);
        run_end(r);
    }
    run_free(r);
    qsort(o.suspect, RUNS, sizeof(double), by_value);
    qsort(o.out, RUNS, sizeof(double), by_value);
    return o;
}

static void a_slow_host_is_suspected_and_ejected_in_seconds(void **state)
{
    static const struct fault three = {.bad = 1, .times = 3, .share = 1};
    struct outcome o = outcome_of(&usual, &three);
    (void)state;

    assert_true(o.suspect[RUNS / 2] <= 2.5 && o.suspect[RUNS / 2] >= 1);
    assert_true(o.out[RUNS / 2] <= 6);
    assert_int_equal(o.others, 0);
}

static void a_host_slow_on_a_minority_is_suspected(void **state)
{
    static const struct fault tail = {.bad = 1, .times = 20, .share = 0.1};
    struct outcome o = outcome_of(&usual, &tail);
    (void)state;

    assert_true(o.suspect[RUNS / 2] <= 16);
    assert_int_equal(o.others, 0);
}

static void one_failure_in_ten_and_a_black_hole_eject(void **state)
{
    static const struct fault some = {.bad = 1, .failing = 0.1};
    static const struct fault hole = {.bad = 1, .share = 1, .silent = true};
    (void)state;

    assert_true(outcome_of(&usual, &some).out[RUNS / 2] <= 9);
    assert_true(outcome_of(&usual, &hole).out[RUNS / 2] <= 2);
}

static void more_heavy_requests_are_no_fault_where_they_are_a_class(void **state)
{
    static const struct fault skew = {.bad = 1, .share = 1, .heavy = 0.6, .strata = true};
    struct outcome o = outcome_of(&usual, &skew);
    (void)state;

    assert_true(o.suspect[0] > 999);
    assert_int_equal(o.others, 0);
}

static void a_fleet_three_times_slower_ejects_nobody(void **state)
{
    static const struct fault fleet = {.bad = 10, .times = 3, .share = 1};
    struct outcome o = outcome_of(&usual, &fleet);
    (void)state;

    assert_true(o.out[0] > 999);
}

static void nobodys_fault_accuses_nobody(void **state)
{
    static const struct load loads[] = {
        {.name = "s 1", .sigma = 1},
        {.name = "Pareto 2", .shape = SHAPE_PARETO_2},
        {.name = "hosts +-10 %", .sigma = .5, .spread = .1},
    };
    static const struct fault none = {.bad = 0};
    (void)state;

    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        assert_int_equal(outcome_of(&loads[i], &none).others, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_host_is_suspected_and_ejected_in_seconds),
        cmocka_unit_test(a_host_slow_on_a_minority_is_suspected),
        cmocka_unit_test(one_failure_in_ten_and_a_black_hole_eject),
        cmocka_unit_test(more_heavy_requests_are_no_fault_where_they_are_a_class),
        cmocka_unit_test(a_fleet_three_times_slower_ejects_nobody),
        cmocka_unit_test(nobodys_fault_accuses_nobody),
    };

    return cmocka_run_group_tests_name("detect_bounds", tests, NULL, NULL);
}
