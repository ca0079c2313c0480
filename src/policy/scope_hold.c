/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zone or version that is bad gets few requests, and soon there is too little evidence to say so
 * again. That is no sign of its being well: it is held to be bad until what it still gets speaks
 * for the contrary, of all its hosts together or of so many that too few are left, by as many nats
 * as a suspicion takes (CUSUMs: Page, 1954).
 */
#include <math.h>
#include <stddef.h>

#include "policy/scope_parts.h"

#define HALF 0.5 /* well is what is nearer to the others than to what it was */

const struct scope_verdict *scope_held(const struct scope *s, enum scope_by by, uint32_t g)
{
    return g < SCOPE_GROUPS_MAX && s->holds[by][g].on ? &s->holds[by][g].how : NULL;
}

/* --- what came in the half second --- */

void scope_count_since(struct scope *s, enum scope_sign first, enum scope_sign last)
{
    for (uint32_t i = 0; i < s->judge->count; i++) {
        for (uint32_t kind = first; kind <= (uint32_t)last; kind++) {
            struct detect_rate *since = &s->hosts[i].since[kind];

            since->tries = fmax(0, since->tries + scope_rate(s, i, kind)->tries);
            since->bad = fmax(0, fmin(since->tries, since->bad + scope_rate(s, i, kind)->bad));
        }
    }
}

/* What is there already does not count. */
static void begin_count(struct scope *s)
{
    for (uint32_t i = 0; i < s->judge->count; i++) {
        for (uint32_t kind = 0; kind < SCOPE_RATE_COUNT; kind++) {
            const struct detect_rate *now = scope_rate(s, i, kind);

            s->hosts[i].since[kind] = (struct detect_rate){-now->tries, -now->bad};
        }
    }
}

/* --- what it says for a host --- */

static double by_rate(const struct scope *s, uint32_t index, const struct scope_verdict *how)
{
    const struct detect_rate *since = &s->hosts[index].since[how->sign];
    double still = fmax(how->others, fmin(HALF * how->share, SHARE_MOST));

    return (since->tries - since->bad) * log((1 - how->others) / (1 - still)) -
           since->bad * log(still / how->others);
}

/* What most of the group's hosts lag by, and at least what it takes to be bad. */
static double lag_of(const struct scope_group *g, const struct scope_verdict *how, double place)
{
    double middle = g->known == 0 || isnan(place) ? 0 : scope_reached(g, MIDDLE) - place;

    return fmax(fmax(how->ratio, GATE), middle);
}

/* Medians of normal spread, by how much of each is new. */
static double by_latency(const struct scope *s, const struct scope_table *t, uint32_t index,
                         const struct scope_verdict *how)
{
    const struct scope_host *h = &s->hosts[index];
    double fresh = fmin(1, h->since[DETECT_OF_ERRORS].tries / PEER_RECENT);
    double place = scope_place(s, t, how->group), one = scope_deviation(s);
    double bad = lag_of(&t->groups[how->group], how, place);

    if (!h->known || isnan(place))
        return 0;
    return fresh * bad * (bad * HALF - (h->shift - place)) / (one * one);
}

static bool fails(const struct scope *s, uint32_t index)
{
    for (uint32_t kind = 0; kind < SCOPE_RATE_COUNT; kind++) {
        const struct detect_rate *r = scope_rate(s, index, kind);

        if (r->bad >= BAD_LEAST * fmax(r->tries, TRIES_LEAST))
            return true;
    }
    return false;
}

static double nats_for(const struct scope *s, const struct scope_table *t, uint32_t index,
                       const struct scope_verdict *how)
{
    if (how->sign < (enum scope_sign)SCOPE_RATE_COUNT)
        return by_rate(s, index, how);
    return how->sign == SCOPE_BY_MARKS && fails(s, index) ? 0 : by_latency(s, t, index, how);
}

/* --- turns --- */

/* True: it is well. */
static bool learn(struct scope *s, const struct scope_table *t, uint32_t g)
{
    struct scope_hold *h = &s->holds[t->by][g];
    double enough = s->judge->config.threshold * HALF, sum = 0;
    uint32_t left = 0;

    for (uint32_t i = 0; i < s->judge->count; i++) {
        double *well = &s->hosts[i].well[t->by];
        double nats;

        if (s->hosts[i].group[t->by] != g || !scope_takes_part(s, i))
            continue;
        nats = nats_for(s, t, i, &h->how);
        sum += nats;
        *well = fmin(fmax(0, *well + nats), 2 * enough);
        left += *well <= enough;
    }
    h->well = fmax(0, h->well + sum);
    return h->well > enough || left < t->share * t->groups[g].hosts;
}

static void renew(struct scope *s, enum scope_by by, const struct scope_verdict *how)
{
    s->holds[by][how->group] = (struct scope_hold){.on = true, .how = *how};
}

void scope_begin_hold(struct scope *s, enum scope_by by, const struct scope_verdict *how)
{
    if (how->group >= SCOPE_GROUPS_MAX || s->holds[by][how->group].on)
        return;
    renew(s, by, how);
    for (uint32_t i = 0; i < s->judge->count; i++) {
        if (s->hosts[i].group[by] == how->group)
            s->hosts[i].well[by] = 0;
    }
}

static void turn_group(struct scope *s, const struct scope_table *t, uint32_t g)
{
    struct scope_verdict v;

    if (scope_is_bad(s, t, g, &v)) {
        scope_begin_hold(s, t->by, &v);
        renew(s, t->by, &v);
    }
    if (s->holds[t->by][g].on && learn(s, t, g))
        s->holds[t->by][g].on = false;
}

static void turn_groups(struct scope *s, enum scope_by by, double share)
{
    struct scope_table t = {.by = by, .share = share};

    scope_count(s, &t);
    for (uint32_t g = 0; g < SCOPE_GROUPS_MAX; g++) {
        if (t.groups[g].hosts > 0)
            turn_group(s, &t, g);
    }
}

void scope_turn_holds(struct scope *s)
{
    turn_groups(s, SCOPE_ZONES, ZONE_SHARE);
    turn_groups(s, SCOPE_VERSIONS, VERSION_SHARE);
    begin_count(s);
}
