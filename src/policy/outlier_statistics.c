/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rates of a finished interval: whose success stands out among the hosts with requests enough,
 * and whose failures are too many in themselves (reference/envoy-semantics.md 1.6). In doubles, as
 * Envoy's, so that the same hosts stand out.
 */
#include <math.h>

#include "policy/outlier_judge.h"

/* Of the hosts with volume enough for the success rate. */
struct spread {
    uint32_t hosts;
    double mean;
    double deviation; /* of the population */
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* In percent; OUTLIER_NO_RATE where it is out, or had fewer than |volume| requests, or none. */
static double rate_of(const struct outlier_member *m, enum outlier_origin origin, uint32_t volume)
{
    const struct outlier_count *n = &m->host->counts[origin];

    if (m->host->ejected || n->total == 0 || n->total < volume)
        return OUTLIER_NO_RATE;
    return 100.0 * (double)n->success / (double)n->total;
}

static struct spread spread_of(const struct outlier *o, enum outlier_origin origin)
{
    uint32_t volume = o->config->rates.success_volume;
    struct spread s = {.hosts = 0};
    double squares = 0;

    for (uint32_t i = 0; i < o->count; i++) {
        double rate = rate_of(&o->members[i], origin, volume);

        s.hosts += rate >= 0;
        s.mean += rate >= 0 ? rate : 0;
    }
    if (s.hosts == 0)
        return s;
    s.mean /= s.hosts;
    for (uint32_t i = 0; i < o->count; i++) {
        double rate = rate_of(&o->members[i], origin, volume);

        squares += rate >= 0 ? (rate - s.mean) * (rate - s.mean) : 0;
    }
    s.deviation = sqrt(squares / s.hosts);
    return s;
}

static void weigh_success(struct outlier *o, enum outlier_origin origin, outlier_triggers *suspects)
{
    const struct outlier_rate_rules *rules = &o->config->rates;
    outlier_triggers bit = outlier_bit(
        origin == OUTLIER_EXTERNAL ? OUTLIER_SUCCESS_RATE : OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN);
    struct spread s = spread_of(o, origin);
    struct outlier_rates *out = &o->rates[origin];

    if (s.hosts == 0 || s.hosts < rules->success_hosts)
        return;
    out->average = s.mean;
    out->threshold = s.mean - s.deviation * (rules->success_factor / 1000.0);
    for (uint32_t i = 0; i < o->count; i++) {
        double rate = rate_of(&o->members[i], origin, rules->success_volume);

        if (rate >= 0 && rate < out->threshold)
            suspects[i] |= bit;
    }
}

static void weigh_failures(const struct outlier *o, enum outlier_origin origin,
                           outlier_triggers *suspects)
{
    const struct outlier_rate_rules *rules = &o->config->rates;
    outlier_triggers bit =
        outlier_bit(origin == OUTLIER_EXTERNAL ? OUTLIER_FAILURE_PERCENTAGE
                                               : OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN);
    uint32_t hosts = 0;

    for (uint32_t i = 0; i < o->count; i++)
        hosts += rate_of(&o->members[i], origin, rules->failure_volume) >= 0;
    if (hosts < rules->failure_hosts)
        return;
    for (uint32_t i = 0; i < o->count; i++) {
        double rate = rate_of(&o->members[i], origin, rules->failure_volume);

        if (rate >= 0 && 100.0 - rate >= rules->failure_percent)
            suspects[i] |= bit;
    }
}

void outlier_weigh(struct outlier *o, enum outlier_origin origin, outlier_triggers *suspects)
{
    const struct outlier_rate_rules *rules = &o->config->rates;
    uint32_t volume = least(rules->success_volume, rules->failure_volume);

    o->rates[origin] = (struct outlier_rates){OUTLIER_NO_RATE, OUTLIER_NO_RATE};
    for (uint32_t i = 0; i < o->count; i++)
        suspects[i] = 0;
    if (!o->config->enabled || o->count < least(rules->success_hosts, rules->failure_hosts))
        return;
    for (uint32_t i = 0; i < o->count; i++)
        o->members[i].host->rates[origin] = rate_of(&o->members[i], origin, volume);
    weigh_success(o, origin, suspects);
    weigh_failures(o, origin, suspects);
}
