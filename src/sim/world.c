/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <math.h>

#include "base/list.h"
#include "base/memory.h"

/* Turns in a row within one millisecond in which nothing was told to anybody: more is a spin. */
#define IDLE_TURNS_MAX 1000

/* Not zero, so that nobody mistakes "never" for "at the beginning". */
#define BEGINNING (1000 * NS_PER_S)
#define WALL      (UINT64_C(1767225600) * NS_PER_S) /* 2026-01-01 */

/* --- time --- */

static mono_ns read_clock(struct clock *c)
{
    return ((struct world *)(void *)c)->now;
}

static wall_ns read_wall(struct clock *c)
{
    struct world *w = (struct world *)(void *)c;

    return w->wall + (w->now - w->begun);
}

void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){
        .clock = {.read = read_clock, .wall = read_wall},
        .now = BEGINNING,
        .begun = BEGINNING,
        .wall = WALL,
        .seed = seed,
        .digest = UINT64_C(0xcbf29ce484222325),
    };
    rng_init(&w->rng, seed);
}

void world_release(struct world *w)
{
    memory_give(w->heap);
    w->heap = NULL;
    w->count = 0;
    w->room = 0;
}

void world_step_wall(struct world *w, int64_t by_ns)
{
    w->wall += (uint64_t)by_ns;
}

/* --- the heap of events --- */

static bool earlier(const struct world_event *a, const struct world_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct world *w, uint32_t place, struct world_event *e)
{
    w->heap[place - 1] = e;
    e->place = place;
}

static void sift_up(struct world *w, struct world_event *e)
{
    uint32_t place = e->place;

    while (place > 1 && earlier(e, w->heap[place / 2 - 1])) {
        put(w, place, w->heap[place / 2 - 1]);
        place /= 2;
    }
    put(w, place, e);
}

static void sift_down(struct world *w, struct world_event *e)
{
    uint32_t place = e->place;

    for (uint32_t child = 2 * place; child <= w->count; child = 2 * place) {
        if (child < w->count && earlier(w->heap[child], w->heap[child - 1]))
            child++;
        if (!earlier(w->heap[child - 1], e))
            break;
        put(w, place, w->heap[child - 1]);
        place = child;
    }
    put(w, place, e);
}

static bool grow(struct world *w)
{
    uint32_t room = w->room == 0 ? 256 : 2 * w->room;
    struct world_event **heap = memory_resize(w->heap, room * sizeof(struct world_event *));

    if (heap == NULL)
        return false;
    w->heap = heap;
    w->room = room;
    return true;
}

void world_arm(struct world *w, struct world_event *e, mono_ns at)
{
    if (at == MONO_NEVER) {
        world_cancel(w, e);
        return;
    }
    if (e->place == 0 && w->count == w->room && !grow(w)) {
        world_fail(w, "simulator", "out of memory", w->count);
        return;
    }
    e->at = at < w->now ? w->now : at;
    e->order = w->order++;
    if (e->place == 0)
        put(w, ++w->count, e);
    sift_up(w, e);
    sift_down(w, e);
}

void world_cancel(struct world *w, struct world_event *e)
{
    struct world_event *last;

    if (e->place == 0)
        return;
    last = w->heap[--w->count];
    if (last != e) {
        put(w, e->place, last);
        sift_up(w, last);
        sift_down(w, last);
    }
    e->place = 0;
    e->at = MONO_NEVER;
}

/* --- loops --- */

static void check_spin(struct world_loop *l, mono_ns now)
{
    uint64_t ms = now / NS_PER_MS;

    if (l->progress != l->seen_progress || ms != l->idle_ms) {
        l->seen_progress = l->progress;
        l->idle_ms = ms;
        l->idle_turns = 0;
        return;
    }
    if (++l->idle_turns > IDLE_TURNS_MAX)
        world_fail(l->world, "no spin", "a loop asks for turns without end; turns so far",
                   l->turns);
}

static void arm_turn(struct world_loop *l, mono_ns at)
{
    if (at < l->held_until)
        at = l->held_until;
    if (!world_armed(&l->turn) || at < l->turn.at)
        world_arm(l->world, &l->turn, at);
}

static void take_turn(struct world_event *e, mono_ns now)
{
    struct world_loop *l = CONTAINER_OF(e, struct world_loop, turn);
    struct world *w = l->world;
    mono_ns at;

    l->woken = false;
    l->turns++;
    l->ops->turn(l->owner);
    if (l->ops->done(l->owner))
        l->over = true;
    check_spin(l, now);
    at = l->over ? MONO_NEVER : l->ops->wakeup(l->owner);
    arm_turn(l, at);
    for (struct world_watch *watch = w->watch; watch != NULL; watch = watch->next)
        watch->after_turn(watch, now);
}

void world_loop_init(struct world_loop *l, struct world *w, const struct world_loop_ops *ops,
                     void *owner)
{
    *l = (struct world_loop){.world = w, .ops = ops, .owner = owner, .over = true};
    world_event_init(&l->turn, take_turn);
}

void world_loop_start(struct world_loop *l)
{
    l->over = false;
    world_arm(l->world, &l->turn, l->world->now);
}

static span_ns delay(struct world_loop *l)
{
    struct world *w = l->world;

    if (l->prompt)
        return 0;
    if (w->stall != 0 && world_chance(w, w->stall_permille))
        return world_span(w, w->stall);
    return world_span(w, w->turn_delay);
}

void world_loop_wake(struct world_loop *l)
{
    if (l->woken || l->over)
        return;
    l->woken = true;
    arm_turn(l, mono_after(l->world->now, delay(l)));
}

void world_loop_hold(struct world_loop *l, mono_ns until)
{
    l->held_until = until;
    if (until > l->world->now && until - l->world->now > l->world->held)
        l->world->held = until - l->world->now;
    if (world_armed(&l->turn) && l->turn.at < until)
        world_arm(l->world, &l->turn, until);
}

void world_loop_stop(struct world_loop *l)
{
    l->over = true;
    world_cancel(l->world, &l->turn);
}

void world_look_on(struct world *w, struct world_watch *watch)
{
    watch->next = w->watch;
    w->watch = watch;
}

/* --- running --- */

void world_run(struct world *w, mono_ns until)
{
    while (!w->failed && w->count > 0 && w->heap[0]->at <= until) {
        struct world_event *e = w->heap[0];

        w->now = e->at;
        world_cancel(w, e);
        w->fired++;
        e->fire(e, w->now);
    }
    if (!w->failed && until != MONO_NEVER && w->now < until)
        w->now = until;
}

void world_run_for(struct world *w, span_ns d)
{
    world_run(w, mono_after(w->now, d));
}

/* --- the digest --- */

void world_digest_value(struct world *w, uint64_t v)
{
    uint64_t d = (w->digest ^ v) * UINT64_C(0x9e3779b97f4a7c15);

    w->digest = d ^ (d >> 29);
}

void world_digest_bytes(struct world *w, struct bytes b)
{
    uint64_t word;
    size_t at = 0;

    world_digest_value(w, b.len);
    for (; at + sizeof(word) <= b.len; at += sizeof(word)) {
        memcpy(&word, b.data + at, sizeof(word));
        world_digest_value(w, word);
    }
    for (word = 0; at < b.len; at++)
        word = word << 8 | b.data[at];
    world_digest_value(w, word);
}

/* --- chance --- */

span_ns world_span(struct world *w, span_ns most)
{
    return most == 0 ? 0 : (span_ns)(rng_unit(&w->rng) * (double)(most + 1));
}

span_ns world_exponential(struct world *w, span_ns mean)
{
    return (span_ns)(-log(1.0 - rng_unit(&w->rng)) * (double)mean);
}

/* --- failing --- */

void world_fail(struct world *w, const char *law, const char *what, uint64_t which)
{
    struct text t;

    if (w->failed)
        return;
    w->failed = true;
    text_init(&t, w->failure, sizeof(w->failure));
    text_str(&t, law);
    text_str(&t, ": ");
    text_str(&t, what);
    text_str(&t, " (");
    text_u64(&t, which);
    text_str(&t, ") [seed ");
    text_u64(&t, w->seed);
    text_str(&t, ", at ");
    text_double(&t, (double)world_elapsed(w) / (double)NS_PER_S, 6);
    text_str(&t, " s]");
    (void)text_end(&t);
}
