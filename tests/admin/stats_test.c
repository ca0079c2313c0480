/* SPDX-License-Identifier: Apache-2.0 */
/* /stats in its three forms: names, values, order, filters. */
#include "admin/world.h"

#include <jansson.h>

static struct cluster_cells *cells(unsigned cluster, unsigned worker)
{
    return world.snapshot->clusters[cluster].state->cells[worker];
}

static void count(void)
{
    struct http_cells *http = world.snapshot->listeners[0].state->cells[1];

    cell_add(&cells(0, 0)->at[CLUSTER_upstream_rq_total], 3);
    cell_add(&cells(0, 1)->at[CLUSTER_upstream_rq_total], 4);
    cell_add(&cells(0, 0)->at[CLUSTER_upstream_cx_active], 5); /* opened by one, */
    cell_sub(&cells(0, 1)->at[CLUSTER_upstream_cx_active], 2); /* closed by the other */
    cell_add(&cells(0, 0)->at[CLUSTER_upstream_rq_5xx], 2);
    cell_add(&cells(0, 1)->at[CLUSTER_connect_failover], 6);
    status_cells_add(&cells(0, 0)->statuses, 503);
    status_cells_add(&cells(0, 1)->statuses, 503);
    status_cells_add(&cells(0, 1)->statuses, 200);
    cell_add(&http->at[HTTP_downstream_rq_2xx], 8);
    cell_add(&http->at[HTTP_downstream_cx_total], 9);
    cell_add(&http->at[HTTP_downstream_cx_active], 2);
    cell_add(&http->at[HTTP_no_route], 1);
    cell_add(&world.process->worker_cells[1].at[WORKER_records_dropped], 11);
    cell_add(&world.snapshot->clusters[0].state->outlier[OUTLIER_STAT_ejections_active], 1);
    cell_add(
        &host_state_of(world.snapshot->clusters[0].hosts.at[1])->cells[1].at[ENDPOINT_rq_error],
        21);
}

static void text_names_are_envoys(void **state)
{
    static const char *const lines[] = {
        "cluster.shop_web.upstream_rq_total: 7",
        "cluster.shop_web.upstream_cx_active: 3",
        "cluster.shop_web.upstream_rq_5xx: 2",
        "cluster.shop_web.upstream_rq_503: 2",
        "cluster.shop_web.upstream_rq_200: 1",
        "cluster.shop_web.external.upstream_rq_200: 1",
        "cluster.shop_web.connect_failover: 6",
        "cluster.shop_web.membership_total: 2",
        "cluster.shop_web.membership_change: 1",
        "cluster.shop_web.membership_healthy: 2",
        "cluster.shop_web.outlier_detection.ejections_active: 1",
        "cluster.shop_web.circuit_breakers.default.cx_open: 0",
        "cluster.shop_web.circuit_breakers.default.remaining_cx: 100",
        "cluster.shop_web.circuit_breakers.default.remaining_pending: 10",
        "cluster.shop_web.circuit_breakers.default.rq_open: 0",
        "cluster.b.upstream_rq_total: 0",
        "http.web.downstream_rq_2xx: 8",
        "http.web.no_route: 1",
        "listener.0.0.0.0_8080.downstream_cx_total: 9",
        "listener.0.0.0.0_8080.downstream_cx_active: 2",
        "listener.0.0.0.0_8080.http.web.downstream_rq_2xx: 8",
        "listener.[__1]_81.downstream_cx_total: 0",
        "server.live: 1",
        "server.state: 0",
        "server.uptime: 75",
        "server.concurrency: 2",
        "server.total_connections: 2",
        "server.memory_allocated: 1001",
        "server.memory_heap_size: 2002",
        "firebreak.worker.1.records_dropped: 11",
        "firebreak.access_log_lines: 12",
        "firebreak.open_descriptors: 44",
        "firebreak.config_version: 4",
    };
    const char *body;
    (void)state;

    count();
    turn_at(START_AT + 75 * NS_PER_S + 900 * NS_PER_MS);
    body = body_of(get("/stats"));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_line(body, lines[i]);
    assert_no(body, "endpoint"); /* as with Envoy, only for Prometheus */
}

static void lines_are_sorted_histograms_last(void **state)
{
    char *body, *line, *save, before[2048] = "";
    bool histograms = false;
    (void)state;

    body = strdup(body_of(get("/stats")));
    for (line = strtok_r(body, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        bool is_histogram = strstr(line, ": No recorded values") != NULL;

        *strchr(line, ':') = '\0';
        assert_true(is_histogram || !histograms);
        if (is_histogram == histograms)
            assert_true(strcmp(before, line) < 0);
        histograms = is_histogram;
        snprintf(before, sizeof(before), "%s", line);
    }
    assert_true(histograms);
    free(body);
}

static void text_histograms_show_quantiles_in_ms(void **state)
{
    const char *body;
    (void)state;

    for (uint64_t us = 1; us <= 60; us++)
        histogram_record(&cells(0, us % 2)->rq_time, us);
    body = body_of(get("/stats?filter=shop_web.upstream_rq_time$"));
    assert_string_equal(body, "cluster.shop_web.upstream_rq_time: P0(nan,0.001) P25(nan,0.015) "
                              "P50(nan,0.03) P75(nan,0.045) P90(nan,0.054) P95(nan,0.057) "
                              "P99(nan,0.06) P99.5(nan,0.06) P99.9(nan,0.06) P100(nan,0.06)\n");
    assert_line(body_of(get("/stats")), "cluster.b.upstream_rq_time: No recorded values");
}

static void a_filter_is_a_regex_that_matches_anywhere(void **state)
{
    (void)state;
    assert_string_equal(body_of(get("/stats?filter=%5Eserver.(live%7Cstate)$")),
                        "server.live: 1\nserver.state: 0\n");
    assert_string_equal(body_of(get("/stats?filter=nothing_is_called_so")), "");
    assert_int_equal(status_of(get("/stats?filter=(")), 400);
    assert_memory_equal(body_of(get("/stats?filter=(")), "Invalid regex\n", 14);
    assert_int_equal(status_of(get("/stats?filter=%zz")), 400);
    assert_int_equal(status_of(get("/stats/prometheus?filter=%5B")), 400);
}

static void used_only_leaves_out_what_is_zero(void **state)
{
    const char *body;
    (void)state;

    count();
    histogram_record(&cells(0, 0)->connect_ms, 10);
    body = body_of(get("/stats?usedonly&filter=cluster"));
    assert_string_equal(body, "cluster.b.circuit_breakers.default.remaining_cx: 4294967295\n"
                              "cluster.b.circuit_breakers.default.rq_open: 1\n"
                              "cluster.b.circuit_breakers.default.rq_pending_open: 1\n"
                              "cluster.b.circuit_breakers.default.rq_retry_open: 1\n"
                              "cluster.b.membership_change: 1\n"
                              "cluster.b.membership_healthy: 1\n"
                              "cluster.b.membership_total: 1\n"
                              "cluster.shop_web.circuit_breakers.default.remaining_cx: 100\n"
                              "cluster.shop_web.circuit_breakers.default.remaining_pending: 10\n"
                              "cluster.shop_web.circuit_breakers.default.remaining_retries: 3\n"
                              "cluster.shop_web.circuit_breakers.default.remaining_rq: 4294967295\n"
                              "cluster.shop_web.connect_failover: 6\n"
                              "cluster.shop_web.external.upstream_rq_200: 1\n"
                              "cluster.shop_web.external.upstream_rq_503: 2\n"
                              "cluster.shop_web.external.upstream_rq_5xx: 2\n"
                              "cluster.shop_web.membership_change: 1\n"
                              "cluster.shop_web.membership_healthy: 2\n"
                              "cluster.shop_web.membership_total: 2\n"
                              "cluster.shop_web.outlier_detection.ejections_active: 1\n"
                              "cluster.shop_web.upstream_cx_active: 3\n"
                              "cluster.shop_web.upstream_rq_200: 1\n"
                              "cluster.shop_web.upstream_rq_503: 2\n"
                              "cluster.shop_web.upstream_rq_5xx: 2\n"
                              "cluster.shop_web.upstream_rq_total: 7\n"
                              "cluster.shop_web.upstream_cx_connect_ms: P0(nan,0.01) "
                              "P25(nan,0.01) P50(nan,0.01) P75(nan,0.01) P90(nan,0.01) "
                              "P95(nan,0.01) P99(nan,0.01) P99.5(nan,0.01) P99.9(nan,0.01) "
                              "P100(nan,0.01)\n");
}

static void breakers_open_at_their_limits(void **state)
{
    struct cluster_state *c = world.snapshot->clusters[0].state;
    const char *body;
    (void)state;

    for (int i = 0; i < 100; i++)
        assert_true(limit_take(&c->connections, 100));
    for (int i = 0; i < 9; i++)
        assert_true(limit_take(&c->pending, 10));
    body = body_of(get("/stats?filter=shop_web.circuit"));
    assert_line(body, "cluster.shop_web.circuit_breakers.default.cx_open: 1");
    assert_line(body, "cluster.shop_web.circuit_breakers.default.remaining_cx: 0");
    assert_line(body, "cluster.shop_web.circuit_breakers.default.rq_pending_open: 0");
    assert_line(body, "cluster.shop_web.circuit_breakers.default.remaining_pending: 1");
    limit_take(&c->pending, 10);
    body = body_of(get("/stats?filter=pending"));
    assert_line(body, "cluster.shop_web.circuit_breakers.default.rq_pending_open: 1");
    for (int i = 0; i < 50; i++) /* the limit was lowered meanwhile */
        limit_take(&c->connections, 200);
    assert_line(body_of(get("/stats?filter=shop_web.circuit")),
                "cluster.shop_web.circuit_breakers.default.remaining_cx: 0");
    assert_line(body, "cluster.b.circuit_breakers.default.rq_pending_open: 1"); /* a limit of 0 */
}

/* Read while one worker was between the other's opening and its own closing. */
static void a_gauge_is_never_shown_negative(void **state)
{
    (void)state;
    cell_sub(&cells(0, 1)->at[CLUSTER_upstream_rq_active], 1);
    assert_line(body_of(get("/stats")), "cluster.shop_web.upstream_rq_active: 0");
}

static void json_has_envoys_shape(void **state)
{
    const char *answer;
    json_t *page, *stats, *last, *h;
    bool found = false;
    (void)state;

    count();
    histogram_record(&cells(0, 0)->rq_time, 50);
    answer = get("/stats?format=json");
    assert_non_null(strstr(answer, "content-type: application/json\r\n"));
    page = json_loads(body_of(answer), JSON_REJECT_DUPLICATES, NULL);
    stats = json_object_get(page, "stats");
    assert_true(json_array_size(stats) > 100);
    for (size_t i = 0; i + 1 < json_array_size(stats); i++) {
        json_t *one = json_array_get(stats, i);

        assert_true(json_is_number(json_object_get(one, "value")));
        if (strcmp(json_string_value(json_object_get(one, "name")),
                   "cluster.shop_web.upstream_rq_total") == 0)
            found = json_integer_value(json_object_get(one, "value")) == 7;
    }
    assert_true(found);
    last = json_object_get(json_array_get(stats, json_array_size(stats) - 1), "histograms");
    assert_int_equal(json_array_size(json_object_get(last, "supported_quantiles")), 10);
    assert_true(
        json_number_value(json_array_get(json_object_get(last, "supported_quantiles"), 7)) == 99.5);
    h = json_array_get(json_object_get(last, "computed_quantiles"), 3);
    assert_string_equal(json_string_value(json_object_get(h, "name")),
                        "cluster.shop_web.upstream_rq_time");
    h = json_array_get(json_object_get(h, "values"), 2);
    assert_true(json_is_null(json_object_get(h, "interval")));
    assert_true(json_number_value(json_object_get(h, "cumulative")) == 0.05);
    json_decref(page);
    assert_string_equal(body_of(get("/stats?format=json&filter=nothing_at_all")),
                        "{\"stats\":[]}\n");
}

static void prometheus_names_and_labels_are_envoys(void **state)
{
    static const char *const lines[] = {
        "# TYPE envoy_cluster_upstream_rq_total counter",
        "envoy_cluster_upstream_rq_total{envoy_cluster_name=\"shop_web\"} 7",
        "envoy_cluster_upstream_rq_total{envoy_cluster_name=\"b\"} 0",
        "envoy_cluster_upstream_rq{envoy_response_code=\"503\",envoy_cluster_name=\"shop_web\"} 2",
        "envoy_cluster_external_upstream_rq{envoy_response_code=\"503\",envoy_cluster_name=\"shop_"
        "web\"} 2",
        "envoy_cluster_upstream_rq_xx{envoy_response_code_class=\"5\",envoy_cluster_name=\"shop_"
        "web\"} 2",
        "# TYPE envoy_cluster_upstream_cx_active gauge",
        "envoy_cluster_outlier_detection_ejections_active{envoy_cluster_name=\"shop_web\"} 1",
        "envoy_cluster_circuit_breakers_default_rq_open{envoy_cluster_name=\"shop_web\"} 0",
        "envoy_cluster_circuit_breakers_default_remaining_rq{envoy_cluster_name=\"shop_web\"} "
        "4294967295",
        "envoy_cluster_membership_healthy{envoy_cluster_name=\"shop_web\"} 2",
        "envoy_http_downstream_rq_xx{envoy_response_code_class=\"2\",envoy_http_conn_manager_"
        "prefix=\"web\"} 8",
        "envoy_http_downstream_cx_total{envoy_http_conn_manager_prefix=\"web\"} 9",
        "envoy_http_no_route{envoy_http_conn_manager_prefix=\"web\"} 1",
        "envoy_listener_downstream_cx_total{envoy_listener_address=\"0.0.0.0_8080\"} 9",
        "envoy_listener_http_downstream_rq_xx{envoy_response_code_class=\"2\",envoy_http_conn_"
        "manager_prefix=\"web\",envoy_listener_address=\"0.0.0.0_8080\"} 8",
        "envoy_server_live{} 1",
        "# HELP firebreak_cluster_connect_failover_total requests moved to another host after a "
        "failed connect",
        "# TYPE firebreak_cluster_connect_failover_total counter",
        "firebreak_cluster_connect_failover_total{cluster=\"shop:web\"} 6",
        "firebreak_worker_records_dropped_total{worker=\"1\"} 11",
        "firebreak_access_log_lines_total{} 12",
        "firebreak_endpoint_rq_error_total{cluster=\"shop:web\",endpoint=\"10.0.0.2:8080\"} 21",
        "firebreak_endpoint_cx_total{cluster=\"shop:web\",endpoint=\"10.0.0.1:8080\"} 0",
        "firebreak_endpoint_healthy{cluster=\"b\",endpoint=\"10.0.0.9:9\"} 1",
        "firebreak_build_info{version=\"" FIREBREAK_VERSION "\"} 1",
    };
    const char *answer, *body;
    (void)state;

    count();
    answer = get("/stats/prometheus");
    assert_non_null(strstr(answer, "content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    body = body_of(answer);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_line(body, lines[i]);
    assert_no(body, "# HELP envoy_");
    assert_string_equal(body_of(get("/stats?format=prometheus&filter=rq")),
                        body_of(get("/stats/prometheus?filter=rq")));
}

/* Each family is announced once, and all its series follow. */
static void prometheus_families_stay_together(void **state)
{
    char *body, *line, *save, family[512] = "", seen[65536] = "";
    (void)state;

    count();
    body = strdup(body_of(get("/stats/prometheus")));
    for (line = strtok_r(body, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "# HELP ", 7) == 0)
            continue;
        if (strncmp(line, "# TYPE ", 7) == 0) {
            snprintf(family, sizeof(family), "\n%.*s\n", (int)strcspn(line + 7, " "), line + 7);
            assert_null(strstr(seen, family));
            assert_true(strlen(seen) + strlen(family) < sizeof(seen));
            strcat(seen, family);
            family[strlen(family) - 1] = '\0';
        } else {
            assert_memory_equal(line, family + 1, strlen(family) - 1);
        }
    }
    assert_true(strlen(seen) > 2000);
    free(body);
}

static void prometheus_histograms_have_envoys_buckets(void **state)
{
    static const char want[] = "# TYPE envoy_cluster_upstream_rq_time histogram\n"
#define LINE(le, n)                                                                                \
    "envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name=\"b\",le=\"" le "\"} " n "\n"
        LINE("0.5", "1") LINE("1", "1") LINE("5", "2") LINE("10", "2") LINE("25", "2")
            LINE("50", "2") LINE("100", "3") LINE("250", "3") LINE("500", "3") LINE("1000", "3")
                LINE("2500", "3") LINE("5000", "3") LINE("10000", "3") LINE("30000", "3") LINE(
                    "60000", "3") LINE("300000", "3") LINE("600000", "3") LINE("1800000", "3")
                    LINE("3600000", "3") LINE(
                        "+Inf",
                        "4") "envoy_cluster_upstream_rq_time_sum{envoy_cluster_name=\"b\"} 4003077."
                             "125\n"
                             "envoy_cluster_upstream_rq_time_count{envoy_cluster_name=\"b\"} 4\n";
#undef LINE
    (void)state;

    histogram_record(&cells(1, 0)->rq_time, 125);
    histogram_record(&cells(1, 1)->rq_time, 3000);
    histogram_record(&cells(1, 0)->rq_time, 74000);
    histogram_record(&cells(1, 1)->rq_time, UINT64_C(4003000000));
    histogram_record(&cells(1, 1)->connect_ms, 5000);
    assert_line(body_of(get("/stats/prometheus")),
                "envoy_cluster_upstream_cx_connect_ms_sum{envoy_cluster_name=\"b\"} 5");
    assert_string_equal(
        body_of(get("/stats/prometheus?filter=%5Ecluster%5C.b%5C.upstream_rq_time$")), want);
}

static void how_late_each_loop_was_is_shown(void **state)
{
    struct lag *lag = &world.process->worker_cells[1].lag;
    const char *body;
    (void)state;

    turn_at(START_AT + 20 * NS_PER_S);
    lag_note(lag, 3 * NS_PER_MS, START_AT + 9 * NS_PER_S);
    lag_note(lag, 12345 * NS_PER_US, START_AT + 15 * NS_PER_S);
    body = body_of(get("/stats"));
    assert_line(body, "firebreak.worker.0.loop_lag_max: 0.000");
    assert_line(body, "firebreak.worker.1.loop_lag_max: 12.345");
    assert_line(body, "firebreak.worker.0.loop_lag: No recorded values");
    body = body_of(get("/stats/prometheus?filter=worker.1.loop_lag"));
    assert_line(body, "firebreak_worker_loop_lag_max{worker=\"1\"} 12.345");
    assert_line(body, "firebreak_worker_loop_lag_bucket{worker=\"1\",le=\"5\"} 1");
    assert_line(body, "firebreak_worker_loop_lag_bucket{worker=\"1\",le=\"25\"} 2");
    assert_line(body, "firebreak_worker_loop_lag_sum{worker=\"1\"} 15.345");
    assert_line(body, "firebreak_worker_loop_lag_count{worker=\"1\"} 2");
}

/* Two clusters whose names become the same: Prometheus would refuse to read a series twice. */
static void what_has_one_name_is_one_series(void **state)
{
    struct cluster *c = (struct cluster *)(uintptr_t)&world.snapshot->clusters[1];
    const char *body;
    (void)state;

    count();
    c->stat_name = BYTES("shop_web");
    cell_add(&cells(1, 0)->at[CLUSTER_upstream_rq_total], 100);
    histogram_record(&cells(0, 0)->rq_time, 50);
    histogram_record(&cells(1, 0)->rq_time, 60);
    body = body_of(get("/stats/prometheus"));
    assert_line(body, "envoy_cluster_upstream_rq_total{envoy_cluster_name=\"shop_web\"} 107");
    assert_line(body, "envoy_cluster_upstream_rq_time_count{envoy_cluster_name=\"shop_web\"} 2");
    assert_line(body_of(get("/stats")), "cluster.shop_web.upstream_rq_total: 107");
}

static void names_cannot_break_the_page(void **state)
{
    struct cluster *c = (struct cluster *)(uintptr_t)&world.snapshot->clusters[1];
    static char longest[5000];
    json_t *page;
    const char *body;
    (void)state;

    c->stat_name = c->name = BYTES("a\"b\\c\nd");
    assert_line(body_of(get("/stats/prometheus")),
                "envoy_cluster_upstream_rq_total{envoy_cluster_name=\"a\\\"b\\\\c\\nd\"} 0");
    memset(longest, '"', sizeof(longest));
    c->stat_name = c->name = bytes_from(longest, sizeof(longest));
    body = body_of(get("/stats/prometheus?filter=%22"));
    for (const char *line = body; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *close = strstr(line, "} ");

        if (strncmp(line, "# ", 2) == 0)
            continue;
        assert_true(close != NULL && close < strchr(line, '\n'));
        assert_true(close[-1] == '{' || (close[-1] == '"' && close[-2] != '\\'));
    }
    page = json_loads(body_of(get("/stats?format=json")), 0, NULL);
    assert_non_null(page);
    json_decref(page);
}

/* --- OpenMetrics --- */

static const char *get_accepting(const char *accept)
{
    struct fake_link *l = connect_client();
    char request[600];

    snprintf(request, sizeof(request),
             "GET /stats/prometheus HTTP/1.1\r\nhost: a\r\naccept: %s\r\n\r\n", accept);
    send_text(l, request);
    end(l);
    return l->out;
}

static void openmetrics_is_given_to_who_would_rather_have_it(void **state)
{
    static const struct {
        const char *accept;
        bool open;
    } rows[] = {
        {"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/"
         "*;q=0.1",
         true},
        {"application/openmetrics-text", true},
        {"text/plain, application/openmetrics-text", true},
        {"application/openmetrics-text;q=0.2, text/plain;q=0.5", false},
        {"application/openmetrics-text;q=0", false},
        {"application/openmetrics-text;q=x", false},
        {"text/plain;version=0.0.4", false},
        {"*/*", false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *page = get_accepting(rows[i].accept);
        bool open = strstr(page, "content-type: application/openmetrics-text") != NULL;

        if (open != rows[i].open)
            fail_msg("%s", rows[i].accept);
        assert_int_equal(strcmp(page + strlen(page) - 6, "# EOF\n") == 0, open);
    }
}

static void openmetrics_counters_keep_its_rules(void **state)
{
    const char *page = get_accepting("application/openmetrics-text");
    (void)state;

    assert_line(page, "# TYPE firebreak_worker_turns counter");
    assert_line(page, "firebreak_worker_turns_total{worker=\"0\"} 0");
    assert_line(page, "# TYPE envoy_cluster_upstream_rq_total unknown");
    assert_line(page, "# TYPE envoy_cluster_membership_healthy gauge");
    assert_non_null(strstr(page, "le=\"1.0\"} 0\n"));
    assert_non_null(strstr(page, "le=\"1.8e+06\"} 0\n"));
    assert_non_null(strstr(page, "le=\"600000.0\"} 0\n"));
}

static void histograms_are_shown_by_bucket_where_asked_for(void **state)
{
    struct cluster_cells *cells = world.snapshot->clusters[1].state->cells[0];
    (void)state;

    histogram_record(&cells->rq_time, 300);
    histogram_record(&cells->rq_time, 700);
    histogram_record(&cells->rq_time, 800);
    assert_non_null(strstr(get("/stats?filter=b.upstream_rq_time&histogram_buckets=cumulative"),
                           "cluster.b.upstream_rq_time: B0.5(nan,1) B1(nan,3) B5(nan,3) "));
    assert_non_null(strstr(get("/stats?filter=b.upstream_rq_time&histogram_buckets=disjoint"),
                           "B0.5(nan,1) B1(nan,2) B5(nan,0) "));
    assert_non_null(
        strstr(get("/stats?filter=%5Ecluster.b.upstream_rq_time$&histogram_buckets=cumulative&"
                   "format=json"),
               "{\"stats\":[{\"histograms\":[{\"name\":\"cluster.b.upstream_rq_time\",\"buckets\":["
               "{\"upper_bound\":0.5,\"interval\":null,\"cumulative\":1},"
               "{\"upper_bound\":1,\"interval\":null,\"cumulative\":3},"));
    assert_int_equal(status_of(get("/stats?histogram_buckets=detailed")), 400);
}

static void html_shows_the_same_and_escapes(void **state)
{
    struct cluster *c = (struct cluster *)(uintptr_t)&world.snapshot->clusters[1];
    const char *page;
    (void)state;

    c->stat_name = BYTES("<b>&");
    page = get("/stats?format=html&filter=membership_total");
    assert_non_null(strstr(page, "content-type: text/html"));
    assert_line(page, "<tr><td>cluster.&lt;b>&amp;.membership_total</td><td>1</td></tr>");
    assert_line(page, "<tr><td>cluster.shop_web.membership_total</td><td>2</td></tr>");
}

static void an_inverted_filter_shows_the_rest(void **state)
{
    const char *page = body_of(get("/stats?filter=%5Ecluster&invert_filter"));
    (void)state;

    assert_no(page, "cluster.b.");
    assert_line(page, "server.live: 1");
    page = body_of(get("/stats?filter=upstream_(cx|rq_pending)_overflow"));
    assert_line(page, "cluster.b.upstream_cx_overflow: 0");
    assert_line(page, "cluster.shop_web.upstream_rq_pending_overflow: 0");
    assert_no(page, "active_overflow");
}

static void an_unknown_format_is_refused(void **state)
{
    (void)state;
    assert_int_equal(status_of(get("/stats?format=xml")), 400);
    assert_string_equal(body_of(get("/stats?format=xml")),
                        "unknown format\nusage: ?format=(text|json|prometheus|html)\n");
    assert_int_equal(status_of(get("/stats?format=text")), 200);
    assert_int_equal(status_of(get("/clusters?format=prometheus")), 400);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start_admin, stop_admin)
    const struct CMUnitTest tests[] = {
        T(text_names_are_envoys),
        T(lines_are_sorted_histograms_last),
        T(text_histograms_show_quantiles_in_ms),
        T(a_filter_is_a_regex_that_matches_anywhere),
        T(used_only_leaves_out_what_is_zero),
        T(breakers_open_at_their_limits),
        T(a_gauge_is_never_shown_negative),
        T(json_has_envoys_shape),
        T(prometheus_names_and_labels_are_envoys),
        T(prometheus_families_stay_together),
        T(how_late_each_loop_was_is_shown),
        T(prometheus_histograms_have_envoys_buckets),
        T(what_has_one_name_is_one_series),
        T(names_cannot_break_the_page),
        T(openmetrics_is_given_to_who_would_rather_have_it),
        T(openmetrics_counters_keep_its_rules),
        T(histograms_are_shown_by_bucket_where_asked_for),
        T(html_shows_the_same_and_escapes),
        T(an_inverted_filter_shows_the_rest),
        T(an_unknown_format_is_refused),
    };
#undef T

    return cmocka_run_group_tests_name("admin stats", tests, NULL, NULL);
}
