/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a head, and its lines.
 *
 * A head that is there as a whole is read in one pass. Only when that pass does not end well is the
 * head gone through in the one order that does not depend on how it was cut: first bytes, first
 * line, line ends up to the empty line, limits, then all of it. So a good head costs one pass, and
 * every fault is the same fault however the bytes came.
 */
#include "codec/http1_head.h"

#include <assert.h>

#define BLANK(c) ((c) == ' ' || (c) == '\t')

/* See the BYTE_ bits. From 0x80 on: none. */
const uint8_t http1_bytes[256] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  /* 0x00 */
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  /* 0x10 */
    0,  15, 6,  1,  15, 7,  15, 15, 14, 14, 15, 15, 14, 15, 15, 6,  /* 0x20 */
    31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 6,  14, 6,  14, 6,  4,  /* 0x30 */
    6,  31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* 0x40 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6,  6,  6,  7,  15, /* 0x50 */
    7,  31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* 0x60 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6,  7,  6,  15, 0,  /* 0x70 */
};

enum http1_result head_bad(struct head_reader *r, uint32_t status, const char *details,
                           const char *why)
{
    *r->fault = (struct http1_fault){.status = status, .details = details, .why = why};
    return HTTP1_BAD;
}

enum http1_result head_malformed(struct head_reader *r, const char *why)
{
    return head_bad(r, 400, "http1.codec_error", why);
}

/* --- lines --- */

/* Written out, so that compilers see one load in it. */
static inline uint64_t load_le64(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

/* 0x80 in each byte of |v| below 0x20 or equal to 0x7f; exact up to the lowest such byte. */
static uint64_t controls_in(uint64_t v)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t is_del = v ^ (ones * 0x7f);

    return (((v - ones * 0x20) & ~v) | ((is_del - ones) & ~is_del)) & (ones * 0x80);
}

static const uint8_t *skip_text(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 8) {
        uint64_t found = controls_in(load_le64(p));

        if (found != 0)
            return p + (__builtin_ctzll(found) >> 3);
        p += 8;
    }
    while (p < end && *p >= 0x20 && *p != 0x7f)
        p++;
    return p;
}

const uint8_t *head_skip_value(const uint8_t *p, const uint8_t *end)
{
    p = skip_text(p, end);
    while (p < end && *p == '\t')
        p = skip_text(p + 1, end);
    return p;
}

enum http1_result head_read_crlf(struct head_reader *r)
{
    if (r->at == r->end)
        return HTTP1_MORE;
    if (*r->at != '\r')
        return *r->at == '\n' ? head_malformed(r, "line feed without carriage return")
                              : head_bad(r, 400, "http1.invalid_characters", "control character");
    if (r->end - r->at < 2)
        return HTTP1_MORE;
    if (r->at[1] != '\n')
        return head_malformed(r, "carriage return without line feed");
    r->at += 2;
    return HTTP1_OK;
}

enum http1_result head_read_version(struct head_reader *r)
{
    static const char shape[] = "HTTP/0.0"; /* 0: a digit */
    const uint8_t *p = r->at;

    for (unsigned i = 0; i < sizeof(shape) - 1; i++) {
        if (p + i == r->end)
            return HTTP1_MORE;

        bool fits = shape[i] == '0' ? p[i] >= '0' && p[i] <= '9' : p[i] == (uint8_t)shape[i];

        if (!fits)
            return head_malformed(r, "no HTTP version where one must be");
    }
    r->major = (uint8_t)(p[5] - '0');
    r->head->minor = p[7] == '0' ? 0 : 1;
    r->at += sizeof(shape) - 1;
    return HTTP1_OK;
}

static enum http1_result bad_name(struct head_reader *r, bool empty, uint8_t found)
{
    if (empty && BLANK(found))
        return head_malformed(r, "folded field line");
    if (empty)
        return head_malformed(r, "field line without a name");
    if (BLANK(found))
        return head_malformed(r, "blank between field name and colon");
    if (found == '\r' || found == '\n')
        return head_malformed(r, "field line without a colon");
    return head_bad(r, 400, "http1.invalid_characters", "bad character in a field name");
}

static struct bytes without_blanks_behind(const uint8_t *from, const uint8_t *to)
{
    while (to > from && BLANK(to[-1]))
        to--;
    return bytes_from(from, (size_t)(to - from));
}

/* First byte from |p| on that is of no token. */
static inline const uint8_t *skip_token(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 4) {
        if (!byte_is(p[0], BYTE_TOKEN))
            return p;
        if (!byte_is(p[1], BYTE_TOKEN))
            return p + 1;
        if (!byte_is(p[2], BYTE_TOKEN))
            return p + 2;
        if (!byte_is(p[3], BYTE_TOKEN))
            return p + 3;
        p += 4;
    }
    while (p < end && byte_is(*p, BYTE_TOKEN))
        p++;
    return p;
}

enum http1_result head_read_field(struct head_reader *r, struct field *f)
{
    const uint8_t *name = r->at;
    const uint8_t *p = skip_token(name, r->end);

    if (p == r->end)
        return HTTP1_MORE;
    if (*p != ':' || p == name)
        return bad_name(r, p == name, *p);
    f->name = bytes_from(name, (size_t)(p - name));
    do {
        p++;
    } while (p < r->end && BLANK(*p));
    r->at = head_skip_value(p, r->end);
    f->value = without_blanks_behind(p, r->at);
    if (r->end - r->at >= 2 && r->at[0] == '\r' && r->at[1] == '\n') {
        r->at += 2;
        return HTTP1_OK;
    }
    return head_read_crlf(r);
}

/* What stands first and what is repeated; meaning comes when all fields are there. */
static inline void note_field(struct head_reader *r, struct field *f, uint32_t index)
{
    enum field_id id = field_lookup(f->name);

    f->id = (uint8_t)id;
    f->hop_by_hop = field_is_hop_by_hop(id);
    if (id == FIELD_OTHER)
        return;
    if (r->head->known[id] == 0)
        r->head->known[id] = (uint16_t)(index + 1);
    else
        r->repeated |= UINT32_C(1) << id;
}

enum http1_result head_read_fields(struct head_reader *r)
{
    struct message_head *head = r->head;
    uint32_t count = 0;

    for (;;) {
        enum http1_result result;

        if (r->at == r->end)
            return HTTP1_MORE;
        if (*r->at == '\r') {
            head->field_count = count;
            return head_read_crlf(r);
        }
        if (count == r->fields_max)
            return head_bad(r, 431, "http1.too_many_headers", "too many fields");
        result = head_read_field(r, &head->fields[count]);
        if (result != HTTP1_OK)
            return result;
        note_field(r, &head->fields[count], count);
        count++;
    }
}

/* --- the end of the head --- */

static void reset_head(struct message_head *head)
{
    head->method_id = METHOD_OTHER;
    head->method = BYTES_NONE;
    head->target = BYTES_NONE;
    head->path = BYTES_NONE;
    head->query = BYTES_NONE;
    head->authority = BYTES_NONE;
    head->absolute_form = false;
    head->status = 0;
    head->reason = BYTES_NONE;
    head->minor = 0;
    head->body = BODY_NONE;
    head->length = 0;
    head->stated_length = false;
    head->keep_alive = false;
    head->expect_continue = false;
    head->websocket = false;
    head->upgrade = false;
    head->field_count = 0;
    memset(head->known, 0, sizeof(head->known));
}

static void rewind_to(struct head_reader *r, struct bytes in)
{
    r->at = in.data;
    r->end = in.data + in.len;
    r->repeated = 0;
    r->option_close = r->option_keep_alive = r->option_upgrade = false;
    reset_head(r->head);
}

static enum http1_result more_or_too_long(struct head_reader *r, bool full, bool in_first_line)
{
    if (!full)
        return HTTP1_MORE;
    if (in_first_line)
        return head_bad(r, 414, "http1.headers_too_large", "first line longer than a head may be");
    return head_bad(r, 431, "http1.headers_too_large", "head longer than it may be");
}

/* The first line is whole: |scan->seen| moves past it. */
static enum http1_result check_first_line(const struct head_kind *kind, struct bytes window,
                                          struct http1_scan *scan, struct head_reader *r)
{
    const uint8_t *line_end;
    const uint8_t *from;
    enum http1_result result;

    rewind_to(r, window);
    result = kind->read_start(r);
    if (result != HTTP1_OK)
        return result;
    from = window.data + scan->seen > r->at ? window.data + scan->seen : r->at;
    line_end = memchr(from, '\n', (size_t)(r->end - from));
    if (line_end == NULL) {
        scan->seen = (uint32_t)window.len;
        return HTTP1_MORE;
    }
    r->end = line_end + 1;
    result = kind->read_first_line(r);
    if (result != HTTP1_OK)
        return result;
    scan->line_checked = true;
    scan->seen = (uint32_t)(line_end + 1 - window.data);
    return HTTP1_OK;
}

/* OK: |scan->seen| is the length of the head. The first line was checked. */
static enum http1_result find_empty_line(struct bytes window, struct http1_scan *scan,
                                         struct head_reader *r)
{
    for (;;) {
        const uint8_t *from = window.data + scan->seen;
        const uint8_t *line_end = memchr(from, '\n', window.len - scan->seen);

        if (line_end == NULL) {
            scan->seen = (uint32_t)window.len;
            return HTTP1_MORE;
        }
        if (line_end[-1] != '\r')
            return head_malformed(r, "line feed without carriage return");
        scan->seen = (uint32_t)(line_end + 1 - window.data);
        if (line_end[-2] == '\n')
            return HTTP1_OK;
    }
}

/* The one order, see the top. */
static enum http1_result find_head(const struct head_kind *kind, struct bytes window,
                                   struct http1_scan *scan, struct head_reader *r)
{
    if (!scan->line_checked) {
        enum http1_result result = check_first_line(kind, window, scan, r);

        if (result != HTTP1_OK)
            return result;
    }
    return find_empty_line(window, scan, r);
}

enum http1_result head_parse(const struct head_kind *kind, struct bytes in, struct http1_scan *scan,
                             const struct http1_limits *limits, struct head_reader *r, size_t *used)
{
    struct bytes window = bytes_slice(in, 0, limits->head_bytes);
    enum http1_result result;

    if (window.len == 0)
        return more_or_too_long(r, limits->head_bytes == 0, true);
    r->fields_max = limits->fields < MESSAGE_FIELDS_MAX ? limits->fields : MESSAGE_FIELDS_MAX;
    if (scan->seen == 0) {
        rewind_to(r, window);
        if (kind->read_head(r) == HTTP1_OK) {
            *used = (size_t)(r->at - window.data);
            return HTTP1_OK;
        }
    }
    result = find_head(kind, window, scan, r);
    if (result == HTTP1_MORE)
        return more_or_too_long(r, window.len == limits->head_bytes, !scan->line_checked);
    if (result != HTTP1_OK)
        return result;
    rewind_to(r, bytes_slice(window, 0, scan->seen));
    result = kind->read_head(r);
    assert(result != HTTP1_MORE); /* its empty line is there */
    *used = scan->seen;
    return result;
}
