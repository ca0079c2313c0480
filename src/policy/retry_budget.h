/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retry budget of one cluster: how much may be sent beyond the first attempts, whatever fails
 * (law 4). Each first attempt pays in a share of a token, time pays in a floor, a retry in back-off
 * or under way has cost a token. With none left the failure goes to the client as it is.
 *
 * Shared by all workers: one atomic. What it holds is the debt, so that zeroed memory is a full
 * bucket, and a full one (the rule) is only read by those who pay in. Settings are configuration,
 * and so an argument. Pure.
 */
#ifndef POLICY_RETRY_BUDGET_H
#define POLICY_RETRY_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

struct retry_budget_config {
    uint32_t earn_permille; /* thousandths of a token that a first attempt pays in */
    uint32_t floor_per_s;   /* tokens a second, whatever the traffic */
    uint32_t capacity;      /* most tokens at once; at most RETRY_BUDGET_CAPACITY_MAX */
};

#define RETRY_BUDGET_CAPACITY_MAX 16000

/* Fields only touched by retry_budget.c. */
struct retry_budget {
    _Alignas(64) _Atomic uint64_t word;
};

/* Full: what a proxy just started may spend. */
void retry_budget_init(struct retry_budget *b);

/* A first attempt was begun. */
void retry_budget_earn(struct retry_budget *b, const struct retry_budget_config *c);

/* Takes a token for one more attempt. False: there is none. */
bool retry_budget_spend(struct retry_budget *b, const struct retry_budget_config *c, mono_ns now);

/* Gives back the token of an attempt that was never begun. */
void retry_budget_refund(struct retry_budget *b);

/* Whole tokens at |now|. */
uint32_t retry_budget_tokens(const struct retry_budget *b, const struct retry_budget_config *c,
                             mono_ns now);

/*
 * Istio's retryBudget, a bound on retries at once in place of maxRetries: a share of the requests
 * under way and waiting (retries among them), and never fewer than a minimum
 * (reference/envoy-semantics.md 2.5).
 */
struct retry_share {
    bool given;
    uint32_t permille;
    uint32_t least;
};

uint32_t retry_share_max(const struct retry_share *s, uint64_t requests);

#endif
