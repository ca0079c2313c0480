/* SPDX-License-Identifier: Apache-2.0 */
/* Istio's DestinationRules beside the native document: what is in force, and under which name. */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/memory.h"
#include "io/error.h"

#define EXAMPLES TESTS_DIR "/../examples/"

#define HEAD(name)                                                                                 \
    "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: " name            \
    ", namespace: shop}\nspec:\n"
#define LISTENERS "listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: a}]}]\n"
#define ONE                                                                                        \
    LISTENERS "clusters: [{name: a, host: a.shop.svc.cluster.local, endpoints: [{address: "        \
              "127.0.0.1:1}]}]\n"

static char output[64 * 1024];

static const char *show(const struct config_errors *e)
{
    struct text t;

    text_init(&t, output, sizeof(output));
    config_errors_write(&t, e);
    config_warnings_write(&t, e);
    return text_end(&t);
}

/* What was loaded, with what was said about it. */
struct result {
    struct config_errors errors;
    struct snapshot *snapshot;
};

static void release(struct result *r)
{
    config_errors_release(&r->errors);
    snapshot_drop(r->snapshot);
}

/* |native| and |rules| as two files; in that order. */
static struct result load_two(const char *native, const char *rules)
{
    const struct config_source sources[] = {{BYTES("n.yaml"), bytes_of(native)},
                                            {BYTES("r.yaml"), bytes_of(rules)}};
    struct result r = {.snapshot = NULL};

    config_errors_init(&r.errors);
    if (config_parse(sources, 2, NULL, &r.errors, &r.snapshot) != CONFIG_OK)
        fail_msg("%s", show(&r.errors));
    return r;
}

static const struct cluster *find(const struct result *r, const char *name)
{
    const struct cluster *c = snapshot_find_cluster(r->snapshot, bytes_of(name));

    if (c == NULL)
        fail_msg("no cluster %s", name);
    return c;
}

#define assert_bytes(b, text)                                                                      \
    do {                                                                                           \
        struct bytes given = (b);                                                                  \
        char copy[400];                                                                            \
        snprintf(copy, sizeof(copy), "%.*s", (int)given.len, (const char *)given.data);            \
        assert_string_equal(copy, text);                                                           \
    } while (0)

#define assert_says(text, part)                                                                    \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("not said: %s\nbut:\n%s", (part), (text));                                    \
    } while (0)

/* --- the rule of the note --- */

static int real_read(struct files *f, const char *path, size_t limit, struct bytes *out)
{
    FILE *file = fopen(path, "rb");
    char *data = memory_take(1 << 20);
    size_t len;
    (void)f;

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

static const struct files_ops real_ops = {.read = real_read};

static void check_llm_server(const struct cluster *c)
{
    assert_bytes(c->name, "outbound|80||llm-server.mesh-demo.svc.cluster.local");
    assert_bytes(c->stat_name, "outbound|80||llm-server.mesh-demo.svc.cluster.local");
    assert_int_equal(c->endpoint_count, 2);
    assert_int_equal(c->limits.max_connections, 100);
    assert_int_equal(c->limits.max_pending, 1000);
    assert_int_equal(c->limits.max_requests, 10000);
    assert_int_equal(c->limits.max_retries, 2);
    assert_int_equal(c->limits.max_requests_per_connection, 0);
    assert_int_equal(c->connect_timeout, 300 * NS_PER_MS);
    assert_int_equal(c->idle_timeout, 3600 * NS_PER_S);
    assert_true(c->outlier.enabled);
    assert_false(c->outlier.split);
    assert_int_equal(c->outlier.consecutive_5xx, 7);
    assert_int_equal(c->outlier.consecutive_gateway, 5);
    assert_int_equal(c->outlier.interval, 30 * NS_PER_S);
    assert_int_equal(c->outlier.base_ejection, 300 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection, 300 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection_percent, 50);
    assert_int_equal(c->panic.threshold, 50);
}

static void the_rule_of_the_example_is_in_force_unchanged(void **state)
{
    static const char *const orders[2][2] = {
        {EXAMPLES "llm-server.yaml", EXAMPLES "llm-server.destinationrule.yaml"},
        {EXAMPLES "llm-server.destinationrule.yaml", EXAMPLES "llm-server.yaml"}};
    struct files files = {.ops = &real_ops};
    (void)state;

    for (size_t i = 0; i < 2; i++) {
        struct result r = {.snapshot = NULL};

        config_errors_init(&r.errors);
        if (config_load(orders[i], 2, &files, NULL, &r.errors, &r.snapshot) != CONFIG_OK)
            fail_msg("%s", show(&r.errors));
        assert_int_equal(r.errors.warning_count, 0);
        check_llm_server(find(&r, "llm-server"));
        assert_int_equal(r.snapshot->listeners[0].routes[0].cluster, 0);
        release(&r);
    }
}

/* --- hosts --- */

static void a_rule_finds_its_cluster_by_every_form_of_the_host(void **state)
{
    static const struct {
        const char *cluster; /* host: of the cluster */
        const char *rule;    /* spec.host, of a rule in the namespace shop */
        const char *shown;
    } rows[] = {
        {"a.shop.svc.cluster.local", "a", "outbound|80||a.shop.svc.cluster.local"},
        {"a.shop.svc.cluster.local", "a.shop", "outbound|80||a.shop.svc.cluster.local"},
        {"a.shop.svc.cluster.local", "a.shop.svc", "outbound|80||a.shop.svc.cluster.local"},
        {"a.shop.svc.cluster.local", "A.Shop.svc.cluster.LOCAL",
         "outbound|80||a.shop.svc.cluster.local"},
        {"A.Shop.Svc", "a", "outbound|80||a.shop.svc.cluster.local"},
        {"a.shop", "a", "outbound|80||a.shop"},
        {"a.shop", "a.shop.svc.cluster.local", "outbound|80||a.shop"},
        {"a", "a", "outbound|80||a"},
        {"api.example.com", "api.example.com", "outbound|80||api.example.com"},
        {"api.example.com", "\"*.example.com\"", "outbound|80||api.example.com"},
        {"api.example.com", "'*.com'", "outbound|80||api.example.com"},
        {"a", "'*'", "outbound|80||a"},
        {"10.0.0.1", "10.0.0.1", "outbound|80||10.0.0.1"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char native[500], rule[500];
        struct result r;

        snprintf(native, sizeof(native),
                 LISTENERS "clusters: [{name: a, host: %s, endpoints: [{address: 127.0.0.1:1}]}]\n",
                 rows[i].cluster);
        snprintf(rule, sizeof(rule),
                 HEAD("x") "  host: %s\n"
                           "  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 77}}\n",
                 rows[i].rule);
        r = load_two(native, rule);
        assert_int_equal(r.snapshot->clusters[0].outlier.consecutive_5xx, 77);
        assert_bytes(r.snapshot->clusters[0].name, rows[i].shown);
        release(&r);
    }
}

static void a_rule_without_a_namespace_is_of_the_proxys_own(void **state)
{
    struct result r =
        load_two("namespace: back\n" LISTENERS
                 "clusters: [{name: a, host: a, endpoints: [{address: 127.0.0.1:1}]}]\n",
                 "apiVersion: networking.istio.io/v1beta1\nkind: DestinationRule\nspec: {host: a, "
                 "trafficPolicy: {outlierDetection: {consecutive5xxErrors: 9}}}\n");
    (void)state;

    assert_bytes(r.snapshot->clusters[0].name, "outbound|80||a.back.svc.cluster.local");
    assert_int_equal(r.snapshot->clusters[0].outlier.consecutive_5xx, 9);
    release(&r);
}

static void the_narrowest_rule_wins_and_a_clusters_own_word_is_narrower_than_a_pattern(void **state)
{
    struct result r = load_two(
        LISTENERS "clusters:\n"
                  "- {name: a, host: a.x.test, endpoints: [{address: 127.0.0.1:1}]}\n"
                  "- {name: b, host: b.x.test, endpoints: [{address: 127.0.0.1:1}]}\n"
                  "- {name: c, host: c.y.test, endpoints: [{address: 127.0.0.1:1}]}\n"
                  "- {name: d, host: d.x.test, endpoints: [{address: 127.0.0.1:1}],\n"
                  "   trafficPolicy: {outlierDetection: {consecutive5xxErrors: 4}}}\n"
                  "- {name: e, endpoints: [{address: 127.0.0.1:1}]}\n",
        HEAD("1") "  host: '*'\n  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 1}}\n"
                  "---\n" HEAD("2") "  host: '*.x.test'\n  trafficPolicy:\n"
                                    "    outlierDetection: {consecutive5xxErrors: 2}\n"
                                    "    connectionPool: {http: {maxRetries: 8}}\n"
                                    "---\n" HEAD("3") "  host: a.x.test\n"
                                                      "  trafficPolicy: {outlierDetection: "
                                                      "{consecutive5xxErrors: 3}}\n");
    (void)state;

    assert_int_equal(find(&r, "a")->outlier.consecutive_5xx, 3);
    assert_int_equal(find(&r, "a")->limits.max_retries, 3); /* the native default: not rule 2's */
    assert_int_equal(find(&r, "b")->outlier.consecutive_5xx, 2);
    assert_int_equal(find(&r, "b")->limits.max_retries, 8);
    assert_int_equal(find(&r, "c")->outlier.consecutive_5xx, 1);
    assert_int_equal(find(&r, "d")->outlier.consecutive_5xx, 4);
    assert_int_equal(find(&r, "d")->limits.max_retries, 8);
    assert_int_equal(find(&r, "e")->outlier.consecutive_5xx, 5);
    assert_bytes(find(&r, "e")->name, "e");
    release(&r);
}

/* --- ports and subsets (reference 8.1) --- */

static void an_entry_for_the_port_replaces_everything(void **state)
{
    struct result r = load_two(
        LISTENERS "clusters:\n"
                  "- {name: a, host: a.t, port: 80, endpoints: [{address: 127.0.0.1:1}]}\n"
                  "- {name: b, host: a.t, port: 90, endpoints: [{address: 127.0.0.1:2}]}\n",
        HEAD("x") "  host: a.t\n"
                  "  trafficPolicy:\n"
                  "    connectionPool: {tcp: {maxConnections: 11}}\n"
                  "    outlierDetection: {consecutive5xxErrors: 12}\n"
                  "    loadBalancer: {simple: RANDOM}\n"
                  "    portLevelSettings:\n"
                  "    - port: {number: 90}\n"
                  "      connectionPool: {http: {http2MaxRequests: 13}}\n");
    const struct cluster *a = find(&r, "outbound|80||a.t");
    const struct cluster *b = find(&r, "outbound|90||a.t");
    (void)state;

    assert_int_equal(a->limits.max_connections, 11);
    assert_int_equal(a->outlier.consecutive_5xx, 12);
    assert_int_equal(a->lb, LB_RANDOM);
    assert_int_equal(b->limits.max_connections, LIMIT_NONE);
    assert_int_equal(b->limits.max_requests, 13);
    assert_int_equal(b->outlier.consecutive_5xx, default_outlier.consecutive_5xx);
    assert_true(b->outlier.split); /* absent is absent: the native default protects */
    assert_int_equal(b->panic.threshold, default_panic.threshold);
    assert_int_equal(b->lb, LB_LEAST);
    release(&r);
}

static void a_native_policy_may_have_entries_for_ports_too(void **state)
{
    struct result r = load_two(
        LISTENERS "clusters:\n"
                  "- name: a\n  port: 90\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "  trafficPolicy:\n"
                  "    outlierDetection: {consecutive5xxErrors: 12}\n"
                  "    portLevelSettings:\n"
                  "    - {port: {number: 90}, outlierDetection: {consecutive5xxErrors: 13}}\n",
        "");
    (void)state;

    assert_int_equal(find(&r, "a")->outlier.consecutive_5xx, 13);
    release(&r);
}

#define LABELLED                                                                                   \
    LISTENERS "clusters:\n- name: a\n  host: a.t\n  endpoints:\n"                                  \
              "  - {address: '127.0.0.1:1', version: v1, zone: z1}\n"                              \
              "  - {address: '127.0.0.1:2', version: v2, labels: {track: canary}}\n"               \
              "  - {address: '127.0.0.1:3', labels: {version: v2, track: stable}}\n"               \
              "  - {address: '127.0.0.1:4'}\n"

static void a_subset_takes_the_endpoints_with_its_labels(void **state)
{
    struct result r = load_two(
        LABELLED, HEAD("x") "  host: a.t\n  subsets:\n"
                            "  - {name: v1, labels: {version: v1}}\n"
                            "  - {name: v2, labels: {version: v2}}\n"
                            "  - {name: canary, labels: {version: v2, track: canary}}\n"
                            "  - {name: zone, labels: {topology.kubernetes.io/zone: z1}}\n"
                            "  - {name: all}\n"
                            "  - {name: nobody, labels: {version: v3}}\n"
                            "  - {name: zone2, labels: {topology.kubernetes.io/zone: z2}}\n");
    static const struct {
        const char *name;
        uint32_t endpoints;
        const char *first;
    } rows[] = {
        {"outbound|80||a.t", 4, "127.0.0.1:1"},     {"outbound|80|v1|a.t", 1, "127.0.0.1:1"},
        {"outbound|80|v2|a.t", 2, "127.0.0.1:2"},   {"outbound|80|canary|a.t", 1, "127.0.0.1:2"},
        {"outbound|80|zone|a.t", 1, "127.0.0.1:1"}, {"outbound|80|all|a.t", 4, "127.0.0.1:1"}};
    (void)state;

    assert_int_equal(r.snapshot->cluster_count, sizeof(rows) / sizeof(rows[0]));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct cluster *c = find(&r, rows[i].name);

        assert_ptr_equal(c, &r.snapshot->clusters[i]);
        assert_int_equal(c->endpoint_count, rows[i].endpoints);
        assert_bytes(c->endpoints[0].text, rows[i].first);
    }
    assert_bytes(r.snapshot->clusters[2].endpoints[1].version, "v2");
    assert_int_equal(r.errors.warning_count, 2);
    assert_says(show(&r.errors), "r.yaml:12:5: warning: no endpoint of cluster 'a' has the labels "
                                 "of subset 'nobody', so there is no cluster for it");
    release(&r);
}

static void a_subsets_blocks_replace_those_of_the_rule(void **state)
{
    struct result r = load_two(
        LABELLED "  loadBalancer: round_robin\n  resilience: {connectFailover: off}\n",
        HEAD("x") "  host: a.t\n"
                  "  trafficPolicy:\n"
                  "    connectionPool: {tcp: {maxConnections: 11, connectTimeout: 7s}}\n"
                  "    outlierDetection: {consecutive5xxErrors: 12}\n"
                  "  subsets:\n"
                  "  - name: block\n"
                  "    trafficPolicy: {connectionPool: {http: {http2MaxRequests: 13}}}\n"
                  "  - name: port\n"
                  "    trafficPolicy:\n"
                  "      outlierDetection: {consecutive5xxErrors: 14}\n"
                  "      portLevelSettings:\n"
                  "      - {port: {number: 80}, connectionPool: {http: {http2MaxRequests: 15}}}\n"
                  "  - name: other\n"
                  "    trafficPolicy:\n"
                  "      outlierDetection: {consecutive5xxErrors: 16}\n"
                  "      portLevelSettings:\n"
                  "      - {port: {number: 81}, connectionPool: {http: {http2MaxRequests: 17}}}\n"
                  "  - name: plain\n");
    const struct cluster *block = find(&r, "outbound|80|block|a.t");
    const struct cluster *port = find(&r, "outbound|80|port|a.t");
    const struct cluster *other = find(&r, "outbound|80|other|a.t");
    const struct cluster *plain = find(&r, "outbound|80|plain|a.t");
    (void)state;

    assert_int_equal(block->limits.max_requests, 13);
    assert_int_equal(block->limits.max_connections, LIMIT_NONE); /* no merging inside a block */
    assert_int_equal(block->connect_timeout, 10 * NS_PER_S);
    assert_int_equal(block->outlier.consecutive_5xx, 12); /* inherited */
    assert_int_equal(port->limits.max_requests, 15);
    assert_int_equal(port->outlier.consecutive_5xx, default_outlier.consecutive_5xx);
    assert_int_equal(other->outlier.consecutive_5xx, 16);
    assert_int_equal(other->limits.max_connections, 11);
    assert_int_equal(other->limits.max_requests, LIMIT_NONE);
    assert_int_equal(plain->limits.max_connections, 11);
    assert_int_equal(plain->outlier.consecutive_5xx, 12);
    assert_int_equal(plain->lb, LB_ROUND_ROBIN); /* what the native cluster says holds for all */
    assert_false(plain->connect_failover);
    release(&r);
}

static void a_port_of_the_rule_and_blocks_of_the_subset(void **state)
{
    struct result r = load_two(
        LABELLED,
        HEAD("x") "  host: a.t\n"
                  "  trafficPolicy:\n"
                  "    connectionPool: {tcp: {maxConnections: 11}}\n"
                  "    portLevelSettings:\n"
                  "    - {port: {number: 80}, outlierDetection: {consecutive5xxErrors: 12}}\n"
                  "  subsets:\n"
                  "  - {name: s, trafficPolicy: {loadBalancer: {simple: RANDOM}}}\n");
    const struct cluster *s = find(&r, "outbound|80|s|a.t");
    (void)state;

    assert_int_equal(s->limits.max_connections, LIMIT_NONE);
    assert_int_equal(s->outlier.consecutive_5xx, 12);
    assert_int_equal(s->lb, LB_RANDOM);
    release(&r);
}

static void an_entry_for_a_port_that_nobody_has_is_warned_of(void **state)
{
    struct result r =
        load_two(LISTENERS "clusters:\n- name: a\n  host: a.t\n  port: 8080\n"
                           "  endpoints: [{address: 127.0.0.1:1}]\n"
                           "- name: b\n  endpoints: [{address: 127.0.0.1:1}]\n"
                           "  trafficPolicy:\n    portLevelSettings:\n"
                           "    - {port: {number: 80}, tls: {mode: DISABLE}}\n"
                           "    - {port: {number: 81}, tls: {mode: DISABLE}}\n",
                 HEAD("x") "  host: a.t\n  trafficPolicy:\n    portLevelSettings:\n"
                           "    - {port: {number: 80}, tls: {mode: DISABLE}}\n"
                           "    - {port: {number: 8080}, tls: {mode: DISABLE}}\n"
                           "  subsets:\n  - name: s\n    trafficPolicy:\n      portLevelSettings:\n"
                           "      - {port: {number: 82}, tls: {mode: DISABLE}}\n");
    (void)state;

    assert_int_equal(r.errors.warning_count, 3);
    assert_says(show(&r.errors), "n.yaml:12:14: warning: this entry does nothing: cluster 'b' has "
                                 "not port 81 (it is the cluster's key `port`; 80 where that");
    assert_says(show(&r.errors), "r.yaml:8:14: warning: this entry does nothing: a cluster of host "
                                 "'a.t' has not port 80");
    assert_says(show(&r.errors), "r.yaml:14:16: warning: this entry does nothing: a cluster of "
                                 "host 'a.t' has not port 82");
    release(&r);
}

/* --- several rules --- */

static void rules_of_one_host_complete_each_other(void **state)
{
    struct result r = load_two(
        LABELLED,
        HEAD("1") "  host: a.t\n  subsets: [{name: v1, labels: {version: v1}}]\n"
                  "---\n" HEAD(
                      "2") "  host: a.t\n"
                           "  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 12}}\n"
                           "  subsets: [{name: v2, labels: {version: v2}}]\n");
    (void)state;

    assert_int_equal(find(&r, "outbound|80||a.t")->outlier.consecutive_5xx, 12);
    assert_int_equal(find(&r, "outbound|80|v1|a.t")->outlier.consecutive_5xx, 12);
    assert_int_equal(find(&r, "outbound|80|v2|a.t")->outlier.consecutive_5xx, 12);
    release(&r);
}

static void what_kubectl_writes_is_taken_as_it_is(void **state)
{
    struct result r =
        load_two(ONE, "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n"
                      "- apiVersion: networking.istio.io/v1alpha3\n  kind: DestinationRule\n"
                      "  metadata:\n    annotations: {a.b/c: '{\"x\": 1}'}\n"
                      "    creationTimestamp: \"2026-01-01T00:00:00Z\"\n    generation: 3\n"
                      "    labels: {app: a}\n    name: a\n    namespace: shop\n"
                      "    managedFields: [{manager: kubectl}]\n    uid: 1-2-3\n"
                      "  spec:\n    host: a\n    trafficPolicy:\n"
                      "      outlierDetection: {consecutive5xxErrors: 8}\n  status: {}\n");
    (void)state;

    assert_int_equal(find(&r, "a")->outlier.consecutive_5xx, 8);
    release(&r);
}

static void what_is_not_exported_to_us_does_nothing(void **state)
{
    static const struct {
        const char *own;
        const char *to;
        bool holds;
    } rows[] = {
        {"", "exportTo: ['*']", true},
        {"", "exportTo: ['.']", true},
        {"", "exportTo: []", true},
        {"", "exportTo: ['~']", false},
        {"namespace: shop\n", "exportTo: ['.']", true},
        {"namespace: other\n", "exportTo: ['.']", false},
        {"namespace: other\n", "exportTo: [one, other]", true},
        {"namespace: other\n", "exportTo: [one, two]", false},
        {"namespace: other\n", "exportTo: [one, '*']", true},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char native[500], rule[500];
        struct result r;

        snprintf(native, sizeof(native), "%s" ONE, rows[i].own);
        snprintf(rule, sizeof(rule),
                 HEAD("x") "  host: a\n  %s\n"
                           "  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 77}}\n",
                 rows[i].to);
        r = load_two(native, rule);
        assert_int_equal(r.snapshot->clusters[0].outlier.consecutive_5xx == 77, rows[i].holds);
        assert_int_equal(r.errors.warning_count, !rows[i].holds);
        release(&r);
    }
}

/* --- values --- */

static void a_cluster_keeps_the_blocks_that_its_rule_does_not_have(void **state)
{
    struct result r = load_two(
        LISTENERS "clusters:\n- name: a\n  host: a.t\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "  trafficPolicy: {connectionPool: {tcp: {maxConnections: 5}}}\n",
        HEAD("x") "  host: a.t\n"
                  "  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 6}}\n"
                  "  subsets: [{name: s}]\n");
    (void)state;

    assert_int_equal(find(&r, "a")->limits.max_connections, 5);
    assert_int_equal(find(&r, "a")->outlier.consecutive_5xx, 6);
    assert_int_equal(find(&r, "outbound|80|s|a.t")->limits.max_connections, 5);
    release(&r);
}

static void zero_is_unset_and_idle_timeouts_fall_back(void **state)
{
    struct result r = load_two(
        ONE,
        HEAD("x") "  host: a\n  trafficPolicy:\n    connectionPool:\n"
                  "      tcp: {maxConnections: 0, idleTimeout: 30s}\n"
                  "      http: {http1MaxPendingRequests: 0, http2MaxRequests: 0, maxRetries: 0,\n"
                  "             maxRequestsPerConnection: 0, h2UpgradePolicy: DO_NOT_UPGRADE,\n"
                  "             useClientProtocol: false, maxConcurrentStreams: 0}\n"
                  "    outlierDetection: {maxEjectionPercent: 0, consecutive5xxErrors: 0,\n"
                  "                       consecutiveErrors: 3}\n"
                  "    tls: {mode: DISABLE}\n"
                  "    loadBalancer: {simple: LEAST_CONN, localityLbSetting: {enabled: false}}\n");
    const struct cluster *c = find(&r, "a");
    (void)state;

    assert_int_equal(c->limits.max_connections, LIMIT_NONE);
    assert_int_equal(c->limits.max_pending, LIMIT_NONE);
    assert_int_equal(c->limits.max_requests, LIMIT_NONE);
    assert_int_equal(c->limits.max_retries, LIMIT_NONE);
    assert_int_equal(c->limits.max_requests_per_connection, 0);
    assert_int_equal(c->idle_timeout, 30 * NS_PER_S);
    assert_int_equal(c->outlier.max_ejection_percent, 10);
    assert_int_equal(c->outlier.consecutive_5xx, 0);
    assert_int_equal(c->lb, LB_P2C);
    assert_int_equal(r.errors.warning_count, 2);
    assert_says(show(&r.errors), "r.yaml:11:40: warning: 'maxConcurrentStreams': without effect");
    assert_says(show(&r.errors),
                "outlier detection consecutive errors is deprecated, use consecutiveGatewayErrors "
                "or consecutive5xxErrors instead");
    release(&r);
}

static void an_idle_timeout_of_zero_is_never_and_https_wins(void **state)
{
    struct result r = load_two(ONE, HEAD("x") "  host: a\n  trafficPolicy:\n"
                                              "    connectionPool: {tcp: {idleTimeout: 0s}}\n");
    (void)state;

    assert_true(r.snapshot->clusters[0].idle_timeout == MONO_NEVER);
    release(&r);
    r = load_two(ONE, HEAD("x") "  host: a\n  trafficPolicy:\n    connectionPool:\n"
                                "      tcp: {idleTimeout: 5s}\n      http: {idleTimeout: 6s}\n");
    assert_int_equal(r.snapshot->clusters[0].idle_timeout, 6 * NS_PER_S);
    release(&r);
}

static void routes_find_clusters_by_every_name(void **state)
{
    struct result r =
        load_two("namespace: shop\n"
                 "listeners:\n- name: web\n  listen: 127.0.0.1:0\n  routes:\n"
                 "  - cluster: a\n  - cluster: b\n  - cluster: b.shop.svc.cluster.local\n"
                 "  - cluster: outbound|80||b.shop.svc.cluster.local\n"
                 "  - cluster: outbound|80|v2|b.shop.svc.cluster.local\n  - cluster: front\n"
                 "clusters:\n"
                 "- {name: a, endpoints: [{address: 127.0.0.1:1}]}\n"
                 "- {name: back, host: b, endpoints: [{address: 127.0.0.1:1}]}\n"
                 "- {name: front, host: f.t, endpoints: [{address: 127.0.0.1:1}]}\n",
                 HEAD("x") "  host: b\n  subsets: [{name: v2}]\n");
    const struct route *routes = r.snapshot->listeners[0].routes;
    static const uint32_t expected[] = {0, 1, 1, 1, 2, 3};
    (void)state;

    for (size_t i = 0; i < 6; i++)
        assert_int_equal(routes[i].cluster, expected[i]);
    assert_null(snapshot_find_cluster(r.snapshot, BYTES("nobody")));
    assert_null(snapshot_find_cluster(r.snapshot, BYTES("")));
    assert_ptr_equal(find(&r, "back"), find(&r, "b.shop.svc.cluster.local"));
    release(&r);
}

/* --- two steps --- */

static int answer(struct config_resolver *resolver, struct bytes host, struct address *out)
{
    (void)resolver;
    *out = (struct address){.kind = ADDRESS_IPV4, .ip = {10, 0, 0, host.data[0]}};
    return IO_OK;
}

static void what_is_opened_shows_where_each_setting_comes_from(void **state)
{
    const struct config_source sources[] = {
        {BYTES("n.yaml"), BYTES(LISTENERS "clusters:\n- name: a\n  host: a.t\n"
                                          "  endpoints: [{address: 'x:1'}, {address: 'y:1'}]\n"
                                          "  trafficPolicy: {connectionPool: {tcp: {}}}\n")},
        {BYTES("r.yaml"),
         BYTES(HEAD("x") "  host: a.t\n  trafficPolicy:\n    outlierDetection: {interval: 1s}\n"
                         "  subsets: [{name: s}]\n")}};
    struct config_resolver resolver = {answer};
    struct config_errors errors;
    struct config_loaded l;
    struct snapshot *s = NULL;
    const struct config_cluster *c;
    (void)state;

    config_errors_init(&errors);
    assert_int_equal(config_open_texts(&l, sources, 2, &errors), CONFIG_OK);
    assert_int_equal(l.name_count, 2);
    assert_bytes(l.names[0], "x");
    assert_bytes(l.names[1], "y");
    c = l.file->clusters.at;
    assert_int_equal(l.file->clusters.count, 2);
    assert_int_equal(c[0].policy.pool.head.node->source, 0);
    assert_int_equal(c[0].policy.outlier.head.node->source, 1);
    assert_int_equal(config_node_find(c[1].policy.outlier.head.node, "interval")->line, 7);
    assert_null(c[0].subset);
    assert_bytes(c[1].subset->name, "s");
    assert_bytes(c[1].rule->metadata.name, "x");
    assert_int_equal(config_compile(&l, &resolver, &s), CONFIG_OK);
    assert_int_equal(s->cluster_count, 2);
    assert_int_equal(s->clusters[1].endpoints[1].address.ip[3], 'y');
    config_close(&l);
    config_errors_release(&errors);
    snapshot_drop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_of_the_example_is_in_force_unchanged),
        cmocka_unit_test(a_rule_finds_its_cluster_by_every_form_of_the_host),
        cmocka_unit_test(a_rule_without_a_namespace_is_of_the_proxys_own),
        cmocka_unit_test(
            the_narrowest_rule_wins_and_a_clusters_own_word_is_narrower_than_a_pattern),
        cmocka_unit_test(an_entry_for_the_port_replaces_everything),
        cmocka_unit_test(a_native_policy_may_have_entries_for_ports_too),
        cmocka_unit_test(a_subset_takes_the_endpoints_with_its_labels),
        cmocka_unit_test(a_subsets_blocks_replace_those_of_the_rule),
        cmocka_unit_test(a_port_of_the_rule_and_blocks_of_the_subset),
        cmocka_unit_test(an_entry_for_a_port_that_nobody_has_is_warned_of),
        cmocka_unit_test(rules_of_one_host_complete_each_other),
        cmocka_unit_test(what_kubectl_writes_is_taken_as_it_is),
        cmocka_unit_test(what_is_not_exported_to_us_does_nothing),
        cmocka_unit_test(a_cluster_keeps_the_blocks_that_its_rule_does_not_have),
        cmocka_unit_test(zero_is_unset_and_idle_timeouts_fall_back),
        cmocka_unit_test(an_idle_timeout_of_zero_is_never_and_https_wins),
        cmocka_unit_test(routes_find_clusters_by_every_name),
        cmocka_unit_test(what_is_opened_shows_where_each_setting_comes_from),
    };

    return cmocka_run_group_tests_name("config_istio", tests, NULL, NULL);
}
