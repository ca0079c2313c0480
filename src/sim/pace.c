/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pace.h"

#include <math.h>

#include "policy/normal.h"

static span_ns usual_time(const struct pace *p, struct world *w, span_ns usual)
{
    double u;

    if (p->sigma == 0)
        return usual + world_exponential(w, usual);
    u = rng_unit(&w->rng);
    return (span_ns)((double)usual * exp(p->sigma * normal_quantile(u > 0 ? u : 0.5)));
}

static bool meets(const struct pace *p, enum method method)
{
    bool reads = method == METHOD_GET || method == METHOD_HEAD;

    switch (p->whom) {
    case PACE_ALL:
        return true;
    case PACE_READS:
        return reads;
    case PACE_WRITES:
        return !reads;
    }
    return true;
}

double pace_slow_by(const struct pace *p, mono_ns now)
{
    double gone = (double)mono_since(p->slow_from, now);

    if (p->slow == 0 || now < p->slow_from)
        return 1;
    if (p->slow_ramp == 0 || gone >= (double)p->slow_ramp)
        return p->slow;
    return 1 + (p->slow - 1) * gone / (double)p->slow_ramp;
}

struct pace_time pace_draw(const struct pace *p, struct world *w, span_ns usual, enum method method)
{
    double work = (double)usual_time(p, w, usual);
    double factor = 1;
    bool heavy = world_chance(w, p->heavy_permille);
    bool in_tail = world_chance(w, p->tail_permille);

    if (heavy)
        work *= p->heavy;
    if (meets(p, method))
        factor = pace_slow_by(p, w->now) * (in_tail ? p->tail : 1);
    return (struct pace_time){
        .work = (span_ns)(work * factor), .heavy = heavy, .blamed = factor > 1};
}

span_ns pace_thawed(const struct pace *p, mono_ns now, span_ns work)
{
    span_ns runs = p->freeze_every - p->freeze_for;
    span_ns at, before;

    if (p->freeze_every == 0 || work == MONO_NEVER)
        return work;
    at =
        mono_since(p->freeze_from, now) % p->freeze_every; /* it runs at first, then it is frozen */
    if (at >= runs)
        return p->freeze_every - at + pace_thawed(p, p->freeze_from, work);
    before = runs - at;
    if (work <= before)
        return work;
    return work + (1 + (work - before - 1) / runs) * p->freeze_for;
}
