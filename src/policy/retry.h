/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which failures of an attempt may be followed by another attempt, and how long to wait before it.
 * The conditions have Envoy's names and meanings (reference/envoy-semantics.md 4.2), the back-off
 * its rule (4.4). Whether there is room for the attempt is not said here: retry_budget.h, limit.h.
 * Pure.
 */
#ifndef POLICY_RETRY_H
#define POLICY_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/units.h"

/* Constant after RETRY_ON_, name as configured. */
#define RETRY_CONDITIONS(X)                                                                        \
    X(5XX, "5xx")                                                                                  \
    X(GATEWAY_ERROR, "gateway-error")                                                              \
    X(RESET, "reset")                                                                              \
    X(RESET_BEFORE_REQUEST, "reset-before-request")                                                \
    X(CONNECT_FAILURE, "connect-failure")                                                          \
    X(REFUSED_STREAM, "refused-stream")                                                            \
    X(RETRIABLE_4XX, "retriable-4xx")                                                              \
    X(RETRIABLE_STATUS_CODES, "retriable-status-codes")                                            \
    X(RETRIABLE_HEADERS, "retriable-headers")                                                      \
    X(ENVOY_RATELIMITED, "envoy-ratelimited")

#define X(constant, name) RETRY_INDEX_##constant,
enum retry_index { RETRY_CONDITIONS(X) RETRY_CONDITION_COUNT };
#undef X
#define X(constant, name) RETRY_ON_##constant = 1u << RETRY_INDEX_##constant,
enum retry_on { RETRY_ON_NOTHING = 0, RETRY_CONDITIONS(X) };
#undef X

/* The bit of |name|; RETRY_ON_NOTHING where there is no such condition. */
uint32_t retry_on_parse(struct bytes name);
/* The i-th name; NULL past the last. */
const char *retry_on_text(uint32_t i);

/* Status codes 100 to 599, a bit each. */
#define RETRY_STATUS_MIN 100
#define RETRY_STATUS_MAX 599

struct retry_statuses {
    uint64_t bits[(RETRY_STATUS_MAX - RETRY_STATUS_MIN) / 64 + 1];
};

/* False: no status. */
bool retry_statuses_add(struct retry_statuses *s, uint64_t status);

#define RETRY_ATTEMPTS_MAX    10
#define RETRY_BACKOFF_BASE    (25 * NS_PER_MS)
#define RETRY_BACKOFF_FACTOR  10 /* the longest back-off where none is given, in bases */
#define RETRY_BACKOFF_LONGEST (UINT32_MAX * NS_PER_MS)

struct retry_policy {
    uint32_t on;       /* enum retry_on bits */
    uint32_t attempts; /* beside the first; 0: none */
    struct retry_statuses statuses;
    span_ns base; /* whole milliseconds, at least one; at most RETRY_BACKOFF_LONGEST */
    span_ns max;  /* at least |base| */
};

enum retry_failure_kind {
    RETRY_FAILED_ANSWER,  /* with |status| */
    RETRY_FAILED_CONNECT, /* refused, unreachable, not in time */
    RETRY_FAILED_RESET,   /* broken before an answer, or what came was none */
    RETRY_FAILED_REFUSED, /* HTTP/2: REFUSED_STREAM */
    RETRY_FAILED_TIME     /* the per-try timeout */
};

struct retry_failure {
    enum retry_failure_kind kind;
    uint32_t status;
    bool marked;       /* the answer has one of the retriable headers */
    bool rate_limited; /* it has x-envoy-ratelimited */
    bool sent;         /* some byte of the request went out, in this or an earlier attempt */
};

/* Is it one of the failures that the policy retries? */
bool retry_matches(const struct retry_policy *p, const struct retry_failure *f);

/* Before the |n|-th retry, n from 1: whole milliseconds, from 0 to below min(base 2^(n-1), max). */
span_ns retry_backoff(const struct retry_policy *p, uint32_t n, struct rng *rng);

/*
 * What was sent beyond first attempts in the last ten seconds is little enough for a retry to go to
 * another host without a wait: a tenth of the requests, and always a few.
 */
bool retry_traffic_normal(uint64_t requests, uint64_t extra);

#endif
