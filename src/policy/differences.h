/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Envoy does one thing and Firebreak another: each difference once, with its key in
 * `resilience.differences` and what Envoy does, in a line. docs/differences.md says why. A cluster
 * has a set of them: those in which it follows Envoy.
 */
#ifndef POLICY_DIFFERENCES_H
#define POLICY_DIFFERENCES_H

#include <stdbool.h>
#include <stdint.h>

#define DIFFERENCES(X)                                                                             \
    X(CAP_ROUNDS_TO_NOBODY, "capRoundsToNobody",                                                   \
      "a maxEjectionPercent that comes to less than one host ejects nobody")                       \
    X(LAST_HOST_EJECTED, "lastHostEjected", "the last healthy host is ejected like any other")     \
    X(FEW_HEALTHY_EJECTED, "fewHealthyEjected",                                                    \
      "with fewer than four healthy hosts a run of failures ejects as with many")                  \
    X(REEJECTION_SLOWER, "reejectionSlower",                                                       \
      "a host ejected within a second of its return is still picked, up to a second longer")       \
    X(EJECTED_STILL_PICKED, "ejectedStillPicked",                                                  \
      "a host ejected within a second of another's ejection or return is still picked, up to a "   \
      "second longer")                                                                             \
    X(CONNECT_ENDS_LOCAL_RUN, "connectEndsLocalRun",                                               \
      "a connection that is there ends the run of local-origin failures, with no answer yet")      \
    X(TIMEOUT_ALWAYS_COUNTS, "timeoutAlwaysCounts",                                                \
      "a timeout counts against the host though our own queue had most of the time")               \
    X(FAILED_CONNECT_STAYS, "failedConnectStays",                                                  \
      "a connect that failed fails the request: it moves to no other host without a retry policy") \
    X(LOST_REUSE_FAILS, "lostReuseFails",                                                          \
      "a reused connection that the host had closed already fails the request, and counts")        \
    X(CUT_IS_MALFORMED, "cutIsMalformed",                                                          \
      "an answer that the end of its connection cuts is a protocol error (UPE, 502), not UC")      \
    X(EJECTION_CLOSES, "ejectionCloses",                                                           \
      "an ejection closes the host's connections even where panic goes on using it")               \
    X(QUEUE_PER_HOST, "queuePerHost",                                                              \
      "requests wait at the host that was picked, on their own worker; who waits for a connect "   \
      "is pending, too; a pool without any connection opens one beyond maxConnections")            \
    X(CONNECT_FAILS_ALL, "connectFailsAll",                                                        \
      "a connect that fails fails all requests that wait for that host on the worker")             \
    X(RETRY_ANY_METHOD, "retryAnyMethod", "a retry policy retries every method, POST too")         \
    X(THROWN_AWAY_CLOSES, "thrownAwayCloses",                                                      \
      "an answer that is thrown away for a retry closes its connection, unless it has no body")    \
    X(RETRY_ALWAYS_WAITS, "retryAlwaysWaits",                                                      \
      "every retry waits its back-off, and may go to the host that has just failed")               \
    X(RETRY_UNBUDGETED, "retryUnbudgeted",                                                         \
      "retries are bounded by maxRetries (or Istio's retryBudget) alone, not by a rate")           \
    X(RETRY_TOO_LATE, "retryTooLate",                                                              \
      "a retry is waited for though its back-off outlasts the timeout: 504 then")                  \
    X(RETRY_BUFFER_REFUSES, "retryBufferRefuses",                                                  \
      "a body that passes the retry buffer during a back-off is refused: 507")

enum difference {
#define X(name, key, text) DIFFERENCE_##name,
    DIFFERENCES(X)
#undef X
        DIFFERENCE_COUNT
};

_Static_assert(DIFFERENCE_COUNT <= 64, "a set of differences is 64 bits");

typedef uint64_t difference_set;

#define DIFFERENCES_FIREBREAK ((difference_set)0)
#define DIFFERENCES_ENVOY     (~(difference_set)0 >> (64 - DIFFERENCE_COUNT))

struct difference_info {
    const char *key;
    const char *text; /* what Envoy does */
};

extern const struct difference_info difference_info[DIFFERENCE_COUNT];

static inline bool as_envoy(difference_set s, enum difference which)
{
    return (s >> which & 1) != 0;
}

static inline difference_set difference_put(difference_set s, enum difference which, bool envoy)
{
    difference_set bit = (difference_set)1 << which;

    return envoy ? s | bit : s & ~bit;
}

#endif
