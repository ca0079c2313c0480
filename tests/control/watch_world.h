/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster under watch, and a worker that tells of its hosts, on a clock of the test's. */
#ifndef TESTS_CONTROL_WATCH_WORLD_H
#define TESTS_CONTROL_WATCH_WORLD_H

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

#define S  NS_PER_S
#define MS NS_PER_MS
#ifndef HOSTS
#define HOSTS 10
#endif
#define BAD 3u

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

__attribute__((format(printf, 4, 0))) static inline void
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

static inline bool hear(struct mailbox *m, const struct message *message)
{
    (void)message;
    CONTAINER_OF(m, struct world, inbox)->news++;
    return true;
}

static inline wall_ns wall(struct clock *c)
{
    (void)c;
    return UINT64_C(1800000000) * S;
}

struct set_up {
    struct detection_config detection;
    struct outlier_config outlier;
};

static inline struct set_up profile(enum detection_profile p)
{
    struct set_up u = {.detection = default_detection, .outlier = default_outlier};

    u.detection.profile = p;
    u.detection.life.quick = p == PROFILE_ADAPTIVE;
    u.detection.life.least_share = p == PROFILE_ADAPTIVE ? 50 : 200;
    u.outlier.return_on_proof = true;
    return u;
}

static inline struct set_up observing(void)
{
    struct set_up u = profile(PROFILE_ADAPTIVE);

    u.detection.mode = DETECTION_OBSERVE;
    u.outlier.return_on_proof = false;
    return u;
}

/* With the hosts whose bit is set in |who|. */
static inline struct snapshot *make(struct world *w, const struct set_up *u, uint32_t who)
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

static inline void start_bare(struct world *w)
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

static inline void adopt(struct world *w, const struct set_up *u, uint32_t who)
{
    struct snapshot *next = make(w, u, who);

    assert_true(outlier_watch_adopt(w->watch, next, w->now));
    if (w->snapshot != NULL)
        snapshot_drop(w->snapshot);
    w->snapshot = next;
}

static inline void start(struct world *w, const struct set_up *u)
{
    start_bare(w);
    adopt(w, u, ALL);
}

static inline void stop(struct world *w)
{
    outlier_watch_free(w->watch);
    assert_true(wheel_next(&w->wheel) == MONO_NEVER);
    snapshot_drop(w->snapshot);
    cluster_state_drop(w->state);
    free(w->ring);
}

static inline void pass_to(struct world *w, mono_ns end)
{
    while (wheel_next(&w->wheel) <= end) {
        w->now = wheel_next(&w->wheel) > w->now ? wheel_next(&w->wheel) : w->now;
        wheel_run(&w->wheel, w->now);
    }
    w->now = end;
}

static inline struct host *host(struct world *w, uint32_t slot)
{
    return w->state->hosts.at[slot];
}

static inline bool out(struct world *w, uint32_t slot)
{
    return host_health(host(w, slot)) == HOST_EJECTED;
}

static inline enum life_state life(struct world *w, uint32_t slot)
{
    return host(w, slot)->life.state;
}

static inline bool said(const struct world *w, const char *event)
{
    return strstr(w->said, event) != NULL;
}

static inline uint64_t stat(const struct world *w, enum outlier_metric m)
{
    return cell_read(&w->state->outlier[m]);
}

/* --- traffic --- */

/* How the bad host is; the others answer in 20 ms, give or take. */
struct badness {
    double slower;
    uint32_t failing; /* percent */
};

static const struct badness fine = {1, 0};

static inline void put(struct world *w, uint32_t slot, enum evidence_outcome outcome, uint32_t us,
                       uint8_t flags)
{
    const struct evidence e = {.at = w->now,
                               .cluster = w->state,
                               .host = slot,
                               .class = CLASS_READ,
                               .outcome = (uint8_t)outcome,
                               .flags = flags,
                               .first_us = us};

    if (evidence_ring_put(w->ring, &e) == EVIDENCE_PUT_TELL)
        outlier_watch_wake(w->watch, w->now);
}

static inline void answer(struct world *w, uint32_t slot, const struct badness *b, uint8_t flags)
{
    double us = 12000 + 16000 * rng_unit(&w->rng);

    if (rng_below(&w->rng, 100) < b->failing)
        put(w, slot, EVIDENCE_GATEWAY, 900, flags);
    else
        put(w, slot, EVIDENCE_OK, (uint32_t)(us * b->slower), flags);
}

/* As the workers do: who is out gets what it is granted, who is cut gets its share. */
static inline void ask(struct world *w, uint32_t slot, const struct badness *b)
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
static inline void serve_among(struct world *w, uint32_t who, const struct badness *b,
                               const struct badness *others, span_ns span)
{
    for (mono_ns end = w->now + span; w->now < end;) {
        for (uint32_t i = 0; i < HOSTS + 2; i++)
            if ((who & 1u << i) != 0)
                ask(w, i, i == BAD ? b : others);
        pass_to(w, w->now + 100 * MS);
    }
}

static inline void serve(struct world *w, uint32_t who, const struct badness *b, span_ns span)
{
    serve_among(w, who, b, &fine, span);
}

#endif
