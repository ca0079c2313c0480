/* SPDX-License-Identifier: Apache-2.0 */
#include "control/peers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "policy/host.h"

#define PEERS_LEAST 2 /* others, for a multiple of their median */

/* One quantile of one host, in bins. */
struct place {
    uint32_t stratum;
    float bin;
};

/* Of one class and quantile: those of serving hosts, sorted. */
struct board {
    uint32_t count;
    struct place *places;
};

struct peers {
    const struct cluster *cluster;
    uint32_t collected; /* endpoints, then boards sorted */
    struct place *room;
    float *bins; /* [endpoint][class][quantile]; negative: none */
    struct board boards[EVIDENCE_CLASS_MAX][PEER_QUANTILES];
};

static const double shares[PEER_QUANTILES] = {0.5, 0.95, 0.99};

static const struct host *host_of(const struct peers *p, uint32_t endpoint)
{
    return p->cluster->hosts.at[p->cluster->endpoints[endpoint].slot];
}

static float *bin_of(const struct peers *p, uint32_t endpoint, uint32_t class, uint32_t q)
{
    return &p->bins[((size_t)endpoint * EVIDENCE_CLASS_MAX + class) * PEER_QUANTILES + q];
}

/* --- collecting --- */

struct peers *peers_create(const struct cluster *c)
{
    struct peers *p = memory_take(sizeof(*p));
    size_t each = (size_t)EVIDENCE_CLASS_MAX * PEER_QUANTILES;
    size_t hosts = c->endpoint_count + (size_t)1;

    if (p == NULL)
        return NULL;
    p->cluster = c;
    p->bins = memory_take_array(hosts, each * sizeof(*p->bins));
    p->room = memory_take_array(hosts, each * sizeof(*p->room));
    if (p->bins == NULL || p->room == NULL) {
        peers_free(p);
        return NULL;
    }
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
        for (uint32_t q = 0; q < PEER_QUANTILES; q++)
            p->boards[class][q].places = p->room + (class * PEER_QUANTILES + q) * hosts;
    return p;
}

void peers_free(struct peers *p)
{
    if (p == NULL)
        return;
    memory_give(p->bins);
    memory_give(p->room);
    memory_give(p);
}

static void collect_class(struct peers *p, uint32_t endpoint, uint32_t class)
{
    const struct detect_host *d = host_of(p, endpoint)->detected;
    const struct peer_series *s = d == NULL ? NULL : d->series[class];

    for (uint32_t q = 0; q < PEER_QUANTILES; q++) {
        float bin = s == NULL ? -1 : (float)peer_quantile(s, shares[q]);
        struct board *b = &p->boards[class][q];

        *bin_of(p, endpoint, class, q) = bin;
        if (bin >= 0 && d->serving)
            b->places[b->count++] = (struct place){d->stratum, bin};
    }
}

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->stratum != y->stratum)
        return x->stratum < y->stratum ? -1 : 1;
    return (x->bin > y->bin) - (x->bin < y->bin);
}

static void sort_board(struct peers *p, uint32_t n)
{
    struct board *b = &p->boards[n / PEER_QUANTILES][n % PEER_QUANTILES];

    qsort(b->places, b->count, sizeof(*b->places), compare_places);
}

bool peers_collect(struct peers *p)
{
    uint32_t hosts = p->cluster->endpoint_count;

    if (p->collected == hosts + EVIDENCE_CLASS_MAX * PEER_QUANTILES)
        return false;
    if (p->collected >= hosts)
        sort_board(p, p->collected - hosts);
    for (uint32_t class = 0; p->collected < hosts && class < EVIDENCE_CLASS_MAX; class ++)
        collect_class(p, p->collected, class);
    p->collected++;
    return true;
}

/* --- what is shown --- */

/* Where those of |stratum|, or what comes after them, begin. */
static uint32_t first_of(const struct board *b, uint32_t stratum)
{
    uint32_t low = 0, high = b->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (b->places[middle].stratum < stratum)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The |n|-th of |places|, without one that is |own|. */
static double nth_of_others(const struct place *places, uint32_t n, double own)
{
    return own >= 0 && (double)places[n].bin >= own ? (double)places[n + 1].bin
                                                    : (double)places[n].bin;
}

/* Of the others, in bins; |own| negative: it is not among them. Negative: there are too few. */
static double median_of_others(const struct board *b, uint32_t stratum, double own)
{
    uint32_t from = first_of(b, stratum);
    uint32_t all = first_of(b, stratum + 1) - from;
    uint32_t others = all - (own >= 0 ? 1 : 0);

    if (all == 0 || others < PEERS_LEAST)
        return -1;
    return (nth_of_others(b->places + from, (others - 1) / 2, own) +
            nth_of_others(b->places + from, others / 2, own)) /
           2;
}

static void show_quantiles(const struct peers *p, uint32_t endpoint, uint32_t class,
                           struct peer_row *out)
{
    const struct detect_host *d = host_of(p, endpoint)->detected;

    for (uint32_t q = 0; q < PEER_QUANTILES; q++) {
        double own = (double)*bin_of(p, endpoint, class, q);
        double others = median_of_others(&p->boards[class][q], d->stratum, d->serving ? own : -1);

        out->us[q] = own < 0 ? -1 : peer_bin_us(own);
        out->times[q] = own < 0 || others < 0 ? -1 : exp(peer_log_ratio(own - others));
    }
}

bool peers_row(const struct peers *p, uint32_t endpoint, uint32_t class, struct peer_row *out)
{
    const struct detect_host *d = host_of(p, endpoint)->detected;
    const uint64_t *n = d == NULL ? NULL : d->counts[class];

    *out = (struct peer_row){.requests = 0};
    if (n == NULL)
        return false;
    for (uint32_t outcome = 0; outcome < EVIDENCE_OUTCOME_COUNT; outcome++)
        out->requests += outcome == EVIDENCE_LATE ? 0 : n[outcome];
    out->errors = n[EVIDENCE_ERROR] + n[EVIDENCE_GATEWAY];
    out->timeouts = n[EVIDENCE_TIMEOUT];
    out->resets = n[EVIDENCE_RESET] + n[EVIDENCE_CUT];
    out->connects = n[EVIDENCE_CONNECT_FAILED] + n[EVIDENCE_REFUSED];
    show_quantiles(p, endpoint, class, out);
    return out->requests > 0;
}

static const char *state_text(const struct host *h)
{
    if (host_is_drained(h))
        return "draining";
    if (h->life.needs_human)
        return "needs_human";
    if (host_is_ejected(h) && life_serves(&h->life))
        return life_state_text(LIFE_EJECTED); /* outlier detection leads its life */
    return life_state_text(h->life.state);
}

void peers_state(const struct peers *p, uint32_t endpoint, mono_ns now, struct peer_state *out)
{
    const struct host *h = host_of(p, endpoint);
    mono_ns since = h->life.since;

    if (host_is_ejected(h) && life_serves(&h->life))
        since = atomic_load_explicit(&h->ejected_at, memory_order_relaxed);
    *out = (struct peer_state){
        .text = state_text(h),
        .since = since == 0 ? 0 : mono_since(since, now),
        .share =
            host_is_ejected(h) || host_is_drained(h) || !life_serves(&h->life) ? 0 : h->life.share,
        .in_flight = atomic_load_explicit(&h->in_flight, memory_order_relaxed),
        .times_out = atomic_load_explicit(&h->ejections, memory_order_relaxed),
    };
}
