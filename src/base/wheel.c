/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tick written in base 64: a timer lies on the level of the highest digit in which its tick
 * differs from the wheel's, in the slot of its own digit there. So all timers of one tick are in
 * one list at any time, and moving a list down as the wheel enters its slot keeps their order.
 */
#include "base/wheel.h"

#define DIGIT_BITS 6
#define TICK_NS    NS_PER_MS
#define SPAN_BITS  (WHEEL_LEVELS * DIGIT_BITS)
#define NO_TICK    UINT64_MAX

/* The tick at the end of which |at| has come: rounded up, so that nothing fires early. */
static uint64_t tick_of(mono_ns at)
{
    return at / TICK_NS + (at % TICK_NS != 0);
}

static unsigned digit(uint64_t tick, unsigned level)
{
    return (unsigned)(tick >> (level * DIGIT_BITS)) % WHEEL_SLOTS;
}

static struct list *put_in_slot(struct wheel *w, struct timer *t, uint64_t tick, unsigned level)
{
    unsigned slot = digit(tick, level);

    t->level = (uint8_t)level;
    t->slot = (uint8_t)slot;
    w->occupied[level] |= UINT64_C(1) << slot;
    return &w->slots[level][slot];
}

static void place(struct wheel *w, struct timer *t)
{
    uint64_t tick = tick_of(t->at);
    struct list *where;

    if (tick <= w->tick) {
        where = &w->due;
    } else {
        unsigned highest = 63 - (unsigned)__builtin_clzll(tick ^ w->tick);

        where = highest >= SPAN_BITS ? &w->far : put_in_slot(w, t, tick, highest / DIGIT_BITS);
    }
    list_push_back(where, &t->link);
}

/* A timer that has moved on to |due| or |far| still names a slot: to look at it does no harm. */
static void unlink_timer(struct wheel *w, struct timer *t)
{
    list_remove(&t->link);
    if (list_empty(&w->slots[t->level][t->slot]))
        w->occupied[t->level] &= ~(UINT64_C(1) << t->slot);
}

/* Moves all of |from| to the end of |to|. */
static void splice(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

static void place_all(struct wheel *w, struct list *from)
{
    struct list moving;
    struct list *l;

    list_init(&moving);
    splice(&moving, from);
    while ((l = list_pop_front(&moving)) != NULL)
        place(w, CONTAINER_OF(l, struct timer, link));
}

static struct list *empty_slot(struct wheel *w, unsigned level)
{
    unsigned slot = digit(w->tick, level);

    w->occupied[level] &= ~(UINT64_C(1) << slot);
    return &w->slots[level][slot];
}

/* The first tick of the next |level| slot in use on the present turn of that level. */
static uint64_t next_on_level(const struct wheel *w, unsigned level)
{
    unsigned here = digit(w->tick, level);
    unsigned shift = level * DIGIT_BITS;
    uint64_t ahead = w->occupied[level] & (~UINT64_C(1) << here);

    if (ahead == 0)
        return NO_TICK;
    return ((w->tick >> shift) - here + (unsigned)__builtin_ctzll(ahead)) << shift;
}

/* The next tick at which something is to fire or to move down. Lower levels always come first. */
static uint64_t next_tick(const struct wheel *w)
{
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        uint64_t tick = next_on_level(w, level);

        if (tick != NO_TICK)
            return tick;
    }
    return list_empty(&w->far) ? NO_TICK : ((w->tick >> SPAN_BITS) + 1) << SPAN_BITS;
}

static bool at_start_of_slot(const struct wheel *w, unsigned level)
{
    return (w->tick & ((UINT64_C(1) << (level * DIGIT_BITS)) - 1)) == 0;
}

/* The wheel enters |tick|: what lay there moves down, and what is of this tick becomes due. */
static void enter(struct wheel *w, uint64_t tick)
{
    w->tick = tick;
    if (at_start_of_slot(w, WHEEL_LEVELS))
        place_all(w, &w->far);
    for (unsigned level = WHEEL_LEVELS - 1; level > 0; level--)
        if (at_start_of_slot(w, level))
            place_all(w, empty_slot(w, level));
    splice(&w->due, empty_slot(w, 0));
}

void wheel_init(struct wheel *w, mono_ns now)
{
    w->tick = now / TICK_NS;
    w->armed = 0;
    list_init(&w->due);
    list_init(&w->far);
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        w->occupied[level] = 0;
        for (unsigned slot = 0; slot < WHEEL_SLOTS; slot++)
            list_init(&w->slots[level][slot]);
    }
}

void wheel_arm(struct wheel *w, struct timer *t, mono_ns at)
{
    wheel_cancel(w, t);
    if (at == MONO_NEVER)
        return;
    t->at = at;
    place(w, t);
    w->armed++;
}

void wheel_cancel(struct wheel *w, struct timer *t)
{
    if (!timer_armed(t))
        return;
    unlink_timer(w, t);
    t->at = MONO_NEVER;
    w->armed--;
}

mono_ns wheel_next(const struct wheel *w)
{
    uint64_t tick = list_empty(&w->due) ? next_tick(w) : w->tick;

    return tick > MONO_NEVER / TICK_NS ? MONO_NEVER : tick * TICK_NS;
}

unsigned wheel_run(struct wheel *w, mono_ns now)
{
    uint64_t target = now / TICK_NS;
    struct list firing;
    struct list *l;
    unsigned fired = 0;

    if (target < w->tick || (target == w->tick && list_empty(&w->due)))
        return 0; /* most turns: this tick has fired already */
    for (uint64_t tick = next_tick(w); tick <= target; tick = next_tick(w))
        enter(w, tick);
    w->tick = target;
    /* Apart, so that what a callback arms for the past waits for the next run. */
    list_init(&firing);
    splice(&firing, &w->due);
    while ((l = list_pop_front(&firing)) != NULL) {
        struct timer *t = CONTAINER_OF(l, struct timer, link);

        t->at = MONO_NEVER;
        w->armed--;
        fired++;
        t->fire(t, now);
    }
    return fired;
}
