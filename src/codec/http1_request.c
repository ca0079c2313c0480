/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests: the request line, the forms of a target, and what a request must have. */
#include "codec/http1_head.h"

#define METHOD_MAX      32
#define EMPTY_LINES_MAX 2 /* that some clients send after a body (RFC 9112 2.2) */

/* --- the request line --- */

static enum http1_result skip_empty_lines(struct head_reader *r)
{
    for (unsigned lines = 0; r->at < r->end && (*r->at == '\r' || *r->at == '\n'); lines++) {
        enum http1_result result = head_read_crlf(r);

        if (result != HTTP1_OK)
            return result;
        if (lines == EMPTY_LINES_MAX)
            return head_malformed(r, "too many empty lines before a request");
    }
    return r->at == r->end ? HTTP1_MORE : HTTP1_OK;
}

/* The method and the blank after it. */
static enum http1_result read_method(struct head_reader *r)
{
    const uint8_t *p = r->at;

    while (p < r->end && byte_is(*p, BYTE_TOKEN) && p - r->at <= METHOD_MAX)
        p++;
    if (p - r->at > METHOD_MAX)
        return head_malformed(r, "method longer than 32 bytes");
    if (p == r->end)
        return HTTP1_MORE;
    if (*p != ' ' || p == r->at)
        return head_malformed(r, "bad character in the method");
    r->head->method = bytes_from(r->at, (size_t)(p - r->at));
    r->head->method_id = method_lookup(r->head->method);
    r->at = p + 1;
    return HTTP1_OK;
}

static enum http1_result read_start(struct head_reader *r)
{
    enum http1_result result = skip_empty_lines(r);
    const uint8_t *line = r->at;

    if (result != HTTP1_OK)
        return result;
    result = read_method(r);
    if (result == HTTP1_OK)
        r->at = line;
    return result;
}

/* Up to and with the blank after it. Splits off the query; the form is looked at later. */
static enum http1_result read_target(struct head_reader *r)
{
    const uint8_t *from = r->at;
    const uint8_t *p = from;
    const uint8_t *query;

    while (p < r->end && byte_is(*p, BYTE_PATH))
        p++;
    query = p;
    if (p < r->end && *p == '?')
        while (p < r->end && byte_is(*p, BYTE_QUERY))
            p++;
    if (p == r->end)
        return HTTP1_MORE;
    if (*p == '#')
        return head_malformed(r, "fragment in the request target");
    if (*p != ' ' || p == from)
        return head_malformed(r, "bad character in the request target");
    r->head->target = bytes_from(from, (size_t)(p - from));
    r->head->path = bytes_from(from, (size_t)(query - from));
    r->head->query = bytes_from(query, (size_t)(p - query));
    r->at = p + 1;
    return HTTP1_OK;
}

/* Length of "http://" or "https://" at the start of |target|; 0: it has neither. */
static size_t scheme_length(struct bytes target)
{
    if (bytes_equal_nocase(bytes_slice(target, 0, 7), BYTES("http://")))
        return 7;
    return bytes_equal_nocase(bytes_slice(target, 0, 8), BYTES("https://")) ? 8 : 0;
}

static enum http1_result read_absolute_form(struct head_reader *r)
{
    struct message_head *head = r->head;
    size_t scheme = scheme_length(head->path);
    struct bytes rest = bytes_skip(head->path, scheme);
    size_t slash = bytes_find(rest, '/');

    if (scheme == 0)
        return head_bad(r, 400, "http1.invalid_url", "request target of no known form");
    head->authority = bytes_slice(rest, 0, slash);
    head->path = bytes_skip(rest, slash);
    head->absolute_form = true;
    if (!http1_host_is_valid(head->authority, METHOD_OTHER))
        return head_bad(r, 400, "http1.invalid_url", "bad host in the request target");
    if (head->path.len == 0) /* RFC 9112 3.2.4: asks about the server as a whole */
        head->path =
            head->method_id == METHOD_OPTIONS && head->query.len == 0 ? BYTES("*") : BYTES("/");
    return HTTP1_OK;
}

static enum http1_result read_authority_form(struct head_reader *r)
{
    struct message_head *head = r->head;

    if (!http1_host_is_valid(head->target, METHOD_CONNECT))
        return head_bad(r, 400, "http1.invalid_url", "CONNECT without host and port");
    head->authority = head->target;
    head->path = BYTES_NONE;
    return HTTP1_OK;
}

static enum http1_result read_form(struct head_reader *r)
{
    struct message_head *head = r->head;

    if (head->method_id == METHOD_CONNECT)
        return read_authority_form(r);
    if (head->target.data[0] == '/')
        return HTTP1_OK;
    if (!bytes_equal(head->target, BYTES("*")))
        return read_absolute_form(r);
    if (head->method_id != METHOD_OPTIONS)
        return head_bad(r, 400, "http1.invalid_url", "target * with a method other than OPTIONS");
    return HTTP1_OK;
}

static enum http1_result read_version(struct head_reader *r)
{
    enum http1_result result;

    if (r->end - r->at >= 10 && memcmp(r->at, "HTTP/1.1\r\n", 10) == 0) {
        r->major = 1;
        r->head->minor = 1;
        r->at += 10;
        return HTTP1_OK;
    }
    result = head_read_version(r);
    return result == HTTP1_OK ? head_read_crlf(r) : result;
}

static enum http1_result read_request_line(struct head_reader *r)
{
    enum http1_result result = read_method(r);

    if (result == HTTP1_OK)
        result = read_target(r);
    if (result == HTTP1_OK)
        result = read_version(r);
    if (result == HTTP1_OK)
        result = read_form(r);
    if (result == HTTP1_OK && r->major != 1)
        return head_bad(r, 505, "http1.codec_error", "not a version of HTTP/1");
    return result;
}

/* --- what the fields say --- */

static enum http1_result note_host(struct head_reader *r)
{
    struct message_head *head = r->head;
    const struct field *host = message_field(head, FIELD_HOST);

    if (host == NULL)
        return head->minor == 0 ? HTTP1_OK
                                : head_bad(r, 400, "missing_host_header", "request without Host");
    if ((r->repeated >> FIELD_HOST & 1) != 0)
        return head_malformed(r, "more than one Host");
    if (!http1_host_is_valid(host->value, METHOD_OTHER))
        return head_malformed(r, "Host that is no host");
    if (head->authority.len == 0)
        head->authority = host->value;
    return HTTP1_OK;
}

static enum http1_result note_body(struct head_reader *r)
{
    struct message_head *head = r->head;

    if (head->known[FIELD_TRANSFER_ENCODING] != 0)
        return head_note_coding(r);
    if (head_note_length(r) != HTTP1_OK)
        return HTTP1_BAD;
    if (head->stated_length)
        head->body = BODY_LENGTH;
    return HTTP1_OK;
}

static bool is_base64(uint8_t c)
{
    return (c >= '0' && c <= '9') || (byte_lower(c) >= 'a' && byte_lower(c) <= 'z') || c == '+' ||
           c == '/';
}

/* Sixteen bytes in base64. */
static bool is_websocket_key(struct bytes key)
{
    if (key.len != 24 || key.data[22] != '=' || key.data[23] != '=')
        return false;
    for (size_t i = 0; i < 22; i++)
        if (!is_base64(key.data[i]))
            return false;
    return true;
}

static bool has_content(const struct message_head *head)
{
    return head->body == BODY_CHUNKED || head->length > 0;
}

/* RFC 6455 4.2.1 */
static bool opens_websocket(const struct head_reader *r)
{
    const struct message_head *head = r->head;
    uint32_t once = UINT32_C(1) << FIELD_SEC_WEBSOCKET_KEY | UINT32_C(1)
                                                                 << FIELD_SEC_WEBSOCKET_VERSION;

    return head->method_id == METHOD_GET && !has_content(head) && (r->repeated & once) == 0 &&
           head_list_has(message_value(head, FIELD_UPGRADE), BYTES("websocket")) &&
           is_websocket_key(message_value(head, FIELD_SEC_WEBSOCKET_KEY)) &&
           message_value(head, FIELD_SEC_WEBSOCKET_VERSION).len > 0;
}

/* HTTP/1.0 knows neither: they mean nothing there. */
static void note_wishes(struct head_reader *r)
{
    struct message_head *head = r->head;

    if (head->minor == 0)
        return;
    head->expect_continue =
        has_content(head) &&
        bytes_equal_nocase(message_value(head, FIELD_EXPECT), BYTES("100-continue"));
    head->upgrade = r->option_upgrade && head->known[FIELD_UPGRADE] != 0;
    head->websocket = head->upgrade && opens_websocket(r);
}

static enum http1_result read_head(struct head_reader *r)
{
    enum http1_result result = skip_empty_lines(r);

    if (result == HTTP1_OK)
        result = read_request_line(r);
    if (result == HTTP1_OK)
        result = head_read_fields(r);
    if (result == HTTP1_OK)
        result = note_host(r);
    if (result == HTTP1_OK)
        result = note_body(r);
    if (result == HTTP1_OK)
        result = head_note_connection(r);
    if (result == HTTP1_OK)
        note_wishes(r);
    return result;
}

static const struct head_kind request_kind = {
    .read_start = read_start,
    .read_first_line = read_request_line,
    .read_head = read_head,
};

enum http1_result http1_parse_request(struct bytes in, struct http1_scan *scan,
                                      const struct http1_limits *limits, struct message_head *head,
                                      size_t *used, struct http1_fault *fault)
{
    struct head_reader r;

    r.head = head;
    r.fault = fault;
    return head_parse(&request_kind, in, scan, limits, &r, used);
}
