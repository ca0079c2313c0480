/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/forwarding.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "codec/http1.h"
#include "proxy/downstream.h"
#include "proxy/envoy_fields.h"

/* What we add to a request: addresses, an id, Via, framing, each with its name. */
#define ADDED_MAX 704u

#define ATTEMPT_COUNT "x-envoy-attempt-count: "

#define REQUEST_ID_LEN 36u
#define REQUEST_ID_MAX 256u

static void put_field(struct text *t, struct bytes name, struct bytes value)
{
    text_put(t, name);
    text_put(t, BYTES(": "));
    text_put(t, value);
    text_put(t, BYTES("\r\n"));
}

/*
 * A field of a message as it came. Mostly its line was written as we write it, and is copied in one
 * go: the CR LF behind its value is there, as the whole head is.
 */
static void put_received(struct text *t, const struct field *f)
{
    const uint8_t *behind_name = f->name.data + f->name.len;
    bool as_ours = f->value.data == behind_name + 2 && behind_name[1] == ' ' &&
                   f->value.data[f->value.len] == '\r';

    if (as_ours)
        text_put(t, bytes_from(f->name.data, f->name.len + f->value.len + 4));
    else
        put_field(t, f->name, f->value);
}

/* What was written since |from|: a view for the log. */
static struct bytes since(const struct text *t, size_t from)
{
    return bytes_from(t->data + from, t->len - from);
}

static struct bytes put_fact(struct text *t, struct bytes value)
{
    size_t from = t->len;

    text_put(t, value);
    return since(t, from);
}

/* --- requests --- */

/* A version 4 UUID (RFC 9562 5.4). */
static void put_uuid(struct text *t, struct rng *rng)
{
    char digits[32], uuid[36];
    struct text hex;

    text_init(&hex, digits, sizeof(digits));
    text_hex(&hex, (rng_next(rng) & ~(uint64_t)0xf000) | 0x4000, 16);
    text_hex(&hex, (rng_next(rng) & ~((uint64_t)3 << 62)) | (uint64_t)2 << 62, 16);
    uuid[8] = uuid[13] = uuid[18] = uuid[23] = '-';
    memcpy(uuid, digits, 8);
    memcpy(uuid + 9, digits + 8, 4);
    memcpy(uuid + 14, digits + 12, 4);
    memcpy(uuid + 19, digits + 16, 4);
    memcpy(uuid + 24, digits + 20, 12);
    text_put(t, bytes_from(uuid, sizeof(uuid)));
}

static void put_request_id(struct stream *s, struct text *t, const struct message_head *head)
{
    struct bytes given = message_value(head, FIELD_X_REQUEST_ID);
    size_t from;

    text_put(t, BYTES("x-request-id: "));
    from = t->len;
    if (given.len > 0 && given.len <= REQUEST_ID_MAX)
        text_put(t, given);
    else
        put_uuid(t, &s->worker->rng);
    s->facts.request_id = since(t, from);
    text_put(t, BYTES("\r\n"));
}

/* The last |hops| entries of all X-Forwarded-For fields: what trusted proxies wrote. */
static struct bytes trusted_part(struct bytes value, uint32_t hops)
{
    size_t at = value.len;

    while (at > 0 && hops > 0) {
        at--;
        while (at > 0 && value.data[at] != ',')
            at--;
        if (--hops == 0 && at > 0)
            return bytes_trim(bytes_skip(value, at + 1));
    }
    return hops == 0 && at > 0 ? BYTES_NONE : bytes_trim(bytes_skip(value, at));
}

/* Only the last X-Forwarded-For line counts: a trusted proxy appends to it, or adds one behind. */
static struct bytes last_forwarded_for(const struct message_head *head)
{
    for (uint32_t i = head->field_count; i > 0; i--)
        if (head->fields[i - 1].id == FIELD_X_FORWARDED_FOR)
            return head->fields[i - 1].value;
    return BYTES_NONE;
}

static void put_forwarded(struct stream *s, struct text *t, const struct message_head *head)
{
    uint32_t hops = s->down->listener->config->trusted_hops;
    struct bytes proto = message_value(head, FIELD_X_FORWARDED_PROTO);
    struct bytes before = BYTES_NONE;
    size_t from;

    if (hops > 0)
        before = trusted_part(last_forwarded_for(head), hops);
    text_put(t, BYTES("x-forwarded-for: "));
    from = t->len;
    if (before.len > 0) {
        text_put(t, before);
        text_put(t, BYTES(", "));
    }
    address_write_ip(t, &s->down->peer);
    s->facts.forwarded_for = since(t, from);
    text_put(t, BYTES("\r\n"));
    put_field(t, BYTES("x-forwarded-proto"), hops > 0 && proto.len > 0 ? proto : BYTES("http"));
}

static void put_request_line(struct stream *s, struct text *t, const struct message_head *head,
                             struct bytes path)
{
    bool normalized = s->down->listener->config->normalize_forwarded;
    size_t from;

    s->facts.method = put_fact(t, head->method);
    text_char(t, ' ');
    from = t->len;
    text_put(t, normalized ? path : head->path);
    text_put(t, head->query);
    s->facts.path = since(t, from);
    text_put(t, BYTES(" HTTP/1.1\r\nhost: "));
    s->facts.authority = put_fact(t, head->authority);
    text_put(t, BYTES("\r\n"));
}

/* Fields that are written by put_* from what we know, not passed on as they came. */
static bool written_apart(enum field_id id)
{
    return id == FIELD_HOST || id == FIELD_X_FORWARDED_FOR || id == FIELD_X_FORWARDED_PROTO ||
           id == FIELD_X_REQUEST_ID || id == FIELD_CONTENT_LENGTH || id == FIELD_EXPECT ||
           id == FIELD_TRANSFER_ENCODING || id == FIELD_TE;
}

static void put_request_fields(struct stream *s, struct text *t, const struct message_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *f = &head->fields[i];

        if (f->hop_by_hop || written_apart((enum field_id)f->id) ||
            (f->id == FIELD_OTHER && envoy_field_stops(f->name)))
            continue;
        put_received(t, f);
        if (f->id == FIELD_USER_AGENT && s->facts.user_agent.len == 0)
            s->facts.user_agent = bytes_from(t->data + t->len - f->value.len - 2, f->value.len);
    }
}

static void put_request_framing(struct text *t, const struct message_head *head)
{
    if (head->body == BODY_CHUNKED) {
        text_put(t, BYTES("transfer-encoding: chunked\r\n"));
    } else if (head->stated_length) {
        text_put(t, BYTES("content-length: "));
        text_u64(t, head->length);
        text_put(t, BYTES("\r\n"));
    }
    if (head->expect_continue)
        text_put(t, BYTES("expect: 100-continue\r\n"));
    if (head->websocket)
        text_put(t, BYTES("connection: upgrade\r\nupgrade: websocket\r\n"));
}

static void put_count(struct text *t, uint32_t attempt)
{
    text_u64(t, attempt);
    text_put(t, BYTES("\r\n\r\n"));
}

/* The last of the head, so that a later attempt can be given another number. */
static void put_attempt_count(struct stream *s, struct text *t)
{
    text_put(t, BYTES(ATTEMPT_COUNT));
    s->count_at = (uint32_t)t->len;
    put_count(t, 1);
}

void forwarding_count_attempt(struct stream *s)
{
    struct text t;

    text_init(&t, (char *)s->head + s->count_at, s->head_size - s->count_at);
    put_count(&t, s->x.attempt_count);
    s->head_len = s->count_at + (uint32_t)t.len;
}

static void put_request(struct stream *s, struct text *t, const struct message_head *head,
                        struct bytes path)
{
    put_request_line(s, t, head, path);
    put_request_fields(s, t, head);
    put_request_framing(t, head);
    put_forwarded(s, t, head);
    put_request_id(s, t, head);
    if (s->down->listener->config->via)
        text_put(t, head->minor == 0 ? BYTES("via: 1.0 firebreak\r\n")
                                     : BYTES("via: 1.1 firebreak\r\n"));
    if (s->x.retry != NULL)
        put_attempt_count(s, t);
    else
        text_put(t, BYTES("\r\n"));
}

/* Enough for all that put_request writes, and for the path as it came beside the one forwarded. */
static size_t room_needed(const struct message_head *head)
{
    size_t room = ADDED_MAX + REQUEST_ID_MAX + head->method.len + head->authority.len +
                  2 * (head->path.len + head->query.len) + 16;

    for (uint32_t i = 0; i < head->field_count; i++)
        room += head->fields[i].name.len + head->fields[i].value.len + 4;
    return room;
}

static bool take_head_room(struct stream *s, size_t room)
{
    if (room <= SMALL_HEAD_SIZE) {
        s->head = slab_take(&s->worker->heads);
        s->head_size = SMALL_HEAD_SIZE;
    } else {
        s->head = memory_take(room);
        s->head_size = (uint32_t)room;
        s->worker->allocations++;
    }
    return s->head != NULL;
}

bool forwarding_write_request(struct stream *s, struct bytes path)
{
    const struct message_head *head = &s->worker->head;
    struct text t;

    if (!take_head_room(s, room_needed(head)))
        return false;
    s->facts = (struct request_facts){
        .method_id = head->method_id,
        .minor = head->minor,
        .keep_alive = head->keep_alive,
        .websocket = head->websocket,
        .expects_continue = head->expect_continue,
    };
    if (s->worker->setup.log_format != NULL)
        kept_take(&s->kept_request, &s->worker->setup.log_format->request, head);
    text_init(&t, (char *)s->head, s->head_size);
    put_request(s, &t, head, path);
    s->head_len = (uint32_t)t.len;
    s->head_sent = 0;
    if (s->down->listener->config->normalize_forwarded && !bytes_equal(path, head->path)) {
        size_t from;

        text_put(&t, BYTES("\n\n\n")); /* where the number of a late attempt is longer */
        from = t.len;
        text_put(&t, head->path);
        text_put(&t, head->query);
        s->facts.path = since(&t, from);
    }
    assert(!t.failed);
    return true;
}

/* --- answers --- */

bool forwarding_answer_reusable(const struct message_head *head)
{
    bool bodyless = head->status == 204;

    if (bodyless && (head->stated_length || head->known[FIELD_TRANSFER_ENCODING] != 0))
        return false; /* what follows it may be a body or not: not to be trusted */
    return head->keep_alive && head->body != BODY_TO_CLOSE && head->status != 101;
}

static void put_status_line(struct text *t, uint32_t status, struct bytes reason)
{
    text_put(t, BYTES("HTTP/1.1 "));
    text_u64(t, status);
    text_char(t, ' ');
    text_put(t, reason);
    text_put(t, BYTES("\r\n"));
}

/* Is the client told how many attempts it took? */
static bool counts(const struct stream *s)
{
    return s->x.route != NULL && s->x.route->retry != NULL && s->x.route->retry->count_in_answer;
}

static void put_answer_count(const struct stream *s, struct text *t)
{
    if (!counts(s))
        return;
    text_put(t, BYTES(ATTEMPT_COUNT));
    text_u64(t, s->x.attempt_count);
    text_put(t, BYTES("\r\n"));
}

static void put_answer_fields(const struct stream *s, struct text *t,
                              const struct message_head *head)
{
    bool counted = counts(s);

    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *f = &head->fields[i];

        if (counted && bytes_equal_nocase(f->name, BYTES("x-envoy-attempt-count")))
            continue;
        if (!f->hop_by_hop && f->id != FIELD_CONTENT_LENGTH && f->id != FIELD_TRANSFER_ENCODING)
            put_received(t, f);
    }
}

static void put_length(struct text *t, uint64_t length)
{
    text_put(t, BYTES("content-length: "));
    text_u64(t, length);
    text_put(t, BYTES("\r\n"));
}

/* A connection that its client would keep ends here, by the proxy's own wish. */
static bool retires(const struct stream *s)
{
    struct listener_rt *l = s->down->listener;

    if (worker_ends_connections(s->worker) || l->closing) {
        listener_count(l, HTTP_downstream_cx_drain_close, 1);
        return true;
    }
    if (s->worker->now < s->down->retire_at)
        return false;
    listener_count(l, HTTP_downstream_cx_max_duration_reached, 1);
    return true;
}

/* May the client be told, and use, another request on this connection? */
static bool closes(const struct stream *s, uint32_t status, bool host_goes_on)
{
    if (!s->facts.keep_alive || retires(s) || s->close_client)
        return true;
    /* It refuses an upload that is still under way: what follows of it is nobody's. */
    return !exchange_request_complete(&s->x) && (status >= 300 || !host_goes_on);
}

/* How the body goes to the client; a length only where it is true of a body, or of HEAD and 304. */
static void put_answer_framing(struct stream *s, struct text *t, const struct message_head *head)
{
    s->response.framing = RELAY_PLAIN;
    if (head->status == 101 || head->status == 204)
        return;
    if (head->body == BODY_LENGTH || (head->body == BODY_NONE && head->stated_length &&
                                      head->known[FIELD_TRANSFER_ENCODING] == 0)) {
        put_length(t, head->length);
    } else if (head->body == BODY_CHUNKED || head->body == BODY_TO_CLOSE) {
        if (s->facts.minor == 0) {
            s->close_client = true; /* HTTP/1.0 knows no other end */
            return;
        }
        s->response.framing = RELAY_CHUNKED;
        text_put(t, BYTES("transfer-encoding: chunked\r\n"));
    }
}

static void put_connection(struct stream *s, struct text *t, uint32_t status, bool host_goes_on)
{
    if (status == 101) { /* a tunnel: it ends with the connection in any case */
        text_put(t, BYTES("connection: upgrade\r\nupgrade: websocket\r\n"));
        return;
    }
    s->close_client = closes(s, status, host_goes_on);
    if (s->close_client)
        text_put(t, BYTES("connection: close\r\n"));
    else if (s->facts.minor == 0)
        text_put(t, BYTES("connection: keep-alive\r\n"));
}

struct bytes forwarding_write_answer(struct stream *s, const struct message_head *head)
{
    struct worker *w = s->worker;
    struct text t;

    if (w->setup.log_format != NULL)
        kept_take(&s->kept_response, &w->setup.log_format->response, head);
    text_init(&t, (char *)w->scratch, sizeof(w->scratch));
    put_status_line(&t, head->status, head->reason);
    put_answer_fields(s, &t, head);
    put_answer_count(s, &t);
    put_answer_framing(s, &t, head);
    if (head->known[FIELD_DATE] == 0 && head->status != 101)
        put_field(&t, BYTES("date"), worker_date(w));
    put_connection(s, &t, head->status, head->keep_alive);
    text_put(&t, BYTES("\r\n"));
    assert(!t.failed);
    return text_bytes(&t);
}

struct bytes forwarding_write_interim(struct stream *s, const struct message_head *head)
{
    struct text t;

    if (s->facts.minor == 0)
        return BYTES_NONE;
    text_init(&t, (char *)s->worker->scratch, sizeof(s->worker->scratch));
    put_status_line(&t, head->status, head->reason);
    put_answer_fields(s, &t, head);
    text_put(&t, BYTES("\r\n"));
    assert(!t.failed);
    return text_bytes(&t);
}

/* --- our own answers --- */

static void put_local_head(struct worker *w, struct text *t, uint32_t status, size_t length)
{
    put_status_line(t, status, bytes_of(http1_reason(status)));
    if (length > 0)
        text_put(t, BYTES("content-type: text/plain\r\n"));
    put_length(t, length);
    put_field(t, BYTES("date"), worker_date(w));
    put_field(t, BYTES("server"), BYTES("firebreak"));
}

struct local_body {
    struct bytes begin;
    struct bytes rest;
};

/* After a retry, what is told is only why the last attempt failed, and it says so. */
static struct local_body local_body(const struct stream *s, enum reason reason)
{
    struct bytes whole = bytes_of(reasons[reason].body);

    if (s->x.retries == 0 || !bytes_start_with(whole, BYTES(RESET_TEXT)))
        return (struct local_body){.rest = whole};
    return (struct local_body){
        .begin = BYTES(RETRIED_TEXT),
        .rest = bytes_skip(whole, sizeof(RESET_TEXT) - 1),
    };
}

size_t forwarding_local_size(const struct stream *s, enum reason reason)
{
    struct local_body body = local_body(s, reason);

    return body.begin.len + body.rest.len;
}

struct bytes forwarding_write_local(struct stream *s, enum reason reason)
{
    const struct reason_info *info = &reasons[reason];
    struct local_body body = local_body(s, reason);
    struct text t;

    text_init(&t, (char *)s->worker->scratch, sizeof(s->worker->scratch));
    put_local_head(s->worker, &t, info->status, forwarding_local_size(s, reason));
    if (info->flag == FLAG_UO)
        text_put(&t, BYTES("x-envoy-overloaded: true\r\n"));
    put_answer_count(s, &t);
    put_connection(s, &t, info->status, true);
    text_put(&t, BYTES("\r\n"));
    if (s->facts.method_id == METHOD_HEAD)
        return text_bytes(&t);
    text_put(&t, body.begin);
    text_put(&t, body.rest);
    return text_bytes(&t);
}

struct bytes forwarding_write_reject(struct worker *w, uint32_t status, struct bytes body)
{
    struct text t;

    text_init(&t, (char *)w->scratch, sizeof(w->scratch));
    put_local_head(w, &t, status, body.len);
    text_put(&t, BYTES("connection: close\r\n\r\n"));
    text_put(&t, body);
    return text_bytes(&t);
}
