/* SPDX-License-Identifier: Apache-2.0 */
/* Good configurations, and what becomes of them. */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "io/error.h"

#define EXAMPLES TESTS_DIR "/../examples/"

/* Files of the machine, read in tests only. */
static int real_read(struct files *f, const char *path, size_t limit, struct bytes *out)
{
    FILE *file = fopen(path, "rb");
    char *data = memory_take(1 << 20);
    size_t len;
    (void)f;

    assert_non_null(data);
    if (file == NULL) {
        memory_give(data);
        return IO_NOT_FOUND;
    }
    len = fread(data, 1, 1 << 20, file);
    fclose(file);
    assert_true(len < limit);
    *out = bytes_from(data, len);
    return IO_OK;
}

/* Fails as the path says. */
static int failing_read(struct files *f, const char *path, size_t limit, struct bytes *out)
{
    (void)f;
    (void)limit;
    (void)out;
    return atoi(path);
}

static const struct files_ops real_ops = {.read = real_read};
static const struct files_ops failing_ops = {.read = failing_read};

static char output[16 * 1024];

static const char *show(const struct config_errors *e)
{
    struct text t;

    text_init(&t, output, sizeof(output));
    config_errors_write(&t, e);
    return text_end(&t);
}

/* Knows names of one letter: "a" is 10.0.0.97; counts how often it was asked. */
struct names {
    struct config_resolver resolver;
    unsigned asked;
};

static int resolve(struct config_resolver *r, struct bytes host, struct address *out)
{
    ((struct names *)(void *)r)->asked++;
    if (host.len != 1)
        return IO_NOT_FOUND;
    *out = (struct address){.kind = ADDRESS_IPV4, .ip = {10, 0, 0, host.data[0]}};
    return IO_OK;
}

static struct snapshot *load(const char *text, struct config_resolver *resolver)
{
    struct config_errors e;
    struct snapshot *s = NULL;

    config_errors_init(&e);
    if (config_parse(&(struct config_source){BYTES("f.yaml"), bytes_of(text)}, 1, resolver, &e,
                     &s) != CONFIG_OK)
        fail_msg("%s", show(&e));
    config_errors_release(&e);
    return s;
}

static struct snapshot *load_example(const char *name)
{
    struct files files = {.ops = &real_ops};
    struct config_errors e;
    struct snapshot *s = NULL;
    char path[500];

    snprintf(path, sizeof(path), "%s%s", EXAMPLES, name);
    config_errors_init(&e);
    if (config_load(&(const char *){path}, 1, &files, NULL, &e, &s) != CONFIG_OK)
        fail_msg("%s", show(&e));
    config_errors_release(&e);
    return s;
}

#define assert_bytes(b, text)                                                                      \
    do {                                                                                           \
        struct bytes given = (b);                                                                  \
        char copy[200];                                                                            \
        snprintf(copy, sizeof(copy), "%.*s", (int)given.len, (const char *)given.data);            \
        assert_string_equal(copy, text);                                                           \
    } while (0)

static void assert_address(const struct address *a, const char *text)
{
    char room[300];
    struct text t;

    text_init(&t, room, sizeof(room));
    address_write(&t, a);
    assert_string_equal(text_end(&t), text);
}

/* What docs/configuration.md says of a cluster without trafficPolicy. */
static void assert_protected(const struct cluster *c)
{
    assert_int_equal(c->lb, LB_LEAST);
    assert_int_equal(c->limits.max_connections, LIMIT_NONE);
    assert_int_equal(c->limits.max_pending, LIMIT_NONE);
    assert_int_equal(c->limits.max_requests, LIMIT_NONE);
    assert_int_equal(c->limits.max_requests_per_connection, 0);
    assert_int_equal(c->limits.host.max_connections, LIMIT_NONE);
    assert_int_equal(c->limits.host.max_requests, LIMIT_NONE);
    assert_int_equal(c->limits.host.max_pending, LIMIT_NONE);
    assert_true(c->limits.queue_timeout == MONO_NEVER);
    assert_int_equal(c->max_connection_duration, 0);
    assert_true(c->outlier.enabled);
    assert_true(c->outlier.split);
    assert_int_equal(c->outlier.consecutive_5xx, 5);
    assert_int_equal(c->outlier.consecutive_gateway, 0);
    assert_int_equal(c->outlier.consecutive_local_origin, 3);
    assert_int_equal(c->outlier.interval, 30 * NS_PER_S);
    assert_int_equal(c->outlier.base_ejection, 30 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection, 300 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection_percent, 20);
    assert_int_equal(c->panic.policy, PANIC_SERVE_ALL);
    assert_int_equal(c->panic.threshold, 50);
    assert_int_equal(c->connect_timeout, 5 * NS_PER_S);
    assert_int_equal(c->idle_timeout, 60 * NS_PER_S);
    assert_false(c->keepalive);
    assert_true(c->connect_failover);
    assert_null(c->state);
}

static void the_limits_beyond_istios_are_taken(void **state)
{
    struct snapshot *s =
        load("listeners: [{name: a, listen: '127.0.0.1:1', routes: [{cluster: c}]}]\n"
             "clusters:\n"
             "  - name: c\n"
             "    endpoints: [{address: '127.0.0.1:2'}]\n"
             "    trafficPolicy:\n"
             "      connectionPool: {tcp: {maxConnections: 7, maxConnectionDuration: 90s}}\n"
             "    resilience:\n"
             "      queueTimeout: 2s\n"
             "      perHost: {maxConnections: 3, maxRequests: 4, maxPending: 5}\n",
             NULL);
    const struct cluster *c = &s->clusters[0];
    (void)state;

    assert_int_equal(c->limits.max_connections, 7);
    assert_int_equal(c->limits.max_pending, LIMIT_NONE);
    assert_int_equal(c->max_connection_duration, 90 * NS_PER_S);
    assert_int_equal(c->limits.queue_timeout, 2 * NS_PER_S);
    assert_int_equal(c->limits.host.max_connections, 3);
    assert_int_equal(c->limits.host.max_requests, 4);
    assert_int_equal(c->limits.host.max_pending, 5);
    snapshot_drop(s);
}

static void assert_default_listener(const struct listener_config *l)
{
    const struct route *r = &l->routes[0];

    assert_bytes(l->name, "web");
    assert_int_equal(l->limits.head_bytes, 64 * 1024);
    assert_int_equal(l->limits.fields, 100);
    assert_true(l->limits.body_bytes == UINT64_MAX);
    assert_int_equal(l->limits.buffer_bytes, 16 * 1024);
    assert_int_equal(l->head_timeout, 10 * NS_PER_S);
    assert_int_equal(l->body_timeout, 300 * NS_PER_S);
    assert_int_equal(l->idle_timeout, 3600 * NS_PER_S);
    assert_int_equal(l->max_connection_age, 0);
    assert_int_equal(l->trusted_hops, 0);
    assert_false(l->via);
    assert_true(l->normalize_forwarded);
    assert_true(l->merge_slashes);
    assert_null(l->state);
    assert_int_equal(l->route_count, 1);
    assert_int_equal(r->host_count, 0);
    assert_int_equal(r->method_count, 0);
    assert_int_equal(r->match, PATH_PREFIX);
    assert_bytes(r->path, "/");
    assert_int_equal(r->cluster, 0);
    assert_int_equal(r->timeout, 15 * NS_PER_S);
    assert_true(r->per_try_timeout == MONO_NEVER);
    assert_int_equal(r->idle_timeout, 300 * NS_PER_S);
}

static void assert_default_process(const struct snapshot *s)
{
    assert_address(&s->admin, "127.0.0.1:9901");
    assert_int_equal(s->workers, 0);
    assert_bytes(s->access_log.to, "off");
    assert_null(s->access_log.format);
    assert_int_equal(s->user.len, 0);
    assert_int_equal(s->memory_limit, 0);
    assert_int_equal(s->drain_wait, 0);
    assert_int_equal(s->drain_timeout, 30 * NS_PER_S);
}

static void the_least_that_works_is_well_protected(void **state)
{
    struct snapshot *s = load_example("minimal.yaml");
    (void)state;

    assert_default_process(s);
    assert_int_equal(s->listener_count, 1);
    assert_int_equal(s->cluster_count, 1);
    assert_default_listener(&s->listeners[0]);
    assert_address(&s->listeners[0].address, "0.0.0.0:8080");
    assert_protected(&s->clusters[0]);
    assert_int_equal(s->clusters[0].endpoint_count, 2);
    assert_bytes(s->clusters[0].endpoints[1].text, "127.0.0.1:9002");
    assert_bytes(s->clusters[0].endpoints[1].hostname, "127.0.0.1:9002");
    assert_int_equal(s->clusters[0].endpoints[1].weight, 1);
    snapshot_drop(s);
}

static void a_list_gives_the_same_as_the_least_file(void **state)
{
    const struct config_run run = {.to = BYTES(" 127.0.0.1:9001, ,[::1]:9002,")};
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    config_errors_init(&e);
    assert_int_equal(config_from_list(&run, NULL, &e, &s), CONFIG_OK);
    assert_default_process(s);
    assert_default_listener(&s->listeners[0]);
    assert_address(&s->listeners[0].address, "0.0.0.0:8080");
    assert_bytes(s->clusters[0].name, "backend");
    assert_protected(&s->clusters[0]);
    assert_int_equal(s->clusters[0].endpoint_count, 2);
    assert_bytes(s->clusters[0].endpoints[0].text, "127.0.0.1:9001");
    assert_bytes(s->clusters[0].endpoints[1].text, "[::1]:9002");
    snapshot_drop(s);
    config_errors_release(&e);
}

static void a_list_takes_the_options_of_run(void **state)
{
    struct names names = {.resolver = {resolve}};
    struct config_run run = {.to = BYTES("a:1,b:2"),
                             .listen = BYTES("[::]:81"),
                             .admin = BYTES("off"),
                             .access_log = BYTES("stdout"),
                             .workers = 3};
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    config_errors_init(&e);
    assert_int_equal(config_from_list(&run, &names.resolver, &e, &s), CONFIG_OK);
    assert_int_equal(s->admin.kind, ADDRESS_NONE);
    assert_address(&s->listeners[0].address, "[::]:81");
    assert_int_equal(s->workers, 3);
    assert_bytes(s->access_log.to, "stdout");
    assert_bytes(s->clusters[0].endpoints[1].text, "10.0.0.98:2");
    assert_bytes(s->clusters[0].endpoints[1].hostname, "b");
    snapshot_drop(s);
    run.admin = BYTES("unix:/run/firebreak.sock");
    assert_int_equal(config_from_list(&run, &names.resolver, &e, &s), CONFIG_OK);
    assert_address(&s->admin, "unix:/run/firebreak.sock");
    snapshot_drop(s);
    config_errors_release(&e);
}

static void assert_list_error(const struct config_run *run, const char *expected)
{
    struct names names = {.resolver = {resolve}};
    struct config_errors e;
    struct snapshot *s = NULL;

    config_errors_init(&e);
    assert_int_equal(config_from_list(run, &names.resolver, &e, &s), CONFIG_INVALID);
    assert_null(s);
    assert_string_equal(show(&e), expected);
    config_errors_release(&e);
}

static void a_wrong_list_shows_where(void **state)
{
    (void)state;
    assert_list_error(&(struct config_run){.to = BYTES("a:1,http://b:2/")},
                      "--to:1:5: an endpoint's address is HOST:PORT, such as 127.0.0.1:9001 or "
                      "example.test:80, or unix:PATH; not 'http://b:2/': leave out http:// and the "
                      "path\n    a:1,http://b:2/\n        ^\n");
    assert_list_error(&(struct config_run){.to = BYTES("a:1, bb:2")},
                      "--to:1:6: cannot resolve 'bb': not found\n"
                      "    a:1, bb:2\n         ^\n");
    assert_list_error(&(struct config_run){.to = BYTES("a:1,b:1,a:1")},
                      "--to:1:9: '10.0.0.97:1' is given twice: first in line 1\n"
                      "    a:1,b:1,a:1\n            ^\n");
    assert_list_error(&(struct config_run){.to = BYTES(" , ")},
                      "--to: no hosts: write HOST:PORT,HOST:PORT\n");
    assert_list_error(&(struct config_run){.to = BYTES_NONE},
                      "--to: no hosts: write HOST:PORT,HOST:PORT\n");
    assert_list_error(
        &(struct config_run){.to = BYTES("a:1"), .listen = BYTES("off"), .admin = BYTES("9901")},
        "--to: --admin must be an address with a port, such as 127.0.0.1:8080; not '9901': write "
        "0.0.0.0:PORT for every interface, 127.0.0.1:PORT for this machine only\n"
        "--to: --listen must be an address with a port, such as 127.0.0.1:8080; not 'off': the "
        "port is missing, or not between 0 and 65535\n");
}

static void the_long_example_says_what_it_says(void **state)
{
    struct snapshot *s = load_example("firebreak.yaml");
    const struct listener_config *l = &s->listeners[0];
    const struct cluster *c = &s->clusters[0];
    (void)state;

    assert_bytes(s->access_log.to, "stdout");
    assert_int_equal(l->limits.body_bytes, 10 << 20);
    assert_int_equal(l->route_count, 3);
    assert_bytes(l->routes[0].name, "search");
    assert_int_equal(l->routes[0].cluster, 1);
    assert_int_equal(l->routes[0].method_count, 2);
    assert_bytes(l->routes[0].methods[1], "HEAD");
    assert_int_equal(l->routes[0].per_try_timeout, NS_PER_S);
    assert_int_equal(l->routes[1].host_count, 2);
    assert_bytes(l->routes[1].hosts[1], "*.shop.example.test");
    assert_int_equal(c->endpoint_count, 3);
    assert_bytes(c->endpoints[2].zone, "b");
    assert_bytes(c->endpoints[2].version, "v2");
    assert_int_equal(c->limits.max_connections, 500);
    assert_int_equal(c->limits.max_pending, 1000);
    assert_int_equal(c->limits.max_requests, 10000);
    assert_int_equal(c->limits.max_retries, LIMIT_NONE);
    assert_int_equal(c->connect_timeout, NS_PER_S);
    assert_int_equal(c->idle_timeout, 60 * NS_PER_S);
    assert_true(c->keepalive);
    assert_int_equal(c->keepalive_idle_s, 60);
    assert_int_equal(c->keepalive_interval_s, 10);
    assert_int_equal(c->keepalive_probes, 3);
    assert_int_equal(c->outlier.consecutive_gateway, 3);
    assert_int_equal(c->outlier.consecutive_local_origin, 3);
    assert_true(c->outlier.split);
    assert_int_equal(c->outlier.interval, 10 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection_percent, 34);
    assert_int_equal(s->clusters[1].lb, LB_ROUND_ROBIN);
    assert_int_equal(s->clusters[1].connect_timeout, 500 * NS_PER_MS);
    snapshot_drop(s);
}

#define LISTENERS "listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: a}]}]\n"
#define A_CLUSTER(rest)                                                                            \
    LISTENERS "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n" rest

static void a_block_that_is_present_gets_istios_defaults(void **state)
{
    struct snapshot *s = load(
        A_CLUSTER("  trafficPolicy: {connectionPool: {http: {}}, outlierDetection: {}}\n"), NULL);
    const struct cluster *c = &s->clusters[0];
    (void)state;

    assert_int_equal(c->limits.max_connections, LIMIT_NONE);
    assert_int_equal(c->limits.max_pending, LIMIT_NONE);
    assert_int_equal(c->limits.max_requests, LIMIT_NONE);
    assert_int_equal(c->limits.max_retries, LIMIT_NONE);
    assert_int_equal(c->connect_timeout, 10 * NS_PER_S);
    assert_int_equal(c->idle_timeout, 3600 * NS_PER_S);
    assert_false(c->keepalive);
    assert_true(c->outlier.enabled);
    assert_false(c->outlier.split);
    assert_int_equal(c->outlier.consecutive_5xx, 5);
    assert_int_equal(c->outlier.consecutive_gateway, 5);                    /* counted, */
    assert_int_equal(c->outlier.enforcing[OUTLIER_CONSECUTIVE_GATEWAY], 0); /* nobody ejected */
    assert_int_equal(c->outlier.consecutive_local_origin, 5);
    assert_int_equal(c->outlier.interval, 10 * NS_PER_S);
    assert_int_equal(c->outlier.base_ejection, 30 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection, 300 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection_percent, 10);
    assert_int_equal(c->panic.threshold, 0);
    snapshot_drop(s);
}

static void blocks_are_filled_each_for_itself(void **state)
{
    struct snapshot *s = load(
        A_CLUSTER("  connectTimeout: 2s\n  trafficPolicy: {connectionPool: {tcp: {}}}\n"), NULL);
    (void)state;

    assert_int_equal(s->clusters[0].connect_timeout, 2 * NS_PER_S);
    assert_int_equal(s->clusters[0].idle_timeout, 3600 * NS_PER_S);
    assert_int_equal(s->clusters[0].outlier.max_ejection_percent, 20);
    snapshot_drop(s);

    s = load(A_CLUSTER("  idleTimeout: 2s\n  trafficPolicy: {outlierDetection: {}}\n"), NULL);
    assert_int_equal(s->clusters[0].idle_timeout, 2 * NS_PER_S);
    assert_int_equal(s->clusters[0].limits.max_pending, LIMIT_NONE);
    assert_int_equal(s->clusters[0].outlier.max_ejection_percent, 10);
    snapshot_drop(s);
}

static void an_integer_of_zero_is_istios_unset(void **state)
{
    struct snapshot *s =
        load(A_CLUSTER("  trafficPolicy:\n"
                       "    connectionPool:\n"
                       "      tcp: {maxConnections: 0, tcpKeepalive: {probes: 0, time: 0s}}\n"
                       "      http: {http1MaxPendingRequests: 0, http2MaxRequests: 0}\n"
                       "    outlierDetection: {consecutive5xxErrors: 0, maxEjectionPercent: 0,\n"
                       "      consecutiveLocalOriginFailures: 0, baseEjectionTime: 10m}\n"),
             NULL);
    const struct cluster *c = &s->clusters[0];
    (void)state;

    assert_int_equal(c->limits.max_connections, LIMIT_NONE);
    assert_int_equal(c->limits.max_pending, LIMIT_NONE);
    assert_int_equal(c->limits.max_requests, LIMIT_NONE);
    assert_true(c->keepalive);
    assert_int_equal(c->keepalive_probes, 0);
    assert_int_equal(c->keepalive_idle_s, 0);
    assert_int_equal(c->outlier.max_ejection_percent, 10);
    assert_int_equal(c->outlier.consecutive_local_origin, 5);
    /* But this one is nullable, and 0 turns it off. */
    assert_int_equal(c->outlier.consecutive_5xx, 0);
    assert_int_equal(c->outlier.max_ejection, 600 * NS_PER_S);
    snapshot_drop(s);
}

static void values_are_what_the_key_wants(void **state)
{
    struct snapshot *s = load(
        "admin: {listen: off}\nworkers: 010\nuser: \"on\"\nmemoryLimit: 1GiB\ndrainTimeout: 0s\n"
        "accessLog: {to: /var/log/a b.log, format: text}\n"
        "listeners:\n"
        "- {name: w, listen: '[::]:0', via: on, forwardNormalized: false, mergeSlashes: off,\n"
        "   trustedHops: 2, maxConnectionAge: 5m, limits: {bodyBytes: none}, bodyTimeout: 0s,\n"
        "   routes: [\n"
        "   {cluster: 'x:1|y', timeout: 0s, perTryTimeout: 1m30s, idleTimeout: none,\n"
        "    match: {path: /a//b, hosts: [A.Test, '*.B.test'], methods: [PURGE]}},\n"
        "   {cluster: 'x:1|y', match: {hosts: [c.test, '*']}}]}\n"
        "- {name: v, listen: 'unix:/run/x', routes: [{cluster: 'x:1|y'}]}\n"
        "- {name: u, listen: '[::]:0', routes: [{cluster: 'x:1|y'}]}\n"
        "clusters: [{name: 'x:1|y', protocol: http1, resilience: {connectFailover: off},\n"
        "  endpoints: [{address: 'unix:/run/y'}]}]\n",
        NULL);
    const struct listener_config *l = &s->listeners[0];
    (void)state;

    assert_int_equal(s->admin.kind, ADDRESS_NONE);
    assert_int_equal(s->workers, 10);
    assert_bytes(s->user, "on");
    assert_int_equal(s->memory_limit, 1 << 30);
    assert_int_equal(s->drain_timeout, 0);
    assert_bytes(s->access_log.to, "/var/log/a b.log");
    assert_non_null(s->access_log.format);
    assert_address(&l->address, "[::]:0");
    assert_true(l->via);
    assert_false(l->normalize_forwarded);
    assert_false(l->merge_slashes);
    assert_int_equal(l->trusted_hops, 2);
    assert_int_equal(l->max_connection_age, 300 * NS_PER_S);
    assert_true(l->limits.body_bytes == UINT64_MAX);
    assert_true(l->body_timeout == MONO_NEVER);
    assert_true(l->routes[0].timeout == MONO_NEVER);
    assert_true(l->routes[0].idle_timeout == MONO_NEVER);
    assert_int_equal(l->routes[0].per_try_timeout, 90 * NS_PER_S);
    assert_int_equal(l->routes[0].match, PATH_EXACT);
    assert_bytes(l->routes[0].path, "/a//b");
    assert_bytes(l->routes[0].hosts[0], "a.test");
    assert_bytes(l->routes[0].hosts[1], "*.b.test");
    assert_bytes(l->routes[0].methods[0], "PURGE");
    assert_int_equal(l->routes[1].host_count, 0);
    assert_address(&s->listeners[1].address, "unix:/run/x");
    assert_bytes(s->clusters[0].name, "x:1|y");
    assert_bytes(s->clusters[0].stat_name, "x_1|y");
    assert_false(s->clusters[0].connect_failover);
    assert_bytes(s->clusters[0].endpoints[0].text, "unix:/run/y");
    assert_address(&s->clusters[0].endpoints[0].address, "unix:/run/y");
    snapshot_drop(s);
}

/* Istio's minHealthPercent: no block, Envoy's 50; a block without it, 0; the policy by itself. */
static void panic_has_istios_threshold_and_its_own_policy(void **state)
{
    static const struct {
        const char *cluster;
        enum panic_policy policy;
        uint32_t threshold;
    } rows[] = {
        {"", PANIC_SERVE_ALL, 50},
        {"trafficPolicy: {outlierDetection: {}}", PANIC_SERVE_ALL, 0},
        {"trafficPolicy: {outlierDetection: {minHealthPercent: 0}}", PANIC_SERVE_ALL, 0},
        {"trafficPolicy: {outlierDetection: {minHealthPercent: 100}}", PANIC_SERVE_ALL, 100},
        {"trafficPolicy: {connectionPool: {http: {}}}", PANIC_SERVE_ALL, 50},
        {"resilience: {panic: serveAll}", PANIC_SERVE_ALL, 50},
        {"resilience: {panic: leastBad}", PANIC_LEAST_BAD, 50},
        {"resilience: {panic: failFast}, trafficPolicy: {outlierDetection: {minHealthPercent: 30}}",
         PANIC_FAIL_FAST, 30},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512];
        struct snapshot *s;

        snprintf(text, sizeof(text),
                 "listeners: [{name: w, listen: '[::]:0', routes: [{cluster: a}]}]\n"
                 "clusters: [{name: a, endpoints: [{address: '127.0.0.1:1'}]%s%s}]\n",
                 rows[i].cluster[0] == '\0' ? "" : ", ", rows[i].cluster);
        s = load(text, NULL);
        assert_int_equal(s->clusters[0].panic.policy, rows[i].policy);
        assert_int_equal(s->clusters[0].panic.threshold, rows[i].threshold);
        snapshot_drop(s);
    }
}

static void retries_are_off_unless_asked_for_and_careful_where_little_is_said(void **state)
{
    struct snapshot *s =
        load("listeners: [{name: w, listen: 127.0.0.1:0, routes: [\n"
             "  {cluster: a, match: {path: /1}},\n"
             "  {cluster: a, match: {path: /2}, retry: {attempts: 0, on: [5xx]}},\n"
             "  {cluster: a, match: {path: /3}, retry: {attempts: 0}},\n"
             "  {cluster: a, retry: {}}]}]\n"
             "clusters: [{name: a, endpoints: [{address: 127.0.0.1:1}]}]\n",
             NULL);
    const struct route_retry *retry = s->listeners[0].routes[3].retry;
    (void)state;

    assert_null(s->listeners[0].routes[0].retry);
    assert_null(s->listeners[0].routes[2].retry);
    assert_int_equal(s->listeners[0].routes[1].retry->policy.attempts, 0);
    assert_int_equal(retry->policy.attempts, 1);
    assert_int_equal(retry->policy.on, RETRY_ON_CONNECT_FAILURE | RETRY_ON_REFUSED_STREAM |
                                           RETRY_ON_RESET_BEFORE_REQUEST);
    assert_int_equal(retry->policy.base, 25 * NS_PER_MS);
    assert_int_equal(retry->policy.max, 250 * NS_PER_MS);
    assert_int_equal(retry->buffer_bytes, 1 << 20);
    assert_false(retry->count_in_answer);
    assert_false(s->listeners[0].trust_retry_headers);
    assert_memory_equal(&s->clusters[0].retry_budget, &default_retry_budget,
                        sizeof(default_retry_budget));
    assert_int_equal(s->clusters[0].limits.max_retries, 3);
    assert_false(s->clusters[0].retry_share.given);
    snapshot_drop(s);
}

static void retries_are_as_they_are_asked_for(void **state)
{
    struct snapshot *s = load(
        "listeners: [{name: w, listen: 127.0.0.1:0, trustRetryHeaders: on, routes: [{cluster: a,\n"
        "  retry: {attempts: 10, on: [reset], statuses: [503, 599], headers: [x-again],\n"
        "    methods: [POST], backoff: {base: 10ms, max: 10ms}, bufferBytes: 64KiB,\n"
        "    attemptCount: on}}]}]\n"
        "clusters: [{name: a, endpoints: [{address: 127.0.0.1:1}],\n"
        "  trafficPolicy: {connectionPool: {http: {maxRetries: 2}},\n"
        "    retryBudget: {percent: 12.5, minRetryConcurrency: 0}},\n"
        "  resilience: {retryBudget: {ratio: 0.5%, floor: 0/s, capacity: 16000}}}]\n",
        NULL);
    const struct route_retry *retry = s->listeners[0].routes[0].retry;
    const struct cluster *c = &s->clusters[0];
    struct retry_statuses codes = {.bits = {0}};
    (void)state;

    assert_true(s->listeners[0].trust_retry_headers);
    assert_int_equal(retry->policy.on,
                     RETRY_ON_RESET | RETRY_ON_RETRIABLE_STATUS_CODES | RETRY_ON_RETRIABLE_HEADERS);
    assert_true(retry_statuses_add(&codes, 503) && retry_statuses_add(&codes, 599));
    assert_memory_equal(&retry->policy.statuses, &codes, sizeof(codes));
    assert_bytes(retry->headers[0], "x-again");
    assert_bytes(retry->methods[0], "POST");
    assert_int_equal(retry->policy.attempts, 10);
    assert_int_equal(retry->policy.max, 10 * NS_PER_MS);
    assert_int_equal(retry->buffer_bytes, 64 * 1024);
    assert_true(retry->count_in_answer);
    assert_int_equal(c->limits.max_retries, 2);
    assert_true(c->retry_share.given);
    assert_int_equal(c->retry_share.permille, 125);
    assert_int_equal(c->retry_share.least, 0);
    assert_int_equal(c->retry_budget.earn_permille, 5);
    assert_int_equal(c->retry_budget.floor_per_s, 0);
    assert_int_equal(c->retry_budget.capacity, 16000);
    snapshot_drop(s);
}

static void the_ends_of_a_range_belong_to_it(void **state)
{
    struct snapshot *s =
        load("workers: 256\ndrainWait: 24h\ndrainTimeout: 24h\nmemoryLimit: 16MiB\n"
             "listeners: [{name: w, listen: '[::]:0', trustedHops: 32,\n"
             "  limits: {headBytes: 256KiB, fields: 1, bufferBytes: 1024},\n"
             "  headTimeout: 1ms, routes: [{cluster: a, timeout: 8760h}]}]\n"
             "clusters: [{name: a, endpoints: [{address: '127.0.0.1:65535'}],\n"
             "  trafficPolicy: {outlierDetection: {maxEjectionPercent: 100,\n"
             "    consecutive5xxErrors: 4294967294}}}]\n",
             NULL);
    (void)state;

    assert_int_equal(s->workers, 256);
    assert_int_equal(s->drain_wait, 86400 * NS_PER_S);
    assert_int_equal(s->drain_timeout, 86400 * NS_PER_S);
    assert_int_equal(s->memory_limit, 16 << 20);
    assert_int_equal(s->listeners[0].trusted_hops, 32);
    assert_int_equal(s->listeners[0].limits.head_bytes, 256 << 10);
    assert_int_equal(s->listeners[0].limits.fields, 1);
    assert_int_equal(s->listeners[0].limits.buffer_bytes, 1024);
    assert_int_equal(s->listeners[0].head_timeout, NS_PER_MS);
    assert_int_equal(s->listeners[0].routes[0].timeout, 8760 * 3600 * NS_PER_S);
    assert_int_equal(s->clusters[0].outlier.max_ejection_percent, 100);
    assert_int_equal(s->clusters[0].outlier.consecutive_5xx, UINT32_MAX - 1);
    snapshot_drop(s);
}

static void a_byte_order_mark_and_document_marks_do_no_harm(void **state)
{
    struct snapshot *s = load("\xef\xbb\xbf---\r\n" A_CLUSTER("...\n---\n"), NULL);
    (void)state;

    assert_int_equal(s->cluster_count, 1);
    snapshot_drop(s);
}

static void each_name_is_looked_up_once(void **state)
{
    struct names names = {.resolver = {resolve}};
    struct snapshot *s =
        load(LISTENERS "clusters: [{name: a, endpoints: [{address: 'a:1'}, {address: 'b:1'},\n"
                       "  {address: 'a:2'}]}, {name: b, endpoints: [{address: 'a:1'}]}]\n",
             &names.resolver);
    (void)state;

    assert_int_equal(names.asked, 2);
    assert_bytes(s->clusters[0].endpoints[2].text, "10.0.0.97:2");
    assert_bytes(s->clusters[1].endpoints[0].text, "10.0.0.97:1");
    assert_bytes(s->clusters[1].endpoints[0].hostname, "a");
    snapshot_drop(s);
}

static unsigned asked_with(const char *text, uint32_t errors)
{
    struct names names = {.resolver = {resolve}};
    struct config_errors e;
    struct snapshot *s = NULL;

    config_errors_init(&e);
    assert_int_equal(config_parse(&(struct config_source){BYTES("f"), bytes_of(text)}, 1,
                                  &names.resolver, &e, &s),
                     CONFIG_INVALID);
    assert_int_equal(e.count, errors);
    config_errors_release(&e);
    return names.asked;
}

static void nobody_waits_for_a_resolver_in_vain(void **state)
{
    (void)state;
    /* Something else is wrong already. */
    assert_int_equal(
        asked_with("x: 1\n" LISTENERS "clusters: [{name: a, endpoints: [{address: 'a:1'}]}]\n", 1),
        0);
    /* The third that fails is the last that is asked. */
    assert_int_equal(asked_with(LISTENERS
                                "clusters: [{name: a, endpoints: [{address: 'aa:1'}, {address: "
                                "'bb:1'}, {address: 'cc:1'}, {address: 'dd:1'}]}]\n",
                                3),
                     3);
}

static void what_cannot_be_read_says_why(void **state)
{
    static const struct {
        const char *path;
        int status;
        const char *shown;
    } rows[] = {
        {"-11", CONFIG_UNREADABLE, "-11: cannot be read: not found\n"},
        {"-10", CONFIG_UNREADABLE, "-10: cannot be read: permission denied\n"},
        {"-13", CONFIG_UNREADABLE, "-13: cannot be read: not a file, or larger than 16 MiB\n"},
        {"-7", CONFIG_NO_MEMORY, "-7: out of memory\n"},
    };
    struct files files = {.ops = &failing_ops};
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_errors e;
        struct snapshot *s = NULL;

        config_errors_init(&e);
        assert_int_equal(config_load(&rows[i].path, 1, &files, NULL, &e, &s), rows[i].status);
        assert_null(s);
        assert_string_equal(show(&e), rows[i].shown);
        config_errors_release(&e);
    }
}

static void options_are_addresses_too(void **state)
{
    struct address a;
    struct arena arena;
    const char *why;
    (void)state;

    arena_init(&arena, 100, SIZE_MAX);
    assert_true(config_parse_address(&arena, BYTES("127.0.0.1:80"), &a, &why));
    assert_address(&a, "127.0.0.1:80");
    assert_true(config_parse_address(&arena, BYTES("off"), &a, &why));
    assert_int_equal(a.kind, ADDRESS_NONE);
    assert_false(config_parse_address(&arena, BYTES("*:80"), &a, &why));
    assert_string_equal(
        why, "write 0.0.0.0:PORT for every interface, 127.0.0.1:PORT for this machine only");
    arena_release(&arena);
}

/* A thousand clusters of ten endpoints each: nothing in it may cost a square. */
static void a_large_file_is_read_whole(void **state)
{
    size_t room = 2 << 20;
    char *text = malloc(room);
    size_t len =
        (size_t)snprintf(text, room, "listeners:\n- name: w\n  listen: 0.0.0.0:1\n  routes:\n");
    struct snapshot *s;
    (void)state;

    for (unsigned i = 0; i < 1000; i++)
        len += (size_t)snprintf(text + len, room - len,
                                "  - {cluster: c%u, match: {pathPrefix: /%u/}}\n", i, i);
    len += (size_t)snprintf(text + len, room - len, "clusters:\n");
    for (unsigned i = 0; i < 1000; i++) {
        len += (size_t)snprintf(text + len, room - len, "- name: c%u\n  endpoints:\n", i);
        for (unsigned k = 0; k < 10; k++)
            len += (size_t)snprintf(text + len, room - len,
                                    "  - {address: '10.%u.%u.%u:80', zone: a, version: v1}\n", k,
                                    i / 250, i % 250);
    }
    s = load(text, NULL);
    assert_int_equal(s->cluster_count, 1000);
    assert_int_equal(s->listeners[0].routes[999].cluster, 999);
    assert_bytes(s->clusters[999].endpoints[9].text, "10.9.3.249:80");
    snapshot_drop(s);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limits_beyond_istios_are_taken),
        cmocka_unit_test(the_least_that_works_is_well_protected),
        cmocka_unit_test(a_list_gives_the_same_as_the_least_file),
        cmocka_unit_test(a_list_takes_the_options_of_run),
        cmocka_unit_test(a_wrong_list_shows_where),
        cmocka_unit_test(the_long_example_says_what_it_says),
        cmocka_unit_test(a_block_that_is_present_gets_istios_defaults),
        cmocka_unit_test(blocks_are_filled_each_for_itself),
        cmocka_unit_test(an_integer_of_zero_is_istios_unset),
        cmocka_unit_test(values_are_what_the_key_wants),
        cmocka_unit_test(panic_has_istios_threshold_and_its_own_policy),
        cmocka_unit_test(retries_are_off_unless_asked_for_and_careful_where_little_is_said),
        cmocka_unit_test(retries_are_as_they_are_asked_for),
        cmocka_unit_test(the_ends_of_a_range_belong_to_it),
        cmocka_unit_test(a_byte_order_mark_and_document_marks_do_no_harm),
        cmocka_unit_test(each_name_is_looked_up_once),
        cmocka_unit_test(nobody_waits_for_a_resolver_in_vain),
        cmocka_unit_test(what_cannot_be_read_says_why),
        cmocka_unit_test(options_are_addresses_too),
        cmocka_unit_test(a_large_file_is_read_whole),
    };

    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
