/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of one exchange's attempts: where each is, what it holds of the limits, what it taught
 * about its host. For the files of exchange/ that decide; it decides nothing itself.
 */
#ifndef EXCHANGE_ATTEMPTS_H
#define EXCHANGE_ATTEMPTS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "exchange/exchange.h"
#include "policy/outlier_runs.h"

static inline void actions_add(struct actions *out, struct action a)
{
    assert(out->count < ACTIONS_MAX);
    out->at[out->count++] = a;
}

static inline void actions_add_simple(struct actions *out, enum action_kind kind)
{
    actions_add(out, (struct action){.kind = kind});
}

static inline bool exchange_follows_envoy(const struct exchange *x, enum difference which)
{
    return as_envoy(x->cluster->config->differences, which);
}

/* The last one. Only where there is one. */
static inline struct attempt *attempt_present(struct exchange *x)
{
    return &x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX];
}

static inline struct host *attempt_host(struct exchange *x)
{
    return x->cluster->hosts.at[attempt_present(x)->host];
}

/* When its host had the whole request; where it has no connection yet, when it was picked. */
mono_ns attempt_asked_at(const struct exchange *x);

/* The first, on |host|; |how| is ACTION_ATTEMPT or ACTION_ATTEMPT_FRESH. */
void attempt_start(struct exchange *x, uint32_t host, enum action_kind how, mono_ns now,
                   struct actions *out);

/* One more, beyond the first. */
void attempt_again(struct exchange *x, uint32_t host, enum action_kind how, mono_ns now,
                   struct actions *out);

/* Is there one under way? */
bool attempt_open(const struct exchange *x);

/* Closes the present attempt's books; what becomes of its connection is said by an action. */
void attempt_end(struct exchange *x, enum attempt_outcome outcome, uint32_t flags, mono_ns now);

/* A place among those that wait for its host, and for the cluster. */
bool attempt_take_host_place(struct exchange *x);
void attempt_give_place(struct exchange *x);

/* It waits no longer for a connection. */
void attempt_give_pending(struct exchange *x);

/* Evidence about the present attempt's host; told to the judge where a run is full. */
void attempt_learn(struct exchange *x, enum outlier_report report, uint32_t status, mono_ns now,
                   struct actions *out);

void attempt_count_error(struct exchange *x);

#endif
