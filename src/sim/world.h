/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time: a clock, a queue of events, loops that take turns, one seed, one digest. Nothing
 * waits and nothing is threaded; the same seed gives the same run, byte for byte.
 *
 * A loop's turn is an event like any other. A loop that is woken runs a little later (|turn_delay|,
 * rarely |stall|, both drawn from the seed), so that several things can have happened by then, as
 * under a real scheduler.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"
#include "io/clock.h"

#define WORLD_FAILURE_MAX 512

/* An event: embed by value, world_event_init once. */
struct world_event {
    mono_ns at;
    uint64_t order; /* events of one instant fire in the order in which they were armed */
    uint32_t place; /* in the heap, counted from 1; 0: not armed */
    void (*fire)(struct world_event *e, mono_ns now);
};

/* Is called after each turn of a loop: the laws, and who else looks on. */
struct world_watch {
    struct world_watch *next;
    void (*after_turn)(struct world_watch *w, mono_ns now);
};

struct world {
    struct clock clock; /* first: what loops are given as their clock */
    mono_ns now;
    mono_ns begun;
    wall_ns wall; /* at |begun| */
    uint64_t seed;
    struct rng rng;
    uint64_t digest;
    uint64_t order;
    uint64_t fired;
    struct world_event **heap;
    uint32_t count;
    uint32_t room;
    span_ns turn_delay; /* most */
    span_ns stall;      /* most; 0: none */
    uint32_t stall_permille;
    span_ns held;              /* the longest time that a loop was held for */
    struct world_watch *watch; /* the latest; NULL: none */
    bool failed;
    char failure[WORLD_FAILURE_MAX]; /* the first law broken, with seed and time */
};

void world_init(struct world *w, uint64_t seed);
void world_release(struct world *w);

/* --- time --- */

static inline span_ns world_elapsed(const struct world *w)
{
    return w->now - w->begun;
}

/* The wall clock is set to another time, forward or back. The monotonic one does not care. */
void world_step_wall(struct world *w, int64_t by_ns);

/* --- events --- */

static inline void world_event_init(struct world_event *e,
                                    void (*fire)(struct world_event *e, mono_ns now))
{
    *e = (struct world_event){.at = MONO_NEVER, .fire = fire};
}

static inline bool world_armed(const struct world_event *e)
{
    return e->place != 0;
}

/* Arms, or arms anew. An instant in the past fires at once (but never inside the call). */
void world_arm(struct world *w, struct world_event *e, mono_ns at);

/* Takes one that is not armed. */
void world_cancel(struct world *w, struct world_event *e);

/* --- loops --- */

struct world_loop_ops {
    mono_ns (*wakeup)(void *owner); /* when to run, if nothing happens before */
    void (*turn)(void *owner);
    bool (*done)(void *owner); /* no more turns are needed */
};

struct world_loop {
    struct world *world;
    const struct world_loop_ops *ops;
    void *owner;
    struct world_event turn;
    mono_ns held_until; /* it stands still: no turn before */
    bool woken;         /* since the last turn began */
    bool over;          /* done, or stopped */
    bool prompt;        /* no delay: for actors, not for what is under test */
    uint64_t turns;
    uint64_t progress; /* events told to its owner; the poller counts */
    uint64_t seen_progress;
    uint32_t idle_turns; /* in a row, within one millisecond, without progress */
    uint64_t idle_ms;
};

/* Does not start it; the owner may be set later, before world_loop_start. */
void world_loop_init(struct world_loop *l, struct world *w, const struct world_loop_ops *ops,
                     void *owner);
void world_loop_start(struct world_loop *l);

/* Something happened for it: it takes a turn soon. */
void world_loop_wake(struct world_loop *l);

/* No turn before |until|, as of a thread that is stopped. */
void world_loop_hold(struct world_loop *l, mono_ns until);

/* No more turns. */
void world_loop_stop(struct world_loop *l);

/* |watch| outlives the running. */
void world_look_on(struct world *w, struct world_watch *watch);

/* --- running --- */

/* Until nothing is left to happen, a law is broken, or |until| (the clock then stands there). */
void world_run(struct world *w, mono_ns until);

/* For |d| more. */
void world_run_for(struct world *w, span_ns d);

/* --- the digest --- */

void world_digest_value(struct world *w, uint64_t v);
void world_digest_bytes(struct world *w, struct bytes b);

static inline uint64_t world_digest(const struct world *w)
{
    return w->digest;
}

/* --- chance --- */

static inline bool world_chance(struct world *w, uint32_t permille)
{
    return permille != 0 && rng_below(&w->rng, 1000) < permille;
}

/* 0 .. |most|. */
span_ns world_span(struct world *w, span_ns most);

/* Exponential with |mean|. */
span_ns world_exponential(struct world *w, span_ns mean);

/* --- failing --- */

/* A law is broken; only the first is kept. "law 6: two records (request 17) [seed 3, at 12.004 s]"
 */
void world_fail(struct world *w, const char *law, const char *what, uint64_t which);

#endif
