/* SPDX-License-Identifier: Apache-2.0 */
/* The words of HTTP that this proxy knows: methods and field names. */
#include "codec/message.h"

#include <assert.h>

#define FIELD_NAME_MAX 25 /* "endpoint-load-metrics-bin" */

/* BYTES for the initialisers of constants. */
#define WORD(literal)                                                                              \
    {                                                                                              \
        (const uint8_t *)(literal), sizeof(literal) - 1                                            \
    }

#define X(id, text) WORD(text),
static const struct bytes field_names[FIELD_ID_COUNT] = {{NULL, 0}, KNOWN_FIELDS(X)};
#undef X

/* The known fields whose name has so many bytes. A new field must be put into its row. */
static const uint8_t fields_by_length[FIELD_NAME_MAX + 1][4] = {
    [2] = {FIELD_TE},
    [3] = {FIELD_VIA},
    [4] = {FIELD_HOST, FIELD_DATE},
    [6] = {FIELD_EXPECT, FIELD_SERVER},
    [7] = {FIELD_UPGRADE, FIELD_TRAILER},
    [9] = {FIELD_FORWARDED},
    [10] = {FIELD_CONNECTION, FIELD_USER_AGENT, FIELD_KEEP_ALIVE},
    [12] = {FIELD_X_REQUEST_ID, FIELD_MAX_FORWARDS},
    [14] = {FIELD_CONTENT_LENGTH, FIELD_HTTP2_SETTINGS},
    [15] = {FIELD_X_FORWARDED_FOR},
    [16] = {FIELD_PROXY_CONNECTION},
    [17] = {FIELD_TRANSFER_ENCODING, FIELD_X_FORWARDED_PROTO, FIELD_SEC_WEBSOCKET_KEY},
    [18] = {FIELD_PROXY_AUTHENTICATE},
    [19] = {FIELD_PROXY_AUTHORIZATION},
    [21] = {FIELD_SEC_WEBSOCKET_VERSION, FIELD_ENDPOINT_LOAD_METRICS},
    [25] = {FIELD_ENDPOINT_LOAD_METRICS_BIN},
};

#define BIT(id) (UINT32_C(1) << (id))

static const uint32_t hop_by_hop_fields =
    BIT(FIELD_CONNECTION) | BIT(FIELD_KEEP_ALIVE) | BIT(FIELD_PROXY_CONNECTION) | BIT(FIELD_TE) |
    BIT(FIELD_TRANSFER_ENCODING) | BIT(FIELD_UPGRADE) | BIT(FIELD_HTTP2_SETTINGS);

static_assert(FIELD_ID_COUNT <= 32, "a set of known fields fits 32 bits");

/* Eight bytes, letters in lower case (and some other bytes changed that no token has). */
static inline uint64_t load_lower(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v | UINT64_C(0x2020202020202020);
}

/*
 * |name| is a token: a byte of it that gives a letter, a digit or '-' under | 0x20 is that
 * character in either case. |known| is as long, and not empty.
 */
static inline bool is_named(struct bytes name, const uint8_t *known)
{
    uint64_t differ = 0;
    size_t i = 0;

    for (; i + 8 <= name.len; i += 8)
        differ |= load_lower(name.data + i) ^ load_lower(known + i);
    if (i > 0 && i < name.len)
        differ |= load_lower(name.data + name.len - 8) ^ load_lower(known + name.len - 8);
    else
        for (; i < name.len; i++)
            differ |= (uint64_t)(name.data[i] | 0x20) ^ known[i];
    return differ == 0;
}

enum field_id field_lookup(struct bytes name)
{
    if (name.len > FIELD_NAME_MAX)
        return FIELD_OTHER;

    const uint8_t *candidates = fields_by_length[name.len];

    for (unsigned i = 0; candidates[i] != FIELD_OTHER; i++) {
        const uint8_t *known = field_names[candidates[i]].data;

        if ((name.data[0] | 0x20) == known[0] && is_named(name, known))
            return (enum field_id)candidates[i];
    }
    return FIELD_OTHER;
}

bool field_is_hop_by_hop(enum field_id id)
{
    return (hop_by_hop_fields >> id & 1) != 0;
}

static const struct {
    struct bytes token;
    enum method method;
} methods[] = {
    {WORD("GET"), METHOD_GET},         {WORD("POST"), METHOD_POST},
    {WORD("HEAD"), METHOD_HEAD},       {WORD("PUT"), METHOD_PUT},
    {WORD("DELETE"), METHOD_DELETE},   {WORD("OPTIONS"), METHOD_OPTIONS},
    {WORD("PATCH"), METHOD_PATCH},     {WORD("TRACE"), METHOD_TRACE},
    {WORD("CONNECT"), METHOD_CONNECT},
};

enum method method_lookup(struct bytes token)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (bytes_equal(token, methods[i].token))
            return methods[i].method;
    return METHOD_OTHER;
}

bool method_reads(enum method m)
{
    return m == METHOD_GET || m == METHOD_HEAD || m == METHOD_OPTIONS || m == METHOD_TRACE;
}

bool method_idempotent(enum method m)
{
    switch (m) {
    case METHOD_GET:
    case METHOD_HEAD:
    case METHOD_PUT:
    case METHOD_DELETE:
    case METHOD_OPTIONS:
    case METHOD_TRACE:
        return true;
    case METHOD_OTHER:
    case METHOD_POST:
    case METHOD_CONNECT:
    case METHOD_PATCH:
        return false;
    }
    return false;
}
