/* SPDX-License-Identifier: Apache-2.0 */
/* Zones, versions, connections that hang: what the watch does where no single host is at fault. */
#include <math.h>
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
#include "policy/scope.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define HOSTS 9

struct world {
    struct log log;
    char said[16384]; /* events and what was said, a line each */
    size_t length;
    struct wheel wheel;
    struct clock clock;
    struct rng rng;
    mono_ns now;
    struct evidence_ring *ring;
    struct mailbox inbox;
    struct mailbox *inboxes[1];
    uint32_t news;
    struct outlier_watch *watch;
    struct snapshot *snapshot;
    struct cluster_state *state;
};

__attribute__((format(printf, 4, 0))) static void
remember(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    struct world *w = CONTAINER_OF(l, struct world, log);
    char text[512];

    (void)level;
    vsnprintf(text, sizeof(text), format, args);
    if (w->length + strlen(event) + strlen(text) + 3 < sizeof(w->said))
        w->length += (size_t)sprintf(w->said + w->length, "%s %s\n", event, text);
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

/* Host k is in zone k mod 3; of version "2" from |first_new| on. */
static void adopt(struct world *w, enum detection_mode mode, uint32_t first_new)
{
    static const char *const zones[] = {"east", "west", "north"};
    struct snapshot *s = snapshot_create();
    struct cluster *c = arena_take(&s->arena, sizeof(*c));
    struct endpoint *at = arena_take(&s->arena, HOSTS * sizeof(*at));

    for (uint32_t i = 0; i < HOSTS; i++)
        at[i] = (struct endpoint){.text = BYTES("10.0.0.1:80"),
                                  .slot = i,
                                  .zone = bytes_of(zones[i % 3]),
                                  .version = i < first_new ? BYTES("1") : BYTES("2")};
    *c = (struct cluster){.name = BYTES("shop"),
                          .endpoint_count = HOSTS,
                          .endpoints = at,
                          .outlier = default_outlier,
                          .detection = default_detection,
                          .panic = default_panic,
                          .hosts = w->state->hosts,
                          .state = cluster_state_take(w->state)};
    c->detection.profile = PROFILE_ADAPTIVE;
    c->detection.mode = mode;
    c->outlier.return_on_proof = mode == DETECTION_ENFORCE;
    s->clusters = c;
    s->cluster_count = 1;
    assert_true(outlier_watch_adopt(w->watch, s, w->now));
    w->snapshot = s;
}

static void start(struct world *w, enum detection_mode mode, uint32_t first_new)
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
    w->state = cluster_state_create(HOSTS, 1);
    w->watch = outlier_watch_create(&(struct outlier_watch_setup){.wheel = &w->wheel,
                                                                  .clock = &w->clock,
                                                                  .log = &w->log,
                                                                  .workers = w->inboxes,
                                                                  .rings = w->ring,
                                                                  .worker_count = 1,
                                                                  .seed = 1});
    assert_non_null(w->watch);
    adopt(w, mode, first_new);
}

static void stop(struct world *w)
{
    outlier_watch_free(w->watch);
    snapshot_drop(w->snapshot);
    cluster_state_drop(w->state);
    free(w->ring);
}

static void adopt_again(struct world *w)
{
    struct snapshot *old = w->snapshot;

    adopt(w, DETECTION_ENFORCE, HOSTS);
    snapshot_drop(old);
}

static void pass(struct world *w, span_ns span)
{
    mono_ns end = w->now + span;

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

static uint32_t out(struct world *w)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < HOSTS; i++)
        bits |= (host_health(host(w, i)) == HOST_EJECTED ? 1u : 0u) << i;
    return bits;
}

static uint64_t stat(const struct world *w, enum outlier_metric m)
{
    return cell_read(&w->state->outlier[m]);
}

static void put(struct world *w, uint32_t slot, enum evidence_outcome outcome, uint32_t us,
                uint8_t flags)
{
    const struct evidence e = {.at = w->now,
                               .cluster = w->state,
                               .host = slot,
                               .outcome = (uint8_t)outcome,
                               .flags = flags,
                               .first_us = us};

    if (evidence_ring_put(w->ring, &e) == EVIDENCE_PUT_TELL)
        outlier_watch_wake(w->watch, w->now);
}

/* Twenty requests a second and host, those of |bad| |times| slower, |failing| percent fail. */
static void serve(struct world *w, uint32_t bad, double times, uint32_t failing, span_ns span)
{
    for (mono_ns end = w->now + span; w->now < end; pass(w, 50 * MS)) {
        for (uint32_t i = 0; i < HOSTS; i++) {
            bool is_bad = (bad & 1u << i) != 0;
            double us = (12000 + 16000 * rng_unit(&w->rng)) * (is_bad ? times : 1);

            if (rng_below(&w->rng, HOST_WHOLE) >= host_share(host(w, i)))
                continue;
            if (is_bad && rng_below(&w->rng, 100) < failing)
                put(w, i, EVIDENCE_ERROR, 900, 0);
            else
                put(w, i, EVIDENCE_OK, (uint32_t)us, 0);
        }
    }
}

#define EAST  (1u << 0 | 1u << 3 | 1u << 6)
#define WEST  (1u << 1 | 1u << 4 | 1u << 7)
#define NEWER (1u << 6 | 1u << 7 | 1u << 8)

static void shares_are_cut_of(struct world *w, uint32_t who)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        bool cut = host_share(host(w, i)) < HOST_WHOLE;

        assert_int_equal(cut, (who & 1u << i) != 0);
    }
}

/* --- zones and versions --- */

static void a_bad_zone_loses_its_share_and_no_host(void **state)
{
    static const struct {
        double times;
        uint32_t failing;
    } each[] = {{5, 0}, {1, 60}};
    struct world w;
    (void)state;

    for (size_t i = 0; i < 2; i++) {
        start(&w, DETECTION_ENFORCE, HOSTS);
        serve(&w, 0, 1, 0, 8 * S);
        assert_int_equal(stat(&w, OUTLIER_STAT_verdict), SCOPE_NONE);
        serve(&w, EAST, each[i].times, each[i].failing, 6 * S);
        assert_int_equal(out(&w), 0);
        assert_int_equal(stat(&w, OUTLIER_STAT_verdict), SCOPE_ZONE);
        shares_are_cut_of(&w, EAST);
        assert_non_null(strstr(w.said, "cluster.verdict cluster shop: zone east"));
        serve(&w, 0, 1, 0, 60 * S);
        assert_int_equal(stat(&w, OUTLIER_STAT_verdict), SCOPE_NONE);
        shares_are_cut_of(&w, 0);
        stop(&w);
    }
}

static void two_bad_zones_lose_nothing(void **state)
{
    struct world w;
    (void)state;

    start(&w, DETECTION_ENFORCE, HOSTS);
    serve(&w, 0, 1, 0, 8 * S);
    serve(&w, EAST | WEST, 5, 0, 6 * S);
    assert_int_equal(out(&w), 0);
    assert_true(stat(&w, OUTLIER_STAT_verdict) != SCOPE_NODES);
    shares_are_cut_of(&w, 0);
    stop(&w);
}

static void a_bad_version_is_named_and_nobody_goes(void **state)
{
    struct world w;
    (void)state;

    start(&w, DETECTION_ENFORCE, 6);
    serve(&w, 0, 1, 0, 8 * S);
    serve(&w, NEWER, 1, 60, 6 * S);
    assert_int_equal(out(&w), 0);
    assert_int_equal(stat(&w, OUTLIER_STAT_verdict), SCOPE_VERSION);
    assert_int_equal(stat(&w, OUTLIER_STAT_ejections_enforced_total), 0);
    assert_non_null(strstr(w.said, "cluster.verdict cluster shop: version 2"));
    assert_non_null(strstr(w.said, "roll it back"));
    assert_true(stat(&w, OUTLIER_STAT_accusations_held_by_verdict) > 0);
    stop(&w);
}

static void who_observes_sees_the_zone_and_cuts_nothing(void **state)
{
    struct world w;
    (void)state;

    start(&w, DETECTION_OBSERVE, HOSTS);
    serve(&w, 0, 1, 0, 8 * S);
    serve(&w, EAST, 1, 60, 6 * S);
    assert_int_equal(stat(&w, OUTLIER_STAT_verdict), SCOPE_ZONE);
    shares_are_cut_of(&w, 0);
    stop(&w);
}

static void a_zone_behind_a_lossy_path_is_bad(void **state)
{
    struct world w;
    (void)state;

    start(&w, DETECTION_ENFORCE, HOSTS);
    for (uint32_t i = 0; i < HOSTS; i++)
        atomic_store(&host(&w, i)->path.retransmits, 1000); /* before it was watched: no sign */
    adopt_again(&w);
    serve(&w, 0, 1, 0, 8 * S);
    for (int n = 0; n < 12; n++, serve(&w, 0, 1, 0, 500 * MS)) {
        for (uint32_t i = 0; i < HOSTS; i++) {
            atomic_fetch_add(&host(&w, i)->path.requests, 10);
            atomic_fetch_add(&host(&w, i)->path.retransmits, (EAST & 1u << i) != 0 ? 2 : 0);
        }
    }
    assert_int_equal(stat(&w, OUTLIER_STAT_verdict), SCOPE_ZONE);
    assert_non_null(strstr(w.said, "zone east; by retransmits"));
    shares_are_cut_of(&w, EAST);
    stop(&w);
}

/* --- we ourselves --- */

static void what_a_late_worker_waited_for_accuses_nobody(void **state)
{
    struct world w;
    (void)state;

    start(&w, DETECTION_ENFORCE, HOSTS);
    serve(&w, 0, 1, 0, 8 * S);
    for (int n = 0; n < 40; n++) {
        put(&w, 4, EVIDENCE_TIMEOUT, 2000000, EVIDENCE_DOUBTFUL);
        put(&w, 4, EVIDENCE_LATE, 2000000, EVIDENCE_DOUBTFUL);
        pass(&w, 50 * MS);
    }
    assert_int_equal(out(&w), 0);
    assert_int_equal(stat(&w, OUTLIER_STAT_evidence_void), 80);
    assert_int_equal(stat(&w, OUTLIER_STAT_verdict), SCOPE_CALLER);
    for (int n = 0; n < 40; n++) {
        put(&w, 4, EVIDENCE_ERROR, 900, EVIDENCE_DOUBTFUL);
        serve(&w, 0, 1, 0, 50 * MS);
    }
    assert_int_equal(out(&w), 1u << 4);
    stop(&w);
}

/* --- connections that hang --- */

static void late(struct world *w, uint32_t us, uint8_t flags, uint32_t n)
{
    while (n-- > 0) {
        put(w, 4, EVIDENCE_LATE, us, flags);
        serve(w, 0, 1, 0, 50 * MS);
    }
}

/* What the journal's half seconds make of its sum. */
static double shown_age(struct world *w)
{
    const struct detect_host *d = host(w, 4)->detected;

    return fmax(d->from[DETECT_AGE] + d->gain[DETECT_AGE], d->least[DETECT_AGE]);
}

static void hung_connections_are_given_up_and_the_host_stays(void **state)
{
    struct world w;
    uint32_t news;
    (void)state;

    start(&w, DETECTION_ENFORCE, HOSTS);
    serve(&w, 0, 1, 0, 8 * S);
    news = w.news;
    late(&w, 300000, 0, 1);
    assert_int_equal(atomic_load(&host(&w, 4)->refreshed), 1);
    assert_int_equal(w.news, news + 1);
    assert_int_equal(stat(&w, OUTLIER_STAT_connections_refreshed), 1);
    assert_true(shown_age(&w) > 1);
    put(&w, 4, EVIDENCE_OK, 20000, EVIDENCE_FRESH);
    serve(&w, 0, 1, 0, 50 * MS);
    assert_true(shown_age(&w) < 1e-9);
    late(&w, 2000000, 0, 20); /* all of them went out before */
    assert_int_equal(out(&w), 0);
    assert_int_equal(life_serves(&host(&w, 4)->life), true);
    assert_int_equal(atomic_load(&host(&w, 4)->refreshed), 1);
    stop(&w);
}

static void a_host_whose_fresh_connections_hang_too_goes(void **state)
{
    struct world w;
    (void)state;

    start(&w, DETECTION_ENFORCE, HOSTS);
    serve(&w, 0, 1, 0, 8 * S);
    for (int n = 0; n < 30 && out(&w) == 0; n++) {
        put(&w, 4, EVIDENCE_LATE, n < 4 ? 300000 : 100000, n < 4 ? 0 : EVIDENCE_FRESH);
        for (uint32_t i = 0; i < HOSTS; i++)
            if (i != 4)
                put(&w, i, EVIDENCE_OK, 20000, 0);
        pass(&w, 50 * MS);
    }
    assert_int_equal(out(&w), 1u << 4);
    assert_int_equal(stat(&w, OUTLIER_STAT_connections_refreshed), 1);
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_zone_loses_its_share_and_no_host),
        cmocka_unit_test(two_bad_zones_lose_nothing),
        cmocka_unit_test(a_bad_version_is_named_and_nobody_goes),
        cmocka_unit_test(who_observes_sees_the_zone_and_cuts_nothing),
        cmocka_unit_test(a_zone_behind_a_lossy_path_is_bad),
        cmocka_unit_test(what_a_late_worker_waited_for_accuses_nobody),
        cmocka_unit_test(hung_connections_are_given_up_and_the_host_stays),
        cmocka_unit_test(a_host_whose_fresh_connections_hang_too_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
