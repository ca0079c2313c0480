/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request or response head, whatever version of HTTP it came in or goes out as. Views into the
 * bytes it was parsed from (or into an arena); the codec that filled it says how long they live.
 */
#ifndef CODEC_MESSAGE_H
#define CODEC_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/method.h"

/* Fields the data plane asks for by name; found once, while parsing. */
#define KNOWN_FIELDS(X)                                                                            \
    X(HOST, "host")                                                                                \
    X(CONNECTION, "connection")                                                                    \
    X(CONTENT_LENGTH, "content-length")                                                            \
    X(TRANSFER_ENCODING, "transfer-encoding")                                                      \
    X(TE, "te")                                                                                    \
    X(TRAILER, "trailer")                                                                          \
    X(UPGRADE, "upgrade")                                                                          \
    X(EXPECT, "expect")                                                                            \
    X(KEEP_ALIVE, "keep-alive")                                                                    \
    X(PROXY_CONNECTION, "proxy-connection")                                                        \
    X(PROXY_AUTHENTICATE, "proxy-authenticate")                                                    \
    X(PROXY_AUTHORIZATION, "proxy-authorization")                                                  \
    X(HTTP2_SETTINGS, "http2-settings")                                                            \
    X(X_FORWARDED_FOR, "x-forwarded-for")                                                          \
    X(X_FORWARDED_PROTO, "x-forwarded-proto")                                                      \
    X(X_REQUEST_ID, "x-request-id")                                                                \
    X(USER_AGENT, "user-agent")                                                                    \
    X(VIA, "via")                                                                                  \
    X(DATE, "date")                                                                                \
    X(SERVER, "server")                                                                            \
    X(SEC_WEBSOCKET_KEY, "sec-websocket-key")                                                      \
    X(SEC_WEBSOCKET_VERSION, "sec-websocket-version")                                              \
    X(FORWARDED, "forwarded")                                                                      \
    X(MAX_FORWARDS, "max-forwards")                                                                \
    X(ENDPOINT_LOAD_METRICS, "endpoint-load-metrics")                                              \
    X(ENDPOINT_LOAD_METRICS_BIN, "endpoint-load-metrics-bin")

#define X(id, text) FIELD_##id,
enum field_id { FIELD_OTHER, KNOWN_FIELDS(X) FIELD_ID_COUNT };
#undef X

struct field {
    struct bytes name;  /* as sent; compare without case */
    struct bytes value; /* without blanks at both ends */
    uint8_t id;         /* enum field_id */
    bool hop_by_hop;    /* not to be forwarded: by its nature, or named in Connection */
};

#define MESSAGE_FIELDS_MAX 256 /* room; the configured limit is at most this */

enum body_kind {
    BODY_NONE,
    BODY_LENGTH, /* |length| bytes, > 0 or 0 where stated */
    BODY_CHUNKED,
    BODY_TO_CLOSE /* responses only: until the peer closes */
};

struct message_head {
    /* request */
    enum method method_id;
    struct bytes method;
    struct bytes target; /* as sent: origin form, absolute form, or "*" */
    struct bytes path;   /* path of the target, without query; "*" for OPTIONS *; "/" where empty */
    struct bytes query;  /* with its '?'; empty where there is none */
    struct bytes authority; /* of an absolute-form target, else of Host: what is routed on */
    bool absolute_form;
    /* response */
    uint32_t status;
    struct bytes reason;
    /* both */
    uint8_t minor; /* HTTP/1.|minor| */
    enum body_kind body;
    uint64_t length;
    bool stated_length; /* a Content-Length was there */
    bool keep_alive;    /* the sender is willing to go on after this message */
    bool expect_continue;
    bool websocket; /* a valid request to upgrade to websocket; or a 101 that accepts it */
    bool upgrade;   /* any Upgrade with Connection: upgrade */
    uint32_t field_count;
    struct field fields[MESSAGE_FIELDS_MAX];
    /* first field of each known id: index + 1, 0: absent */
    uint16_t known[FIELD_ID_COUNT];
};

static inline const struct field *message_field(const struct message_head *m, enum field_id id)
{
    return m->known[id] == 0 ? NULL : &m->fields[m->known[id] - 1];
}

/* Its value; {NULL, 0} where absent. */
static inline struct bytes message_value(const struct message_head *m, enum field_id id)
{
    const struct field *f = message_field(m, id);

    return f == NULL ? BYTES_NONE : f->value;
}

/* GET, HEAD, PUT, DELETE, OPTIONS, TRACE (RFC 9110 9.2.2). */
bool method_idempotent(enum method m);

/* Does it ask for something and change nothing? */
bool method_reads(enum method m);

/* Methods are case-sensitive: "get" is METHOD_OTHER. */
enum method method_lookup(struct bytes token);

/* FIELD_OTHER where |name|, which is a token in any case, is none of KNOWN_FIELDS. */
enum field_id field_lookup(struct bytes name);

/* Concerns this hop only, whatever Connection says (RFC 9110 7.6.1). */
bool field_is_hop_by_hop(enum field_id id);

#endif
