/* SPDX-License-Identifier: Apache-2.0 */
/* Which trailer fields may be passed on. */
#include "codec/http1_head.h"

#define WORD(literal)                                                                              \
    {                                                                                              \
        (const uint8_t *)(literal), sizeof(literal) - 1                                            \
    }

/*
 * Fields that mean something only before the body: framing, routing, trust, conditions, who one is,
 * how to read the content, control of the answer (RFC 9110 6.5.1). Those among KNOWN_FIELDS are in
 * is_forbidden_id.
 */
static const struct bytes forbidden[] = {
    WORD("age"),
    WORD("authorization"),
    WORD("cache-control"),
    WORD("content-encoding"),
    WORD("content-range"),
    WORD("content-type"),
    WORD("cookie"),
    WORD("expires"),
    WORD("if-match"),
    WORD("if-modified-since"),
    WORD("if-none-match"),
    WORD("if-range"),
    WORD("if-unmodified-since"),
    WORD("location"),
    WORD("pragma"),
    WORD("range"),
    WORD("retry-after"),
    WORD("set-cookie"),
    WORD("vary"),
    WORD("warning"),
    WORD("www-authenticate"),
    WORD("authentication-info"),
    WORD("proxy-authentication-info"),
    WORD("x-real-ip"),
};

static bool is_forbidden_id(enum field_id id)
{
    return id != FIELD_OTHER && id != FIELD_USER_AGENT && id != FIELD_SERVER;
}

static bool is_forbidden(struct bytes name)
{
    static const struct bytes trusted = WORD("x-forwarded-");

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

    if (section->len == 0)
        return false;

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
