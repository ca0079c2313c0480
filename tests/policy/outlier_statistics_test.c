/* SPDX-License-Identifier: Apache-2.0 */
/* Rates: the worked examples O11 to O14, what is counted where, dice, and a law against a witness.
 */
#include "outlier_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SR BIT(OUTLIER_SUCCESS_RATE)
#define FP BIT(OUTLIER_FAILURE_PERCENTAGE)

/* Envoy's; runs eject nobody, the two rates do. */
static struct outlier_config rates(uint32_t percent)
{
    struct outlier_config c = with_cap(percent);

    c.differences = DIFFERENCES_ENVOY;
    c.consecutive_5xx = c.consecutive_local_origin = 0;
    for (unsigned t = OUTLIER_SUCCESS_RATE; t < OUTLIER_TRIGGER_COUNT; t++)
        c.enforcing[t] = 100;
    return c;
}

static void requests(struct world *w, uint32_t host, uint32_t good, uint32_t bad)
{
    answer(w, host, 200, good);
    answer(w, host, 500, bad);
}

static void of_five(struct world *w, const struct outlier_config *c, const uint32_t good[5],
                    uint32_t of)
{
    start(w, 5, c);
    for (uint32_t i = 0; i < 5; i++)
        requests(w, i, good[i], of - good[i]);
    sweep(w);
}

static void o11_one_of_five_stands_out(void **state)
{
    const struct outlier_config c = rates(20);
    struct world w;
    (void)state;

    of_five(&w, &c, (uint32_t[5]){50, 100, 100, 100, 100}, 100);
    assert_true(fabs(w.judge.rates[OUTLIER_EXTERNAL].average - 90) < 1e-9);
    assert_true(fabs(w.judge.rates[OUTLIER_EXTERNAL].threshold - 52) < 1e-9);
    assert_int_equal(w.judge.ejected, 1);
    assert_true(w.hosts[0].ejected);
    assert_int_equal(w.considered, 1);
    assert_true(w.hosts[1].rates[OUTLIER_EXTERNAL] == 100);
    assert_true(w.hosts[1].rates[OUTLIER_LOCAL] == OUTLIER_NO_RATE);
}

static void o12_even_by_little(void **state)
{
    const struct outlier_config c = rates(20);
    struct world w;
    (void)state;

    of_five(&w, &c, (uint32_t[5]){60, 100, 100, 100, 100}, 100);
    assert_true(fabs(w.judge.rates[OUTLIER_EXTERNAL].threshold - 61.6) < 1e-9);
    assert_true(w.hosts[0].ejected);
    of_five(&w, &c, (uint32_t[5]){99, 100, 100, 100, 100}, 100);
    assert_true(w.hosts[0].ejected);
}

static void o13_two_bad_ones_hide_each_other(void **state)
{
    struct outlier_config c = rates(100);
    struct world w;
    (void)state;

    c.enforcing[OUTLIER_FAILURE_PERCENTAGE] = 0;
    of_five(&w, &c, (uint32_t[5]){0, 0, 100, 100, 100}, 100);
    assert_true(fabs(w.judge.rates[OUTLIER_EXTERNAL].average - 60) < 1e-9);
    assert_true(fabs(w.judge.rates[OUTLIER_EXTERNAL].threshold + 33.0806) < 1e-3);
    assert_int_equal(w.judge.ejected, 0);
    assert_int_equal(w.considered, 2); /* their failures stand out, and are only counted */
}

static void o14_failures_count_from_the_threshold_on(void **state)
{
    const struct outlier_config c = rates(100);
    struct world w;
    (void)state;

    start(&w, 5, &c);
    requests(&w, 0, 9, 51);
    requests(&w, 1, 10, 50);
    for (uint32_t i = 2; i < 5; i++)
        requests(&w, i, 60, 0);
    sweep(&w);
    assert_true(w.hosts[0].ejected);
    assert_false(w.hosts[1].ejected);
    assert_int_equal(w.considered, 1);
    assert_true(w.judge.rates[OUTLIER_EXTERNAL].average == OUTLIER_NO_RATE); /* under 100 */
    assert_true(w.hosts[0].rates[OUTLIER_EXTERNAL] == 15);
}

/* C053: a and b by volume and hosts, c by the margin, d where all are alike, e by volume again. */
static void with_little_traffic_nobody_is_judged(void **state)
{
    struct outlier_config c = rates(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    for (uint32_t i = 0; i < 5; i++)
        requests(&w, i, 0, 1);
    for (uint32_t i = 5; i < 10; i++)
        requests(&w, i, 200, 0);
    sweep(&w);
    assert_int_equal(w.considered, 0);

    start(&w, 10, &c);
    requests(&w, 0, 100, 100);
    for (uint32_t i = 1; i < 4; i++)
        requests(&w, i, 200, 0);
    sweep(&w);
    assert_int_equal(w.considered, 0);

    start(&w, 10, &c);
    requests(&w, 0, 90, 10);
    for (uint32_t i = 1; i < 10; i++)
        requests(&w, i, 100, 0);
    sweep(&w);
    assert_true(fabs(w.judge.rates[OUTLIER_EXTERNAL].threshold - 93.3) < 1e-9);
    assert_true(w.hosts[0].ejected);
    assert_int_equal(w.judge.ejected, 1);

    start(&w, 10, &c);
    for (uint32_t i = 0; i < 10; i++)
        requests(&w, i, 95, 5);
    sweep(&w);
    assert_int_equal(w.considered, 0);

    c.rates.failure_volume = 5;
    c.rates.failure_hosts = 1;
    for (uint32_t failures = 4; failures <= 5; failures++) {
        start(&w, 10, &c);
        requests(&w, 0, 0, failures);
        sweep(&w);
        assert_int_equal(w.judge.ejected, failures == 5);
    }
}

static void a_cluster_smaller_than_both_minima_is_not_looked_at(void **state)
{
    struct outlier_config c = rates(100);
    struct world w;
    (void)state;

    c.rates.success_hosts = 5;
    c.rates.failure_hosts = 4;
    start(&w, 3, &c);
    requests(&w, 0, 0, 200);
    sweep(&w);
    assert_true(w.hosts[0].rates[OUTLIER_EXTERNAL] == OUTLIER_NO_RATE);
    start(&w, 4, &c);
    requests(&w, 0, 0, 200);
    sweep(&w);
    assert_true(w.hosts[0].rates[OUTLIER_EXTERNAL] == 0);
    assert_int_equal(w.considered, 0); /* one with volume, where four are asked for */
}

static void each_interval_begins_anew(void **state)
{
    const struct outlier_config c = rates(100);
    struct world w;
    (void)state;

    of_five(&w, &c, (uint32_t[5]){40, 90, 90, 90, 90}, 90);
    assert_int_equal(w.considered, 0); /* 90 are not 100 */
    for (uint32_t i = 0; i < 5; i++)
        requests(&w, i, i == 0 ? 10 : 20, i == 0 ? 10 : 0);
    w.now += 10 * S;
    sweep(&w);
    assert_int_equal(w.considered, 0);
    assert_true(w.hosts[0].rates[OUTLIER_EXTERNAL] == OUTLIER_NO_RATE);
}

static void who_is_out_is_in_no_statistic(void **state)
{
    const struct outlier_config c = rates(100);
    struct world w;
    (void)state;

    of_five(&w, &c, (uint32_t[5]){0, 100, 100, 100, 100}, 100);
    assert_true(w.hosts[0].ejected);
    assert_int_equal(w.judge.ejected, 1); /* though its failures stand out too: once */
    assert_int_equal(w.hosts[0].ejections, 1);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_ALREADY_OUT);
    w.now += 10 * S;
    for (uint32_t i = 0; i < 5; i++)
        requests(&w, i, i == 0 ? 0 : 100, i == 0 ? 100 : 0);
    sweep(&w);
    assert_true(w.hosts[0].rates[OUTLIER_EXTERNAL] == OUTLIER_NO_RATE);
    assert_true(w.judge.rates[OUTLIER_EXTERNAL].average == OUTLIER_NO_RATE); /* four are too few */
}

/* Which report goes into which of the two counts, and as what. */
static void every_report_is_counted_where_it_belongs(void **state)
{
    static const struct {
        enum outlier_report what;
        uint32_t status;
        bool split;
        uint64_t total[2], success[2];
    } rows[] = {
        {OUTLIER_ANSWERED, 200, false, {1, 0}, {1, 0}},
        {OUTLIER_ANSWERED, 499, false, {1, 0}, {1, 0}},
        {OUTLIER_ANSWERED, 500, false, {1, 0}, {0, 0}},
        {OUTLIER_TIMED_OUT, 0, false, {1, 0}, {0, 0}},
        {OUTLIER_CONNECT_FAILED, 0, false, {1, 0}, {0, 0}},
        {OUTLIER_RESET, 0, false, {1, 0}, {0, 0}},
        {OUTLIER_CONNECTED, 0, false, {0, 0}, {0, 0}},
        {OUTLIER_REUSED, 0, false, {0, 0}, {0, 0}},
        {OUTLIER_ANSWERED, 200, true, {1, 0}, {1, 0}},
        {OUTLIER_ANSWERED, 503, true, {1, 0}, {0, 0}},
        {OUTLIER_TIMED_OUT, 0, true, {0, 1}, {0, 0}},
        {OUTLIER_CONNECT_FAILED, 0, true, {0, 1}, {0, 0}},
        {OUTLIER_RESET, 0, true, {0, 1}, {0, 0}},
        {OUTLIER_CONNECTED, 0, true, {0, 1}, {0, 1}},
        {OUTLIER_REUSED, 0, true, {0, 1}, {0, 1}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outlier_config c = rates(100);
        struct outlier_runs r;

        c.split = rows[i].split;
        outlier_runs_init(&r);
        outlier_learn(&r, &c, rows[i].what, rows[i].status, S);
        for (unsigned o = 0; o < OUTLIER_ORIGIN_COUNT; o++) {
            struct outlier_count n = outlier_runs_take(&r, (enum outlier_origin)o);

            if (n.total != rows[i].total[o] || n.success != rows[i].success[o])
                fail_msg("row %zu, origin %u: %u of %u", i, o, (unsigned)n.success,
                         (unsigned)n.total);
            assert_int_equal(outlier_runs_take(&r, (enum outlier_origin)o).total, 0);
        }
    }
}

static void local_failures_stand_out_apart(void **state)
{
    struct outlier_config c = rates(100);
    struct world w;
    (void)state;

    c.split = true;
    start(&w, 5, &c);
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t n = 0; n < 100; n++)
            report(&w, i, i == 0 ? OUTLIER_CONNECT_FAILED : OUTLIER_REUSED, 0);
    }
    sweep(&w);
    assert_true(w.hosts[0].ejected);
    assert_int_equal(w.ejected_by, OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN);
    assert_true(w.judge.rates[OUTLIER_LOCAL].average == 80);
    assert_true(w.judge.rates[OUTLIER_EXTERNAL].average == OUTLIER_NO_RATE);
    c.enforcing[OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN] = 0;
    w.config = c;
    w.now += 30 * S;
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t n = 0; n < 100; n++)
            report(&w, i, i == 1 ? OUTLIER_RESET : OUTLIER_REUSED, 0);
    }
    assert_int_equal(sweep(&w), 1);
    assert_int_equal(w.ejected_by, OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN);
    assert_true(w.hosts[1].ejected);
}

static void codes_of_ones_own_are_errors_and_no_others(void **state)
{
    static const struct {
        uint32_t status, run_5xx, run_gateway;
    } rows[] = {{503, 1, 1}, {429, 1, 0}, {500, 0, 0}, {200, 0, 0}, {599, 1, 0},
                {100, 1, 0}, {99, 0, 0},  {600, 0, 0}, {0, 0, 0}};
    struct outlier_config c = rates(100);
    (void)state;

    outlier_codes_add(&c.codes, 503);
    outlier_codes_add(&c.codes, 429);
    outlier_codes_add(&c.codes, 599);
    outlier_codes_add(&c.codes, 100);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outlier_runs r;

        outlier_runs_init(&r);
        outlier_learn(&r, &c, OUTLIER_ANSWERED, rows[i].status, S);
        if (r.run_5xx != rows[i].run_5xx || r.run_gateway != rows[i].run_gateway)
            fail_msg("%u: %u %u", rows[i].status, r.run_5xx, r.run_gateway);
    }
}

static void the_dice_let_as_many_go_as_they_should(void **state)
{
    struct outlier_config c = with_cap(100);
    uint32_t out = 0;
    struct world w;
    (void)state;

    c.enforcing[OUTLIER_CONSECUTIVE_5XX] = 30;
    start(&w, 10, &c);
    for (uint32_t i = 0; i < 10000; i++) {
        answer(&w, 0, 500, 5);
        out += w.verdict.guard == OUTLIER_GUARD_NONE;
        if (w.verdict.guard != OUTLIER_GUARD_NONE)
            assert_int_equal(w.verdict.guard, OUTLIER_GUARD_NOT_ENFORCED);
        else
            outlier_pardon(&w.judge, 0, w.now);
    }
    assert_in_range(out, 2800, 3200);
}

/* --- the law: on random intervals those stand out that a witness says --- */

struct witness {
    uint32_t good[HOSTS_MAX], bad[HOSTS_MAX];
};

static long double rate(const struct witness *x, uint32_t i)
{
    return 100.0L * x->good[i] / (x->good[i] + x->bad[i]);
}

/* Does host |i| stand out? Nothing is said where it is too close to tell. */
static outlier_triggers witness_says(const struct witness *x, const struct world *w, uint32_t i,
                                     bool *close)
{
    const struct outlier_rate_rules *rules = &w->config.rates;
    long double sum = 0, squares = 0, threshold;
    uint32_t of_success = 0, of_failure = 0;
    outlier_triggers t = 0;

    for (uint32_t k = 0; k < w->judge.count; k++) {
        uint32_t total = x->good[k] + x->bad[k];

        if (w->hosts[k].ejected || total == 0)
            continue;
        of_failure += total >= rules->failure_volume;
        if (total < rules->success_volume)
            continue;
        of_success++;
        sum += rate(x, k);
        squares += rate(x, k) * rate(x, k);
    }
    *close = false;
    if (w->judge.count < (rules->success_hosts < rules->failure_hosts ? rules->success_hosts
                                                                      : rules->failure_hosts) ||
        w->hosts[i].ejected || x->good[i] + x->bad[i] == 0)
        return 0;
    if (of_success > 0 && of_success >= rules->success_hosts &&
        x->good[i] + x->bad[i] >= rules->success_volume) {
        long double mean = sum / of_success, variance = squares / of_success - mean * mean;

        threshold = mean - sqrtl(variance < 0 ? 0 : variance) * rules->success_factor / 1000;
        *close = fabsl(rate(x, i) - threshold) < 1e-6L;
        t |= rate(x, i) < threshold ? SR : 0;
    }
    if (of_failure >= rules->failure_hosts && x->good[i] + x->bad[i] >= rules->failure_volume &&
        100 * x->bad[i] >= rules->failure_percent * (x->good[i] + x->bad[i]))
        t |= FP;
    return t;
}

static void random_interval(struct world *w, struct witness *x, struct rng *random)
{
    for (uint32_t i = 0; i < w->judge.count; i++) {
        x->good[i] = rng_below(random, 4) == 0 ? rng_below(random, 20) : rng_below(random, 300);
        x->bad[i] = rng_below(random, 3) == 0 ? rng_below(random, 300) : rng_below(random, 10);
        requests(w, i, x->good[i], x->bad[i]);
    }
}

static void who_stands_out_is_who_a_witness_says(void **state)
{
    uint32_t found[2] = {0, 0};
    struct rng random;
    (void)state;

    rng_init(&random, 17);
    for (uint32_t run = 0; run < 400; run++) {
        struct outlier_config c = rates(100);
        struct witness x = {{0}, {0}};
        uint32_t returned[HOSTS_MAX];
        outlier_triggers suspects[HOSTS_MAX];
        struct world w;

        c.rates.success_hosts = 1 + rng_below(&random, 7);
        c.rates.failure_hosts = 1 + rng_below(&random, 7);
        c.rates.success_factor = 500 + rng_below(&random, 2000);
        c.rates.failure_percent = rng_below(&random, 101);
        start(&w, 1 + rng_below(&random, 12), &c);
        for (uint32_t i = 0; i < w.judge.count; i++)
            w.hosts[i].ejected = rng_below(&random, 8) == 0;
        outlier_adopt(&w.judge, &w.config, w.members, w.judge.count);
        for (uint32_t i = 0; i < w.judge.count; i++) {
            w.hosts[i].ejected_at = w.now;
            w.hosts[i].eject_for = 100 * S;
        }
        random_interval(&w, &x, &random);
        assert_int_equal(outlier_sweep(&w.judge, returned, w.now), 0);
        outlier_weigh(&w.judge, OUTLIER_EXTERNAL, suspects);
        for (uint32_t i = 0; i < w.judge.count; i++) {
            bool close;
            outlier_triggers expected = witness_says(&x, &w, i, &close);

            if (!close)
                assert_int_equal(suspects[i] & SR, expected & SR);
            assert_int_equal(suspects[i] & FP, expected & FP);
            found[0] += (expected & SR) != 0;
            found[1] += (expected & FP) != 0;
        }
    }
    assert_true(found[0] > 100 && found[1] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(o11_one_of_five_stands_out),
        cmocka_unit_test(o12_even_by_little),
        cmocka_unit_test(o13_two_bad_ones_hide_each_other),
        cmocka_unit_test(o14_failures_count_from_the_threshold_on),
        cmocka_unit_test(with_little_traffic_nobody_is_judged),
        cmocka_unit_test(a_cluster_smaller_than_both_minima_is_not_looked_at),
        cmocka_unit_test(each_interval_begins_anew),
        cmocka_unit_test(who_is_out_is_in_no_statistic),
        cmocka_unit_test(every_report_is_counted_where_it_belongs),
        cmocka_unit_test(local_failures_stand_out_apart),
        cmocka_unit_test(codes_of_ones_own_are_errors_and_no_others),
        cmocka_unit_test(the_dice_let_as_many_go_as_they_should),
        cmocka_unit_test(who_stands_out_is_who_a_witness_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
