/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A format of the access log in Envoy's operators (reference/envoy-semantics.md 6.4, 6.5), compiled
 * once: "%RESPONSE_CODE% %REQ(X-TENANT?:AUTHORITY):20%\n". Which headers it names is known from it,
 * so that the data plane keeps those and no others. Pure.
 */
#ifndef MODEL_ACCESS_FORMAT_H
#define MODEL_ACCESS_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"

/*
 * Constant after ACCESS_, name, what its value is, and what may stand in brackets behind it. By
 * name, so that what a message lists is in order.
 */
#define ACCESS_OPERATORS(X)                                                                        \
    X(BYTES_RECEIVED, "BYTES_RECEIVED", NUMBER, NOTHING)                                           \
    X(BYTES_SENT, "BYTES_SENT", NUMBER, NOTHING)                                                   \
    X(TERMINATION, "CONNECTION_TERMINATION_DETAILS", TEXT, NOTHING)                                \
    X(DIRECT_REMOTE, "DOWNSTREAM_DIRECT_REMOTE_ADDRESS", TEXT, NOTHING)                            \
    X(DIRECT_REMOTE_IP, "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT", TEXT, NOTHING)            \
    X(LOCAL, "DOWNSTREAM_LOCAL_ADDRESS", TEXT, NOTHING)                                            \
    X(LOCAL_IP, "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", TEXT, NOTHING)                            \
    X(REMOTE, "DOWNSTREAM_REMOTE_ADDRESS", TEXT, NOTHING)                                          \
    X(REMOTE_IP, "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", TEXT, NOTHING)                          \
    X(DURATION, "DURATION", NUMBER, NOTHING)                                                       \
    X(ENVIRONMENT, "ENVIRONMENT", TEXT, NAME)                                                      \
    X(HOSTNAME, "HOSTNAME", TEXT, NOTHING)                                                         \
    X(PROTOCOL, "PROTOCOL", TEXT, NOTHING)                                                         \
    X(QUEUE_TIME, "QUEUE_TIME", NUMBER, NOTHING)                                                   \
    X(REQ, "REQ", TEXT, HEADER)                                                                    \
    X(REQUESTED_SERVER_NAME, "REQUESTED_SERVER_NAME", TEXT, NOTHING)                               \
    X(REQUEST_DURATION, "REQUEST_DURATION", NUMBER, NOTHING)                                       \
    X(REQUEST_HEADER, "REQUEST_HEADER", TEXT, HEADER)                                              \
    X(RESP, "RESP", TEXT, HEADER)                                                                  \
    X(RESPONSE_CODE, "RESPONSE_CODE", NUMBER, NOTHING)                                             \
    X(RESPONSE_CODE_DETAILS, "RESPONSE_CODE_DETAILS", TEXT, NOTHING)                               \
    X(RESPONSE_DURATION, "RESPONSE_DURATION", NUMBER, NOTHING)                                     \
    X(RESPONSE_FLAGS, "RESPONSE_FLAGS", TEXT, NOTHING)                                             \
    X(RESPONSE_FLAGS_LONG, "RESPONSE_FLAGS_LONG", TEXT, NOTHING)                                   \
    X(RESPONSE_HEADER, "RESPONSE_HEADER", TEXT, HEADER)                                            \
    X(RESPONSE_TX_DURATION, "RESPONSE_TX_DURATION", NUMBER, NOTHING)                               \
    X(ROUTE_NAME, "ROUTE_NAME", TEXT, NOTHING)                                                     \
    X(SERVICE_TIME, "SERVICE_TIME", NUMBER, NOTHING)                                               \
    X(START_TIME, "START_TIME", TEXT, TIME)                                                        \
    X(UPSTREAM_CLUSTER, "UPSTREAM_CLUSTER", TEXT, NOTHING)                                         \
    X(UPSTREAM_CLUSTER_RAW, "UPSTREAM_CLUSTER_RAW", TEXT, NOTHING)                                 \
    X(UPSTREAM_HOST, "UPSTREAM_HOST", TEXT, NOTHING)                                               \
    X(UPSTREAM_HOSTS_ATTEMPTED, "UPSTREAM_HOSTS_ATTEMPTED", TEXT, NOTHING)                         \
    X(UPSTREAM_LOCAL_ADDRESS, "UPSTREAM_LOCAL_ADDRESS", TEXT, NOTHING)                             \
    X(ATTEMPT_COUNT, "UPSTREAM_REQUEST_ATTEMPT_COUNT", NUMBER, NOTHING)                            \
    X(TRANSPORT_FAILURE, "UPSTREAM_TRANSPORT_FAILURE_REASON", TEXT, NOTHING)

/* LITERAL is text as it is; the others that have no operator are what REQ() and RESP() find without
 * a header: what the record holds anyway. */
#define X(constant, name, value, argument) ACCESS_##constant,
enum access_op {
    ACCESS_OPERATORS(X) ACCESS_OPERATOR_COUNT,
    ACCESS_LITERAL = ACCESS_OPERATOR_COUNT,
    ACCESS_NOTHING,
    ACCESS_METHOD,
    ACCESS_PATH,
    ACCESS_AUTHORITY,
    ACCESS_SCHEME,
    ACCESS_USER_AGENT,
    ACCESS_REQUEST_ID,
    ACCESS_FORWARDED_FOR,
    ACCESS_STATUS_TEXT,
    ACCESS_SERVICE_TIME_TEXT, /* upstream's, in ms */
    ACCESS_KEPT_REQUEST,      /* |index| of the headers kept */
    ACCESS_KEPT_RESPONSE
};
#undef X

#define ACCESS_HEADERS_MAX  16   /* kept of a request, and of a response */
#define ACCESS_HEADER_LIMIT 1024 /* bytes kept of one, unless the format says less or more */
#define ACCESS_HEADER_MAX   4096 /* more is not kept, whatever the format says */
#define ACCESS_ITEMS_MAX    256  /* of one format, or one value of a JSON format */
#define ACCESS_KEYS_MAX     64
#define ACCESS_FORMAT_MAX   8192 /* bytes of a format's text */

struct access_item {
    enum access_op op;
    enum access_op other; /* where |op| finds nothing; ACCESS_NOTHING: then it is missing */
    uint32_t index;       /* of ACCESS_KEPT_*, |other_index| the same of |other| */
    uint32_t other_index;
    uint32_t limit;    /* most bytes of the value; 0: no limit */
    struct bytes text; /* of a literal; of an argument in brackets */
};

struct access_program {
    uint32_t count;
    const struct access_item *items;
};

/* A header whose value is kept, |limit| bytes of it. The name is in lower case. */
struct access_header {
    struct bytes name;
    uint32_t limit;
};

struct access_headers {
    uint32_t count;
    struct access_header at[ACCESS_HEADERS_MAX];
};

struct access_key {
    struct bytes name;
    struct access_program value;
};

/* What a line is made of; |key_count| 0: text. */
struct access_format {
    struct access_program text;
    uint32_t key_count;
    const struct access_key *keys;
    struct access_headers request;
    struct access_headers response;
};

/* Where and why a text is no format. */
struct access_fault {
    size_t at;         /* byte of the text */
    struct bytes word; /* the operator or header it is about; may be empty */
    const char *why;   /* NULL: no memory */
};

/* The default lines of both. A line feed follows each line; it is not part of a format. */
extern const char access_format_envoy[];
extern const char access_format_istio[];

/*
 * Compiles |text| into |program|, whose memory is |arena|'s, and adds to the headers of |format|
 * those it names. |text| must live as long. False: |*fault|.
 */
bool access_compile(struct arena *arena, struct bytes text, struct access_format *format,
                    struct access_program *program, struct access_fault *fault);

/* The i-th operator's name, NULL past the last: for "did you mean". */
const char *access_operator(uint32_t i);

/* Whether the value is a number, and so one in JSON. */
bool access_is_number(enum access_op op);

/* The most bytes that a line can have, before anything is escaped. */
size_t access_program_room(const struct access_format *format, const struct access_program *p);

#endif
