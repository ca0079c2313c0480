/* SPDX-License-Identifier: Apache-2.0 */
/* Detection through the watch: from workers' evidence to shares, ejections, probes and return. */
#include "control/watch_world.h"

static const struct badness slow = {10, 0}, failing = {1, 100}, some = {1, 30};

/* --- failures --- */

static void a_host_that_fails_goes_and_comes_back_by_proof(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 5 * S);
    serve(&w, ALL, &failing, 2 * S);
    assert_true(out(&w, BAD));
    assert_int_equal(life(&w, BAD), LIFE_EJECTED);
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_active), 1);
    assert_int_equal(w.news, 1);
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_enforced_detection), 1);
    assert_true(said(&w, "endpoint.accused"));
    serve(&w, ALL, &failing, 27 * S);
    assert_int_equal(w.probed[BAD], 0); /* it rests */
    serve(&w, ALL, &failing, 2 * 30 * S);
    assert_in_range(w.probed[BAD], 2, 3); /* each probe failed, and it rested again */
    assert_true(out(&w, BAD));
    serve(&w, ALL, &fine, 90 * S);
    assert_false(out(&w, BAD));
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    assert_in_range(w.probed[BAD], 20, 30);
    assert_true(w.most_probes <= LIFE_PROBE_MAX);
    assert_int_equal(host_share(host(&w, BAD)), HOST_WHOLE);
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_active), 0);
    assert_true(said(&w, "endpoint.returned"));
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_int_equal(host(&w, i)->ejections, i == BAD);
    stop(&w);
}

/* What is under way is never more than what was asked for, whenever an answer comes. */
static void probes_under_way_are_no_more_than_are_granted(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    uint32_t under_way = 0, most = 0, answered = 0;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 5 * S);
    serve(&w, ALL, &failing, 2 * S);
    assert_true(out(&w, BAD));
    while (life(&w, BAD) == LIFE_EJECTED)
        serve(&w, ALL & ~(1u << BAD), &fine, 100 * MS);
    for (uint32_t turn = 0; turn < 400 && life(&w, BAD) == LIFE_PROBING; turn++) {
        under_way += atomic_exchange(&host(&w, BAD)->probes, 0);
        most = under_way > most ? under_way : most;
        if (under_way > 0) { /* one at a time comes back */
            answer(&w, BAD, &fine, EVIDENCE_PROBE);
            under_way--;
            answered++;
        }
        serve(&w, ALL & ~(1u << BAD), &fine, 100 * MS);
    }
    assert_int_equal(life(&w, BAD), LIFE_RAMPING);
    assert_int_equal(answered, u.detection.life.successes);
    assert_int_equal(most, LIFE_PROBE_MAX);
    assert_int_equal(under_way, 0);
    stop(&w);
}

static void a_host_of_which_some_requests_fail_goes(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 10 * S);
    serve(&w, ALL, &some, 20 * S);
    assert_true(out(&w, BAD));
    stop(&w);
}

/* Its connects failed while a guard kept it in; since then none was tried, and it is only late. */
static void who_was_kept_in_is_not_put_out_later_for_what_is_over(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    u.outlier.max_ejection_percent = 10;
    start(&w, &u);
    serve(&w, ALL, &fine, 10 * S);
    assert_int_equal(outlier_watch_eject(w.watch, w.state, 0, w.now), OUTLIER_GUARD_NONE);
    for (uint32_t i = 0; i < 30; i++) {
        put(&w, BAD, EVIDENCE_REFUSED, 100, EVIDENCE_FRESH);
        serve(&w, ALL & ~(1u | 1u << BAD), &fine, 100 * MS);
    }
    assert_int_equal(life(&w, BAD), LIFE_SUSPECT);
    for (uint32_t i = 0; i < 8; i++) {
        put(&w, BAD, EVIDENCE_OK, 60000, 0);
        serve(&w, ALL & ~(1u | 1u << BAD), &fine, S);
    }
    put(&w, BAD, EVIDENCE_OK, 60000, 0);
    assert_true(outlier_watch_pardon(w.watch, w.state, 0, w.now));
    serve(&w, ALL & ~(1u << BAD), &fine, 2 * S);
    assert_false(out(&w, BAD));
    stop(&w);
}

/* --- latency --- */

static void for_latency_alone_starter_only_cuts_and_never_below_a_fifth(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    struct world w;
    uint32_t least = HOST_WHOLE;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 20 * S);
    for (uint32_t n = 0; n < 60; n++) {
        serve(&w, ALL, &slow, 500 * MS);
        assert_false(out(&w, BAD));
        least = host_share(host(&w, BAD)) < least ? host_share(host(&w, BAD)) : least;
    }
    assert_int_equal(life(&w, BAD), LIFE_SUSPECT);
    assert_int_equal(least, 200);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_true(i == BAD || host_share(host(&w, i)) == HOST_WHOLE);
    serve(&w, ALL, &fine, 30 * S);
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    assert_int_equal(host_share(host(&w, BAD)), HOST_WHOLE);
    stop(&w);
}

static void adaptive_ejects_for_it_and_lets_it_back_soon(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    mono_ns well;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 20 * S);
    serve(&w, ALL, &slow, 10 * S);
    assert_true(out(&w, BAD));
    serve(&w, ALL, &slow, 10 * S);
    assert_true(out(&w, BAD));
    well = w.now;
    while (out(&w, BAD) && w.now < well + 20 * S)
        serve(&w, ALL, &fine, 100 * MS);
    assert_true(w.now < well + 8 * S);
    serve(&w, ALL, &fine, 10 * S);
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    stop(&w);
}

static const struct badness three = {3, 0};

static void serve_slowly(struct world *w, span_ns span)
{
    for (mono_ns end = w->now + span; w->now < end;) {
        for (uint32_t i = 0; i < HOSTS; i++)
            ask(w, i, &three);
        pass_to(w, w->now + 100 * MS);
    }
}

/* All of them are slow at once: nobody is to blame, and retries stop. */
static void a_fleet_that_is_slow_ejects_nobody(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 30 * S);
    assert_false(w.state->retries_held);
    serve_slowly(&w, 10 * S);
    assert_true(w.state->retries_held);
    assert_true(said(&w, "cluster.fleet_slowdown"));
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_enforced_total), 0);
    serve(&w, ALL, &fine, 30 * S);
    assert_false(w.state->retries_held);
    stop(&w);
}

/* --- who only looks on --- */

static void who_observes_changes_nothing(void **state)
{
    struct set_up u = observing();
    struct world w;
    (void)state;

    start(&w, &u);
    u.outlier.enabled = false;
    adopt(&w, &u, ALL);
    serve(&w, ALL, &fine, 10 * S);
    serve(&w, ALL, &slow, 20 * S);
    serve(&w, ALL, &failing, 20 * S);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_false(out(&w, i));
        assert_int_equal(life(&w, i), LIFE_HEALTHY);
        assert_int_equal(host_share(host(&w, i)), HOST_WHOLE);
        assert_int_equal(host(&w, i)->probes, 0);
    }
    assert_false(w.state->retries_held);
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_enforced_total), 0);
    assert_true(said(&w, "endpoint.observed"));
    assert_false(said(&w, "endpoint.accused"));
    assert_false(said(&w, "endpoint.state"));
    stop(&w);
}

static void who_observes_a_slow_fleet_holds_no_retries(void **state)
{
    struct set_up u = observing();
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 30 * S);
    serve_slowly(&w, 10 * S);
    assert_true(said(&w, "cluster.fleet_slowdown"));
    assert_false(w.state->retries_held);
    stop(&w);
}

static void trip(struct world *w, uint32_t slot)
{
    const struct message m = {.index = slot,
                              .value = outlier_bit(OUTLIER_CONSECUTIVE_5XX),
                              .at = w->now,
                              .object = w->state};

    outlier_watch_tell(w->watch, &m, w->now);
}

/* A DestinationRule alone: its own rules eject, and the clock lets back. */
static void beside_who_observes_the_rules_eject_and_the_clock_lets_back(void **state)
{
    struct set_up u = observing();
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 3 * S);
    trip(&w, BAD);
    assert_true(out(&w, BAD));
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    serve(&w, ALL, &fine, 61 * S);
    assert_false(out(&w, BAD));
    assert_int_equal(w.probed[BAD], 0);
    stop(&w);
}

/* --- two of three fail --- */

#define OTHER 2u
#define WELL  1u

/* Asks a host as a worker does, which counts runs of failures, too. */
static void ask_and_count(struct world *w, const struct set_up *u, uint32_t slot,
                          const struct badness *b)
{
    bool fails = b->failing > 0;

    if (out(w, slot))
        return;
    put(w, slot, fails ? EVIDENCE_GATEWAY : EVIDENCE_OK, 20000, 0);
    if (outlier_learn(&host(w, slot)->runs, &u->outlier, OUTLIER_ANSWERED, fails ? 503 : 200,
                      w->now) != 0)
        trip(w, slot);
}

static void serve_three(struct world *w, const struct set_up *u, const struct badness *b,
                        const struct badness *well, span_ns span)
{
    for (mono_ns end = w->now + span; w->now < end; pass_to(w, w->now + 100 * MS)) {
        ask_and_count(w, u, BAD, b);
        ask_and_count(w, u, OTHER, b);
        ask_and_count(w, u, WELL, well);
    }
}

/* Most peers fail as it does, but one does not, and it never succeeds: it is not what is common. */
static void of_two_that_always_fail_beside_one_that_is_fine_one_goes(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    start_bare(&w);
    adopt(&w, &u, 1u << BAD | 1u << OTHER | 1u << WELL);
    serve_three(&w, &u, &fine, &fine, 5 * S);
    serve_three(&w, &u, &failing, &fine, 4 * S);
    assert_int_equal(out(&w, BAD) + out(&w, OTHER), 0);
    serve_three(&w, &u, &failing, &fine, 6 * S);
    assert_int_equal(out(&w, BAD) + out(&w, OTHER), 1); /* and no second one */
    assert_false(out(&w, WELL));
    stop(&w);
}

static void of_three_that_always_fail_none_goes(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    start_bare(&w);
    adopt(&w, &u, 1u << BAD | 1u << OTHER | 1u << WELL);
    serve_three(&w, &u, &fine, &fine, 5 * S);
    serve_three(&w, &u, &failing, &failing, 15 * S);
    assert_int_equal(out(&w, BAD) + out(&w, OTHER) + out(&w, WELL), 0);
    stop(&w);
}

/* --- by hand --- */

static void by_hand_it_goes_the_same_way(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 3 * S);
    assert_int_equal(outlier_watch_eject(w.watch, w.state, BAD, w.now), OUTLIER_GUARD_NONE);
    assert_true(out(&w, BAD));
    assert_int_equal(life(&w, BAD), LIFE_EJECTED);
    serve(&w, ALL, &fine, 15 * S);
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY); /* it has shown that it is well */
    assert_false(out(&w, BAD));

    assert_int_equal(outlier_watch_eject(w.watch, w.state, BAD, w.now), OUTLIER_GUARD_NONE);
    serve(&w, ALL & ~(1u << BAD), &fine, 3 * S);
    assert_int_equal(life(&w, BAD), LIFE_PROBING);
    assert_true(outlier_watch_pardon(w.watch, w.state, BAD, w.now));
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    assert_int_equal(host(&w, BAD)->probes, 0);
    assert_int_equal(host_share(host(&w, BAD)), HOST_WHOLE);
    assert_false(out(&w, BAD));
    assert_false(outlier_watch_pardon(w.watch, w.state, BAD, w.now));
    stop(&w);
}

/* --- reloads --- */

static void a_reload_keeps_what_is_learnt_though_hosts_come_and_go(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    uint32_t others = (ALL | 3u << HOSTS) & ~1u; /* the first is gone, two are new */
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 20 * S);
    serve(&w, ALL, &slow, 10 * S);
    assert_int_equal(life(&w, BAD), LIFE_SUSPECT);
    assert_int_not_equal(w.state->late_after[CLASS_READ], 0);
    adopt(&w, &u, others);
    pass_to(&w, w.now + 100 * MS);
    assert_int_not_equal(w.state->late_after[CLASS_READ], 0);
    assert_int_equal(life(&w, BAD), LIFE_SUSPECT);
    assert_int_equal(host_share(host(&w, BAD)), 200);
    serve(&w, others, &slow, S);
    assert_int_equal(life(&w, BAD), LIFE_SUSPECT);
    put(&w, 0, EVIDENCE_RESET, 1000, 0); /* of a host that is gone */
    serve(&w, others, &failing, 3 * S);
    assert_true(out(&w, BAD));
    adopt(&w, &u, ALL);
    assert_true(out(&w, BAD));
    assert_int_equal(life(&w, BAD), LIFE_EJECTED);
    serve(&w, ALL, &fine, 90 * S);
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    stop(&w);
}

static void a_reload_while_it_is_probed_interrupts_nothing(void **state)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 3 * S);
    (void)outlier_watch_eject(w.watch, w.state, BAD, w.now);
    while (w.probed[BAD] < 5)
        serve(&w, ALL, &fine, 100 * MS);
    assert_int_equal(life(&w, BAD), LIFE_PROBING);
    adopt(&w, &u, ALL);
    assert_int_equal(life(&w, BAD), LIFE_PROBING);
    serve(&w, ALL, &fine, 10 * S);
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    assert_in_range(w.probed[BAD], 20, 22);
    stop(&w);
}

/* Twenty in a row without a failure would take it minutes; while it is worse, it stays out. */
static void where_all_fail_now_and_then_it_comes_back_if_it_does_no_more(void **state)
{
    static const struct badness tenth = {1, 10}, half = {1, 50};
    (void)state;

    for (int worse = 0; worse < 2; worse++) {
        struct set_up u = profile(PROFILE_ADAPTIVE);
        struct world w;

        start(&w, &u);
        serve(&w, ALL, &fine, 20 * S);
        serve_among(&w, ALL, &tenth, &tenth, 10 * S);
        (void)outlier_watch_eject(w.watch, w.state, BAD, w.now);
        serve_among(&w, ALL, worse ? &half : &tenth, &tenth, 20 * S);
        assert_int_equal(out(&w, BAD), worse);
        serve_among(&w, ALL, &tenth, &tenth, 40 * S);
        assert_false(out(&w, BAD));
        stop(&w);
    }
}

/* Detection is switched off, or is to look on only: nobody stays cut or out for it. */
static void where_it_is_switched_off_nobody_stays_cut_or_out(void **state)
{
    (void)state;

    for (int off = 0; off < 2; off++) {
        struct set_up u = profile(PROFILE_STARTER), then = observing();
        struct world w;

        then.detection.on = off == 0;
        start(&w, &u);
        serve(&w, ALL, &fine, 20 * S);
        serve(&w, ALL, &slow, 10 * S);
        (void)outlier_watch_eject(w.watch, w.state, 7, w.now);
        assert_int_equal(life(&w, BAD), LIFE_SUSPECT);
        assert_int_equal(life(&w, 7), LIFE_EJECTED);
        assert_true(w.state->mistrusts);
        atomic_store(&w.state->retries_held, true);
        adopt(&w, &then, ALL);
        assert_int_equal(host_share(host(&w, BAD)), HOST_WHOLE);
        serve(&w, ALL, &slow, 70 * S);
        assert_false(out(&w, 7)); /* by the clock */
        assert_int_equal(w.probed[7], 0);
        assert_int_equal(life(&w, 7), LIFE_HEALTHY);
        assert_false(w.state->retries_held);
        assert_false(w.state->mistrusts);
        stop(&w);
    }
}

/* Outlier detection is switched off, and detection is not: all are back at once, and judged. */
static void who_comes_back_as_ejection_is_switched_off_begins_anew(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 3 * S);
    (void)outlier_watch_eject(w.watch, w.state, BAD, w.now);
    u.outlier.enabled = false;
    adopt(&w, &u, ALL);
    assert_false(out(&w, BAD));
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    assert_int_equal(host_share(host(&w, BAD)), HOST_WHOLE);
    stop(&w);
}

static void who_went_out_by_the_clock_comes_back_by_proof_where_that_is_asked_for_now(void **state)
{
    struct set_up u = observing(), then = profile(PROFILE_STARTER);
    struct world w;
    (void)state;

    start(&w, &u);
    serve(&w, ALL, &fine, 3 * S);
    trip(&w, BAD);
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    adopt(&w, &then, ALL);
    assert_int_equal(life(&w, BAD), LIFE_EJECTED);
    serve(&w, ALL, &fine, 60 * S);
    assert_false(out(&w, BAD));
    assert_int_equal(life(&w, BAD), LIFE_HEALTHY);
    assert_in_range(w.probed[BAD], 20, 22);
    stop(&w);
}

/* --- when the watch works --- */

static void without_evidence_the_watch_sleeps_and_the_next_wakes_it(void **state)
{
    struct set_up u = profile(PROFILE_STARTER);
    struct world w;
    (void)state;

    u.outlier.enabled = false; /* no sweep either */
    start(&w, &u);
    assert_true(wheel_next(&w.wheel) == MONO_NEVER);
    serve(&w, ALL, &fine, S);
    assert_true(wheel_next(&w.wheel) != MONO_NEVER);
    pass_to(&w, w.now + 30 * S);
    assert_true(wheel_next(&w.wheel) == MONO_NEVER);
    serve(&w, ALL, &failing, 10 * S); /* it is heard */
    assert_true(said(&w, "endpoint.accused"));
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_fails_goes_and_comes_back_by_proof),
        cmocka_unit_test(who_was_kept_in_is_not_put_out_later_for_what_is_over),
        cmocka_unit_test(probes_under_way_are_no_more_than_are_granted),
        cmocka_unit_test(a_host_of_which_some_requests_fail_goes),
        cmocka_unit_test(for_latency_alone_starter_only_cuts_and_never_below_a_fifth),
        cmocka_unit_test(adaptive_ejects_for_it_and_lets_it_back_soon),
        cmocka_unit_test(a_fleet_that_is_slow_ejects_nobody),
        cmocka_unit_test(who_observes_changes_nothing),
        cmocka_unit_test(who_observes_a_slow_fleet_holds_no_retries),
        cmocka_unit_test(beside_who_observes_the_rules_eject_and_the_clock_lets_back),
        cmocka_unit_test(of_two_that_always_fail_beside_one_that_is_fine_one_goes),
        cmocka_unit_test(of_three_that_always_fail_none_goes),
        cmocka_unit_test(by_hand_it_goes_the_same_way),
        cmocka_unit_test(a_reload_keeps_what_is_learnt_though_hosts_come_and_go),
        cmocka_unit_test(a_reload_while_it_is_probed_interrupts_nothing),
        cmocka_unit_test(where_all_fail_now_and_then_it_comes_back_if_it_does_no_more),
        cmocka_unit_test(where_it_is_switched_off_nobody_stays_cut_or_out),
        cmocka_unit_test(who_comes_back_as_ejection_is_switched_off_begins_anew),
        cmocka_unit_test(who_went_out_by_the_clock_comes_back_by_proof_where_that_is_asked_for_now),
        cmocka_unit_test(without_evidence_the_watch_sleeps_and_the_next_wakes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
