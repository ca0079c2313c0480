/* SPDX-License-Identifier: Apache-2.0 */
/* What all hosts have in common: the fleet's, or what is behind it, or before it. */
#include <math.h>
#include <stddef.h>

#include "policy/scope_parts.h"

#define COMMON_RATE   0.1
#define STILL_SHARE   0.5 /* of the hosts, once it is known to be all */
#define CONNECTS_FINE 0.05
#define ALIKE         0.4054651081081644 /* ln 1.5: between most hosts, ... */
#define ALIKE_TIMES   4.0                /* ... or so many deviations; */
#define ALIKE_FROM    0.2                /* most: all but a fifth at each end */

/* Its number, from 1. */
static uint32_t half_second(const struct scope *s)
{
    return s->judge->bucket + 1;
}

static struct scope_group everybody(const struct scope *s)
{
    struct scope_group g = {.hosts = 0};

    for (uint32_t i = 0; i < s->judge->count; i++)
        scope_count_host(&g, s, i);
    return g;
}

/* Whoever answers on connections that stand can be reached, where no other is opened. */
static struct detect_rate rate_of_host(const struct scope *s, uint32_t index, enum scope_sign sign)
{
    struct detect_rate r = *scope_rate(s, index, (uint32_t)sign);
    const struct detect_rate *answers = scope_rate(s, index, DETECT_OF_ERRORS);

    if (sign == SCOPE_BY_CONNECTS && r.tries < TRIES_LEAST)
        r.tries += fmax(0, answers->tries - answers->bad);
    return r;
}

/* Our link was lossy a moment ago; and more is answered than is lost, so they are not just gone. */
static bool is_still_lossy(const struct scope *s)
{
    struct scope_group all = everybody(s);
    const struct detect_rate *answers = &all.rates[DETECT_OF_ERRORS];

    return scope_doubts(s) && answers->tries - answers->bad >= all.rates[SCOPE_BY_PATH].bad;
}

/* So many of the hosts fail |least| or more that it is all of them. */
static bool all_fail(const struct scope *s, enum scope_sign sign, double least,
                     struct scope_verdict *v)
{
    double share = sign == SCOPE_BY_PATH && is_still_lossy(s) ? STILL_SHARE : ZONE_SHARE;

    *v = (struct scope_verdict){.sign = sign};
    for (uint32_t i = 0; i < s->judge->count; i++) {
        struct detect_rate r = rate_of_host(s, i, sign);

        if (!scope_takes_part(s, i) || r.tries < TRIES_LEAST)
            continue;
        v->of++;
        v->hosts += r.bad >= least * r.tries;
        v->share += r.bad / r.tries;
    }
    v->share = v->of == 0 ? 0 : v->share / v->of;
    v->others = v->share;
    return v->of >= GROUP_LEAST && v->hosts >= share * v->of;
}

/* By the share that fails of what it was given. */
#define RATE_BINS 32

struct rates {
    uint32_t hosts[RATE_BINS];
    struct detect_rate sums[RATE_BINS];
    uint32_t count;
};

static void count_rate(struct rates *all, const struct detect_rate *r)
{
    uint32_t bin = (uint32_t)fmin(RATE_BINS * fmin(r->bad / r->tries, 1), RATE_BINS - 1);

    all->count++;
    all->hosts[bin]++;
    all->sums[bin].tries += r->tries;
    all->sums[bin].bad += r->bad;
}

/* The sum of so many of the hosts, those that fail least. */
static struct detect_rate rate_of_best(const struct rates *all, uint32_t hosts)
{
    struct detect_rate sum = {0, 0};

    for (uint32_t bin = 0; bin < RATE_BINS && hosts > 0; bin++) {
        uint32_t taken = all->hosts[bin] < hosts ? all->hosts[bin] : hosts;
        double part = taken == 0 ? 0 : (double)taken / all->hosts[bin];

        sum.tries += part * all->sums[bin].tries;
        sum.bad += part * all->sums[bin].bad;
        hosts -= taken;
    }
    return sum;
}

#define BEST_RATE (COMMON_RATE / 3) /* where all fail COMMON_RATE, the best seem to fail that */

/*
 * Where all fail one in ten some are above that at any time, and some are below. Nearly all fail
 * where those do, taken together, without which it were not nearly all.
 */
static bool best_fail(const struct scope *s, enum scope_sign sign, struct scope_verdict *v)
{
    struct rates all = {.count = 0};
    struct detect_rate best;

    for (uint32_t i = 0; i < s->judge->count; i++) {
        struct detect_rate r = rate_of_host(s, i, sign);

        if (scope_takes_part(s, i) && r.tries >= TRIES_LEAST)
            count_rate(&all, &r);
    }
    *v = (struct scope_verdict){
        .sign = sign, .hosts = (uint32_t)ceil(ZONE_SHARE * all.count), .of = all.count};
    best = rate_of_best(&all, all.count + 1 - v->hosts);
    v->share = best.tries > 0 ? best.bad / best.tries : 0;
    v->others = v->share;
    v->nats = scope_nats(&best, USUAL_BAD);
    return v->hosts >= GROUP_LEAST && v->share >= BEST_RATE && v->nats > s->judge->config.threshold;
}

/* --- before it: our own link --- */

#define PATH_USUAL 0.02 /* retransmits a request: some paths have that */
#define STILL_NATS 0.25 /* of the threshold: where there are few requests, a few are not lost */

struct scope_verdict scope_of_path(const struct scope *s)
{
    double least = s->judge->config.threshold * (is_still_lossy(s) ? STILL_NATS : 1);
    struct scope_group all = everybody(s);
    struct scope_verdict v;

    if (!all_fail(s, SCOPE_BY_PATH, BAD_LEAST, &v))
        return v;
    v.others = PATH_USUAL;
    v.nats = scope_nats(&all.rates[SCOPE_BY_PATH], PATH_USUAL);
    if (v.nats > least)
        v.kind = SCOPE_CALLER;
    return v;
}

/* --- how much is asked --- */

#define DEMAND_KEEPS 0.8 /* of what was asked, from one half second to the next */
#define DEMAND_LEAST 1.2 /* times the usual */
#define DEMAND_SLACK 6   /* half seconds: what came of it may be seen before it */

void scope_learn_demand(struct scope *s, double requests)
{
    s->demand.now += requests;
}

/* Hosts that get their whole share, or so many as the parts of them make. */
static double shares_of(const struct scope *s)
{
    double shares = 0;

    for (uint32_t i = 0; i < s->judge->count; i++) {
        const struct detect_host *h = s->judge->hosts[i];

        shares += h->serving ? 1 - h->cut / 1000.0 : 0;
    }
    return shares;
}

/* Of each host lately, to what is usual; 0: not known. */
static double demand_of(const struct scope_demand *d)
{
    double expected = d->usual * d->shares;

    return d->learnt < SCOPE_LEARNING || expected <= 0 ? 0 : d->requests / expected;
}

/* By more than chance. */
static bool is_in_demand(const struct scope *s)
{
    const struct scope_demand *d = &s->demand;
    double times = demand_of(d);

    return times >= DEMAND_LEAST &&
           d->usual * d->shares * (times * log(times) - times + 1) > s->judge->config.threshold;
}

/* At first the mean, then what it was in the last minutes. */
static void learn_demand(struct scope *s, double shares)
{
    struct scope_demand *d = &s->demand;
    double speed = s->now.kind == SCOPE_NONE ? USUAL_SPEED : SLOW_SPEED;

    if (shares <= 0)
        return;
    if (s->now.kind == SCOPE_NONE || d->learnt < SCOPE_LEARNING)
        speed = fmax(speed, 1.0 / ++d->learnt);
    d->usual += speed * (d->now / shares - d->usual);
}

static void learn_order(struct scope *s)
{
    if (s->common_since == 0)
        s->demand.first = false;
    else if (half_second(s) - s->common_since <= DEMAND_SLACK && is_in_demand(s))
        s->demand.first = true;
}

static void turn_demand(struct scope *s)
{
    struct scope_demand *d = &s->demand;
    double shares = shares_of(s);

    d->requests = DEMAND_KEEPS * d->requests + d->now;
    d->shares = DEMAND_KEEPS * d->shares + shares;
    learn_order(s);
    learn_demand(s, shares);
    d->now = 0;
}

/* --- how much there is --- */

#define FULL  0.9 /* of its capacity, by the hosts' own word */
#define SPARE 0.7

/* Of the hosts' capacity, what they report; negative: too few do. */
static double reported_load(const struct scope *s)
{
    double used = 0;
    uint32_t serving = 0, reporting = 0;

    for (uint32_t i = 0; i < s->judge->count; i++) {
        const struct detect_host *h = s->judge->hosts[i];

        serving += h->serving;
        reporting += h->serving && h->reports;
        used += h->serving && h->reports ? h->utilization : 0;
    }
    return reporting == 0 || reporting * 2 < serving ? -1 : used / reporting;
}

static bool any_stands_out(const struct scope *s)
{
    for (uint32_t i = 0; i < s->judge->count; i++) {
        const struct detect_host *h = s->judge->hosts[i];

        if (h->serving && h->rated && h->ratio >= h->gate && h->ratio - h->usual >= h->gate / 2)
            return true;
    }
    return false;
}

static bool is_short_of_capacity(const struct scope *s)
{
    double load = reported_load(s);

    if (any_stands_out(s) || (load >= 0 && load < SPARE))
        return false;
    return load >= FULL || s->judge->saturated || s->demand.first;
}

/* --- how far apart they are --- */

#define SPREAD_LEAST 20.0          /* pairs of places, to go by them */
#define ALIKE_SPREAD (0.14 * 0.14) /* natural logarithm: hosts a seventh apart are alike */

static double mean_place(const struct scope *s)
{
    double sum = 0, n = 0;

    for (uint32_t i = 0; i < s->judge->count; i++) {
        sum += s->hosts[i].known ? s->hosts[i].shift - s->judge->hosts[i]->usual : 0;
        n += s->hosts[i].known;
    }
    return n == 0 ? 0 : sum / n;
}

static void place_host(struct scope *s, uint32_t index, double mean)
{
    struct scope_host *h = &s->hosts[index];
    double *then = &h->places[s->judge->bucket % SCOPE_PLACES];
    double now = h->known ? h->shift - s->judge->hosts[index]->usual - mean : (double)NAN;
    double product = now * *then;

    *then = now;
    if (s->common_since == 0 || half_second(s) - s->common_since < SCOPE_PLACES || isnan(product))
        return;
    s->spread.sum += product;
    s->spread.weight += 1;
}

static void turn_spread(struct scope *s)
{
    double mean = mean_place(s);

    if (s->common_since == 0)
        s->spread = (struct scope_spread){0, 0};
    for (uint32_t i = 0; i < s->judge->count; i++)
        place_host(s, i, mean);
}

/* --- a half second is over --- */

static bool is_of_all(enum scope_kind k)
{
    return k == SCOPE_FLEET || k == SCOPE_DEPENDENCY || k == SCOPE_CAPACITY;
}

void scope_turn_all(struct scope *s)
{
    if (!s->judge->fleet.slow && !is_of_all(s->now.kind))
        s->common_since = 0;
    else if (s->common_since == 0)
        s->common_since = half_second(s);
    turn_demand(s);
    turn_spread(s);
}

/* --- the verdict --- */

static bool all_alike(const struct scope *s, const struct scope_group *all)
{
    const struct scope_spread *spread = &s->spread;
    double most = fmax(ALIKE, ALIKE_TIMES * s->judge->deviation);

    if (spread->weight >= SPREAD_LEAST)
        return spread->sum <= ALIKE_SPREAD * spread->weight;
    return all->known == 0 ||
           scope_reached(all, ALIKE_FROM) - scope_reached(all, 1 - ALIKE_FROM) <= most;
}

static bool connects_are_fine(const struct scope_group *all)
{
    const struct detect_rate *r = &all->rates[DETECT_OF_CONNECTS];

    return r->bad <= CONNECTS_FINE * fmax(r->tries, TRIES_LEAST);
}

static enum scope_kind kind_of_all(const struct scope *s, const struct scope_group *all)
{
    if (!connects_are_fine(all))
        return SCOPE_FLEET;
    if (is_short_of_capacity(s))
        return SCOPE_CAPACITY;
    return all_alike(s, all) ? SCOPE_DEPENDENCY : SCOPE_FLEET;
}

static bool has_common_trouble(const struct scope *s, const struct scope_group *all,
                               struct scope_verdict *v)
{
    static const enum scope_sign signs[] = {SCOPE_BY_CONNECTS, SCOPE_BY_ERRORS, SCOPE_BY_AGE};

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (all_fail(s, signs[i], COMMON_RATE, v))
            return true;
    }
    if (best_fail(s, SCOPE_BY_ERRORS, v))
        return true;
    *v = (struct scope_verdict){.sign = SCOPE_BY_LATENCY,
                                .hosts = all->known,
                                .of = all->hosts,
                                .ratio = s->judge->fleet.ratio};
    return (s->judge->fleet.slow || s->judge->saturated) && all->hosts >= GROUP_LEAST;
}

struct scope_verdict scope_of_all(const struct scope *s)
{
    struct scope_group all = everybody(s);
    struct scope_verdict v;

    if (!has_common_trouble(s, &all, &v))
        return v;
    v.kind = kind_of_all(s, &all);
    if (v.kind == SCOPE_CAPACITY)
        v.demand = demand_of(&s->demand);
    return v;
}
