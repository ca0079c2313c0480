/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/upstream.h"

#include <assert.h>

#include "codec/orca.h"
#include "exchange/lifetime.h"
#include "io/error.h"
#include "proxy/downstream.h"
#include "proxy/envoy_fields.h"
#include "proxy/forwarding.h"
#include "proxy/pool.h"
#include "proxy/replay.h"
#include "proxy/stream.h"

/* Of an answer's head, with its fields. Fixed: what a host sends is not the operator's to choose.
 */
static const struct http1_limits answer_limits = {.head_bytes = 60 * 1024,
                                                  .fields = MESSAGE_FIELDS_MAX};

static struct cluster_rt *cluster_of(struct upstream *up)
{
    return &up->pool->cluster->rt;
}

/* --- life --- */

static void bury_later(struct upstream *up)
{
    up->state = UPSTREAM_DEAD;
    alarm_cancel(&up->alarm, &up->pool->cluster->worker->wheel);
    list_remove(&up->all);
    list_push_back(&up->pool->cluster->worker->dead_upstreams, &up->all);
}

/* It has had as many requests as it may. */
static bool worn_out(const struct upstream *up)
{
    uint32_t most = up->pool->cluster->rt.config->limits.max_requests_per_connection;

    return most != 0 && up->requests >= most;
}

/* The link is gone; the slot falls free. */
static void end(struct upstream *up)
{
    struct pool *pool = up->pool;

    if (worn_out(up))
        cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_max_requests, 1);
    bury_later(up);
    pool_closed(pool);
}

void upstream_close(struct upstream *up)
{
    cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_destroy_local, 1);
    link_close(up->link);
    end(up);
}

static void close_by_host(struct upstream *up)
{
    cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_destroy_remote, 1);
    link_close(up->link);
    end(up);
}

void upstream_bury(struct upstream *up)
{
    struct worker *w = up->pool->cluster->worker;

    list_remove(&up->all);
    up->pool->cluster->connections--;
    inbuf_release(&up->in);
    slab_give(&w->upstreams, up);
}

/* Off the idle list, where it was not asked for by anybody. */
static void leave_idle(struct upstream *up)
{
    list_remove(&up->in_pool);
    up->pool->cluster->idle_count--;
}

/* --- connecting --- */

static void connect_failed(struct upstream *up, enum attempt_fault fault)
{
    struct pool *pool = up->pool;
    struct cluster_rt *rt = &pool->cluster->rt;

    cluster_rt_count(rt, CLUSTER_upstream_cx_connect_fail, 1);
    endpoint_rt_count(rt, pool->host, ENDPOINT_cx_connect_fail);
    pool->connecting--;
    if (fault == FAULT_CONNECT_TIMEOUT || fault == FAULT_LOCAL)
        upstream_close(up);
    else
        close_by_host(up);
    pool_connect_failed(pool, fault);
}

static void on_alarm(struct timer *t, mono_ns now)
{
    struct upstream *up = CONTAINER_OF(t, struct upstream, alarm.timer);

    if (!alarm_is_due(&up->alarm, &up->pool->cluster->worker->wheel, now))
        return;
    if (up->state == UPSTREAM_CONNECTING) {
        cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_connect_timeout, 1);
        connect_failed(up, FAULT_CONNECT_TIMEOUT);
    } else if (up->state == UPSTREAM_IDLE) {
        cluster_rt_count(cluster_of(up),
                         now >= up->retire_at ? CLUSTER_upstream_cx_max_duration_reached
                                              : CLUSTER_upstream_cx_idle_timeout,
                         1);
        leave_idle(up);
        upstream_close(up);
    }
}

/* Its age counts from the moment it is up. */
static mono_ns retire_at(struct upstream *up)
{
    const struct cluster *c = cluster_of(up)->config;
    struct worker *w = up->pool->cluster->worker;
    mono_ns at = lifetime_end(w->now, c->max_connection_age, &w->rng);

    if (c->max_connection_duration != 0)
        at = mono_min(at, mono_after(w->now, c->max_connection_duration));
    return at;
}

static void on_opened(void *owner)
{
    struct upstream *up = owner;
    struct worker *w = up->pool->cluster->worker;

    up->pool->connecting--;
    up->retire_at = retire_at(up);
    histogram_record(&cluster_of(up)->cells->connect_ms,
                     mono_since(up->connect_at, w->now) / NS_PER_US);
    alarm_set(&up->alarm, &w->wheel, MONO_NEVER);
    up->state = UPSTREAM_IDLE;
    up->reading = true;
    link_read_start(up->link);
    pool_ready(up->pool, up);
}

static const struct link_events upstream_events;

static void make(struct upstream *up, struct pool *pool, struct link *link)
{
    struct worker *w = pool->cluster->worker;

    *up = (struct upstream){
        .link = link, .pool = pool, .state = UPSTREAM_CONNECTING, .connect_at = w->now};
    list_push_back(&w->upstream_links, &up->all);
    pool->cluster->connections++;
    list_init(&up->in_pool);
    alarm_init(&up->alarm, on_alarm);
    alarm_set(&up->alarm, &w->wheel, mono_after(w->now, pool->cluster->rt.config->connect_timeout));
    link_own(link, &upstream_events, up);
}

enum attempt_fault upstream_connect(struct pool *pool)
{
    const struct cluster *c = pool->cluster->rt.config;
    struct worker *w = pool->cluster->worker;
    const struct connect_options options = {
        .keepalive = c->keepalive,
        .keepalive_idle_s = c->keepalive_idle_s,
        .keepalive_interval_s = c->keepalive_interval_s,
        .keepalive_probes = c->keepalive_probes,
    };
    struct upstream *up = slab_take(&w->upstreams);
    struct link *link;

    if (up == NULL)
        return FAULT_LOCAL;
    if (poller_connect(w->setup.poller, &cluster_rt_host(&pool->cluster->rt, pool->host)->address,
                       &options, &link) != IO_OK) {
        slab_give(&w->upstreams, up);
        return FAULT_LOCAL;
    }
    make(up, pool, link);
    return FAULT_NONE;
}

/* --- in use --- */

void upstream_attach(struct upstream *up, struct stream *s)
{
    assert(up->state == UPSTREAM_IDLE);
    up->state = UPSTREAM_BUSY;
    up->stream = s;
    up->head_done = false;
    up->answer_seen = false;
    up->held_up = false;
    up->reusable = false;
    up->scan = (struct http1_scan){.seen = 0};
    up->requests++;
    alarm_set(&up->alarm, &up->pool->cluster->worker->wheel, MONO_NEVER);
}

void upstream_pace(struct upstream *up)
{
    bool wanted =
        up->state != UPSTREAM_BUSY || up->write_failed || downstream_flushed(up->stream->down);

    if (wanted == up->reading || up->ended)
        return;
    up->reading = wanted;
    if (wanted) {
        cluster_rt_count(cluster_of(up), CLUSTER_upstream_flow_control_resumed_reading_total, 1);
        link_read_start(up->link);
    } else {
        cluster_rt_count(cluster_of(up), CLUSTER_upstream_flow_control_paused_reading_total, 1);
        link_read_stop(up->link);
        up->held_up = true;
    }
}

void upstream_write_failed(struct upstream *up)
{
    up->write_failed = true;
    upstream_pace(up);
}

/* |retire_at| of one that carries no more requests: its host was ejected. */
#define DRAINED ((mono_ns)0)

void upstream_drain(struct upstream *up)
{
    if (up->state == UPSTREAM_BUSY)
        up->retire_at = DRAINED;
}

static bool clean(struct upstream *up)
{
    if (!up->reusable || up->ended || up->write_failed || worn_out(up))
        return false;
    if (up->pool->cluster->worker->now < up->retire_at)
        return true;
    if (up->retire_at != DRAINED)
        cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_max_duration_reached, 1);
    return false;
}

static void count_broken(struct upstream *up, enum cluster_metric side)
{
    cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_destroy_with_active_rq, 1);
    cluster_rt_count(cluster_of(up), side, 1);
}

#define LOOK_EVERY (200 * NS_PER_MS) /* TCP_RTO_MIN: Linux sends again after that, or later */

/*
 * What the path to the host is like, at a request's end: so often a connection, and so at once
 * where a segment of the request was lost.
 */
static void look_at_path(struct upstream *up)
{
    struct host_path *path = &up->pool->cluster->rt.hosts.at[up->pool->host]->path;
    mono_ns now = up->pool->cluster->worker->now;
    struct link_info info;

    if (now < up->look_at)
        return;
    up->look_at = mono_after(now, LOOK_EVERY);
    link_info(up->link, &info);
    if (!info.known)
        return;
    atomic_fetch_add_explicit(&path->requests, up->requests - up->looked_requests,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&path->retransmits, info.retransmits - up->looked_resent,
                              memory_order_relaxed);
    atomic_store_explicit(&path->rtt, (uint32_t)(info.rtt / NS_PER_US), memory_order_relaxed);
    up->looked_requests = up->requests;
    up->looked_resent = info.retransmits;
}

void upstream_release(struct upstream *up)
{
    bool sent = stream_sent_whole(up->stream);
    bool good = clean(up) && sent;
    struct pool *pool = up->pool;

    up->stream = NULL;
    look_at_path(up);
    if (up->ended) {
        close_by_host(up);
        return;
    }
    if (!sent)
        count_broken(up, CLUSTER_upstream_cx_destroy_local_with_active_rq);
    if (!good) {
        bool served_its_time = sent && up->reusable && !up->write_failed;

        upstream_close(up);
        if (served_its_time)
            pool_wish_again(pool);
        return;
    }
    up->state = UPSTREAM_IDLE;
    upstream_pace(up);
    pool_ready(pool, up);
}

/* Nothing but a FIN says where the bytes of a tunnel end: one that is cut must not have it. */
static void reset(struct upstream *up)
{
    cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_destroy_local, 1);
    link_abort(up->link);
    end(up);
}

void upstream_abandon(struct upstream *up)
{
    bool tunnel = up->stream->x.tunnel;

    up->stream = NULL;
    look_at_path(up);
    if (up->ended) {
        count_broken(up, CLUSTER_upstream_cx_destroy_remote_with_active_rq);
        close_by_host(up);
    } else if (tunnel) {
        count_broken(up, CLUSTER_upstream_cx_destroy_local_with_active_rq);
        reset(up);
    } else {
        count_broken(up, CLUSTER_upstream_cx_destroy_local_with_active_rq);
        upstream_close(up);
    }
}

void upstream_discard(struct upstream *up)
{
    up->sent_whole = stream_sent_whole(up->stream);
    up->reusable = up->reusable && up->sent_whole;
    up->stream = NULL;
    up->discarding = true;
}

/* --- the answer --- */

static void broken(struct upstream *up, enum attempt_fault fault)
{
    struct stream *s = up->stream;

    stream_event(s, &(struct exchange_event){
                        .kind = EVENT_BROKEN,
                        .fault = fault,
                        .untouched = !up->answer_seen,
                        .replayable = replay_possible(s),
                    });
}

static void to_client(void *to, const struct bytes *parts, size_t n)
{
    downstream_write(to, parts, n);
}

static bool is_interim(const struct message_head *head)
{
    return head->status < 200 && head->status != 101;
}

/* Bytes nobody asked for: the next answer could not be trusted. */
static void received_more(struct upstream *up)
{
    up->reusable = false;
    cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_protocol_error, 1);
}

/* Has |*in| all of the body that nobody wants? What follows it is left. */
static bool read_out(struct http1_body *body, struct bytes *in)
{
    while (!http1_body_done(body)) {
        struct bytes data, trailers;
        struct http1_fault fault;

        if (http1_body_read(body, in, &data, &trailers, &fault) != HTTP1_OK)
            break;
    }
    return http1_body_done(body);
}

static void finish_discarding(struct upstream *up, struct http1_body *body, struct bytes *in)
{
    bool keep = http1_body_done(body) || cluster_rt_keeps_thrown_away(cluster_of(up));
    bool whole = keep && read_out(body, in);

    up->discarding = false;
    if (whole && in->len > 0)
        received_more(up);
    if (!whole || !up->sent_whole)
        count_broken(up, CLUSTER_upstream_cx_destroy_local_with_active_rq);
    if (!whole || !clean(up)) {
        upstream_close(up);
        return;
    }
    up->state = UPSTREAM_IDLE;
    upstream_pace(up);
    pool_ready(up->pool, up);
}

static bool has_any(const struct message_head *head, const struct bytes *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (envoy_field_value(head, names[i]).data != NULL)
            return true;
    return false;
}

/* Has the answer one of the headers that make it one to be retried? */
static bool is_marked(const struct stream *s, const struct message_head *head)
{
    const struct route_retry *retry = s->x.route->retry;
    struct bytes list = s->own == NULL ? BYTES_NONE : bytes_from(s->own->names, s->own->names_len);
    struct bytes name;

    if (retry != NULL && has_any(head, retry->headers, retry->header_count))
        return true;
    while (retry_headers_next(&list, &name))
        if (has_any(head, &name, 1))
            return true;
    return false;
}

/* What a head says for the question whether the route retries it. */
static void weigh(const struct stream *s, const struct message_head *head, struct exchange_event *e)
{
    e->marked = is_marked(s, head);
    e->rate_limited = envoy_field_value(head, BYTES("x-envoy-ratelimited")).data != NULL;
}

/* What the host says of its load; NULL: nothing. */
static const struct load_report *load_of(const struct message_head *head, struct load_report *room)
{
    struct bytes any = message_value(head, FIELD_ENDPOINT_LOAD_METRICS);
    struct bytes binary = message_value(head, FIELD_ENDPOINT_LOAD_METRICS_BIN);

    if (any.len > 0 && orca_read(any, room))
        return room;
    return binary.len > 0 && orca_read_binary(binary, room) ? room : NULL;
}

/* The final head, or a 101: into |g|, by way of the exchange. False: that was the end of it. */
static bool take_final(struct upstream *up, struct message_head *head, struct bytes *in,
                       struct gather *g)
{
    struct stream *s = up->stream;
    struct load_report room;
    struct exchange_event e = {.kind = EVENT_HEAD,
                               .status = head->status,
                               .replayable = replay_possible(s),
                               .load = load_of(head, &room)};

    if (s->x.retry != NULL)
        weigh(s, head, &e);
    if (head->status == 101) {
        if (!s->facts.websocket || !head->websocket) {
            broken(up, FAULT_PROTOCOL);
            return false;
        }
        e.kind = EVENT_TUNNEL;
    }
    up->head_done = true;
    up->reusable = forwarding_answer_reusable(head);
    up->close_notified = !head->keep_alive;
    http1_body_init(&s->response.body, head, answer_limits.head_bytes);
    stream_event(s, &e);
    if (up->discarding)
        finish_discarding(up, &s->response.body, in);
    if (s->up != up)
        return false;
    gather_add(g, forwarding_write_answer(s, head));
    if (s->x.tunnel) {
        stream_settle(s);
        downstream_tunnel(s->down);
    }
    return s->up == up;
}

/* One head off |*in|, if it is whole. False: nothing more can be done with |*in| now. */
static bool take_head(struct upstream *up, struct bytes *in, struct gather *g)
{
    struct stream *s = up->stream;
    struct message_head *head = &s->worker->head;
    struct http1_fault fault;
    size_t used;
    enum http1_result result = http1_parse_response(*in, &up->scan, &answer_limits,
                                                    s->facts.method_id, head, &used, &fault);

    if (result == HTTP1_BAD)
        broken(up, FAULT_PROTOCOL);
    if (result != HTTP1_OK)
        return false;
    *in = bytes_skip(*in, used);
    up->scan = (struct http1_scan){.seen = 0};
    if (!is_interim(head))
        return take_final(up, head, in, g);
    cluster_rt_count(cluster_of(up), CLUSTER_upstream_rq_1xx, 1);
    gather_add(g, forwarding_write_interim(s, head));
    gather_flush(g); /* the next head is written to the same scratch */
    exchange_interim(&s->x);
    up->answer_seen = in->len > 0;
    return true;
}

static void complete(struct upstream *up)
{
    if (up->close_notified && !up->ended)
        cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_close_notify, 1);
    stream_event(up->stream, &(struct exchange_event){.kind = EVENT_UPSTREAM_COMPLETE,
                                                      .bytes = up->stream->response.moved,
                                                      .held_up = up->held_up});
}

static void take_body(struct upstream *up, struct bytes *in, struct gather *g)
{
    struct stream *s = up->stream;
    struct http1_fault fault;
    enum relay_result result;

    if (s->x.tunnel) {
        gather_add(g, *in);
        s->response.moved += in->len;
        *in = BYTES_NONE;
        gather_flush(g);
        return;
    }
    result = relay_feed(&s->response, in, g, &fault);
    gather_flush(g);
    if (result == RELAY_BAD)
        broken(up, FAULT_PROTOCOL);
    if (result == RELAY_DONE && in->len > 0)
        received_more(up);
    if (result == RELAY_DONE)
        complete(up);
}

/* All that |*in| gives. On return |up| may have been given away. */
static void take_answer(struct upstream *up, struct bytes *in)
{
    struct stream *s = up->stream;
    struct gather g;

    gather_init(&g, to_client, s->down);
    while (!up->head_done)
        if (!take_head(up, in, &g))
            return;
    take_body(up, in, &g);
}

/* The bytes held from before with |data| behind them; |held| takes them over. False: no memory. */
static bool join(struct upstream *up, struct bytes data, struct inbuf *held, struct bytes *in)
{
    *held = up->in;
    up->in = (struct inbuf){.data = NULL};
    *in = data;
    if (held->len == 0)
        return true;
    if (!inbuf_append(held, data, &up->pool->cluster->worker->allocations))
        return false;
    *in = inbuf_bytes(held);
    return true;
}

/* |rest| is to come again, with more behind it. */
static bool keep_rest(struct upstream *up, struct inbuf *held, struct bytes rest)
{
    if (held->len == 0)
        return inbuf_append(&up->in, rest, &up->pool->cluster->worker->allocations);
    inbuf_keep(held, rest);
    up->in = *held;
    *held = (struct inbuf){.data = NULL};
    return true;
}

static void received_unasked(struct upstream *up)
{
    leave_idle(up);
    cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_protocol_error, 1);
    upstream_close(up);
}

static void on_received(void *owner, struct bytes data)
{
    struct upstream *up = owner;
    struct stream *s = up->stream;
    struct inbuf held;
    struct bytes in;

    cluster_rt_count(cluster_of(up), CLUSTER_upstream_cx_rx_bytes_total, data.len);
    if (up->state == UPSTREAM_IDLE) {
        received_unasked(up);
        return;
    }
    up->answer_seen = true;
    exchange_touch(&s->x, s->worker->now);
    if (join(up, data, &held, &in))
        take_answer(up, &in);
    else
        stream_refuse(s, REASON_OUT_OF_MEMORY); /* ours: nothing against the host */
    if (up->state == UPSTREAM_BUSY && up->stream == s) {
        if (keep_rest(up, &held, in))
            upstream_pace(up);
        else
            stream_refuse(s, REASON_OUT_OF_MEMORY);
    }
    inbuf_release(&held);
}

/* --- the end of a connection --- */

static void ended_under_answer(struct upstream *up)
{
    struct stream *s = up->stream;
    struct gather g;
    enum relay_result result;

    gather_init(&g, to_client, s->down);
    result = relay_end(&s->response, &g);
    if (result == RELAY_DONE) {
        gather_flush(&g);
        complete(up);
    } else {
        broken(up, FAULT_RESET);
    }
}

static void on_ended(void *owner)
{
    struct upstream *up = owner;

    up->ended = true;
    if (up->state == UPSTREAM_IDLE) {
        leave_idle(up);
        close_by_host(up);
    } else if (up->stream->x.tunnel) {
        stream_host_ended(up->stream);
    } else if (up->head_done) {
        ended_under_answer(up);
    } else {
        broken(up, FAULT_RESET);
    }
}

static enum attempt_fault connect_fault(int error)
{
    if (error == IO_NO_DESCRIPTORS || error == IO_NO_MEMORY || error == IO_NO_PORTS)
        return FAULT_LOCAL;
    if (error == IO_REFUSED)
        return FAULT_REFUSED;
    return error == IO_UNREACHABLE ? FAULT_UNREACHABLE : FAULT_UNCONNECTED;
}

static void on_failed(void *owner, int error)
{
    struct upstream *up = owner;

    switch (up->state) {
    case UPSTREAM_CONNECTING:
        connect_failed(up, connect_fault(error));
        return;
    case UPSTREAM_IDLE:
        leave_idle(up);
        close_by_host(up);
        return;
    case UPSTREAM_BUSY:
        up->ended = true;
        broken(up, FAULT_RESET);
        return;
    case UPSTREAM_DEAD:
        return;
    }
}

static void on_writable(void *owner)
{
    struct upstream *up = owner;

    if (up->state == UPSTREAM_BUSY)
        stream_send(up->stream);
}

static const struct link_events upstream_events = {
    .opened = on_opened,
    .received = on_received,
    .ended = on_ended,
    .writable = on_writable,
    .failed = on_failed,
};
