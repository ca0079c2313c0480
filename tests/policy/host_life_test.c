/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a host under detection: every way from state to state, and how it comes back. */
#include "policy/host_life.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#define S      NS_PER_S
#define MINUTE (60 * S)

static const struct life_config patient = {
    .base = 30 * S,
    .max = 300 * S,
    .probes = 1,
    .successes = 20,
    .ramp = 10 * S,
    .least_share = 200,
    .repeated_for = 5 * MINUTE,
    .times_per_hour = 3,
};

static struct life_config quick_one(void)
{
    struct life_config c = patient;

    c.quick = true;
    c.after = 2 * S;
    c.gap = 3 * S;
    c.least_share = 50;
    return c;
}

/* --- histories --- */

static struct life healthy(void)
{
    struct life l;

    life_init(&l);
    return l;
}

static struct life ejected(const struct life_config *c, mono_ns at)
{
    struct life l = healthy();

    assert_true(life_eject(&l, c, at).changed);
    return l;
}

static void rest(struct life *l, const struct life_config *c)
{
    struct life_step step = life_turn(l, c, l->wake);

    assert_int_equal(l->state, LIFE_PROBING);
    assert_int_equal(step.grant, 1);
}

static struct life probing(const struct life_config *c, mono_ns at)
{
    struct life l = ejected(c, at);

    rest(&l, c);
    return l;
}

/* All its probes pass at |now|. */
static void prove(struct life *l, const struct life_config *c, mono_ns now)
{
    for (uint32_t i = 0; i < c->successes; i++)
        life_learn(l, c, true, now);
}

static struct life ramping(const struct life_config *c, mono_ns at)
{
    struct life l = probing(c, at);

    prove(&l, c, l.since + S);
    assert_int_equal(l.state, LIFE_RAMPING);
    return l;
}

static struct life suspect(const struct life_config *c, mono_ns at)
{
    struct life l = healthy();

    life_suspect(&l, c, 500, at);
    return l;
}

/* Back by proof, and whole: at |back| it is healthy again. */
static void come_back(struct life *l, const struct life_config *c, mono_ns back)
{
    if (l->state == LIFE_EJECTED)
        rest(l, c);
    prove(l, c, back);
    while (l->state == LIFE_RAMPING)
        life_learn(l, c, true, back + 20 * S);
    assert_int_equal(l->state, LIFE_HEALTHY);
}

static void check_step(struct life_step step, bool changed, bool escalated, uint32_t grant)
{
    assert_int_equal(step.changed, changed);
    assert_int_equal(step.escalated, escalated);
    assert_int_equal(step.grant, grant);
}

/* --- the table --- */

static void states_have_names(void **state)
{
    (void)state;

    assert_string_equal(life_state_text(LIFE_HEALTHY), "healthy");
    assert_string_equal(life_state_text(LIFE_SUSPECT), "suspect");
    assert_string_equal(life_state_text(LIFE_EJECTED), "ejected");
    assert_string_equal(life_state_text(LIFE_PROBING), "probing");
    assert_string_equal(life_state_text(LIFE_RAMPING), "ramping");
}

/* What each event makes of each state, as it is drawn in the header. */
static void each_event_leads_from_each_state_where_the_drawing_says(void **state)
{
    enum { ACCUSED, CLEARED, EJECT, PASSED, FAILED, PARDONED, EVENTS };
    static const enum life_state next[LIFE_STATE_COUNT][EVENTS] = {
        [LIFE_HEALTHY] = {LIFE_SUSPECT, LIFE_HEALTHY, LIFE_EJECTED, LIFE_HEALTHY, LIFE_HEALTHY,
                          LIFE_HEALTHY},
        [LIFE_SUSPECT] = {LIFE_SUSPECT, LIFE_HEALTHY, LIFE_EJECTED, LIFE_SUSPECT, LIFE_SUSPECT,
                          LIFE_HEALTHY},
        [LIFE_EJECTED] = {LIFE_EJECTED, LIFE_EJECTED, LIFE_EJECTED, LIFE_EJECTED, LIFE_EJECTED,
                          LIFE_HEALTHY},
        [LIFE_PROBING] = {LIFE_PROBING, LIFE_PROBING, LIFE_EJECTED, LIFE_PROBING, LIFE_EJECTED,
                          LIFE_HEALTHY},
        [LIFE_RAMPING] = {LIFE_RAMPING, LIFE_RAMPING, LIFE_EJECTED, LIFE_RAMPING, LIFE_EJECTED,
                          LIFE_HEALTHY},
    };
    (void)state;

    for (int from = 0; from < LIFE_STATE_COUNT; from++) {
        for (int event = 0; event < EVENTS; event++) {
            struct life_config c = patient;
            struct life lives[LIFE_STATE_COUNT] = {healthy(), suspect(&c, S), ejected(&c, S),
                                                   probing(&c, S), ramping(&c, S)};
            struct life *l = &lives[from];
            mono_ns now = l->since + NS_PER_MS;
            struct life_step step = {.changed = false};
            uint32_t share = l->share;

            assert_int_equal(l->state, from);
            switch (event) {
            case ACCUSED:
                step = life_suspect(l, &c, 300, now);
                break;
            case CLEARED:
                step = life_clear(l, now);
                break;
            case EJECT:
                step = life_eject(l, &c, now);
                break;
            case PASSED:
                step = life_learn(l, &c, true, now);
                break;
            case FAILED:
                step = life_learn(l, &c, false, now);
                break;
            default:
                step = life_pardon(l, now);
                break;
            }
            assert_int_equal(l->state, next[from][event]);
            assert_int_equal(step.changed, l->state != (enum life_state)from || l->share != share);
        }
    }
}

static void only_who_is_out_does_not_serve(void **state)
{
    struct life lives[LIFE_STATE_COUNT] = {healthy(), suspect(&patient, S), ejected(&patient, S),
                                           probing(&patient, S), ramping(&patient, S)};
    (void)state;

    assert_true(life_serves(&lives[LIFE_HEALTHY]));
    assert_true(life_serves(&lives[LIFE_SUSPECT]));
    assert_false(life_serves(&lives[LIFE_EJECTED]));
    assert_false(life_serves(&lives[LIFE_PROBING]));
    assert_true(life_serves(&lives[LIFE_RAMPING]));
    assert_int_equal(lives[LIFE_EJECTED].share, 0);
    assert_int_equal(lives[LIFE_PROBING].share, 0);
    assert_int_equal(lives[LIFE_RAMPING].share, LIFE_RAMP_FROM);
}

/* --- suspicion --- */

static void a_suspect_keeps_the_least_share_and_never_more_than_all(void **state)
{
    struct life l = healthy();
    (void)state;

    check_step(life_suspect(&l, &patient, 0, S), true, false, 0);
    assert_int_equal(l.share, 200);
    check_step(life_suspect(&l, &patient, 100, 2 * S), false, false, 0);
    check_step(life_suspect(&l, &patient, 600, 3 * S), true, false, 0);
    assert_int_equal(l.share, 600);
    assert_int_equal(l.since, S); /* it is suspect since then, whatever the share */
    life_suspect(&l, &patient, 5000, 4 * S);
    assert_int_equal(l.share, LIFE_WHOLE);
    check_step(life_clear(&l, 5 * S), true, false, 0);
    assert_int_equal(l.share, LIFE_WHOLE);
    assert_true(l.wake == MONO_NEVER);
}

/* --- when it is probed --- */

static void the_quarantine_grows_with_the_times_and_has_an_end(void **state)
{
    struct life_config c = patient;
    struct life l = healthy();
    mono_ns now = S;
    (void)state;

    c.times_per_hour = 0;
    c.repeated_for = 0;
    for (uint64_t n = 1; n <= 12; n++) {
        span_ns expected = n * c.base < c.max ? n * c.base : c.max;

        assert_int_equal(life_quarantine(&l, &c), expected);
        life_eject(&l, &c, now);
        assert_int_equal(l.wake - now, expected);
        check_step(life_turn(&l, &c, l.wake - 1), false, false, 0);
        now = l.wake;
        come_back(&l, &c, now);
        now += 21 * S;
    }
}

static void what_was_long_ago_is_forgotten_once_at_a_time(void **state)
{
    struct life_config c = patient;
    struct life l = healthy();
    mono_ns now = S;
    (void)state;

    for (uint32_t n = 0; n < 2; n++) {
        life_eject(&l, &c, now);
        come_back(&l, &c, l.wake);
        now = l.since + S;
    }
    assert_int_equal(l.times, 2);
    assert_int_equal(l.wake - l.since, LIFE_FORGETS);
    life_turn(&l, &c, l.wake);
    assert_int_equal(l.times, 1);
    assert_int_equal(l.wake - l.since, 2 * LIFE_FORGETS);
    life_turn(&l, &c, l.wake);
    assert_int_equal(l.times, 0);
    assert_true(l.wake == MONO_NEVER);
    assert_int_equal(life_quarantine(&l, &c), c.base);
}

static void a_patient_one_is_probed_after_the_quarantine_each_time(void **state)
{
    struct life l = ejected(&patient, S);
    (void)state;

    for (uint32_t round = 0; round < 5; round++) {
        mono_ns failed = l.wake + 20 * NS_PER_MS;

        assert_int_equal(l.wake, (round == 0 ? S : l.since) + patient.base);
        rest(&l, &patient);
        life_learn(&l, &patient, false, failed);
        assert_int_equal(l.state, LIFE_EJECTED);
        assert_int_equal(l.since, failed);
        assert_int_equal(l.times, 1); /* it never was in again */
    }
}

/* Two seconds, then at most three apart for a minute, then ever further, at most the quarantine. */
static void a_quick_one_is_probed_soon_and_then_ever_more_seldom(void **state)
{
    struct life_config c = quick_one();
    struct life l = ejected(&c, 100 * S);
    span_ns last = 0;
    (void)state;

    c.repeated_for = 0;
    assert_int_equal(l.wake, 102 * S);
    while (l.since < 800 * S) {
        span_ns gap;

        rest(&l, &c);
        life_learn(&l, &c, false, l.since);
        gap = l.wake - l.since;
        if (l.since - 100 * S < LIFE_QUICK_FOR)
            assert_int_equal(gap, c.gap);
        assert_true(gap >= last);
        assert_true(gap <= c.base);
        last = gap;
    }
    assert_int_equal(last, c.base);
}

static void where_there_is_little_traffic_a_quick_one_waits_longer(void **state)
{
    struct life_config c = quick_one();
    struct life l = healthy();
    (void)state;

    l.least_gap = 12 * S;
    life_eject(&l, &c, 100 * S);
    assert_int_equal(l.wake, 112 * S);
    l.least_gap = 40 * S; /* but never for longer than the quarantine */
    rest(&l, &c);
    life_learn(&l, &c, false, 113 * S);
    assert_int_equal(l.wake, 113 * S + c.base);
}

/* --- proof --- */

static void probes_double_as_they_pass_up_to_eight_and_to_what_is_missing(void **state)
{
    static const uint32_t rounds[] = {1, 1, 2, 4, 8, 4};
    struct life l = ejected(&patient, S);
    (void)state;

    rest(&l, &patient);
    for (size_t r = 0; r < sizeof(rounds) / sizeof(rounds[0]); r++) {
        assert_int_equal(l.granted, rounds[r]);
        for (uint32_t i = 0; i < rounds[r]; i++) {
            bool last = i + 1 == rounds[r];
            bool done = r == 5 && last;
            struct life_step step = life_learn(&l, &patient, true, 40 * S);

            check_step(step, done, false, last && !done ? rounds[r + 1] : 0);
        }
    }
    assert_int_equal(l.state, LIFE_RAMPING);
    assert_int_equal(l.last_out, 39 * S);
}

static void one_failed_probe_and_it_is_out_again_from_the_beginning(void **state)
{
    struct life l = probing(&patient, S);
    (void)state;

    for (uint32_t i = 0; i < 19; i++)
        life_learn(&l, &patient, true, 40 * S);
    check_step(life_learn(&l, &patient, false, 41 * S), true, false, 0);
    assert_int_equal(l.state, LIFE_EJECTED);
    assert_int_equal(l.out_since, S);
    rest(&l, &patient);
    assert_int_equal(l.in_row, 0);
    prove(&l, &patient, 90 * S);
    assert_int_equal(l.state, LIFE_RAMPING);
}

/* A request that was granted may never be made, or be lost with its client. */
static void a_round_of_which_nothing_comes_back_is_begun_anew(void **state)
{
    struct life l = probing(&patient, S);
    mono_ns began = l.since;
    (void)state;

    for (uint32_t i = 0; i < 4; i++)
        life_learn(&l, &patient, true, began + 4 * S);
    assert_int_equal(l.granted, 4);
    assert_int_equal(l.wake, began + 9 * S); /* it is counted from what came back last */
    check_step(life_learn(&l, &patient, true, began + 8 * S), false, false, 0);
    assert_int_equal(l.wake, began + 13 * S);
    check_step(life_turn(&l, &patient, began + 13 * S), false, false, 1);
    assert_int_equal(l.state, LIFE_PROBING);
    assert_int_equal(l.in_row, 5); /* what passed has passed */
    assert_int_equal(l.granted, 1);
    check_step(life_learn(&l, &patient, true, began + 14 * S), false, false, 6);
}

static void where_several_are_asked_for_at_first_it_is_never_more_than_are_missing(void **state)
{
    struct life_config c = patient;
    struct life l;
    (void)state;

    c.probes = 6;
    l = ejected(&c, S);
    check_step(life_turn(&l, &c, l.wake), true, false, 6);
    for (uint32_t i = 0; i < 17; i++)
        life_learn(&l, &c, true, 40 * S);
    check_step(life_turn(&l, &c, l.wake), false, false, 3); /* begun anew */
    c.successes = 4;
    l = ejected(&c, S);
    check_step(life_turn(&l, &c, l.wake), true, false, 4);
}

static void an_answer_beyond_what_was_granted_counts_and_grants_nothing_wrong(void **state)
{
    struct life l = probing(&patient, S);
    (void)state;

    check_step(life_learn(&l, &patient, true, 40 * S), false, false, 1);
    check_step(life_learn(&l, &patient, true, 40 * S), false, false, 2);
    life_turn(&l, &patient, l.wake); /* both are late; one more is asked for */
    check_step(life_learn(&l, &patient, true, 50 * S), false, false, 3);
    check_step(life_learn(&l, &patient, true, 50 * S), false, false, 0);
    check_step(life_learn(&l, &patient, true, 50 * S), false, false, 0);
    check_step(life_learn(&l, &patient, true, 50 * S), false, false, 6);
}

/* --- the ramp --- */

/* Of its share it gets no more than time allows, and no more than its successes have shown. */
static void the_ramp_goes_by_time_and_by_outcomes(void **state)
{
    struct life l = probing(&patient, S);
    mono_ns begin = 200 * S; /* out for more than a minute: the ramp takes its time */
    (void)state;

    prove(&l, &patient, begin);
    assert_int_equal(l.share, LIFE_RAMP_FROM);
    for (uint32_t i = 0; i < 100; i++)
        life_learn(&l, &patient, true, begin + 5 * S);
    assert_int_equal(l.share, (LIFE_RAMP_FROM + LIFE_WHOLE) / 2);
    life_learn(&l, &patient, true, begin + 10 * S);
    assert_int_equal(l.state, LIFE_HEALTHY);
    assert_int_equal(l.share, LIFE_WHOLE);

    l = probing(&patient, S);
    prove(&l, &patient, begin);
    check_step(life_learn(&l, &patient, true, begin + 60 * S), true, false, 0);
    assert_int_equal(l.share, LIFE_RAMP_FROM + LIFE_WHOLE / 20);
    for (uint32_t i = 0; i < 10; i++)
        life_learn(&l, &patient, true, begin + 60 * S);
    assert_int_equal(l.state, LIFE_RAMPING);
    assert_int_equal(l.share, 950);
    life_learn(&l, &patient, true, begin + 60 * S);
    assert_int_equal(l.state, LIFE_HEALTHY);
}

static void a_short_time_out_has_a_short_ramp(void **state)
{
    struct life_config c = quick_one();
    struct life l = ejected(&c, S);
    (void)state;

    rest(&l, &c);
    prove(&l, &c, 10 * S);
    for (uint32_t i = 0; i < 100; i++)
        life_learn(&l, &c, true, 10 * S + LIFE_RAMP_QUICK / 2);
    assert_int_equal(l.share, (LIFE_RAMP_FROM + LIFE_WHOLE) / 2);
    life_learn(&l, &c, true, 10 * S + LIFE_RAMP_QUICK);
    assert_int_equal(l.state, LIFE_HEALTHY);

    l = ejected(&c, S); /* not so short: a minute is not */
    while (l.since < S + LIFE_QUICK_FOR) {
        rest(&l, &c);
        life_learn(&l, &c, false, l.since);
    }
    rest(&l, &c);
    prove(&l, &c, l.since);
    for (uint32_t i = 0; i < 100; i++)
        life_learn(&l, &c, true, l.since + LIFE_RAMP_QUICK);
    assert_int_equal(l.state, LIFE_RAMPING);
}

static void a_relapse_costs_more(void **state)
{
    struct life l = ramping(&patient, S);
    mono_ns now = l.since + S;
    (void)state;

    check_step(life_learn(&l, &patient, false, now), true, false, 0);
    assert_int_equal(l.state, LIFE_EJECTED);
    assert_int_equal(l.times, 2);
    assert_int_equal(l.out_since, now);
    assert_int_equal(l.wake, now + 2 * patient.base);
}

/* Out for the second time: |*first| is when the first of twenty probes passed. */
static struct life relapsed(const struct life_config *c, mono_ns *first)
{
    struct life l = ramping(c, S);

    life_learn(&l, c, false, l.since + S);
    rest(&l, c);
    *first = l.since + NS_PER_MS;
    prove(&l, c, *first);
    return l;
}

static void
out_again_a_quick_one_has_to_be_good_for_as_long_as_its_quarantine_has_grown(void **state)
{
    struct life_config c = quick_one();
    mono_ns first;
    struct life l = relapsed(&c, &first);
    (void)state;

    assert_int_equal(l.wake, first + c.gap);
    while (l.wake + NS_PER_MS < first + c.base) { /* one at a time: its share is a probe's */
        mono_ns now = l.wake;

        assert_int_equal(l.state, LIFE_PROBING);
        assert_int_equal(l.granted, 0);
        check_step(life_turn(&l, &c, now), false, false, 1);
        check_step(life_learn(&l, &c, true, now + NS_PER_MS), false, false, 0);
    }
    life_turn(&l, &c, l.wake);
    check_step(life_learn(&l, &c, true, first + c.base - 1), false, false, 0);
    check_step(life_learn(&l, &c, true, first + c.base), true, false, 0);
    assert_int_equal(l.state, LIFE_RAMPING);

    l = relapsed(&c, &first);
    life_turn(&l, &c, l.wake);
    check_step(life_learn(&l, &c, false, first + 10 * S), true, false, 0);
    assert_int_equal(l.state, LIFE_EJECTED);
    rest(&l, &c); /* and from the beginning */
    prove(&l, &c, first + 100 * S);
    assert_int_equal(l.state, LIFE_PROBING);
    assert_int_equal(l.wake,
                     first + 100 * S + c.gap); /* however long it is out: few prove little */
}

/* How long its probes go on until its share grows; they are |gap| apart once they are enough. */
static span_ns proved_after(const struct life_config *c, span_ns pause, span_ns gap)
{
    struct life l = probing(c, S);
    mono_ns first = l.since;

    l.pause = pause;
    prove(&l, c, first);
    for (mono_ns now = first + gap; l.state == LIFE_PROBING; now += gap) {
        assert_int_equal(l.wake, now);
        rest(&l, c);
        (void)life_learn(&l, c, true, now);
    }
    assert_int_equal(l.state, LIFE_RAMPING);
    return l.since - first;
}

static void who_lapses_every_few_seconds_has_to_do_without_for_longer(void **state)
{
    struct life_config quick = quick_one(), slow = patient;
    struct life l = probing(&quick, S);
    (void)state;

    slow.gap = quick.gap;
    assert_int_equal(proved_after(&quick, 8 * S, S), 10 * S);
    assert_int_equal(proved_after(&slow, 8 * S, S), 10 * S); /* the clock has not seen them */
    assert_int_equal(proved_after(&quick, 80 * S, 3 * S), quick.base);
    l.pause = 8 * S;
    prove(&l, &quick, 3 * S);
    come_back(&l, &quick, 13 * S);
    assert_int_equal(l.pause, 0); /* that was then */
}

static void out_again_a_patient_one_has_waited_and_that_is_enough(void **state)
{
    mono_ns first;
    struct life l = relapsed(&patient, &first);
    (void)state;

    assert_int_equal(l.state, LIFE_RAMPING);
    assert_true(first > l.out_since + 2 * patient.base);
}

/* --- only a human --- */

static uint32_t third_time_out_at(mono_ns third)
{
    struct life l = healthy();
    struct life_config c = patient;

    c.repeated_for = 0;
    for (uint32_t n = 0; n < 2; n++) {
        assert_false(life_eject(&l, &c, S + n * 10 * MINUTE).escalated);
        come_back(&l, &c, l.wake);
    }
    return life_eject(&l, &c, S + third).escalated;
}

static void the_third_time_within_an_hour_needs_a_human(void **state)
{
    (void)state;

    assert_true(third_time_out_at(59 * MINUTE));
    assert_true(third_time_out_at(60 * MINUTE));
    assert_false(third_time_out_at(61 * MINUTE));
}

static void who_needs_a_human_is_probed_and_never_let_back(void **state)
{
    struct life_config c = patient;
    struct life l = healthy();
    (void)state;

    c.times_per_hour = 1;
    check_step(life_eject(&l, &c, S), true, true, 0);
    for (uint32_t round = 0; round < 3; round++) {
        mono_ns now = l.wake + S;

        rest(&l, &c);
        prove(&l, &c, now);
        assert_int_equal(l.state, LIFE_PROBING);
        assert_int_equal(l.granted, 0);
        assert_int_equal(l.wake, now + c.base);
    }
    assert_false(life_learn(&l, &c, false, l.wake).escalated); /* it is said once */
    assert_true(l.needs_human);
    check_step(life_pardon(&l, l.since + S), true, false, 0);
    assert_int_equal(l.state, LIFE_HEALTHY);
    assert_false(l.needs_human);
    assert_int_equal(l.share, LIFE_WHOLE);
    check_step(life_pardon(&l, l.since + S), false, false, 0);
}

/* Both where a probe fails and where it is time for one. */
static void who_is_out_for_too_long_needs_a_human(void **state)
{
    struct life_config c = patient;
    struct life l = ejected(&c, S);
    uint32_t escalations = 0;
    (void)state;

    c.times_per_hour = 0;
    while (l.wake < S + c.repeated_for + 2 * c.base) {
        escalations += life_turn(&l, &c, l.wake).escalated;
        assert_int_equal(escalations, l.since >= S + c.repeated_for);
        escalations += life_learn(&l, &c, false, l.since).escalated;
        assert_int_equal(l.needs_human, l.since >= S + c.repeated_for);
    }
    assert_int_equal(escalations, 1);

    l = probing(&c, S);
    assert_false(life_learn(&l, &c, false, S + c.repeated_for - 1).escalated);
    rest(&l, &c);
    l = probing(&c, S);
    assert_true(life_learn(&l, &c, false, S + c.repeated_for).escalated);
}

/* Zero of either: never. */
static void where_it_is_switched_off_nobody_ever_needs_a_human(void **state)
{
    struct life_config c = patient;
    struct life l = healthy();
    mono_ns now = S;
    (void)state;

    c.times_per_hour = 0;
    c.repeated_for = 0;
    for (uint32_t n = 0; n < 20; n++) {
        assert_false(life_eject(&l, &c, now).escalated);
        for (uint32_t round = 0; round < 20; round++) {
            assert_false(life_turn(&l, &c, l.wake).escalated);
            assert_false(life_learn(&l, &c, false, l.since).escalated);
        }
        rest(&l, &c);
        come_back(&l, &c, l.wake);
        now = l.since + S;
        assert_false(l.needs_human);
    }
}

/* --- the law --- */

struct history {
    struct life l;
    struct life_config c;
    mono_ns now;
    uint32_t under_way; /* probes that were granted and have not come back */
    uint32_t passed;    /* in a row, since the last time it went out */
    mono_ns passed_since;
};

static void check_laws(const struct history *h, const struct life *before, struct life_step step)
{
    const struct life *l = &h->l;
    bool changed = l->state != before->state || l->share != before->share;

    assert_true(step.changed || !changed);
    assert_true(l->share <= LIFE_WHOLE);
    assert_int_equal(l->share == 0, !life_serves(l));
    assert_true(l->state != LIFE_SUSPECT || l->share >= h->c.least_share);
    assert_true(l->state != LIFE_HEALTHY || l->share == LIFE_WHOLE);
    assert_true(step.grant == 0 || l->state == LIFE_PROBING);
    assert_true(l->granted <= LIFE_PROBE_MAX);
    assert_true(l->in_row < h->c.successes || l->state == LIFE_RAMPING ||
                (h->c.quick && l->times > 1) || l->pause > 0);
    assert_int_equal(before->times > l->times && l->state == LIFE_SUSPECT, 0);
    /* Who is out is looked after: there is always a time at which it is tried. */
    assert_true(life_serves(l) || l->wake != MONO_NEVER);
    assert_true(life_serves(l) || l->wake <= mono_after(h->now, h->c.max));
    /* Back in only on proof, or by hand. */
    if (!life_serves(before) && life_serves(l) && l->state == LIFE_RAMPING) {
        assert_true(h->passed >= h->c.successes && !before->needs_human);
        assert_true(!h->c.quick || before->times > 10 ||
                    h->now - h->passed_since >= (before->times - 1) * h->c.base);
        assert_true(h->now - h->passed_since >= before->pause || before->pause > h->c.base);
    }
    assert_true(!step.escalated || (l->needs_human && !before->needs_human));
}

static struct life_step happen(struct history *h, struct rng *random, bool *by_hand)
{
    struct life *l = &h->l;

    *by_hand = false;
    switch (rng_below(random, 12)) {
    case 0:
        return life_suspect(l, &h->c, rng_below(random, 1500), h->now);
    case 1:
        return life_clear(l, h->now);
    case 2:
        h->passed = 0;
        l->pause = rng_below(random, 2) * rng_below(random, 40) * S;
        return life_eject(l, &h->c, h->now);
    case 3:
        *by_hand = rng_below(random, 8) == 0;
        return *by_hand ? life_pardon(l, h->now) : life_turn(l, &h->c, h->now);
    case 4:
        h->passed = 0;
        return life_learn(l, &h->c, false, h->now);
    case 5:
    case 6:
        h->now = l->wake != MONO_NEVER && l->wake > h->now ? l->wake : h->now;
        return life_turn(l, &h->c, h->now);
    default:
        if (h->passed++ == 0)
            h->passed_since = h->now;
        return life_learn(l, &h->c, true, h->now);
    }
}

static void the_law_on_random_histories(void **state)
{
    uint32_t seen[LIFE_STATE_COUNT] = {0};
    (void)state;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct history h = {.c = seed % 2 == 0 ? patient : quick_one(), .now = S};
        struct rng random;

        rng_init(&random, seed);
        life_init(&h.l);
        h.c.successes = 1 + rng_below(&random, 20);
        for (uint32_t step = 0; step < 500; step++) {
            struct life before = h.l;
            bool by_hand;
            struct life_step did;

            h.now += (span_ns)rng_below(&random, 3000) * NS_PER_MS;
            did = happen(&h, &random, &by_hand);
            if (life_serves(&before) && !life_serves(&h.l))
                h.passed = 0;
            check_laws(&h, &before, did);
            if (!life_serves(&before) && h.l.state == LIFE_HEALTHY)
                assert_true(by_hand);
            seen[h.l.state]++;
        }
    }
    for (uint32_t i = 0; i < LIFE_STATE_COUNT; i++)
        assert_true(seen[i] > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_have_names),
        cmocka_unit_test(each_event_leads_from_each_state_where_the_drawing_says),
        cmocka_unit_test(only_who_is_out_does_not_serve),
        cmocka_unit_test(a_suspect_keeps_the_least_share_and_never_more_than_all),
        cmocka_unit_test(the_quarantine_grows_with_the_times_and_has_an_end),
        cmocka_unit_test(what_was_long_ago_is_forgotten_once_at_a_time),
        cmocka_unit_test(a_patient_one_is_probed_after_the_quarantine_each_time),
        cmocka_unit_test(a_quick_one_is_probed_soon_and_then_ever_more_seldom),
        cmocka_unit_test(where_there_is_little_traffic_a_quick_one_waits_longer),
        cmocka_unit_test(probes_double_as_they_pass_up_to_eight_and_to_what_is_missing),
        cmocka_unit_test(one_failed_probe_and_it_is_out_again_from_the_beginning),
        cmocka_unit_test(a_round_of_which_nothing_comes_back_is_begun_anew),
        cmocka_unit_test(where_several_are_asked_for_at_first_it_is_never_more_than_are_missing),
        cmocka_unit_test(an_answer_beyond_what_was_granted_counts_and_grants_nothing_wrong),
        cmocka_unit_test(the_ramp_goes_by_time_and_by_outcomes),
        cmocka_unit_test(a_short_time_out_has_a_short_ramp),
        cmocka_unit_test(a_relapse_costs_more),
        cmocka_unit_test(
            out_again_a_quick_one_has_to_be_good_for_as_long_as_its_quarantine_has_grown),
        cmocka_unit_test(who_lapses_every_few_seconds_has_to_do_without_for_longer),
        cmocka_unit_test(out_again_a_patient_one_has_waited_and_that_is_enough),
        cmocka_unit_test(the_third_time_within_an_hour_needs_a_human),
        cmocka_unit_test(who_needs_a_human_is_probed_and_never_let_back),
        cmocka_unit_test(who_is_out_for_too_long_needs_a_human),
        cmocka_unit_test(where_it_is_switched_off_nobody_ever_needs_a_human),
        cmocka_unit_test(the_law_on_random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
