/* SPDX-License-Identifier: Apache-2.0 */
/* Which trailer fields may be passed on. */
#include "codec/http1_head.h"

/*
 * Fields that mean something only before the body: framing, routing, trust, conditions, who one is,
 * how to read the content, control of the answer (RFC 9110 6.5.1). Those among KNOWN_FIELDS are in
 * is_forbidden_id.
 */
static const struct bytes forbidden[] = {
    BYTES("age"),
    BYTES("authorization"),
    BYTES("cache-control"),
    BYTES("content-encoding"),
    BYTES("content-range"),
    BYTES("content-type"),
    BYTES("cookie"),
    BYTES("expires"),
    BYTES("if-match"),
    BYTES("if-modified-since"),
    BYTES("if-none-match"),
    BYTES("if-range"),
    BYTES("if-unmodified-since"),
    BYTES("location"),
    BYTES("pragma"),
    BYTES("range"),
    BYTES("retry-after"),
    BYTES("set-cookie"),
    BYTES("vary"),
    BYTES("warning"),
    BYTES("www-authenticate"),
    BYTES("authentication-info"),
    BYTES("proxy-authentication-info"),
    BYTES("x-real-ip"),
};

static bool is_forbidden_id(enum field_id id)
{
    return id != FIELD_OTHER && id != FIELD_USER_AGENT && id != FIELD_SERVER;
}

static bool is_forbidden(struct bytes name)
{
    static const struct bytes trusted = {(const uint8_t *)"x-forwarded-", 12};

    if (is_forbidden_id(field_lookup(name)) ||
        bytes_equal_nocase(bytes_slice(name, 0, trusted.len), trusted))
        return true;
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        if (bytes_equal_nocase(name, forbidden[i]))
            return true;
    return false;
}

bool http1_next_trailer(struct bytes *section, struct field *out)
{
    struct http1_fault fault;
    struct head_reader r = {
        .at = section->data, .end = section->data + section->len, .fault = &fault};

    while (r.at < r.end) {
        struct field f = {.id = FIELD_OTHER};

        if (head_read_field(&r, &f) != HTTP1_OK)
            break; /* not a checked section */
        if (is_forbidden(f.name))
            continue;
        f.id = (uint8_t)field_lookup(f.name);
        *out = f;
        *section = bytes_from(r.at, (size_t)(r.end - r.at));
        return true;
    }
    *section = BYTES_NONE;
    return false;
}
