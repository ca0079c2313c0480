/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of responses: the status line, and where the body ends. */
#include "codec/http1_head.h"

/* --- the status line --- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The blank and three digits after the version. */
static enum http1_result read_status(struct head_reader *r)
{
    const uint8_t *p = r->at;

    for (unsigned i = 0; i < 4; i++) {
        if (p + i == r->end)
            return HTTP1_MORE;
        if (i == 0 ? p[i] != ' ' : !is_digit(p[i]))
            return head_malformed(r, "no status code of three digits");
    }
    r->head->status = (uint32_t)((p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0'));
    if (r->head->status < 100)
        return head_malformed(r, "status code below 100");
    r->at += 4;
    return HTTP1_OK;
}

/* The reason, which may be empty, and may then lack its blank too. */
static enum http1_result read_reason(struct head_reader *r)
{
    const uint8_t *from = r->at;

    if (from < r->end && *from == ' ') {
        r->at = head_skip_value(from, r->end);
        r->head->reason = bytes_trim(bytes_from(from, (size_t)(r->at - from)));
    } else if (from < r->end && *from != '\r' && *from != '\n') {
        return head_malformed(r, "no status code of three digits");
    }
    return head_read_crlf(r);
}

static enum http1_result read_version_and_status(struct head_reader *r)
{
    enum http1_result result = head_read_version(r);

    if (result == HTTP1_OK && r->major != 1)
        return head_malformed(r, "not a version of HTTP/1");
    return result == HTTP1_OK ? read_status(r) : result;
}

static enum http1_result read_start(struct head_reader *r)
{
    const uint8_t *line = r->at;
    enum http1_result result = read_version_and_status(r);

    r->at = line;
    return result;
}

static enum http1_result read_status_line(struct head_reader *r)
{
    enum http1_result result = read_version_and_status(r);

    return result == HTTP1_OK ? read_reason(r) : result;
}

/* --- where the body ends --- */

static enum http1_result note_framing(struct head_reader *r)
{
    enum http1_result result = head_note_coding(r);

    return result == HTTP1_OK ? head_note_length(r) : result;
}

static bool has_no_content(uint32_t status)
{
    return status < 200 || status == 204;
}

/* RFC 9112 6.3 */
static void note_body(struct message_head *head, enum method method)
{
    bool framed = head->body == BODY_CHUNKED || (head->stated_length && head->length > 0);

    if (has_no_content(head->status) || head->status == 304 || method == METHOD_HEAD) {
        if (has_no_content(head->status) && framed)
            head->keep_alive = false; /* whoever claims content may also send it */
        head->body = BODY_NONE;
    } else if (head->stated_length) {
        head->body = BODY_LENGTH;
    } else if (head->body != BODY_CHUNKED) {
        head->body = BODY_TO_CLOSE;
        head->keep_alive = false;
    }
}

static void note_upgrade(struct head_reader *r)
{
    struct message_head *head = r->head;

    head->upgrade = head->minor > 0 && r->option_upgrade && head->known[FIELD_UPGRADE] != 0;
    head->websocket = head->upgrade && head->status == 101 &&
                      (r->repeated >> FIELD_UPGRADE & 1) == 0 &&
                      bytes_equal_nocase(message_value(head, FIELD_UPGRADE), BYTES("websocket"));
}

static enum http1_result read_head(struct head_reader *r)
{
    enum http1_result result = read_status_line(r);

    if (result == HTTP1_OK)
        result = head_read_fields(r);
    if (result == HTTP1_OK)
        result = head_note_connection(r);
    if (result == HTTP1_OK)
        result = note_framing(r);
    if (result == HTTP1_OK)
        note_upgrade(r);
    return result;
}

static const struct head_kind response_kind = {
    .read_start = read_start,
    .read_first_line = read_status_line,
    .read_head = read_head,
};

enum http1_result http1_parse_response(struct bytes in, struct http1_scan *scan,
                                       const struct http1_limits *limits, enum method method,
                                       struct message_head *head, size_t *used,
                                       struct http1_fault *fault)
{
    struct head_reader r;
    enum http1_result result;

    r.head = head;
    r.fault = fault;
    result = head_parse(&response_kind, in, scan, limits, &r, used);
    if (result == HTTP1_BAD)
        fault->status = 502;
    else if (result == HTTP1_OK)
        note_body(head, method);
    return result;
}
