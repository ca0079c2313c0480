/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/served.h"

#include <assert.h>

#include "base/list.h"
#include "base/text.h"

#define LINGER      (2 * NS_PER_S) /* for the peer to read a last answer before the RST */
#define AHEAD_MAX   131072         /* bytes read beyond the present request */
#define BACKLOG_MAX 65536          /* the request's body is not read on beyond that */
#define HEAD_ROOM   4096           /* of an answer */

#define TRAILER_MAX 16384

static const struct http1_limits limits = {.head_bytes = 65536, .fields = MESSAGE_FIELDS_MAX};

static void process(struct served *s);

static void finish_dying(struct served *s)
{
    buffer_release(&s->in);
    buffer_release(&s->out);
    s->events->gone(s);
}

static void die(struct served *s, void (*give_back)(struct link *l))
{
    if (s->state == SERVED_DEAD)
        return;
    s->state = SERVED_DEAD;
    schedule_cancel(&s->loop->schedule, &s->linger);
    give_back(s->link);
    s->link = NULL;
    if (!s->processing)
        finish_dying(s);
}

void served_close(struct served *s)
{
    die(s, link_close);
}

void served_reset(struct served *s)
{
    die(s, link_abort);
}

static void set_reading(struct served *s)
{
    bool want = s->state != SERVED_STUCK && !s->peer_ended && buffer_len(&s->in) < AHEAD_MAX;

    if (want == s->reading)
        return;
    s->reading = want;
    if (want)
        link_read_start(s->link);
    else
        link_read_stop(s->link);
}

/* FIN, then the peer has LINGER to read what was sent: closing at once could destroy it. */
static void close_politely(struct served *s)
{
    if (s->peer_ended || s->broken) {
        served_close(s);
        return;
    }
    s->state = SERVED_CLOSING;
    link_shut(s->link);
    set_reading(s);
    schedule_arm(&s->loop->schedule, &s->linger, mono_after(s->loop->now, LINGER));
}

static void linger_over(struct appointment *a, mono_ns now)
{
    (void)now;
    served_close(CONTAINER_OF(a, struct served, linger));
}

static void broke(struct served *s)
{
    s->broken = true;
    buffer_take(&s->out, buffer_len(&s->out));
    schedule_arm(&s->loop->schedule, &s->linger, mono_after(s->loop->now, LINGER));
}

void served_flush(struct served *s)
{
    struct bytes all = buffer_bytes(&s->out);
    ptrdiff_t n;

    if (s->state == SERVED_DEAD || all.len == 0)
        return;
    n = link_write(s->link, &all, 1);
    if (n < 0)
        broke(s);
    else
        buffer_take(&s->out, (size_t)n);
}

/* The answer is out: the next request, or the end. */
static void finish_exchange(struct served *s)
{
    bool whole = s->state == SERVED_WHOLE;

    s->begun = s->ended = false;
    if (!whole || !s->keep_alive || s->broken || (s->peer_ended && buffer_len(&s->in) == 0)) {
        close_politely(s);
        return;
    }
    s->state = SERVED_HEAD;
    s->scan = (struct http1_scan){0};
    process(s);
}

static void after_writing(struct served *s)
{
    served_flush(s);
    if (s->state != SERVED_DEAD && s->ended && served_backlog(s) == 0)
        finish_exchange(s);
}

static void put(struct served *s, struct bytes data)
{
    if (!s->broken && !buffer_add(&s->out, data))
        broke(s);
}

static bool has_no_body(uint32_t status)
{
    return status < 200 || status == 204 || status == 304;
}

static void put_framing(struct served *s, struct text *t, const struct served_answer *a)
{
    s->chunked = false;
    if (!has_no_body(a->status) && a->framing == SERVED_LENGTH) {
        text_str(t, "content-length: ");
        text_u64(t, a->length);
        text_str(t, "\r\n");
    } else if (!has_no_body(a->status) && s->old_peer) {
        s->keep_alive = false; /* the end of the connection is the end of the body */
    } else if (!has_no_body(a->status)) {
        s->chunked = true;
        text_str(t, "transfer-encoding: chunked\r\n");
    }
    if (!s->keep_alive)
        text_str(t, "connection: close\r\n");
    else if (s->old_peer)
        text_str(t, "connection: keep-alive\r\n");
}

void served_invite_body(struct served *s)
{
    s->reads_later = true;
    if (!s->wants_100 || s->begun || s->state == SERVED_DEAD)
        return;
    s->wants_100 = false;
    put(s, BYTES("HTTP/1.1 100 Continue\r\n\r\n"));
    served_flush(s);
}

void served_begin(struct served *s, const struct served_answer *a)
{
    char room[HEAD_ROOM];
    struct text t;

    if (s->state == SERVED_DEAD)
        return;
    assert(!s->begun);
    if (s->state == SERVED_WAITING && !s->reads_later)
        s->keep_alive = false; /* a body that nobody reads is in the way of the next request */
    s->begun = true;
    s->bodiless = s->head_only || has_no_body(a->status);
    text_init(&t, room, sizeof(room));
    text_str(&t, "HTTP/1.1 ");
    text_u64(&t, a->status);
    text_char(&t, ' ');
    text_str(&t, http1_reason(a->status));
    text_str(&t, "\r\n");
    put_framing(s, &t, a);
    text_put(&t, a->fields);
    text_str(&t, "\r\n");
    assert(!t.failed); /* owners bound their fields */
    put(s, text_bytes(&t));
}

void served_write(struct served *s, struct bytes data)
{
    uint8_t size[HTTP1_CHUNK_HEAD_MAX];

    if (s->state == SERVED_DEAD || s->bodiless || data.len == 0)
        return;
    if (s->chunked)
        put(s, bytes_from(size, http1_write_chunk_head(size, data.len)));
    put(s, data);
    if (s->chunked)
        put(s, BYTES("\r\n"));
    if (served_backlog(s) < BACKLOG_MAX / 2)
        return;
    served_flush(s);
    s->owes_writable = served_backlog(s) > 0;
}

void served_end(struct served *s)
{
    if (s->state == SERVED_DEAD)
        return;
    assert(s->begun);
    if (s->chunked && !s->bodiless)
        put(s, BYTES("0\r\n\r\n"));
    s->ended = true;
    s->owes_writable = false;
    after_writing(s);
}

void served_answer_with(struct served *s, const struct served_answer *a, struct bytes body)
{
    served_begin(s, a);
    served_write(s, body);
    served_end(s);
}

static void answer_fault(struct served *s, const struct http1_fault *fault)
{
    struct bytes why = bytes_of(fault->why);

    s->keep_alive = false;
    if (s->begun) {
        served_reset(s);
        return;
    }
    s->head_only = false;
    served_answer_with(s,
                       &(struct served_answer){.status = fault->status,
                                               .length = why.len,
                                               .fields = BYTES("content-type: text/plain\r\n")},
                       why);
}

static void take_head(struct served *s, const struct message_head *head)
{
    s->keep_alive = head->keep_alive;
    s->old_peer = head->minor == 0;
    s->head_only = head->method_id == METHOD_HEAD;
    s->wants_100 = head->expect_continue && head->minor >= 1;
    s->begun = s->ended = s->bodiless = s->chunked = s->reads_later = false;
    http1_body_init(&s->body, head, TRAILER_MAX);
    s->state = SERVED_WAITING;
    s->events->head(s, head);
}

static bool process_head(struct served *s)
{
    struct message_head head;
    struct http1_fault fault;
    size_t used = 0;

    if (buffer_len(&s->in) == 0)
        return false;
    switch (http1_parse_request(buffer_bytes(&s->in), &s->scan, &limits, &head, &used, &fault)) {
    case HTTP1_MORE:
        return false;
    case HTTP1_BAD:
        s->old_peer = false;
        answer_fault(s, &fault);
        return false;
    case HTTP1_OK:
        break;
    }
    take_head(s, &head);
    if (s->state != SERVED_DEAD)
        buffer_take(&s->in, used);
    return true;
}

static void become_whole(struct served *s)
{
    s->state = SERVED_WHOLE;
    s->wants_100 = false;
    s->events->complete(s);
}

static bool process_body(struct served *s)
{
    struct bytes rest = buffer_bytes(&s->in);
    struct bytes data = BYTES_NONE;
    struct bytes trailers = BYTES_NONE;
    struct http1_fault fault;
    enum http1_result result;

    if (http1_body_done(&s->body)) {
        become_whole(s);
        return true;
    }
    if (served_backlog(s) > BACKLOG_MAX)
        return false;
    if (rest.len == 0) {
        served_invite_body(s);
        return false;
    }
    result = http1_body_read(&s->body, &rest, &data, &trailers, &fault);
    if (result == HTTP1_BAD) {
        answer_fault(s, &fault);
        return false;
    }
    if (data.len > 0)
        s->events->body(s, data);
    if (s->state != SERVED_DEAD)
        buffer_take(&s->in, buffer_len(&s->in) - rest.len);
    return result == HTTP1_OK;
}

static bool step(struct served *s)
{
    switch (s->state) {
    case SERVED_HEAD:
        return process_head(s);
    case SERVED_BODY:
        return process_body(s);
    case SERVED_CLOSING:
        buffer_take(&s->in, buffer_len(&s->in));
        return false;
    case SERVED_WAITING:
    case SERVED_WHOLE:
    case SERVED_STUCK:
    case SERVED_DEAD:
        return false;
    }
    return false;
}

/* Nothing more will come: is somebody still waiting for something? */
static void judge_end(struct served *s)
{
    if (!s->peer_ended || s->state == SERVED_DEAD)
        return;
    if (s->state == SERVED_HEAD || s->state == SERVED_CLOSING)
        served_close(s);
    else if (s->state == SERVED_BODY && served_backlog(s) <= BACKLOG_MAX)
        served_reset(s); /* cut in the middle of its body */
}

static void process(struct served *s)
{
    if (s->processing)
        return;
    s->processing = true;
    while (step(s))
        ;
    if (s->state != SERVED_DEAD)
        judge_end(s);
    s->processing = false;
    if (s->state == SERVED_DEAD)
        finish_dying(s);
    else
        set_reading(s);
}

void served_read_body(struct served *s)
{
    if (s->state != SERVED_WAITING)
        return;
    s->state = SERVED_BODY;
    process(s);
}

void served_stop_reading(struct served *s)
{
    if (s->state == SERVED_DEAD)
        return;
    s->state = SERVED_STUCK;
    set_reading(s);
}

static void on_opened(void *owner)
{
    (void)owner;
}

static void on_received(void *owner, struct bytes data)
{
    struct served *s = owner;

    if (s->state == SERVED_CLOSING)
        return;
    if (!buffer_add(&s->in, data))
        served_reset(s);
    else
        process(s);
}

static void on_ended(void *owner)
{
    struct served *s = owner;

    s->peer_ended = true;
    s->reading = false;
    s->processing = true; /* so that an end in the callback is told after it */
    if (s->state != SERVED_HEAD && s->state != SERVED_CLOSING)
        s->events->half_closed(s);
    s->processing = false;
    process(s);
}

static void on_writable(void *owner)
{
    struct served *s = owner;

    s->processing = true; /* so that an end in here is told after it */
    after_writing(s);
    if (s->state != SERVED_DEAD && s->owes_writable && served_backlog(s) == 0) {
        s->owes_writable = false;
        s->events->writable(s);
    }
    s->processing = false;
    process(s);
}

static void on_failed(void *owner, int error)
{
    (void)error;
    served_close(owner);
}

static const struct link_events link_events = {
    .opened = on_opened,
    .received = on_received,
    .ended = on_ended,
    .writable = on_writable,
    .failed = on_failed,
};

void served_open(struct served *s, const struct served_events *events, struct lab_loop *loop,
                 struct link *link)
{
    *s = (struct served){.events = events, .loop = loop, .link = link};
    buffer_init(&s->in);
    buffer_init(&s->out);
    appointment_init(&s->linger, linger_over);
    link_own(link, &link_events, s);
    set_reading(s);
}
