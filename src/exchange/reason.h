/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request ended as it did. One row a reason: the status a client is told, the flag and the
 * details of the access log, the body. Said once, here
 * (reference/envoy-semantics.md 5.3, 5.4, 6.2).
 */
#ifndef EXCHANGE_REASON_H
#define EXCHANGE_REASON_H

#include <stdint.h>

#include "model/flags.h"

#define RESET_TEXT "upstream connect error or disconnect/reset before headers. reset reason: "
#define RETRIED_TEXT                                                                               \
    "upstream connect error or disconnect/reset before headers. retried and the latest reset "     \
    "reason: "
#define RESET_WHY(text) "upstream_reset_before_response_started{" text "}"

/* name, status, flag, details, body */
#define REASONS(X)                                                                                 \
    X(NONE, 0, NONE, "", "")                                                                       \
    X(VIA_UPSTREAM, 0, NONE, "via_upstream", "")                                                   \
    X(NO_ROUTE, 404, NR, "route_not_found", "")                                                    \
    X(NO_CLUSTER, 503, NC, "cluster_not_found", "")                                                \
    X(NO_HEALTHY, 503, UH, "no_healthy_upstream", "no healthy upstream")                           \
    X(OVERFLOW, 503, UO, RESET_WHY("overflow"), RESET_TEXT "overflow")                             \
    X(QUEUE_TIMEOUT, 503, UO, "queue_timeout", RESET_TEXT "overflow")                              \
    X(PROCESS_FULL, 503, UO, "overload", RESET_TEXT "overflow")                                    \
    X(CONNECT_REFUSED, 503, UF,                                                                    \
      RESET_WHY("remote_connection_failure|delayed_connect_error:_Connection_refused"),            \
      RESET_TEXT "remote connection failure")                                                      \
    X(CONNECT_UNREACHABLE, 503, UF,                                                                \
      RESET_WHY("remote_connection_failure|delayed_connect_error:_No_route_to_host"),              \
      RESET_TEXT "remote connection failure")                                                      \
    X(CONNECT_FAILED, 503, UF, RESET_WHY("remote_connection_failure"),                             \
      RESET_TEXT "remote connection failure")                                                      \
    X(CONNECT_LOCAL, 503, UF, RESET_WHY("local_connection_failure"),                               \
      RESET_TEXT "local connection failure")                                                       \
    X(CONNECT_TIMEOUT, 503, UF, RESET_WHY("connection_timeout"), RESET_TEXT "connection timeout")  \
    X(RESET, 503, UC, RESET_WHY("connection_termination"), RESET_TEXT "connection termination")    \
    X(RESET_LATE, 0, UC, "upstream_reset_after_response_started{connection_termination}", "")      \
    X(PROTOCOL_ERROR, 502, UPE, RESET_WHY("protocol_error"), RESET_TEXT "protocol error")          \
    X(PROTOCOL_LATE, 0, UPE, "upstream_reset_after_response_started{protocol_error}", "")          \
    X(TIMEOUT, 504, UT, "response_timeout", "upstream request timeout")                            \
    X(PER_TRY_TIMEOUT, 504, UT, "upstream_per_try_timeout", "upstream request timeout")            \
    X(STREAM_IDLE, 504, SI, "stream_idle_timeout", "stream timeout")                               \
    X(STREAM_IDLE_REQUEST, 408, SI, "stream_idle_timeout", "stream timeout")                       \
    X(BODY_TIMEOUT, 408, NONE, "request_overall_timeout", "request timeout")                       \
    X(HEAD_TIMEOUT, 408, NONE, "request_header_timeout", "request header timeout")                 \
    X(CLIENT_GONE, 0, DC, "downstream_remote_disconnect", "")                                      \
    X(TOO_LARGE, 413, NONE, "request_payload_too_large", "Payload Too Large")                      \
    X(REPLAY_FULL, 507, NONE, "request_payload_exceeded_retry_buffer_limit",                       \
      "exceeded request buffer limit while retrying upstream")                                     \
    X(NOT_IMPLEMENTED, 501, NONE, "connect_not_supported", "Not Implemented")                      \
    X(PATH_REFUSED, 400, NONE, "path_normalization_failed", "Bad Request")                         \
    X(BAD_REQUEST, 400, DPE, "http1.codec_error", "Bad Request")                                   \
    X(OUT_OF_MEMORY, 503, OM, "out_of_memory", "out of memory")                                    \
    X(HOST_DRAIN, 503, LR, "host_drain_timeout", RESET_TEXT "local reset")                         \
    X(SHUTDOWN, 0, LR, "drain_timeout", "")

#define X(name, status, flag, details, body) REASON_##name,
enum reason { REASONS(X) REASON_COUNT };
#undef X

struct reason_info {
    uint32_t status; /* 0: none can be sent, or it is the upstream's */
    uint32_t flag;
    const char *details;
    const char *body;
};

extern const struct reason_info reasons[REASON_COUNT];

#endif
