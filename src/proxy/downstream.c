/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/downstream.h"

#include <assert.h>

#include "exchange/lifetime.h"
#include "io/error.h"
#include "proxy/accepting.h"
#include "proxy/forwarding.h"
#include "proxy/recording.h"
#include "proxy/router.h"
#include "proxy/stream.h"

/* How long a client may take to read our last words while it still sends; then it is cut off. */
#define LINGER_TIME (5 * NS_PER_S)

/* Once a connection is to end, how long a client that keeps it idle may still come with a request.
 */
#define LAST_CALL (2 * NS_PER_S)

/* Pipelined bytes held while a request is under way; then reading stops. */
#define AHEAD_MAX 16384u

static void process(struct downstream *d, struct bytes data);

/* --- life --- */

/* A request is under way. One whose answer is broken off ends before its connection does. */
static bool under_request(const struct downstream *d)
{
    return d->stream != NULL &&
           (d->stream->x.reason == REASON_CLIENT_GONE || d->stream->x.reason == REASON_SHUTDOWN);
}

static void count_closed(struct downstream *d)
{
    struct listener_rt *l = d->listener;
    bool remote = d->client_ended;

    listener_uncount(l, HTTP_downstream_cx_active);
    listener_uncount(l, HTTP_downstream_cx_http1_active);
    listener_count(l, HTTP_downstream_cx_destroy, 1);
    listener_count(l, remote ? HTTP_downstream_cx_destroy_remote : HTTP_downstream_cx_destroy_local,
                   1);
    if (!under_request(d))
        return;
    listener_count(l, HTTP_downstream_cx_destroy_active_rq, 1);
    listener_count(l,
                   remote ? HTTP_downstream_cx_destroy_remote_active_rq
                          : HTTP_downstream_cx_destroy_local_active_rq,
                   1);
}

static void die(struct downstream *d)
{
    struct worker *w = d->worker;

    count_closed(d);
    d->state = DOWNSTREAM_DEAD;
    alarm_cancel(&d->alarm, &w->wheel);
    outbuf_release(&d->out, &w->outbufs);
    list_remove(&d->all);
    list_push_back(&w->dead_downstreams, &d->all);
    accepting_left(d->listener);
}

static void close_now(struct downstream *d)
{
    if (d->state == DOWNSTREAM_DEAD)
        return;
    link_close(d->link);
    die(d);
}

void downstream_cut(struct downstream *d)
{
    if (d->state == DOWNSTREAM_DEAD)
        return;
    link_abort(d->link);
    die(d);
}

void downstream_bury(struct downstream *d)
{
    list_remove(&d->all);
    inbuf_release(&d->in);
    slab_give(&d->worker->downstreams, d);
}

/* Ends what is under way, then the connection. */
static void gone(struct downstream *d)
{
    d->client_ended = true;
    if (d->stream != NULL)
        stream_client_gone(d->stream);
    close_now(d);
}

void downstream_kill(struct downstream *d)
{
    if (d->stream != NULL)
        stream_refuse(d->stream, REASON_SHUTDOWN);
    downstream_cut(d);
}

/* --- time --- */

/* The process drains, or the listener is no longer configured. */
bool downstream_ending(const struct downstream *d)
{
    return d->worker->draining || d->listener->closing;
}

static mono_ns idle_until(const struct downstream *d)
{
    mono_ns now = d->worker->now;

    return lifetime_idle(now, d->listener->config->idle_timeout,
                         downstream_ending(d) ? now : d->retire_at, LAST_CALL);
}

static void set_alarm(struct downstream *d, mono_ns due)
{
    alarm_set(&d->alarm, &d->worker->wheel, due);
}

static void enter(struct downstream *d, enum downstream_state state)
{
    d->state = state;
    switch (state) {
    case DOWNSTREAM_IDLE:
        set_alarm(d, idle_until(d));
        return;
    case DOWNSTREAM_HEAD:
        d->head_since = d->worker->now;
        set_alarm(d, mono_after(d->worker->now, d->listener->config->head_timeout));
        return;
    case DOWNSTREAM_BUSY:
        set_alarm(d, MONO_NEVER);
        return;
    case DOWNSTREAM_LINGER:
        set_alarm(d, mono_after(d->worker->now, LINGER_TIME));
        return;
    case DOWNSTREAM_DEAD:
        return;
    }
}

/* One more for which there will be one record: a request, or what never became one. */
static void count_request(struct downstream *d)
{
    listener_count(d->listener, HTTP_downstream_rq_total, 1);
    listener_count(d->listener, HTTP_downstream_rq_http1_total, 1);
}

static enum http_metric why_not_idle(const struct downstream *d)
{
    if (downstream_ending(d))
        return HTTP_downstream_cx_drain_close;
    return d->worker->now >= d->retire_at ? HTTP_downstream_cx_max_duration_reached
                                          : HTTP_downstream_cx_idle_timeout;
}

static void on_alarm(struct timer *t, mono_ns now)
{
    struct downstream *d = CONTAINER_OF(t, struct downstream, alarm.timer);

    if (!alarm_is_due(&d->alarm, &d->worker->wheel, now))
        return;
    if (d->write_failed) {
        gone(d);
        return;
    }
    switch (d->state) {
    case DOWNSTREAM_IDLE:
        listener_count(d->listener, why_not_idle(d), 1);
        close_now(d);
        return;
    case DOWNSTREAM_HEAD:
        listener_count(d->listener, HTTP_downstream_rq_header_timeout, 1);
        count_request(d);
        recording_make_reject(d, 408, FLAG_NONE, reasons[REASON_HEAD_TIMEOUT].details);
        downstream_reject(d, 408, reasons[REASON_HEAD_TIMEOUT].body);
        return;
    case DOWNSTREAM_LINGER:
        close_now(d);
        return;
    case DOWNSTREAM_BUSY:
    case DOWNSTREAM_DEAD:
        return;
    }
}

/* --- reading --- */

static void read_on(struct downstream *d)
{
    if (!d->reading && !d->client_ended) {
        d->reading = true;
        link_read_start(d->link);
    }
}

static void read_off(struct downstream *d)
{
    if (d->reading) {
        d->reading = false;
        link_read_stop(d->link);
    }
}

/* Is there room for what the client sends, and anybody who wants it? */
static bool has_room(const struct downstream *d)
{
    const struct stream *s = d->stream;

    if (d->state != DOWNSTREAM_BUSY || s == NULL)
        return true;
    if (!exchange_request_complete(&s->x) || s->x.tunnel)
        return stream_has_room(s);
    return d->in.len < AHEAD_MAX;
}

void downstream_pace(struct downstream *d)
{
    if (d->state == DOWNSTREAM_DEAD)
        return;
    if (has_room(d))
        read_on(d);
    else
        read_off(d);
}

/* --- writing --- */

void downstream_write(struct downstream *d, const struct bytes *parts, size_t n)
{
    size_t total = 0;

    if (d->state == DOWNSTREAM_DEAD || d->write_failed)
        return;
    for (size_t i = 0; i < n; i++)
        total += parts[i].len;
    listener_count(d->listener, HTTP_downstream_cx_tx_bytes_total, total);
    if (outbuf_write(&d->out, &d->worker->outbufs, d->link, parts, n) == 0)
        return;
    /* The client takes no more. Told at the end of the turn: whoever writes is in the midst of it.
     */
    d->write_failed = true;
    set_alarm(d, d->worker->now);
}

/* --- the end of a request, and of the connection --- */

/* The client may still be sending: the answer must not be lost to a reset. */
static void linger(struct downstream *d)
{
    inbuf_release(&d->in);
    enter(d, DOWNSTREAM_LINGER);
    link_shut(d->link);
    if (d->client_ended)
        close_now(d);
    else
        read_on(d);
}

void downstream_reject(struct downstream *d, uint32_t status, const char *body)
{
    struct bytes answer = forwarding_write_reject(d->worker, status, bytes_of(body));

    downstream_write(d, &answer, 1);
    if (downstream_flushed(d)) {
        linger(d);
        return;
    }
    inbuf_release(&d->in);
    enter(d, DOWNSTREAM_LINGER);
    read_on(d);
}

/* A FIN would end an answer without length well: only where none has begun may it be one. */
static void break_off(struct downstream *d)
{
    if (d->stream->x.status != 0)
        downstream_cut(d);
    else
        close_now(d);
    d->stream = NULL;
}

static void close_after(struct downstream *d)
{
    bool whole = exchange_request_complete(&d->stream->x);

    d->stream = NULL;
    if (d->state == DOWNSTREAM_DEAD)
        return;
    if (whole && d->in.len == 0)
        close_now(d);
    else
        linger(d);
}

static void go_on(struct downstream *d)
{
    d->stream = NULL;
    if (d->state == DOWNSTREAM_DEAD)
        return;
    enter(d, DOWNSTREAM_IDLE);
    if (d->processing)
        return;             /* the loop further up goes on */
    process(d, BYTES_NONE); /* what is pipelined: its turn has come */
    downstream_pace(d);
}

void downstream_next(struct downstream *d, enum downstream_after after)
{
    switch (after) {
    case DOWNSTREAM_GOES_ON:
        go_on(d);
        return;
    case DOWNSTREAM_CLOSES:
        close_after(d);
        return;
    case DOWNSTREAM_BREAKS_OFF:
        break_off(d);
        return;
    }
}

void downstream_tunnel(struct downstream *d)
{
    process(d, BYTES_NONE);
    downstream_pace(d);
}

void downstream_drain(struct downstream *d)
{
    if (d->state == DOWNSTREAM_IDLE)
        set_alarm(d, idle_until(d));
}

/* --- requests --- */

static void reject_bad(struct downstream *d, const struct http1_fault *fault)
{
    uint32_t flag = fault->status == 400 ? FLAG_DPE : FLAG_NONE;

    listener_count(d->listener, HTTP_downstream_cx_protocol_error, 1);
    count_request(d);
    recording_make_reject(d, fault->status, flag, fault->details);
    downstream_reject(d, fault->status, http1_reason(fault->status));
}

static bool plain_path(struct bytes path)
{
    for (size_t i = 0; i < path.len; i++) {
        uint8_t c = path.data[i];

        if (c == '%' ||
            (c == '/' && i + 1 < path.len && (path.data[i + 1] == '/' || path.data[i + 1] == '.')))
            return false;
    }
    return true;
}

/* The path to match by; in the scratch where it had to be changed. False: refused. */
static bool normalize(struct downstream *d, const struct message_head *head, struct bytes *path)
{
    struct worker *w = d->worker;
    size_t len;

    *path = head->path;
    if (plain_path(head->path))
        return true;
    if (head->path.len > sizeof(w->scratch) ||
        !http1_normalize_path(head->path, d->listener->config->merge_slashes, w->scratch, &len))
        return false;
    *path = bytes_from(w->scratch, len);
    return true;
}

static void reject(struct downstream *d, enum reason reason)
{
    recording_make_refusal(d, reason);
    downstream_reject(d, reasons[reason].status, reasons[reason].body);
}

/* A whole head is in |worker->head|; |more|: bytes follow it. */
static void begin(struct downstream *d, bool more)
{
    const struct message_head *head = &d->worker->head;
    struct bytes path;

    count_request(d);
    if (head->method_id == METHOD_CONNECT) {
        reject(d, REASON_NOT_IMPLEMENTED);
        return;
    }
    if (!normalize(d, head, &path)) {
        reject(d, REASON_PATH_REFUSED);
        return;
    }
    if (head->body == BODY_LENGTH && head->length > d->listener->config->limits.body_bytes) {
        listener_count(d->listener, HTTP_downstream_rq_too_large, 1);
        reject(d, REASON_TOO_LARGE);
        return;
    }
    enter(d, DOWNSTREAM_BUSY);
    listener_count(d->listener, HTTP_downstream_rq_active, 1);
    if (!stream_begin(d, path, router_match(d->listener->config, head, path), more)) {
        listener_uncount(d->listener, HTTP_downstream_rq_active);
        reject(d, REASON_OUT_OF_MEMORY);
    }
}

/* One head off |*in|. False: it is not whole yet, or it was bad. */
static bool take_head(struct downstream *d, struct bytes *in)
{
    const struct http_limits *configured = &d->listener->config->limits;
    const struct http1_limits limits = {.head_bytes = configured->head_bytes,
                                        .fields = configured->fields};
    struct http1_fault fault;
    size_t used;

    if (d->state == DOWNSTREAM_IDLE)
        enter(d, DOWNSTREAM_HEAD);
    switch (http1_parse_request(*in, &d->scan, &limits, &d->worker->head, &used, &fault)) {
    case HTTP1_MORE:
        return false;
    case HTTP1_BAD:
        reject_bad(d, &fault);
        return false;
    case HTTP1_OK:
        break;
    }
    *in = bytes_skip(*in, used);
    d->scan = (struct http1_scan){.seen = 0};
    begin(d, in->len > 0);
    return true;
}

/* Can the stream use what is next? Else it is pipelined, and waits. */
static bool stream_wants(const struct downstream *d)
{
    return d->stream->x.tunnel || !http1_body_done(&d->stream->request.body);
}

static void use(struct downstream *d, struct bytes *in)
{
    while (in->len > 0) {
        size_t before = in->len;

        switch (d->state) {
        case DOWNSTREAM_IDLE:
        case DOWNSTREAM_HEAD:
            if (!take_head(d, in))
                return;
            break;
        case DOWNSTREAM_BUSY:
            if (!stream_wants(d))
                return;
            stream_receive(d->stream, in);
            if (in->len == before)
                return;
            break;
        case DOWNSTREAM_LINGER:
        case DOWNSTREAM_DEAD:
            *in = BYTES_NONE;
            return;
        }
    }
}

/* May the client have sent its last byte, so that what is under way goes on? */
static bool may_end(const struct downstream *d)
{
    switch (d->state) {
    case DOWNSTREAM_IDLE:
    case DOWNSTREAM_HEAD:
        return false;
    case DOWNSTREAM_BUSY:
        return d->stream->x.tunnel || exchange_request_complete(&d->stream->x);
    case DOWNSTREAM_LINGER:
        return !downstream_flushed(d);
    case DOWNSTREAM_DEAD:
        return true;
    }
    return true;
}

/* What |data|, behind what was held, gives; what it does not is held. */
static void process(struct downstream *d, struct bytes data)
{
    struct inbuf held = d->in;
    struct bytes in = data;
    bool kept = true;

    d->in = (struct inbuf){.data = NULL};
    if (held.len > 0) {
        kept = inbuf_append(&held, data, &d->worker->allocations);
        in = inbuf_bytes(&held);
    }
    d->processing = true;
    if (kept)
        use(d, &in);
    d->processing = false;
    if (d->state == DOWNSTREAM_LINGER || d->state == DOWNSTREAM_DEAD)
        in = BYTES_NONE;
    if (kept && held.len > 0) {
        inbuf_keep(&held, in);
        d->in = held;
        held = (struct inbuf){.data = NULL};
    } else if (kept) {
        kept = inbuf_append(&d->in, in, &d->worker->allocations);
    }
    inbuf_release(&held);
    if (!kept || (d->client_ended && !may_end(d)))
        gone(d);
}

/* --- what the link says --- */

static void on_opened(void *owner)
{
    (void)owner; /* only said of connects */
}

static void on_received(void *owner, struct bytes data)
{
    struct downstream *d = owner;

    listener_count(d->listener, HTTP_downstream_cx_rx_bytes_total, data.len);
    process(d, data);
    downstream_pace(d);
}

static void on_ended(void *owner)
{
    struct downstream *d = owner;

    d->client_ended = true;
    d->reading = false;
    if (!may_end(d)) {
        gone(d);
        return;
    }
    /* With requests behind this one it has said all it wanted, and waits. */
    if (d->state == DOWNSTREAM_BUSY && d->in.len == 0 && !stream_client_ended(d->stream))
        gone(d);
}

static void on_writable(void *owner)
{
    struct downstream *d = owner;

    if (d->stream != NULL)
        exchange_touch(&d->stream->x, d->worker->now); /* it has taken something */
    if (outbuf_flush(&d->out, &d->worker->outbufs, d->link) != 0) {
        gone(d);
        return;
    }
    if (!downstream_flushed(d))
        return;
    if (d->state == DOWNSTREAM_LINGER)
        linger(d);
    else if (d->stream != NULL)
        stream_delivered(d->stream);
}

static void on_failed(void *owner, int error)
{
    (void)error;
    gone(owner);
}

static const struct link_events downstream_events = {
    .opened = on_opened,
    .received = on_received,
    .ended = on_ended,
    .writable = on_writable,
    .failed = on_failed,
};

void downstream_accept(struct listener_rt *listener, struct link *link, const struct address *peer)
{
    struct worker *w = listener->worker;
    struct downstream *d = slab_take(&w->downstreams);

    if (d == NULL) {
        link_abort(link);
        accepting_left(listener);
        return;
    }
    *d = (struct downstream){.link = link, .worker = w, .listener = listener, .peer = *peer};
    list_push_back(&w->connections, &d->all);
    d->retire_at = lifetime_end(w->now, listener->config->max_connection_age, &w->rng);
    alarm_init(&d->alarm, on_alarm);
    listener_count(listener, HTTP_downstream_cx_total, 1);
    listener_count(listener, HTTP_downstream_cx_http1_total, 1);
    listener_count(listener, HTTP_downstream_cx_active, 1);
    listener_count(listener, HTTP_downstream_cx_http1_active, 1);
    link_own(link, &downstream_events, d);
    enter(d, DOWNSTREAM_IDLE);
    read_on(d);
}
