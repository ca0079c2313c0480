/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/effect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"

#define SLOW  100000u /* microseconds: later is slow */
#define LATE  400000u
#define QUICK 20000u

/* --- a cluster, an attempt at a time --- */

static struct {
    struct rng rng;
    struct effect_past host;
    struct effect_past fleet;
    struct effect_times times;
    struct effect_limit limits[EVIDENCE_CLASS_MAX];
    struct effect_account account;
    mono_ns now;
} w;

static void begin(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    rng_init(&w.rng, seed);
    w.now = NS_PER_S;
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        w.limits[c] = (struct effect_limit){.slow = SLOW, .late = LATE};
}

static double uniform(void)
{
    return (double)rng_below(&w.rng, 1000000) / 1e6;
}

static struct evidence sample(enum evidence_outcome outcome, uint32_t us)
{
    return (struct evidence){.at = w.now, .outcome = (uint8_t)outcome, .first_us = us};
}

/* Fails in a share |bad| of cases. */
static struct evidence draw(double bad)
{
    return uniform() < bad ? sample(EVIDENCE_ERROR, QUICK) : sample(EVIDENCE_OK, QUICK);
}

static void before_by(struct evidence e, bool host)
{
    struct effect_count c = effect_count_of(&e, &w.limits[0]);

    effect_past_add(&w.fleet, &c);
    effect_times_add(&w.times, &e);
    if (host)
        effect_past_add(&w.host, &c);
}

static void fade(void)
{
    effect_past_fade(&w.fleet);
    effect_past_fade(&w.host);
    effect_times_fade(&w.times);
    w.now += EFFECT_BUCKET;
}

/* |seconds| of ten hosts, |rate| requests a second each; ours and the others fail so often. */
static void before(uint32_t seconds, uint32_t rate, double host, double others)
{
    for (uint32_t half = 0; half < 2 * seconds; half++) {
        fade();
        for (uint32_t i = 0; i < rate / 2 * 10; i++)
            before_by(draw(i % 10 == 0 ? host : others), i % 10 == 0);
    }
}

static void eject(void)
{
    effect_open(&w.account,
                &(struct effect_before){
                    .host = &w.host, .fleet = &w.fleet, .times = &w.times, .limits = w.limits},
                w.now);
}

static void survivor(double bad)
{
    struct evidence e = draw(bad);

    effect_learn_survivor(&w.account, &e, LATE);
}

static void probe(double bad)
{
    struct evidence e = draw(bad);

    e.flags = EVIDENCE_PROBE;
    effect_learn_host(&w.account, &e, LATE);
}

static enum effect_verdict judge(void)
{
    return effect_judge(&w.account, false, w.now);
}

/* --- what is counted --- */

static void an_attempt_that_is_told_late_is_counted_once(void **state)
{
    const struct effect_limit l = {.slow = SLOW, .late = LATE};
    struct evidence late = sample(EVIDENCE_LATE, LATE), end = sample(EVIDENCE_TIMEOUT, LATE * 3);
    struct effect_count c;
    (void)state;

    c = effect_count_of(&late, &l);
    assert_true(c.tries == 1 && c.bad == 1 && c.failed == 0);
    c = effect_count_of(&end, &l);
    assert_true(c.tries == 0 && c.bad == 0 && c.failed == 1 && c.timed_out == 1);
    end = sample(EVIDENCE_OK, LATE + 1);
    c = effect_count_of(&end, &l);
    assert_true(c.tries == 0 && c.bad == 0 && c.slow == 1);
}

static void slow_is_past_the_limit_and_thinned_ones_count_for_many(void **state)
{
    const struct effect_limit l = {.slow = SLOW, .late = LATE}, unknown = {0};
    struct evidence e = sample(EVIDENCE_OK, SLOW);
    (void)state;

    e.thinned = 3;
    assert_true(effect_count_of(&e, &l).tries == 8 && effect_count_of(&e, &l).slow == 0);
    e.first_us = SLOW + 1;
    assert_true(effect_count_of(&e, &l).slow == 8 && effect_count_of(&e, &l).bad == 8);
    assert_true(effect_count_of(&e, &unknown).bad == 0);
    e = sample(EVIDENCE_ABANDONED, SLOW);
    assert_true(effect_count_of(&e, &l).tries == 0);
    e.first_us = SLOW + 1;
    assert_true(effect_count_of(&e, &l).tries == 1 && effect_count_of(&e, &l).bad == 1);
}

static void a_probe_given_up_may_have_been_slow_or_a_failure(void **state)
{
    const struct effect_limit l = {.slow = SLOW, .late = LATE};
    struct evidence e = sample(EVIDENCE_TIMEOUT, LATE + 1);
    (void)state;

    e.flags = EVIDENCE_PROBE;
    assert_true(effect_count_of(&e, &l).tries == 1 && effect_count_of(&e, &l).bad == 1);
    assert_true(effect_count_of(&e, &l).unsure == 1 && effect_count_of(&e, &l).failed == 0);
    e.outcome = EVIDENCE_LATE;
    assert_true(effect_count_of(&e, &l).tries == 0);
}

/* --- limits --- */

static void limits_of_a_share_hold_as_often_as_they_say(void **state)
{
    static const double shares[] = {0.001, 0.02, 0.3, 0.9};
    static const uint32_t tries[] = {5, 40, 500};
    (void)state;

    begin(7);
    for (size_t s = 0; s < 4; s++) {
        for (size_t t = 0; t < 3; t++) {
            uint32_t above = 0, below = 0;

            for (uint32_t run = 0; run < 2000; run++) {
                double bad = 0;

                for (uint32_t i = 0; i < tries[t]; i++)
                    bad += uniform() < shares[s];
                above += effect_upper(bad, tries[t], 0.05) < shares[s];
                below += effect_lower(bad, tries[t], 0.05) > shares[s];
            }
            assert_in_range(above, 0, 100);
            assert_in_range(below, 0, 100);
        }
    }
    assert_true(effect_upper(0, 0, 0.05) == 1 && effect_lower(0, 0, 0.05) == 0);
    assert_true(fabs(effect_upper(0, 20, 0.05) - (1 - pow(0.05, 1.0 / 20))) < 1e-6);
    assert_true(fabs(effect_lower(20, 20, 0.05) - pow(0.05, 1.0 / 20)) < 1e-6);
}

/* --- laws: a null is called false at most as often as alpha says --- */

#define RUNS 400
#define MOST (RUNS * 5 / 100)

/* What the survivors do, changing every few seconds. */
static double wandering(double at, uint32_t step)
{
    if (step % 40 == 0)
        at = fmin(fmax(at * exp(2 * (uniform() - 0.5)), 0.0005), 0.6);
    return at;
}

static void law_a_host_no_worse_than_the_survivors_is_seldom_said_to_have_been_bad(void **state)
{
    static const uint32_t gaps[] = {1, 3, 20, 90};
    uint32_t helped = 0;
    (void)state;

    for (uint32_t run = 0; run < RUNS; run++) {
        double at = 0.001 * pow(10, run % 3);

        begin(1000 + run);
        before(10, 10, at, at);
        eject();
        for (uint32_t i = 0; i < 4000 && judge() != EFFECT_HELPED; i++) {
            at = wandering(at, i);
            survivor(at);
            w.account.verdict = EFFECT_UNDECIDED; /* only this one is asked for */
            if (i % gaps[run % 4] == 0)
                probe(run % 2 == 0 ? at : at / 10);
        }
        helped += w.account.verdict == EFFECT_HELPED;
    }
    assert_in_range(helped, 0, MOST);
}

/* The bound itself: survivors half as bad as the host. What was seen of it is not even selected. */
static void law_survivors_half_as_bad_are_seldom_called_the_same(void **state)
{
    static const double shares[] = {0.02, 0.1, 0.5, 1};
    uint32_t called = 0;
    (void)state;

    for (uint32_t run = 0; run < RUNS; run++) {
        double bad = shares[run % 4];

        begin(5000 + run);
        before(10, run % 2 == 0 ? 10 : 100, bad, run % 3 == 0 ? 0.001 : bad / 2);
        eject();
        for (uint32_t i = 0; i < 4000 && judge() == EFFECT_UNDECIDED; i++)
            survivor(bad / 2);
        called += w.account.verdict != EFFECT_UNDECIDED;
    }
    assert_in_range(called, 0, MOST);
}

static void law_a_fleet_as_bad_as_before_is_seldom_called_worse(void **state)
{
    static const double shares[] = {0.002, 0.02, 0.1, 0.4};
    uint32_t called = 0;
    (void)state;

    for (uint32_t run = 0; run < RUNS; run++) {
        double bad = shares[run % 4];

        begin(9000 + run);
        before(20, run % 2 == 0 ? 2 : 20, bad, bad);
        eject();
        for (uint32_t i = 0; i < 4000; i++) {
            survivor(bad);
            if (effect_judge(&w.account, true, w.now) == EFFECT_HARMFUL)
                break;
            w.account.verdict = EFFECT_UNDECIDED;
        }
        called += w.account.verdict == EFFECT_HARMFUL;
    }
    assert_in_range(called, 0, MOST);
}

/* The same with thinned samples: failures all come, successes one in eight. */
static void law_thinning_makes_no_verdict(void **state)
{
    uint32_t called = 0;
    (void)state;

    for (uint32_t run = 0; run < RUNS; run++) {
        uint32_t successes = 0;

        begin(13000 + run);
        before(10, 100, 0.1, 0.05);
        eject();
        for (uint32_t i = 0; i < 10000; i++) {
            struct evidence e = draw(0.05);

            e.thinned = 3;
            if (e.outcome == EVIDENCE_OK && ++successes % 8 != 0)
                continue;
            e.thinned = e.outcome == EVIDENCE_OK ? 3 : 0;
            effect_learn_survivor(&w.account, &e, LATE);
            if (i % 100 == 0)
                probe(0.05);
        }
        called += judge() != EFFECT_UNDECIDED;
    }
    assert_in_range(called, 0, MOST);
}

/* --- what is there is found --- */

static void a_sick_host_is_known_by_its_first_probes(void **state)
{
    (void)state;

    begin(1);
    before(10, 10, 0.5, 0.002);
    eject();
    for (uint32_t n = 0; n < 4 && judge() == EFFECT_UNDECIDED; n++) {
        for (uint32_t i = 0; i < 200; i++)
            survivor(0.002);
        probe(1);
    }
    assert_int_equal(judge(), EFFECT_HELPED);
    assert_in_range(w.account.all_probes, 1, 2);
}

static uint32_t survivors_until(double host, double others_before, double now, bool overloaded)
{
    before(10, 10, host, others_before);
    eject();
    for (uint32_t i = 1; i <= 3000; i++) {
        survivor(now);
        if (effect_judge(&w.account, overloaded, w.now) != EFFECT_UNDECIDED)
            return i;
    }
    return UINT32_MAX;
}

static void what_the_survivors_share_was_not_the_hosts_fault(void **state)
{
    (void)state;

    begin(2);
    assert_in_range(survivors_until(0.5, 0.5, 0.5, false), 1, 400);
    assert_int_equal(w.account.verdict, EFFECT_USELESS);
    begin(3);
    assert_in_range(survivors_until(1, 0.0, 1, false), 1, 40);
    assert_int_equal(w.account.verdict, EFFECT_HARMFUL); /* and worse than before */
}

static void survivors_that_break_down_are_harm_done_only_if_overloaded(void **state)
{
    (void)state;

    begin(4);
    assert_int_equal(survivors_until(1, 0.0, 0.3, false), UINT32_MAX);
    begin(4);
    assert_in_range(survivors_until(1, 0.0, 0.3, true), 1, 300);
    assert_int_equal(w.account.verdict, EFFECT_HARMFUL);
}

static void a_verdict_does_not_change(void **state)
{
    (void)state;

    begin(5);
    before(10, 10, 1, 0.0);
    eject();
    for (uint32_t i = 0; i < 100; i++)
        survivor(0);
    probe(1);
    assert_int_equal(judge(), EFFECT_HELPED);
    for (uint32_t i = 0; i < 1000; i++)
        survivor(1);
    w.now += NS_PER_S;
    assert_int_equal(judge(), EFFECT_HELPED);
    assert_int_equal(w.account.decided, w.now - NS_PER_S);
}

/* --- what was spared --- */

struct history {
    double host, others;
    uint32_t sick_for;  /* seconds after the ejection */
    uint32_t probe_gap; /* seconds */
};

/* To what a twin would have lost on the host, drawn from the same rates; the host returns on proof.
 */
static double claimed_to_true(const struct history *h)
{
    double lost = 0, bad;
    uint32_t in_row = 0;

    before(10, 10, h->host, h->others);
    eject();
    for (uint32_t second = 0; second < 300 && in_row < 20; second++) {
        double now = second < h->sick_for ? h->host : h->others;

        for (uint32_t i = 0; i < 90 + 10; i++)
            survivor(h->others);
        lost += 10 * (now - h->others);
        if (second % h->probe_gap != 0)
            continue;
        bad = w.account.all_bad;
        for (in_row = 0; in_row < 20; in_row++) {
            probe(now);
            if (w.account.all_bad > bad)
                break;
        }
    }
    return effect_claims(&w.account).failures / lost;
}

static void law_claims_are_what_would_have_been_lost(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < 6; kind++) {
        double sum = 0, spread = 0;

        for (uint32_t run = 0; run < 40; run++) {
            struct history h = {.host = kind % 2 == 0 ? 1 : 0.5,
                                .others = kind % 3 == 0 ? 0 : 0.02,
                                .sick_for = kind < 3 ? 60 : 200,
                                .probe_gap = 1 + kind / 2};
            double ratio;

            begin(20000 + 100 * kind + run);
            ratio = claimed_to_true(&h);
            sum += ratio / 40;
            spread += (ratio - 1) * (ratio - 1) / 40;
        }
        if (fabs(sum - 1) > 0.05 || sqrt(spread) > 0.13)
            fail_msg("kind %u: mean %.3f, spread %.3f", kind, sum, sqrt(spread));
    }
}

static void a_host_that_was_well_has_spared_nothing(void **state)
{
    const struct history h = {.host = 0.01, .others = 0.01, .sick_for = 0, .probe_gap = 1};
    struct effect_claim c;
    (void)state;

    begin(31);
    (void)claimed_to_true(&h);
    c = effect_claims(&w.account);
    assert_true(fabs(c.failures) < 2 && fabs(c.slow) < 1);
}

static void waits_are_failures_where_they_ended_as_such(void **state)
{
    struct evidence late = sample(EVIDENCE_LATE, LATE), end = sample(EVIDENCE_TIMEOUT, LATE * 3);
    struct effect_claim c;
    (void)state;

    begin(32);
    before(10, 10, 0, 0);
    for (uint32_t i = 0; i < 30; i++)
        before_by(late, true);
    eject();
    for (uint32_t i = 0; i < 30; i++)
        effect_learn_host(&w.account, &end, LATE); /* what was under way on it */
    for (uint32_t i = 0; i < 1000; i++)
        survivor(0);
    late.flags = end.flags = EVIDENCE_PROBE;
    for (uint32_t i = 0; i < 50; i++)
        effect_learn_host(&w.account, &end, LATE);
    c = effect_claims(&w.account);
    assert_true(c.failures > 0.9 * 1000 * w.account.share && c.slow < 0.02 * c.failures);
}

static void time_between_a_bad_probe_and_good_ones_counts_half(void **state)
{
    (void)state;

    begin(33);
    before(20, 100, 1, 0);
    eject();
    probe(1);
    for (uint32_t i = 0; i < 1000; i++)
        survivor(0);
    assert_true(fabs(effect_claims(&w.account).failures - 100) < 2);
    for (uint32_t i = 0; i < 20; i++)
        probe(0);
    assert_true(fabs(effect_claims(&w.account).failures - 50) < 5);
    for (uint32_t i = 0; i < 1000; i++)
        survivor(0);
    assert_true(fabs(effect_claims(&w.account).failures - 50) < 5);
    assert_true(effect_badness(&w.account) < 0.05);
    probe(1); /* the exception */
    assert_true(fabs(effect_claims(&w.account).failures - 50) < 5);
    for (uint32_t i = 0; i < 30; i++)
        probe(1); /* it was bad all along, if not always: of all that was seen, 32 in 52 */
    assert_true(fabs(effect_claims(&w.account).failures - 200 * 32.0 / 52) < 2);
}

/* --- afterwards --- */

static void later(uint32_t n, double host, double others)
{
    for (uint32_t i = 0; i < n; i++) {
        struct evidence a = draw(host), b = draw(others);

        effect_learn_later(&w.account, &a, LATE, true);
        effect_learn_later(&w.account, &b, LATE, false);
    }
}

static bool seems_false(double was, double probes, double is)
{
    before(10, 10, was, 0.002);
    eject();
    for (uint32_t i = 0; i < 900; i++)
        survivor(0.002);
    for (uint32_t i = 0; i < 20; i++)
        probe(probes);
    later(50, is, 0.002);
    return effect_seems_false(&w.account);
}

static void a_host_that_was_well_before_and_after_was_ejected_falsely(void **state)
{
    (void)state;

    begin(41);
    assert_true(seems_false(0, 0, 0));
    begin(41);
    assert_false(seems_false(0.5, 0, 0));
    begin(41);
    assert_false(seems_false(0, 0.5, 0));
    begin(41);
    assert_false(seems_false(0, 0, 0.5));
    w.account.later = w.account.later_peers; /* as well as the others now */
    assert_true(effect_seems_false(&w.account));
    w.account.later.tries = 9; /* too few to say */
    assert_false(effect_seems_false(&w.account));
    w.account.later.tries = 50;
    w.account.was_slow = true;
    assert_false(effect_seems_false(&w.account));
}

static void timeouts_and_p99_are_compared_with_before(void **state)
{
    struct evidence timeout = sample(EVIDENCE_TIMEOUT, 300000), ok = sample(EVIDENCE_OK, QUICK);
    (void)state;

    begin(42);
    for (uint32_t i = 0; i < 1000; i++)
        before_by(i % 1000 < 18 ? timeout : ok, i % 10 == 0);
    eject();
    assert_true(effect_timeouts_ratio(&w.account) < 0 && effect_p99_ratio(&w.account) < 0);
    for (uint32_t i = 0; i < 1000; i++)
        effect_learn_survivor(&w.account, i % 1000 < 14 ? &timeout : &ok, LATE);
    assert_true(fabs(effect_timeouts_ratio(&w.account) - 14.0 / 18) < 1e-9);
    assert_true(fabs(effect_p99_ratio(&w.account) - 1) < 1e-9);
    for (uint32_t i = 0; i < 1000; i++)
        effect_learn_survivor(&w.account, &ok, LATE);
    assert_true(effect_p99_ratio(&w.account) < 0.1);
}

static void what_is_past_fades(void **state)
{
    (void)state;

    begin(43);
    before(1, 100, 1, 1);
    assert_true(w.host.lately.bad > 80);
    for (uint32_t i = 0; i < 20; i++)
        fade();
    assert_true(w.host.lately.bad < 2 && w.host.usual.bad > 30 && w.host.longer.bad > 70);
    assert_true(w.times.sum > 700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attempt_that_is_told_late_is_counted_once),
        cmocka_unit_test(slow_is_past_the_limit_and_thinned_ones_count_for_many),
        cmocka_unit_test(a_probe_given_up_may_have_been_slow_or_a_failure),
        cmocka_unit_test(limits_of_a_share_hold_as_often_as_they_say),
        cmocka_unit_test(law_a_host_no_worse_than_the_survivors_is_seldom_said_to_have_been_bad),
        cmocka_unit_test(law_survivors_half_as_bad_are_seldom_called_the_same),
        cmocka_unit_test(law_a_fleet_as_bad_as_before_is_seldom_called_worse),
        cmocka_unit_test(law_thinning_makes_no_verdict),
        cmocka_unit_test(a_sick_host_is_known_by_its_first_probes),
        cmocka_unit_test(what_the_survivors_share_was_not_the_hosts_fault),
        cmocka_unit_test(survivors_that_break_down_are_harm_done_only_if_overloaded),
        cmocka_unit_test(a_verdict_does_not_change),
        cmocka_unit_test(law_claims_are_what_would_have_been_lost),
        cmocka_unit_test(a_host_that_was_well_has_spared_nothing),
        cmocka_unit_test(waits_are_failures_where_they_ended_as_such),
        cmocka_unit_test(time_between_a_bad_probe_and_good_ones_counts_half),
        cmocka_unit_test(a_host_that_was_well_before_and_after_was_ejected_falsely),
        cmocka_unit_test(timeouts_and_p99_are_compared_with_before),
        cmocka_unit_test(what_is_past_fades),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
