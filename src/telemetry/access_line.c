/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/access_line.h"

#include "codec/json.h"
#include "model/flags.h"

#define CUT_MARK "..." /* what follows a text that was cut */

/* Days since 1970-01-01 to a date (proleptic Gregorian; years from March, so that leap days end
 * one). */
struct date {
    uint64_t year;
    unsigned month;
    unsigned day;
};

static struct date date_of(uint64_t days)
{
    uint64_t shifted = days + 719468; /* from 0000-03-01 */
    uint64_t era = shifted / 146097;
    uint64_t day_of_era = shifted % 146097;
    uint64_t year =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    unsigned from_march = (unsigned)((5 * day_of_year + 2) / 153);
    struct date d = {
        .year = year + era * 400 + (from_march >= 10),
        .month = from_march < 10 ? from_march + 3 : from_march - 9,
        .day = (unsigned)(day_of_year - (153 * from_march + 2) / 5) + 1,
    };

    return d;
}

/* |digits| decimal digits, with zeros before. */
static void put_digits(struct text *t, uint64_t v, unsigned digits)
{
    uint64_t unit = 1;

    for (unsigned i = 1; i < digits; i++)
        unit *= 10;
    for (; unit > 0; unit /= 10)
        text_char(t, (char)('0' + v / unit % 10));
}

void access_line_time(struct text *t, wall_ns at)
{
    uint64_t seconds = at / NS_PER_S;
    struct date d = date_of(seconds / 86400);

    put_digits(t, d.year, 4);
    text_char(t, '-');
    put_digits(t, d.month, 2);
    text_char(t, '-');
    put_digits(t, d.day, 2);
    text_char(t, 'T');
    put_digits(t, seconds / 3600 % 24, 2);
    text_char(t, ':');
    put_digits(t, seconds / 60 % 60, 2);
    text_char(t, ':');
    put_digits(t, seconds % 60, 2);
    text_char(t, '.');
    put_digits(t, at / NS_PER_MS % 1000, 3);
    text_char(t, 'Z');
}

/* --- JSON --- */

/* A text that was cut is copied to have its mark: rare, and the writer's thread has the stack. */
static void json_cut(struct json *j, const char *key, struct bytes b)
{
    char room[8192 + sizeof(CUT_MARK)];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_put(&t, b);
    text_str(&t, CUT_MARK);
    json_string(j, key, text_bytes(&t));
}

static void json_value(struct json *j, const char *key, struct bytes b, const struct record_copy *c,
                       enum record_text which)
{
    if (b.len == 0)
        json_null(j, key);
    else if ((c->cut & 1u << which) != 0)
        json_cut(j, key, b);
    else
        json_string(j, key, b);
}

static void json_flags(struct json *j, const char *key, uint32_t flags)
{
    char room[128];
    struct text t;

    text_init(&t, room, sizeof(room));
    flags_write(&t, flags);
    json_string(j, key, text_bytes(&t));
}

static void json_ms(struct json *j, const char *key, span_ns d)
{
    json_double(j, key, (double)d / (double)NS_PER_MS, 3);
}

static void json_address(struct json *j, const char *key, const struct address *a)
{
    char room[ADDRESS_TEXT_MAX + RECORD_WORD_MAX];
    struct text t;

    text_init(&t, room, sizeof(room));
    if (a->kind != ADDRESS_NONE)
        address_write(&t, a);
    if (t.len == 0)
        json_null(j, key);
    else
        json_string(j, key, text_bytes(&t));
}

static void json_time(struct json *j, const char *key, wall_ns at)
{
    char room[40];
    struct text t;

    text_init(&t, room, sizeof(room));
    access_line_time(&t, at);
    json_string(j, key, text_bytes(&t));
}

/* Text as in Istio's log, where it is the value of a header. */
static void json_upstream_time(struct json *j, const struct request_record *r)
{
    char room[24];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_u64(&t, r->upstream_service_time / NS_PER_MS);
    if (r->from_upstream)
        json_string(j, "upstream_service_time", text_bytes(&t));
    else
        json_null(j, "upstream_service_time");
}

static void json_attempt(struct json *j, const struct record_attempt *a)
{
    json_object(j, NULL);
    if (a->endpoint.len == 0)
        json_null(j, "endpoint");
    else
        json_string(j, "endpoint", a->endpoint);
    json_text(j, "outcome", a->outcome);
    if (a->status == 0)
        json_null(j, "status");
    else
        json_u64(j, "status", a->status);
    json_flags(j, "flags", a->flags);
    json_ms(j, "queue_time", a->queue_time);
    json_ms(j, "service_time", a->service_time);
    json_object_end(j);
}

static void json_request(struct json *j, const struct record_copy *c)
{
    const struct request_record *r = &c->record;

    json_time(j, "start_time", r->started);
    json_value(j, "method", r->method, c, RECORD_TEXT_method);
    json_value(j, "path", r->path, c, RECORD_TEXT_path);
    json_text(j, "protocol", r->protocol);
    json_value(j, "authority", r->authority, c, RECORD_TEXT_authority);
    json_value(j, "request_id", r->request_id, c, RECORD_TEXT_request_id);
    json_value(j, "user_agent", r->user_agent, c, RECORD_TEXT_user_agent);
    json_value(j, "x_forwarded_for", r->forwarded_for, c, RECORD_TEXT_forwarded_for);
}

static void json_response(struct json *j, const struct request_record *r)
{
    json_u64(j, "response_code", r->status);
    json_flags(j, "response_flags", r->flags);
    json_text(j, "response_code_details", r->details);
    json_text(j, "connection_termination_details", r->termination);
    json_text(j, "upstream_transport_failure_reason", r->transport_failure);
    json_u64(j, "bytes_received", r->bytes_received);
    json_u64(j, "bytes_sent", r->bytes_sent);
    json_u64(j, "duration", r->duration / NS_PER_MS);
    json_upstream_time(j, r);
    json_ms(j, "queue_time", r->queue_time);
    json_ms(j, "service_time", r->service_time);
}

static void json_places(struct json *j, const struct record_copy *c)
{
    const struct request_record *r = &c->record;

    json_value(j, "upstream_host", r->upstream_host, c, RECORD_TEXT_upstream_host);
    json_value(j, "upstream_cluster", r->cluster, c, RECORD_TEXT_cluster);
    json_null(j, "upstream_local_address");
    json_address(j, "downstream_local_address", &r->downstream_local);
    json_address(j, "downstream_remote_address", &r->downstream_remote);
    json_null(j, "requested_server_name");
    json_value(j, "route_name", r->route, c, RECORD_TEXT_route);
}

void access_line_json(struct text *t, const struct record_copy *c)
{
    struct json j;

    json_init(&j, t);
    json_object(&j, NULL);
    json_request(&j, c);
    json_response(&j, &c->record);
    json_places(&j, c);
    json_array(&j, "attempts");
    for (uint32_t i = 0; i < c->record.attempt_count; i++)
        json_attempt(&j, &c->record.attempts[i]);
    json_array_end(&j);
    json_object_end(&j);
    text_char(t, '\n');
}

/* --- text --- */

/* What would break the line or its quoted fields is escaped, as nginx does. */
static void put_escaped(struct text *t, struct bytes b)
{
    size_t plain = 0;

    for (size_t i = 0; i < b.len; i++) {
        uint8_t c = b.data[i];

        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            continue;
        text_put(t, bytes_slice(b, plain, i - plain));
        text_str(t, "\\x");
        text_hex(t, c, 2);
        plain = i + 1;
    }
    text_put(t, bytes_skip(b, plain));
}

static void put_value(struct text *t, struct bytes b, const struct record_copy *c,
                      enum record_text which)
{
    if (b.len == 0)
        text_char(t, '-');
    put_escaped(t, b);
    if ((c->cut & 1u << which) != 0)
        text_str(t, CUT_MARK);
}

static void put_quoted(struct text *t, struct bytes b, const struct record_copy *c,
                       enum record_text which)
{
    text_str(t, " \"");
    put_value(t, b, c, which);
    text_char(t, '"');
}

static void put_number(struct text *t, uint64_t v)
{
    text_char(t, ' ');
    text_u64(t, v);
}

void access_line_text(struct text *t, const struct record_copy *c)
{
    const struct request_record *r = &c->record;

    text_char(t, '[');
    access_line_time(t, r->started);
    text_str(t, "] \"");
    put_value(t, r->method, c, RECORD_TEXT_method);
    text_char(t, ' ');
    put_value(t, r->path, c, RECORD_TEXT_path);
    text_char(t, ' ');
    text_str(t, r->protocol == NULL ? "-" : r->protocol);
    text_char(t, '"');
    put_number(t, r->status);
    text_char(t, ' ');
    flags_write(t, r->flags);
    put_number(t, r->bytes_received);
    put_number(t, r->bytes_sent);
    put_number(t, r->duration / NS_PER_MS);
    if (r->from_upstream)
        put_number(t, r->upstream_service_time / NS_PER_MS);
    else
        text_str(t, " -");
    put_quoted(t, r->forwarded_for, c, RECORD_TEXT_forwarded_for);
    put_quoted(t, r->user_agent, c, RECORD_TEXT_user_agent);
    put_quoted(t, r->request_id, c, RECORD_TEXT_request_id);
    put_quoted(t, r->authority, c, RECORD_TEXT_authority);
    put_quoted(t, r->upstream_host, c, RECORD_TEXT_upstream_host);
    text_char(t, '\n');
}
