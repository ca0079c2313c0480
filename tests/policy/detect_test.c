/* SPDX-License-Identifier: Apache-2.0 */
/* Each line of evidence: it rises, no faster than it may, falls again; and what keeps it back. */
#include "detect_world.h"

#include <string.h>

#include "policy/detect_verdict.h"

#define H    DETECT_THRESHOLD
#define STEP (0.26 * H)

/* --- ranks --- */

static void a_host_three_times_slower_is_accused_and_nobody_else(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    w->times[3] = 3;
    half_seconds(w, 6);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_int_equal(holds(w, i, DETECT_RANK), i == 3);
    world_free(w);
}

static void ranks_rise_by_a_step_a_half_second_and_no_more(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    w->times[3] = 10;
    for (uint32_t n = 1; n <= 8; n++) {
        double before = sum(w, 3, DETECT_RANK);

        half_second(w);
        assert_true(sum(w, 3, DETECT_RANK) <= before + STEP + 1e-9);
        assert_true(sum(w, 3, DETECT_RANK) <= 1.5 * H + 1e-9);
        assert_int_equal(detect_accuses(&w->judge, 3, DETECT_RANK), sum(w, 3, DETECT_RANK) > H);
        if (n == 3)
            assert_false(detect_accuses(&w->judge, 3, DETECT_RANK));
    }
    assert_true(sum(w, 3, DETECT_RANK) > 1.49 * H);
    world_free(w);
}

/* All of a half second counts, what speaks for the host as well. */
static void it_is_the_net_of_a_half_second_that_is_capped(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    for (int i = 0; i < 100; i++)
        tell(w, 3, EVIDENCE_OK, 1000000);
    assert_true(fabs(sum(w, 3, DETECT_RANK) - STEP) < 0.01);
    for (int i = 0; i < 200; i++)
        tell(w, 3, EVIDENCE_OK, 1000);
    assert_true(sum(w, 3, DETECT_RANK) == 0);
    world_free(w);
}

/* What went well before a fault began is not held against what comes after, in its half second. */
static void a_sum_of_zero_begins_to_rise_within_the_half_second(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    for (int i = 0; i < 6; i++)
        tell(w, 3, EVIDENCE_OK, 1000);
    tell(w, 3, EVIDENCE_OK, 1000000);
    tell(w, 3, EVIDENCE_OK, 1000000);
    assert_true(sum(w, 3, DETECT_RANK) > 2);
    world_free(w);
}

/* Where a half second has many answers, it is what they are together that counts. */
static void two_late_answers_after_many_good_ones_are_nothing(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    for (int i = 0; i < 20; i++)
        tell(w, 3, EVIDENCE_OK, 1000);
    tell(w, 3, EVIDENCE_OK, 1000000);
    tell(w, 3, EVIDENCE_OK, 1000000);
    assert_true(sum(w, 3, DETECT_RANK) == 0);
    for (int i = 0; i < 20; i++)
        tell(w, 3, EVIDENCE_OK, 1000000);
    assert_true(sum(w, 3, DETECT_RANK) > 2);
    world_free(w);
}

static void a_host_that_is_well_again_is_forgiven(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    w->times[3] = 3;
    half_seconds(w, 8);
    assert_true(holds(w, 3, DETECT_RANK));
    w->times[3] = 1;
    half_seconds(w, 16);
    assert_true(sum(w, 3, DETECT_RANK) < H / 2);
    assert_false(holds(w, 3, DETECT_RANK));
    world_free(w);
}

static void what_is_not_much_later_than_its_peers_is_kept_back_by_the_gate(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    w->sigma = 0.1;
    half_seconds(w, 200);
    w->times[3] = 1.45;
    half_seconds(w, 20);
    assert_true(detect_accuses(&w->judge, 3, DETECT_RANK));
    assert_int_equal(detect_guard_of(&w->judge, 3, DETECT_RANK), DETECT_GATE);
    world_free(w);
}

/* Hosts of an older make are no suspects for that, and are if they get worse. */
static void what_a_host_is_from_the_first_is_its_own(void **state)
{
    struct world *w = world_new(10);
    uint32_t held = 0;
    (void)state;

    w->times[3] = w->times[4] = 1.75;
    for (uint32_t n = 0; n < 240; n++) {
        half_second(w);
        held += holds(w, 3, DETECT_RANK) || holds(w, 4, DETECT_RANK);
    }
    assert_true(held <= 2); /* there is noise */
    w->times[3] = 5;
    half_seconds(w, 6);
    assert_true(holds(w, 3, DETECT_RANK));
    world_free(w);
}

static void how_much_slower_is_known_within_tenths_of_a_second(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    w->times[3] = 6;
    half_seconds(w, 8);
    assert_true(fabs(w->memory[3].ratio - log(6)) < 0.4);
    assert_true(detect_much_slower(&w->judge, 3) >= 15 && detect_much_slower(&w->judge, 3) <= 30);
    assert_int_equal(detect_much_slower(&w->judge, 4), 0);
    w->times[3] = 1;
    half_seconds(w, 5);
    assert_int_equal(detect_much_slower(&w->judge, 3), 0);
    world_free(w);
}

/* --- failures --- */

static void failures_count_at_once_and_are_worked_off(void **state)
{
    struct world *w = world_new(HOSTS);
    uint32_t failures = 0;
    (void)state;

    half_seconds(w, 40);
    for (; !holds(w, 3, DETECT_ERRORS_MANY); failures++)
        tell(w, 3, EVIDENCE_ERROR, 1000);
    assert_int_equal(failures, 2); /* ln 500 each */
    for (int i = 0; i < 20; i++)
        tell(w, 3, EVIDENCE_GATEWAY, 1000);
    assert_true(fabs(sum(w, 3, DETECT_ERRORS_MANY) - 1.5 * H) < 1e-9);
    for (int i = 0; i < 30; i++)
        tell(w, 3, EVIDENCE_OK, 20000);
    assert_true(sum(w, 3, DETECT_ERRORS_MANY) == 0);
    world_free(w);
}

static void one_failure_in_ten_is_seen_by_the_line_made_for_some(void **state)
{
    struct world *w = world_new(HOSTS);
    uint32_t n = 0;
    (void)state;

    half_seconds(w, 40);
    for (; n < 200 && !holds(w, 3, DETECT_ERRORS_SOME); n++)
        tell(w, 3, n % 10 == 0 ? EVIDENCE_RESET : EVIDENCE_OK, 20000);
    assert_true(n > 20 && n < 60);
    assert_false(holds(w, 3, DETECT_ERRORS_MANY));
    world_free(w);
}

static void what_fails_everywhere_accuses_nobody(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 40);
    for (uint32_t n = 0; n < 400; n++) {
        for (uint32_t i = 0; i < HOSTS; i++)
            tell(w, i, (n + i) % 3 == 0 ? EVIDENCE_ERROR : EVIDENCE_OK, 20000);
        for (uint32_t i = 0; i < HOSTS && n > 10; i++)
            assert_false(holds(w, i, DETECT_ERRORS_MANY));
        if (n % 5 == 4)
            detect_turn(&w->judge);
    }
    assert_true(fabs(detect_peers_rate(&w->judge, 0, DETECT_OF_ERRORS) - 1.0 / 3) < 0.1);
    world_free(w);
}

/* Half as much again as its peers is no sign of a bad host, where a third fails anyway. */
static void a_little_worse_than_what_is_common_accuses_nobody(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 40);
    for (uint32_t n = 0; n < 800; n++) {
        for (uint32_t i = 1; i < HOSTS; i++)
            tell(w, i, (n + i) % 3 == 0 ? EVIDENCE_ERROR : EVIDENCE_OK, 20000);
        if (n > 10)
            tell(w, 0, n % 2 == 0 ? EVIDENCE_ERROR : EVIDENCE_OK, 20000);
        assert_false(holds(w, 0, DETECT_ERRORS_MANY));
        if (n % 5 == 4)
            detect_turn(&w->judge);
    }
    world_free(w);
}

static void refused_connects_are_a_line_of_their_own(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 40);
    tell(w, 3, EVIDENCE_REFUSED, 0);
    tell(w, 3, EVIDENCE_CONNECT_FAILED, 0);
    assert_true(holds(w, 3, DETECT_CONNECTS));
    assert_true(sum(w, 3, DETECT_ERRORS_MANY) == 0);
    world_free(w);
}

static void open_for_longer_than_others_take_is_evidence_before_the_end(void **state)
{
    struct world *w = world_new(HOSTS);
    uint32_t n = 0;
    (void)state;

    half_seconds(w, 100);
    assert_true(w->judge.late_after[CLASS_READ] > 60000);
    for (; n < 10 && !holds(w, 3, DETECT_AGE); n++)
        tell(w, 3, EVIDENCE_LATE, 300000);
    assert_int_equal(n, 3);
    world_free(w);
}

static void one_that_the_client_left_is_no_failure_but_was_waited_for(void **state)
{
    struct world *w = world_new(HOSTS);
    double before;
    (void)state;

    half_seconds(w, 100);
    tell(w, 3, EVIDENCE_ABANDONED, 2000000);
    assert_true(sum(w, 3, DETECT_ERRORS_SOME) == 0 && sum(w, 3, DETECT_RANK) > 1);
    before = sum(w, 3, DETECT_RANK);
    tell(w, 3, EVIDENCE_ABANDONED, 10);
    assert_true(sum(w, 3, DETECT_RANK) == before);
    world_free(w);
}

/* Ten requests a second of one host are given up after |us|, twice, and one is answered after
 * |whole| (0: none); the others are fine. */
static uint32_t slow_tenths_of_given_up(uint32_t us, uint32_t whole)
{
    struct world *w = world_new(HOSTS);
    uint32_t tenths;

    half_seconds(w, 100);
    for (int n = 0; n < 40; n++) {
        for (uint32_t i = 0; i < HOSTS; i++) {
            if (i != 3)
                tell(w, i, EVIDENCE_OK, healthy_us(w));
        }
        tell(w, 3, EVIDENCE_ABANDONED, us);
        tell(w, 3, EVIDENCE_ABANDONED, us);
        if (whole > 0)
            tell(w, 3, EVIDENCE_OK, whole);
        if (n % DETECT_GLANCES == DETECT_GLANCES - 1)
            detect_turn(&w->judge);
        else
            detect_glance(&w->judge);
    }
    tenths = detect_much_slower(&w->judge, 3);
    world_free(w);
    return tenths;
}

/* Twice its peers' p99 is more than six times their median, however long the rest would have been;
 * what is given up in time says nothing of it. */
static void who_is_given_up_later_than_nearly_all_come_is_known_to_be_slow(void **state)
{
    (void)state;

    assert_true(slow_tenths_of_given_up(130000, 0) > 20);
    assert_int_equal(slow_tenths_of_given_up(30000, 0), 0);
    assert_true(slow_tenths_of_given_up(10, 100000) > 20);
    assert_int_equal(slow_tenths_of_given_up(10, 0), 0);
}

static void thinned_evidence_counts_for_all_it_stands_for(void **state)
{
    struct world *w = world_new(HOSTS);
    const struct evidence eight = {.outcome = EVIDENCE_OK, .first_us = 20000, .thinned = 3};
    double before;
    (void)state;

    half_seconds(w, 40);
    for (int i = 0; i < 4; i++)
        tell(w, 3, EVIDENCE_ERROR, 1000);
    before = w->memory[3].lately[DETECT_OF_ERRORS].tries;
    detect_learn(&w->judge, 3, &eight);
    assert_true(fabs(w->memory[3].lately[DETECT_OF_ERRORS].tries - before - 8) < 1e-9);
    assert_true(sum(w, 3, DETECT_ERRORS_MANY) < 1.5 * H - 8 * 0.6);
    world_free(w);
}

/* --- what is its own from the first --- */

static double rank_of_one_that_is_slower_from_the_first(double times, uint32_t half)
{
    struct world *w = world_new(HOSTS);
    double rank;

    w->times[3] = times;
    half_seconds(w, half);
    rank = sum(w, 3, DETECT_RANK);
    world_free(w);
    return rank;
}

/* Half as slow again is its make: not only the gate keeps it in. Three times is a fault, from the
 * first second on. */
static void what_a_host_is_slower_by_from_the_first_is_its_own_up_to_twice(void **state)
{
    (void)state;

    for (uint32_t half = 60; half <= 200; half += 20)
        assert_true(rank_of_one_that_is_slower_from_the_first(1.5, half) < H / 3);
    assert_true(rank_of_one_that_is_slower_from_the_first(3, 10) > H);
    assert_true(rank_of_one_that_is_slower_from_the_first(3, 60) > H);
}

/* --- what is common --- */

static void a_fleet_that_is_slow_accuses_nobody_by_latency(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    for (uint32_t i = 0; i < HOSTS; i++)
        w->times[i] = 3;
    for (uint32_t n = 0; n < 20; n++) {
        half_second(w);
        for (uint32_t i = 0; i < HOSTS; i++)
            assert_false(holds(w, i, DETECT_RANK) || holds(w, i, DETECT_TAIL) ||
                         holds(w, i, DETECT_AGE));
        assert_true(n < 3 || w->judge.fleet.slow);
    }
    w->times[3] = 30;
    half_seconds(w, 10);
    assert_int_equal(detect_guard_of(&w->judge, 3, DETECT_RANK), DETECT_FLEET);
    for (uint32_t i = 0; i < HOSTS; i++)
        w->times[i] = 1;
    half_seconds(w, 20);
    assert_false(w->judge.fleet.slow);
    world_free(w);
}

/* What came in the first two seconds is no measure of all that comes later. */
static void a_fleet_whose_first_seconds_were_quick_is_not_slow_for_long(void **state)
{
    struct world *w = world_new(4);
    (void)state;

    for (uint32_t i = 0; i < 4; i++)
        w->times[i] = 0.65;
    half_seconds(w, 4);
    for (uint32_t i = 0; i < 4; i++)
        w->times[i] = 1;
    half_seconds(w, 36);
    assert_false(w->judge.fleet.slow);
    w->times[3] = 10;
    half_seconds(w, 5);
    assert_true(holds(w, 3, DETECT_RANK));
    for (uint32_t i = 0; i < 4; i++)
        w->times[i] = 3;
    half_seconds(w, 5);
    assert_true(w->judge.fleet.slow);
    world_free(w);
}

static void where_many_look_alike_it_is_nobody(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 100);
    for (uint32_t i = 0; i < 4; i++)
        w->memory[i].sum[DETECT_ERRORS_MANY] = H + 1;
    assert_int_equal(detect_guard_of(&w->judge, 0, DETECT_ERRORS_MANY), DETECT_CROWD);
    w->memory[3].sum[DETECT_ERRORS_MANY] = 0;
    assert_int_equal(detect_guard_of(&w->judge, 0, DETECT_ERRORS_MANY), DETECT_HOLDS);
    world_free(w);
}

/* Half of them are, and the others answer as they always did: it is known which half it is. */
static void two_of_four_that_became_slow_are_told_from_the_others(void **state)
{
    struct world *w = world_new(4);
    bool held[4] = {false};
    (void)state;

    half_seconds(w, 100);
    w->times[0] = w->times[1] = 3;
    for (uint32_t n = 0; n < 10; n++) {
        half_second(w);
        assert_false(w->judge.fleet.slow);
        for (uint32_t i = 0; i < 4; i++)
            held[i] |= holds(w, i, DETECT_RANK);
    }
    assert_true(held[0] && held[1] && !held[2] && !held[3]);
    w->times[2] = w->times[3] = 3;
    half_seconds(w, 6);
    assert_true(w->judge.fleet.slow);
    for (uint32_t i = 0; i < 4; i++)
        assert_false(holds(w, i, DETECT_RANK));
    world_free(w);
}

static void among_fewer_than_twenty_answers_nobody_is_ranked(void **state)
{
    struct world *w = world_new(2);
    (void)state;

    for (uint32_t n = 0; n < 30; n++) {
        for (int i = 0; i < 10; i++)
            tell(w, 0, EVIDENCE_OK, 1000000);
        assert_int_equal(sum(w, 0, DETECT_RANK) > 0, n >= 20);
        tell(w, 1, EVIDENCE_OK, 20000);
    }
    world_free(w);
}

static void without_peers_ranks_say_nothing(void **state)
{
    struct world *w = world_new(1);
    (void)state;

    half_seconds(w, 40);
    w->times[0] = 10;
    half_seconds(w, 40);
    assert_true(sum(w, 0, DETECT_RANK) == 0 && sum(w, 0, DETECT_TAIL) == 0);
    world_free(w);
}

static void hosts_of_another_stratum_are_no_peers(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    for (uint32_t i = 0; i < HOSTS / 2; i++) {
        detect_set_serving(&w->judge, i, false);
        w->memory[i].stratum = 1;
        w->times[i] = 4;
        detect_set_serving(&w->judge, i, true);
    }
    half_seconds(w, 60);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_false(detect_accuses(&w->judge, i, DETECT_RANK));
    w->times[7] = 4; /* as the others of the other one */
    half_seconds(w, 8);
    assert_true(holds(w, 7, DETECT_RANK));
    world_free(w);
}

static void one_that_does_not_serve_is_nobodys_peer(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 60);
    for (uint32_t i = 0; i < 6; i++)
        detect_set_serving(&w->judge, i, false);
    for (uint32_t i = 0; i < 6; i++)
        for (int n = 0; n < 50; n++)
            tell(w, i, EVIDENCE_ERROR, 1000);
    assert_true(detect_peers_rate(&w->judge, 9, DETECT_OF_ERRORS) < 0.01);
    for (uint32_t i = 0; i < 6; i++)
        detect_set_serving(&w->judge, i, true);
    assert_true(detect_peers_rate(&w->judge, 9, DETECT_OF_ERRORS) > 0.5);
    world_free(w);
}

static void one_that_is_acquitted_begins_anew(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 60);
    w->times[3] = 5;
    half_seconds(w, 10);
    tell(w, 3, EVIDENCE_ERROR, 1);
    for (int n = 0; n < 3; n++)
        tell(w, 3, EVIDENCE_OK, 1000000);
    detect_acquit(&w->judge, 3);
    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        assert_true(sum(w, 3, (enum detect_line)line) == 0);
    assert_int_equal(detect_much_slower(&w->judge, 3), 0);
    assert_false(w->memory[3].rated);
    assert_true(w->memory[3].lately[DETECT_OF_ERRORS].tries == 0);
    world_free(w);
}

/* --- verdicts --- */

static struct verdict verdict(const struct world *w, enum detection_profile profile, uint32_t host,
                              enum detect_line line)
{
    const struct detection_config config = {.profile = profile, .max_load = 0.75};

    return verdict_of(&w->judge, &config, host, line);
}

/* Where the others cannot carry it, it gets less, whether or not its answers are known to be late.
 */
static void who_cannot_be_spared_gets_half_at_most(void **state)
{
    struct world *w = world_new(HOSTS);
    struct verdict v;
    (void)state;

    half_seconds(w, 40);
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->memory[i].reports = true;
        w->memory[i].utilization = 0.7;
    }
    for (int n = 0; n < 5; n++)
        tell(w, 3, EVIDENCE_LATE, 400000);
    assert_true(detect_accuses(&w->judge, 3, DETECT_AGE));
    v = verdict(w, PROFILE_ADAPTIVE, 3, DETECT_AGE);
    assert_int_equal(v.deed, VERDICT_SUSPECT);
    assert_true(v.full);
    assert_in_range(v.share, 1, 500);
    world_free(w);
}

static void latency_makes_a_suspect_and_only_in_time_ejects(void **state)
{
    struct world *w = world_new(HOSTS);
    uint32_t suspect = 0, out = 0;
    (void)state;

    half_seconds(w, 100);
    w->times[3] = 4;
    for (uint32_t n = 1; n < 20 && out == 0; n++) {
        enum verdict_deed deed;

        half_second(w);
        deed = detect_accuses(&w->judge, 3, DETECT_RANK)
                   ? verdict(w, PROFILE_ADAPTIVE, 3, DETECT_RANK).deed
                   : VERDICT_NOTHING;
        suspect = suspect == 0 && deed == VERDICT_SUSPECT ? n : suspect;
        out = deed == VERDICT_EJECT ? n : out;
    }
    assert_true(suspect >= 3 && suspect <= 5);
    assert_true(out >= suspect + 2 && out <= 9);
    assert_int_equal(verdict(w, PROFILE_STARTER, 3, DETECT_RANK).deed, VERDICT_SUSPECT);
    assert_int_equal(verdict(w, PROFILE_RULES, 3, DETECT_RANK).deed, VERDICT_SUSPECT);
    assert_true(verdict(w, PROFILE_STARTER, 3, DETECT_RANK).share < 125);
    world_free(w);
}

static void the_tail_ejects_only_together_with_another_line(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 60);
    w->memory[3].sum[DETECT_TAIL] = H + 1;
    assert_int_equal(verdict(w, PROFILE_ADAPTIVE, 3, DETECT_TAIL).deed, VERDICT_SUSPECT);
    assert_int_equal(verdict(w, PROFILE_ADAPTIVE, 3, DETECT_TAIL).share, 200);
    w->memory[3].sum[DETECT_ERRORS_SOME] = H / 2 + 0.1;
    assert_int_equal(verdict(w, PROFILE_ADAPTIVE, 3, DETECT_TAIL).deed, VERDICT_EJECT);
    assert_int_equal(verdict(w, PROFILE_STARTER, 3, DETECT_TAIL).deed, VERDICT_SUSPECT);
    world_free(w);
}

static void errors_eject_but_where_rules_alone_do(void **state)
{
    struct world *w = world_new(HOSTS);
    (void)state;

    half_seconds(w, 60);
    w->memory[3].sum[DETECT_CONNECTS] = H + 1;
    assert_int_equal(verdict(w, PROFILE_ADAPTIVE, 3, DETECT_CONNECTS).deed, VERDICT_EJECT);
    assert_int_equal(verdict(w, PROFILE_STARTER, 3, DETECT_CONNECTS).deed, VERDICT_EJECT);
    assert_int_equal(verdict(w, PROFILE_RULES, 3, DETECT_CONNECTS).deed, VERDICT_SUSPECT);
    assert_int_equal(verdict(w, PROFILE_RULES, 3, DETECT_CONNECTS).share, 0);
    world_free(w);
}

/* --- laws, on random histories --- */

static void random_half_second(struct world *w)
{
    for (int n = 0; n < 30; n++) {
        struct evidence e = {.first_us = rng_below(&w->rng, 400000)};

        e.outcome =
            (uint8_t)(rng_below(&w->rng, 3) == 0 ? rng_below(&w->rng, EVIDENCE_OUTCOME_COUNT)
                                                 : EVIDENCE_OK);
        e.class = (uint8_t)rng_below(&w->rng, EVIDENCE_CLASS_MAX);
        e.flags = (uint8_t)rng_below(&w->rng, 8);
        e.thinned = (uint8_t)rng_below(&w->rng, 3);
        e.ahead = (uint16_t)rng_below(&w->rng, 100);
        detect_learn(&w->judge, rng_below(&w->rng, HOSTS), &e);
    }
    if (rng_below(&w->rng, 8) == 0)
        detect_acquit(&w->judge, rng_below(&w->rng, HOSTS));
    if (rng_below(&w->rng, 4) == 0)
        detect_set_serving(&w->judge, rng_below(&w->rng, HOSTS), rng_below(&w->rng, 3) > 0);
    if (rng_below(&w->rng, 2) == 0)
        detect_glance(&w->judge);
    detect_turn(&w->judge);
}

static void check_counts(const struct world *w)
{
    for (int kind = 0; kind < DETECT_KIND_COUNT; kind++) {
        double tries = 0, bad = 0;

        for (uint32_t i = 0; i < HOSTS; i++) {
            tries += w->memory[i].serving ? w->memory[i].lately[kind].tries : 0;
            bad += w->memory[i].serving ? w->memory[i].lately[kind].bad : 0;
        }
        assert_true(fabs(w->judge.lately[kind].tries - tries) < 1e-6);
        assert_true(fabs(w->judge.lately[kind].bad - bad) < 1e-6);
    }
}

/* No sum is negative or past its bound, and what is known of all is the sum of what each did. */
static void sums_stay_in_bounds_and_counts_add_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world *w = world_new(HOSTS);

        rng_init(&w->rng, seed);
        for (int n = 0; n < 200; n++) {
            random_half_second(w);
            check_counts(w);
            for (uint32_t i = 0; i < HOSTS; i++)
                for (int line = 0; line < DETECT_LINE_COUNT; line++)
                    assert_true(sum(w, i, (enum detect_line)line) >= 0 &&
                                sum(w, i, (enum detect_line)line) <= 1.5 * H + 1e-9);
        }
        world_free(w);
    }
}

static void the_same_input_leaves_the_same_state(void **state)
{
    struct world *a = world_new(HOSTS), *b = world_new(HOSTS);
    (void)state;

    for (int n = 0; n < 300; n++) {
        random_half_second(a);
        random_half_second(b);
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_memory_equal(a->memory[i].sum, b->memory[i].sum, sizeof(a->memory[i].sum));
        assert_memory_equal(a->memory[i].history, b->memory[i].history,
                            sizeof(a->memory[i].history));
        assert_true(memcmp(&a->memory[i].ratio, &b->memory[i].ratio, sizeof(double)) == 0);
    }
    assert_memory_equal(&a->judge.knee, &b->judge.knee, sizeof(a->judge.knee));
    assert_memory_equal(a->judge.classes, b->judge.classes, sizeof(a->judge.classes));
    world_free(a);
    world_free(b);
}

/* Hosts that are kept are known as before, when others come and go. */
static void adopting_again_changes_nothing_for_those_that_stay(void **state)
{
    struct world *w = world_new(HOSTS);
    uint32_t others;
    (void)state;

    half_seconds(w, 60);
    others = peer_others(w->judge.pools[CLASS_READ][0], w->memory[3].series[CLASS_READ]);
    detect_adopt(&w->judge, &w->judge.config, w->members, HOSTS);
    assert_int_equal(peer_others(w->judge.pools[CLASS_READ][0], w->memory[3].series[CLASS_READ]),
                     others);
    check_counts(w);
    detect_adopt(&w->judge, &w->judge.config, w->members, HOSTS - 1);
    assert_int_equal(peer_others(w->judge.pools[CLASS_READ][0], w->memory[3].series[CLASS_READ]),
                     others - PEER_RECENT);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_three_times_slower_is_accused_and_nobody_else),
        cmocka_unit_test(ranks_rise_by_a_step_a_half_second_and_no_more),
        cmocka_unit_test(it_is_the_net_of_a_half_second_that_is_capped),
        cmocka_unit_test(a_sum_of_zero_begins_to_rise_within_the_half_second),
        cmocka_unit_test(two_late_answers_after_many_good_ones_are_nothing),
        cmocka_unit_test(a_host_that_is_well_again_is_forgiven),
        cmocka_unit_test(what_is_not_much_later_than_its_peers_is_kept_back_by_the_gate),
        cmocka_unit_test(what_a_host_is_from_the_first_is_its_own),
        cmocka_unit_test(how_much_slower_is_known_within_tenths_of_a_second),
        cmocka_unit_test(failures_count_at_once_and_are_worked_off),
        cmocka_unit_test(one_failure_in_ten_is_seen_by_the_line_made_for_some),
        cmocka_unit_test(what_fails_everywhere_accuses_nobody),
        cmocka_unit_test(a_little_worse_than_what_is_common_accuses_nobody),
        cmocka_unit_test(refused_connects_are_a_line_of_their_own),
        cmocka_unit_test(open_for_longer_than_others_take_is_evidence_before_the_end),
        cmocka_unit_test(one_that_the_client_left_is_no_failure_but_was_waited_for),
        cmocka_unit_test(who_is_given_up_later_than_nearly_all_come_is_known_to_be_slow),
        cmocka_unit_test(thinned_evidence_counts_for_all_it_stands_for),
        cmocka_unit_test(what_a_host_is_slower_by_from_the_first_is_its_own_up_to_twice),
        cmocka_unit_test(a_fleet_that_is_slow_accuses_nobody_by_latency),
        cmocka_unit_test(a_fleet_whose_first_seconds_were_quick_is_not_slow_for_long),
        cmocka_unit_test(where_many_look_alike_it_is_nobody),
        cmocka_unit_test(two_of_four_that_became_slow_are_told_from_the_others),
        cmocka_unit_test(among_fewer_than_twenty_answers_nobody_is_ranked),
        cmocka_unit_test(without_peers_ranks_say_nothing),
        cmocka_unit_test(hosts_of_another_stratum_are_no_peers),
        cmocka_unit_test(one_that_does_not_serve_is_nobodys_peer),
        cmocka_unit_test(one_that_is_acquitted_begins_anew),
        cmocka_unit_test(who_cannot_be_spared_gets_half_at_most),
        cmocka_unit_test(latency_makes_a_suspect_and_only_in_time_ejects),
        cmocka_unit_test(the_tail_ejects_only_together_with_another_line),
        cmocka_unit_test(errors_eject_but_where_rules_alone_do),
        cmocka_unit_test(sums_stay_in_bounds_and_counts_add_up),
        cmocka_unit_test(the_same_input_leaves_the_same_state),
        cmocka_unit_test(adopting_again_changes_nothing_for_those_that_stay),
    };

    return cmocka_run_group_tests_name("detect", tests, NULL, NULL);
}
