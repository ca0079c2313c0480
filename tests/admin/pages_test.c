/* SPDX-License-Identifier: Apache-2.0 */
/* The pages but /stats. */
#include "admin/work.h"
#include "admin/world.h"
#include "model/flags.h"

#include <jansson.h>

static struct cluster *own_cluster(uint32_t i)
{
    return (struct cluster *)(uintptr_t)&world.snapshot->clusters[i];
}

static void eject(uint32_t host)
{
    struct cluster_state *c = world.snapshot->clusters[0].state;

    c->hosts.at[host]->ejections = 3;
    c->hosts.at[host]->last_trigger = OUTLIER_CONSECUTIVE_GATEWAY;
    c->hosts.at[host]->ejected_at = START_AT - 1500 * NS_PER_MS;
    c->hosts.at[host]->eject_until = START_AT + 28500 * NS_PER_MS;
    host_set_health(&c->hosts, host, HOST_EJECTED);
}

static void clusters_are_told_line_by_line(void **state)
{
    static const char want[] =
        "shop:web::observability_name::shop_web\n"
        "shop:web::outlier::success_rate_average::-1\n"
        "shop:web::outlier::success_rate_ejection_threshold::-1\n"
        "shop:web::outlier::local_origin_success_rate_average::-1\n"
        "shop:web::outlier::local_origin_success_rate_ejection_threshold::-1\n"
        "shop:web::default_priority::max_connections::100\n"
        "shop:web::default_priority::max_pending_requests::10\n"
        "shop:web::default_priority::max_requests::4294967295\n"
        "shop:web::default_priority::max_retries::3\n"
        "shop:web::high_priority::max_connections::100\n"
        "shop:web::high_priority::max_pending_requests::10\n"
        "shop:web::high_priority::max_requests::4294967295\n"
        "shop:web::high_priority::max_retries::3\n"
        "shop:web::firebreak_in_use::connections::0\n"
        "shop:web::firebreak_in_use::pending_requests::0\n"
        "shop:web::firebreak_in_use::requests::0\n"
        "shop:web::firebreak_response_flags::UO::2\n"
        "shop:web::firebreak_response_flags::DC::1\n"
        "shop:web::added_via_api::false\n"
        "shop:web::firebreak_panic::leastBad\n"
        "shop:web::firebreak_panic_below_percent::50\n"
        "shop:web::firebreak_in_panic::true\n"
        "shop:web::firebreak_in_panic_ms::2500\n"
#define HOST "shop:web::10.0.0.1:8080::"
        HOST "cx_active::2\n" HOST "cx_connect_fail::0\n" HOST "cx_total::5\n" HOST
        "rq_active::0\n" HOST "rq_error::0\n" HOST "rq_pending_active::0\n" HOST
        "rq_success::0\n" HOST "rq_timeout::0\n" HOST "rq_total::0\n" HOST "hostname::\n" HOST
        "health_flags::healthy\n" HOST "weight::1\n" HOST "region::\n" HOST "zone::a\n" HOST
        "sub_zone::\n" HOST "canary::false\n" HOST "priority::0\n" HOST "success_rate::-1\n" HOST
        "local_origin_success_rate::-1\n" HOST "firebreak_ejections::0\n"
#undef HOST
#define HOST "shop:web::10.0.0.2:8080::"
        HOST "cx_active::0\n" HOST "cx_connect_fail::0\n" HOST "cx_total::0\n" HOST
        "rq_active::0\n" HOST "rq_error::0\n" HOST "rq_pending_active::0\n" HOST
        "rq_success::0\n" HOST "rq_timeout::0\n" HOST "rq_total::0\n" HOST
        "hostname::web.example.test\n" HOST "health_flags::/failed_outlier_check\n" HOST
        "weight::3\n" HOST "region::\n" HOST "zone::\n" HOST "sub_zone::\n" HOST
        "canary::false\n" HOST "priority::0\n" HOST "success_rate::-1\n" HOST
        "local_origin_success_rate::-1\n" HOST "firebreak_ejections::3\n" HOST
        "firebreak_last_trigger::consecutive_gateway_failure\n" HOST
        "firebreak_ejected_ms_ago::1500\n" HOST "firebreak_back_in_ms::28500\n";
#undef HOST
    struct cluster_state *c = world.snapshot->clusters[0].state;
    (void)state;

    own_cluster(0)->panic = (struct panic_config){PANIC_LEAST_BAD, 50};
    c->panic_since = START_AT - 2500 * NS_PER_MS;
    flag_cells_add(&c->cells[0]->flags, FLAG_UO | FLAG_DC);
    flag_cells_add(&c->cells[1]->flags, FLAG_UO);
    cell_add(&host_state_of(c->hosts.at[0])->cells[0].at[ENDPOINT_cx_total], 2);
    cell_add(&host_state_of(c->hosts.at[0])->cells[1].at[ENDPOINT_cx_total], 3);
    cell_add(&host_state_of(c->hosts.at[0])->cells[1].at[ENDPOINT_cx_active], 2);
    eject(1);
    assert_string_equal(body_of(get("/clusters?filter=%5Eshop")), want);
    assert_no(body_of(get("/clusters?filter=%5Eb$")), "outlier::"); /* it has no detector */
    assert_non_null(strstr(body_of(get("/clusters")), want));
}

/* An ejection whose time is over: the sweep has not come round yet. */
static void what_is_left_of_an_ejection_is_not_negative(void **state)
{
    (void)state;
    eject(0);
    turn_at(START_AT + 29 * NS_PER_S);
    assert_line(body_of(get("/clusters")), "shop:web::10.0.0.1:8080::firebreak_back_in_ms::0");
}

static json_t *first_with(json_t *array, const char *key, const char *value)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *one = json_array_get(array, i);

        if (strcmp(json_string_value(json_object_get(one, key)), value) == 0)
            return one;
    }
    fail_msg("no %s", value);
    return NULL;
}

static void clusters_are_told_as_json(void **state)
{
    json_t *page, *cluster, *hosts, *host, *stat, *thresholds;
    struct cluster_state *c = world.snapshot->clusters[0].state;
    (void)state;

    eject(1);
    cell_add(&host_state_of(c->hosts.at[1])->cells[0].at[ENDPOINT_cx_total], 2);
    cell_add(&host_state_of(c->hosts.at[1])->cells[0].at[ENDPOINT_rq_active], 1);
    page = json_loads(body_of(get("/clusters?format=json")), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(page);
    cluster = first_with(json_object_get(page, "cluster_statuses"), "name", "shop:web");
    assert_string_equal(json_string_value(json_object_get(cluster, "observability_name")),
                        "shop_web");
    thresholds = json_object_get(json_object_get(cluster, "circuit_breakers"), "thresholds");
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(thresholds, 0), "max_connections")), 100);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(thresholds, 1), "priority")), "HIGH");
    hosts = json_object_get(cluster, "host_statuses");
    assert_int_equal(json_array_size(hosts), 2);
    host = json_array_get(hosts, 1);
    assert_string_equal(
        json_string_value(json_object_get(
            json_object_get(json_object_get(host, "address"), "socket_address"), "address")),
        "10.0.0.2");
    assert_int_equal(
        json_integer_value(json_object_get(
            json_object_get(json_object_get(host, "address"), "socket_address"), "port_value")),
        8080);
    stat = first_with(json_object_get(host, "stats"), "name", "cx_total");
    assert_string_equal(json_string_value(json_object_get(stat, "value")), "2");
    assert_null(json_object_get(stat, "type"));
    stat = first_with(json_object_get(host, "stats"), "name", "rq_active");
    assert_string_equal(json_string_value(json_object_get(stat, "type")), "GAUGE");
    stat = first_with(json_object_get(host, "stats"), "name", "rq_error");
    assert_null(json_object_get(stat, "value")); /* zeros are left out */
    assert_true(json_is_true(
        json_object_get(json_object_get(host, "health_status"), "failed_outlier_check")));
    assert_null(json_object_get(json_object_get(json_array_get(hosts, 0), "health_status"),
                                "failed_outlier_check"));
    assert_int_equal(json_integer_value(json_object_get(host, "weight")), 3);
    assert_string_equal(json_string_value(json_object_get(host, "hostname")), "web.example.test");
    host = json_object_get(host, "firebreak");
    assert_true(json_is_true(json_object_get(host, "ejected")));
    assert_int_equal(json_integer_value(json_object_get(host, "back_in_ms")), 28500);
    json_decref(page);
    assert_string_equal(body_of(get("/clusters?format=json&filter=none_such")),
                        "{\"cluster_statuses\":[]}\n");
}

static void unix_endpoints_are_shown_as_pipes(void **state)
{
    struct endpoint *e = (struct endpoint *)(uintptr_t)&world.snapshot->clusters[1].endpoints[0];
    (void)state;

    e->address = (struct address){.kind = ADDRESS_UNIX, .path = "/run/app.sock"};
    e->text = BYTES("unix:/run/app.sock");
    assert_non_null(strstr(body_of(get("/clusters?format=json")),
                           "\"address\":{\"pipe\":{\"path\":\"/run/app.sock\"}}"));
    assert_line(body_of(get("/clusters")), "b::unix:/run/app.sock::cx_total::0");
}

static void listeners_show_where_they_really_are(void **state)
{
    json_t *page, *one;
    (void)state;

    assert_string_equal(body_of(get("/listeners")), "web::0.0.0.0:8080\nsix::[::1]:81\n");
    page = json_loads(body_of(get("/listeners?format=json")), 0, NULL);
    one = json_array_get(json_object_get(page, "listener_statuses"), 0);
    assert_string_equal(json_string_value(json_object_get(one, "name")), "web");
    one = json_object_get(json_object_get(one, "local_address"), "socket_address");
    assert_int_equal(json_integer_value(json_object_get(one, "port_value")), 8080);
    json_decref(page);
}

static void server_info_is_envoys(void **state)
{
    (void)state;
    turn_at(START_AT + 61 * NS_PER_S);
    assert_string_equal(body_of(get("/server_info")),
                        "{\"version\":\"firebreak/" FIREBREAK_VERSION
                        "\",\"state\":\"LIVE\",\"uptime_current_epoch\":\"61s\","
                        "\"uptime_all_epochs\":\"61s\",\"hot_restart_version\":\"disabled\","
                        "\"command_line_options\":{\"concurrency\":2},\"node\":{}}\n");
    world.process->draining = true;
    assert_non_null(strstr(body_of(get("/server_info")), "\"state\":\"DRAINING\""));
    assert_line(body_of(get("/stats")), "server.state: 1");
    assert_line(body_of(get("/stats")), "server.live: 0");
}

#define MANY 10000

static void make_many_hosts(void)
{
    struct cluster *c = own_cluster(1);
    struct endpoint *all = arena_take(&world.snapshot->arena, MANY * sizeof(*all));

    for (unsigned i = 0; i < MANY; i++) {
        all[i] = c->endpoints[0];
        all[i].slot = i;
    }
    cluster_state_drop(c->state);
    c->endpoints = all;
    c->endpoint_count = MANY;
    c->state = cluster_state_create(MANY, WORKERS);
    c->hosts = c->state->hosts;
}

static size_t lines_in(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* A piece a turn, the next only when the one before is taken. */
static void a_large_page_is_made_and_sent_in_pieces(void **state)
{
    struct fake_link *l = connect_client();
    size_t turns = 0;
    (void)state;

    make_many_hosts();
    l->room = 1000;
    send_text(l, "GET /clusters?filter=%5Eb$ HTTP/1.1\r\nhost: x\r\n\r\n");
    for (int i = 0; i < 10; i++)
        turn(NULL);
    assert_int_equal(l->out_len, 1000); /* and no more is made for who takes no more */
    take_more(l, ANY_ROOM);
    for (; unchunked(l->out) == NULL; turns++) {
        size_t before = l->out_len;

        turn(NULL);
        assert_in_range(l->out_len - before, 1, WORK_PIECE + 8192);
    }
    assert_in_range(turns, 50, 1000);
    assert_non_null(
        strstr(l->out, "b::firebreak_limit_reached::http1MaxPendingRequests: 0 of 0, 503 UO\n"));
    assert_non_null(
        strstr(l->out, "b::firebreak_limit_reached::http2MaxRequests: 0 of 0, 503 UO\n"));
    assert_int_equal(lines_in(body_of(l->out)), 19 + MANY * 20);
    forget_output(l);
    send_text(l, "GET /ready HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_string_equal(body_of(l->out), "LIVE\n");
}

/* Each look at the clock costs half a millisecond. */
static mono_ns slow_clock_read(struct clock *c)
{
    (void)c;
    return world.now += NS_PER_MS / 2;
}

static void a_page_that_takes_long_is_made_in_slices(void **state)
{
    static const char *const pages[] = {
        "/clusters",          "/clusters?format=json", "/stats",
        "/stats?format=json", "/stats/prometheus",     "/config_dump"};
    (void)state;

    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {

        char *at_once = strdup(body_of(get(pages[i])));
        struct fake_link *l = connect_client();
        char request[200];
        unsigned turns = 0;

        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nhost: x\r\n\r\n", pages[i]);
        world.clock.read = slow_clock_read;
        send_text(l, request);
        while (l->out == NULL || unchunked(l->out) == NULL) {
            mono_ns before = world.now;

            turn(NULL);
            turns++;
            assert_in_range(world.now - before, 0, WORK_SLICE + 2 * NS_PER_MS);
        }
        world.clock.read = fake_clock_read;
        assert_true(turns > 0);
        assert_int_equal(lines_in(body_of(l->out)), lines_in(at_once));
        free(at_once);
    }
}

/* Two connections, one page each: by turns. */
static void slices_are_given_by_turns(void **state)
{
    struct fake_link *l[2] = {connect_client(), connect_client()};
    (void)state;

    make_many_hosts();
    for (int i = 0; i < 2; i++)
        send_text(l[i], "GET /clusters HTTP/1.1\r\nhost: x\r\n\r\n");
    for (int i = 0; i < 20; i++) {
        size_t before = l[0]->out_len + l[1]->out_len;

        turn(NULL);
        assert_in_range(l[0]->out_len + l[1]->out_len - before, 1, WORK_PIECE + 8192);
    }
    assert_in_range(l[0]->out_len, l[1]->out_len - 3 * WORK_PIECE, l[1]->out_len + 3 * WORK_PIECE);
    turn_at(START_AT + 61 * NS_PER_S); /* not whole in time: cut */
    assert_true(l[0]->aborted && l[1]->aborted);
}

/* HTTP/1.0 has no chunks: the end of the connection is that of the page. HEAD has no body. */
static void large_pages_for_old_clients_and_for_head(void **state)
{
    struct fake_link *old = connect_client(), *head = connect_client();
    (void)state;

    make_many_hosts();
    send_text(old, "GET /clusters HTTP/1.0\r\nhost: x\r\n\r\n");
    while (!old->shut)
        turn(NULL);
    assert_non_null(strstr(old->out, "\r\nconnection: close\r\n"));
    assert_null(strstr(old->out, "transfer-encoding"));
    assert_true(lines_in(body_of(old->out)) > MANY * 20);
    end(old);
    send_text(head, "HEAD /clusters HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_string_equal(body_of(head->out), "");
    forget_output(head);
    send_text(head, "GET /ready HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_string_equal(body_of(head->out), "LIVE\n");
}

/* --- actions --- */

static const char *post(const char *target)
{
    struct fake_link *l = connect_client();
    char request[300];

    snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\nhost: localhost:9901\r\n\r\n", target);
    send_text(l, request);
    assert_non_null(l->out);
    end(l);
    return l->out;
}

static void healthcheck_fail_makes_it_draining_until_ok(void **state)
{
    (void)state;
    assert_string_equal(body_of(post("/healthcheck/fail")), "OK\n");
    assert_int_equal(world.process->health_failed, 1);
    assert_int_equal(status_of(get("/ready")), 503);
    assert_string_equal(body_of(get("/ready")), "DRAINING\n");
    assert_line(body_of(get("/stats")), "server.state: 1");
    assert_false(world.process->draining); /* nobody stops listening */
    assert_int_equal(world.told_count, 0);
    assert_string_equal(body_of(post("/healthcheck/ok")), "OK\n");
    assert_string_equal(body_of(get("/ready")), "LIVE\n");
}

static void counters_begin_anew_and_gauges_stay(void **state)
{
    struct cluster_state *c = world.snapshot->clusters[0].state;
    struct host_state *h = host_state_of(c->hosts.at[0]);
    struct listener_state *l = world.snapshot->listeners[0].state;
    (void)state;

    cell_add(&c->cells[0]->at[CLUSTER_upstream_rq_total], 5);
    cell_add(&c->cells[1]->at[CLUSTER_upstream_rq_total], 7);
    cell_add(&c->cells[1]->at[CLUSTER_upstream_rq_active], 2);
    flag_cells_add(&c->cells[1]->flags, FLAG_UT);
    flag_cells_add(&l->cells[1]->flags, FLAG_UT | FLAG_DC);
    status_cells_add_many(&c->cells[0]->statuses, 503, 4);
    status_cells_add_many(&c->cells[1]->statuses, 503, 1);
    status_cells_add_many(&c->cells[1]->statuses, 200, 6);
    cell_add(&c->outlier[OUTLIER_STAT_ejections_enforced_total], 3);
    cell_add(&c->outlier[OUTLIER_STAT_ejections_active], 1);
    cell_add(&h->cells[1].at[ENDPOINT_rq_total], 9);
    cell_add(&h->cells[1].at[ENDPOINT_rq_active], 1);
    cell_add(&l->cells[0]->at[HTTP_downstream_rq_total], 8);
    cell_add(&world.process->worker_cells[1].at[WORKER_turns], 10);
    assert_line(body_of(get("/stats")), "cluster.shop_web.upstream_rq_503: 5");
    assert_line(body_of(get("/stats")), "firebreak.access_log_lines: 12");
    assert_line(body_of(get("/stats")), "cluster.shop_web.response_flags.UT: 1");
    assert_line(body_of(get("/stats")), "http.web.response_flags.DC: 1");
    assert_line(body_of(get("/stats/prometheus")),
                "firebreak_cluster_response_flags_total{flag=\"UT\",cluster=\"shop:web\"} 1");
    assert_string_equal(body_of(post("/reset_counters")), "OK\n");
    assert_no(body_of(get("/stats")), "upstream_rq_503");
    assert_no(body_of(get("/stats")), "response_flags");
    cell_add(&c->cells[1]->at[CLUSTER_upstream_rq_total], 1);
    status_cells_add(&c->cells[1]->statuses, 200);
    cell_add(&h->cells[0].at[ENDPOINT_rq_total], 2);
    cell_add(&l->cells[1]->at[HTTP_downstream_rq_total], 1);

    const char *stats = body_of(get("/stats"));

    assert_line(stats, "cluster.shop_web.upstream_rq_total: 1");
    assert_line(stats, "cluster.shop_web.upstream_rq_active: 2");
    assert_line(stats, "cluster.shop_web.upstream_rq_200: 1");
    assert_line(stats, "cluster.shop_web.outlier_detection.ejections_enforced_total: 0");
    assert_line(stats, "cluster.shop_web.outlier_detection.ejections_active: 1");
    assert_line(stats, "http.web.downstream_rq_total: 1");
    assert_line(stats, "firebreak.worker.1.turns: 0");
    assert_line(stats, "firebreak.access_log_lines: 0");
    assert_line(body_of(get("/clusters")), "shop:web::10.0.0.1:8080::rq_total::2");
    assert_line(body_of(get("/clusters")), "shop:web::10.0.0.1:8080::rq_active::1");
    post("/reset_counters");
    assert_line(body_of(get("/stats")), "cluster.shop_web.upstream_rq_total: 0");
}

static void draining_takes_envoys_parameters_or_refuses_them(void **state)
{
    (void)state;
    assert_string_equal(body_of(post("/drain_listeners?skip_exit")),
                        "skip_exit requires graceful\n");
    assert_int_equal(status_of(post("/drain_listeners?skip_exit&inboundonly")), 400);
    assert_false(world.process->draining);
    assert_string_equal(body_of(post("/drain_listeners?graceful&inboundonly")), "OK\n");
    assert_true(world.process->draining);
    assert_int_equal(world.told[0].kind, MESSAGE_DRAIN);
}

static void draining_with_skip_exit_leaves_listeners_open(void **state)
{
    (void)state;
    assert_string_equal(body_of(post("/drain_listeners?graceful&skip_exit")), "OK\n");
    assert_int_equal(world.told[0].kind, MESSAGE_SHED);
    assert_int_equal(status_of(get("/ready")), 503);
    assert_string_equal(body_of(post("/drain_listeners")), "OK\n");
    assert_int_equal(world.told[0].kind, MESSAGE_DRAIN);
}

static void the_level_of_the_log_is_shown_and_set(void **state)
{
    (void)state;
    assert_string_equal(body_of(post("/logging")), "active loggers:\n  firebreak: off\n");
    assert_int_equal(status_of(post("/logging?level=trace")), 400);
    assert_int_equal(status_of(post("/logging?upstream=debug")), 400);
    assert_int_equal(status_of(post("/logging?level=debug")), 200);
}

static void memory_is_told_as_envoy_does(void **state)
{
    (void)state;
    assert_string_equal(
        body_of(get("/memory")),
        "{\"allocated\":\"1001\",\"heap_size\":\"2002\",\"pageheap_unmapped\":\"0\","
        "\"pageheap_free\":\"0\",\"total_thread_cache\":\"0\","
        "\"total_physical_bytes\":\"3003\"}\n");
}

static void the_index_links_what_can_be_read(void **state)
{
    const char *page = get("/");
    (void)state;

    assert_non_null(strstr(page, "content-type: text/html"));
    assert_non_null(strstr(page, "<a href=\"/stats/prometheus\">/stats/prometheus</a>"));
    assert_non_null(strstr(page, "POST /quitquitquit"));
    assert_null(strstr(page, "href=\"/quitquitquit"));
}

/* --- /config_dump --- */

static json_t *shown; /* the last dump: what config_of gives is a part of it */

static json_t *config_of(const char *target, size_t part)
{
    json_decref(shown);
    shown = json_loads(body_of(get(target)), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(shown);
    return json_array_get(json_object_get(shown, "configs"), part);
}

static size_t listed(json_t *part, const char *list)
{
    return json_array_size(json_object_get(part, list));
}

static void the_configuration_is_shown_whole_or_in_part(void **state)
{
    (void)state;
    assert_int_equal(listed(config_of("/config_dump", 1), "static_clusters"), 2);
    assert_int_equal(listed(config_of("/config_dump", 2), "static_listeners"), 2);
    assert_int_equal(listed(config_of("/config_dump", 3), "static_route_configs"), 2);
    assert_int_equal(
        listed(config_of("/config_dump?resource=static_clusters", 0), "static_clusters"), 2);
    assert_null(config_of("/config_dump?resource=static_clusters", 1));
    assert_int_equal(listed(config_of("/config_dump?name_regex=%5Eb$", 1), "static_clusters"), 1);
    assert_int_equal(listed(config_of("/config_dump?name_regex=%5Eb$", 2), "static_listeners"), 0);
    assert_int_equal(status_of(get("/config_dump?resource=dynamic_clusters")), 404);
    assert_int_equal(status_of(get("/config_dump?mask=a")), 400);
    assert_int_equal(status_of(get("/config_dump?name_regex=(")), 400);
}

static void the_configuration_of_a_cluster_is_told_in_envoys_words(void **state)
{
    json_t *clusters = json_object_get(config_of("/config_dump", 1), "static_clusters");
    json_t *c = json_object_get(json_array_get(clusters, 0), "cluster");
    json_t *limits =
        json_array_get(json_object_get(json_object_get(c, "circuit_breakers"), "thresholds"), 0);
    json_t *outlier = json_object_get(c, "outlier_detection");
    json_t *second = json_array_get(json_object_get(c, "endpoints"), 1);
    (void)state;

    assert_string_equal(json_string_value(json_object_get(c, "name")), "shop:web");
    assert_int_equal(json_integer_value(json_object_get(limits, "max_pending_requests")), 10);
    assert_string_equal(json_string_value(json_object_get(outlier, "interval")), "10s");
    assert_int_equal(json_integer_value(json_object_get(outlier, "max_ejection_percent")), 50);
    assert_string_equal(json_string_value(json_object_get(second, "hostname")), "web.example.test");
    assert_null(json_object_get(json_object_get(json_array_get(clusters, 1), "cluster"),
                                "outlier_detection"));
}

static const char *post_host(const char *path)
{
    char target[200];

    snprintf(target, sizeof(target), "/clusters/%s", path);
    return post(target);
}

static void a_host_is_drained_by_hand_and_shown_so(void **state)
{
    struct cluster_state *c = world.snapshot->clusters[0].state;
    (void)state;

    c->hosts.at[0]->in_flight = 3;
    assert_non_null(strstr(post_host("shop:web/hosts/10.0.0.1:8080/drain"),
                           "draining: 3 requests and 0 connections left\n"));
    turn_at(START_AT + 1500 * NS_PER_MS);
#define HOST "shop:web::10.0.0.1:8080::"
    assert_line(body_of(get("/clusters")), HOST "health_flags::/eds_status_draining");
    assert_line(body_of(get("/clusters")), HOST "firebreak_draining_ms::1500");
    assert_line(body_of(get("/clusters")), HOST "firebreak_drain_requests_left::3");
    assert_line(body_of(get("/clusters")), HOST "firebreak_drain_connections_left::0");
    assert_line(body_of(get("/clusters")), HOST "firebreak_ejections::0");
    eject(0);
    assert_line(body_of(get("/clusters")),
                HOST "health_flags::/failed_outlier_check/eds_status_draining");
    assert_non_null(
        strstr(body_of(get("/clusters?format=json")), "\"eds_health_status\":\"DRAINING\""));
    assert_non_null(strstr(body_of(get("/clusters?format=json")),
                           "\"drain\":{\"ms\":1500,\"requests_left\":3,\"connections_left\":0}"));
    assert_non_null(strstr(post_host("shop:web/hosts/10.0.0.1:8080/undrain"),
                           "no longer draining, but ejected\n"));
    assert_line(body_of(get("/clusters")), HOST "health_flags::/failed_outlier_check");
    assert_no(body_of(get("/clusters")), "firebreak_drain");
#undef HOST
    c->hosts.at[0]->in_flight = 0;
}

static void a_host_is_drained_when_its_last_connection_is_gone(void **state)
{
    struct host_state *h = host_state_of(world.snapshot->clusters[0].state->hosts.at[0]);
    (void)state;

    cell_add(&h->cells[1].at[ENDPOINT_cx_active], 1);
    post_host("shop:web/hosts/10.0.0.1:8080/drain");
    turn_at(START_AT + NS_PER_S);
    assert_false(h->drained);
    cell_sub(&h->cells[1].at[ENDPOINT_cx_active], 1);
    turn_at(START_AT + 2 * NS_PER_S);
    assert_true(h->drained);
}

static void a_host_is_ejected_by_hand_as_far_as_the_guards_allow(void **state)
{
    const char *said = post_host("shop:web/hosts/10.0.0.1:8080/eject");
    (void)state;

    assert_int_equal(status_of(said), 409);
    assert_non_null(strstr(said, "refused\nnot ejected, because of few_healthy\n"));
    said = post_host("shop:web/hosts/10.0.0.1:8080/pardon");
    assert_int_equal(status_of(said), 200);
    assert_non_null(strstr(said, "it was not ejected\n"));
}

static void who_names_no_host_is_told_so(void **state)
{
    const char *said = post_host("shop/hosts/10.0.0.1:8080/drain");
    (void)state;

    assert_non_null(strstr(said, "HTTP/1.1 404"));
    assert_non_null(strstr(said, "no such cluster\nclusters are: shop:web b\n"));
    said = post_host("shop:web/hosts/10.0.0.9:8080/drain");
    assert_non_null(strstr(said, "HTTP/1.1 404"));
    assert_non_null(strstr(said, "the cluster has no such host"));
    assert_non_null(strstr(get("/clusters/shop:web/hosts/10.0.0.1:8080/drain"), "HTTP/1.1 405"));
    assert_int_equal(host_health(world.snapshot->clusters[0].state->hosts.at[0]), HOST_HEALTHY);
    assert_non_null(strstr(post_host("b/hosts/10.0.0.3:80/undrain"), "404"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start_admin, stop_admin)
    const struct CMUnitTest tests[] = {
        T(clusters_are_told_line_by_line),
        T(what_is_left_of_an_ejection_is_not_negative),
        T(clusters_are_told_as_json),
        T(a_host_is_drained_by_hand_and_shown_so),
        T(a_host_is_drained_when_its_last_connection_is_gone),
        T(a_host_is_ejected_by_hand_as_far_as_the_guards_allow),
        T(who_names_no_host_is_told_so),
        T(unix_endpoints_are_shown_as_pipes),
        T(listeners_show_where_they_really_are),
        T(server_info_is_envoys),
        T(a_large_page_is_made_and_sent_in_pieces),
        T(a_page_that_takes_long_is_made_in_slices),
        T(slices_are_given_by_turns),
        T(large_pages_for_old_clients_and_for_head),
        T(healthcheck_fail_makes_it_draining_until_ok),
        T(counters_begin_anew_and_gauges_stay),
        T(draining_takes_envoys_parameters_or_refuses_them),
        T(draining_with_skip_exit_leaves_listeners_open),
        T(the_level_of_the_log_is_shown_and_set),
        T(memory_is_told_as_envoy_does),
        T(the_index_links_what_can_be_read),
        T(the_configuration_is_shown_whole_or_in_part),
        T(the_configuration_of_a_cluster_is_told_in_envoys_words),
    };
#undef T

    int failed = cmocka_run_group_tests_name("admin pages", tests, NULL, NULL);

    json_decref(shown);
    return failed;
}
