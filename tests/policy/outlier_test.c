/* SPDX-License-Identifier: Apache-2.0 */
/* Outlier detection: how runs grow and end, for how long a host is out, many workers at once. */
#include "outlier_world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* --- how a report is counted: envoy-semantics.md 1.3 --- */

static void every_kind_of_failure_counts_as_it_should(void **state)
{
    static const struct {
        const char *name;
        enum outlier_report what;
        uint32_t status;
        bool split;
        uint32_t run_5xx, run_gateway, run_local, without_success, refused;
    } rows[] = {
        /* from runs of 2 each */
        {"connected", OUTLIER_CONNECTED, 0, false, 2, 2, 2, 2, 0},
        {"connected, split: the local run goes on", OUTLIER_CONNECTED, 0, true, 2, 2, 2, 2, 0},
        {"a connection was there", OUTLIER_REUSED, 0, false, 2, 2, 2, 2, 2},
        {"a connection was there, split", OUTLIER_REUSED, 0, true, 2, 2, 2, 2, 2},
        {"200", OUTLIER_ANSWERED, 200, false, 0, 0, 0, 0, 0},
        {"200, split", OUTLIER_ANSWERED, 200, true, 0, 0, 0, 0, 0},
        {"404 is a success", OUTLIER_ANSWERED, 404, false, 0, 0, 0, 0, 0},
        {"499 is a success", OUTLIER_ANSWERED, 499, true, 0, 0, 0, 0, 0},
        {"500 ends the gateway run", OUTLIER_ANSWERED, 500, false, 3, 0, 0, 3, 0},
        {"501 ends the gateway run", OUTLIER_ANSWERED, 501, false, 3, 0, 0, 3, 0},
        {"502", OUTLIER_ANSWERED, 502, false, 3, 3, 0, 3, 0},
        {"503", OUTLIER_ANSWERED, 503, true, 3, 3, 0, 3, 0},
        {"504", OUTLIER_ANSWERED, 504, false, 3, 3, 0, 3, 0},
        {"505 ends the gateway run", OUTLIER_ANSWERED, 505, true, 3, 0, 0, 3, 0},
        {"599", OUTLIER_ANSWERED, 599, false, 3, 0, 0, 3, 0},
        {"timed out is a 504", OUTLIER_TIMED_OUT, 0, false, 3, 3, 2, 3, 2},
        {"timed out, split", OUTLIER_TIMED_OUT, 0, true, 2, 2, 3, 3, 2},
        {"connect failed is a 503", OUTLIER_CONNECT_FAILED, 0, false, 3, 3, 2, 3, 3},
        {"connect failed, split", OUTLIER_CONNECT_FAILED, 0, true, 2, 2, 3, 3, 3},
        {"reset is a 503", OUTLIER_RESET, 0, false, 3, 3, 2, 3, 2},
        {"reset, split", OUTLIER_RESET, 0, true, 2, 2, 3, 3, 2},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outlier_config c = envoy;
        struct outlier_runs r;

        c.split = rows[i].split;
        outlier_runs_init(&r);
        r.run_5xx = r.run_gateway = r.run_local = r.without_success = r.refused = 2;
        outlier_learn(&r, &c, rows[i].what, rows[i].status, S);
        if (r.run_5xx != rows[i].run_5xx || r.run_gateway != rows[i].run_gateway ||
            r.run_local != rows[i].run_local || r.without_success != rows[i].without_success ||
            r.refused != rows[i].refused)
            fail_msg("%s: %u %u %u %u %u", rows[i].name, r.run_5xx, r.run_gateway, r.run_local,
                     r.without_success, r.refused);
    }
}

/* Also where the judge was never told and so restarts nothing. */
static void a_trigger_comes_with_each_full_run(void **state)
{
    struct outlier_config c = envoy;
    struct outlier_runs r;
    (void)state;

    c.consecutive_gateway = 3;
    outlier_runs_init(&r);
    for (uint32_t i = 1; i <= 12; i++) {
        outlier_triggers expected = (i % 3 == 0 ? GATEWAY : 0) | (i % 5 == 0 ? ANY_5XX : 0);

        assert_int_equal(outlier_learn(&r, &c, OUTLIER_ANSWERED, 503, S), expected);
    }
    outlier_learn(&r, &c, OUTLIER_ANSWERED, 503, S);
    outlier_runs_restart(&r, OUTLIER_CONSECUTIVE_GATEWAY);
    outlier_runs_restart(&r, OUTLIER_CONSECUTIVE_5XX);
    for (uint32_t i = 1; i <= 4; i++)
        assert_int_equal(outlier_learn(&r, &c, OUTLIER_ANSWERED, 503, S), i == 3 ? GATEWAY : 0);
}

static void both_triggers_may_come_at_once(void **state)
{
    struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    c.consecutive_gateway = 5;
    start(&w, 10, &c);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.triggers, GATEWAY | ANY_5XX);
    assert_int_equal(w.ejected_by, OUTLIER_CONSECUTIVE_GATEWAY);
    assert_int_equal(w.considered, 1); /* the second found it out already */
    assert_int_equal(w.judge.ejected, 1);
}

static void a_threshold_of_zero_is_off(void **state)
{
    struct outlier_config c = with_cap(100);
    struct outlier_runs r;
    (void)state;

    c.consecutive_5xx = c.consecutive_gateway = c.consecutive_local_origin = 0;
    outlier_runs_init(&r);
    r.run_5xx = r.run_gateway = UINT32_MAX - 1; /* not even where the count comes round to 0 */
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(outlier_learn(&r, &c, OUTLIER_ANSWERED, 503, S), 0);
}

static void where_detection_is_off_nothing_is_learnt(void **state)
{
    struct outlier_config c = envoy;
    struct outlier_runs r;
    (void)state;

    c.enabled = false;
    outlier_runs_init(&r);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(outlier_learn(&r, &c, OUTLIER_ANSWERED, 503, S), 0);
    assert_int_equal(r.run_5xx + r.without_success, 0);
}

static void a_restart_ends_one_run_and_leaves_the_others(void **state)
{
    static const enum outlier_trigger all[] = {OUTLIER_NONE, OUTLIER_CONSECUTIVE_5XX,
                                               OUTLIER_CONSECUTIVE_GATEWAY,
                                               OUTLIER_CONSECUTIVE_LOCAL_ORIGIN};
    (void)state;

    for (uint32_t i = 0; i < 4; i++) {
        struct outlier_runs r;

        outlier_runs_init(&r);
        r.run_5xx = r.run_gateway = r.run_local = r.without_success = 4;
        outlier_runs_restart(&r, all[i]);
        assert_int_equal(r.run_5xx, all[i] == OUTLIER_CONSECUTIVE_5XX ? 0 : 4);
        assert_int_equal(r.run_gateway, all[i] == OUTLIER_CONSECUTIVE_GATEWAY ? 0 : 4);
        assert_int_equal(r.run_local, all[i] == OUTLIER_CONSECUTIVE_LOCAL_ORIGIN ? 0 : 4);
        assert_int_equal(r.without_success, 4);
    }
}

static void names_are_envoys(void **state)
{
    (void)state;

    assert_string_equal(outlier_trigger_text(OUTLIER_CONSECUTIVE_5XX), "consecutive_5xx");
    assert_string_equal(outlier_trigger_text(OUTLIER_CONSECUTIVE_GATEWAY),
                        "consecutive_gateway_failure");
    assert_string_equal(outlier_trigger_text(OUTLIER_CONSECUTIVE_LOCAL_ORIGIN),
                        "consecutive_local_origin_failure");
    assert_string_equal(outlier_guard_text(OUTLIER_GUARD_NONE), "none");
    assert_string_equal(outlier_guard_text(OUTLIER_GUARD_ALREADY_OUT), "already_out");
    assert_string_equal(outlier_guard_text(OUTLIER_GUARD_CAP), "cap");
    assert_string_equal(outlier_guard_text(OUTLIER_GUARD_FEW_HEALTHY), "few_healthy");
    assert_string_equal(outlier_guard_text(OUTLIER_GUARD_LAST_HOST), "last_host");
}

/* --- how long --- */

/* Ejects host 0 again and again, back at once each time; returns the n-th time. */
static span_ns nth_ejection(const struct outlier_config *c, uint32_t n)
{
    struct world w;

    start(&w, 10, c);
    while (true) {
        answer(&w, 0, 503, 5);
        if (--n == 0)
            return w.verdict.eject_for;
        w.now += w.verdict.eject_for;
        assert_int_equal(sweep(&w), 1);
    }
}

static void the_time_grows_by_the_base_up_to_the_maximum(void **state)
{
    struct outlier_config c = with_cap(100);
    (void)state;

    c.base_ejection = 2 * S;
    assert_int_equal(nth_ejection(&c, 1), 2 * S);
    assert_int_equal(nth_ejection(&c, 2), 4 * S);
    assert_int_equal(nth_ejection(&c, 3), 6 * S);
    c.base_ejection = 70 * S;
    assert_int_equal(nth_ejection(&c, 4), 280 * S);
    assert_int_equal(nth_ejection(&c, 5), 300 * S);
    assert_int_equal(nth_ejection(&c, 50), 300 * S);
    c.base_ejection = 300 * S; /* never grows */
    assert_int_equal(nth_ejection(&c, 3), 300 * S);
    c.base_ejection = 400 * S; /* longer than the maximum: the base is it */
    assert_int_equal(nth_ejection(&c, 1), 400 * S);
    assert_int_equal(nth_ejection(&c, 3), 400 * S);
}

static void the_multiplier_stops_one_beyond_the_maximum(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    for (uint32_t n = 1; n <= 15; n++) {
        answer(&w, 0, 503, 5);
        assert_int_equal(w.verdict.multiplier, n < 11 ? n : 11);
        w.now += w.verdict.eject_for;
        sweep(&w);
    }
    assert_int_equal(w.hosts[0].ejections, 15);
}

static void extreme_times_do_not_overflow(void **state)
{
    struct outlier_config c = with_cap(100);
    (void)state;

    c.base_ejection = UINT64_MAX / 2;
    c.max_ejection = UINT64_MAX;
    c.jitter = UINT64_MAX;
    {
        struct world w;

        start(&w, 10, &c);
        for (uint32_t n = 0; n < 4; n++) {
            answer(&w, 0, 503, 5);
            assert_true(w.verdict.eject_for >= UINT64_MAX / 2);
            w.config.enabled = false;
            assert_int_equal(sweep(&w), 1);
            w.config.enabled = true;
        }
    }
    c.base_ejection = 0;
    c.jitter = 0;
    assert_int_equal(nth_ejection(&c, 3), 0);
}

static void jitter_is_added_outside_the_maximum_in_whole_milliseconds(void **state)
{
    struct outlier_config c = with_cap(100);
    span_ns least = UINT64_MAX, most = 0;
    struct world w;
    (void)state;

    c.base_ejection = c.max_ejection = 30 * S;
    c.jitter = 9 * NS_PER_MS;
    start(&w, 10, &c);
    for (uint32_t i = 0; i < 500; i++) {
        span_ns extra;

        answer(&w, 0, 503, 5);
        extra = w.verdict.eject_for - 30 * S;
        assert_int_equal(extra % NS_PER_MS, 0);
        least = extra < least ? extra : least;
        most = extra > most ? extra : most;
        w.now += w.verdict.eject_for - 1;
        assert_int_equal(sweep(&w), 0);
        w.now += 1;
        assert_int_equal(sweep(&w), 1);
    }
    assert_int_equal(least, 0);
    assert_int_equal(most, 9 * NS_PER_MS);
}

static void the_multiplier_decays_by_one_a_quiet_sweep(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    for (uint32_t n = 1; n <= 3; n++) {
        answer(&w, 0, 503, 5);
        w.now += w.verdict.eject_for;
        assert_int_equal(sweep(&w), 1);
        assert_int_equal(w.hosts[0].multiplier, n);
    }
    w.now += 10 * S - 1; /* not yet a whole interval since it came back */
    sweep(&w);
    assert_int_equal(w.hosts[0].multiplier, 3);
    w.now += 1;
    sweep(&w);
    assert_int_equal(w.hosts[0].multiplier, 2);
    w.now += 10 * S;
    sweep(&w);
    assert_int_equal(w.hosts[0].multiplier, 1);
    answer(&w, 0, 503, 5);
    assert_int_equal(w.verdict.eject_for, 60 * S);
    w.now += 20 * S;
    sweep(&w); /* out: nothing decays */
    assert_int_equal(w.hosts[0].multiplier, 2);
    w.now += 40 * S;
    for (uint32_t i = 0; i < 5; i++) {
        sweep(&w);
        w.now += 10 * S;
    }
    assert_int_equal(w.hosts[0].multiplier, 0); /* and never below */
    assert_int_equal(w.hosts[0].ejections, 4);
}

static void runs_begin_anew_when_a_host_comes_back(void **state)
{
    struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    c.split = true;
    c.consecutive_gateway = 6;
    start(&w, 10, &c);
    answer(&w, 0, 503, 5);
    answer(&w, 0, 503, 4); /* answers to what was under way */
    failed(&w, 0, OUTLIER_RESET, 4);
    w.now += 30 * S;
    assert_int_equal(sweep(&w), 1);
    failed(&w, 0, OUTLIER_RESET, 4);
    assert_int_equal(w.judge.ejected, 0);
    answer(&w, 0, 503, 4);
    assert_int_equal(w.runs[0].run_5xx, 4);
    assert_int_equal(w.runs[0].run_gateway, 4);
    assert_int_equal(w.judge.ejected, 0);
    failed(&w, 0, OUTLIER_RESET, 4);
    assert_int_equal(w.judge.ejected, 0);
    answer(&w, 0, 503, 1);
    assert_int_equal(w.judge.ejected, 1);
}

static void the_sweep_says_who_came_back(void **state)
{
    const struct outlier_config c = with_cap(100);
    uint32_t returned[HOSTS_MAX] = {0};
    struct world w;
    (void)state;

    start(&w, 12, &c);
    answer(&w, 2, 503, 5);
    answer(&w, 7, 503, 5);
    w.now += 5 * S;
    answer(&w, 5, 503, 5);
    w.now += 25 * S;
    assert_int_equal(outlier_sweep(&w.judge, returned, w.now), 2);
    assert_int_equal(returned[0], 2);
    assert_int_equal(returned[1], 7);
    assert_int_equal(w.judge.ejected, 1);
    assert_true(w.hosts[5].ejected);
}

static void where_detection_is_switched_off_all_come_back_at_the_sweep(void **state)
{
    const struct outlier_config c = with_cap(100);
    struct world w;
    (void)state;

    start(&w, 10, &c);
    answer(&w, 2, 503, 5);
    answer(&w, 3, 503, 5);
    w.config.enabled = false;
    assert_int_equal(sweep(&w), 2);
    assert_int_equal(w.judge.ejected, 0);
}

/* --- several workers at once --- */

#define THREADS 4
#define OPS     100000

struct crowd {
    struct outlier_config config;
    struct outlier_runs runs;
    pthread_barrier_t start;
    _Atomic uint32_t triggers;
    _Atomic uint32_t done;
    _Atomic uint64_t clock; /* us */
};

static void *only_failures(void *argument)
{
    struct crowd *c = argument;

    pthread_barrier_wait(&c->start);
    for (uint32_t i = 0; i < OPS; i++) {
        if (outlier_learn(&c->runs, &c->config, OUTLIER_ANSWERED, 500, S + i) != 0)
            atomic_fetch_add(&c->triggers, 1);
    }
    return NULL;
}

static void crowd_start(struct crowd *c, pthread_t *threads, void *(*body)(void *))
{
    outlier_runs_init(&c->runs);
    pthread_barrier_init(&c->start, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, c), 0);
}

static void crowd_join(struct crowd *c, pthread_t *threads)
{
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&c->start);
}

static void one_thread_and_no_other_sees_the_threshold_reached(void **state)
{
    static struct crowd c;
    pthread_t threads[THREADS];
    (void)state;

    c.config = envoy;
    c.config.consecutive_5xx = THREADS * OPS / 2 + 1;
    crowd_start(&c, threads, only_failures);
    crowd_join(&c, threads);
    assert_int_equal(c.triggers, 1);
    assert_int_equal(c.runs.run_5xx, THREADS * OPS);
    assert_int_equal(c.runs.without_success, THREADS * OPS);
}

static void *failures_and_successes(void *argument)
{
    struct crowd *c = argument;
    struct rng random;

    rng_init(&random, 5);
    pthread_barrier_wait(&c->start);
    for (uint32_t i = 0; i < OPS; i++) {
        uint32_t what = rng_below(&random, 7);
        mono_ns now = S + atomic_fetch_add(&c->clock, 1) * NS_PER_US;

        if (what == 6)
            outlier_learn(&c->runs, &c->config, OUTLIER_ANSWERED, 200, now);
        else
            outlier_learn(&c->runs, &c->config, (enum outlier_report)what, 503, now);
    }
    atomic_fetch_add(&c->done, 1);
    return NULL;
}

/* The whole time is 0.4 s, too short for any total evidence, though peers are fine. */
static void the_judge_may_look_while_workers_learn(void **state)
{
    static struct crowd c;
    static struct outlier_runs peer;
    struct outlier_host hosts[2];
    const struct outlier_member members[2] = {{&c.runs, &hosts[0]}, {&peer, &hosts[1]}};
    pthread_t threads[THREADS];
    struct outlier judge;
    struct rng rng;
    (void)state;

    c.config = with_cap(100);
    rng_init(&rng, 3);
    outlier_runs_init(&peer);
    outlier_learn(&peer, &c.config, OUTLIER_ANSWERED, 200, 2 * S);
    outlier_host_init(&hosts[0]);
    outlier_host_init(&hosts[1]);
    outlier_init(&judge, &rng);
    outlier_adopt(&judge, &c.config, members, 2);
    crowd_start(&c, threads, failures_and_successes);
    while (atomic_load(&c.done) < THREADS) {
        mono_ns now = S + atomic_load(&c.clock) * NS_PER_US;
        struct outlier_verdict v = outlier_consider(&judge, 0, OUTLIER_CONSECUTIVE_5XX, now);

        assert_int_equal(v.guard, OUTLIER_GUARD_FEW_HEALTHY);
        outlier_runs_restart(&c.runs, OUTLIER_CONSECUTIVE_5XX);
    }
    crowd_join(&c, threads);
    outlier_learn(&c.runs, &c.config, OUTLIER_ANSWERED, 200, 2 * S);
    assert_int_equal(c.runs.without_success + c.runs.refused + c.runs.run_5xx, 0);
    assert_true(c.runs.failing_since == MONO_NEVER);
    assert_true(c.runs.refused_since == MONO_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_failure_counts_as_it_should),
        cmocka_unit_test(a_trigger_comes_with_each_full_run),
        cmocka_unit_test(both_triggers_may_come_at_once),
        cmocka_unit_test(a_threshold_of_zero_is_off),
        cmocka_unit_test(where_detection_is_off_nothing_is_learnt),
        cmocka_unit_test(a_restart_ends_one_run_and_leaves_the_others),
        cmocka_unit_test(names_are_envoys),
        cmocka_unit_test(the_time_grows_by_the_base_up_to_the_maximum),
        cmocka_unit_test(the_multiplier_stops_one_beyond_the_maximum),
        cmocka_unit_test(extreme_times_do_not_overflow),
        cmocka_unit_test(jitter_is_added_outside_the_maximum_in_whole_milliseconds),
        cmocka_unit_test(the_multiplier_decays_by_one_a_quiet_sweep),
        cmocka_unit_test(runs_begin_anew_when_a_host_comes_back),
        cmocka_unit_test(the_sweep_says_who_came_back),
        cmocka_unit_test(where_detection_is_switched_off_all_come_back_at_the_sweep),
        cmocka_unit_test(one_thread_and_no_other_sees_the_threshold_reached),
        cmocka_unit_test(the_judge_may_look_while_workers_learn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
