/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/stream.h"

#include <assert.h>

#include "base/memory.h"
#include "exchange/retry_headers.h"
#include "io/error.h"
#include "proxy/downstream.h"
#include "proxy/envoy_fields.h"
#include "proxy/forwarding.h"
#include "proxy/pool.h"
#include "proxy/recording.h"
#include "proxy/replay.h"
#include "proxy/upstream.h"

/* --- life --- */

static void on_alarm(struct timer *t, mono_ns now)
{
    struct stream *s = CONTAINER_OF(t, struct stream, alarm.timer);

    if (alarm_is_due(&s->alarm, &s->worker->wheel, now))
        stream_event(s, &(struct exchange_event){.kind = EVENT_TIME,
                                                 .replayable = replay_possible(s),
                                                 .held_up = !downstream_flushed(s->down)});
}

static void free_head(struct stream *s)
{
    if (s->head_size <= SMALL_HEAD_SIZE)
        slab_give(&s->worker->heads, s->head);
    else
        memory_give(s->head);
    s->head = NULL;
}

/* The memory stays until the turn ends: callers further up may still look at it. */
static void bury_later(struct stream *s)
{
    alarm_cancel(&s->alarm, &s->worker->wheel);
    replay_release(s);
    memory_give(s->own);
    s->own = NULL;
    free_head(s);
    kept_release(&s->kept_request);
    kept_release(&s->kept_response);
    list_push_back(&s->worker->dead_streams, &s->waiting);
}

static struct stream *make(struct downstream *down)
{
    struct worker *w = down->worker;
    struct stream *s = slab_take(&w->streams);

    if (s == NULL)
        return NULL;
    s->worker = w;
    s->adopted = NULL;
    s->down = down;
    s->up = NULL;
    s->pool = NULL;
    list_init(&s->waiting);
    s->queued_for_slot = false;
    s->close_client = false;
    s->forwarding = false;
    s->no_memory = false;
    s->host_shut = false;
    s->started_wall = w->setup.records == NULL ? 0 : clock_wall(w->setup.clock);
    s->head = NULL;
    s->head_size = 0;
    s->kept_request = s->kept_response = (struct kept_headers){.at = NULL};
    s->count_at = 0;
    s->own = NULL;
    s->out = (struct outbuf){.data = NULL};
    s->request.moved = 0;
    s->response.moved = 0;
    s->bytes_to_host = 0;
    alarm_init(&s->alarm, on_alarm);
    return s;
}

/* --- performing what the exchange decides --- */

static void send_now(struct stream *s)
{
    upstream_attach(s->up, s);
    s->bytes_to_host = 0;
    s->head_sent = 0;
    outbuf_rewind(&s->out);
    if (s->count_at != 0)
        forwarding_count_attempt(s);
    if (!s->corked)
        stream_send(s);
}

static void release(struct stream *s)
{
    struct upstream *up = s->up;

    s->up = NULL;
    if (up != NULL && up->stream == s)
        upstream_release(up);
}

/* The attempt is over: what is kept of the body is all to be written again. */
static struct upstream *part(struct stream *s)
{
    struct upstream *up = s->up;

    if (s->out.keep)
        outbuf_rewind(&s->out);
    s->up = NULL;
    return up != NULL && up->stream == s ? up : NULL;
}

static void abandon(struct stream *s)
{
    struct upstream *up;

    pool_leave(s);
    up = part(s);
    if (up != NULL)
        upstream_abandon(up);
}

static void discard(struct stream *s)
{
    struct upstream *up = s->up;

    upstream_discard(up);
    part(s);
}

static void check_delivered(struct stream *s)
{
    if (s->x.state != EXCHANGE_DELIVERING || !downstream_flushed(s->down))
        return;
    if (s->down->write_failed)
        stream_client_gone(s);
    else
        stream_event(s, &(struct exchange_event){.kind = EVENT_DELIVERED});
}

static void respond(struct stream *s, enum reason reason)
{
    struct bytes answer = forwarding_write_local(s, reason);

    if (reason == REASON_PROCESS_FULL)
        listener_count(s->down->listener, HTTP_rq_overload_refused, 1);
    s->response.moved = s->facts.method_id == METHOD_HEAD ? 0 : forwarding_local_size(s, reason);
    downstream_write(s->down, &answer, 1);
}

static enum downstream_after after(const struct stream *s)
{
    if (s->x.reason == REASON_CLIENT_GONE)
        return DOWNSTREAM_BREAKS_OFF;
    if (exchange_request_complete(&s->x) && !s->close_client && !s->x.tunnel && s->x.status != 0)
        return DOWNSTREAM_GOES_ON;
    return DOWNSTREAM_CLOSES;
}

static void finish(struct stream *s)
{
    recording_make(s);
    bury_later(s);
    downstream_next(s->down, after(s));
}

static void perform(struct stream *s, const struct action *a)
{
    struct cluster_pools *pools;

    switch (a->kind) {
    case ACTION_ATTEMPT:
    case ACTION_ATTEMPT_FRESH:
        pools = pools_of(s->x.cluster);
        pool_get(pools, a->host, s, a->kind == ACTION_ATTEMPT ? POOL_ANY : POOL_FRESH);
        return;
    case ACTION_SEND:
        send_now(s);
        return;
    case ACTION_RELEASE:
        release(s);
        return;
    case ACTION_ABANDON:
        abandon(s);
        return;
    case ACTION_DISCARD:
        discard(s);
        return;
    case ACTION_FORWARD:
        s->forwarding = true;
        replay_forget(s);
        return;
    case ACTION_RESPOND:
        respond(s, a->reason);
        return;
    case ACTION_CUT:
        downstream_cut(s->down);
        return;
    case ACTION_ACCUSE:
        pool_accuse(pools_of(s->x.cluster), a->host, a->triggers);
        return;
    case ACTION_FINISH:
        finish(s);
        return;
    }
}

void stream_event(struct stream *s, const struct exchange_event *event)
{
    struct actions out;

    exchange_step(&s->x, event, s->worker->now, &out);
    for (unsigned i = 0; i < out.count; i++)
        perform(s, &out.at[i]);
    if (stream_over(s))
        return;
    alarm_set(&s->alarm, &s->worker->wheel, exchange_wakeup(&s->x));
    check_delivered(s);
}

/* --- the upstream side --- */

bool stream_connected(struct stream *s, struct upstream *up)
{
    s->up = up;
    stream_event(s, &(struct exchange_event){.kind = EVENT_CONNECTED,
                                             .reused = up->requests > 0 || up->parked});
    return up->stream == s;
}

void stream_connect_failed(struct stream *s, enum attempt_fault fault)
{
    stream_event(s, &(struct exchange_event){.kind = EVENT_CONNECT_FAILED,
                                             .fault = fault,
                                             .replayable = replay_possible(s)});
}

bool stream_sent_whole(const struct stream *s)
{
    return exchange_request_complete(&s->x) && s->head_sent == s->head_len && outbuf_empty(&s->out);
}

static void count_sent(struct stream *s, size_t n)
{
    s->bytes_to_host += n;
    cluster_rt_count(s->x.cluster, CLUSTER_upstream_cx_tx_bytes_total, n);
    exchange_sent(&s->x, s->worker->now);
}

/* Of |taken| bytes, the head's share and the body's. */
static void advance(struct stream *s, size_t taken)
{
    size_t head = s->head_len - s->head_sent;

    if (head > taken)
        head = taken;
    s->head_sent += (uint32_t)head;
    s->out.begin += (uint32_t)(taken - head);
    if (outbuf_empty(&s->out) && !s->out.keep)
        replay_release(s);
    count_sent(s, taken);
}

/* The client has closed its half of a tunnel: so do we, once all it said is written. */
static void shut_host(struct stream *s)
{
    if (s->host_shut || s->up == NULL || s->head_sent < s->head_len || !outbuf_empty(&s->out))
        return;
    s->host_shut = true;
    link_shut(s->up->link);
}

void stream_send(struct stream *s)
{
    struct bytes parts[2];
    size_t n = 0;
    ptrdiff_t taken;

    if (s->up == NULL || s->up->write_failed)
        return;
    if (s->head_sent < s->head_len)
        parts[n++] = bytes_from(s->head + s->head_sent, s->head_len - s->head_sent);
    if (!outbuf_empty(&s->out))
        parts[n++] = bytes_from(s->out.data + s->out.begin, s->out.end - s->out.begin);
    if (n > 0) {
        taken = link_write(s->up->link, parts, n);
        if (taken < 0)
            upstream_write_failed(s->up);
        else
            advance(s, (size_t)taken);
    }
    if (s->x.tunnel && s->down->client_ended)
        shut_host(s);
    downstream_pace(s->down);
}

/* Can bytes of the body go straight to the host's link? */
static bool open_way(const struct stream *s)
{
    return s->up != NULL && s->up->stream == s && !s->corked && !s->out.keep &&
           s->head_sent == s->head_len && outbuf_empty(&s->out);
}

/* Nobody will read it any more: the host has stopped, or the answer is whole. */
static bool nobody_listens(const struct stream *s)
{
    return s->x.state == EXCHANGE_DELIVERING || s->x.state == EXCHANGE_DONE ||
           (s->up != NULL && s->up->write_failed);
}

static void hold(struct stream *s, const struct bytes *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!outbuf_append(&s->out, &s->worker->outbufs, parts[i]))
            s->no_memory = true;
}

static void to_host(void *to, const struct bytes *parts, size_t n)
{
    struct stream *s = to;
    ptrdiff_t taken = 0;

    if (nobody_listens(s))
        return;
    if (open_way(s)) {
        taken = link_write(s->up->link, parts, n);
        if (taken < 0) {
            upstream_write_failed(s->up);
            return;
        }
        count_sent(s, (size_t)taken);
    }
    for (size_t i = 0; i < n; i++) {
        size_t skip = (size_t)taken < parts[i].len ? (size_t)taken : parts[i].len;
        struct bytes rest = bytes_skip(parts[i], skip);

        taken -= (ptrdiff_t)skip;
        hold(s, &rest, 1);
    }
}

/* --- the downstream side --- */

/*
 * A request that waits for a connection is read on, up to a buffer: a small one is so whole before,
 * its clock runs, and its client is not told that it was slow.
 */
bool stream_has_room(const struct stream *s)
{
    if (outbuf_empty(&s->out) || s->x.state == EXCHANGE_DELIVERING)
        return true;
    return s->up == NULL && replay_has_room(s);
}

static bool is_named(const struct route *route, struct bytes method)
{
    const struct route_retry *retry = route == NULL ? NULL : route->retry;

    for (uint32_t i = 0; retry != NULL && i < retry->method_count; i++)
        if (bytes_equal(retry->methods[i], method))
            return true;
    return false;
}

/* What a trusted client says about retries and timeouts. False: no memory. */
static bool obey(struct stream *s, const struct message_head *head)
{
    struct retry_headers h;

    envoy_fields_read(head, &h);
    if (retry_headers_given(&h)) {
        s->own = memory_take(sizeof(*s->own) + h.names.len);
        s->worker->allocations++;
        if (s->own == NULL)
            return false;
        s->own->names_len = (uint32_t)h.names.len;
        if (h.names.len > 0)
            memcpy(s->own->names, h.names.data, h.names.len);
    }
    retry_headers_apply(&s->x, &h, s->own == NULL ? NULL : &s->own->policy);
    return true;
}

/* What the request is routed by must stay until nobody thinks of it any more. */
static void refer(struct stream *s, struct cluster_rt *cluster)
{
    s->adopted = s->worker->config;
    s->adopted->uses++;
    if (cluster != NULL)
        pools_of(cluster)->streams++;
}

/* Without memory it goes on to refer to its configuration. */
void stream_settle(struct stream *s)
{
    const struct route *from = s->x.route;
    struct route *own = memory_take(sizeof(*own) + from->name.len);

    if (own == NULL)
        return;
    *own = (struct route){
        .name = bytes_from(own + 1, from->name.len),
        .timeout = from->timeout,
        .per_try_timeout = from->per_try_timeout,
        .idle_timeout = from->idle_timeout,
        .large_body = from->large_body,
    };
    if (from->name.len > 0)
        memcpy(own + 1, from->name.data, from->name.len);
    exchange_settle(&s->x, own);
    s->own_route = own;
    s->worker->allocations++;
    s->adopted->uses--;
    s->adopted = NULL;
}

void stream_bury(struct stream *s)
{
    exchange_release(&s->x);
    if (s->adopted != NULL)
        s->adopted->uses--;
    else
        memory_give(s->own_route);
    if (s->x.cluster != NULL)
        pools_of(s->x.cluster)->streams--;
    slab_give(&s->worker->streams, s);
}

/* As detection tells requests apart, where the route gives it no name. */
static uint8_t class_of(const struct message_head *head, const struct route *route)
{
    if (route != NULL && route->class != CLASS_BY_REQUEST)
        return route->class;
    if (route != NULL && head->body == BODY_LENGTH && head->length >= route->large_body)
        return CLASS_LARGE;
    return method_reads(head->method_id) ? CLASS_READ : CLASS_WRITE;
}

bool stream_begin(struct downstream *down, struct bytes path, const struct route *route, bool more)
{
    struct worker *w = down->worker;
    const struct message_head *head = &w->head;
    struct stream *s = make(down);
    struct exchange_setup setup = {
        .route = route,
        .process = w->setup.process,
        .body_timeout = down->listener->config->body_timeout,
        .idle_timeout = down->listener->config->idle_timeout,
        .idempotent = method_idempotent(head->method_id),
        .named = is_named(route, head->method),
    };

    if (s == NULL)
        return false;
    if (route != NULL && route->cluster < w->cluster_count)
        setup.cluster = &w->clusters[route->cluster]->rt;
    setup.class = class_of(head, route);
    refer(s, setup.cluster);
    exchange_init(&s->x, &setup, w->now);
    if ((down->listener->config->trust_retry_headers && !obey(s, head)) ||
        !forwarding_write_request(s, path)) {
        memory_give(s->own);
        slab_give(&w->streams, s);
        return false;
    }
    http1_body_init(&s->request.body, head, down->listener->config->limits.head_bytes);
    s->request.framing = head->body == BODY_CHUNKED ? RELAY_CHUNKED : RELAY_PLAIN;
    replay_begin(s);
    s->corked = more && !http1_body_done(&s->request.body);
    down->stream = s;
    if (http1_body_done(&s->request.body))
        stream_event(s, &(struct exchange_event){.kind = EVENT_REQUEST_COMPLETE});
    stream_event(s, &(struct exchange_event){.kind = EVENT_BEGIN});
    return true;
}

static void uncork(struct stream *s)
{
    s->corked = false;
    if (s->up != NULL && s->up->stream == s)
        stream_send(s);
}

static void too_large(struct stream *s)
{
    listener_count(s->down->listener, HTTP_downstream_rq_too_large, 1);
    stream_refuse(s, REASON_TOO_LARGE);
}

static void receive_tunnel(struct stream *s, struct bytes *in)
{
    s->request.moved += in->len;
    to_host(s, in, 1);
    *in = BYTES_NONE;
    if (s->no_memory)
        stream_refuse(s, REASON_OUT_OF_MEMORY);
    else if (s->down->client_ended)
        shut_host(s);
    downstream_pace(s->down);
}

static void receive_body(struct stream *s, struct bytes *in)
{
    struct http1_fault fault;
    struct gather g;
    enum relay_result result;

    gather_init(&g, to_host, s);
    result = relay_feed(&s->request, in, &g, &fault);
    gather_flush(&g);
    exchange_touch(&s->x, s->worker->now);
    if (result == RELAY_BAD) {
        listener_count(s->down->listener, HTTP_downstream_cx_protocol_error, 1);
        stream_refuse(s, fault.status == 413 ? REASON_TOO_LARGE : REASON_BAD_REQUEST);
        return;
    }
    if (s->request.moved > s->down->listener->config->limits.body_bytes) {
        too_large(s);
        return;
    }
    if (s->no_memory) {
        stream_refuse(s, REASON_OUT_OF_MEMORY);
        return;
    }
    replay_check(s);
    if (s->x.state == EXCHANGE_WAITING && !s->out.keep &&
        cluster_rt_refuses_full_buffer(s->x.cluster)) {
        stream_refuse(s, REASON_REPLAY_FULL);
        return;
    }
    if (result == RELAY_DONE)
        stream_event(s, &(struct exchange_event){.kind = EVENT_REQUEST_COMPLETE});
    if (!stream_over(s))
        uncork(s);
}

void stream_receive(struct stream *s, struct bytes *in)
{
    if (s->x.tunnel)
        receive_tunnel(s, in);
    else if (!http1_body_done(&s->request.body))
        receive_body(s, in);
}

void stream_delivered(struct stream *s)
{
    exchange_touch(&s->x, s->worker->now);
    if (s->up != NULL)
        upstream_pace(s->up);
    check_delivered(s);
}

bool stream_client_ended(struct stream *s)
{
    if (s->x.tunnel) {
        shut_host(s);
        return true;
    }
    /* Who has said "close" may close its half and wait; who has not would want to ask again. */
    if (exchange_request_complete(&s->x) &&
        (!s->facts.keep_alive || s->x.state == EXCHANGE_DELIVERING))
        return true;
    stream_client_gone(s);
    return false;
}

void stream_client_gone(struct stream *s)
{
    s->close_client = true;
    stream_event(s, &(struct exchange_event){.kind = EVENT_CLIENT_GONE});
}

void stream_refuse(struct stream *s, enum reason reason)
{
    stream_event(s, &(struct exchange_event){.kind = EVENT_REFUSED, .reason = reason});
}

void stream_host_ended(struct stream *s)
{
    s->close_client = true;
    stream_event(s, &(struct exchange_event){.kind = EVENT_UPSTREAM_COMPLETE});
}
