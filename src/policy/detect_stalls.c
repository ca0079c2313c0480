/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line for what stalls: few answers, each far later than any ought to be. What is usual of the
 * service is learnt from all hosts, of each only up to where its sum was last nothing: so a host
 * that freezes again and again does not make that usual, and two of them not for each other.
 */
#include <math.h>

#include "policy/detect.h"
#include "policy/detect_parts.h"

enum detect_stall detect_stall_of(uint32_t us, uint32_t p99)
{
    uint16_t bin = peer_bin(us);

    if (us < LATE_US_LEAST || bin <= p99 + LATE_BINS)
        return DETECT_IN_TIME;
    return bin > p99 + LONG_BINS ? DETECT_STALLED_LONG : DETECT_STALLED;
}

/* --- the sum --- */

static double usual_of(const struct detect *d, const struct detect_host *h, int kind)
{
    double share = fmax(d->stalls[kind].share, h->usual_stalls[kind]);

    return fmin(fmax(share, kind == 0 ? STALL_LEAST : LONG_LEAST), STALL_MOST);
}

static double bad_of(double usual)
{
    return fmax(STALL_BAD, BAD_TIMES * usual);
}

static double nats_of_one(const struct detect *d, const struct detect_host *h, int kind)
{
    double usual = usual_of(d, h, kind);

    return log(bad_of(usual) / usual);
}

static double nats_of(const struct detect *d, const struct detect_host *h, enum detect_stall stall)
{
    double usual = usual_of(d, h, 0);

    switch (stall) {
    case DETECT_IN_TIME:
        return log((1 - bad_of(usual)) / (1 - usual));
    case DETECT_STALLED:
        return nats_of_one(d, h, 0);
    case DETECT_STALLED_LONG:
        return fmax(nats_of_one(d, h, 0), nats_of_one(d, h, 1));
    }
    return 0;
}

static void note_pause(const struct detect *d, struct detect_stalls *s)
{
    if (s->seen[0] > 0 && d->bucket - s->latest > s->pause)
        s->pause = d->bucket - s->latest;
    s->latest = d->bucket;
}

void detect_learn_stall(struct detect *d, struct detect_host *h, enum detect_stall stall)
{
    detect_add_later(h, DETECT_STALLS, nats_of(d, h, stall), 0);
    if (stall != DETECT_IN_TIME)
        note_pause(d, &h->stalls);
    h->stalls.answers++;
    h->stalls.seen[0] += stall != DETECT_IN_TIME;
    h->stalls.seen[1] += stall == DETECT_STALLED_LONG;
}

void detect_learn_stall_end(struct detect *d, struct detect_host *h, enum detect_stall stall)
{
    if (stall != DETECT_STALLED_LONG)
        return;
    detect_add_later(h, DETECT_STALLS,
                     nats_of(d, h, DETECT_STALLED_LONG) - nats_of(d, h, DETECT_STALLED), 0);
    h->stalls.seen[1]++;
}

/* --- the pause between two --- */

static bool stalls_most(const struct detect *d, uint32_t index)
{
    double stalls = detect_sum(d, index, DETECT_STALLS);
    bool most = stalls > d->config.threshold / 4;

    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        most &= line == DETECT_STALLS || stalls > detect_sum(d, index, (enum detect_line)line);
    return most;
}

span_ns detect_pause(const struct detect *d, uint32_t index)
{
    return stalls_most(d, index) ? d->hosts[index]->stalls.pause * DETECT_BUCKET : 0;
}

bool detect_may_stall(const struct detect *d, uint32_t index)
{
    const struct detect_stalls *s = &d->hosts[index]->stalls;

    return detect_pause(d, index) > 0 && d->bucket - s->latest <= s->pause + s->pause / 4;
}

/* --- what is usual --- */

static void learn_usual(struct detect_usual *u, double n, double seen)
{
    u->known = (uint32_t)fmin(u->known + n, STALL_MEMORY);
    u->share += (seen - n * u->share) / u->known;
}

static void settle(struct detect *d, struct detect_host *h)
{
    double n = h->stalls.answers;

    for (int kind = 0; kind < DETECT_STALL_KINDS && n > 0; kind++) {
        double seen = fmin(h->stalls.seen[kind], n);

        learn_usual(&d->stalls[kind], n, seen);
        h->usual_stalls[kind] += fmin(1, OFFSET_RATE * n) * (seen / n - h->usual_stalls[kind]);
    }
    h->stalls = (struct detect_stalls){0};
}

/* So many have had one that it is no sign of a bad host. */
static bool is_common(const struct detect *d)
{
    uint32_t hosts = 0;

    for (uint32_t i = 0; i < d->count; i++)
        hosts += d->hosts[i]->stalls.seen[0] > 0;
    return hosts > 1 && hosts > CROWD_SHARE * d->count;
}

void detect_settle_stalls(struct detect *d)
{
    bool common = is_common(d);

    for (uint32_t i = 0; i < d->count; i++) {
        struct detect_host *h = d->hosts[i];

        if (common || h->sum[DETECT_STALLS] <= 0 || h->stalls.answers >= STALL_PENDING)
            settle(d, h);
    }
}
