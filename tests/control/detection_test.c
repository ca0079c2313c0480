/* SPDX-License-Identifier: Apache-2.0 */
/* Detection through the watch: from workers' evidence to shares, ejections, probes and return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/rng.h"
#include "base/wheel.h"
#include "control/outlier_watch.h"
#include "model/snapshot.h"
#include "policy/evidence_ring.h"
#include "policy/host.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define HOSTS 10
#define BAD   3u

struct world {
    struct log log;
    char said[16384]; /* names of events, each with a blank behind */
    size_t said_length;
    struct wheel wheel;
    struct clock clock;
    struct rng rng;
    mono_ns now;
    struct evidence_ring *ring;
    struct mailbox inbox; /* the worker's */
    struct mailbox *inboxes[1];
    uint32_t news; /* of healths, told to the worker */
    struct outlier_watch *watch;
    struct snapshot *snapshot;
    struct cluster_state *state;
    uint32_t probed[HOSTS + 2]; /* requests that hosts were given while they were out */
    uint32_t most_probes;       /* under way at once */
};

__attribute__((format(printf, 4, 0))) static void
remember(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    struct world *w = CONTAINER_OF(l, struct world, log);
    int n = snprintf(w->said + w->said_length, sizeof(w->said) - w->said_length, "%s ", event);

    (void)level;
    (void)format;
    (void)args;
    if (n > 0 && (size_t)n < sizeof(w->said) - w->said_length)
        w->said_length += (size_t)n;
}

static bool hear(struct mailbox *m, const struct message *message)
{
    (void)message;
    CONTAINER_OF(m, struct world, inbox)->news++;
    return true;
}

static wall_ns wall(struct clock *c)
{
    (void)c;
    return UINT64_C(1800000000) * S;
}

struct set_up {
    struct detection_config detection;
    struct outlier_config outlier;
};

static struct set_up profile(enum detection_profile p)
{
    struct set_up u = {.detection = default_detection, .outlier = default_outlier};

    u.detection.profile = p;
    u.detection.life.quick = p == PROFILE_ADAPTIVE;
    u.detection.life.least_share = p == PROFILE_ADAPTIVE ? 50 : 200;
    u.outlier.return_on_proof = true;
    return u;
}

static struct set_up observing(void)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);

    u.detection.mode = DETECTION_OBSERVE;
    u.outlier.return_on_proof = false;
    return u;
}

/* With the hosts whose bit is set in |who|. */
static struct snapshot *make(struct world *w, const struct set_up *u, uint32_t who)
{
    struct snapshot *s = snapshot_create();
    struct cluster *c = arena_take(&s->arena, sizeof(*c));
    struct endpoint *at = arena_take(&s->arena, (HOSTS + 2) * sizeof(*at));
    uint32_t n = 0;

    for (uint32_t i = 0; i < HOSTS + 2; i++)
        if ((who & 1u << i) != 0)
            at[n++] = (struct endpoint){.text = BYTES("10.0.0.1:80"), .slot = i};
    *c = (struct cluster){.name = BYTES("shop"),
                          .endpoint_count = n,
                          .endpoints = at,
                          .outlier = u->outlier,
                          .detection = u->detection,
                          .panic = default_panic,
                          .hosts = w->state->hosts,
                          .state = cluster_state_take(w->state)};
    s->clusters = c;
    s->cluster_count = 1;
    return s;
}

#define ALL ((1u << HOSTS) - 1)

static void start_bare(struct world *w)
{
    static const struct mailbox_ops ops = {.post = hear};

    memset(w, 0, sizeof(*w));
    w->log.write = remember;
    w->clock.wall = wall;
    w->inbox.ops = &ops;
    w->inboxes[0] = &w->inbox;
    w->now = 1000 * S;
    wheel_init(&w->wheel, w->now);
    rng_init(&w->rng, 5);
    w->ring = aligned_alloc(64, sizeof(*w->ring));
    assert_non_null(w->ring);
    memset(w->ring, 0, sizeof(*w->ring));
    w->state = cluster_state_create(HOSTS + 2, 1);
    w->watch = outlier_watch_create(&(struct outlier_watch_setup){.wheel = &w->wheel,
                                                                  .clock = &w->clock,
                                                                  .log = &w->log,
                                                                  .workers = w->inboxes,
                                                                  .rings = w->ring,
                                                                  .worker_count = 1,
                                                                  .seed = 1});
    assert_non_null(w->watch);
}

static void adopt(struct world *w, const struct set_up *u, uint32_t who)
{
    struct snapshot *next = make(w, u, who);

    assert_true(outlier_watch_adopt(w->watch, next, w->now));
    if (w->snapshot != NULL)
        snapshot_drop(w->snapshot);
    w->snapshot = next;
}

static void start(struct world *w, const struct set_up *u)
{
    start_bare(w);
    adopt(w, u, ALL);
}

static void stop(struct world *w)
{
    outlier_watch_free(w->watch);
    assert_true(wheel_next(&w->wheel) == MONO_NEVER);
    snapshot_drop(w->snapshot);
    cluster_state_drop(w->state);
    free(w->ring);
}

static void pass_to(struct world *w, mono_ns end)
{
    while (wheel_next(&w->wheel) <= end) {
        w->now = wheel_next(&w->wheel) > w->now ? wheel_next(&w->wheel) : w->now;
        wheel_run(&w->wheel, w->now);
    }
    w->now = end;
}

static struct host *host(struct world *w, uint32_t slot)
{
    return w->state->hosts.at[slot];
}

static bool out(struct world *w, uint32_t slot)
{
    return host_health(host(w, slot)) == HOST_EJECTED;
}

static enum life_state life(struct world *w, uint32_t slot)
{
    return host(w, slot)->life.state;
}

static bool said(const struct world *w, const char *event)
{
    return strstr(w->said, event) != NULL;
}

static uint64_t stat(const struct world *w, enum outlier_metric m)
{
    return cell_read(&w->state->outlier[m]);
}

/* --- traffic --- */

/* How the bad host is; the others answer in 20 ms, give or take. */
struct badness {
    double slower;
    uint32_t failing; /* percent */
};

static const struct badness fine = {1, 0}, slow = {10, 0}, failing = {1, 100}, some = {1, 30};

static void put(struct world *w, uint32_t slot, enum evidence_outcome outcome, uint32_t us,
                uint8_t flags)
{
    const struct evidence e = {.at = w->now,
                               .cluster = w->state,
                               .host = slot,
                               .class = CLASS_READ,
                               .outcome = (uint8_t)outcome,
                               .flags = flags,
                               .first_us = us,
                               .last_us = outcome == EVIDENCE_OK ? us : EVIDENCE_NO_TIME,
                               .connect_us = EVIDENCE_NO_TIME};

    if (evidence_ring_put(w->ring, &e) == EVIDENCE_PUT_TELL)
        outlier_watch_wake(w->watch, w->now);
}

static void answer(struct world *w, uint32_t slot, const struct badness *b, uint8_t flags)
{
    double us = 12000 + 16000 * rng_unit(&w->rng);

    if (rng_below(&w->rng, 100) < b->failing)
        put(w, slot, EVIDENCE_GATEWAY, 900, flags);
    else
        put(w, slot, EVIDENCE_OK, (uint32_t)(us * b->slower), flags);
}

/* As the workers do: who is out gets what it is granted, who is cut gets its share. */
static void ask(struct world *w, uint32_t slot, const struct badness *b)
{
    struct host *h = host(w, slot);
    uint32_t granted = atomic_load(&h->probes);

    if (out(w, slot)) {
        w->most_probes = granted > w->most_probes ? granted : w->most_probes;
        if (granted == 0)
            return;
        atomic_store(&h->probes, granted - 1);
        w->probed[slot]++;
        answer(w, slot, b, EVIDENCE_PROBE);
    } else if (rng_below(&w->rng, HOST_WHOLE) < host_share(h)) {
        answer(w, slot, b, 0);
    }
}

/* Each host of |who| is asked ten times a second, one after another. */
static void serve(struct world *w, uint32_t who, const struct badness *b, span_ns span)
{
    for (mono_ns end = w->now + span; w->now < end;) {
        for (uint32_t i = 0; i < HOSTS + 2; i++)
            if ((who & 1u << i) != 0)
                ask(w, i, i == BAD ? b : &fine);
        pass_to(w, w->now + 100 * MS);
    }
}

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
        atomic_store(&w.state->retries_held, true);
        adopt(&w, &then, ALL);
        assert_int_equal(host_share(host(&w, BAD)), HOST_WHOLE);
        serve(&w, ALL, &slow, 70 * S);
        assert_false(out(&w, 7)); /* by the clock */
        assert_int_equal(w.probed[7], 0);
        assert_int_equal(life(&w, 7), LIFE_HEALTHY);
        assert_false(w.state->retries_held);
        assert_false(w.state->probing);
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
        cmocka_unit_test(probes_under_way_are_no_more_than_are_granted),
        cmocka_unit_test(a_host_of_which_some_requests_fail_goes),
        cmocka_unit_test(for_latency_alone_starter_only_cuts_and_never_below_a_fifth),
        cmocka_unit_test(adaptive_ejects_for_it_and_lets_it_back_soon),
        cmocka_unit_test(a_fleet_that_is_slow_ejects_nobody),
        cmocka_unit_test(who_observes_changes_nothing),
        cmocka_unit_test(who_observes_a_slow_fleet_holds_no_retries),
        cmocka_unit_test(beside_who_observes_the_rules_eject_and_the_clock_lets_back),
        cmocka_unit_test(by_hand_it_goes_the_same_way),
        cmocka_unit_test(a_reload_keeps_what_is_learnt_though_hosts_come_and_go),
        cmocka_unit_test(a_reload_while_it_is_probed_interrupts_nothing),
        cmocka_unit_test(where_it_is_switched_off_nobody_stays_cut_or_out),
        cmocka_unit_test(who_comes_back_as_ejection_is_switched_off_begins_anew),
        cmocka_unit_test(who_went_out_by_the_clock_comes_back_by_proof_where_that_is_asked_for_now),
        cmocka_unit_test(without_evidence_the_watch_sleeps_and_the_next_wakes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
