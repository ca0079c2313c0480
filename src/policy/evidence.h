/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker tells the watch about one attempt, decided at the attempt's end. What the proxy
 * itself refused is never one (law 2). One exception comes before the end: EVIDENCE_LATE, an
 * attempt that has been open for longer than nearly all of its class take.
 */
#ifndef POLICY_EVIDENCE_H
#define POLICY_EVIDENCE_H

#include <stdint.h>

#include "base/units.h"

/* Constant after EVIDENCE_, name as shown. */
#define EVIDENCE_OUTCOMES(X)                                                                       \
    X(OK, ok)                                                                                      \
    X(ERROR, error)                   /* 5xx but those of a gateway */                             \
    X(GATEWAY, gateway)               /* 502, 503, 504 */                                          \
    X(TIMEOUT, timeout)               /* no answer in time */                                      \
    X(RESET, reset)                   /* lost before an answer, or the answer was no HTTP */       \
    X(CUT, cut)                       /* the answer began and never became whole */                \
    X(CONNECT_FAILED, connect_failed) /* not in time, unreachable */                               \
    X(REFUSED, refused)               /* the connect was refused */                                \
    X(ABANDONED, abandoned)           /* the client left; no failure, a censored latency */        \
    X(LATE, late)                     /* still open; its end is told, too */

#define X(constant, name) EVIDENCE_##constant,
enum evidence_outcome { EVIDENCE_OUTCOMES(X) EVIDENCE_OUTCOME_COUNT };
#undef X

#define EVIDENCE_RETRY 1u /* not the request's first attempt */
#define EVIDENCE_FRESH 2u /* on a connection that was opened for it */
#define EVIDENCE_PROBE 4u /* a host that is out was given it, to see whether it is well again */
#define EVIDENCE_DOUBTFUL                                                                          \
    8u /* whoever saw it was late itself: what took long may have taken it here */

/* Classes of one cluster: those of every cluster, then those that its routes name. */
enum evidence_class { CLASS_READ, CLASS_WRITE, CLASS_LARGE, CLASS_NAMED_FIRST };

#define EVIDENCE_CLASS_MAX 8
#define CLASS_BY_REQUEST   0xff /* of a route: its requests' own: read or write, or large */

struct evidence {
    mono_ns at;          /* the attempt's end; LATE: when it was seen */
    const void *cluster; /* struct cluster_state, only to be compared */
    uint32_t host;       /* slot */
    uint8_t class;
    uint8_t outcome; /* enum evidence_outcome */
    uint8_t flags;
    uint8_t thinned;   /* it stands for 2^thinned attempts like it */
    uint32_t first_us; /* from the request's being whole at the host to the answer, the time of the
                          first 64 KiB of its body included unless the client held that up; TIMEOUT,
                          ABANDONED, LATE, RESET: how long it was waited for */
    uint32_t queue_us; /* waited here for a connection, or for it to be opened */
    uint16_t ahead;    /* attempts under way on the host when it was picked */
};

#endif
