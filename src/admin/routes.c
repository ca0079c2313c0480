/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/routes.h"

#include "admin/pages.h"
#include "admin/query.h"
#include "base/address.h"
#include "base/text.h"

const struct admin_route admin_routes[] = {
    {"/", ADMIN_GET, show_index, "this list, with links"},
    {"/clusters", ADMIN_GET, show_clusters,
     "clusters and hosts, who is ejected and why (?format=json, ?filter=REGEX)"},
    {"/clusters/*/hosts/*/drain", ADMIN_POST, drain_host,
     "no new requests to that host, by hand; what is under way ends, connections are closed"},
    {"/clusters/*/hosts/*/eject", ADMIN_POST, eject_host,
     "out as if by outlier detection, where its guards allow it"},
    {"/clusters/*/hosts/*/pardon", ADMIN_POST, pardon_host, "an ejected host is in again at once"},
    {"/clusters/*/hosts/*/undrain", ADMIN_POST, undrain_host, "takes that back"},
    {"/config_dump", ADMIN_GET, show_config,
     "the configuration in force as JSON (?resource=static_clusters, ?name_regex=REGEX)"},
    {"/drain_listeners", ADMIN_POST, start_drain,
     "stop listening, finish what is under way, then exit (?graceful, ?inboundonly: the same; "
     "?graceful&skip_exit: connections only, listening goes on)"},
    {"/events", ADMIN_GET, show_events,
     "every decision about a host as a server-sent event, as it is made (?since=N: from number N "
     "on, ?follow=no: ends with the newest one)"},
    {"/explain", ADMIN_GET, show_explain,
     "why a host is in or out, what guards would say, what was decided (?cluster=NAME, ?host=NAME, "
     "?format=json)"},
    {"/healthcheck/fail", ADMIN_POST, fail_healthcheck,
     "/ready says 503, each answer ends its connection; listening goes on"},
    {"/healthcheck/ok", ADMIN_POST, pass_healthcheck, "takes /healthcheck/fail back"},
    {"/help", ADMIN_GET, show_help, "this list"},
    {"/listeners", ADMIN_GET, show_listeners, "listeners and their addresses (?format=json)"},
    {"/logging", ADMIN_POST, set_logging,
     "level of the daemon's log (?level=debug|info|warning|error)"},
    {"/memory", ADMIN_GET, show_memory, "memory in use, as JSON"},
    {"/peers", ADMIN_GET, show_peers,
     "endpoints side by side by class: outcomes, latency as a multiple of their peers', share, "
     "state (?cluster=NAME, ?format=json)"},
    {"/quitquitquit", ADMIN_POST, start_quit, "exit at once"},
    {"/ready", ADMIN_GET, show_ready, "LIVE, or 503 and DRAINING"},
    {"/reload", ADMIN_POST, start_reload,
     "load the configuration anew; says OK once it is in force, or what is wrong with it"},
    {"/reset_counters", ADMIN_POST, reset_counters, "counters begin anew at zero; gauges stay"},
    {"/server_info", ADMIN_GET, show_server_info, "version, state and uptime as JSON"},
    {"/stats", ADMIN_GET, show_stats,
     "all metrics (?format=json|prometheus|html, ?filter=REGEX, ?usedonly, "
     "?histogram_buckets=cumulative|disjoint)"},
    {"/stats/prometheus", ADMIN_GET, show_prometheus,
     "all metrics for Prometheus (?filter=REGEX, ?usedonly)"},
};

const size_t admin_route_count = sizeof(admin_routes) / sizeof(admin_routes[0]);

/* Off the front of |*path|: up to the next '/', with it. */
static struct bytes take_segment(struct bytes *path)
{
    size_t end = bytes_find(*path, '/');
    struct bytes segment = bytes_slice(*path, 0, end);

    *path = bytes_skip(*path, end + 1);
    return segment;
}

static bool decode_part(struct bytes segment, struct text *room, struct bytes *part)
{
    size_t from = room->len;

    if (segment.len == 0 || !query_decode(segment, room))
        return false;
    *part = bytes_from(room->data + from, room->len - from);
    return true;
}

/* Both as if they had no '/' at their beginning. */
static bool path_fits(struct bytes pattern, struct bytes path, struct admin_call *call,
                      struct text *room)
{
    unsigned parts = 0;

    while (pattern.len > 0 && path.len > 0) {
        bool deeper = bytes_find(path, '/') < path.len;
        struct bytes wanted, segment;

        if (deeper != (bytes_find(pattern, '/') < pattern.len))
            return false;
        wanted = take_segment(&pattern);
        segment = take_segment(&path);
        if (bytes_equal(wanted, BYTES("*"))) {
            if (!decode_part(segment, room, &call->parts[parts++]))
                return false;
        } else if (!bytes_equal(wanted, segment)) {
            return false;
        }
    }
    return pattern.len == 0 && path.len == 0;
}

static const struct admin_route *find(struct bytes path, struct admin_call *call, struct text *room)
{
    for (size_t i = 0; bytes_start_with(path, BYTES("/")) && i < admin_route_count; i++) {
        struct bytes pattern = bytes_skip(bytes_of(admin_routes[i].path), 1);

        room->len = 0;
        room->failed = false;
        if (path_fits(pattern, bytes_skip(path, 1), call, room))
            return &admin_routes[i];
    }
    return NULL;
}

/* "localhost", 127.0.0.0/8, ::1; with or without a port. */
static bool is_loopback(struct bytes authority)
{
    struct bytes host = authority;
    struct address ip;
    uint16_t port;

    if (!address_split(authority, &host, &port) && authority.len > 2 && authority.data[0] == '[' &&
        authority.data[authority.len - 1] == ']')
        host = bytes_slice(authority, 1, authority.len - 2);
    if (bytes_equal_nocase(host, BYTES("localhost")))
        return true;
    return address_parse_ip(host, &ip) && address_is_loopback(&ip);
}

/* A browser names the site a request comes from; it must be this one. */
static bool is_same_origin(struct bytes origin, struct bytes authority)
{
    return bytes_start_with(origin, BYTES("http://")) &&
           bytes_equal_nocase(bytes_skip(origin, 7), authority);
}

static bool may_post(const struct message_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (bytes_equal_nocase(head->fields[i].name, BYTES("origin")) &&
            !is_same_origin(head->fields[i].value, head->authority))
            return false;
    return is_loopback(head->authority);
}

static void refuse_method(struct admin_call *call, struct bytes method, enum admin_method needed)
{
    call->status = 405;
    call->allow = needed == ADMIN_POST ? "POST" : "GET, HEAD, POST";
    page_str(call->page, "Method ");
    page_put(call->page, bytes_slice(method, 0, 32));
    page_str(call->page,
             needed == ADMIN_POST ? " not allowed, POST required." : " not allowed, GET required.");
}

static bool method_fits(enum method method, enum admin_method needed)
{
    if (method == METHOD_POST)
        return true;
    return needed == ADMIN_GET && (method == METHOD_GET || method == METHOD_HEAD);
}

void admin_answer(struct admin_call *call, const struct message_head *head)
{
    char parts[ADMIN_PART_ROOM];
    struct text room = {.data = parts, .room = sizeof(parts)};
    const struct admin_route *route = find(head->path, call, &room);

    if (route == NULL) {
        call->status = 404;
        page_str(call->page, "invalid path. ");
        show_help(call);
    } else if (!method_fits(head->method_id, route->method)) {
        refuse_method(call, head->method, route->method);
    } else if (head->method_id == METHOD_POST && !may_post(head)) {
        call_refuse(call, 403,
                    "POST needs a loopback Host (127.0.0.1, [::1] or localhost) and no Origin of "
                    "another site");
    } else {
        route->answer(call);
    }
    memset(call->parts, 0, sizeof(call->parts));
    if (call->page->text.failed)
        call_refuse(call, 503, "the answer is too large; narrow it by filter=");
}
