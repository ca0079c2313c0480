/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence of one sample. What is weighed by the half second is detect_turn.c. */
#include "policy/detect.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "policy/detect_parts.h"
#include "policy/normal.h"

/* --- names --- */

const char *detect_line_text(enum detect_line line)
{
#define X(constant, name) [DETECT_##constant] = #name,
    static const char *const text[DETECT_LINE_COUNT] = {DETECT_LINES(X)};
#undef X

    assert(line < DETECT_LINE_COUNT);
    return text[line];
}

const char *detect_guard_text(enum detect_guard g)
{
    switch (g) {
    case DETECT_HOLDS:
        return "holds";
    case DETECT_NOT_RATED:
        return "not_rated";
    case DETECT_GATE:
        return "gate";
    case DETECT_CROWD:
        return "crowd";
    case DETECT_FLEET:
        return "fleet";
    }
    return "?";
}

/* --- life --- */

void detect_init(struct detect *d)
{
    *d = (struct detect){.config.threshold = DETECT_THRESHOLD,
                         .tenth = 1,
                         .stalls = {{STALL_AT_FIRST, STALL_KNOWN}, {LONG_AT_FIRST, LONG_KNOWN}}};
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        for (uint32_t s = 0; s < DETECT_STRATUM_MAX; s++)
            d->classes[c][s] = (struct detect_class){-1, -1, 0};
}

void detect_host_release(struct detect_host *h)
{
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
        memory_give(h->series[c]);
        h->series[c] = NULL;
    }
}

static void forget_pools(struct detect *d)
{
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
        for (uint32_t s = 0; s < DETECT_STRATUM_MAX; s++) {
            memory_give(d->pools[c][s]);
            d->pools[c][s] = NULL;
        }
    }
}

void detect_release(struct detect *d)
{
    forget_pools(d);
    d->count = 0;
}

static struct peer_pool *pool_of(struct detect *d, uint32_t class, uint32_t stratum)
{
    struct peer_pool **pool = &d->pools[class][stratum];

    if (*pool == NULL)
        *pool = memory_take(sizeof(**pool));
    return *pool;
}

/* --- who serves --- */

static void rate_add(struct detect_rate *to, const struct detect_rate *what, double sign)
{
    to->tries = fmax(0, to->tries + sign * what->tries);
    to->bad = fmax(0, to->bad + sign * what->bad);
}

static void count_rates(struct detect *d, const struct detect_host *h, double sign)
{
    for (uint32_t k = 0; k < DETECT_KIND_COUNT; k++) {
        rate_add(&d->lately[k], &h->lately[k], sign);
        rate_add(&d->just_now[k], &h->just_now[k], sign);
    }
}

static void count_series(struct detect *d, struct detect_host *h, bool counted)
{
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
        struct peer_pool *pool = h->series[c] == NULL ? NULL : pool_of(d, c, h->stratum);

        if (pool != NULL)
            peer_set_counted(pool, h->series[c], counted);
    }
}

void detect_set_serving(struct detect *d, uint32_t index, bool serving)
{
    struct detect_host *h = d->hosts[index];

    if (h->serving == serving)
        return;
    h->serving = serving;
    count_rates(d, h, serving ? 1 : -1);
    count_series(d, h, serving);
}

void detect_adopt(struct detect *d, const struct detect_config *config, struct detect_host **hosts,
                  uint32_t count)
{
    forget_pools(d);
    memset(d->lately, 0, sizeof(d->lately));
    memset(d->just_now, 0, sizeof(d->just_now));
    d->config = *config;
    d->hosts = hosts;
    d->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct detect_host *h = hosts[i];

        for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
            if (h->series[c] != NULL)
                h->series[c]->counted = false; /* in the pools that are gone */
        }
        if (h->serving) {
            count_rates(d, h, 1);
            count_series(d, h, true);
        }
    }
}

void detect_acquit(struct detect *d, uint32_t index)
{
    struct detect_host *h = d->hosts[index];

    memset(h->sum, 0, sizeof(h->sum));
    memset(h->from, 0, sizeof(h->from));
    memset(h->gain, 0, sizeof(h->gain));
    memset(h->least, 0, sizeof(h->least));
    memset(h->lost, 0, sizeof(h->lost));
    h->unanswered_weight = h->unanswered = 0;
    h->history_next = 0;
    count_rates(d, h, h->serving ? -1 : 0);
    memset(h->lately, 0, sizeof(h->lately));
    memset(h->just_now, 0, sizeof(h->just_now));
    h->stalls = (struct detect_stalls){0};
    h->rated = false;
    h->slow_since = h->late_since = 0;
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
        h->seen[c] = 0;
        if (h->series[c] != NULL && pool_of(d, c, h->stratum) != NULL)
            peer_forget(pool_of(d, c, h->stratum), h->series[c]);
    }
}

/* --- failures, as they come --- */

static double share(const struct detect_rate *all, const struct detect_rate *own)
{
    double tries = all->tries - own->tries;

    return tries < 0.5 ? 0 : fmax(0, all->bad - own->bad) / tries;
}

double detect_peers_rate(const struct detect *d, uint32_t index, enum detect_kind kind)
{
    static const struct detect_rate none;
    const struct detect_host *h = d->hosts[index];
    const struct detect_rate *lately = h->serving ? &h->lately[kind] : &none;
    const struct detect_rate *just_now = h->serving ? &h->just_now[kind] : &none;
    double rate = fmax(share(&d->lately[kind], lately), share(&d->just_now[kind], just_now));

    return fmin(fmax(rate, RATE_LEAST), 1);
}

/* Nats for one try, where a bad host fails |bad| of them and its peers |usual|. */
static double nats(bool failed, double bad, double usual)
{
    if (bad < BAD_OVER_USUAL * usual)
        return failed ? 0 : -NATS_OF_COMMON; /* no worse than what is common */
    return failed ? log(bad / usual) : log((1 - bad) / (1 - usual));
}

void detect_add_now(struct detect *d, struct detect_host *h, enum detect_line line, double gain)
{
    double most = DETECT_SUM_MOST * d->config.threshold;

    if (h->sum[line] <= 0)
        h->risen[line] = d->now;
    h->gain[line] += gain;
    h->least[line] = fmin(fmax(0, h->least[line] + gain), most);
    h->lost[line] = fmin(fmax(0, h->lost[line] - gain), most);
    h->sum[line] = fmin(fmax(0, h->sum[line] + gain), most);
}

static void count_try(struct detect *d, struct detect_host *h, enum detect_kind kind, bool failed,
                      double times)
{
    struct detect_rate one = {.tries = times, .bad = failed ? times : 0};

    memmove(&h->tried[kind][1], &h->tried[kind][0], sizeof(h->tried[kind]) - sizeof(mono_ns));
    h->tried[kind][0] = d->now;
    if (failed)
        h->failed[kind] = d->now;
    rate_add(&h->lately[kind], &one, 1);
    rate_add(&h->just_now[kind], &one, 1);
    if (h->serving) {
        rate_add(&d->lately[kind], &one, 1);
        rate_add(&d->just_now[kind], &one, 1);
    }
}

static void learn_error(struct detect *d, uint32_t index, bool failed, double times)
{
    struct detect_host *h = d->hosts[index];
    double usual = detect_peers_rate(d, index, DETECT_OF_ERRORS);
    double some = fmax(BAD_SOME, BAD_TIMES * usual);

    count_try(d, h, DETECT_OF_ERRORS, failed, times);
    if (!d->config.errors)
        return;
    detect_add_now(d, h, DETECT_ERRORS_SOME, times * nats(failed, fmin(some, BAD_MANY), usual));
    detect_add_now(d, h, DETECT_ERRORS_MANY, times * nats(failed, BAD_MANY, usual));
}

static void add_connect(struct detect *d, struct detect_host *h, bool failed, double gain)
{
    if (h->sum[DETECT_CONNECTS] <= 0)
        h->unanswered_weight = h->unanswered = 0;
    count_try(d, h, DETECT_OF_CONNECTS, failed, 1);
    if (d->config.connections)
        detect_add_now(d, h, DETECT_CONNECTS, gain);
}

/* Answered, be it with a refusal. */
static void learn_connect(struct detect *d, uint32_t index, bool refused)
{
    struct detect_host *h = d->hosts[index];
    double usual = detect_peers_rate(d, index, DETECT_OF_CONNECTS);

    add_connect(d, h, refused, nats(refused, BAD_MANY, usual));
    if (refused)
        h->refused = d->now;
}

static void learn_lost(struct detect *d, uint32_t index)
{
    struct detect_host *h = d->hosts[index];
    double usual = fmax(detect_peers_rate(d, index, DETECT_OF_CONNECTS), h->loss);
    double gain = nats(true, BAD_MANY, usual);

    add_connect(d, h, true, gain);
    h->unanswered++;
    h->unanswered_weight += gain;
}

double detect_weight_of_lost(const struct detect *d, uint32_t index, uint32_t times)
{
    return times * nats(true, BAD_MANY, fmax(d->hosts[index]->loss, RATE_LEAST));
}

void detect_weigh_lost(struct detect *d, uint32_t index, double loss)
{
    struct detect_host *h = d->hosts[index];
    double weight;

    h->loss = loss;
    weight = detect_weight_of_lost(d, index, h->unanswered);
    if (weight >= h->unanswered_weight)
        return;
    if (h->sum[DETECT_CONNECTS] > 0)
        detect_add_now(d, h, DETECT_CONNECTS, weight - h->unanswered_weight);
    h->unanswered_weight = weight;
}

bool detect_only_loses(const struct detect *d, uint32_t index)
{
    const struct detect_host *h = d->hosts[index];
    mono_ns risen = h->risen[DETECT_CONNECTS], last = h->tried[DETECT_OF_ERRORS][0];

    return h->unanswered > 0 && h->refused < risen && last >= risen &&
           last > h->failed[DETECT_OF_ERRORS];
}

static void learn_age(struct detect *d, uint32_t index, bool late, double times)
{
    struct detect_host *h = d->hosts[index];
    double usual = fmax(detect_peers_rate(d, index, DETECT_OF_AGE), LATE_LEAST);

    count_try(d, h, DETECT_OF_AGE, late, times);
    if (d->config.latency)
        detect_add_now(d, h, DETECT_AGE, times * nats(late, BAD_MANY, usual));
}

void detect_clear_age(struct detect *d, uint32_t index)
{
    struct detect_host *h = d->hosts[index];

    detect_add_now(d, h, DETECT_AGE, -h->sum[DETECT_AGE]);
}

/* --- latencies --- */

static struct peer_series *series_of(struct detect_host *h, uint32_t class)
{
    if (h->series[class] == NULL)
        h->series[class] = memory_take(sizeof(*h->series[class]));
    return h->series[class];
}

static double clamp(double x, double most)
{
    return fmin(fmax(x, -most), most);
}

#define AWAY_JUMPS 2 /* bins: by more, what was said of its ranks was said by another measure */

static void begin_anew(struct detect_host *h, enum detect_line line)
{
    h->sum[line] = h->from[line] = h->gain[line] = h->least[line] = h->lost[line] = 0;
}

void detect_begin_ranks(struct detect *d, uint32_t index)
{
    begin_anew(d->hosts[index], DETECT_RANK);
    begin_anew(d->hosts[index], DETECT_TAIL);
}

void detect_set_away(struct detect *d, uint32_t index, uint32_t class, int32_t bins)
{
    struct detect_host *h = d->hosts[index];
    int32_t by = h->away[class] - bins;
    int32_t median = h->median[class] + 2 * by;

    if (by == 0)
        return;
    h->away[class] = (int16_t)bins;
    if (h->series[class] != NULL && pool_of(d, class, h->stratum) != NULL)
        peer_shift(pool_of(d, class, h->stratum), h->series[class], by);
    if (h->median[class] != 0)
        h->median[class] = (uint16_t)(median < 1 ? 1 : median);
    if (by <= AWAY_JUMPS && by >= -AWAY_JUMPS)
        return;
    detect_begin_ranks(d, index);
}

double detect_median(const struct detect_host *h, uint32_t class)
{
    return (h->median[class] - 1) / 2.0 + h->away[class];
}

/* Of a latency, less what is its place's. */
static uint16_t bin_of(const struct detect_host *h, uint32_t class, uint32_t us)
{
    int32_t bin = peer_bin(us) - h->away[class];

    return (uint16_t)(bin < 0 ? 0 : bin >= PEER_BINS ? PEER_BINS - 1 : bin);
}

/* In standard deviations of the peers' ranks. */
static double place_of(const struct peer_pool *pool, const struct peer_series *s, uint16_t bin)
{
    return clamp(normal_quantile(peer_rank(pool, s, bin)), PLACE_MOST);
}

double detect_place(const struct detect *d, uint32_t index, uint32_t class, uint32_t us)
{
    static const struct peer_series none;
    const struct detect_host *h = d->hosts[index];
    const struct peer_pool *pool = d->pools[class][h->stratum];
    const struct peer_series *s = h->series[class] == NULL ? &none : h->series[class];

    if (pool == NULL || peer_others(pool, s) < OTHERS_LEAST)
        return 0;
    return place_of(pool, s, bin_of(h, class, us));
}

void detect_add_later(struct detect_host *h, enum detect_line line, double gain, double debt)
{
    h->gain[line] = fmax(-h->sum[line] - debt, h->gain[line] + gain);
}

/*
 * The few good answers that a half second had before a fault began are not to hide it. Many of them
 * are as good a sign as what came after: then it is the half second as a whole that counts.
 */
static double debt_of(struct detect_host *h)
{
    h->placed++;
    return h->placed <= PLACED_FEW ? 0 : PLACE_DESIGN * (h->placed - PLACED_FEW);
}

static void learn_place(struct detect *d, struct detect_host *h, double place)
{
    detect_add_later(h, DETECT_RANK, place - clamp(h->offset, OFFSET_MOST) - PLACE_DESIGN,
                     debt_of(h));
    if (h->rated && detect_is_settling(h))
        h->offset += (place - h->offset) / (OFFSET_KNOWN + ++h->offset_of);
    else if (detect_seems_well(d, h))
        h->offset += OFFSET_RATE * (place - h->offset);
}

static void learn_tail(struct detect *d, struct detect_host *h, bool slow)
{
    double usual = fmax(TAIL_LEAST, h->usual_slow);

    detect_add_later(h, DETECT_TAIL, nats(slow, fmax(BAD_SOME, BAD_TIMES * usual), usual), 0);
    if (h->sum[DETECT_TAIL] <= d->config.threshold / 3)
        h->usual_slow += OFFSET_RATE * ((slow ? 1 : 0) - h->usual_slow);
}

/* What was told to be late while it was open has its end now: it is one. */
static void learn_end(struct detect *d, struct detect_host *h, const struct evidence *s,
                      uint32_t p99)
{
    uint16_t bin = bin_of(h, s->class, s->first_us);
    enum detect_stall stall = detect_stall_of(s->first_us, p99);
    bool slow = bin > p99 + TAIL_BINS;

    if (slow && h->told_late > 0) {
        h->told_late--;
        detect_learn_stall_end(d, h, stall);
        return;
    }
    learn_tail(d, h, slow);
    detect_learn_stall(d, h, stall);
}

/*
 * An answer: |whole|. Where it was waited for in vain, it took at least that long: of one that is
 * given up after all but a hundredth have come no more needs to be known, it is late.
 */
static void learn_latency(struct detect *d, struct detect_host *h, const struct evidence *s,
                          bool whole)
{
    struct peer_series *series = series_of(h, s->class);
    struct peer_pool *pool = pool_of(d, s->class, h->stratum);
    uint16_t bin = bin_of(h, s->class, s->first_us);
    bool shows = whole;
    double place;
    uint32_t p99;

    if (series == NULL || pool == NULL)
        return; /* no memory: it teaches nothing */
    if (d->config.latency && peer_others(pool, series) >= OTHERS_LEAST) {
        place = place_of(pool, series, bin);
        p99 = peer_p99(pool, series);
        if (whole || place > 0)
            learn_place(d, h, place);
        if (whole || bin > p99 + TAIL_BINS)
            learn_end(d, h, s, p99);
        shows = whole || (s->outcome == EVIDENCE_ABANDONED && bin > p99);
    }
    if (!shows)
        return;
    h->seen[s->class] += 1;
    if (series->counted != h->serving)
        peer_set_counted(pool, series, h->serving);
    peer_add(pool, series, bin, d->bucket);
}

/*
 * Open, and very late already: that is no less than its end will show, and it is known sooner. A
 * host that stands still for a second shows it within that, and not in the one half second in which
 * all that waited is answered.
 */
static void learn_open(struct detect *d, struct detect_host *h, const struct evidence *s)
{
    const struct peer_series *series = h->series[s->class];
    const struct peer_pool *pool = d->pools[s->class][h->stratum];

    if (series == NULL || pool == NULL || !d->config.latency ||
        (s->flags & EVIDENCE_DOUBTFUL) != 0 || peer_others(pool, series) < OTHERS_LEAST ||
        bin_of(h, s->class, s->first_us) <= peer_p99(pool, series) + TAIL_BINS)
        return;
    learn_tail(d, h, true);
    detect_learn_stall(d, h, DETECT_STALLED);
    h->told_late += h->told_late < TOLD_LATE_MOST;
}

/* --- one sample --- */

/* Where all are slow, or have to queue, what comes late is no host's fault. */
static bool latency_is_common(const struct detect *d)
{
    return d->fleet.slow || d->saturated || d->fleet.ratio > FLEET_RISING;
}

static void learn_knee(struct detect *d, const struct detect_host *h, const struct evidence *e)
{
    const struct detect_class *c = &d->classes[e->class][h->stratum];

    if (c->typical >= 0 && h->serving && h->sum[DETECT_RANK] <= d->config.threshold / 3)
        knee_learn(&d->knee, e->ahead,
                   peer_log_ratio(bin_of(h, e->class, e->first_us) + 0.5 - c->typical));
}

static void learn_answer(struct detect *d, uint32_t index, const struct evidence *s, bool failed)
{
    double times = (double)(UINT32_C(1) << (s->thinned & 31));

    if ((s->flags & EVIDENCE_FRESH) != 0)
        learn_connect(d, index, false);
    learn_error(d, index, failed, times);
    learn_age(d, index, false, times);
    if (failed || (s->flags & EVIDENCE_DOUBTFUL) != 0)
        return;
    learn_knee(d, d->hosts[index], s);
    learn_latency(d, d->hosts[index], s, true);
}

/* The host held it for all that time, and nobody knows for how long it would have. */
static void learn_wait(struct detect *d, uint32_t index, const struct evidence *s)
{
    if ((s->flags & EVIDENCE_FRESH) != 0)
        learn_connect(d, index, false);
    learn_latency(d, d->hosts[index], s, false);
}

void detect_count(struct detect *d, uint32_t index, const struct evidence *s)
{
    assert(index < d->count && s->class < EVIDENCE_CLASS_MAX);
    if (s->outcome < EVIDENCE_OUTCOME_COUNT)
        d->hosts[index]->counts[s->class][s->outcome] += UINT64_C(1) << (s->thinned & 31);
}

void detect_learn(struct detect *d, uint32_t index, const struct evidence *s)
{
    assert(index < d->count && s->class < EVIDENCE_CLASS_MAX);
    d->now = s->at;
    switch ((enum evidence_outcome)s->outcome) {
    case EVIDENCE_OK:
        learn_answer(d, index, s, false);
        return;
    case EVIDENCE_ERROR:
    case EVIDENCE_GATEWAY:
    case EVIDENCE_RESET:
    case EVIDENCE_CUT:
        learn_answer(d, index, s, true);
        return;
    case EVIDENCE_TIMEOUT:
        learn_wait(d, index, s);
        if (latency_is_common(d)) /* no host's fault, but it shows that failing is common, too */
            count_try(d, d->hosts[index], DETECT_OF_ERRORS, true, 1);
        else
            learn_error(d, index, true, 1);
        return;
    case EVIDENCE_ABANDONED:
        learn_wait(d, index, s);
        return;
    case EVIDENCE_CONNECT_FAILED:
        learn_lost(d, index);
        return;
    case EVIDENCE_REFUSED:
        learn_connect(d, index, true);
        return;
    case EVIDENCE_LATE:
        if (latency_is_common(d))
            return;
        learn_age(d, index, true, 1);
        learn_open(d, d->hosts[index], s);
        return;
    case EVIDENCE_OUTCOME_COUNT:
        return;
    }
}
