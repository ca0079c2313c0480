/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of the requests of a load: each is counted once, and timed from the moment it was
 * due, not from when a busy generator got round to it.
 */
#ifndef LAB_TALLY_H
#define LAB_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "lab/caller.h"
#include "stats/histogram.h"

#define TALLY_STATUSES 600

struct latency {
    struct histogram histogram; /* us */
    span_ns max;
};

/* One request that is over. */
struct shot {
    mono_ns due_at;
    mono_ns sent_at;
    mono_ns over_at;
    enum call_outcome outcome;
    uint32_t status; /* where it was answered */
};

struct tally {
    uint64_t due;
    uint64_t dropped; /* due, but no connection was free */
    uint64_t sent;
    uint64_t resent; /* of those: again, on a fresh connection */
    uint64_t succeeded;
    uint64_t outcomes[CALL_OUTCOME_COUNT];
    uint64_t statuses[TALLY_STATUSES];
    uint64_t opened; /* connections */
    uint64_t body_bytes;
    struct latency all;       /* of whatever ended, failures too */
    struct latency successes; /* of what succeeded */
    struct latency service;   /* of what succeeded, from when it was sent */
    struct latency lag;       /* from due to sent: the generator's own */
};

/* An answer with a status from 200 to 399. */
bool shot_succeeded(const struct shot *s);

static inline span_ns shot_latency(const struct shot *s)
{
    return mono_since(s->due_at, s->over_at);
}

void tally_sent(struct tally *t, mono_ns due_at, mono_ns now);
void tally_over(struct tally *t, const struct shot *s);

void latency_record(struct latency *l, span_ns ns);

/* Never above the largest that was recorded. */
span_ns latency_quantile(const struct latency *l, double q);

static inline uint64_t latency_count(const struct latency *l)
{
    return l->histogram.count;
}

#endif
