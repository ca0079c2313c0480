/* SPDX-License-Identifier: Apache-2.0 */
/* /clusters: each cluster and host, as text or JSON (reference/envoy-semantics.md 7.5). */
#include "admin/pages.h"
#include "admin/work.h"
#include "base/list.h"
#include "base/memory.h"
#include "model/flags.h"

#define RATE_DECIMALS 9

#define LINE_ROOM 512

/* Where the page is: at a host, or before the first one. */
struct clusters_page {
    struct admin_work work;
    struct filter filter;
    enum page_format format;
    struct json json;
    bool begun;
    bool in_cluster; /* what comes before the hosts of |cluster| is written */
    uint32_t cluster;
    uint32_t host;
};

/* A line begins with the cluster and perhaps the host. */
struct prefix {
    struct page *page;
    struct bytes cluster;
    struct bytes host; /* empty: none */
};

static void put_prefix(const struct prefix *at, const char *key)
{
    struct text *t = &at->page->text;

    page_room(at->page, at->cluster.len + at->host.len + LINE_ROOM);
    text_put(t, at->cluster);
    text_str(t, "::");
    if (at->host.len > 0) {
        text_put(t, at->host);
        text_str(t, "::");
    }
    text_str(t, key);
    text_str(t, "::");
}

static void line_text(const struct prefix *at, const char *key, struct bytes value)
{
    put_prefix(at, key);
    page_put(at->page, value);
    page_str(at->page, "\n");
}

static void line_number(const struct prefix *at, const char *key, uint64_t value)
{
    put_prefix(at, key);
    text_u64(&at->page->text, value);
    text_char(&at->page->text, '\n');
}

static double rate_of(const _Atomic double *rate)
{
    return atomic_load_explicit(rate, memory_order_relaxed);
}

/* In percent, as many digits as it needs; a whole number has none. */
static void line_rate(const struct prefix *at, const char *key, const _Atomic double *rate)
{
    struct text *t = &at->page->text;

    put_prefix(at, key);
    text_double(t, rate_of(rate), RATE_DECIMALS);
    while (t->len > 0 && t->data[t->len - 1] == '0')
        t->len--;
    if (t->len > 0 && t->data[t->len - 1] == '.')
        t->len--;
    text_char(t, '\n');
}

/* What there is to know of an ejection: remembered by the host, told by the control thread. */
struct ejection {
    bool out;
    uint32_t times;
    const char *trigger; /* of the last one; NULL: never */
    uint64_t ago_ms;     /* since it was ejected */
    uint64_t left_ms;    /* until it may come back */
};

static struct ejection ejection_of(const struct host *h, mono_ns now)
{
    uint32_t trigger = atomic_load_explicit(&h->last_trigger, memory_order_relaxed);
    mono_ns since = atomic_load_explicit(&h->ejected_at, memory_order_relaxed);
    mono_ns until = atomic_load_explicit(&h->eject_until, memory_order_relaxed);
    struct ejection e = {
        .out = host_is_ejected(h),
        .times = atomic_load_explicit(&h->ejections, memory_order_relaxed),
        .ago_ms = mono_since(since, now) / NS_PER_MS,
        .left_ms = mono_since(now, until) / NS_PER_MS,
    };

    if (trigger > OUTLIER_NONE && trigger < OUTLIER_TRIGGER_COUNT)
        e.trigger = outlier_trigger_text((enum outlier_trigger)trigger);
    return e;
}

/* A host that was configured by its address has no name. */
static struct bytes hostname_of(const struct endpoint *e)
{
    return bytes_equal(e->hostname, e->text) ? BYTES_NONE : e->hostname;
}

/* --- text --- */

static struct bytes health_flags(const struct host *h)
{
    bool out = host_is_ejected(h);

    if (host_is_drained(h))
        return out ? BYTES("/failed_outlier_check/eds_status_draining")
                   : BYTES("/eds_status_draining");
    return out ? BYTES("/failed_outlier_check") : BYTES("healthy");
}

static void text_drain(const struct prefix *at, const struct host_state *h, mono_ns now)
{
    struct host_rest left = host_rest_of(h);

    if (!host_is_drained(&h->host))
        return;
    line_number(at, "firebreak_draining_ms", mono_since(h->drain_since, now) / NS_PER_MS);
    line_number(at, "firebreak_drain_requests_left", left.requests);
    line_number(at, "firebreak_drain_connections_left", left.connections);
}

static void text_ejection(const struct prefix *at, const struct host *h, mono_ns now)
{
    struct ejection e = ejection_of(h, now);

    line_number(at, "firebreak_ejections", e.times);
    if (e.trigger != NULL)
        line_text(at, "firebreak_last_trigger", bytes_of(e.trigger));
    if (!e.out)
        return;
    line_number(at, "firebreak_ejected_ms_ago", e.ago_ms);
    line_number(at, "firebreak_back_in_ms", e.left_ms);
}

static void text_share(const struct prefix *at, const char *name, double share)
{
    char room[32];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_double(&t, share, 3);
    if (share >= 0)
        line_text(at, name, text_bytes(&t));
}

static void text_named(const struct prefix *at, const struct load_named *n)
{
    char name[LOAD_NAME_MAX + 32], value[64];
    struct text t;

    text_init(&t, name, sizeof(name));
    text_str(&t, "firebreak_load_named_");
    text_str(&t, n->name);
    text_end(&t);
    text_init(&t, value, sizeof(value));
    text_double(&t, n->value, 3);
    line_text(at, name, text_bytes(&t));
}

/* The host's own word. */
static void text_load(const struct prefix *at, const struct host *h, mono_ns now)
{
    struct load_report said;

    if (!host_report_read(&h->report, &said, now))
        return;
    text_share(at, "firebreak_load_cpu", said.cpu);
    text_share(at, "firebreak_load_memory", said.memory);
    text_share(at, "firebreak_load_application", said.application);
    for (uint32_t i = 0; i < said.named_count; i++)
        text_named(at, &said.named[i]);
}

/* Only where the kernel has told. */
static void text_path(const struct prefix *at, const struct host_path *p)
{
    uint32_t rtt = atomic_load_explicit(&p->rtt, memory_order_relaxed);

    if (rtt == 0)
        return;
    line_number(at, "firebreak_rtt_us", rtt);
    line_number(at, "firebreak_retransmits",
                atomic_load_explicit(&p->retransmits, memory_order_relaxed));
}

static void text_host(struct admin_call *call, const struct cluster *c, uint32_t i)
{
    const struct endpoint *e = &c->endpoints[i];
    const struct host_state *state = host_state_of(c->hosts.at[e->slot]);
    const struct host *h = &state->host;
    const struct prefix at = {call->page, c->name, e->text};

    for (unsigned m = 0; m < ENDPOINT_METRIC_COUNT; m++)
        line_number(&at, endpoint_metric_info[m].name,
                    host_state_sum(state, (enum endpoint_metric)m));
    line_text(&at, "hostname", hostname_of(e));
    line_text(&at, "health_flags", health_flags(h));
    line_number(&at, "weight", e->weight);
    line_text(&at, "region", BYTES_NONE);
    line_text(&at, "zone", e->zone);
    line_text(&at, "sub_zone", BYTES_NONE);
    line_text(&at, "canary", BYTES("false"));
    line_number(&at, "priority", 0);
    line_rate(&at, "success_rate", &h->success_rate[OUTLIER_EXTERNAL]);
    line_rate(&at, "local_origin_success_rate", &h->success_rate[OUTLIER_LOCAL]);
    text_ejection(&at, h, call->view->now);
    text_path(&at, &h->path);
    text_drain(&at, state, call->view->now);
    text_load(&at, h, call->view->now);
}

static void text_limits(const struct prefix *at, const char *const keys[4],
                        const struct circuit_limits *l)
{
    line_number(at, keys[0], l->max_connections);
    line_number(at, keys[1], l->max_pending);
    line_number(at, keys[2], l->max_requests);
    line_number(at, keys[3], l->max_retries);
}

/* Since when there is panic, in milliseconds; false: there is none. */
static bool panic_ms(const struct cluster *c, mono_ns now, uint64_t *ms)
{
    mono_ns since = atomic_load_explicit(&c->state->panic_since, memory_order_relaxed);

    *ms = mono_since(since, now) / NS_PER_MS;
    return since != MONO_NEVER;
}

static void text_panic(const struct prefix *at, const struct cluster *c, mono_ns now)
{
    uint64_t ms;
    bool panic = panic_ms(c, now, &ms);

    line_text(at, "firebreak_panic", bytes_of(panic_policy_text(c->panic.policy)));
    line_number(at, "firebreak_panic_below_percent", c->panic.threshold);
    line_text(at, "firebreak_in_panic", panic ? BYTES("true") : BYTES("false"));
    if (panic)
        line_number(at, "firebreak_in_panic_ms", ms);
}

/* Beside each limit what of it is in use; and how requests ended that did not end well. */
static void text_use(const struct prefix *at, const struct cluster_state *s)
{
    line_number(at, "firebreak_in_use::connections", limit_used(&s->connections));
    line_number(at, "firebreak_in_use::pending_requests", limit_used(&s->pending));
    line_number(at, "firebreak_in_use::requests", limit_used(&s->requests));
    for (unsigned f = 0; f < FLAG_COUNT; f++) {
        uint64_t n = cluster_state_flag(s, f);
        char room[64];
        struct text key;

        text_init(&key, room, sizeof(room));
        text_str(&key, "firebreak_response_flags::");
        text_str(&key, flag_name((enum flag_index)f));
        if (n > 0)
            line_number(at, text_end(&key), n);
    }
}

/* Policy at work: which limit, its value, the present use, and what it does to requests. */
static void text_reached(const struct prefix *at, const struct cluster *c)
{
    for (unsigned kind = 0; kind < LIMIT_ROW_COUNT; kind++) {
        struct limit_row r = limit_row_of(c, (enum limit_row_kind)kind);
        char room[128];
        struct text value;

        if (!limit_row_reached(&r))
            continue;
        text_init(&value, room, sizeof(room));
        text_str(&value, r.key);
        text_str(&value, ": ");
        text_u64(&value, r.used);
        text_str(&value, " of ");
        text_u64(&value, r.most);
        text_str(&value, ", ");
        text_str(&value, r.effect);
        line_text(at, "firebreak_limit_reached", text_bytes(&value));
    }
}

static void text_cluster(struct admin_call *call, const struct cluster *c)
{
    static const char *const averages[] = {"outlier::success_rate_average",
                                           "outlier::local_origin_success_rate_average"};
    static const char *const thresholds[] = {
        "outlier::success_rate_ejection_threshold",
        "outlier::local_origin_success_rate_ejection_threshold"};
    static const char *const usual[] = {
        "default_priority::max_connections", "default_priority::max_pending_requests",
        "default_priority::max_requests", "default_priority::max_retries"};
    static const char *const high[] = {"high_priority::max_connections",
                                       "high_priority::max_pending_requests",
                                       "high_priority::max_requests", "high_priority::max_retries"};
    const struct prefix at = {call->page, c->name, BYTES_NONE};

    line_text(&at, "observability_name", c->stat_name);
    for (unsigned i = 0; c->outlier.enabled && i < OUTLIER_ORIGIN_COUNT; i++) {
        line_rate(&at, averages[i], &c->state->rates[i].average);
        line_rate(&at, thresholds[i], &c->state->rates[i].threshold);
    }
    text_limits(&at, usual, &c->limits);
    text_limits(&at, high, &c->limits); /* one set of limits serves both */
    text_use(&at, c->state);
    text_reached(&at, c);
    line_text(&at, "added_via_api", BYTES("false"));
    text_panic(&at, c, call->view->now);
}

/* --- JSON: as proto3 does, zeros are left out and 64-bit numbers are strings --- */

static void json_big(struct json *j, const char *key, uint64_t value)
{
    if (value != 0)
        json_number_text(j, key, value);
}

static void json_nonzero(struct json *j, const char *key, uint32_t value)
{
    if (value != 0)
        json_u64(j, key, value);
}

static void json_unless_empty(struct json *j, const char *key, struct bytes value)
{
    if (value.len > 0)
        json_string(j, key, value);
}

static void json_host_stats(struct json *j, const struct host_state *h, enum metric_kind kind)
{
    for (unsigned m = 0; m < ENDPOINT_METRIC_COUNT; m++) {
        if (endpoint_metric_info[m].kind != kind)
            continue;
        json_object(j, NULL);
        if (kind == METRIC_GAUGE)
            json_text(j, "type", "GAUGE");
        json_text(j, "name", endpoint_metric_info[m].name);
        json_big(j, "value", host_state_sum(h, (enum endpoint_metric)m));
        json_object_end(j);
    }
}

static void json_drain(struct json *j, const struct host_state *h, mono_ns now)
{
    struct host_rest left = host_rest_of(h);

    if (!host_is_drained(&h->host))
        return;
    json_object(j, "drain");
    json_u64(j, "ms", mono_since(h->drain_since, now) / NS_PER_MS);
    json_u64(j, "requests_left", left.requests);
    json_u64(j, "connections_left", left.connections);
    json_object_end(j);
}

static void json_share(struct json *j, const char *key, double share)
{
    if (share >= 0)
        json_double(j, key, share, 3);
}

static void json_load(struct json *j, const struct host *h, mono_ns now)
{
    struct load_report said;

    if (!host_report_read(&h->report, &said, now))
        return;
    json_object(j, "load");
    json_share(j, "cpu", said.cpu);
    json_share(j, "memory", said.memory);
    json_share(j, "application", said.application);
    json_object(j, "named");
    for (uint32_t i = 0; i < said.named_count; i++)
        json_double(j, said.named[i].name, said.named[i].value, 3);
    json_object_end(j);
    json_object_end(j);
}

static void json_path(struct json *j, const struct host_path *p)
{
    uint32_t rtt = atomic_load_explicit(&p->rtt, memory_order_relaxed);

    if (rtt == 0)
        return;
    json_object(j, "path");
    json_u64(j, "rtt_us", rtt);
    json_u64(j, "retransmits", atomic_load_explicit(&p->retransmits, memory_order_relaxed));
    json_object_end(j);
}

static void json_own(struct json *j, const struct host_state *h, mono_ns now)
{
    struct ejection e = ejection_of(&h->host, now);

    json_object(j, "firebreak");
    json_bool(j, "ejected", e.out);
    json_u64(j, "ejections", e.times);
    json_text(j, "last_trigger", e.trigger);
    if (e.out) {
        json_u64(j, "ejected_ms_ago", e.ago_ms);
        json_u64(j, "back_in_ms", e.left_ms);
    }
    json_path(j, &h->host.path);
    json_drain(j, h, now);
    json_load(j, &h->host, now);
    json_object_end(j);
}

/* Absent where it was not worked out. */
static void json_rate(struct json *j, const char *key, const _Atomic double *rate)
{
    if (rate_of(rate) < 0)
        return;
    json_object(j, key);
    json_double(j, "value", rate_of(rate), RATE_DECIMALS);
    json_object_end(j);
}

static void json_host(struct admin_call *call, struct json *j, const struct cluster *c, uint32_t i)
{
    const struct endpoint *e = &c->endpoints[i];
    const struct host_state *state = host_state_of(c->hosts.at[e->slot]);
    const struct host *h = &state->host;

    page_room(call->page, 4096 + 6 * (e->text.len + e->hostname.len + e->zone.len));
    json_object(j, NULL);
    json_socket_address(j, "address", &e->address);
    json_array(j, "stats");
    json_host_stats(j, state, METRIC_COUNTER);
    json_host_stats(j, state, METRIC_GAUGE);
    json_array_end(j);
    json_object(j, "health_status");
    if (host_is_ejected(h))
        json_bool(j, "failed_outlier_check", true);
    json_text(j, "eds_health_status", host_is_drained(h) ? "DRAINING" : "HEALTHY");
    json_object_end(j);
    json_rate(j, "success_rate", &h->success_rate[OUTLIER_EXTERNAL]);
    json_rate(j, "local_origin_success_rate", &h->success_rate[OUTLIER_LOCAL]);
    json_nonzero(j, "weight", e->weight);
    json_unless_empty(j, "hostname", hostname_of(e));
    json_object(j, "locality");
    json_unless_empty(j, "zone", e->zone);
    json_object_end(j);
    json_own(j, state, call->view->now);
    json_object_end(j);
}

static void json_limits(struct json *j, const struct circuit_limits *l, const char *priority)
{
    json_object(j, NULL);
    if (priority != NULL)
        json_text(j, "priority", priority);
    json_nonzero(j, "max_connections", l->max_connections);
    json_nonzero(j, "max_pending_requests", l->max_pending);
    json_nonzero(j, "max_requests", l->max_requests);
    json_nonzero(j, "max_retries", l->max_retries);
    json_object_end(j);
}

static void json_use(struct json *j, const struct cluster_state *s)
{
    json_object(j, "in_use");
    json_u64(j, "connections", limit_used(&s->connections));
    json_u64(j, "pending_requests", limit_used(&s->pending));
    json_u64(j, "requests", limit_used(&s->requests));
    json_object_end(j);
    json_object(j, "response_flags");
    for (unsigned f = 0; f < FLAG_COUNT; f++)
        if (cluster_state_flag(s, f) > 0)
            json_u64(j, flag_name((enum flag_index)f), cluster_state_flag(s, f));
    json_object_end(j);
}

static void json_reached(struct json *j, const struct cluster *c)
{
    json_array(j, "limits_reached");
    for (unsigned kind = 0; kind < LIMIT_ROW_COUNT; kind++) {
        struct limit_row r = limit_row_of(c, (enum limit_row_kind)kind);

        if (!limit_row_reached(&r))
            continue;
        json_object(j, NULL);
        json_text(j, "limit", r.key);
        json_u64(j, "max", r.most);
        json_u64(j, "used", r.used);
        json_text(j, "effect", r.effect);
        json_object_end(j);
    }
    json_array_end(j);
}

static void json_panic(struct json *j, const struct cluster *c, mono_ns now)
{
    uint64_t ms;
    bool panic = panic_ms(c, now, &ms);

    json_object(j, "panic");
    json_text(j, "policy", panic_policy_text(c->panic.policy));
    json_u64(j, "below_percent", c->panic.threshold);
    json_bool(j, "on", panic);
    if (panic)
        json_u64(j, "ms", ms);
    json_object_end(j);
}

static void json_cluster_begin(struct admin_call *call, struct json *j, const struct cluster *c)
{
    page_room(call->page, 1024 + 6 * c->name.len);
    json_object(j, NULL);
    json_string(j, "name", c->name);
    json_array(j, "host_statuses");
}

static void json_cluster_end(struct admin_call *call, struct json *j, const struct cluster *c)
{
    page_room(call->page, 2048 + 6 * c->stat_name.len);
    json_array_end(j);
    json_object(j, "circuit_breakers");
    json_array(j, "thresholds");
    json_limits(j, &c->limits, NULL);
    json_limits(j, &c->limits, "HIGH");
    json_array_end(j);
    json_object_end(j);
    json_rate(j, "success_rate_ejection_threshold", &c->state->rates[OUTLIER_EXTERNAL].threshold);
    json_rate(j, "local_origin_success_rate_ejection_threshold",
              &c->state->rates[OUTLIER_LOCAL].threshold);
    json_string(j, "observability_name", c->stat_name);
    json_object(j, "firebreak");
    json_panic(j, c, call->view->now);
    json_use(j, c->state);
    json_reached(j, c);
    json_object_end(j);
    json_object_end(j);
}

/* --- the page --- */

static void begin_page(struct clusters_page *p, struct admin_call *call)
{
    p->begun = true;
    if (p->format == FORMAT_JSON)
        page_list_begin(call->page, &p->json, "cluster_statuses");
}

static void end_page(struct clusters_page *p, struct admin_call *call)
{
    if (p->format == FORMAT_JSON)
        page_list_end(call->page, &p->json);
}

static void begin_cluster(struct clusters_page *p, struct admin_call *call, const struct cluster *c)
{
    p->in_cluster = true;
    p->host = 0;
    if (p->format == FORMAT_JSON)
        json_cluster_begin(call, &p->json, c);
    else
        text_cluster(call, c);
}

static void end_cluster(struct clusters_page *p, struct admin_call *call, const struct cluster *c)
{
    p->in_cluster = false;
    p->cluster++;
    if (p->format == FORMAT_JSON)
        json_cluster_end(call, &p->json, c);
}

static void put_host(struct clusters_page *p, struct admin_call *call, const struct cluster *c)
{
    if (p->format == FORMAT_JSON)
        json_host(call, &p->json, c, p->host);
    else
        text_host(call, c, p->host);
    p->host++;
}

/* One host, or what stands around the hosts of one cluster. */
static void step(struct clusters_page *p, struct admin_call *call)
{
    const struct cluster *c = &p->work.snapshot->clusters[p->cluster];

    if (p->in_cluster && p->host < c->endpoint_count)
        put_host(p, call, c);
    else if (p->in_cluster)
        end_cluster(p, call, c);
    else if (filter_matches_bytes(&p->filter, c->name) ||
             (c->alias.len > 0 && filter_matches_bytes(&p->filter, c->alias)))
        begin_cluster(p, call, c);
    else
        p->cluster++;
}

static enum work_state clusters_more(struct admin_work *w, struct admin_call *call)
{
    struct clusters_page *p = CONTAINER_OF(w, struct clusters_page, work);

    if (!p->begun)
        begin_page(p, call);
    while (p->cluster < w->snapshot->cluster_count) {
        step(p, call);
        if (!work_goes_on(call))
            return WORK_MORE;
    }
    end_page(p, call);
    return WORK_DONE;
}

static void clusters_free(struct admin_work *w)
{
    struct clusters_page *p = CONTAINER_OF(w, struct clusters_page, work);

    filter_release(&p->filter);
    memory_give(p);
}

void show_clusters(struct admin_call *call)
{
    struct clusters_page *p;
    enum page_format format;

    if (!call_format(call, 1u << FORMAT_TEXT | 1u << FORMAT_JSON, &format))
        return;
    p = work_begin(call, sizeof(*p));
    if (p == NULL)
        return;
    p->work.more = clusters_more;
    p->work.free = clusters_free;
    p->format = format;
    if (!call_filter(call, &p->filter))
        work_end(call);
    else if (format == FORMAT_JSON)
        call->type = ADMIN_JSON;
}
