/* SPDX-License-Identifier: Apache-2.0 */
/* Law 1: who may be ejected at all. By example, and on random histories against a witness. */
#include "outlier_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* --- law 1 --- */

static void the_cap_is_what_the_table_says_but_for_law_one(void **state)
{
    static const struct {
        uint32_t hosts, percent, out;
    } rows[] = {
        {10, 10, 1}, {10, 20, 2}, {10, 33, 3}, {10, 50, 5},  {9, 20, 1},   {9, 33, 2},
        {9, 50, 4},  {9, 10, 1},  {5, 20, 1},  {5, 33, 1},   {5, 50, 2},   {5, 1, 1},
        {20, 33, 6}, {20, 0, 0},  {5, 0, 0},   {10, 100, 7}, {10, 250, 7}, {20, 19, 3},
        {1, 100, 0}, {3, 100, 0}, {4, 25, 1},  {4, 100, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct outlier_config c = with_cap(rows[i].percent);
        struct world w;

        start(&w, rows[i].hosts, &c);
        for (uint32_t h = 0; h < rows[i].hosts; h++)
            answer(&w, h, 503, 5);
        if (w.judge.ejected != rows[i].out)
            fail_msg("%u hosts, %u %%: %u out, not %u", rows[i].hosts, rows[i].percent,
                     w.judge.ejected, rows[i].out);
    }
}

static void a_cap_of_zero_ejects_nobody_even_on_total_evidence(void **state)
{
    const struct outlier_config c = with_cap(0);
    struct world w;
    (void)state;

    start(&w, 2, &c);
    for (uint32_t i = 0; i < 100; i++) {
        w.now += S;
        answer(&w, 1, 200, 1);
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    }
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_CAP);
    assert_int_equal(w.considered, 20);
    assert_int_equal(w.judge.ejected, 0);
}

/* Three hosts; host 0 fails |times| over |span|, the last time at its end; host 1 is fine. */
static void fail_over(struct world *w, enum outlier_report what, uint32_t times, span_ns span)
{
    mono_ns began = w->now;

    for (uint32_t i = 0; i < times; i++) {
        w->now = began + span * i / (times - 1);
        answer(w, 1, 200, 1);
        report(w, 0, what, 500);
    }
}

static void with_few_hosts_failures_must_be_many_and_long(void **state)
{
    static const struct {
        enum outlier_report what;
        uint32_t times;
        span_ns span;
        uint32_t out;
    } rows[] = {
        {OUTLIER_ANSWERED, 20, 5 * S, 1},          {OUTLIER_ANSWERED, 20, 5 * S - 1, 0},
        {OUTLIER_ANSWERED, 15, 60 * S, 0},         {OUTLIER_ANSWERED, 1000, 4 * S, 0},
        {OUTLIER_TIMED_OUT, 20, 5 * S, 1},         {OUTLIER_RESET, 20, 5 * S, 1},
        {OUTLIER_RESET, 20, 5 * S - 1, 0},         {OUTLIER_CONNECT_FAILED, 5, 1 * S, 1},
        {OUTLIER_CONNECT_FAILED, 5, 1 * S - 1, 0}, {OUTLIER_CONNECT_FAILED, 4, 60 * S, 0},
        {OUTLIER_CONNECT_FAILED, 100, S / 2, 0},   {OUTLIER_CONNECT_FAILED, 100, 3 * S, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct outlier_config c = with_cap(10);
        struct world w;

        start(&w, 3, &c);
        fail_over(&w, rows[i].what, rows[i].times, rows[i].span);
        if (w.judge.ejected != rows[i].out)
            fail_msg("row %zu: %u out, not %u", i, w.judge.ejected, rows[i].out);
    }
}

static void a_run_of_exactly_total_evidence_is_needed_again_after_a_success(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    fail_over(&w, OUTLIER_ANSWERED, 19, 10 * S);
    answer(&w, 0, 404, 1);
    w.now += 10 * S;
    fail_over(&w, OUTLIER_ANSWERED, 19, 5 * S);
    assert_int_equal(w.judge.ejected, 0);
    w.now += S;
    answer(&w, 1, 200, 1);
    answer(&w, 0, 500, 1);
    assert_int_equal(w.judge.ejected, 1);
}

static void a_connect_that_works_ends_the_evidence_of_refusal(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    for (uint32_t by_answer = 0; by_answer < 2; by_answer++) {
        start(&w, 2, &c);
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
        w.now += 2 * S;
        answer(&w, 1, 200, 1);
        report(&w, 0, by_answer ? OUTLIER_ANSWERED : OUTLIER_CONNECTED, 500);
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 6 - by_answer);
        assert_int_equal(w.considered, 2);
        assert_int_equal(w.judge.ejected, 0);
        w.now += S;
        answer(&w, 1, 200, 1);
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 5);
        assert_int_equal(w.judge.ejected, 1);
    }
}

static void what_is_common_is_blamed_on_nobody(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    for (uint32_t i = 0; i < 3; i++)
        answer(&w, i, 200, 1);
    for (uint32_t i = 0; i < 200; i++) {
        w.now += S / 4;
        for (uint32_t h = 0; h < 3; h++)
            failed(&w, h, OUTLIER_CONNECT_FAILED, 1);
    }
    assert_true(w.refused > 50);
    assert_int_equal(w.judge.ejected, 0);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_FEW_HEALTHY);
}

static void a_peer_is_fine_only_by_a_success_of_the_last_ten_seconds(void **state)
{
    static const struct {
        span_ns ago;
        uint32_t out;
    } rows[] = {{10 * S, 1}, {10 * S + 1, 0}};
    const struct outlier_config c = with_cap(100);
    (void)state;

    for (uint32_t i = 0; i < 2; i++) {
        struct world w;

        start(&w, 2, &c);
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
        w.now += 1;
        answer(&w, 1, 200, 1);
        w.now += rows[i].ago;
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
        assert_int_equal(w.judge.ejected, rows[i].out);
    }
}

static void a_peer_is_fine_only_by_a_success_after_the_trouble_began(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    for (uint32_t later = 0; later < 2; later++) {
        start(&w, 2, &c);
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
        w.now += later;
        answer(&w, 1, 200, 1);
        w.now += S;
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
        assert_int_equal(w.judge.ejected, later);
    }
}

static void a_peer_under_total_evidence_itself_is_not_fine(void **state)
{
    static const struct {
        uint32_t failures;
        span_ns span;
        uint32_t out;
    } rows[] = {{20, 5 * S, 0}, {20, 5 * S - 1, 1}, {19, 5 * S, 1}};
    const struct outlier_config c = with_cap(100);
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world w;

        start(&w, 2, &c);
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
        w.now += 1;
        answer(&w, 1, 200, 1);
        failed(&w, 1, OUTLIER_RESET, rows[i].failures);
        w.now += rows[i].span;
        failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
        assert_int_equal(w.judge.ejected, rows[i].out);
    }
}

static void a_peer_that_is_out_is_not_fine(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 4, &c);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
    w.now += 1;
    answer(&w, 1, 500, 5);
    answer(&w, 1, 200, 1); /* to a request that was under way */
    assert_true(w.hosts[1].ejected);
    w.now += S;
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.considered, 2);
    assert_int_equal(w.judge.ejected, 1);
    answer(&w, 2, 200, 1);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 5);
    assert_int_equal(w.judge.ejected, 2);
}

/* Two atomics cannot be written at once; the judge must not believe an instant before a success. */
static void evidence_is_never_older_than_the_last_success(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    for (uint32_t stale = 0; stale < 2; stale++) {
        start(&w, 2, &c);
        w.runs[0].failing_since = w.now - 60 * S;
        w.runs[0].without_success = 30;
        w.runs[0].last_success = w.now - (stale ? 5 * S - 1 : 5 * S);
        answer(&w, 1, 200, 1);
        consider(&w, 0, OUTLIER_CONSECUTIVE_5XX);
        assert_int_equal(w.judge.ejected, stale ? 0 : 1);
    }
}

/* Four hosts, three of them dead, cap 100 %: one by the common rule, one on total evidence. */
static void below_four_healthy_one_more_goes_and_no_second(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 4, &c);
    for (uint32_t i = 0; i < 200; i++) {
        w.now += S / 10;
        answer(&w, 3, 200, 1);
        for (uint32_t h = 0; h < 3; h++)
            failed(&w, h, OUTLIER_CONNECT_FAILED, w.hosts[h].ejected ? 0 : 1);
        assert_true(w.judge.ejected <= 2);
    }
    assert_int_equal(w.judge.ejected, 2);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_FEW_HEALTHY);
}

/* A dead host goes again at its first full run; one ejected by the common rule is judged anew. */
static void total_evidence_goes_on_after_the_return_until_a_success(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 3, &c);
    fail_over(&w, OUTLIER_ANSWERED, 20, 5 * S);
    assert_int_equal(w.judge.ejected, 1);
    w.now += 30 * S;
    assert_int_equal(sweep(&w), 1);
    answer(&w, 1, 200, 1);
    answer(&w, 0, 500, 5);
    assert_int_equal(w.judge.ejected, 1);
    w.now += 60 * S;
    assert_int_equal(sweep(&w), 1);
    answer(&w, 1, 200, 1);
    answer(&w, 0, 200, 1);
    answer(&w, 0, 500, 5);
    assert_int_equal(w.judge.ejected, 0);

    start(&w, 4, &c);
    answer(&w, 0, 500, 19); /* the common rule: out at the fifth */
    assert_int_equal(w.judge.ejected, 1);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 5);
    w.now += 30 * S;
    assert_int_equal(sweep(&w), 1);
    answer(&w, 1, 500, 5); /* now there are three */
    answer(&w, 2, 200, 1);
    answer(&w, 0, 500, 15);
    assert_int_equal(w.verdict.guard, OUTLIER_GUARD_FEW_HEALTHY);
    assert_int_equal(w.judge.ejected, 1);
}

static void the_first_instant_of_time_is_an_instant(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 2, &c);
    w.now = 0;
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
    w.now = S;
    answer(&w, 1, 200, 1);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.judge.ejected, 1);
}

static void a_clock_that_steps_back_is_no_evidence(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 2, &c);
    answer(&w, 1, 200, 1);
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 4);
    w.now -= 500 * S;
    failed(&w, 0, OUTLIER_CONNECT_FAILED, 1);
    assert_int_equal(w.considered, 1);
    assert_int_equal(w.judge.ejected, 0);
    assert_int_equal(sweep(&w), 0);
}

/* What the test itself knows of a host, kept apart from the module. */
struct witness {
    uint32_t attempts; /* without a success */
    uint32_t refused;
    mono_ns failing, refusing, success;
};

static void witness_report(struct witness *x, enum outlier_report what, uint32_t status,
                           mono_ns now)
{
    if (what == OUTLIER_CONNECTED || what == OUTLIER_ANSWERED)
        x->refused = 0;
    if (what == OUTLIER_CONNECT_FAILED && x->refused++ == 0)
        x->refusing = now;
    if (what == OUTLIER_CONNECTED || what == OUTLIER_REUSED)
        return;
    if (what == OUTLIER_ANSWERED && status < 500) {
        x->attempts = 0;
        x->success = now;
    } else if (x->attempts++ == 0)
        x->failing = now;
}

/* The earlier of the instants since which it is; MONO_NEVER: it is not. */
static mono_ns witness_total(const struct witness *x, mono_ns now)
{
    mono_ns since = MONO_NEVER;

    if (x->attempts >= 20 && now - x->failing >= 5 * S)
        since = x->failing;
    if (x->refused >= 5 && now - x->refusing >= S)
        since = mono_min(since, x->refusing);
    return since;
}

/* One step of a random history; each host has a mood, so that there are dead and good ones. */
static void random_report(struct world *w, struct witness *x, struct rng *random, uint32_t host,
                          uint32_t mood)
{
    static const uint32_t statuses[] = {200, 404, 500, 503};
    enum outlier_report what = OUTLIER_ANSWERED;
    uint32_t status = 200;

    if (rng_below(random, 100) < mood) {
        what = (enum outlier_report)rng_below(random, 6);
        status = statuses[rng_below(random, 4)];
    }
    if (mood == 100) {
        what = OUTLIER_CONNECT_FAILED;
    } else if (mood == 99) {
        what = OUTLIER_ANSWERED;
        status = 503;
    }
    witness_report(x, what, status, w->now);
    report(w, host, what, status);
}

static void check_ejection(const struct world *w, const struct witness *x, uint32_t host,
                           uint32_t healthy_before, uint32_t few_out_before)
{
    bool fine = false;
    mono_ns since;

    assert_true(healthy_before >= 2);
    assert_true(w->judge.ejected == 1 ||
                (uint64_t)w->judge.ejected * 100 <=
                    (uint64_t)w->judge.count * w->config.max_ejection_percent);
    assert_int_not_equal(w->config.max_ejection_percent, 0);
    if (healthy_before >= 4)
        return;
    assert_int_equal(few_out_before, 0);
    since = witness_total(&x[host], w->now);
    assert_true(since != MONO_NEVER);
    for (uint32_t i = 0; i < w->judge.count; i++)
        fine =
            fine || (!w->hosts[i].ejected && x[i].success > since &&
                     w->now - x[i].success <= 10 * S && witness_total(&x[i], w->now) == MONO_NEVER);
    assert_true(fine);
}

static void check_counts(const struct world *w)
{
    uint32_t out = 0;

    for (uint32_t i = 0; i < w->judge.count; i++)
        out += w->hosts[i].ejected;
    assert_int_equal(out, w->judge.ejected);
    assert_true(out < w->judge.count);
}

static uint32_t few_out(const struct world *w)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->judge.count; i++)
        n += w->hosts[i].ejected && w->hosts[i].by_few_rule;
    return n;
}

/* Law 1, on random histories: floor, cap, last host, total evidence, and that the counts agree. */
static uint32_t random_history(uint64_t seed, uint32_t *by_few)
{
    static const uint32_t caps[] = {0, 1, 10, 20, 34, 50, 90, 100};
    static const uint32_t moods[] = {0, 5, 50, 99, 100};
    struct witness x[HOSTS_MAX] = {{0}};
    uint32_t mood[HOSTS_MAX];
    uint32_t ejections = 0;
    struct outlier_config c = envoy;
    struct rng random;
    struct world w;

    rng_init(&random, seed);
    c.max_ejection_percent = caps[rng_below(&random, 8)];
    c.consecutive_gateway = rng_below(&random, 4);
    c.split = rng_below(&random, 2) == 0;
    c.base_ejection = (1 + rng_below(&random, 10)) * S;
    start(&w, 1 + rng_below(&random, 8), &c);
    for (uint32_t i = 0; i < HOSTS_MAX; i++)
        mood[i] = moods[rng_below(&random, 5)];
    for (uint32_t step = 0; step < 2000; step++) {
        uint32_t host = rng_below(&random, w.judge.count);
        uint32_t healthy = w.judge.count - w.judge.ejected, few = few_out(&w);

        w.now += rng_below(&random, 200) * NS_PER_MS;
        if (rng_below(&random, 50) == 0)
            mood[host] = moods[rng_below(&random, 5)];
        if (step % 100 == 99)
            sweep(&w);
        else if (!w.hosts[host].ejected || rng_below(&random, 10) == 0)
            random_report(&w, &x[host], &random, host, mood[host]);
        check_counts(&w);
        if (step % 100 != 99 && w.ejected_by != OUTLIER_NONE) {
            check_ejection(&w, x, host, healthy, few);
            ejections++;
            *by_few += healthy < 4;
            w.ejected_by = OUTLIER_NONE;
        }
    }
    return ejections;
}

static void law_one_holds_on_random_histories(void **state)
{
    uint32_t ejections = 0, by_few = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 400; seed++)
        ejections += random_history(seed, &by_few);
    assert_true(ejections > 1000); /* or the law would hold for want of anything happening */
    assert_true(by_few > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cap_is_what_the_table_says_but_for_law_one),
        cmocka_unit_test(a_cap_of_zero_ejects_nobody_even_on_total_evidence),
        cmocka_unit_test(with_few_hosts_failures_must_be_many_and_long),
        cmocka_unit_test(a_run_of_exactly_total_evidence_is_needed_again_after_a_success),
        cmocka_unit_test(a_connect_that_works_ends_the_evidence_of_refusal),
        cmocka_unit_test(what_is_common_is_blamed_on_nobody),
        cmocka_unit_test(a_peer_is_fine_only_by_a_success_of_the_last_ten_seconds),
        cmocka_unit_test(a_peer_is_fine_only_by_a_success_after_the_trouble_began),
        cmocka_unit_test(a_peer_under_total_evidence_itself_is_not_fine),
        cmocka_unit_test(a_peer_that_is_out_is_not_fine),
        cmocka_unit_test(evidence_is_never_older_than_the_last_success),
        cmocka_unit_test(below_four_healthy_one_more_goes_and_no_second),
        cmocka_unit_test(total_evidence_goes_on_after_the_return_until_a_success),
        cmocka_unit_test(the_first_instant_of_time_is_an_instant),
        cmocka_unit_test(a_clock_that_steps_back_is_no_evidence),
        cmocka_unit_test(law_one_holds_on_random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
