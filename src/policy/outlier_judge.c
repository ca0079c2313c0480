/* SPDX-License-Identifier: Apache-2.0 */
/* Who goes, for how long, and who comes back. */
#include "policy/outlier_judge.h"

#include <assert.h>

void outlier_host_init(struct outlier_host *h)
{
    *h = (struct outlier_host){.ejected = false};
    for (unsigned i = 0; i < OUTLIER_ORIGIN_COUNT; i++)
        h->rates[i] = OUTLIER_NO_RATE;
}

void outlier_init(struct outlier *o, struct rng *rng)
{
    *o = (struct outlier){.rng = rng};
    for (unsigned i = 0; i < OUTLIER_ORIGIN_COUNT; i++)
        o->rates[i] = (struct outlier_rates){OUTLIER_NO_RATE, OUTLIER_NO_RATE};
}

void outlier_adopt(struct outlier *o, const struct outlier_config *c,
                   const struct outlier_member *members, uint32_t count)
{
    o->config = c;
    o->by_proof = c->return_on_proof;
    o->members = members;
    o->count = count;
    o->ejected = 0;
    for (uint32_t i = 0; i < count; i++)
        o->ejected += members[i].host->ejected;
}

/* --- the guards --- */

static bool follows(const struct outlier *o, enum difference which)
{
    return as_envoy(o->config->differences, which);
}

/* Total evidence, and not of what is common: some peer is fine meanwhile. */
static bool alone_in_trouble(const struct outlier *o, uint32_t index, mono_ns now)
{
    mono_ns trouble = outlier_total_evidence(o->members[index].runs, now);

    if (trouble == MONO_NEVER)
        return false;
    for (uint32_t i = 0; i < o->count; i++) {
        if (i != index && !o->members[i].host->ejected &&
            outlier_fine(o->members[i].runs, trouble, now))
            return true;
    }
    return false;
}

static bool one_is_out_by_few_rule(const struct outlier *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->members[i].host->by_few_rule)
            return true;
    }
    return false;
}

/* Counted after the action. */
static bool within_cap(const struct outlier *o)
{
    uint32_t most = o->config->max_ejection_percent;
    uint64_t percent = most > 100 ? 100 : most;

    if (o->lowered && o->ejected >= o->most_out)
        return false;
    if (((uint64_t)o->ejected + 1) * 100 <= o->count * percent)
        return true;
    if (o->ejected > 0)
        return false;
    return o->config->always_eject_one ||
           (percent > 0 && !follows(o, DIFFERENCE_CAP_ROUNDS_TO_NOBODY));
}

/* Who serves: neither ejected nor drained by hand. */
static uint32_t serving(const struct outlier *o)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->count; i++)
        n += !o->members[i].host->ejected && !o->members[i].host->drained;
    return n;
}

static bool few_healthy(const struct outlier *o)
{
    return serving(o) < OUTLIER_FEW_HEALTHY;
}

static bool keeps_few(const struct outlier *o, uint32_t index, mono_ns now)
{
    return few_healthy(o) && !follows(o, DIFFERENCE_FEW_HEALTHY_EJECTED) &&
           (one_is_out_by_few_rule(o) || !alone_in_trouble(o, index, now));
}

static bool stands_against(const struct outlier *o, uint32_t index, enum outlier_guard g,
                           mono_ns now)
{
    switch (g) {
    case OUTLIER_GUARD_ALREADY_OUT:
        return o->members[index].host->ejected;
    case OUTLIER_GUARD_LAST_HOST:
        return serving(o) <= 1 && !follows(o, DIFFERENCE_LAST_HOST_EJECTED);
    case OUTLIER_GUARD_CAP:
        return !within_cap(o);
    case OUTLIER_GUARD_FEW_HEALTHY:
        return keeps_few(o, index, now);
    case OUTLIER_GUARD_NONE:
    case OUTLIER_GUARD_NOT_ENFORCED:
    case OUTLIER_GUARD_COUNT:
        return false;
    }
    return false;
}

/* Hardest first. */
static enum outlier_guard guard_of(const struct outlier *o, uint32_t index, mono_ns now)
{
    static const enum outlier_guard order[] = {OUTLIER_GUARD_ALREADY_OUT, OUTLIER_GUARD_LAST_HOST,
                                               OUTLIER_GUARD_CAP, OUTLIER_GUARD_FEW_HEALTHY};

    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (stands_against(o, index, order[i], now))
            return order[i];
    }
    return OUTLIER_GUARD_NONE;
}

void outlier_look(const struct outlier *o, uint32_t index, mono_ns now, struct outlier_look *out)
{
    *out = (struct outlier_look){
        .hosts = o->count,
        .ejected = o->ejected,
        .serving = serving(o),
        .cap = o->config->max_ejection_percent > 100 ? 100 : o->config->max_ejection_percent,
        .one_by_few = one_is_out_by_few_rule(o),
        .total = alone_in_trouble(o, index, now),
    };
    for (int g = 0; g < OUTLIER_GUARD_COUNT; g++)
        out->holds[g] = stands_against(o, index, (enum outlier_guard)g, now);
}

static bool dice_say_no(const struct outlier *o, enum outlier_trigger t)
{
    uint32_t percent = o->config->enforcing[t];

    if (percent == 0 || percent >= 100)
        return percent == 0;
    return rng_below(o->rng, 100) >= percent;
}

/* --- for how long --- */

static span_ns longest(const struct outlier_config *c)
{
    return c->max_ejection > c->base_ejection ? c->max_ejection : c->base_ejection;
}

/* base x multiplier, at most |limit|; compared by dividing, the product need not fit. */
static span_ns multiplied(span_ns base, uint32_t multiplier, span_ns limit)
{
    if (base == 0 || multiplier <= limit / base)
        return base * multiplier;
    return limit;
}

/* Envoy's rule: one more while base x multiplier < max + base, that is: while (m - 1) x base < max.
 */
static uint32_t raised(uint32_t multiplier, const struct outlier_config *c)
{
    span_ns limit = longest(c);

    if (multiplier > 0 && multiplied(c->base_ejection, multiplier - 1, limit) >= limit)
        return multiplier;
    return multiplier == UINT32_MAX ? multiplier : multiplier + 1;
}

/* In whole milliseconds, as Envoy draws it. */
static span_ns draw_jitter(span_ns most, struct rng *rng)
{
    uint64_t ms = most / NS_PER_MS;

    if (ms == 0)
        return 0;
    if (ms >= UINT32_MAX)
        ms = UINT32_MAX - 1;
    return rng_below(rng, (uint32_t)ms + 1) * NS_PER_MS;
}

/* --- out, and in again --- */

/* Puts the host out where no |guard| is against it. */
static struct outlier_verdict verdict_of(struct outlier *o, uint32_t index,
                                         enum outlier_guard guard, mono_ns now)
{
    const struct outlier_config *c = o->config;
    struct outlier_host *h = o->members[index].host;

    if (guard != OUTLIER_GUARD_NONE)
        return (struct outlier_verdict){.guard = guard, .multiplier = h->multiplier};
    h->by_few_rule = few_healthy(o) && !follows(o, DIFFERENCE_FEW_HEALTHY_EJECTED);
    h->ejected = true;
    o->ejected++;
    h->ejections++;
    h->ejected_at = now;
    h->multiplier = raised(h->multiplier, c);
    h->eject_for = mono_after(multiplied(c->base_ejection, h->multiplier, longest(c)),
                              draw_jitter(c->jitter, o->rng));
    assert(o->ejected < o->count || follows(o, DIFFERENCE_LAST_HOST_EJECTED));
    return (struct outlier_verdict){
        .guard = OUTLIER_GUARD_NONE, .eject_for = h->eject_for, .multiplier = h->multiplier};
}

struct outlier_verdict outlier_consider(struct outlier *o, uint32_t index, enum outlier_trigger t,
                                        mono_ns now)
{
    assert(index < o->count && t > OUTLIER_NONE && t < OUTLIER_TRIGGER_COUNT);

    enum outlier_guard guard = guard_of(o, index, now);

    if (guard == OUTLIER_GUARD_NONE && dice_say_no(o, t))
        guard = OUTLIER_GUARD_NOT_ENFORCED;
    return verdict_of(o, index, guard, now);
}

struct outlier_verdict outlier_eject(struct outlier *o, uint32_t index, mono_ns now)
{
    assert(index < o->count);
    return verdict_of(o, index, guard_of(o, index, now), now);
}

static void let_back(struct outlier *o, uint32_t index, mono_ns now)
{
    struct outlier_host *h = o->members[index].host;

    h->ejected = false;
    h->by_few_rule = false;
    h->returned_at = now;
    o->ejected--;
}

void outlier_pardon(struct outlier *o, uint32_t index, mono_ns now)
{
    assert(index < o->count);
    if (!o->members[index].host->ejected)
        return;
    outlier_runs_forgive(o->members[index].runs);
    let_back(o, index, now);
}

static void end_ejection(struct outlier *o, uint32_t index, mono_ns now)
{
    if (o->members[index].host->by_few_rule)
        outlier_runs_restart_all(o->members[index].runs);
    else
        outlier_runs_forgive(o->members[index].runs);
    let_back(o, index, now);
}

static bool time_is_over(const struct outlier *o, const struct outlier_host *h, mono_ns now)
{
    if (o->config->enabled && o->by_proof)
        return false;
    return !o->config->enabled || mono_since(h->ejected_at, now) >= h->eject_for;
}

/* --- the sweep --- */

static void take_counts(const struct outlier_member *m)
{
    for (unsigned i = 0; i < OUTLIER_ORIGIN_COUNT; i++) {
        m->host->counts[i] = outlier_runs_take(m->runs, (enum outlier_origin)i);
        m->host->rates[i] = OUTLIER_NO_RATE;
    }
}

uint32_t outlier_sweep(struct outlier *o, uint32_t *returned, mono_ns now)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->count; i++) {
        struct outlier_host *h = o->members[i].host;

        take_counts(&o->members[i]);
        if (!h->ejected || !time_is_over(o, h, now))
            continue;
        end_ejection(o, i, now);
        returned[n++] = i;
    }
    return n;
}

void outlier_decay(struct outlier *o, mono_ns now)
{
    for (uint32_t i = 0; i < o->count; i++) {
        struct outlier_host *h = o->members[i].host;

        if (!h->ejected && h->multiplier > 0 &&
            mono_since(h->returned_at, now) >= o->config->interval)
            h->multiplier--;
    }
}
