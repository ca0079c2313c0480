/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At the end of a half second: the fleet is compared with what is usual of it, and each host with
 * its peers, by the median of their latest latencies in each class.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "policy/detect.h"
#include "policy/detect_parts.h"

/* --- medians of medians --- */

#define HALF_BINS (2 * PEER_BINS) /* a median may lie between two bins */

/* The medians of the hosts of one class and stratum, counted. */
struct medians {
    uint32_t count;
    uint32_t at[HALF_BINS];
};

static uint32_t window_since(const struct detect *d)
{
    return d->bucket < FLEET_WINDOW ? 0 : d->bucket - FLEET_WINDOW;
}

/* In half bins; negative: not enough answers. */
static int32_t median_of(const struct detect *d, const struct detect_host *h, uint32_t class)
{
    double bin = -1;

    if (h->series[class] != NULL)
        bin = peer_median(h->series[class], window_since(d), ANSWERS_LEAST);
    return bin < 0 ? -1 : (int32_t)(2 * bin);
}

/* The fleet is compared with itself: where its hosts are is the same at all times. */
static uint32_t as_it_came(const struct detect_host *h, uint32_t class)
{
    double at = 2 * detect_median(h, class);

    return (uint32_t)fmin(fmax(at, 0), HALF_BINS - 1);
}

static void medians_collect(const struct detect *d, uint32_t class, uint32_t stratum,
                            struct medians *m)
{
    memset(m, 0, sizeof(*m));
    for (uint32_t i = 0; i < d->count; i++) {
        struct detect_host *h = d->hosts[i];
        int32_t at = h->serving && h->stratum == stratum ? median_of(d, h, class) : -1;

        if (h->stratum == stratum)
            h->median[class] = (uint16_t)(at + 1);
        if (at >= 0) {
            m->at[at]++;
            m->count++;
        }
    }
}

/* As they came, once they are collected, of those hosts that are not late, where these are half of
 * all; else of all. */
static void medians_of_the_well(const struct detect *d, uint32_t class, uint32_t stratum,
                                struct medians *m)
{
    struct medians late = {.count = 0};

    memset(m, 0, sizeof(*m));
    for (uint32_t i = 0; i < d->count; i++) {
        const struct detect_host *h = d->hosts[i];
        struct medians *of = h->late_since != 0 ? &late : m;

        if (!h->serving || h->stratum != stratum || h->median[class] == 0)
            continue;
        of->at[as_it_came(h, class)]++;
        of->count++;
    }
    if (late.count <= m->count)
        return;
    for (uint32_t bin = 0; bin < HALF_BINS; bin++)
        m->at[bin] += late.at[bin];
    m->count += late.count;
}

/* The |n|-th smallest, from 0; n < count. */
static int32_t medians_nth(const struct medians *m, uint32_t n)
{
    uint32_t below = 0;

    for (int32_t at = 0; at < HALF_BINS; at++) {
        below += m->at[at];
        if (below > n)
            return at;
    }
    return HALF_BINS - 1;
}

/* The |n|-th of those that are left without one that is |own|. */
static int32_t nth_without(const struct medians *m, uint32_t n, int32_t own)
{
    int32_t at = medians_nth(m, n);

    return at < own ? at : medians_nth(m, n + 1);
}

/* Median of all, bins. Only where there is one. */
static double medians_median(const struct medians *m)
{
    return (medians_nth(m, (m->count - 1) / 2) + medians_nth(m, m->count / 2)) / 4.0;
}

/* Median of the others; |own| negative: it is not among them. Only where there are others. */
static double medians_of_others(const struct medians *m, int32_t own)
{
    uint32_t others = m->count - 1;

    if (own < 0)
        return medians_median(m);
    return (nth_without(m, (others - 1) / 2, own) + nth_without(m, others / 2, own)) / 4.0;
}

/* --- each host and its peers --- */

#define PEERS_LEAST 2 /* of a host, with a median each */

/* A host's ratio is the mean over its classes, each by how much of it was seen. */
static void rate_in(const struct detect *d, struct detect_host *h, uint32_t class,
                    const struct medians *m)
{
    int32_t own = h->serving ? h->median[class] - 1 : median_of(d, h, class);
    uint32_t others = m->count - (h->serving && own >= 0 ? 1 : 0);

    if (own < 0 || others < PEERS_LEAST || h->seen[class] <= 0)
        return;
    h->ratio_sum +=
        h->seen[class] * peer_log_ratio(own / 2.0 - medians_of_others(m, h->serving ? own : -1));
    h->ratio_weight += h->seen[class];
}

bool detect_past_gate(const struct detect_host *h)
{
    return h->rated && h->ratio >= h->gate && h->ratio - h->usual >= OWN_SHARE * h->gate;
}

bool detect_seems_well(const struct detect *d, const struct detect_host *h)
{
    return h->sum[DETECT_RANK] <= d->config.threshold / 3 || (h->rated && !detect_past_gate(h));
}

/* With few hosts, one that is out of line makes the others seem so, the other way. */
static bool any_out_of_line(const struct detect *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const struct detect_host *h = d->hosts[i];

        if (h->serving && h->sum[DETECT_RANK] > d->config.threshold / 2 && detect_past_gate(h))
            return true;
    }
    return false;
}

bool detect_is_settling(const struct detect_host *h)
{
    return h->settled < SETTLING && h->ratio < OWN_AT_FIRST;
}

static double rate_after(uint32_t n)
{
    return fmax(USUAL_RATE, 1.0 / (n + 1.0));
}

/* What is usual is learnt while nothing is wrong. */
static void learn_usual(const struct detect *d, struct detect_host *h)
{
    if (!h->serving || !h->rated || d->fleet.slow)
        return;
    if (!detect_is_settling(h) && (d->disturbed || !detect_seems_well(d, h)))
        return;
    if (h->deviation == 0)
        h->deviation = DEVIATION_AT_FIRST;
    h->deviation +=
        rate_after(h->settled + DEVIATION_KNOWN) * (fabs(h->ratio - h->usual) - h->deviation);
    h->usual += rate_after(h->settled) * (h->ratio - h->usual);
    h->settled += h->settled < SETTLED;
}

static void time_much_slower(const struct detect *d, struct detect_host *h)
{
    double short_by = (h->slow_since == 0 ? MUCH_BEGINS : MUCH_GOES_ON) * d->deviation;

    if (!h->rated || h->ratio < MUCH_SLOWER - short_by)
        h->slow_since = 0;
    else if (h->slow_since == 0)
        h->slow_since = d->tenth;
}

static void rate_host(const struct detect *d, struct detect_host *h)
{
    h->rated = h->ratio_weight > 0;
    if (h->rated)
        h->ratio = h->ratio_sum / h->ratio_weight;
    h->gate = fmax(RATIO_LEAST, DEVIATIONS * DEVIATION_SURE * d->deviation);
    if (!detect_past_gate(h))
        h->late_since = 0;
    else if (h->late_since == 0)
        h->late_since = d->tenth;
    time_much_slower(d, h);
}

static void learn_deviation(struct detect *d)
{
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->count; i++) {
        sum += d->hosts[i]->deviation;
        n += d->hosts[i]->deviation > 0;
    }
    d->deviation = n == 0 ? DEVIATION_AT_FIRST : sum / n;
}

/* --- the fleet --- */

/* Of all that was seen lately: how much came later than usual, and by how much in the mean. */
struct fleet_view {
    double weight;
    double high; /* past FLEET_ON, or FLEET_OFF where it is slow already */
    double ratio;
    bool learns;
};

static double weight_of(const struct detect *d, uint32_t class, uint32_t stratum)
{
    double weight = 0;

    for (uint32_t i = 0; i < d->count; i++)
        weight +=
            d->hosts[i]->stratum == stratum && d->hosts[i]->serving ? d->hosts[i]->seen[class] : 0;
    return weight;
}

/* By how much a median of so many hosts' medians is off, where each is off as hosts are. */
static double scatter_of(const struct detect *d, uint32_t hosts)
{
    return hosts <= PEERS_LEAST ? 0 : DEVIATION_SURE * d->deviation / sqrt(hosts);
}

/* Past it, the class is slow as a whole: beyond what it wanders by itself. */
static double high_from(const struct detect *d, const struct detect_class *c, uint32_t hosts)
{
    double wanders = DEVIATIONS * DEVIATION_SURE * fmax(c->deviation, scatter_of(d, hosts));

    return fmin(fmax(d->fleet.slow ? FLEET_OFF : FLEET_ON, wanders), FLEET_SURE);
}

/* A mean of few half seconds is no measure of what comes next: it goes on for a while. */
static double baseline_rate(const struct detect *d)
{
    double mean = 1.0 / (d->learnt + 1.0);

    if (d->learnt < SETTLING)
        return mean;
    return d->fleet.slow ? BASELINE_RATE_SLOW : fmax(BASELINE_RATE, mean);
}

static void learn_baseline(const struct detect *d, struct detect_class *c, double ratio)
{
    if (!d->fleet.slow)
        c->deviation += USUAL_RATE * (fabs(ratio) - c->deviation);
    c->baseline += baseline_rate(d) * (c->typical - c->baseline);
}

static void view_class(struct detect *d, uint32_t class, uint32_t stratum, const struct medians *m,
                       struct fleet_view *view)
{
    struct detect_class *c = &d->classes[class][stratum];
    double weight = weight_of(d, class, stratum);
    double ratio;

    if (m->count == 0)
        return;
    c->typical = medians_median(m);
    if (c->baseline < 0) {
        c->baseline = c->typical;
        c->deviation = FLEET_DEVIATION_AT_FIRST;
    }
    ratio = peer_log_ratio(c->typical - c->baseline);
    view->weight += weight;
    view->ratio += weight * ratio;
    view->high += ratio > high_from(d, c, m->count) ? weight : 0;
    if (view->learns)
        learn_baseline(d, c, ratio);
}

static void view_fleet(struct detect *d, const struct fleet_view *view)
{
    bool high = view->weight > 0 && view->high * 2 > view->weight && d->learnt >= LEARNING;

    d->fleet.ratio = view->weight > 0 ? view->ratio / view->weight : 0;
    d->fleet.calm = high ? 0 : d->fleet.calm + view->learns;
    d->learnt += view->weight > 0 && view->learns;
    if (high && !d->fleet.slow) {
        d->fleet.slow = true;
        d->fleet.slow_since = d->bucket;
    }
    if (d->fleet.calm >= FLEET_CALM)
        d->fleet.slow = false;
}

/* --- all classes --- */

static const struct peer_series *series_in(const struct detect_host *h, uint32_t class,
                                           uint32_t stratum)
{
    return h->stratum == stratum ? h->series[class] : NULL;
}

/* Accused of latency, or about to be: what it takes is not what it ought to. */
static bool is_late(const struct detect *d, const struct detect_host *h)
{
    return h->late_since != 0 || h->sum[DETECT_TAIL] > d->config.threshold / 2;
}

/* Without hosts that are late, where enough is left. */
static void leave_out_late(const struct detect *d, struct peer_pool *pool, uint32_t class,
                           uint32_t stratum)
{
    uint32_t most = pool->kept_count / 2;
    struct peer_pool rest = *pool;

    for (uint32_t i = 0; i < d->count; i++) {
        const struct peer_series *s = series_in(d->hosts[i], class, stratum);

        if (s != NULL && is_late(d, d->hosts[i]))
            peer_leave_out(&rest, s);
    }
    if (rest.kept_count >= LATE_KNOWN && rest.kept_count >= most)
        *pool = rest;
}

/* Whoever it is that is bad, and is not known to be yet: without one, it is the least. */
static uint32_t p99_of(const struct detect *d, const struct peer_pool *all, uint32_t class,
                       uint32_t stratum)
{
    static const struct peer_series none;
    struct peer_pool pool = *all;
    uint32_t least;

    leave_out_late(d, &pool, class, stratum);
    least = peer_p99(&pool, &none);
    for (uint32_t i = 0; i < d->count && d->count <= LATE_HOSTS_MAX; i++) {
        const struct peer_series *s = series_in(d->hosts[i], class, stratum);
        uint32_t p99 = s == NULL || is_late(d, d->hosts[i]) ? least : peer_p99(&pool, s);

        least = p99 < least ? p99 : least;
    }
    return least;
}

static uint32_t most_away(const struct detect *d, uint32_t class, uint32_t stratum)
{
    int32_t most = 0;

    for (uint32_t i = 0; i < d->count; i++) {
        if (d->hosts[i]->stratum == stratum && d->hosts[i]->away[class] > most)
            most = d->hosts[i]->away[class];
    }
    return (uint32_t)most;
}

/* Late is what is late anywhere: the slowest stratum says, and what is furthest away in it. */
static void learn_late(struct detect *d, uint32_t class)
{
    uint32_t most = 0;

    for (uint32_t s = 0; s < DETECT_STRATUM_MAX; s++) {
        const struct peer_pool *pool = d->pools[class][s];
        uint32_t p99 =
            pool == NULL || pool->kept_count < LATE_KNOWN ? 0 : p99_of(d, pool, class, s);

        if (p99 == 0 || p99 >= PEER_BINS)
            continue;
        p99 += most_away(d, class, s);
        most = p99 > most ? p99 : most;
    }
    if (most > 0)
        d->p99[class] = (uint32_t)peer_bin_us(most + 1);
    if (most > 0)
        d->late_after[class] = (uint32_t)fmax(LATE_US_LEAST, peer_bin_us(most + LATE_BINS));
}

static void rate_all_in(const struct detect *d, uint32_t class, uint32_t stratum)
{
    struct medians m;

    if (d->pools[class][stratum] == NULL)
        return;
    medians_collect(d, class, stratum, &m);
    for (uint32_t i = 0; i < d->count && m.count > 0; i++) {
        if (d->hosts[i]->stratum == stratum)
            rate_in(d, d->hosts[i], class, &m);
    }
}

/* Is it all, or is it those that are late? */
static void look_at(struct detect *d, uint32_t class, uint32_t stratum, struct fleet_view *view)
{
    struct medians m;

    if (d->pools[class][stratum] == NULL)
        return;
    medians_of_the_well(d, class, stratum, &m);
    view_class(d, class, stratum, &m, view);
}

static void learn_all(struct detect *d)
{
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        learn_late(d, c);
    d->saturated = knee_load(&d->knee, 1, 1) > SATURATED;
    learn_deviation(d);
    for (uint32_t i = 0; i < d->count; i++)
        learn_usual(d, d->hosts[i]);
}

void detect_compare(struct detect *d, enum compare what)
{
    struct fleet_view view = {.learns = what == COMPARE_AND_LEARN};

    for (uint32_t i = 0; i < d->count; i++)
        d->hosts[i]->ratio_sum = d->hosts[i]->ratio_weight = 0;
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        for (uint32_t s = 0; s < DETECT_STRATUM_MAX; s++)
            rate_all_in(d, c, s);
    for (uint32_t i = 0; i < d->count; i++)
        rate_host(d, d->hosts[i]);
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        for (uint32_t s = 0; s < DETECT_STRATUM_MAX; s++)
            look_at(d, c, s, &view);
    view_fleet(d, &view);
    d->disturbed = any_out_of_line(d);
    if (view.learns)
        learn_all(d);
}
