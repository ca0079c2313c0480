/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/access_line.h"

#include "codec/json.h"
#include "model/flags.h"

#define CUT_MARK "..." /* what follows a text that was cut */

/* --- JSON --- */

/* A text that was cut is copied to have its mark: rare, and the writer's thread has the stack. */
static void json_cut(struct json *j, const char *key, struct bytes b)
{
    char room[RECORD_PATH_MAX + sizeof(CUT_MARK)];
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
    json_ms(j, "backoff", a->backoff);
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
