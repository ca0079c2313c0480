/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded evidence through a watch of its own, as if so many workers had seen it. */
#ifndef TESTS_SIM_DETECTION_REPLAY_H
#define TESTS_SIM_DETECTION_REPLAY_H

#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "base/wheel.h"
#include "control/outlier_watch.h"
#include "model/snapshot.h"
#include "policy/evidence_ring.h"

#define REPLAY_TEXT_MAX (1u << 20)
#define REPLAY_HOSTS    10
#define REPLAY_RINGS    4

struct replay {
    struct log log;
    struct clock clock;
    struct wheel wheel;
    struct mailbox inbox; /* the workers': what is told them is for another test */
    struct mailbox *inboxes[REPLAY_RINGS];
    struct evidence_ring *rings;
    struct outlier_watch *watch;
    struct snapshot *snapshot;
    struct cluster_state *state;
    mono_ns now;
    char *text; /* the log so far, with its times */
    size_t length;
};

__attribute__((format(printf, 4, 0))) static inline void
replay_write(struct log *l, enum log_level level, const char *event, const char *format,
             va_list args)
{
    struct replay *r = CONTAINER_OF(l, struct replay, log);
    char *to = r->text + r->length;
    size_t room = REPLAY_TEXT_MAX - r->length;
    int n = snprintf(to, room, "%llu %d %s ", (unsigned long long)r->now, (int)level, event);

    n += vsnprintf(to + n, room - (size_t)n, format, args);
    n += snprintf(to + n, room - (size_t)n, "\n");
    assert_true((size_t)n < room);
    r->length += (size_t)n;
}

static inline bool replay_post(struct mailbox *m, const struct message *what)
{
    (void)m;
    (void)what;
    return true;
}

static const struct mailbox_ops replay_inbox = {.post = replay_post};

static inline void replay_snapshot(struct replay *r, const struct rig_settings *settings)
{
    struct snapshot *s = snapshot_create();
    struct cluster *c = arena_take(&s->arena, sizeof(*c));
    struct endpoint *endpoints = arena_take(&s->arena, REPLAY_HOSTS * sizeof(*endpoints));

    for (uint32_t i = 0; i < REPLAY_HOSTS; i++)
        endpoints[i] = (struct endpoint){.text = BYTES("host"), .slot = i};
    r->state = cluster_state_create(REPLAY_HOSTS, 1);
    *c = settings->cluster;
    c->name = BYTES("backend");
    c->endpoints = endpoints;
    c->endpoint_count = REPLAY_HOSTS;
    c->hosts = r->state->hosts;
    c->state = cluster_state_take(r->state);
    s->clusters = c;
    s->cluster_count = 1;
    r->snapshot = s;
}

static inline void replay_start(struct replay *r, const struct rig_settings *settings,
                                uint32_t rings, mono_ns now)
{
    const struct outlier_watch_setup setup = {
        .wheel = &r->wheel,
        .clock = &r->clock,
        .log = &r->log,
        .workers = r->inboxes,
        .rings = r->rings,
        .worker_count = rings,
        .seed = 1,
    };

    r->log.write = replay_write;
    r->inbox.ops = &replay_inbox;
    for (uint32_t i = 0; i < REPLAY_RINGS; i++)
        r->inboxes[i] = &r->inbox;
    r->now = now;
    wheel_init(&r->wheel, now);
    r->watch = outlier_watch_create(&setup);
    assert_non_null(r->watch);
    replay_snapshot(r, settings);
    assert_true(outlier_watch_adopt(r->watch, r->snapshot, now));
    outlier_watch_wake(r->watch, now);
}

static inline void replay_until(struct replay *r, mono_ns at)
{
    while (wheel_next(&r->wheel) <= at) {
        r->now = wheel_next(&r->wheel) > r->now ? wheel_next(&r->wheel) : r->now;
        (void)wheel_run(&r->wheel, r->now);
    }
    r->now = at > r->now ? at : r->now;
}

/* What each host has come to, as the balancers are told. */
static inline void replay_tell_hosts(struct replay *r)
{
    for (uint32_t i = 0; i < REPLAY_HOSTS; i++) {
        const struct host *h = r->state->hosts.at[i];

        r->length +=
            (size_t)snprintf(r->text + r->length, REPLAY_TEXT_MAX - r->length,
                             "host %u: health %d cut %u probes %u\n", i, (int)host_health(h),
                             (unsigned)atomic_load(&h->cut), (unsigned)atomic_load(&h->probes));
    }
}

/*
 * |count| samples in the order of their telling, dealt to |rings| workers at random; |text| is all
 * that was decided and said.
 */
static inline void replay(const struct rig_settings *settings, const struct evidence *at,
                          uint32_t count, uint32_t rings, char *text)
{
    struct replay *r = memory_take(sizeof(*r));
    struct rng rng;

    rng_init(&rng, rings);
    r->rings = memory_take_array(rings, sizeof(*r->rings));
    r->text = text;
    replay_start(r, settings, rings, at[0].at);
    for (uint32_t i = 0; i < count; i++) {
        struct evidence e = at[i];

        replay_until(r, e.at);
        e.cluster = r->state;
        assert_true(evidence_ring_put(&r->rings[rng_below(&rng, rings)], &e) <= EVIDENCE_PUT_TELL);
    }
    replay_until(r, r->now + 5 * NS_PER_S);
    replay_tell_hosts(r);
    outlier_watch_free(r->watch);
    snapshot_drop(r->snapshot);
    cluster_state_drop(r->state);
    memory_give(r->rings);
    memory_give(r);
}

#endif
