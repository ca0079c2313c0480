/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/collect.h"

#include "admin/naming.h"
#include "base/text.h"
#include "model/flags.h"

#define CODES 1000 /* three digits */

/* Values that are no cell of a worker but looked up, or worked out here. */
#define CLUSTER_LOOKUPS(X)                                                                         \
    X(membership_total, "membership_total", "hosts")                                               \
    X(membership_healthy, "membership_healthy", "hosts that are not ejected")                      \
    X(cx_open, "circuit_breakers.default.cx_open", "1: maxConnections is reached")                 \
    X(rq_pending_open, "circuit_breakers.default.rq_pending_open", "1: maxPendingRequests is")     \
    X(rq_open, "circuit_breakers.default.rq_open", "1: maxRequests is")                            \
    X(cx_pool_open, "circuit_breakers.default.cx_pool_open", "always 0: pools are not limited")    \
    X(high_cx_open, "circuit_breakers.high.cx_open", "always 0: no request has priority high")     \
    X(high_cx_pool_open, "circuit_breakers.high.cx_pool_open", "the same")                         \
    X(high_rq_pending_open, "circuit_breakers.high.rq_pending_open", "the same")                   \
    X(high_rq_open, "circuit_breakers.high.rq_open", "the same")                                   \
    X(high_rq_retry_open, "circuit_breakers.high.rq_retry_open", "the same")                       \
    X(remaining_cx, "circuit_breakers.default.remaining_cx", "connections to maxConnections")      \
    X(remaining_pending, "circuit_breakers.default.remaining_pending", "to maxPendingRequests")    \
    X(remaining_rq, "circuit_breakers.default.remaining_rq", "requests to maxRequests")            \
    X(rq_retry_open, "circuit_breakers.default.rq_retry_open", "1: maxRetries is reached")         \
    X(remaining_retries, "circuit_breakers.default.remaining_retries", "retries to maxRetries")

#define X(id, name, help) static const struct metric_info info_##id = {name, METRIC_GAUGE, help};
CLUSTER_LOOKUPS(X)
#undef X

static const struct metric_info membership_change = {
    "membership_change", METRIC_COUNTER, "times hosts came or went, the first ones included"};
static const struct metric_info endpoint_healthy = {"healthy", METRIC_GAUGE,
                                                    "1: in use, 0: ejected"};
static const struct metric_info endpoint_ejections = {"ejections", METRIC_COUNTER,
                                                      "times it was ejected"};

/* The address as a part of names, also left in |room|. */
static void add_address(struct scope *scope, const struct address *a, char *room, size_t size)
{
    struct text t;

    text_init(&t, room, size);
    address_write(&t, a);
    text_end(&t);
    for (size_t i = 0; i < t.len; i++)
        if (room[i] == ':')
            room[i] = '_';
    scope_name(scope, text_bytes(&t));
    scope_label(scope->labels, "envoy_listener_address", text_bytes(&t));
}

/* --- clusters --- */

static void collect_codes(struct samples *s, const struct scope *scope,
                          const struct cluster_state *state, enum status_table which)
{
    uint64_t counts[CODES] = {0};

    for (uint32_t w = 0; w < state->workers; w++) {
        const struct status_cells *cells = status_table(state->cells[w], which);

        for (unsigned i = 0; i < STATUS_SLOTS; i++) {
            uint32_t code = atomic_load_explicit(&cells->code[i], memory_order_acquire);

            if (code > 0 && code < CODES)
                counts[code] += cell_read(&cells->count[i]);
        }
    }
    for (unsigned i = 0; i < STATUS_SLOTS; i++) {
        uint32_t code = state->statuses_before[which].code[i];

        if (code < CODES)
            counts[code] -= cell_read(&state->statuses_before[which].count[i]);
    }
    for (uint32_t code = 0; code < CODES; code++)
        if (counts[code] != 0)
            scope_add_code(s, scope, "upstream_rq", code, counts[code]);
}

static void collect_cluster_histograms(struct samples *s, const struct scope *scope,
                                       const struct cluster_state *state)
{
    struct histogram *time = NULL, *connect = NULL;

    if (scope_wants(s, scope, "upstream_rq_time"))
        time = samples_histogram(s);
    if (scope_wants(s, scope, "upstream_cx_connect_ms"))
        connect = samples_histogram(s);
    for (uint32_t w = 0; w < state->workers; w++) {
        if (time != NULL)
            histogram_merge(time, &state->cells[w]->rq_time);
        if (connect != NULL)
            histogram_merge(connect, &state->cells[w]->connect_ms);
    }
    if (time != NULL)
        scope_add_histogram(s, scope, "upstream_rq_time", NULL, time);
    if (connect != NULL)
        scope_add_histogram(s, scope, "upstream_cx_connect_ms", NULL, connect);
}

static uint64_t healthy_hosts(const struct cluster *c)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < c->endpoint_count; i++)
        n += host_health(c->hosts.at[c->endpoints[i].slot]) == HOST_HEALTHY;
    return n;
}

static uint64_t is_open(const struct limit *l, uint32_t max)
{
    return max != LIMIT_NONE && limit_used(l) >= max;
}

static uint64_t remaining(const struct limit *l, uint32_t max)
{
    uint32_t used = limit_used(l);

    return used < max ? max - used : 0;
}

/* Dashboards ask for them; there is nothing here that could ever open them. */
static void collect_idle_breakers(struct samples *s, const struct scope *scope)
{
    static const struct metric_info *const idle[] = {
        &info_cx_pool_open,         &info_high_cx_open, &info_high_cx_pool_open,
        &info_high_rq_pending_open, &info_high_rq_open, &info_high_rq_retry_open};

    for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
        scope_add(s, scope, idle[i], 0);
}

static void collect_lookups(struct samples *s, const struct scope *scope, const struct cluster *c)
{
    const struct cluster_state *state = c->state;
    const struct circuit_limits *max = &c->limits;

    scope_add(s, scope, &membership_change,
              atomic_load_explicit(&state->membership_changes, memory_order_relaxed));
    for (unsigned m = 0; m < DISCOVERY_METRIC_COUNT; m++)
        scope_add(s, scope, &discovery_metric_info[m], cell_read(&state->discovery[m]));
    scope_add(s, scope, &info_membership_total, c->endpoint_count);
    scope_add(s, scope, &info_membership_healthy, healthy_hosts(c));
    scope_add(s, scope, &info_cx_open, is_open(&state->connections, max->max_connections));
    scope_add(s, scope, &info_rq_pending_open, is_open(&state->pending, max->max_pending));
    scope_add(s, scope, &info_rq_open, is_open(&state->requests, max->max_requests));
    collect_idle_breakers(s, scope);
    scope_add(s, scope, &info_remaining_cx, remaining(&state->connections, max->max_connections));
    scope_add(s, scope, &info_remaining_pending, remaining(&state->pending, max->max_pending));
    scope_add(s, scope, &info_remaining_rq, remaining(&state->requests, max->max_requests));
    /* A share has no gauges, as in Envoy. */
    scope_add(s, scope, &info_rq_retry_open,
              !c->retry_share.given && is_open(&state->retries, max->max_retries));
    scope_add(s, scope, &info_remaining_retries,
              c->retry_share.given ? 0 : remaining(&state->retries, max->max_retries));
}

static void collect_outlier(struct samples *s, const struct cluster *c)
{
    struct scope scope;

    scope_init(&scope, SCOPE_ENVOY, "cluster_outlier_detection_");
    scope_name(&scope, BYTES("cluster."));
    scope_name(&scope, c->stat_name);
    scope_name(&scope, BYTES(".outlier_detection."));
    scope_label(scope.labels, "envoy_cluster_name", c->stat_name);
    for (unsigned m = 0; m < OUTLIER_METRIC_COUNT; m++)
        scope_add(s, &scope, &outlier_metric_info[m], cell_read(&c->state->outlier[m]));
}

static void collect_effect(struct samples *s, const struct cluster *c)
{
    struct scope scope;

    scope_init(&scope, SCOPE_OWN, "cluster_effect_");
    scope_name(&scope, BYTES("cluster."));
    scope_name(&scope, c->stat_name);
    scope_name(&scope, BYTES(".effect."));
    scope_label(scope.own, "cluster", c->name);
    for (unsigned m = 0; m < EFFECT_METRIC_COUNT; m++)
        scope_add(s, &scope, &effect_metric_info[m], cell_read(&c->state->effect[m]));
}

static void collect_endpoint(struct samples *s, const struct cluster *c, uint32_t index)
{
    const struct endpoint *e = &c->endpoints[index];
    const struct host_state *state = host_state_of(c->hosts.at[e->slot]);
    struct scope scope;

    scope_init(&scope, SCOPE_OWN, "endpoint_");
    scope_name(&scope, BYTES("cluster."));
    scope_name(&scope, c->stat_name);
    scope_name(&scope, BYTES(".endpoint."));
    scope_name(&scope, e->text);
    scope_name(&scope, BYTES("."));
    scope_label(scope.own, "cluster", c->name);
    scope_label(scope.own, "endpoint", e->text);
    for (unsigned m = 0; m < ENDPOINT_METRIC_COUNT; m++)
        scope_add(s, &scope, &endpoint_metric_info[m],
                  host_state_sum(state, (enum endpoint_metric)m));
    scope_add(s, &scope, &endpoint_healthy, host_health(&state->host) == HOST_HEALTHY);
    scope_add(s, &scope, &endpoint_ejections,
              atomic_load_explicit(&state->host.ejections, memory_order_relaxed));
}

/*
 * Envoy tells requests of its own mesh ("internal") from others by x-envoy-internal, and with its
 * defaults none is: what is counted is counted once more as external. Like Envoy's, they appear
 * with the first answer.
 */
static void collect_external(struct samples *s, const struct cluster *c)
{
    static const enum cluster_metric mirrored[] = {
        CLUSTER_upstream_rq_completed, CLUSTER_upstream_rq_1xx, CLUSTER_upstream_rq_2xx,
        CLUSTER_upstream_rq_3xx,       CLUSTER_upstream_rq_4xx, CLUSTER_upstream_rq_5xx};
    struct scope scope;

    scope_init(&scope, SCOPE_ENVOY, "cluster_external_");
    scope_name(&scope, BYTES("cluster."));
    scope_name(&scope, c->stat_name);
    scope_name(&scope, BYTES(".external."));
    scope_label(scope.labels, "envoy_cluster_name", c->stat_name);
    for (size_t i = 0; i < sizeof(mirrored) / sizeof(mirrored[0]); i++) {
        uint64_t value = cluster_state_sum(c->state, mirrored[i]);

        if (value != 0)
            scope_add(s, &scope, &cluster_metric_info[mirrored[i]], value);
    }
    collect_codes(s, &scope, c->state, STATUS_FINAL);
}

static void collect_retries(struct samples *s, const struct cluster *c)
{
    struct scope scope;

    scope_init(&scope, SCOPE_ENVOY, "cluster_retry_");
    scope_name(&scope, BYTES("cluster."));
    scope_name(&scope, c->stat_name);
    scope_name(&scope, BYTES(".retry."));
    scope_label(scope.labels, "envoy_cluster_name", c->stat_name);
    for (unsigned m = 0; m < RETRY_METRIC_COUNT; m++)
        scope_add(s, &scope, &retry_metric_info[m],
                  cluster_state_retry_sum(c->state, (enum retry_metric)m));
    collect_codes(s, &scope, c->state, STATUS_RETRIED);
}

static const struct metric_info info_amplification = {
    "amplification", METRIC_RATIO,
    "firebreak: attempts for each request of the last ten seconds; 1: none again, 0: no requests"};
static const struct metric_info info_tokens = {
    "retry_budget_tokens", METRIC_GAUGE, "firebreak: retries the retry budget would allow now"};

static const struct metric_info info_panic = {
    "in_panic", METRIC_GAUGE, "firebreak: 1: panic, fewer hosts are healthy than minHealthPercent"};

static void collect_panic(struct samples *s, const struct scope *scope, const struct cluster *c)
{
    mono_ns since = atomic_load_explicit(&c->state->panic_since, memory_order_relaxed);

    scope_add(s, scope, &info_panic, since != MONO_NEVER);
}

static void collect_amplification(struct samples *s, const struct scope *scope,
                                  const struct cluster *c, mono_ns now)
{
    struct amplification a = cluster_state_amplification(c->state, now);
    uint64_t permille = a.requests == 0 ? 0 : 1000 + a.extra * 1000 / a.requests;

    scope_add(s, scope, &info_amplification, permille);
    scope_add(s, scope, &info_tokens,
              retry_budget_tokens(&c->state->retry_budget, &c->retry_budget, now));
}

static void collect_cluster(struct samples *s, const struct cluster *c, mono_ns now)
{
    struct scope scope;

    scope_init(&scope, SCOPE_ENVOY, "cluster_");
    scope_name(&scope, BYTES("cluster."));
    scope_name(&scope, c->stat_name);
    scope_name(&scope, BYTES("."));
    scope_label(scope.labels, "envoy_cluster_name", c->stat_name);
    scope_label(scope.own, "cluster", c->name);
    for (unsigned m = 0; m < CLUSTER_METRIC_COUNT; m++)
        scope_add(s, &scope, &cluster_metric_info[m],
                  cluster_state_sum(c->state, (enum cluster_metric)m));
    collect_codes(s, &scope, c->state, STATUS_FINAL);
    collect_external(s, c);
    for (unsigned f = 0; f < FLAG_COUNT; f++)
        scope_add_flag(s, &scope, flag_name((enum flag_index)f), cluster_state_flag(c->state, f));
    collect_lookups(s, &scope, c);
    collect_cluster_histograms(s, &scope, c->state);
    collect_amplification(s, &scope, c, now);
    collect_panic(s, &scope, c);
    collect_retries(s, c);
    collect_outlier(s, c);
    if (c->detection.on)
        collect_effect(s, c);
}

/* --- listeners --- */

static const enum http_metric listener_metrics[] = {HTTP_downstream_cx_total,
                                                    HTTP_downstream_cx_active};

static const enum http_metric listener_http_metrics[] = {
    HTTP_downstream_rq_completed, HTTP_downstream_rq_1xx, HTTP_downstream_rq_2xx,
    HTTP_downstream_rq_3xx,       HTTP_downstream_rq_4xx, HTTP_downstream_rq_5xx};

static void collect_http(struct samples *s, const struct listener_config *l)
{
    struct scope scope;
    struct histogram *time;

    scope_init(&scope, SCOPE_ENVOY, "http_");
    scope_name(&scope, BYTES("http."));
    scope_name(&scope, l->name);
    scope_name(&scope, BYTES("."));
    scope_label(scope.labels, "envoy_http_conn_manager_prefix", l->name);
    scope_label(scope.own, "listener", l->name);
    for (unsigned m = 0; m < HTTP_METRIC_COUNT; m++)
        scope_add(s, &scope, &http_metric_info[m],
                  listener_state_sum(l->state, (enum http_metric)m));
    for (unsigned f = 0; f < FLAG_COUNT; f++)
        scope_add_flag(s, &scope, flag_name((enum flag_index)f), listener_state_flag(l->state, f));
    if (!scope_wants(s, &scope, "downstream_rq_time"))
        return;
    time = samples_histogram(s);
    for (uint32_t w = 0; time != NULL && w < l->state->workers; w++)
        histogram_merge(time, &l->state->cells[w]->rq_time);
    if (time != NULL)
        scope_add_histogram(s, &scope, "downstream_rq_time", NULL, time);
}

static void collect_listener(struct samples *s, const struct listener_config *l)
{
    struct address at = view_listener_address(l);
    char room[NAMING_ROOM];
    struct scope scope;

    collect_http(s, l);
    scope_init(&scope, SCOPE_ENVOY, "listener_");
    scope_name(&scope, BYTES("listener."));
    add_address(&scope, &at, room, sizeof(room));
    scope_name(&scope, BYTES("."));
    for (size_t i = 0; i < sizeof(listener_metrics) / sizeof(listener_metrics[0]); i++)
        scope_add(s, &scope, &http_metric_info[listener_metrics[i]],
                  listener_state_sum(l->state, listener_metrics[i]));
    scope.family = "listener_http_";
    scope_name(&scope, BYTES("http."));
    scope_name(&scope, l->name);
    scope_name(&scope, BYTES("."));
    scope.labels[0] = '\0';
    scope_label(scope.labels, "envoy_http_conn_manager_prefix", l->name);
    scope_label(scope.labels, "envoy_listener_address", bytes_of(room));
    for (size_t i = 0; i < sizeof(listener_http_metrics) / sizeof(listener_http_metrics[0]); i++)
        scope_add(s, &scope, &http_metric_info[listener_http_metrics[i]],
                  listener_state_sum(l->state, listener_http_metrics[i]));
}

/* --- the process --- */

static void add_gauge(struct samples *s, const struct scope *scope, const char *name,
                      const char *help, uint64_t value)
{
    const struct metric_info info = {name, METRIC_GAUGE, help};

    scope_add(s, scope, &info, value);
}

/* "0.1.0" as 100: major, minor and patch with two digits each. */
static uint64_t version_number(void)
{
    struct bytes rest = BYTES(FIREBREAK_VERSION);
    uint64_t number = 0;

    for (int i = 0; i < 3; i++) {
        size_t dot = bytes_find(rest, '.');
        uint64_t part = 0;

        bytes_parse_u64(bytes_slice(rest, 0, dot), &part);
        number = number * 100 + part;
        rest = bytes_skip(rest, dot + 1);
    }
    return number;
}

static uint64_t connections(const struct snapshot *snapshot)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < snapshot->listener_count; i++)
        sum += listener_state_sum(snapshot->listeners[i].state, HTTP_downstream_cx_active);
    return sum;
}

static void collect_server(struct samples *s, const struct admin_view *v)
{
    struct admin_usage usage = {0};
    struct scope scope;

    scope_init(&scope, SCOPE_ENVOY, "server_");
    scope_name(&scope, BYTES("server."));
    add_gauge(s, &scope, "live", "1: not draining", !view_draining(v));
    add_gauge(s, &scope, "state", "0: live, 1: draining", view_draining(v));
    add_gauge(s, &scope, "uptime", "seconds", mono_since(v->process->started, v->now) / NS_PER_S);
    add_gauge(s, &scope, "concurrency", "workers", v->process->workers);
    add_gauge(s, &scope, "total_connections", "client connections", connections(v->snapshot));
    add_gauge(s, &scope, "version", "0.1.0 as 100", version_number());
    if (v->usage != NULL) {
        v->usage(&usage);
        add_gauge(s, &scope, "memory_allocated", "bytes in use", usage.allocated);
        add_gauge(s, &scope, "memory_heap_size", "bytes taken for them", usage.heap);
    }
}

static void collect_lag(struct samples *s, const struct scope *scope, const struct lag *lag,
                        mono_ns now)
{
    static const struct metric_info worst = {
        "loop_lag_max", METRIC_RATIO,
        "longest that the loop kept anything waiting in the last ten seconds, in ms"};
    struct histogram *times;

    scope_add(s, scope, &worst, lag_worst(lag, now, LAG_SECONDS) / NS_PER_US);
    if (!scope_wants(s, scope, "loop_lag"))
        return;
    times = samples_histogram(s);
    if (times == NULL)
        return;
    histogram_merge(times, &lag->times);
    scope_add_histogram(
        s, scope, "loop_lag",
        "how long the loop kept anything waiting, of turns where it was 1 ms or more", times);
}

static void collect_worker(struct samples *s, const struct admin_view *v, uint32_t w)
{
    char digits[16];
    struct text number;
    struct scope scope;

    text_init(&number, digits, sizeof(digits));
    text_u64(&number, w);
    scope_init(&scope, SCOPE_OWN, "worker_");
    scope_name(&scope, BYTES("firebreak.worker."));
    scope_name(&scope, text_bytes(&number));
    scope_name(&scope, BYTES("."));
    scope_label(scope.own, "worker", text_bytes(&number));
    for (unsigned m = 0; m < WORKER_METRIC_COUNT; m++)
        scope_add(s, &scope, &worker_metric_info[m],
                  process_state_worker(v->process, w, (enum worker_metric)m));
    collect_lag(s, &scope, &v->process->worker_cells[w].lag, v->now);
}

static void collect_process(struct samples *s, const struct admin_view *v)
{
    const struct process_state *p = v->process;
    struct admin_usage usage = {0};
    struct scope scope;

    scope_init(&scope, SCOPE_OWN, "");
    scope_name(&scope, BYTES("firebreak."));
    add_gauge(s, &scope, "downstream_connections", "client connections open",
              limit_used(&p->downstream));
    add_gauge(s, &scope, "downstream_connections_limit", "the most there may be",
              p->downstream_max);
    add_gauge(s, &scope, "upstream_connections", "connections to hosts open",
              limit_used(&p->upstream));
    add_gauge(s, &scope, "upstream_connections_limit", "the most there may be", p->upstream_max);
    add_gauge(s, &scope, "requests", "requests under way", limit_used(&p->requests));
    add_gauge(s, &scope, "requests_limit", "the most there may be", p->requests_max);
    add_gauge(s, &scope, "config_version", "version of the snapshot in force",
              v->snapshot->version);
    for (uint32_t i = 0; i < v->extra_count; i++)
        scope_add(s, &scope, &v->extras[i].info,
                  cell_read(v->extras[i].cell) - v->extras_before[i]);
    if (v->usage != NULL) {
        v->usage(&usage);
        add_gauge(s, &scope, "resident_memory_bytes", "resident memory", usage.resident);
        add_gauge(s, &scope, "open_descriptors", "descriptors open", usage.descriptors);
        add_gauge(s, &scope, "descriptors_limit", "the most there may be", usage.descriptors_max);
    }
    scope_label(scope.own, "version", BYTES(FIREBREAK_VERSION));
    add_gauge(s, &scope, "build_info", "always 1; the version is a label", 1);
}

/* --- the walk --- */

static void step_cluster(struct collector *c, struct samples *s, const struct cluster *cluster,
                         mono_ns now)
{
    if (!c->in_cluster) {
        collect_cluster(s, cluster, now);
        c->in_cluster = true;
        c->host = 0;
    } else if (c->scope == COLLECT_ENDPOINTS && c->host < cluster->endpoint_count) {
        collect_endpoint(s, cluster, c->host++);
    } else {
        c->in_cluster = false;
        c->cluster++;
    }
}

bool collect_step(struct collector *c, struct samples *s, const struct admin_view *view)
{
    const struct snapshot *snapshot = view->snapshot;

    if (c->cluster < snapshot->cluster_count) {
        step_cluster(c, s, &snapshot->clusters[c->cluster], view->now);
    } else if (c->listener < snapshot->listener_count) {
        collect_listener(s, &snapshot->listeners[c->listener++]);
    } else if (!c->done) {
        collect_server(s, view);
        for (uint32_t w = 0; w < view->process->workers; w++)
            collect_worker(s, view, w);
        collect_process(s, view);
        c->done = true;
    } else {
        return false;
    }
    return true;
}
