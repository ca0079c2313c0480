/* SPDX-License-Identifier: Apache-2.0 */
/* Survivors that cannot carry the load: the cap is lowered, the least bad host is let back. */
#include <math.h>

#include "control/detection_say.h"
#include "control/effect_parts.h"
#include "policy/host.h"

#define OVERLOADED_FOR 4   /* half seconds, before a host is let back, and then the next one */
#define WELL_FOR       120 /* half seconds, before one more may go out again */
#define NO_HELP        0.5 /* a host that fails so much carries nothing */

double effect_load(const struct watched *c)
{
    const struct detect *judge = &c->detection->judge;
    uint32_t serving = 0;

    for (uint32_t i = 0; i < c->roster.count; i++)
        serving += c->detection->members[i]->serving;
    return knee_load(&judge->knee, serving, serving);
}

/* Half way from what an ejection may load them to, to where they slow down. */
static double load_most(const struct watched *c)
{
    return (fmin(c->config->detection.max_load, 1) + 1) / 2;
}

static double badness(const struct effect_host *h)
{
    return h->account != NULL && !h->account->summed_up ? effect_badness(h->account) : h->badness;
}

/* Of those out that could carry something; UINT32_MAX: none. */
static uint32_t least_bad(const struct watched *c)
{
    uint32_t best = UINT32_MAX;
    double least = NO_HELP;

    for (uint32_t i = 0; i < c->roster.count; i++) {
        struct host *h = c->state->hosts.at[c->roster.hosts[i].slot];

        if (!h->judged.ejected || h->judged.drained || h->life.needs_human)
            continue;
        h->effect->badness = badness(h->effect);
        if (h->effect->badness < least) {
            least = h->effect->badness;
            best = i;
        }
    }
    return best;
}

static void relieve(struct watched *c, double load, mono_ns now)
{
    uint32_t index = least_bad(c);

    c->judge.most_out = c->judge.ejected - (index != UINT32_MAX);
    c->judge.lowered = true;
    if (index == UINT32_MAX) {
        effect_say_no_help(c, load);
        return;
    }
    effect_count(c, EFFECT_STAT_readmitted_for_capacity);
    effect_say_capacity(c, index, load);
    deeds_undo(c, index, now);
}

/* One host at a time, each a minute. */
static void relax(struct watched *c)
{
    c->effects->well_for = 0;
    c->judge.most_out++;
    if (c->judge.most_out >= c->judge.count)
        c->judge.lowered = false;
}

void effect_look_at_capacity(struct watched *c, mono_ns now)
{
    double load = effect_load(c);
    bool over = c->judge.ejected > 0 && load > load_most(c);

    if (c->config->detection.mode != DETECTION_ENFORCE)
        return;
    c->effects->overloaded_for = over ? c->effects->overloaded_for + 1 : 0;
    c->effects->well_for = c->judge.lowered && !over ? c->effects->well_for + 1 : 0;
    if (c->effects->overloaded_for >= OVERLOADED_FOR &&
        (!c->judge.lowered || c->judge.most_out >= c->judge.ejected)) {
        c->effects->overloaded_for = 0;
        relieve(c, load, now);
    }
    if (c->effects->well_for >= WELL_FOR)
        relax(c);
}
