/* SPDX-License-Identifier: Apache-2.0 */
/* Outlier detection: how runs grow and end, who is ejected, for how long, and the floor of law 1.
 */
#include "policy/outlier.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HOSTS_MAX 20
#define S         NS_PER_S
#define BIT(t)    ((outlier_triggers)1 << (t))

#define GATEWAY BIT(OUTLIER_CONSECUTIVE_GATEWAY)
#define ANY_5XX BIT(OUTLIER_CONSECUTIVE_5XX)
#define LOCAL   BIT(OUTLIER_CONSECUTIVE_LOCAL_ORIGIN)

/* Envoy's defaults, with a sweep every 10 s. */
static const struct outlier_config envoy = {
    .consecutive_5xx = 5,
    .consecutive_gateway = 0, /* detected, but enforced with 0 percent: for us it is off */
    .consecutive_local_origin = 5,
    .enabled = true,
    .interval = 10 * S,
    .base_ejection = 30 * S,
    .max_ejection = 300 * S,
    .max_ejection_percent = 10,
};

/* A worker and the control thread in one. */
struct world {
    struct outlier_config config;
    struct outlier judge;
    struct outlier_host hosts[HOSTS_MAX];
    struct outlier_runs runs[HOSTS_MAX];
    struct outlier_runs *pointers[HOSTS_MAX];
    struct rng rng;
    mono_ns now;
    outlier_triggers triggers;       /* of the last report */
    enum outlier_trigger ejected_by; /* of the last report; OUTLIER_NONE: nobody went */
    struct outlier_verdict verdict;  /* the last one */
    uint32_t considered;             /* triggers that found the host in */
    uint32_t refused;
};

static void start(struct world *w, uint32_t hosts, const struct outlier_config *config)
{
    *w = (struct world){.config = *config, .now = 1000 * S};
    for (uint32_t i = 0; i < hosts; i++) {
        outlier_runs_init(&w->runs[i]);
        w->pointers[i] = &w->runs[i];
    }
    outlier_init(&w->judge, w->hosts, hosts);
    rng_init(&w->rng, 11);
}

static void consider(struct world *w, uint32_t host, enum outlier_trigger t)
{
    w->verdict = outlier_consider(&w->judge, &w->config, w->pointers, host, &w->rng, w->now);
    outlier_runs_restart(&w->runs[host], t);
    if (w->verdict.guard == OUTLIER_GUARD_ALREADY_OUT)
        return;
    w->considered++;
    w->refused += w->verdict.guard != OUTLIER_GUARD_NONE;
    if (w->verdict.guard == OUTLIER_GUARD_NONE)
        w->ejected_by = t;
}

static void report(struct world *w, uint32_t host, enum outlier_report what, uint32_t status)
{
    static const enum outlier_trigger order[] = {
        OUTLIER_CONSECUTIVE_GATEWAY, OUTLIER_CONSECUTIVE_5XX, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN};

    w->ejected_by = OUTLIER_NONE;
    w->triggers = outlier_learn(&w->runs[host], &w->config, what, status, w->now);
    for (uint32_t i = 0; i < 3; i++) {
        if (w->triggers & BIT(order[i]))
            consider(w, host, order[i]);
    }
}

static void answer(struct world *w, uint32_t host, uint32_t status, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        report(w, host, OUTLIER_ANSWERED, status);
}

static void failed(struct world *w, uint32_t host, enum outlier_report what, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        report(w, host, what, 0);
}

static uint32_t sweep(struct world *w)
{
    uint32_t returned[HOSTS_MAX];

    return outlier_sweep(&w->judge, &w->config, w->pointers, returned, w->now);
}

static struct outlier_config with_cap(uint32_t percent)
{
    struct outlier_config c = envoy;

    c.max_ejection_percent = percent;
    return c;
}

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
    assert_int_equal(outlier_sweep(&w.judge, &c, w.pointers, returned, w.now), 2);
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
    if (what == OUTLIER_CONNECTED)
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
        what = (enum outlier_report)rng_below(random, 5);
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
        uint32_t what = rng_below(&random, 6);
        mono_ns now = S + atomic_fetch_add(&c->clock, 1) * NS_PER_US;

        if (what == 5)
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
    struct outlier_runs *runs[2] = {&c.runs, &peer};
    struct outlier_host hosts[2] = {{0}};
    pthread_t threads[THREADS];
    struct outlier judge;
    struct rng rng;
    (void)state;

    c.config = with_cap(100);
    rng_init(&rng, 3);
    outlier_runs_init(&peer);
    outlier_learn(&peer, &c.config, OUTLIER_ANSWERED, 200, 2 * S);
    outlier_init(&judge, hosts, 2);
    crowd_start(&c, threads, failures_and_successes);
    while (atomic_load(&c.done) < THREADS) {
        mono_ns now = S + atomic_load(&c.clock) * NS_PER_US;
        struct outlier_verdict v = outlier_consider(&judge, &c.config, runs, 0, &rng, now);

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
        cmocka_unit_test(the_time_grows_by_the_base_up_to_the_maximum),
        cmocka_unit_test(the_multiplier_stops_one_beyond_the_maximum),
        cmocka_unit_test(extreme_times_do_not_overflow),
        cmocka_unit_test(jitter_is_added_outside_the_maximum_in_whole_milliseconds),
        cmocka_unit_test(the_multiplier_decays_by_one_a_quiet_sweep),
        cmocka_unit_test(runs_begin_anew_when_a_host_comes_back),
        cmocka_unit_test(the_sweep_says_who_came_back),
        cmocka_unit_test(where_detection_is_switched_off_all_come_back_at_the_sweep),
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
        cmocka_unit_test(one_thread_and_no_other_sees_the_threshold_reached),
        cmocka_unit_test(the_judge_may_look_while_workers_learn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
