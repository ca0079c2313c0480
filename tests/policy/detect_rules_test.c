/* SPDX-License-Identifier: Apache-2.0 */
/* The rules judge: the borders of T-000-9 and T-000-19, and counts against a naive reference. */
#include "policy/detect_rules.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define HOSTS_MAX 10
#define MS        NS_PER_MS

/* --- a cluster --- */

struct world {
    struct rules_judge judge;
    struct rules_host host[HOSTS_MAX];
    struct rules_host *hosts[HOSTS_MAX];
};

static void world_init(struct world *w, const struct rule *rules, uint32_t count, uint32_t hosts)
{
    *w = (struct world){.judge = {.rule_count = 0}};
    for (uint32_t i = 0; i < hosts; i++) {
        w->host[i].serving = true;
        w->hosts[i] = &w->host[i];
    }
    rules_adopt(&w->judge, rules, count, w->hosts, hosts);
}

static void world_release(struct world *w)
{
    for (uint32_t i = 0; i < w->judge.count; i++)
        rules_host_release(&w->host[i]);
}

static void defaults(struct world *w, uint32_t hosts)
{
    world_init(w, rules_default, RULES_DEFAULT_COUNT, hosts);
}

static struct evidence sample(mono_ns at, enum evidence_outcome outcome, uint32_t us)
{
    return (struct evidence){.at = at, .outcome = (uint8_t)outcome, .first_us = us};
}

static void tell(struct world *w, uint32_t host, mono_ns at, enum evidence_outcome outcome)
{
    struct evidence e = sample(at, outcome, 20000);

    rules_learn(&w->judge, host, &e);
}

static enum rule_level level(struct world *w, uint32_t host, mono_ns now)
{
    return rules_look(&w->judge, host, now).level;
}

/* --- T-000-9 --- */

/* |n| failures, the first at a second, the last |over| later. */
static enum rule_level spread(enum evidence_outcome outcome, uint32_t n, span_ns over)
{
    struct world w;
    enum rule_level found;

    defaults(&w, 4);
    for (uint32_t i = 0; i < n; i++)
        tell(&w, 1, NS_PER_S + over * i / (n - 1), outcome);
    found = level(&w, 1, NS_PER_S + over);
    world_release(&w);
    return found;
}

static void t_000_9_five_5xx_in_a_row_within_29_s_are_a_candidate_over_31_s_not(void **state)
{
    (void)state;
    assert_int_equal(spread(EVIDENCE_ERROR, 5, 29 * NS_PER_S), RULE_CANDIDATE);
    assert_int_equal(spread(EVIDENCE_GATEWAY, 5, 30 * NS_PER_S), RULE_CANDIDATE);
    assert_int_equal(spread(EVIDENCE_ERROR, 5, 31 * NS_PER_S), RULE_QUIET);
    assert_int_equal(spread(EVIDENCE_ERROR, 4, 3 * NS_PER_S), RULE_QUIET);
}

static void t_000_9_three_connects_that_fail_in_9_9_s_are_a_candidate_in_10_1_s_not(void **state)
{
    const struct rule only = rules_default[4];
    struct world w;
    (void)state;

    for (int late = 0; late <= 1; late++) {
        span_ns over = late == 0 ? 9900 * MS : 10100 * MS;

        world_init(&w, &only, 1, 4);
        for (uint32_t i = 0; i < 3; i++) {
            tell(&w, 1, NS_PER_S + over * i / 2,
                 i == 1 ? EVIDENCE_REFUSED : EVIDENCE_CONNECT_FAILED);
            tell(&w, 1, NS_PER_S + over * i / 2, EVIDENCE_OK); /* they need not be in a row */
        }
        assert_int_equal(level(&w, 1, NS_PER_S + over), late == 0 ? RULE_CANDIDATE : RULE_QUIET);
        world_release(&w);
    }
}

/* Of |n| requests in ten seconds |bad| are lost, every other of those by a timeout. */
static enum rule_level share_of(uint32_t n, uint32_t bad)
{
    struct world w;
    enum rule_level found;
    uint32_t lost = 0;

    defaults(&w, 4);
    for (uint32_t i = 0; i < n; i++) {
        mono_ns at = NS_PER_S + 10 * NS_PER_S * i / n;
        bool lose = (uint64_t)(i + 1) * bad / n > lost;

        lost += lose;
        tell(&w, 2, at, !lose ? EVIDENCE_OK : lost % 2 == 0 ? EVIDENCE_TIMEOUT : EVIDENCE_RESET);
    }
    found = level(&w, 2, 11 * NS_PER_S);
    world_release(&w);
    return found;
}

static void t_000_9_a_share_of_20_1_percent_is_a_candidate_of_20_0_not(void **state)
{
    (void)state;
    assert_int_equal(share_of(1000, 201), RULE_CANDIDATE);
    assert_int_equal(share_of(1000, 200), RULE_QUIET);
    assert_int_equal(share_of(20, 5), RULE_CANDIDATE);
    assert_int_equal(share_of(19, 5), RULE_QUIET); /* fewer than minRequests */
}

static void what_is_older_than_the_time_counts_no_more(void **state)
{
    struct world w;
    (void)state;

    defaults(&w, 4);
    for (uint32_t i = 0; i < 40; i++)
        tell(&w, 0, NS_PER_S, i % 4 == 0 ? EVIDENCE_TIMEOUT : EVIDENCE_OK);
    tell(&w, 0, 28 * NS_PER_S, EVIDENCE_TIMEOUT);
    assert_int_equal(level(&w, 0, 28 * NS_PER_S), RULE_CANDIDATE);
    tell(&w, 0, 31 * NS_PER_S, EVIDENCE_TIMEOUT); /* two tries within the time */
    assert_int_equal(level(&w, 0, 31 * NS_PER_S), RULE_QUIET);
    world_release(&w);
}

/* --- latency --- */

#define WINDOW (10 * NS_PER_S)

/* What a window of a host is like. */
struct shape {
    uint32_t requests;
    double times;  /* its 5 % slowest, to those of the peers */
    uint32_t lost; /* of the requests: timeouts that took no longer than its slow ones */
};

static void play(struct world *w, uint32_t host, uint32_t window, const struct shape *s)
{
    for (uint32_t i = 0; i < s->requests; i++) {
        mono_ns at = window * WINDOW + WINDOW * i / s->requests;
        bool slow = i % 20 == 0;
        uint32_t us = slow ? (uint32_t)(100000 * s->times) : 20000;
        struct evidence e = sample(at, i < s->lost ? EVIDENCE_TIMEOUT : EVIDENCE_OK, us);

        rules_learn(&w->judge, host, &e);
    }
}

/* All hosts of window |number|, host by host: within a window the order does not matter. */
static void play_all(struct world *w, uint32_t number, const struct shape *peers,
                     const struct shape *bad)
{
    for (uint32_t i = 0; i < w->judge.count; i++)
        play(w, i, number, i == 1 ? bad : peers);
    rules_turn(&w->judge, (number + 1) * WINDOW);
}

static const struct shape well = {200, 1, 0};

static enum rule_level after(uint32_t windows, double times, uint32_t lost, uint32_t hosts)
{
    const struct shape bad = {200, times, lost};
    struct world w;
    enum rule_level found;

    world_init(&w, &rules_default[2], 1, hosts);
    for (uint32_t i = 1; i <= 2; i++)
        play_all(&w, i, &well, &well);
    for (uint32_t i = 3; i < 3 + windows; i++)
        play_all(&w, i, &well, &bad);
    found = level(&w, 1, (3 + windows) * WINDOW);
    for (uint32_t i = 0; i < hosts; i++) {
        if (i != 1)
            assert_int_equal(level(&w, i, (3 + windows) * WINDOW), RULE_QUIET);
    }
    world_release(&w);
    return found;
}

static void
t_000_9_a_p99_of_2_6_times_in_3_windows_with_rising_timeouts_is_a_candidate(void **state)
{
    (void)state;
    assert_int_equal(after(3, 2.6, 4, 5), RULE_CANDIDATE);
    assert_int_equal(after(2, 2.6, 4, 5), RULE_SUSPECT);
    assert_int_equal(after(3, 2.6, 0, 5), RULE_SUSPECT);
    assert_int_equal(after(1, 2.6, 4, 5), RULE_QUIET);
    assert_int_equal(after(3, 2.4, 4, 5), RULE_QUIET);
}

static void with_fewer_than_three_peers_no_latency_is_judged(void **state)
{
    (void)state;
    assert_int_equal(after(3, 9, 4, 4), RULE_CANDIDATE);
    assert_int_equal(after(3, 9, 4, 3), RULE_QUIET);
}

static void timeouts_that_the_peers_have_as_well_are_no_second_signal(void **state)
{
    const struct shape peers = {200, 1, 4}, bad = {200, 2.6, 4};
    struct world w;
    (void)state;

    world_init(&w, &rules_default[2], 1, 5);
    for (uint32_t i = 1; i <= 3; i++)
        play_all(&w, i, &peers, &bad);
    assert_int_equal(level(&w, 1, 4 * WINDOW), RULE_SUSPECT);
    world_release(&w);
}

static void timeouts_that_it_always_had_are_no_second_signal(void **state)
{
    const struct shape usual = {200, 1, 4}, bad = {200, 2.6, 4};
    struct world w;
    (void)state;

    world_init(&w, &rules_default[2], 1, 5);
    play_all(&w, 1, &well, &usual);
    for (uint32_t i = 2; i <= 4; i++)
        play_all(&w, i, &well, &bad);
    assert_int_equal(level(&w, 1, 5 * WINDOW), RULE_SUSPECT);
    world_release(&w);
}

static void one_good_window_ends_the_run(void **state)
{
    const struct shape bad = {200, 2.6, 4};
    struct world w;
    (void)state;

    world_init(&w, &rules_default[2], 1, 5);
    for (uint32_t i = 1; i <= 5; i++)
        play_all(&w, i, &well, i == 3 ? &well : &bad);
    assert_int_equal(level(&w, 1, 6 * WINDOW), RULE_SUSPECT);
    world_release(&w);
}

/* What the rule says it went by, where a window has so few requests. */
static struct rule_finding with_requests(uint32_t requests)
{
    const struct shape peers = {requests, 1, 0}, bad = {requests, 5, 0};
    struct rule rule = rules_default[2];
    struct rule_finding f;
    struct world w;

    rule.with = RULE_WITH_NONE;
    world_init(&w, &rule, 1, 5);
    for (uint32_t i = 1; i <= 12; i++)
        play_all(&w, i, &peers, &bad);
    f = rules_look(&w.judge, 1, 13 * WINDOW);
    world_release(&w);
    return f;
}

static void a_p99_of_too_few_requests_gives_way_to_p95_or_a_longer_window_and_says_so(void **state)
{
    struct rule_finding f = with_requests(100);
    (void)state;

    assert_int_equal(f.level, RULE_CANDIDATE);
    assert_int_equal(f.basis, RULE_AS_WRITTEN);
    f = with_requests(99); /* five of 99 are slow: its p95 as well */
    assert_int_equal(f.level, RULE_CANDIDATE);
    assert_int_equal(f.basis, RULE_BY_P95);
    assert_int_equal(f.requests, 99);
    f = with_requests(9); /* one in nine is slow; three windows are one */
    assert_int_equal(f.level, RULE_CANDIDATE);
    assert_int_equal(f.basis, RULE_BY_LONG_WINDOW);
    assert_int_equal(f.requests, 27);
    assert_int_equal(f.windows, 4);
    assert_int_equal(with_requests(2).level, RULE_QUIET);
}

static void hosts_of_another_stratum_are_no_peers(void **state)
{
    const struct shape bad = {200, 9, 4};
    struct world w;
    (void)state;

    world_init(&w, &rules_default[2], 1, 6);
    for (uint32_t i = 3; i < 6; i++)
        w.host[i].stratum = 1;
    for (uint32_t i = 1; i <= 3; i++)
        play_all(&w, i, &well, &bad);
    assert_int_equal(level(&w, 1, 4 * WINDOW), RULE_QUIET);
    world_release(&w);
}

static void classes_are_judged_apart(void **state)
{
    struct world w;
    (void)state;

    defaults(&w, 4);
    for (uint32_t i = 0; i < 6; i++) {
        struct evidence e = sample(NS_PER_S + i * MS, EVIDENCE_ERROR, 1000);

        e.class = i % 2 == 0 ? CLASS_READ : CLASS_WRITE; /* three in a row of each */
        rules_learn(&w.judge, 0, &e);
    }
    assert_int_equal(level(&w, 0, 2 * NS_PER_S), RULE_QUIET);
    for (uint32_t i = 0; i < 2; i++) {
        struct evidence e = sample(NS_PER_S + (10 + i) * MS, EVIDENCE_ERROR, 1000);

        e.class = CLASS_WRITE;
        rules_learn(&w.judge, 0, &e);
    }
    assert_int_equal(rules_look(&w.judge, 0, 2 * NS_PER_S).class, CLASS_WRITE);
    assert_int_equal(level(&w, 0, 2 * NS_PER_S), RULE_CANDIDATE);
    world_release(&w);
}

static void local_failures_of_all_classes_are_one_run_that_an_answer_ends(void **state)
{
    static const enum evidence_outcome lost[] = {EVIDENCE_TIMEOUT, EVIDENCE_CUT, EVIDENCE_REFUSED};
    const struct rule only = rules_default[3];
    struct world w;
    (void)state;

    for (int broken = 0; broken <= 1; broken++) {
        world_init(&w, &only, 1, 4);
        for (uint32_t i = 0; i < 3; i++) {
            struct evidence e = sample((1 + 100 * (mono_ns)i) * NS_PER_S, lost[i], 1000);

            e.class = (uint8_t)i;
            rules_learn(&w.judge, 0, &e);
            if (broken != 0 && i == 1)
                tell(&w, 0, 150 * NS_PER_S, EVIDENCE_ERROR); /* it is an answer */
        }
        assert_int_equal(level(&w, 0, 202 * NS_PER_S), broken == 0 ? RULE_CANDIDATE : RULE_QUIET);
        world_release(&w);
    }
}

static void requests_that_wait_for_long_are_a_queue(void **state)
{
    const struct rule queue = {.signal = RULE_QUEUE_DELAY,
                               .delay = 50 * MS,
                               .within = 10 * NS_PER_S,
                               .min_requests = 20,
                               .with = RULE_WITH_NONE};
    struct world w;
    (void)state;

    for (uint32_t waiting = 10; waiting <= 11; waiting++) {
        world_init(&w, &queue, 1, 4);
        for (uint32_t i = 0; i < 20; i++) {
            struct evidence e = sample(NS_PER_S + i * MS, EVIDENCE_OK, 1000);

            e.queue_us = i < waiting ? 50001 : 50000;
            rules_learn(&w.judge, 0, &e);
        }
        assert_int_equal(level(&w, 0, NS_PER_S + 20 * MS),
                         waiting == 11 ? RULE_CANDIDATE : RULE_QUIET);
        world_release(&w);
    }
}

static void a_share_with_a_second_signal_needs_more_of_it_than_the_peers_have(void **state)
{
    const struct rule rule = {.signal = RULE_ERROR,
                              .above = 100,
                              .within = 10 * NS_PER_S,
                              .min_requests = 20,
                              .with = RULE_TIMEOUT};
    struct world w;
    (void)state;

    for (uint32_t theirs = 2; theirs <= 3; theirs++) {
        world_init(&w, &rule, 1, 2);
        for (uint32_t i = 0; i < 40; i++)
            tell(&w, 1, NS_PER_S, i < theirs ? EVIDENCE_TIMEOUT : EVIDENCE_OK);
        for (uint32_t i = 0; i < 40; i++)
            tell(&w, 0, NS_PER_S + i * MS,
                 i < 3        ? EVIDENCE_TIMEOUT
                 : i % 4 == 0 ? EVIDENCE_ERROR
                              : EVIDENCE_OK);
        assert_int_equal(level(&w, 0, NS_PER_S + 40 * MS),
                         theirs == 2 ? RULE_CANDIDATE : RULE_SUSPECT);
        world_release(&w);
    }
    world_init(&w, &rule, 1, 2);
    for (uint32_t i = 0; i < 40; i++) /* the peer has none, but two are no signal */
        tell(&w, 0, NS_PER_S + i * MS,
             i < 2        ? EVIDENCE_TIMEOUT
             : i % 4 == 0 ? EVIDENCE_ERROR
                          : EVIDENCE_OK);
    assert_int_equal(level(&w, 0, NS_PER_S + 40 * MS), RULE_SUSPECT);
    world_release(&w);
}

/* --- T-000-19 --- */

static void t_000_19_at_a_tenth_of_a_request_a_second_only_runs_speak(void **state)
{
    struct world w;
    (void)state;

    defaults(&w, 3);
    for (uint32_t i = 0; i < 10; i++) { /* a request each 10 s at each host */
        mono_ns at = (1 + 10 * (mono_ns)i) * NS_PER_S;

        tell(&w, 0, at, i % 3 == 1 ? EVIDENCE_TIMEOUT : EVIDENCE_OK);
        tell(&w, 1, at, EVIDENCE_OK);
        tell(&w, 2, at, EVIDENCE_OK);
        assert_int_equal(level(&w, 0, at), RULE_QUIET);
    }
    for (uint32_t i = 0; i < 5; i++)
        tell(&w, 0, (101 + 5 * (mono_ns)i) * NS_PER_S, EVIDENCE_ERROR);
    assert_int_equal(rules_look(&w.judge, 0, 121 * NS_PER_S).number, 0);
    assert_int_equal(level(&w, 0, 121 * NS_PER_S), RULE_CANDIDATE);
    world_release(&w);
}

/* --- what is remembered --- */

static void a_finding_fades_and_an_acquittal_voids_it(void **state)
{
    struct world w;
    (void)state;

    defaults(&w, 3);
    for (int acquit = 0; acquit <= 1; acquit++) {
        mono_ns at = NS_PER_S + (mono_ns)acquit * 100 * NS_PER_S;

        for (uint32_t i = 0; i < 5; i++)
            tell(&w, 0, at, EVIDENCE_ERROR);
        assert_int_equal(level(&w, 0, at), RULE_CANDIDATE);
        if (acquit == 0)
            assert_int_equal(level(&w, 0, at + RULE_STANDS + 1), RULE_QUIET);
        else
            rules_acquit(&w.judge, 0);
        assert_int_equal(level(&w, 0, at), RULE_QUIET);
    }
    for (uint32_t i = 0; i < 4; i++)
        tell(&w, 0, 102 * NS_PER_S, EVIDENCE_ERROR);
    assert_int_equal(level(&w, 0, 102 * NS_PER_S), RULE_QUIET);
    world_release(&w);
}

static void the_same_rules_again_forget_nothing_others_all(void **state)
{
    struct rule rules[RULES_DEFAULT_COUNT];
    struct world w;
    (void)state;

    memcpy(rules, rules_default, sizeof(rules));
    defaults(&w, 3);
    for (uint32_t i = 0; i < 4; i++)
        tell(&w, 0, NS_PER_S, EVIDENCE_ERROR);
    rules_adopt(&w.judge, rules, RULES_DEFAULT_COUNT, w.hosts, 3);
    tell(&w, 0, NS_PER_S, EVIDENCE_ERROR);
    assert_int_equal(level(&w, 0, NS_PER_S), RULE_CANDIDATE);
    rules[0].at_least = 6;
    rules_adopt(&w.judge, rules, RULES_DEFAULT_COUNT, w.hosts, 3);
    tell(&w, 0, NS_PER_S, EVIDENCE_ERROR);
    assert_int_equal(level(&w, 0, NS_PER_S), RULE_QUIET);
    rules_adopt(&w.judge, rules, 0, w.hosts, 3);
    tell(&w, 0, NS_PER_S, EVIDENCE_ERROR);
    assert_int_equal(level(&w, 0, NS_PER_S), RULE_QUIET);
    world_release(&w);
}

/* --- the law: counts on random histories are those of all that was ever told --- */

#define TOLD_MAX 600

struct told {
    struct evidence at[TOLD_MAX];
    uint32_t count;
};

static bool one_of(const struct evidence *e, uint32_t outcomes)
{
    return ((outcomes >> e->outcome) & 1u) != 0;
}

#define BIT(name) (1u << EVIDENCE_##name)
#define FIVES     (BIT(ERROR) | BIT(GATEWAY))
#define LOST      (BIT(TIMEOUT) | BIT(RESET) | BIT(CUT))
#define CONNECTS  (BIT(CONNECT_FAILED) | BIT(REFUSED))
#define NOTHING   (BIT(ABANDONED) | BIT(LATE))

/* The |n| latest of |bad| with none of |good| between them lie |within|, and the last is the newest
 * sample. */
static bool naive_run(const struct told *t, uint32_t class, uint32_t bad, uint32_t good,
                      const struct rule *r)
{
    const struct evidence *last = &t->at[t->count - 1];
    uint32_t n = 0;

    for (uint32_t i = t->count; i-- > 0;) {
        const struct evidence *e = &t->at[i];

        if (class != UINT32_MAX && e->class != class)
            continue;
        if (one_of(e, good))
            return false;
        n += one_of(e, bad);
        if (n == r->at_least)
            return last->at - e->at <= r->within;
    }
    return false;
}

static bool naive_share(const struct told *t, uint32_t class, uint32_t bad, const struct rule *r)
{
    span_ns slice = r->within / RULE_SLICES;
    uint64_t now = t->at[t->count - 1].at / slice;
    uint64_t tries = 0, failed = 0;

    for (uint32_t i = 0; i < t->count; i++) {
        const struct evidence *e = &t->at[i];

        if (e->class != class || one_of(e, NOTHING) || e->at / slice + RULE_SLICES <= now)
            continue;
        tries += 1u << e->thinned;
        failed += one_of(e, bad) ? 1u << e->thinned : 0;
    }
    return tries >= r->min_requests && (double)failed / (double)tries > r->above / 1000.0 + 1e-12;
}

/* Is the newest sample, by rule |number| of the defaults, a candidate's? */
static bool naive(const struct told *t, uint32_t number, const struct rule *r)
{
    const struct evidence *e = &t->at[t->count - 1];

    switch (number) {
    case 0:
        return one_of(e, FIVES) && naive_run(t, e->class, FIVES, BIT(OK), r);
    case 1:
        return !one_of(e, NOTHING) && naive_share(t, e->class, LOST, r);
    case 3:
        return one_of(e, LOST | CONNECTS) &&
               naive_run(t, UINT32_MAX, LOST | CONNECTS, BIT(OK) | FIVES, r);
    case 4:
        return one_of(e, CONNECTS) && naive_run(t, UINT32_MAX, CONNECTS, 0, r);
    default:
        return false;
    }
}

/* Mostly good, in stretches bad. */
static struct evidence draw(struct rng *rng, mono_ns *now, bool bad)
{
    struct evidence e = {.outcome = EVIDENCE_OK, .first_us = 1000};

    *now += rng_below(rng, 10) == 0 ? rng_below(rng, 6000) * MS : rng_below(rng, 500) * MS;
    e.at = *now;
    e.class = (uint8_t)rng_below(rng, 2);
    if (rng_below(rng, 10) < (bad ? 9u : 2u))
        e.outcome = (uint8_t)rng_below(rng, EVIDENCE_OUTCOME_COUNT);
    if (e.outcome == EVIDENCE_OK)
        e.thinned = (uint8_t)(rng_below(rng, 8) == 0 ? rng_below(rng, 3) : 0);
    return e;
}

static void counts_are_those_of_all_that_was_told(void **state)
{
    static const uint32_t numbers[] = {0, 1, 3, 4};
    static struct told told;
    uint32_t found[RULES_DEFAULT_COUNT] = {0};
    (void)state;

    for (uint64_t seed = 1; seed <= 240; seed++) {
        uint32_t number = numbers[seed % 4];
        struct rng rng;
        struct world w;
        mono_ns now = 1;

        rng_init(&rng, seed);
        world_init(&w, &rules_default[number], 1, 1);
        told.count = 0;
        for (uint32_t i = 0; i < TOLD_MAX; i++) {
            bool found_one, expected;

            told.at[told.count++] = draw(&rng, &now, i / 50 % 2 == 1);
            rules_learn(&w.judge, 0, &told.at[told.count - 1]);
            expected = naive(&told, number, &rules_default[number]);
            found_one = rules_look(&w.judge, 0, now).level == RULE_CANDIDATE;
            assert_int_equal(found_one, expected);
            found[number] += found_one;
            if (found_one) { /* else it would stand for the next samples, too */
                rules_acquit(&w.judge, 0);
                told.count = 0;
            }
        }
        world_release(&w);
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(found[numbers[i]] > 20);
}

/* --- the law: one window of random latencies against sorted lists --- */

#define ANSWERS_MAX 300

struct answers {
    uint32_t count;
    double us[ANSWERS_MAX];
};

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double sorted_quantile(struct answers *a, double q)
{
    uint32_t beyond = (uint32_t)(a->count * (1 - q) + 1e-9);

    qsort(a->us, a->count, sizeof(a->us[0]), by_size);
    return a->us[a->count - 1 - beyond];
}

static double median_of_peers(const double *figures, uint32_t hosts, uint32_t without)
{
    double others[HOSTS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < hosts; i++)
        if (i != without)
            others[n++] = figures[i];
    qsort(others, n, sizeof(others[0]), by_size);
    return sqrt(others[(n - 1) / 2] * others[n / 2]);
}

static void fill(struct answers *a, struct rng *rng)
{
    double times = rng_below(rng, 3) == 0 ? 1 + 4 * rng_unit(rng) : 1;

    a->count = 100 + rng_below(rng, ANSWERS_MAX - 100);
    for (uint32_t i = 0; i < a->count; i++)
        a->us[i] = floor(5000 * times * exp(0.5 * (rng_unit(rng) + rng_unit(rng))));
}

static void latencies_are_compared_as_sorted_lists_would_be(void **state)
{
    const struct rule rule = {.signal = RULE_P99,
                              .above = 2500,
                              .windows = 1,
                              .within = WINDOW,
                              .min_requests = 100,
                              .with = RULE_WITH_NONE};
    static struct answers answers[HOSTS_MAX];
    uint32_t late = 0, well_apart = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        double figures[HOSTS_MAX];
        struct rng rng;
        struct world w;
        uint32_t hosts;

        rng_init(&rng, seed);
        hosts = 4 + rng_below(&rng, HOSTS_MAX - 3);
        world_init(&w, &rule, 1, hosts);
        rules_turn(&w.judge, WINDOW);
        for (uint32_t h = 0; h < hosts; h++) {
            fill(&answers[h], &rng);
            for (uint32_t i = 0; i < answers[h].count; i++) {
                struct evidence e = sample(WINDOW + i, EVIDENCE_OK, (uint32_t)answers[h].us[i]);

                rules_learn(&w.judge, h, &e);
            }
            figures[h] = sorted_quantile(&answers[h], 0.99);
        }
        rules_turn(&w.judge, 2 * WINDOW);
        for (uint32_t h = 0; h < hosts; h++) {
            double ratio = figures[h] / median_of_peers(figures, hosts, h);

            if (fabs(log(ratio / 2.5)) < 0.045) /* two bins: it may be either */
                continue;
            well_apart++;
            late += ratio > 2.5;
            assert_int_equal(level(&w, h, 2 * WINDOW), ratio > 2.5 ? RULE_CANDIDATE : RULE_QUIET);
        }
        world_release(&w);
    }
    assert_true(late > 100 && well_apart > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_9_five_5xx_in_a_row_within_29_s_are_a_candidate_over_31_s_not),
        cmocka_unit_test(t_000_9_three_connects_that_fail_in_9_9_s_are_a_candidate_in_10_1_s_not),
        cmocka_unit_test(t_000_9_a_share_of_20_1_percent_is_a_candidate_of_20_0_not),
        cmocka_unit_test(what_is_older_than_the_time_counts_no_more),
        cmocka_unit_test(
            t_000_9_a_p99_of_2_6_times_in_3_windows_with_rising_timeouts_is_a_candidate),
        cmocka_unit_test(with_fewer_than_three_peers_no_latency_is_judged),
        cmocka_unit_test(timeouts_that_the_peers_have_as_well_are_no_second_signal),
        cmocka_unit_test(timeouts_that_it_always_had_are_no_second_signal),
        cmocka_unit_test(one_good_window_ends_the_run),
        cmocka_unit_test(a_p99_of_too_few_requests_gives_way_to_p95_or_a_longer_window_and_says_so),
        cmocka_unit_test(hosts_of_another_stratum_are_no_peers),
        cmocka_unit_test(classes_are_judged_apart),
        cmocka_unit_test(local_failures_of_all_classes_are_one_run_that_an_answer_ends),
        cmocka_unit_test(requests_that_wait_for_long_are_a_queue),
        cmocka_unit_test(a_share_with_a_second_signal_needs_more_of_it_than_the_peers_have),
        cmocka_unit_test(t_000_19_at_a_tenth_of_a_request_a_second_only_runs_speak),
        cmocka_unit_test(a_finding_fades_and_an_acquittal_voids_it),
        cmocka_unit_test(the_same_rules_again_forget_nothing_others_all),
        cmocka_unit_test(counts_are_those_of_all_that_was_told),
        cmocka_unit_test(latencies_are_compared_as_sorted_lists_would_be),
    };

    return cmocka_run_group_tests_name("detect_rules", tests, NULL, NULL);
}
