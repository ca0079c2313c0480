/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/tally.h"

void latency_record(struct latency *l, span_ns ns)
{
    histogram_record(&l->histogram, (ns + NS_PER_US - 1) / NS_PER_US); /* up: never too good */
    if (ns > l->max)
        l->max = ns;
}

span_ns latency_quantile(const struct latency *l, double q)
{
    uint64_t us = histogram_quantile(&l->histogram, q);

    return us > l->max / NS_PER_US ? l->max : us * NS_PER_US;
}

bool shot_succeeded(const struct shot *s)
{
    return s->outcome == CALL_ANSWERED && s->status >= 200 && s->status < 400;
}

void tally_sent(struct tally *t, mono_ns due_at, mono_ns now)
{
    t->sent++;
    latency_record(&t->lag, mono_since(due_at, now));
}

void tally_over(struct tally *t, const struct shot *s)
{
    t->outcomes[s->outcome]++;
    if (s->outcome == CALL_ANSWERED && s->status < TALLY_STATUSES)
        t->statuses[s->status]++;
    latency_record(&t->all, shot_latency(s));
    if (!shot_succeeded(s))
        return;
    t->succeeded++;
    latency_record(&t->successes, shot_latency(s));
    latency_record(&t->service, mono_since(s->sent_at, s->over_at));
}
