/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/recording.h"

#include "exchange/exchange.h"
#include "proxy/downstream.h"

/* The counter of a status' class, beside |first|, that of 1xx. */
static unsigned class_of(uint32_t status)
{
    return status < 100 || status > 599 ? 4 : status / 100 - 1;
}

static void count_answer(struct listener_rt *l, uint32_t status)
{
    if (status == 0)
        return;
    listener_count(l, (enum http_metric)(HTTP_downstream_rq_1xx + class_of(status)), 1);
    listener_count(l, HTTP_downstream_rq_completed, 1);
}

/* What the client or the proxy breaks off is a stream reset to Envoy, by both of them. */
static void count_resets(struct listener_rt *l, const struct exchange *x)
{
    bool early = x->status != 0 && !exchange_request_complete(x);

    if (x->flags == FLAG_NONE && !early)
        return;
    if (early)
        listener_count(l, HTTP_downstream_rq_response_before_rq_complete, 1);
    if (early || x->cut || x->reason == REASON_CLIENT_GONE)
        listener_count(l, HTTP_downstream_rq_rx_reset, 1);
    if (x->cut)
        listener_count(l, HTTP_downstream_rq_tx_reset, 1);
    if (x->flags & FLAG_SI)
        listener_count(l, HTTP_downstream_rq_idle_timeout, 1);
}

static void count_downstream(struct stream *s)
{
    struct listener_rt *l = s->down->listener;
    const struct exchange *x = &s->x;

    listener_uncount(l, HTTP_downstream_rq_active);
    count_answer(l, x->status);
    histogram_record(&l->cells->rq_time, mono_since(x->started_at, s->worker->now) / NS_PER_US);
    if (x->reason == REASON_NO_ROUTE)
        listener_count(l, HTTP_no_route, 1);
    else if (x->reason == REASON_NO_CLUSTER)
        listener_count(l, HTTP_no_cluster, 1);
    else
        listener_count(l, HTTP_rq_total, 1);
    if (x->reason == REASON_BODY_TIMEOUT)
        listener_count(l, HTTP_downstream_rq_timeout, 1);
    count_resets(l, x);
}

/* Is the status one that no host and no rule of the cluster led to? */
static bool said_by_listener(const struct exchange *x)
{
    return x->head_at == MONO_NEVER &&
           (x->reason == REASON_STREAM_IDLE || x->reason == REASON_STREAM_IDLE_REQUEST ||
            x->reason == REASON_BODY_TIMEOUT);
}

static void count_upstream(struct stream *s)
{
    const struct exchange *x = &s->x;
    mono_ns from = exchange_request_complete(x) ? x->complete_at : x->started_at;

    if (x->cluster == NULL || x->status == 0 || said_by_listener(x))
        return;
    cluster_rt_count(x->cluster, CLUSTER_upstream_rq_completed, 1);
    cluster_rt_count(x->cluster,
                     (enum cluster_metric)(CLUSTER_upstream_rq_1xx + class_of(x->status)), 1);
    status_cells_add(&x->cluster->cells->statuses, x->status);
    if (x->head_at != MONO_NEVER)
        histogram_record(&x->cluster->cells->rq_time, mono_since(from, s->worker->now) / NS_PER_US);
}

static struct bytes endpoint_text(const struct exchange *x, uint32_t host)
{
    return cluster_rt_host(x->cluster, host)->text;
}

static void fill_attempts(struct request_record *r, const struct exchange *x)
{
    uint32_t first =
        x->attempt_count > RECORD_ATTEMPTS_MAX ? x->attempt_count - RECORD_ATTEMPTS_MAX : 0;

    r->attempt_count = x->attempt_count - first;
    for (uint32_t i = first; i < x->attempt_count; i++) {
        const struct attempt *a = &x->attempts[i % RECORD_ATTEMPTS_MAX];
        bool connected = a->connected_at != MONO_NEVER;
        struct record_attempt *out = &r->attempts[i - first];

        *out = (struct record_attempt){
            .endpoint = endpoint_text(x, a->host),
            .outcome = attempt_outcome_text(a->outcome),
            .status = a->status,
            .flags = a->flags,
            .backoff = a->backoff,
            .queue_time = mono_since(a->picked_at, connected ? a->connected_at : a->ended_at),
            .service_time = connected ? mono_since(a->connected_at, a->ended_at) : 0,
        };
        r->queue_time += out->queue_time;
        r->service_time += out->service_time;
        r->upstream_host = out->endpoint;
    }
}

static span_ns since_start(const struct exchange *x, mono_ns at)
{
    return at == MONO_NEVER ? MONO_NEVER : mono_since(x->started_at, at);
}

/* Why there was no connection; NULL: there was. */
static const char *transport_failure(enum reason reason)
{
    if (reason == REASON_CONNECT_REFUSED)
        return "delayed_connect_error: Connection refused";
    if (reason == REASON_CONNECT_UNREACHABLE)
        return "delayed_connect_error: No route to host";
    if (reason == REASON_CONNECT_FAILED)
        return "connect broken off by the host or the network";
    if (reason == REASON_CONNECT_TIMEOUT)
        return "connect timeout";
    return reason == REASON_CONNECT_LOCAL ? "no descriptors, memory or local ports" : NULL;
}

static void fill(struct request_record *r, const struct stream *s)
{
    const struct exchange *x = &s->x;

    *r = (struct request_record){
        .started = s->started_wall,
        .method = s->facts.method,
        .path = s->facts.path,
        .authority = s->facts.authority,
        .request_id = s->facts.request_id,
        .user_agent = s->facts.user_agent,
        .forwarded_for = s->facts.forwarded_for,
        .protocol = s->facts.minor == 0 ? "HTTP/1.0" : "HTTP/1.1",
        .status = x->status,
        .flags = x->flags,
        .details = reasons[x->reason].details,
        .transport_failure = transport_failure(x->reason),
        .trusts_forwarded_for = true,
        .bytes_received = s->request.moved,
        .bytes_sent = s->response.moved,
        .duration = mono_since(x->started_at, s->worker->now),
        .from_upstream = x->head_at != MONO_NEVER,
        .downstream_remote = s->down->peer,
        .downstream_local = s->down->listener->local,
    };
    r->request_duration = since_start(x, x->complete_at);
    r->response_duration = since_start(x, x->head_at);
    r->request_headers = s->kept_request.at;
    r->request_header_count = s->kept_request.count;
    r->response_headers = s->kept_response.at;
    r->response_header_count = s->kept_response.count;
    if (r->from_upstream && exchange_request_complete(x))
        r->upstream_service_time = mono_since(x->complete_at, x->head_at);
    if (x->route != NULL)
        r->route = x->route->name;
    if (x->cluster != NULL)
        r->cluster = x->cluster->config->name;
}

static void count_flags(struct stream *s)
{
    const struct exchange *x = &s->x;

    if (x->flags == FLAG_NONE)
        return;
    flag_cells_add(&s->down->listener->cells->flags, x->flags);
    if (x->cluster != NULL)
        flag_cells_add(&x->cluster->cells->flags, x->flags);
}

void recording_make(struct stream *s)
{
    struct worker *w = s->worker;
    struct request_record r;

    count_downstream(s);
    count_upstream(s);
    count_flags(s);
    if (w->setup.records == NULL)
        return;
    fill(&r, s);
    fill_attempts(&r, &s->x);
    if (!record_put(w->setup.records, &r))
        worker_count(w, WORKER_records_dropped, 1);
}

static void put_reject(struct downstream *d, struct request_record *r)
{
    struct worker *w = d->worker;

    count_answer(d->listener, r->status);
    flag_cells_add(&d->listener->cells->flags, r->flags);
    if (w->setup.records == NULL)
        return;
    r->started = clock_wall(w->setup.clock);
    r->request_duration = r->response_duration = MONO_NEVER;
    r->duration = mono_since(d->head_since, w->now);
    r->downstream_remote = d->peer;
    r->downstream_local = d->listener->local;
    if (!record_put(w->setup.records, r))
        worker_count(w, WORKER_records_dropped, 1);
}

void recording_make_reject(struct downstream *d, uint32_t status, uint32_t flags,
                           const char *details)
{
    struct request_record r = {
        .status = status, .flags = flags, .details = details, .protocol = "HTTP/1.1"};

    put_reject(d, &r);
}

void recording_make_refusal(struct downstream *d, enum reason reason)
{
    const struct message_head *head = &d->worker->head;
    const struct access_format *format = d->worker->setup.log_format;
    struct kept_headers kept = {.at = NULL};
    struct request_record r = {
        .status = reasons[reason].status,
        .flags = reasons[reason].flag,
        .details = reasons[reason].details,
        .protocol = head->minor == 0 ? "HTTP/1.0" : "HTTP/1.1",
        .method = head->method,
        .path = head->absolute_form ? head->path : head->target,
        .authority = head->authority,
        .request_id = message_value(head, FIELD_X_REQUEST_ID),
        .user_agent = message_value(head, FIELD_USER_AGENT),
        .forwarded_for = message_value(head, FIELD_X_FORWARDED_FOR),
    };

    if (format != NULL)
        kept_take(&kept, &format->request, head);
    r.request_headers = kept.at;
    r.request_header_count = kept.count;
    put_reject(d, &r);
    kept_release(&kept);
}
