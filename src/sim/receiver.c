/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/receiver.h"

static const struct http1_limits limits = {.head_bytes = RECEIVER_ROOM, .fields = 128};

void receiver_init(struct receiver *r, receiver_head on_head, void *owner)
{
    r->on_head = on_head;
    r->owner = owner;
    r->requests = false;
    r->asked = METHOD_GET;
    r->len = 0;
    r->state = RECEIVER_DONE;
    r->why = "";
}

static void spoil(struct receiver *r, const char *why)
{
    r->state = RECEIVER_BAD;
    r->why = why;
}

/* Keeps what is not used yet. |data| may lie in |kept| itself. */
static void keep(struct receiver *r, struct bytes data)
{
    if (data.len > RECEIVER_ROOM) {
        spoil(r, "more was sent than an actor keeps");
        return;
    }
    if (data.len > 0)
        memmove(r->kept, data.data, data.len);
    r->len = (uint32_t)data.len;
}

static void check(struct receiver *r, struct bytes data)
{
    size_t good;

    if (r->key != 0 && !r->wrong && data.len > 0) {
        good = payload_check(r->key, r->got, data);
        r->wrong = good < data.len;
        r->wrong_at = r->got + good;
    }
    r->got += data.len;
}

/* Reads on in the body; the rest, of a trailer or behind the end, is left in |*in|. */
static void read_body(struct receiver *r, struct bytes *in)
{
    struct http1_fault fault = {.why = ""};
    struct bytes data;
    struct bytes trailers;

    while (!http1_body_done(&r->body)) {
        enum http1_result result;

        data = BYTES_NONE;
        trailers = BYTES_NONE;
        result = http1_body_read(&r->body, in, &data, &trailers, &fault);
        if (result == HTTP1_BAD) {
            spoil(r, fault.why);
            return;
        }
        check(r, data);
        if (result == HTTP1_MORE)
            return;
    }
    r->state = RECEIVER_DONE;
}

static enum http1_result parse(struct receiver *r, struct bytes in, struct message_head *head,
                               size_t *used)
{
    struct http1_fault fault = {.why = ""};
    enum http1_result result =
        r->requests ? http1_parse_request(in, &r->scan, &limits, head, used, &fault)
                    : http1_parse_response(in, &r->scan, &limits, r->asked, head, used, &fault);

    if (result == HTTP1_BAD)
        spoil(r, fault.why);
    return result;
}

static bool interim(const struct receiver *r, const struct message_head *head)
{
    return !r->requests && head->status / 100 == 1 && head->status != 101;
}

/* True: the final head was read. */
static bool read_head(struct receiver *r, struct bytes *in)
{
    struct message_head head;
    bool final;
    size_t used;

    if (parse(r, *in, &head, &used) != HTTP1_OK)
        return false;
    final = !interim(r, &head);
    if (final) {
        http1_body_init(&r->body, &head, RECEIVER_ROOM);
        r->to_close = head.body == BODY_TO_CLOSE;
        r->state = RECEIVER_BODY;
    }
    r->on_head(r, &head);
    r->scan = (struct http1_scan){.seen = 0};
    *in = bytes_skip(*in, used);
    return final;
}

static void read_on(struct receiver *r, struct bytes in)
{
    while (r->state == RECEIVER_HEAD && in.len > 0) {
        size_t before = in.len;

        if (!read_head(r, &in) && (r->state == RECEIVER_BAD || in.len == before))
            break;
    }
    if (r->state == RECEIVER_BODY)
        read_body(r, &in);
    if (r->state != RECEIVER_BAD)
        keep(r, in);
}

/* Joins the front of |data| to what is kept, as much as there is room for, and reads that. */
static struct bytes join(struct receiver *r, struct bytes data)
{
    size_t n = RECEIVER_ROOM - r->len;

    if (n > data.len)
        n = data.len;
    if (n == 0) {
        spoil(r, "more was sent than an actor keeps");
        return BYTES_NONE;
    }
    memcpy(r->kept + r->len, data.data, n);
    r->len += (uint32_t)n;
    if (r->state != RECEIVER_DONE)
        read_on(r, bytes_from(r->kept, r->len));
    return bytes_skip(data, n);
}

void receiver_take(struct receiver *r, struct bytes data)
{
    while (data.len > 0 && r->state != RECEIVER_BAD) {
        if (r->len > 0 || r->state == RECEIVER_DONE) {
            data = join(r, data);
            continue;
        }
        read_on(r, data);
        return;
    }
}

bool receiver_end(struct receiver *r)
{
    if (r->state == RECEIVER_BODY && http1_body_ended(&r->body))
        r->state = RECEIVER_DONE;
    return r->state == RECEIVER_DONE;
}

void receiver_next(struct receiver *r)
{
    r->state = RECEIVER_HEAD;
    r->scan = (struct http1_scan){.seen = 0};
    r->key = 0;
    r->got = 0;
    r->wrong = false;
    r->wrong_at = 0;
    r->to_close = false;
    if (r->len > 0)
        read_on(r, bytes_from(r->kept, r->len));
}
