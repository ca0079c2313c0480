/* SPDX-License-Identifier: Apache-2.0 */
/* What Connection, Content-Length, Transfer-Encoding and Host say. */
#include "codec/http1_head.h"

#include "base/address.h"

/* More than anybody needs; bounds the work of comparing them with every field. */
#define NOMINATIONS_MAX 32

bool head_list_has(struct bytes value, struct bytes element)
{
    struct bytes one;

    while (bytes_next_element(&value, &one))
        if (bytes_equal_nocase(one, element))
            return true;
    return false;
}

/* --- Connection --- */

struct nominations {
    struct bytes names[NOMINATIONS_MAX];
    uint32_t count;
    uint64_t lengths; /* a bit for each length, from 63 on one for all */
};

static uint64_t length_bit(size_t len)
{
    return UINT64_C(1) << (len < 63 ? len : 63);
}

/*
 * Fields that must reach the next hop, or that this proxy answers for: to nominate them is either a
 * mistake or an attempt to make them vanish (RFC 9110 7.6.1: must not be done).
 */
static bool is_protected(enum field_id id)
{
    return id == FIELD_HOST || id == FIELD_CONTENT_LENGTH || id == FIELD_X_FORWARDED_FOR ||
           id == FIELD_X_FORWARDED_PROTO || id == FIELD_X_REQUEST_ID || id == FIELD_FORWARDED ||
           id == FIELD_VIA || id == FIELD_MAX_FORWARDS || id == FIELD_DATE;
}

/* False: there are too many. */
static bool nominate(struct nominations *n, struct bytes name)
{
    enum field_id id = field_lookup(name);

    if (is_protected(id) || field_is_hop_by_hop(id))
        return true;
    if (n->count == NOMINATIONS_MAX)
        return false;
    n->names[n->count++] = name;
    n->lengths |= length_bit(name.len);
    return true;
}

static bool read_option(struct head_reader *r, struct nominations *n, struct bytes option)
{
    if (bytes_equal_nocase(option, BYTES("close")))
        r->option_close = true;
    else if (bytes_equal_nocase(option, BYTES("keep-alive")))
        r->option_keep_alive = true;
    else if (bytes_equal_nocase(option, BYTES("upgrade")))
        r->option_upgrade = true;
    else
        return nominate(n, option);
    return true;
}

static bool is_nominated(const struct nominations *n, struct bytes name)
{
    if ((n->lengths & length_bit(name.len)) == 0)
        return false;
    for (uint32_t i = 0; i < n->count; i++)
        if (bytes_equal_nocase(n->names[i], name))
            return true;
    return false;
}

static void mark_nominated(struct message_head *head, const struct nominations *n)
{
    if (n->count == 0)
        return;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (is_nominated(n, head->fields[i].name))
            head->fields[i].hop_by_hop = true;
}

static bool read_options(struct head_reader *r, struct nominations *n)
{
    for (uint32_t i = r->head->known[FIELD_CONNECTION] - 1u; i < r->head->field_count; i++) {
        struct bytes rest = r->head->fields[i].value;
        struct bytes option;

        if (r->head->fields[i].id != FIELD_CONNECTION)
            continue;
        while (bytes_next_element(&rest, &option))
            if (!read_option(r, n, option))
                return false;
    }
    return true;
}

enum http1_result head_note_connection(struct head_reader *r)
{
    if (r->head->known[FIELD_CONNECTION] != 0) {
        struct nominations n;

        n.count = 0;
        n.lengths = 0;
        if (!read_options(r, &n))
            return head_malformed(r, "too many connection options");
        mark_nominated(r->head, &n);
    }
    r->head->keep_alive = !r->option_close && (r->head->minor > 0 || r->option_keep_alive);
    return HTTP1_OK;
}

/* --- Content-Length --- */

enum http1_result head_note_length(struct head_reader *r)
{
    struct message_head *head = r->head;

    if (head->known[FIELD_CONTENT_LENGTH] == 0)
        return HTTP1_OK;
    if ((r->repeated >> FIELD_CONTENT_LENGTH & 1) != 0)
        return head_malformed(r, "more than one Content-Length");
    if (!bytes_parse_u64(message_value(head, FIELD_CONTENT_LENGTH), &head->length) ||
        head->length > INT64_MAX)
        return head_malformed(r, "Content-Length that is not one number");
    head->stated_length = true;
    return HTTP1_OK;
}

/* --- Transfer-Encoding --- */

/* Is there an element that is no "chunked"? */
static bool has_unknown_coding(const struct message_head *head)
{
    for (uint32_t i = head->known[FIELD_TRANSFER_ENCODING] - 1u; i < head->field_count; i++) {
        struct bytes rest = head->fields[i].value;
        struct bytes coding;

        if (head->fields[i].id != FIELD_TRANSFER_ENCODING)
            continue;
        while (bytes_next_element(&rest, &coding))
            if (!bytes_equal_nocase(coding, BYTES("chunked")))
                return true;
    }
    return false;
}

enum http1_result head_note_coding(struct head_reader *r)
{
    struct message_head *head = r->head;
    bool repeated = (r->repeated >> FIELD_TRANSFER_ENCODING & 1) != 0;

    if (head->known[FIELD_TRANSFER_ENCODING] == 0)
        return HTTP1_OK;
    if (head->known[FIELD_CONTENT_LENGTH] != 0)
        return head_bad(r, 400, "http1.content_length_and_chunked_not_allowed",
                        "both Transfer-Encoding and Content-Length");
    if (head->minor == 0)
        return head_bad(r, 400, "http1.transfer_encoding_not_allowed",
                        "Transfer-Encoding in an HTTP/1.0 message");
    if (!repeated &&
        bytes_equal_nocase(message_value(head, FIELD_TRANSFER_ENCODING), BYTES("chunked"))) {
        head->body = BODY_CHUNKED;
        return HTTP1_OK;
    }
    if (has_unknown_coding(head))
        return head_bad(r, 501, "http1.invalid_transfer_encoding",
                        "transfer coding other than chunked");
    return head_bad(r, 400, "http1.invalid_transfer_encoding",
                    "Transfer-Encoding not just chunked");
}

/* --- Host --- */

static bool is_port(struct bytes port)
{
    uint64_t number;

    return port.len <= 5 && bytes_parse_u64(port, &number) && number <= 65535;
}

static bool is_registered_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (byte_is(name.data[i], BYTE_REGNAME))
            continue;
        if (name.data[i] != '%' || name.len - i < 3 || !byte_is(name.data[i + 1], BYTE_HEX) ||
            !byte_is(name.data[i + 2], BYTE_HEX))
            return false;
        i += 2;
    }
    return name.len > 0;
}

/* The inside of "[...]": an IPv6 address (no zone, no later version). */
static bool is_ip_literal(struct bytes inside)
{
    struct address address;

    return address_parse_ip(inside, &address) && address.kind == ADDRESS_IPV6;
}

static bool is_host_part(struct bytes host)
{
    if (host.len < 2 || host.data[0] != '[')
        return is_registered_name(host);
    return host.data[host.len - 1] == ']' && is_ip_literal(bytes_slice(host, 1, host.len - 2));
}

/* The usual host: a name without anything to decode, and no port. */
static bool is_plain_name(struct bytes host)
{
    size_t n = 0;

    while (n < host.len && byte_is(host.data[n], BYTE_REGNAME))
        n++;
    return n == host.len && n > 0;
}

bool http1_host_is_valid(struct bytes host, enum method method)
{
    size_t colon = host.len;

    if (is_plain_name(host))
        return method != METHOD_CONNECT;
    while (colon > 0 && host.data[colon - 1] != ':' && host.data[colon - 1] != ']')
        colon--;
    if (colon == 0 || host.data[colon - 1] == ']')
        return method != METHOD_CONNECT && is_host_part(host);

    struct bytes port = bytes_skip(host, colon);

    if (!is_host_part(bytes_slice(host, 0, colon - 1)))
        return false;
    return is_port(port) || (port.len == 0 && method != METHOD_CONNECT);
}
