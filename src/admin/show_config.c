/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /config_dump: the configuration in force, in the shape of Envoy's dump. It shows the snapshot, so
 * defaults are filled in; a snapshot holds no secrets.
 */
#include "admin/pages.h"
#include "admin/work.h"
#include "base/list.h"
#include "base/memory.h"

#define ROOM       8192 /* of what is written at once, beside texts of the operator's */
#define TYPE(name) "type.googleapis.com/" name

enum dump_part { DUMP_PROCESS, DUMP_CLUSTERS, DUMP_LISTENERS, DUMP_ROUTES, DUMP_PART_COUNT };

/* What "resource=" asks for; a process is only in the whole. */
static const char *const part_lists[] = {NULL, "static_clusters", "static_listeners",
                                         "static_route_configs"};
static const char *const part_types[] = {
    TYPE("firebreak.admin.v1.ProcessDump"), TYPE("envoy.admin.v3.ClustersConfigDump"),
    TYPE("envoy.admin.v3.ListenersConfigDump"), TYPE("envoy.admin.v3.RoutesConfigDump")};

struct dump_page {
    struct admin_work work;
    struct filter names; /* of clusters and listeners */
    struct json json;
    enum dump_part only; /* DUMP_PROCESS: all */
    enum dump_part part;
    bool begun;
    bool in_part;
    bool in_item;
    uint32_t item;  /* cluster or listener */
    uint32_t inner; /* endpoint or route */
};

/* --- values --- */

/* "0.300s", as proto3 writes durations. */
static void json_span(struct json *j, const char *key, span_ns span)
{
    char room[40];
    struct text t;

    if (span == MONO_NEVER) {
        json_text(j, key, "0s");
        return;
    }
    text_init(&t, room, sizeof(room));
    text_u64(&t, span / NS_PER_S);
    if (span % NS_PER_S != 0) {
        uint64_t ms = span / NS_PER_MS % 1000;

        text_char(&t, '.');
        text_char(&t, (char)('0' + ms / 100));
        text_char(&t, (char)('0' + ms / 10 % 10));
        text_char(&t, (char)('0' + ms % 10));
    }
    text_char(&t, 's');
    json_string(j, key, text_bytes(&t));
}

static void json_strings(struct page *p, struct json *j, const char *key, const struct bytes *at,
                         uint32_t count)
{
    json_array(j, key);
    for (uint32_t i = 0; i < count; i++) {
        page_room(p, 8 + 6 * at[i].len);
        json_string(j, NULL, at[i]);
    }
    page_room(p, ROOM);
    json_array_end(j);
}

/* --- the process --- */

static void dump_process(struct admin_call *call, struct json *j)
{
    const struct snapshot *s = call->view->snapshot;

    page_room(call->page, ROOM + 6 * (s->access_log.to.len + s->user.len));
    json_u64(j, "config_version", s->version);
    json_u64(j, "workers", call->view->process->workers);
    json_string(j, "access_log_path", s->access_log.to);
    if (s->user.len > 0)
        json_string(j, "user", s->user);
    json_number_text(j, "memory_limit", s->memory_limit);
    json_span(j, "drain_wait", s->drain_wait);
    json_span(j, "drain_timeout", s->drain_timeout);
}

/* --- clusters --- */

static void dump_thresholds(struct json *j, const struct circuit_limits *l)
{
    json_object(j, "circuit_breakers");
    json_array(j, "thresholds");
    json_object(j, NULL);
    json_u64(j, "max_connections", l->max_connections);
    json_u64(j, "max_pending_requests", l->max_pending);
    json_u64(j, "max_requests", l->max_requests);
    json_u64(j, "max_retries", l->max_retries);
    json_object_end(j);
    json_array_end(j);
    json_array(j, "per_host_thresholds");
    json_object(j, NULL);
    json_u64(j, "max_connections", l->host.max_connections);
    json_u64(j, "max_pending_requests", l->host.max_pending);
    json_u64(j, "max_requests", l->host.max_requests);
    json_object_end(j);
    json_array_end(j);
    json_object_end(j);
    json_span(j, "queue_timeout", l->queue_timeout);
    if (l->max_requests_per_connection > 0)
        json_u64(j, "max_requests_per_connection", l->max_requests_per_connection);
}

static void dump_rates(struct json *j, const struct outlier_config *o)
{
    json_u64(j, "success_rate_minimum_hosts", o->rates.success_hosts);
    json_u64(j, "success_rate_request_volume", o->rates.success_volume);
    json_u64(j, "success_rate_stdev_factor", o->rates.success_factor);
    json_u64(j, "failure_percentage_minimum_hosts", o->rates.failure_hosts);
    json_u64(j, "failure_percentage_request_volume", o->rates.failure_volume);
    json_u64(j, "failure_percentage_threshold", o->rates.failure_percent);
    json_object(j, "enforcing");
    for (unsigned t = OUTLIER_NONE + 1; t < OUTLIER_TRIGGER_COUNT; t++)
        json_u64(j, outlier_trigger_text((enum outlier_trigger)t), o->enforcing[t]);
    json_object_end(j);
}

static void dump_outlier(struct json *j, const struct outlier_config *o)
{
    if (!o->enabled)
        return;
    json_object(j, "outlier_detection");
    json_u64(j, "consecutive_5xx", o->consecutive_5xx);
    json_u64(j, "consecutive_gateway_failure", o->consecutive_gateway);
    json_u64(j, "consecutive_local_origin_failure", o->consecutive_local_origin);
    json_bool(j, "split_external_local_origin_errors", o->split);
    json_span(j, "interval", o->interval);
    json_span(j, "base_ejection_time", o->base_ejection);
    json_span(j, "max_ejection_time", o->max_ejection);
    json_span(j, "max_ejection_time_jitter", o->jitter);
    json_u64(j, "max_ejection_percent", o->max_ejection_percent);
    json_bool(j, "always_eject_one_host", o->always_eject_one);
    dump_rates(j, o);
    json_object_end(j);
}

static void dump_life(struct json *j, const struct life_config *l)
{
    json_u64(j, "least_share_permille", l->least_share);
    json_bool(j, "probed_soon", l->quick);
    json_span(j, "probe_after", l->after);
    json_span(j, "probe_gap", l->gap);
    json_u64(j, "probes", l->probes);
    json_u64(j, "successes", l->successes);
    json_span(j, "ramp", l->ramp);
    json_span(j, "quarantine_base", l->base);
    json_span(j, "quarantine_max", l->max);
    json_span(j, "needs_human_after", l->repeated_for);
    json_u64(j, "needs_human_times_per_hour", l->times_per_hour);
}

static void dump_detection(struct json *j, const struct detection_config *d)
{
    json_object(j, "detection");
    json_bool(j, "on", d->on);
    json_text(j, "mode", detection_mode_text(d->mode));
    json_text(j, "profile", detection_profile_text(d->profile));
    json_bool(j, "latency", d->detect.latency);
    json_bool(j, "errors", d->detect.errors);
    json_bool(j, "connections", d->detect.connections);
    json_double(j, "threshold_nats", d->detect.threshold, 3);
    json_double(j, "max_load", d->max_load, 3);
    dump_life(j, &d->life);
    json_object_end(j);
}

static void dump_own(struct json *j, const struct cluster *c)
{
    json_object(j, "common_lb_config");
    json_object(j, "healthy_panic_threshold");
    json_u64(j, "value", c->panic.threshold);
    json_object_end(j);
    json_object_end(j);
    json_object(j, "firebreak");
    json_text(j, "panic", panic_policy_text(c->panic.policy));
    json_bool(j, "connect_failover", c->connect_failover);
    json_array(j, "as_envoy");
    for (unsigned d = 0; d < DIFFERENCE_COUNT; d++)
        if (as_envoy(c->differences, (enum difference)d))
            json_text(j, NULL, difference_info[d].key);
    json_array_end(j);
    dump_detection(j, &c->detection);
    json_object_end(j);
}

static void dump_cluster(struct admin_call *call, struct json *j, const struct cluster *c)
{
    page_room(call->page, ROOM + 6 * (c->name.len + c->stat_name.len));
    json_object(j, NULL);
    json_object(j, "cluster");
    json_string(j, "name", c->name);
    json_string(j, "alt_stat_name", c->stat_name);
    json_text(j, "lb_policy", lb_kind_text(c->lb));
    json_span(j, "connect_timeout", c->connect_timeout);
    json_span(j, "idle_timeout", c->idle_timeout);
    if (c->max_connection_duration > 0)
        json_span(j, "max_connection_duration", c->max_connection_duration);
    if (c->max_connection_age > 0)
        json_span(j, "max_connection_age", c->max_connection_age);
    if (c->dns_hold > 0)
        json_span(j, "dns_hold", c->dns_hold);
    if (c->host_drain_timeout > 0)
        json_span(j, "host_drain_timeout", c->host_drain_timeout);
    dump_thresholds(j, &c->limits);
    dump_outlier(j, &c->outlier);
    dump_own(j, c);
    json_array(j, "endpoints");
}

static void dump_endpoint(struct admin_call *call, struct json *j, const struct endpoint *e)
{
    page_room(call->page, ROOM + 6 * (e->hostname.len + e->zone.len + e->version.len));
    json_object(j, NULL);
    json_socket_address(j, "address", &e->address);
    if (!bytes_equal(e->hostname, e->text))
        json_string(j, "hostname", e->hostname);
    if (e->zone.len > 0)
        json_string(j, "zone", e->zone);
    if (e->version.len > 0)
        json_string(j, "version", e->version);
    json_u64(j, "load_balancing_weight", e->weight);
    json_object_end(j);
}

static void end_cluster(struct admin_call *call, struct json *j)
{
    page_room(call->page, ROOM);
    json_array_end(j);
    json_object_end(j);
    json_object_end(j);
}

/* --- listeners and routes --- */

static void dump_listener(struct admin_call *call, struct json *j, const struct listener_config *l)
{
    struct address at = view_listener_address(l);

    page_room(call->page, ROOM + 6 * l->name.len);
    json_object(j, NULL);
    json_object(j, "listener");
    json_string(j, "name", l->name);
    json_socket_address(j, "address", &at);
    json_u64(j, "max_request_headers_bytes", l->limits.head_bytes);
    json_u64(j, "max_headers_count", l->limits.fields);
    json_u64(j, "buffer_bytes", l->limits.buffer_bytes);
    json_span(j, "request_headers_timeout", l->head_timeout);
    json_span(j, "request_timeout", l->body_timeout);
    json_span(j, "idle_timeout", l->idle_timeout);
    if (l->max_connection_age > 0)
        json_span(j, "max_connection_age", l->max_connection_age);
    json_u64(j, "xff_num_trusted_hops", l->trusted_hops);
    json_bool(j, "merge_slashes", l->merge_slashes);
    json_object_end(j);
    json_object_end(j);
}

static void begin_routes(struct admin_call *call, struct json *j, const struct listener_config *l)
{
    page_room(call->page, ROOM + 6 * l->name.len);
    json_object(j, NULL);
    json_object(j, "route_config");
    json_string(j, "name", l->name);
    json_array(j, "routes");
}

static void dump_route(struct admin_call *call, struct json *j, const struct route *r)
{
    const struct snapshot *s = call->view->snapshot;
    struct bytes cluster = BYTES_NONE;

    if (r->cluster < s->cluster_count)
        cluster = s->clusters[r->cluster].name;
    page_room(call->page, ROOM + 6 * (r->name.len + r->path.len + cluster.len));
    json_object(j, NULL);
    if (r->name.len > 0)
        json_string(j, "name", r->name);
    json_object(j, "match");
    json_string(j, r->match == PATH_EXACT ? "path" : "prefix", r->path);
    json_strings(call->page, j, "hosts", r->hosts, r->host_count);
    json_strings(call->page, j, "methods", r->methods, r->method_count);
    json_object_end(j);
    json_object(j, "route");
    json_string(j, "cluster", cluster);
    json_span(j, "timeout", r->timeout);
    json_span(j, "per_try_timeout", r->per_try_timeout);
    json_span(j, "idle_timeout", r->idle_timeout);
    json_object_end(j);
    if (r->class != CLASS_BY_REQUEST)
        json_string(j, "class", s->classes[r->class]);
    else if (r->large_body != UINT64_MAX)
        json_number_text(j, "large_body", r->large_body);
    json_object_end(j);
}

/* --- the walk --- */

static uint32_t items_of(const struct dump_page *p)
{
    const struct snapshot *s = p->work.snapshot;

    switch (p->part) {
    case DUMP_CLUSTERS:
        return s->cluster_count;
    case DUMP_LISTENERS:
    case DUMP_ROUTES:
        return s->listener_count;
    case DUMP_PROCESS:
    case DUMP_PART_COUNT:
        break;
    }
    return 0;
}

static bool wanted(const struct dump_page *p)
{
    const struct snapshot *s = p->work.snapshot;
    struct bytes name =
        p->part == DUMP_CLUSTERS ? s->clusters[p->item].name : s->listeners[p->item].name;

    return filter_matches_bytes(&p->names, name);
}

static void begin_item(struct dump_page *p, struct admin_call *call)
{
    const struct snapshot *s = p->work.snapshot;

    p->inner = 0;
    if (p->part == DUMP_CLUSTERS)
        dump_cluster(call, &p->json, &s->clusters[p->item]);
    else if (p->part == DUMP_ROUTES)
        begin_routes(call, &p->json, &s->listeners[p->item]);
    else
        dump_listener(call, &p->json, &s->listeners[p->item]);
    p->in_item = p->part != DUMP_LISTENERS;
    p->item += !p->in_item;
}

/* The next endpoint or route, or the end of its cluster or listener. */
static void step_inner(struct dump_page *p, struct admin_call *call)
{
    const struct snapshot *s = p->work.snapshot;

    if (p->part == DUMP_CLUSTERS && p->inner < s->clusters[p->item].endpoint_count) {
        dump_endpoint(call, &p->json, &s->clusters[p->item].endpoints[p->inner++]);
    } else if (p->part == DUMP_ROUTES && p->inner < s->listeners[p->item].route_count) {
        dump_route(call, &p->json, &s->listeners[p->item].routes[p->inner++]);
    } else {
        end_cluster(call, &p->json);
        p->in_item = false;
        p->item++;
    }
}

static void begin_part(struct dump_page *p, struct admin_call *call)
{
    p->in_part = true;
    p->item = 0;
    page_room(call->page, ROOM);
    json_object(&p->json, NULL);
    json_text(&p->json, "@type", part_types[p->part]);
    if (p->part == DUMP_PROCESS)
        dump_process(call, &p->json);
    else
        json_array(&p->json, part_lists[p->part]);
}

static void end_part(struct dump_page *p, struct admin_call *call)
{
    page_room(call->page, ROOM);
    if (p->part != DUMP_PROCESS)
        json_array_end(&p->json);
    json_object_end(&p->json);
    p->in_part = false;
    p->part++;
}

/* False: that was all. */
static bool step(struct dump_page *p, struct admin_call *call)
{
    if (p->part == DUMP_PART_COUNT)
        return false;
    if (p->only != DUMP_PROCESS && p->part != p->only)
        p->part++;
    else if (!p->in_part)
        begin_part(p, call);
    else if (p->in_item)
        step_inner(p, call);
    else if (p->item == items_of(p))
        end_part(p, call);
    else if (wanted(p))
        begin_item(p, call);
    else
        p->item++;
    return true;
}

static enum work_state dump_more(struct admin_work *w, struct admin_call *call)
{
    struct dump_page *p = CONTAINER_OF(w, struct dump_page, work);

    page_room(call->page, ROOM);
    if (!p->begun) {
        json_init(&p->json, &call->page->text);
        json_object(&p->json, NULL);
        json_array(&p->json, "configs");
        p->begun = true;
    }
    while (step(p, call))
        if (!work_goes_on(call))
            return WORK_MORE;
    page_room(call->page, ROOM);
    json_array_end(&p->json);
    json_object_end(&p->json);
    text_char(&call->page->text, '\n');
    return WORK_DONE;
}

static void dump_free(struct admin_work *w)
{
    struct dump_page *p = CONTAINER_OF(w, struct dump_page, work);

    filter_release(&p->names);
    memory_give(p);
}

/* Reads "resource=". False: there is none of that name, and the call is answered. */
static bool read_resource(struct admin_call *call, enum dump_part *only)
{
    char room[64];
    struct bytes wanted = call_value(call, "resource", room, sizeof(room));

    *only = DUMP_PROCESS;
    if (!call_flag(call, "resource"))
        return true;
    for (unsigned i = DUMP_CLUSTERS; i < DUMP_PART_COUNT; i++) {
        *only = (enum dump_part)i;
        if (bytes_equal(wanted, bytes_of(part_lists[i])))
            return true;
    }
    call_refuse(call, 404,
                "not found in config dump; there are static_clusters, static_listeners and "
                "static_route_configs");
    return false;
}

void show_config(struct admin_call *call)
{
    enum dump_part only;
    struct dump_page *p;

    if (!read_resource(call, &only))
        return;
    if (call_flag(call, "mask")) {
        call_refuse(call, 400, "mask= is not supported; write resource= or name_regex=");
        return;
    }
    p = work_begin(call, sizeof(*p));
    if (p == NULL)
        return;
    p->work.more = dump_more;
    p->work.free = dump_free;
    p->only = only;
    if (!call_regex(call, "name_regex", &p->names))
        work_end(call);
    else
        call->type = ADMIN_JSON;
}
