/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a half second: latencies become evidence; and whether an accusation holds. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "policy/detect.h"
#include "policy/detect_parts.h"

/* --- the sums --- */

bool detect_by_half_seconds(enum detect_line line)
{
    return line == DETECT_RANK || line == DETECT_TAIL || line == DETECT_STALLS;
}

bool detect_of_latency(enum detect_line line)
{
    return detect_by_half_seconds(line) || line == DETECT_AGE;
}

double detect_step_share(enum detect_line line)
{
    return line == DETECT_STALLS ? DETECT_STALL_SHARE : DETECT_STEP_SHARE;
}

/* The net of a half second is capped, never only its positive part (B18). */
double detect_sum(const struct detect *d, uint32_t index, enum detect_line line)
{
    const struct detect_host *h = d->hosts[index];
    double gain = fmin(h->gain[line], detect_step_share(line) * d->config.threshold);

    if (!detect_by_half_seconds(line))
        return h->sum[line];
    return fmin(fmax(0, h->sum[line] + gain), DETECT_SUM_MOST * d->config.threshold);
}

static void remember(const struct detect *d, struct detect_host *h)
{
    struct detect_bucket *b = &h->history[h->history_next++ % DETECT_HISTORY];

    b->number = d->bucket;
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        b->from[line] = (float)h->from[line];
        b->gain[line] = (float)h->gain[line];
        b->least[line] = (float)h->least[line];
        b->most[line] = (float)(DETECT_SUM_MOST * d->config.threshold - h->lost[line]);
    }
    h->placed = 0;
    memset(h->gain, 0, sizeof(h->gain));
    memset(h->least, 0, sizeof(h->least));
    memset(h->lost, 0, sizeof(h->lost));
}

static void begin_bucket(struct detect *d)
{
    d->bucket++;
    for (uint32_t i = 0; i < d->count; i++)
        memcpy(d->hosts[i]->from, d->hosts[i]->sum, sizeof(d->hosts[i]->from));
}

static void fade(struct detect_rate *rates, double keeps)
{
    for (uint32_t k = 0; k < DETECT_KIND_COUNT; k++) {
        rates[k].tries *= keeps;
        rates[k].bad *= keeps;
    }
}

static void fade_seen(struct detect_host *h)
{
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        h->seen[c] = h->seen[c] < SEEN_LEAST ? 0 : h->seen[c] * LATELY_KEEPS;
}

static void weigh_all(struct detect *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        struct detect_host *h = d->hosts[i];

        for (int line = 0; line < DETECT_LINE_COUNT; line++)
            h->sum[line] = detect_sum(d, i, (enum detect_line)line);
        remember(d, h);
        fade(h->lately, LATELY_KEEPS);
        fade(h->just_now, JUST_NOW_KEEPS);
        fade_seen(h);
    }
    fade(d->lately, LATELY_KEEPS);
    fade(d->just_now, JUST_NOW_KEEPS);
}

/* --- the crowd --- */

uint32_t detect_alike(const struct detect *d, enum detect_line line)
{
    uint32_t alike = 0;

    for (uint32_t i = 0; i < d->count; i++)
        alike += d->hosts[i]->serving && d->hosts[i]->sum[line] > d->config.threshold / 2;
    return alike;
}

/* Where the others answer as they always did, it is known which half is the bad one. */
double detect_crowd_share(enum detect_line line, bool fleet_slow)
{
    return line == DETECT_RANK && !fleet_slow ? CROWD_SHARE_APART : CROWD_SHARE;
}

static bool is_crowd(const struct detect *d, enum detect_line line)
{
    uint32_t alike = detect_alike(d, line);

    return alike > 1 && alike > detect_crowd_share(line, d->fleet.slow) * d->count;
}

/* What so many hosts share is nobody's fault: the sums begin anew. */
static void disperse(struct detect *d, enum detect_line line)
{
    if (!is_crowd(d, line))
        return;
    for (uint32_t i = 0; i < d->count; i++)
        d->hosts[i]->sum[line] = 0;
}

uint32_t detect_much_slower(const struct detect *d, uint32_t index)
{
    uint32_t since = d->hosts[index]->slow_since;

    return since == 0 ? 0 : d->tenth - since;
}

/* Accused, and it is not settled how much slower it is. */
static bool is_open(const struct detect *d, uint32_t index)
{
    const struct detect_host *h = d->hosts[index];
    uint32_t much = detect_much_slower(d, index);

    return h->serving && detect_sum(d, index, DETECT_RANK) > d->config.threshold / 2 &&
           (h->late_since == 0 || d->tenth - h->late_since < LATE_TENTHS ||
            (much > 0 && much < SURE_TENTHS));
}

void detect_glance(struct detect *d)
{
    bool open = false;

    d->tenth++;
    for (uint32_t i = 0; i < d->count && d->count <= GLANCE_HOSTS_MAX && !open; i++)
        open = is_open(d, i);
    if (open)
        detect_compare(d, COMPARE_ONLY);
}

void detect_turn(struct detect *d)
{
    weigh_all(d);
    d->tenth = (d->bucket + 1) * DETECT_GLANCES + 1;
    detect_compare(d, COMPARE_AND_LEARN);
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (detect_by_half_seconds((enum detect_line)line))
            disperse(d, (enum detect_line)line);
    }
    detect_settle_stalls(d);
    begin_bucket(d);
}

static void void_waits_of(struct detect *d, struct detect_host *h)
{
    for (int i = 0; i < DETECT_LINE_COUNT; i++) {
        enum detect_line line = (enum detect_line)i;

        if (detect_by_half_seconds(line))
            h->sum[line] = h->from[line] = h->gain[line] = 0;
        else if ((detect_of_latency(line) || line == DETECT_CONNECTS) && h->sum[line] > 0)
            detect_add_now(d, h, line, -h->sum[line]);
    }
}

void detect_void_waits(struct detect *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        void_waits_of(d, d->hosts[i]);
}

/* --- accusations --- */

bool detect_accuses(const struct detect *d, uint32_t index, enum detect_line line)
{
    assert(index < d->count && line < DETECT_LINE_COUNT);
    return detect_sum(d, index, line) > d->config.threshold;
}

bool detect_accuses_at_all(const struct detect *d, uint32_t index)
{
    bool any = false;

    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        any |= detect_sum(d, index, (enum detect_line)line) > d->config.threshold;
    return any;
}

uint32_t detect_late_for(const struct detect *d, uint32_t index)
{
    uint32_t since = d->hosts[index]->late_since;

    return since == 0 ? 0 : d->tenth - since;
}

bool detect_guard_asked(enum detect_line line, enum detect_guard g)
{
    switch (g) {
    case DETECT_FLEET:
        return detect_of_latency(line);
    case DETECT_CROWD:
        return true;
    case DETECT_NOT_RATED:
    case DETECT_GATE:
        return line == DETECT_RANK;
    case DETECT_HOLDS:
        return false;
    }
    return false;
}

static bool stands_against(const struct detect *d, uint32_t index, enum detect_line line,
                           enum detect_guard g)
{
    switch (g) {
    case DETECT_FLEET:
        return d->fleet.slow;
    case DETECT_CROWD:
        return is_crowd(d, line);
    case DETECT_NOT_RATED:
        return !d->hosts[index]->rated;
    case DETECT_GATE:
        return detect_late_for(d, index) < LATE_TENTHS;
    case DETECT_HOLDS:
        return false;
    }
    return false;
}

bool detect_guard_holds(const struct detect *d, uint32_t index, enum detect_line line,
                        enum detect_guard g)
{
    return detect_guard_asked(line, g) && stands_against(d, index, line, g);
}

enum detect_guard detect_guard_of(const struct detect *d, uint32_t index, enum detect_line line)
{
    static const enum detect_guard order[] = {DETECT_FLEET, DETECT_CROWD, DETECT_NOT_RATED,
                                              DETECT_GATE};

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (detect_guard_holds(d, index, line, order[i]))
            return order[i];
    }
    return DETECT_HOLDS;
}

/* --- what there is to be shown of a sum --- */

static struct detect_step under_way(const struct detect *d, const struct detect_host *h,
                                    enum detect_line line)
{
    return (struct detect_step){.number = d->bucket,
                                .from = h->from[line],
                                .gain = h->gain[line],
                                .least = h->least[line],
                                .most = DETECT_SUM_MOST * d->config.threshold - h->lost[line]};
}

bool detect_past(const struct detect *d, uint32_t index, enum detect_line line, uint32_t n,
                 struct detect_step *out)
{
    const struct detect_host *h = d->hosts[index];
    const struct detect_bucket *b;

    if (n == 0) {
        *out = under_way(d, h, line);
        return true;
    }
    if (n > h->history_next || n > DETECT_HISTORY)
        return false;
    b = &h->history[(h->history_next - n) % DETECT_HISTORY];
    *out = (struct detect_step){.number = b->number,
                                .from = (double)b->from[line],
                                .gain = (double)b->gain[line],
                                .least = (double)b->least[line],
                                .most = (double)b->most[line]};
    return true;
}
