/* SPDX-License-Identifier: Apache-2.0 */
/* What the hosts of a zone, or of a version, have in common that others have not. */
#include <math.h>
#include <string.h>

#include "policy/scope_parts.h"

#define MARK_HOLDS 4  /* half seconds */
#define OUT_LATELY 10 /* the same */

/* --- one host --- */

bool scope_takes_part(const struct scope *s, uint32_t index)
{
    return s->judge->hosts[index]->serving || s->hosts[index].out;
}

static bool marked_within(const struct scope *s, uint32_t index, uint32_t half_seconds)
{
    const struct scope_host *h = &s->hosts[index];

    return h->marked > 0 && s->judge->bucket - (h->marked - 1) <= half_seconds;
}

bool scope_is_marked(const struct scope *s, uint32_t index)
{
    return s->hosts[index].out || marked_within(s, index, MARK_HOLDS);
}

const struct detect_rate *scope_rate(const struct scope *s, uint32_t index, uint32_t kind)
{
    return kind < DETECT_KIND_COUNT ? &s->judge->hosts[index]->lately[kind] : &s->hosts[index].path;
}

/* The mean over its classes, each by how much of it was seen. */
static void shift_host(struct scope *s, uint32_t index)
{
    const struct detect_host *d = s->judge->hosts[index];
    struct scope_host *h = &s->hosts[index];
    const struct scope_usual *usual = &s->zones[h->group[SCOPE_ZONES]];
    double sum = 0, weight = 0;

    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
        if (!d->serving || d->median[c] == 0 || usual->learnt[c] < SCOPE_LEARNING)
            continue;
        sum += d->seen[c] * peer_log_ratio(detect_median(d, c) - usual->bins[c]);
        weight += d->seen[c];
    }
    h->known = weight > 0;
    h->shift = weight > 0 ? sum / weight : 0;
}

void scope_shift(struct scope *s)
{
    for (uint32_t i = 0; i < s->judge->count; i++)
        shift_host(s, i);
}

/* --- a group --- */

static uint32_t bin_of(double shift)
{
    double bin = floor(shift / SHIFT_STEP) + SHIFT_BINS / 2.0;

    return (uint32_t)fmin(fmax(bin, 0), SHIFT_BINS - 1);
}

void scope_count_shift(struct scope_group *g, double shift)
{
    g->known++;
    g->at[bin_of(shift)]++;
}

void scope_count_host(struct scope_group *g, const struct scope *s, uint32_t index)
{
    if (!scope_takes_part(s, index))
        return;
    g->hosts++;
    g->marked += scope_is_marked(s, index);
    g->out += s->hosts[index].out && !marked_within(s, index, OUT_LATELY);
    g->accused +=
        !s->hosts[index].out && scope_is_marked(s, index) && detect_accuses_at_all(s->judge, index);
    if (s->hosts[index].known)
        scope_count_shift(g, s->hosts[index].shift);
    for (uint32_t k = 0; k < SCOPE_RATE_COUNT; k++) {
        g->rates[k].tries += scope_rate(s, index, k)->tries;
        g->rates[k].bad += scope_rate(s, index, k)->bad;
    }
}

void scope_count(const struct scope *s, struct scope_table *t)
{
    memset(t->groups, 0, sizeof(t->groups));
    for (uint32_t i = 0; i < s->judge->count; i++)
        scope_count_host(&t->groups[s->hosts[i].group[t->by]], s, i);
}

double scope_reached(const struct scope_group *g, double share)
{
    uint32_t least = (uint32_t)ceil(share * g->known);
    uint32_t above = 0;

    for (uint32_t bin = SHIFT_BINS; bin-- > 0;) {
        above += g->at[bin];
        if (above >= least)
            return (bin + 0.5 - SHIFT_BINS / 2.0) * SHIFT_STEP;
    }
    return 0;
}

static double rate_of(const struct detect_rate *r)
{
    return r->tries < TRIES_LEAST ? 0 : fmin(r->bad / r->tries, 1);
}

/* --- a group and the others --- */

void scope_insert(double *sorted, uint32_t count, double one)
{
    uint32_t to = count;

    for (; to > 0 && sorted[to - 1] > one; to--)
        sorted[to] = sorted[to - 1];
    sorted[to] = one;
}

/* The lower median of the other groups' shares of failures; negative: there are none. */
static double usual_rate(const struct scope_table *t, uint32_t g, uint32_t kind)
{
    double sorted[SCOPE_GROUPS_MAX + 1];
    uint32_t n = 0;

    for (uint32_t o = 0; o <= SCOPE_GROUPS_MAX; o++) {
        const struct detect_rate *r = &t->groups[o].rates[kind];

        if (o != g && r->tries >= TRIES_LEAST)
            scope_insert(sorted, n++, rate_of(r));
    }
    return n == 0 ? -1 : fmax(sorted[(n - 1) / 2], USUAL_BAD);
}

#define FASTER_MOST (GATE / 4) /* others: beyond, they are fast, and nobody is slow */

/*
 * The same of where the middle of each is; NAN: there are none. What nearly all of a group's few
 * hosts reach lies below its middle: compared with that of others, one is high in quiet traffic.
 */
static double usual_shift(const struct scope_table *t, uint32_t g, double *hosts)
{
    double sorted[SCOPE_GROUPS_MAX + 1];
    uint32_t n = 0, known = 0;

    for (uint32_t o = 0; o <= SCOPE_GROUPS_MAX; o++) {
        if (o == g || t->groups[o].known == 0)
            continue;
        scope_insert(sorted, n++, scope_reached(&t->groups[o], MIDDLE));
        known += t->groups[o].known;
    }
    *hosts = n == 0 ? 0 : (double)known / n;
    return n == 0 ? (double)NAN : fmax(sorted[(n - 1) / 2], -FASTER_MOST);
}

double scope_nats(const struct detect_rate *r, double p)
{
    double q = rate_of(r);

    if (q >= 1)
        return r->tries * log(1 / p);
    return q <= p ? 0 : r->tries * (q * log(q / p) + (1 - q) * log((1 - q) / (1 - p)));
}

static bool enough(const struct scope_table *t, uint32_t hosts, uint32_t of)
{
    return of >= GROUP_LEAST && hosts >= t->share * of;
}

/* How many of the group's hosts fail more than is usual elsewhere. */
static void count_leaning(const struct scope *s, enum scope_by by, uint32_t g,
                          struct scope_verdict *v)
{
    double least = fmax(BAD_LEAST, BAD_TIMES * v->others);

    v->hosts = v->of = 0;
    for (uint32_t i = 0; i < s->judge->count; i++) {
        const struct detect_rate *r = scope_rate(s, i, (uint32_t)v->sign);

        if (s->hosts[i].group[by] != g || !scope_takes_part(s, i) || r->tries < TRIES_LEAST)
            continue;
        v->of++;
        v->hosts += rate_of(r) >= least;
    }
}

/* Of enough of its hosts, so that these few do not speak for all. */
static bool speaks_for_all(const struct scope_table *t, uint32_t g, const struct scope_verdict *v)
{
    return enough(t, v->hosts, v->of) && v->of * 2 >= t->groups[g].hosts;
}

static bool fails(const struct scope *s, const struct scope_table *t, uint32_t g,
                  struct scope_verdict *v)
{
    const struct detect_rate *r = &t->groups[g].rates[v->sign];

    v->share = rate_of(r);
    v->others = usual_rate(t, g, (uint32_t)v->sign);
    if (v->others < 0 || v->share < fmax(BAD_LEAST, BAD_TIMES * v->others))
        return false;
    v->nats = scope_nats(r, v->others);
    count_leaning(s, t->by, g, v);
    return v->nats > s->judge->config.threshold && speaks_for_all(t, g, v);
}

double scope_deviation(const struct scope *s)
{
    return DEVIATION_SURE * fmax(s->judge->deviation, DEVIATION_LEAST);
}

/* Between so many hosts and so many others: of their medians, and at first of what is usual. */
static double deviation_of(const struct scope *s, double hosts, double others)
{
    double learnt = fmax(s->judge->learnt, 1);

    return scope_deviation(s) * sqrt((1 + SCOPE_PLACES / learnt) * (1 / hosts + 1 / others));
}

static double own_place(const struct scope *s, const struct scope_table *t, uint32_t g)
{
    return t->by == SCOPE_VERSIONS ? s->versions[g] : 0;
}

double scope_place(const struct scope *s, const struct scope_table *t, uint32_t g)
{
    double others;

    return usual_shift(t, g, &others) + own_place(s, t, g);
}

bool scope_lags(const struct scope *s, const struct scope_table *t, uint32_t g,
                struct scope_verdict *v)
{
    const struct scope_group *group = &t->groups[g];
    double others, deviation, places;
    double usual = usual_shift(t, g, &others);

    if (group->known == 0 || isnan(usual))
        return false;
    deviation = deviation_of(s, group->known, others);
    v->ratio = scope_reached(group, t->share) - usual - own_place(s, t, g);
    v->hosts = (uint32_t)ceil(t->share * group->known);
    v->of = group->known;
    places = v->ratio / deviation;
    v->nats = places * places / 2;
    return v->ratio >= fmax(GATE, DEVIATIONS * deviation) && v->nats > s->judge->config.threshold &&
           speaks_for_all(t, g, v);
}

/* What is left where some have been out for a while, each for itself, has to be as bad as they. */
static uint32_t marked(const struct scope_group *g)
{
    return g->out == 0 ? g->marked : g->out + g->accused;
}

static bool is_marked(const struct scope *s, const struct scope_table *t, uint32_t g,
                      struct scope_verdict *v)
{
    uint32_t others = 0;

    for (uint32_t o = 0; o <= SCOPE_GROUPS_MAX; o++)
        others += o == g ? 0 : t->groups[o].hosts;
    v->hosts = marked(&t->groups[g]);
    v->of = t->groups[g].hosts;
    v->nats = s->judge->config.threshold / 2;
    return others > 0 && enough(t, v->hosts, v->of);
}

bool scope_is_bad(const struct scope *s, const struct scope_table *t, uint32_t g,
                  struct scope_verdict *v)
{
    for (int sign = 0; sign < SCOPE_SIGN_COUNT; sign++) {
        bool bad = false;

        *v = (struct scope_verdict){.group = g, .sign = (enum scope_sign)sign};
        if (sign < SCOPE_RATE_COUNT)
            bad = fails(s, t, g, v);
        else if (sign == SCOPE_BY_LATENCY)
            bad = scope_lags(s, t, g, v);
        else if (sign == SCOPE_BY_MARKS)
            bad = is_marked(s, t, g, v);
        if (bad)
            return true;
    }
    return false;
}
