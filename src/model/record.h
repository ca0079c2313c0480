/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of one finished request: the access log line before it is text. Filled by the
 * data plane, exactly one a request (law 6). All views are valid only during record_put.
 */
#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/bytes.h"
#include "base/units.h"

#define RECORD_ATTEMPTS_MAX 8
#define RECORD_PATH_MAX     8192 /* more of a path is not kept in the log */

struct record_attempt {
    struct bytes endpoint; /* "10.0.0.1:8080" */
    const char
        *outcome; /* "answered", "connect_failed", "reset", "timed_out", "cancelled", "overflow" */
    uint32_t status;      /* 0: none came */
    uint32_t flags;       /* why it failed */
    span_ns backoff;      /* waited before it */
    span_ns queue_time;   /* from the pick to a connection */
    span_ns service_time; /* from the connection to the end of the answer, or of the attempt */
};

struct request_record {
    wall_ns started;
    struct bytes method;
    struct bytes path; /* with query, as the client sent it */
    struct bytes authority;
    struct bytes request_id;
    struct bytes user_agent;
    struct bytes forwarded_for;
    const char *protocol;          /* "HTTP/1.1", "HTTP/1.0" */
    uint32_t status;               /* 0: none was sent */
    uint32_t flags;                /* enum response_flag bits */
    const char *details;           /* "via_upstream", "no_healthy_upstream", ... */
    const char *termination;       /* why the connection was closed, or NULL */
    const char *transport_failure; /* "connection refused", or NULL */
    uint64_t bytes_received;
    uint64_t bytes_sent;
    span_ns duration;
    span_ns upstream_service_time; /* end of request to response head; only where status came from
                                      upstream */
    bool from_upstream;
    span_ns queue_time;   /* sum over the attempts */
    span_ns service_time; /* sum over the attempts */
    struct bytes route;
    struct bytes cluster;
    struct bytes upstream_host; /* last one; empty: none */
    span_ns request_duration;   /* to the request's last byte; MONO_NEVER: it never came */
    span_ns response_duration;  /* to the head of the host's answer; MONO_NEVER: none came */
    bool trusts_forwarded_for;  /* |forwarded_for| is what trusted proxies and we wrote */
    const struct bytes *request_headers; /* those the log's format names; NULL: none are kept */
    const struct bytes *response_headers;
    uint32_t request_header_count;
    uint32_t response_header_count;
    struct address downstream_remote;
    struct address downstream_local;
    uint32_t attempt_count;
    struct record_attempt attempts[RECORD_ATTEMPTS_MAX];
};

/* Where records go; one a worker. Never blocks. False: dropped, and the caller counts it. */
struct record_sink {
    bool (*put)(struct record_sink *s, const struct request_record *r);
};

static inline bool record_put(struct record_sink *s, const struct request_record *r)
{
    return s == NULL || s->put(s, r);
}

#endif
