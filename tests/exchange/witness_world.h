/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that is listened to, and what it told. */
#ifndef TESTS_EXCHANGE_WITNESS_WORLD_H
#define TESTS_EXCHANGE_WITNESS_WORLD_H

#include "exchange/witness.h"

#include <stdlib.h>

#include "exchange/exchange_world.h"
#include "policy/evidence_ring.h"

#define MS NS_PER_MS

/* A worker that is listened to. */
struct scene {
    struct fixture f;
    struct witness witness;
    struct evidence_ring *ring;
};

static inline struct fixture *open_scene(struct scene *s)
{
    struct fixture *f = &s->f;

    open_fixture(f, 1);
    s->ring = aligned_alloc(64, sizeof(*s->ring));
    assert_non_null(s->ring);
    memset(s->ring, 0, sizeof(*s->ring));
    s->witness = (struct witness){.ring = s->ring};
    f->rt.witness = &s->witness;
    f->cluster.detection = default_detection;
    f->cluster.connect_failover = false;
    f->route.large_body = 64 * 1024;
    return f;
}

/* The request is over; nothing is held, nothing watched. */
static inline void close_scene(struct scene *s)
{
    if (s->f.x.state == EXCHANGE_DELIVERING)
        SAY(&s->f, EVENT_DELIVERED);
    check_clean(&s->f);
    assert_int_equal(s->witness.open, 0);
    assert_false(s->f.x.watched);
    exchange_release(&s->f.x);
    close_fixture(&s->f);
    free(s->ring);
}

static inline struct evidence told(struct scene *s)
{
    struct evidence e;

    assert_true(evidence_ring_take(s->ring, &e));
    assert_ptr_equal(e.cluster, s->f.cluster.state);
    return e;
}

static inline void told_nothing(struct scene *s)
{
    struct evidence e;

    assert_false(evidence_ring_take(s->ring, &e));
}

/* Told of one attempt, and of no other. */
static inline struct evidence told_only(struct scene *s, enum evidence_outcome outcome)
{
    struct evidence e = told(s);

    assert_int_equal(e.outcome, outcome);
    assert_int_equal(e.at, s->f.now);
    told_nothing(s);
    return e;
}

static inline void connect_and_send(struct fixture *f, bool reused)
{
    SAY(f, EVENT_CONNECTED, .reused = reused);
    assert_int_equal(f->x.state, EXCHANGE_SENT);
    exchange_sent(&f->x, f->now);
}

/* A GET that lies whole with its host, which took 3 ms to connect to. */
static inline void ask(struct fixture *f)
{
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    f->now += 3 * MS;
    connect_and_send(f, false);
}

static inline void wait_for_time(struct fixture *f)
{
    f->now = exchange_wakeup(&f->x);
    SAY(f, EVENT_TIME, .replayable = true);
}

#endif
