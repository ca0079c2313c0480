/* SPDX-License-Identifier: Apache-2.0 */
/* Could the others carry what a host carries? By their own word, else by the learned knee. */
#include <math.h>

#include "policy/detect.h"

#define PRECISION 1000.0 /* no report is more precise than that */

/* The serving hosts but one. */
struct survivors {
    uint32_t count;
    uint32_t reporting;
    double used;  /* sum of what they report */
    double moved; /* fair shares of hosts that went out, and that are not in it yet */
};

static struct survivors survivors_of(const struct detect *d, uint32_t index)
{
    struct survivors s = {.count = 0};

    for (uint32_t i = 0; i < d->count; i++) {
        const struct detect_host *h = d->hosts[i];

        if (i != index && !h->serving)
            s.moved += h->moved / 1000.0;
        if (i == index || !h->serving)
            continue;
        s.count++;
        s.reporting += h->reports;
        s.used += h->reports ? h->utilization : 0;
    }
    return s;
}

/* What it gets of a whole share comes on top of what they have. */
static double reported_without(const struct detect_host *h, const struct survivors *s)
{
    double share = (h->serving ? 1 - h->cut / 1000.0 : 0) + h->moved / 1000.0;
    double load = s->used / s->reporting * (s->count + s->moved + share) / s->count;

    return round(load * PRECISION) / PRECISION;
}

double detect_load_without(const struct detect *d, uint32_t index)
{
    const struct detect_host *h = d->hosts[index];
    struct survivors s = survivors_of(d, index);

    if (s.reporting > 0 && 2 * s.reporting >= s.count)
        return reported_without(h, &s);
    return knee_load(&d->knee, s.count + h->serving, s.count);
}
