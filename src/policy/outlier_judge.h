/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of one cluster: weighs a trigger against the guards and says for how long; its sweep
 * says who comes back and who stands out by his rates. Control thread only.
 */
#ifndef POLICY_OUTLIER_JUDGE_H
#define POLICY_OUTLIER_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/units.h"
#include "policy/outlier.h"
#include "policy/outlier_runs.h"

#define OUTLIER_NO_RATE (-1.0)

/* The judge's memory of one host. */
struct outlier_host {
    bool ejected;
    bool drained;     /* by hand: it serves nobody, and is no peer to count on */
    bool by_few_rule; /* ejected, and that while fewer than four were healthy */
    uint32_t multiplier;
    uint32_t ejections; /* in total; never decays */
    mono_ns ejected_at;
    span_ns eject_for;
    mono_ns returned_at;
    struct outlier_count counts[OUTLIER_ORIGIN_COUNT]; /* of the finished interval */
    double rates[OUTLIER_ORIGIN_COUNT];                /* success in percent, or OUTLIER_NO_RATE */
};

void outlier_host_init(struct outlier_host *h);

struct outlier_member {
    struct outlier_runs *runs;
    struct outlier_host *host;
};

/* Of the finished interval; OUTLIER_NO_RATE each where the rule did not look. */
struct outlier_rates {
    double average;
    double threshold; /* a success rate below it stands out */
};

struct outlier {
    const struct outlier_config *config;
    const struct outlier_member *members;
    uint32_t count;
    uint32_t ejected;
    bool by_proof;     /* who is out comes back when he is pardoned, not by the clock */
    bool lowered;      /* the cap is lower than configured ... */
    uint32_t most_out; /* ... no more than so many hosts: the others could not carry more */
    struct rng *rng;
    struct outlier_rates rates[OUTLIER_ORIGIN_COUNT];
};

/* Then outlier_adopt. */
void outlier_init(struct outlier *o, struct rng *rng);

/* The cluster's present hosts, their memory kept from before; called again when they or the
 * configuration change. What it points to is the caller's. */
void outlier_adopt(struct outlier *o, const struct outlier_config *c,
                   const struct outlier_member *members, uint32_t count);

struct outlier_verdict {
    enum outlier_guard guard; /* OUTLIER_GUARD_NONE: eject */
    span_ns eject_for;        /* where ejected: min(base x multiplier, max(max, base)) + jitter */
    uint32_t multiplier;
};

/*
 * Law 1, fewer than four healthy hosts: one of them may go, if none that went by this rule is still
 * out, and there is total evidence, while peers are fine: at least one other healthy host is
 * (outlier_fine). Each part of the law is lifted by its difference.
 */
#define OUTLIER_FEW_HEALTHY 4

/* What each guard says by itself of an ejection of host |index| now, and what it looks at. */
struct outlier_look {
    bool holds[OUTLIER_GUARD_COUNT];
    uint32_t hosts;
    uint32_t ejected;
    uint32_t serving; /* neither out nor drained */
    uint32_t cap;     /* percent */
    bool one_by_few;  /* a host that went while few were healthy is out still */
    bool total;       /* the evidence is total, and not of what is common */
};

void outlier_look(const struct outlier *o, uint32_t index, mono_ns now, struct outlier_look *out);

/*
 * Weighs trigger |t| against host |index|. The caller restarts the run of that trigger. Where the
 * verdict is to eject, the host is marked out here; the caller does the deed (health, counters,
 * log).
 */
struct outlier_verdict outlier_consider(struct outlier *o, uint32_t index, enum outlier_trigger t,
                                        mono_ns now);

/* By hand, without evidence: the same guards, no dice. */
struct outlier_verdict outlier_eject(struct outlier *o, uint32_t index, mono_ns now);

/* Host |index|, which is out, is in again at once: runs begin anew. */
void outlier_pardon(struct outlier *o, uint32_t index, mono_ns now);

/*
 * The sweep, once an interval, in three parts and in this order.
 *
 * The first: marks hosts whose time is over as in again (runs restarted) and writes their indices
 * to |returned| (room for |count|); takes what was counted in the interval. Returns how many came
 * back. Where detection is off, all come back.
 *
 * A host that went on total evidence is not forgiven it: it goes on until there is a success, so
 * that the host goes again at its first full run; any other is judged from the beginning.
 */
uint32_t outlier_sweep(struct outlier *o, uint32_t *returned, mono_ns now);

/*
 * The second: works out the rates of the finished interval (outlier_statistics.c). |suspects| (room
 * for |count|) gets what stands out about each host, as bits; the caller puts each to
 * outlier_consider, all success rates before all failure percentages.
 */
void outlier_weigh(struct outlier *o, enum outlier_origin origin, outlier_triggers *suspects);

/* The last: the multiplier of each host that had no trouble for an interval goes down by one. */
void outlier_decay(struct outlier *o, mono_ns now);

#endif
