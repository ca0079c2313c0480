/* SPDX-License-Identifier: Apache-2.0 */
/* What is done about ejections that did no good, or that the others cannot carry. */
#define HOSTS 24
#include "control/watch_world.h"

#include "control/detection_say.h"
#include "control/effect_parts.h"
#include "control/outlier_deeds.h"

/* Nobody goes but by order, and nobody comes back by himself. */
static struct set_up by_order(void)
{
    struct set_up u = profile(PROFILE_STARTER);

    u.detection.detect.latency = u.detection.detect.errors = u.detection.detect.connections = false;
    u.detection.life.base = u.detection.life.max = 3600 * S;
    u.detection.rule_count = 0;
    u.outlier.max_ejection_percent = 90;
    return u;
}

static struct set_up looking_on(void)
{
    struct set_up u = by_order();

    u.detection.mode = DETECTION_OBSERVE;
    u.outlier.return_on_proof = false;
    u.outlier.base_ejection = 3600 * S;
    u.outlier.max_ejection = 3600 * S;
    return u;
}

static struct watched *watched(struct world *w)
{
    return w->watch->all[0];
}

static uint64_t effect(const struct world *w, enum effect_metric m)
{
    return cell_read(&w->state->effect[m]);
}

static enum outlier_guard by_hand(struct world *w, uint32_t slot)
{
    return outlier_watch_eject(w->watch, w->state, slot, w->now);
}

/* --- traffic --- */

/* How all hosts are, but for those that are worse. */
struct weather {
    bool loaded;      /* requests queue at the hosts */
    uint32_t failing; /* percent */
    uint32_t worse[HOSTS];
};

/* Up to four are under way on a host and wait for nothing; beyond, an answer takes twice as long.
 */
static void answer_one(struct world *w, const struct weather *all, uint32_t slot)
{
    uint32_t ahead = all->loaded                   ? 3 + rng_below(&w->rng, 6)
                     : rng_below(&w->rng, 10) == 0 ? 6
                                                   : 1 + rng_below(&w->rng, 4);
    uint32_t failing = all->worse[slot] > 0 ? all->worse[slot] : all->failing;
    struct evidence e = {.at = w->now,
                         .cluster = w->state,
                         .host = slot,
                         .class = CLASS_READ,
                         .outcome = EVIDENCE_OK,
                         .first_us = 12000 + rng_below(&w->rng, 16000),
                         .ahead = (uint16_t)ahead};

    e.first_us *= ahead > 4 ? 2 : 1;
    if (rng_below(&w->rng, 100) < failing)
        e.outcome = EVIDENCE_ERROR;
    if (evidence_ring_put(w->ring, &e) == EVIDENCE_PUT_TELL)
        outlier_watch_wake(w->watch, w->now);
}

/* Each host that serves is asked ten times a second. */
static void go_on(struct world *w, const struct weather *all, span_ns span)
{
    for (mono_ns end = w->now + span; w->now < end; pass_to(w, w->now + 100 * MS)) {
        for (uint32_t i = 0; i < HOSTS; i++)
            if (!out(w, i))
                answer_one(w, all, i);
    }
}

/* For how long, until it is in again; at most |most|. */
static span_ns until_back(struct world *w, const struct weather *all, uint32_t slot, span_ns most)
{
    mono_ns since = w->now;

    while (out(w, slot) && w->now - since < most)
        go_on(w, all, 100 * MS);
    assert_false(out(w, slot));
    return w->now - since;
}

/* --- capacity --- */

#define LITTLE 4u
#define MUCH   7u
#define MOST   11u

/* Three are out, for failing so often. */
static void start_with_three_out(struct world *w, const struct set_up *u, struct weather *all)
{
    *all = (struct weather){.worse = {[LITTLE] = 15, [MUCH] = 35, [MOST] = 80}};
    start(w, u);
    go_on(w, all, 30 * S);
    assert_int_equal(by_hand(w, MOST), OUTLIER_GUARD_NONE);
    assert_int_equal(by_hand(w, LITTLE), OUTLIER_GUARD_NONE);
    assert_int_equal(by_hand(w, MUCH), OUTLIER_GUARD_NONE);
    go_on(w, all, 10 * S);
    assert_int_equal(stat(w, OUTLIER_STAT_ejections_active), 3);
    assert_int_equal(effect(w, EFFECT_STAT_cap_lowered), 0);
}

static void overloaded_survivors_get_the_least_bad_back_one_by_one(void **state)
{
    struct set_up u = by_order();
    struct weather all;
    struct world w;
    (void)state;

    start_with_three_out(&w, &u, &all);
    all.loaded = true;
    assert_in_range(until_back(&w, &all, LITTLE, 20 * S), 2 * S, 20 * S);
    assert_true(out(&w, MUCH) && out(&w, MOST));
    assert_int_equal(effect(&w, EFFECT_STAT_readmitted_for_capacity), 1);
    assert_true(said(&w, "endpoint.readmitted_for_capacity"));
    assert_in_range(until_back(&w, &all, MUCH, 20 * S), 2 * S - 100 * MS, 3 * S);
    assert_int_equal(effect(&w, EFFECT_STAT_readmitted_for_capacity), 2);
    assert_int_equal(effect(&w, EFFECT_STAT_undone), 0);
    assert_false(said(&w, "cluster.capacity"));
    assert_true(out(&w, MOST));
    assert_int_equal(effect(&w, EFFECT_STAT_cap_lowered), 1);
    stop(&w);
}

static void one_that_would_carry_nothing_stays_out_and_nobody_follows_it(void **state)
{
    struct set_up u = by_order();
    struct weather all = {.worse = {[MOST] = 80}};
    struct world w;
    (void)state;

    start(&w, &u);
    go_on(&w, &all, 30 * S);
    assert_int_equal(by_hand(&w, MOST), OUTLIER_GUARD_NONE);
    go_on(&w, &all, 10 * S);
    all.loaded = true;
    go_on(&w, &all, 6 * S);
    assert_true(out(&w, MOST));
    assert_true(said(&w, "cluster.capacity"));
    assert_int_equal(effect(&w, EFFECT_STAT_readmitted_for_capacity), 0);
    assert_int_equal(effect(&w, EFFECT_STAT_cap_lowered), 1);
    assert_int_equal(by_hand(&w, LITTLE), OUTLIER_GUARD_CAP);
    stop(&w);
}

static void nobody_goes_while_the_cap_is_lowered_and_one_more_each_minute_after(void **state)
{
    struct set_up u = by_order();
    struct weather all;
    struct world w;
    (void)state;

    start_with_three_out(&w, &u, &all);
    all.loaded = true;
    (void)until_back(&w, &all, LITTLE, 20 * S);
    all.loaded = false;
    assert_int_equal(by_hand(&w, LITTLE), OUTLIER_GUARD_CAP);
    go_on(&w, &all, 55 * S);
    assert_int_equal(by_hand(&w, LITTLE), OUTLIER_GUARD_CAP);
    go_on(&w, &all, 20 * S); /* the load went down in the first of these */
    assert_int_equal(by_hand(&w, 0), OUTLIER_GUARD_NONE);
    assert_int_equal(by_hand(&w, LITTLE), OUTLIER_GUARD_CAP);
    assert_true(outlier_watch_pardon(w.watch, w.state, 0, w.now));
    assert_int_equal(effect(&w, EFFECT_STAT_cap_lowered), 1);
    go_on(&w, &all, (HOSTS - 3) * 60 * S);
    assert_int_equal(effect(&w, EFFECT_STAT_cap_lowered), 0);
    for (uint32_t i = 12; i < 20; i++)
        assert_int_equal(by_hand(&w, i), OUTLIER_GUARD_NONE);
    stop(&w);
}

/* As long as that is short, or only seen, nothing is done. */
static void a_short_load_readmits_nobody_and_neither_does_who_only_looks_on(void **state)
{
    struct set_up looks_on = looking_on(), acts = by_order();
    struct weather all;
    struct world w;
    bool over = false;
    (void)state;

    start_with_three_out(&w, &looks_on, &all);
    all.loaded = true;
    go_on(&w, &all, 20 * S);
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_active), 3);
    assert_int_equal(effect(&w, EFFECT_STAT_cap_lowered), 0);
    stop(&w);
    start_with_three_out(&w, &acts, &all);
    for (uint32_t i = 0; i < 10; i++) {
        all.loaded = true;
        go_on(&w, &all, 700 * MS);
        over |= effect_load(watched(&w)) > 0.9;
        all.loaded = false;
        go_on(&w, &all, 6 * S);
    }
    assert_true(over); /* but not for two seconds */
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_active), 3);
    stop(&w);
}

/* --- what was undone is held --- */

/* It goes on that line; until it is known that all have what it had. */
static void eject_in_vain(struct world *w, enum detect_line line, const struct weather *all)
{
    uint64_t undone = effect(w, EFFECT_STAT_undone);

    effect_accused(watched(w), line);
    assert_int_equal(deeds_detected(watched(w), BAD, w->now), OUTLIER_GUARD_NONE);
    assert_in_range(until_back(w, all, BAD, 20 * S), 0, 10 * S);
    assert_int_equal(effect(w, EFFECT_STAT_undone), undone + 1);
}

static bool held(struct world *w, enum detect_line line)
{
    return effect_holds_line(watched(w), BAD, line, w->now);
}

static const struct weather all_fail = {.failing = 80};

static void what_was_undone_is_not_done_again_for_a_minute_then_two_at_most_ten(void **state)
{
    static const uint32_t minutes[] = {1, 2, 4, 8, 10, 1}; /* the last: after ten quiet ones */
    struct set_up u = by_order();
    struct world w;
    (void)state;

    start(&w, &u);
    go_on(&w, &all_fail, 30 * S);
    assert_false(held(&w, DETECT_ERRORS_SOME));
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        eject_in_vain(&w, DETECT_ERRORS_SOME, &all_fail);
        assert_true(held(&w, DETECT_ERRORS_SOME));
        go_on(&w, &all_fail, minutes[i] * 60 * S - S);
        assert_true(held(&w, DETECT_ERRORS_SOME));
        go_on(&w, &all_fail, S);
        assert_false(held(&w, DETECT_ERRORS_SOME));
    }
    stop(&w);
}

static void only_the_same_line_is_held_and_each_that_was_undone(void **state)
{
    struct set_up u = by_order();
    struct world w;
    (void)state;

    start(&w, &u);
    go_on(&w, &all_fail, 30 * S);
    eject_in_vain(&w, DETECT_ERRORS_SOME, &all_fail);
    assert_false(held(&w, DETECT_ERRORS_MANY) || held(&w, DETECT_RANK));
    assert_false(effect_holds_trigger(watched(&w), BAD, OUTLIER_CONSECUTIVE_5XX, w.now));
    go_on(&w, &all_fail, 10 * S);
    eject_in_vain(&w, DETECT_ERRORS_MANY, &all_fail);
    assert_true(held(&w, DETECT_ERRORS_SOME) && held(&w, DETECT_ERRORS_MANY));
    assert_false(held(&w, DETECT_RANK));
    assert_false(effect_holds_line(watched(&w), BAD + 1, DETECT_ERRORS_SOME, w.now));
    stop(&w);
}

static void the_hold_ends_where_the_peers_recover(void **state)
{
    struct weather recovered = {.worse = {[BAD] = 40}};
    struct set_up u = by_order();
    struct world w;
    (void)state;

    start(&w, &u);
    go_on(&w, &all_fail, 30 * S);
    eject_in_vain(&w, DETECT_ERRORS_SOME, &all_fail);
    go_on(&w, &all_fail, 10 * S);
    assert_true(held(&w, DETECT_ERRORS_SOME));
    go_on(&w, &recovered, 6 * S);
    assert_false(held(&w, DETECT_ERRORS_SOME));
    go_on(&w, &all_fail, 6 * S); /* they have it again */
    assert_true(held(&w, DETECT_ERRORS_SOME));
    stop(&w);
}

/* --- accounts --- */

static void no_more_than_sixteen_accounts_are_open(void **state)
{
    const struct weather fine_weather = {.failing = 1};
    struct set_up u = looking_on(); /* else some would be undone meanwhile */
    struct world w;
    (void)state;

    start(&w, &u);
    go_on(&w, &fine_weather, 10 * S);
    for (uint32_t i = 0; i < EFFECT_OPEN_MOST + 2; i++) {
        assert_int_equal(by_hand(&w, i), OUTLIER_GUARD_NONE);
        assert_int_equal(host(&w, i)->effect->account != NULL, i < EFFECT_OPEN_MOST);
    }
    go_on(&w, &fine_weather, S);
    assert_int_equal(effect(&w, EFFECT_STAT_accounts_open), EFFECT_OPEN_MOST);
    assert_true(out(&w, EFFECT_OPEN_MOST)); /* out all the same */
    assert_true(outlier_watch_pardon(w.watch, w.state, 0, w.now));
    assert_true(outlier_watch_pardon(w.watch, w.state, EFFECT_OPEN_MOST, w.now));
    go_on(&w, &fine_weather, EFFECT_LATER + S); /* how it does is seen, and the account closed */
    assert_int_equal(effect(&w, EFFECT_STAT_accounts_open), EFFECT_OPEN_MOST - 1);
    assert_int_equal(by_hand(&w, EFFECT_OPEN_MOST), OUTLIER_GUARD_NONE);
    assert_non_null(host(&w, EFFECT_OPEN_MOST)->effect->account);
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overloaded_survivors_get_the_least_bad_back_one_by_one),
        cmocka_unit_test(one_that_would_carry_nothing_stays_out_and_nobody_follows_it),
        cmocka_unit_test(nobody_goes_while_the_cap_is_lowered_and_one_more_each_minute_after),
        cmocka_unit_test(a_short_load_readmits_nobody_and_neither_does_who_only_looks_on),
        cmocka_unit_test(what_was_undone_is_not_done_again_for_a_minute_then_two_at_most_ten),
        cmocka_unit_test(only_the_same_line_is_held_and_each_that_was_undone),
        cmocka_unit_test(the_hold_ends_where_the_peers_recover),
        cmocka_unit_test(no_more_than_sixteen_accounts_are_open),
    };

    return cmocka_run_group_tests_name("control/effect_watch", tests, NULL, NULL);
}
