/* SPDX-License-Identifier: Apache-2.0 */
/* Istio's documents that cannot be taken: what is said, in which file and where. */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct broken {
    const char *rule;      /* r.yaml; n.yaml is good */
    uint32_t line, column; /* of the first message */
    const char *message;   /* a part of it */
};

#define NATIVE                                                                                     \
    "listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: a}]}]\n"                      \
    "clusters:\n"                                                                                  \
    "- {name: a, host: a.shop.svc.cluster.local, endpoints: [{address: 127.0.0.1:1, version: "     \
    "v1}]}\n"
#define KIND "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n"
#define META KIND "metadata: {name: x, namespace: shop}\n"
/* |rest| is in line 5, column 3. */
#define SPEC(rest) META "spec:\n  " rest "\n"
/* |rest| is in line 6, column 18. */
#define POLICY(rest)   META "spec:\n  host: a\n  trafficPolicy: " rest "\n"
#define TCP(rest)      POLICY("{connectionPool: {tcp: {" rest "}}}")  /* from 6:42 */
#define HTTP(rest)     POLICY("{connectionPool: {http: {" rest "}}}") /* from 6:43 */
#define OUTLIER(rest)  POLICY("{outlierDetection: {" rest "}}")       /* from 6:38 */
#define BALANCER(rest) POLICY("{loadBalancer: {" rest "}}")           /* from 6:34 */

static char output[64 * 1024];

static const char *show(const struct config_errors *e)
{
    struct text t;

    text_init(&t, output, sizeof(output));
    config_errors_write(&t, e);
    config_warnings_write(&t, e);
    return text_end(&t);
}

static int parse(const char *native, const char *rule, struct config_errors *e,
                 struct snapshot **out)
{
    const struct config_source sources[] = {{BYTES("n.yaml"), bytes_of(native)},
                                            {BYTES("r.yaml"), bytes_of(rule)}};

    config_errors_init(e);
    return config_parse(sources, 2, NULL, e, out);
}

static void check_in(const char *native, const struct broken *b, uint32_t source)
{
    struct config_errors e;
    struct snapshot *s = NULL;
    int status = parse(native, b->rule, &e, &s);
    char message[1100];

    if (status != CONFIG_INVALID || s != NULL || e.count == 0)
        fail_msg("accepted:\n%s", b->rule);
    snprintf(message, sizeof(message), "%.*s", (int)e.at[0].message.len, e.at[0].message.data);
    if (e.at[0].source != source || e.at[0].line != b->line || e.at[0].column != b->column ||
        strstr(message, b->message) == NULL)
        fail_msg("of\n%s\nexpected %u:%u: %s\ngot\n%s", b->rule, b->line, b->column, b->message,
                 show(&e));
    config_errors_release(&e);
}

#define CHECK_ALL(rows)                                                                            \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                                  \
    check_in(NATIVE, &(rows)[i], 1)

static void other_documents_are_refused_by_name(void **state)
{
    static const struct broken rows[] = {
        {"apiVersion: networking.istio.io/v1\nkind: CircuitBreaker\nspec: {}\n", 2, 7,
         "kind 'CircuitBreaker' is not read: there is no such kind in Istio either: write a "
         "DestinationRule"},
        {"kind: CircuitBreaker\n", 1, 7, "write a DestinationRule"},
        {"apiVersion: resilience.example/v1\nkind: CircuitBreaker\n", 2, 7,
         "write a DestinationRule"},
        {"apiVersion: networking.istio.io/v1\nkind: VirtualService\n", 2, 7,
         "kind 'VirtualService' is not read: write its routes in listeners[].routes"},
        {"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n", 2, 7, "as a cluster"},
        {"apiVersion: networking.istio.io/v1\nkind: Gateway\n", 2, 7, "write listeners:"},
        {"apiVersion: networking.istio.io/v1\nkind: EnvoyFilter\n", 2, 7, "no Envoy"},
        {"apiVersion: v1\nkind: Service\n", 2, 7,
         "kind 'Service' is not read: besides the native document, which has neither"},
        {"apiVersion: v1\nkind: [a]\n", 2, 7, "is not read"},
        {"apiVersion: networking.istio.io/v1\n", 1, 1, "no kind: write kind: DestinationRule"},
        {"apiVersion: v1\n", 1, 1, "a document with an apiVersion is not Firebreak's own form"},
        {"kind: DestinationRule\nspec: {host: a}\n", 1, 1,
         "a DestinationRule without apiVersion: write apiVersion: networking.istio.io/v1"},
        {"apiVersion: v1\nkind: DestinationRule\n", 1, 13,
         "a DestinationRule's apiVersion is networking.istio.io/v1, v1beta1 or v1alpha3; not 'v1'"},
        {"apiVersion: networking.istio.io/v2\nkind: DestinationRule\nspec: {host: a}\n", 1, 13,
         "'apiVersion' must be networking.istio.io/v1, networking.istio.io/v1beta1 or "
         "networking.istio.io/v1alpha3; not 'networking.istio.io/v2'"},
        {"apiVersion: v1\nkind: List\nitems:\n- a: b\n", 4, 3,
         "an item of a List has an apiVersion"},
        {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n", 4, 26,
         "kind 'Pod' is not read"},
        {"admin: {}\n", 1, 1,
         "a second document in Firebreak's own form: write all in one; the first begins in line 1 "
         "of n.yaml"},
        {"- a\n", 1, 1, "a second document in Firebreak's own form"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void a_lost_indentation_is_said(void **state)
{
    static const struct broken rows[] = {
        {KIND "metadata:\nname: x\nspec:\nhost: a\n", 4, 1,
         "the indentation is lost: 'name' belongs in 'metadata'"},
        {META "spec:\nhost: a\ntrafficPolicy:\nconnectionPool:\n", 5, 1,
         "the indentation is lost: 'host' belongs in 'spec'"},
        {SPEC("host: a\n  trafficPolicy:\n  connectionPool:\n    tcp: {maxConnections: 1}"), 7, 3,
         "the indentation is lost: 'connectionPool' belongs in 'trafficPolicy'"},
        {"apiVersion: networking.istio.io/v1 kind: DestinationRule metadata: name: x spec: host: a "
         "# b\n",
         1, 40, "several keys in one line: line breaks and indentation are lost"},
        {KIND "metadata: name: x namespace: shop\n", 3, 15, "several keys in one line"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void a_rule_must_have_a_host_that_is_there(void **state)
{
    static const struct broken rows[] = {
        {META, 1, 1, "DestinationRule has no 'spec'"},
        {META "spec: {}\n", 4, 7, "spec has no 'host'"},
        {META "spec: []\n", 4, 7, "'spec' must be a map of keys and values"},
        {META "spec:\n", 4, 6, "'spec' has no value"},
        {SPEC("host: b"), 5, 9,
         "no cluster has the host 'b.shop.svc.cluster.local'; did you mean "
         "'a.shop.svc.cluster.local'?"},
        {SPEC("host: payments.example.com"), 5, 9,
         "no cluster has the host 'payments.example.com': give the one that the rule is for the "
         "key `host:` with this name in the native document, or leave the rule out"},
        {KIND "metadata: {namespace: other}\nspec: {host: a}\n", 4, 14,
         "no cluster has the host 'a.other.svc.cluster.local'"},
        {SPEC("host: 'a b'"), 5, 9, "a host is a name such as"},
        {SPEC("host: a..b"), 5, 9, "a host is a name such as"},
        {SPEC("host: '*a'"), 5, 9, "a host is a name such as"},
        {SPEC("host: 'a.*'"), 5, 9, "a host is a name such as"},
        {SPEC("host: '*.'"), 5, 9, "a host is a name such as"},
        {SPEC("host: http://a"), 5, 9, "a host is a name such as"},
        {SPEC("host: [a]"), 5, 9, "'host' must be text"},
        {SPEC("host: \"\""), 5, 9, "'host' must be text"},
        {SPEC("hosts: a"), 5, 3, "unknown key 'hosts' in spec; did you mean 'host'?"},
        {SPEC("host: a\n  exportTo: a"), 6, 13, "'exportTo' must be a list"},
        {SPEC("host: a\n  exportTo: [one, two]"), 6, 3,
         "'exportTo' names namespaces: say which one this proxy is in, with `namespace: NAME`"},
        {SPEC("host: a\n  workloadSelector: {matchLabels: {app: a}}"), 6, 3,
         "'workloadSelector' is not supported: it picks the pods that a rule is for, and here the "
         "rule is given to one proxy; leave it out"},
        {KIND "metadata: {namespace: a/b c}\nspec: {host: a}\n", 3, 23,
         "'namespace' may have up to 63 letters"},
        {KIND "metadata: x\nspec: {host: a}\n", 3, 11, "'metadata' must be a map"},
        {META "spec: {host: a}\nspce: {}\n", 5, 1,
         "unknown key 'spce' in DestinationRule; did you"},
        {META "trafficPolicy: {}\nspec: {host: a}\n", 4, 1,
         "unknown key 'trafficPolicy' in DestinationRule; it belongs in spec"},
    };
    (void)state;

    CHECK_ALL(rows);
}

/* The words of reference 8.6, each at its place. */
static void istios_validation_is_done_in_its_words(void **state)
{
    static const struct broken rows[] = {
        {POLICY("{}"), 6, 18, "traffic policy must have at least one field"},
        {POLICY("{connectionPool: {}}"), 6, 35, "connection pool must have at least one field"},
        {POLICY("{portLevelSettings: [{port: {number: 80}}]}"), 6, 39,
         "port traffic policy must have at least one field"},
        {POLICY("{portLevelSettings: [{}]}"), 6, 39,
         "port traffic policy must have at least one field"},
        {POLICY("{portLevelSettings: [{tls: {mode: DISABLE}}]}"), 6, 39,
         "portLevelSettings has no 'port'"},
        {POLICY("{portLevelSettings: [{port: {}, tls: {mode: DISABLE}}]}"), 6, 46,
         "portTrafficPolicy must have valid port"},
        {POLICY("{portLevelSettings: [{port: {number: 0}, tls: {mode: DISABLE}}]}"), 6, 55,
         "'number' must be between 1 and 65535"},
        {POLICY("{portLevelSettings: [{port: {number: 80}, tls: {mode: DISABLE}}, {port: {number: "
                "80}, outlierDetection: {}}]}"),
         6, 83, "an entry for the same port is there already"},
        {TCP("maxConnections: -1"), 6, 58, "max connections must be non-negative"},
        {HTTP("http1MaxPendingRequests: -1"), 6, 68,
         "http1 max pending requests must be non-negative"},
        {HTTP("http2MaxRequests: -1"), 6, 61, "http2 max requests must be non-negative"},
        {HTTP("maxRequestsPerConnection: -1"), 6, 69,
         "max requests per connection must be non-negative"},
        {HTTP("maxRetries: -1"), 6, 55, "max retries must be non-negative"},
        {HTTP("maxConcurrentStreams: -1"), 6, 65, "max concurrent streams must be non-negative"},
        {HTTP("maxRetries: 2147483648"), 6, 55, "'maxRetries' must be between 0 and 2147483647"},
        {HTTP("maxRetries: 1.5"), 6, 55, "'maxRetries' must be a whole number; not '1.5'"},
        {HTTP("maxRetries: \"\""), 6, 55, "'maxRetries' must be a whole number"},
        {OUTLIER("interval: 0s"), 6, 48, "duration must be greater than 1ms"},
        {OUTLIER("interval: 1500us"), 6, 48, "only durations to ms precision are supported"},
        {OUTLIER("interval: 10"), 6, 48, "'interval' must be a number with a unit"},
        {OUTLIER("interval: -1s"), 6, 48, "'interval' must be a number with a unit"},
        {TCP("connectTimeout: 0s"), 6, 58, "duration must be greater than 1ms"},
        {HTTP("idleTimeout: 0s"), 6, 56, "duration must be greater than 1ms"},
        {HTTP("h2UpgradePolicy: UPGRADE"), 6, 60,
         "'UPGRADE' is not supported yet: it comes with HTTP/2"},
        {HTTP("useClientProtocol: true"), 6, 62, "it comes with HTTP/2"},
        {HTTP("http2KeepAlive: {timeout: 1s}"), 6, 59, "http2KeepAlive has no 'interval'"},
        {HTTP("http2KeepAlive: {interval: 1s}"), 6, 59, "http2KeepAlive has no 'timeout'"},
        {OUTLIER("maxEjectionPercent: 101"), 6, 58, "percentage 101 is not in range 0..100"},
        {OUTLIER("minHealthPercent: -1"), 6, 56, "percentage -1 is not in range 0..100"},
        {OUTLIER("minHealthPercent: 50%"), 6, 56, "'minHealthPercent' must be a whole number"},
        {OUTLIER("consecutiveLocalOriginFailures: 5"), 6, 38,
         "outlier detection consecutive local origin failures is specified, but split external "
         "local origin errors is set to false"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void subsets_must_have_names_and_labels_that_can_be(void **state)
{
    static const struct broken rows[] = {
        {SPEC("host: a\n  subsets: [{name: v1}, {name: v1}]"), 6, 32,
         "duplicate subset names: v1; the first is in line 6"},
        {SPEC("host: a\n  subsets: [{labels: {}}]"), 6, 13, "subset has no 'name'"},
        {SPEC("host: a\n  subsets: [null]"), 6, 13, "'subset' has no value"},
        {SPEC("host: a\n  subsets: [{name: V1}]"), 6, 20, "subset name is invalid: V1"},
        {SPEC("host: a\n  subsets: [{name: v-}]"), 6, 20, "subset name is invalid: v-"},
        {SPEC("host: a\n  subsets: [{name: v.1}]"), 6, 20, "subset name is invalid: v.1"},
        {SPEC("host: a\n  subsets: [{name: v1, labels: [a]}]"), 6, 32,
         "'labels' must be names with values"},
        {SPEC("host: a\n  subsets: [{name: v1, labels: {a: [b]}}]"), 6, 36,
         "'labels' must be names with values"},
        {SPEC("host: a\n  subsets: [{name: v1, labels: {a: b, a: c}}]"), 6, 39,
         "'a' is given twice: first in line 6"},
        {SPEC("host: a\n  subsets: [{name: v1, labels: {a: }}]"), 6, 36, "'labels' has no value"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void what_we_do_not_have_is_refused_by_name(void **state)
{
    static const struct broken rows[] = {
        {BALANCER("consistentHash: {useSourceIp: true}"), 6, 34,
         "'consistentHash' is not supported yet: it comes with consistent hashing; write simple: "
         "LEAST_REQUEST"},
        {BALANCER("warmup: {duration: 1s}"), 6, 34, "'warmup' is not supported yet"},
        {BALANCER("warmupDurationSecs: 1s"), 6, 34, "slow start; leave it out"},
        {BALANCER("localityLbSetting: {enabled: true}"), 6, 63, "it comes with zones"},
        {BALANCER("localityLbSetting: {failover: []}"), 6, 54, "'failover' is not supported yet"},
        {BALANCER("localityLbSetting: {distribute: []}"), 6, 54, "'distribute' is not supported"},
        {BALANCER("zoneAwareLbSetting: {}"), 6, 34, "zones; leave it out"},
        {BALANCER("simple: PASSTHROUGH"), 6, 42, "write LEAST_REQUEST"},
        {BALANCER("simple: round_robin"), 6, 42,
         "'simple' must be UNSPECIFIED, LEAST_REQUEST, LEAST_CONN, ROUND_ROBIN or RANDOM; not "
         "'round_robin'; did you mean 'ROUND_ROBIN'?"},
        {POLICY("{tls: {mode: ISTIO_MUTUAL}}"), 6, 31,
         "'ISTIO_MUTUAL' is not supported yet: it comes with TLS; write DISABLE where the hosts "
         "take plain HTTP"},
        {POLICY("{tls: {sni: a}}"), 6, 25, "'sni' is not supported yet: it comes with TLS"},
        {POLICY("{tunnel: {protocol: CONNECT}}"), 6, 19,
         "'tunnel' is not supported: hosts are reached directly, without CONNECT; leave it out"},
        {POLICY("{proxyProtocol: {version: V1}}"), 6, 19,
         "'proxyProtocol' is not supported: no PROXY header is sent to hosts; leave it out"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void rules_that_contradict_each_other_are_refused(void **state)
{
    static const struct broken rows[] = {
        {SPEC("host: a\n  trafficPolicy: {outlierDetection: {}}") "---\n" SPEC(
             "host: a.shop\n  trafficPolicy: {outlierDetection: {}}"),
         13, 3,
         "a second trafficPolicy for the host 'a.shop': the first is in line 6; keep one (Istio "
         "would take the older rule, and not say so)"},
        {SPEC("host: a\n  subsets: [{name: s}]") "---\n" SPEC("host: a\n  subsets: [{name: s}]"),
         13, 20, "duplicate subset names: s; the first is in line 6"},
        {SPEC("host: a") "---\n" KIND "metadata: {namespace: other}\n"
                         "spec: {host: a.shop.svc.cluster.local}\n",
         7, 1, "of another namespace than the first in line 1: keep the one that is meant"},
    };
    (void)state;

    CHECK_ALL(rows);
}

#define LISTENER "listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: a}]}]\n"

#define TEXT30  "aaaaaaaaaabbbbbbbbbbcccccccccc"
#define TEXT240 TEXT30 TEXT30 TEXT30 TEXT30 TEXT30 TEXT30 TEXT30 TEXT30

/* Faults of the native document, which is the first of the two. */
static void clusters_that_contradict_rules_or_each_other_are_refused(void **state)
{
    static const struct {
        const char *native;
        struct broken broken;
    } rows[] = {
        {LISTENER "clusters:\n- name: a\n  host: a.t\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "  trafficPolicy:\n    outlierDetection: {}\n",
         {SPEC("host: a.t\n  trafficPolicy: {outlierDetection: {}}\n  subsets: [{name: s}]"), 7, 5,
          "'outlierDetection' of cluster 'a' is in the DestinationRule of its host as well, in "
          "line "
          "6 of r.yaml: keep one of them"}},
        {LISTENER "clusters:\n- name: a\n  host: a.t\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "  connectTimeout: 1s\n",
         {SPEC("host: a.t\n  trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}}"), 6, 3,
          "'connectTimeout' is in trafficPolicy as well, in line 6 of r.yaml: keep one of them"}},
        {LISTENER "clusters:\n- name: a\n  host: a.t\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "  idleTimeout: 1s\n",
         {SPEC("host: a.t\n  trafficPolicy: {connectionPool: {tcp: {idleTimeout: 1s}}}"), 6, 3,
          "'idleTimeout' is in trafficPolicy as well, in line 6 of r.yaml"}},
        {LISTENER "clusters:\n- name: a\n  host: a.t\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "  loadBalancer: random\n",
         {SPEC("host: a.t\n  trafficPolicy: {loadBalancer: {simple: RANDOM}}"), 6, 3,
          "'loadBalancer' is in trafficPolicy as well, in line 6 of r.yaml"}},
        {LISTENER "clusters:\n- {name: a, host: a.t, endpoints: [{address: 127.0.0.1:1}]}\n"
                  "- {name: b, host: A.t, endpoints: [{address: 127.0.0.1:1}]}\n",
         {"", 4, 19,
          "two clusters would be 'outbound|80||a.t': give one of them another port; the first is "
          "in line 3"}},
        {LISTENER "clusters:\n- {name: a, host: 'a/b', endpoints: [{address: 127.0.0.1:1}]}\n",
         {"", 3, 19, "a host is a name such as"}},
        {LISTENER "clusters:\n- {name: a, host: a.t, port: 65536, endpoints: [{address: "
                  "127.0.0.1:1}]}\n",
         {"", 3, 30, "'port' must be between 1 and 65535"}},
        {LISTENER "clusters:\n- {name: a, endpoints: [{address: 127.0.0.1:1, version: v1, labels: "
                  "{version: v2}}]}\n",
         {"", 3, 70, "'version' is given twice: first in line 3"}},
        {"listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: a.t}]}]\n"
         "clusters:\n- {name: a, host: a.t, endpoints: [{address: 127.0.0.1:1}]}\n"
         "- {name: b, host: a.t, port: 81, endpoints: [{address: 127.0.0.1:1}]}\n",
         {"", 1, 65,
          "several clusters have the host 'a.t': write the name of one, or outbound|PORT||HOST"}},
        {"listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: outbound|80|v2|a.t}]}]\n"
         "clusters:\n- {name: a, host: a.t, endpoints: [{address: 127.0.0.1:1}]}\n",
         {"", 1, 65, "there is no cluster 'outbound|80|v2|a.t'"}},
        {LISTENER "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "  trafficPolicy:\n    portLevelSettings:\n    - port: {number: 80}\n",
         {"", 7, 7, "port traffic policy must have at least one field"}},
        {"namespace: back\n" LISTENER "clusters:\n- {name: a, host: " TEXT240
         ", endpoints: [{address: 127.0.0.1:1}]}\n",
         {SPEC("host: '*'"), 4, 19, "a host is a name such as"}},
        {"namespace: a b\n" LISTENER
         "clusters:\n- {name: a, host: a.t, endpoints: [{address: 127.0.0.1:1}]}\n",
         {"", 1, 12, "'namespace' may have up to 63 letters"}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_in(rows[i].native, &rows[i].broken, 0);
}

static void rules_without_a_native_document_are_no_configuration(void **state)
{
    const struct config_source source = {BYTES("r.yaml"), BYTES(SPEC("host: a"))};
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    config_errors_init(&e);
    assert_int_equal(config_parse(&source, 1, NULL, &e, &s), CONFIG_INVALID);
    assert_non_null(
        strstr(show(&e), "r.yaml:1:1: only Istio's rules: they say how to treat hosts"));
    config_errors_release(&e);
}

static void errors_of_several_files_are_in_the_order_of_the_files(void **state)
{
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    assert_int_equal(parse("listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: b}]}]\n"
                           "clusters: [{name: a, endpoints: [{address: x}]}]\n",
                           TCP("maxConnections: x") "---\n" OUTLIER("interval: y"), &e, &s),
                     CONFIG_INVALID);
    assert_string_equal(
        show(&e),
        "n.yaml:1:65: there is no cluster 'b'\n"
        "    listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: b}]}]\n"
        "                                                                    ^\n"
        "n.yaml:2:44: an endpoint's address is HOST:PORT, such as 127.0.0.1:9001 or "
        "example.test:80, or unix:PATH; not 'x'\n"
        "    clusters: [{name: a, endpoints: [{address: x}]}]\n"
        "                                               ^\n"
        "r.yaml:5:9: no cluster has the host 'a.shop.svc.cluster.local': give the one that the "
        "rule "
        "is for the key `host:` with this name in the native document, or leave the rule out\n"
        "      host: a\n"
        "            ^\n"
        "r.yaml:6:58: 'maxConnections' must be a whole number; not 'x'\n"
        "      trafficPolicy: {connectionPool: {tcp: {maxConnections: x}}}\n"
        "                                                             ^\n"
        "r.yaml:12:9: no cluster has the host 'a.shop.svc.cluster.local': give the one that the "
        "rule is for the key `host:` with this name in the native document, or leave the rule out\n"
        "      host: a\n"
        "            ^\n"
        "r.yaml:13:48: 'interval' must be a number with a unit: 500ms, 15s, 1m; not 'y'\n"
        "      trafficPolicy: {outlierDetection: {interval: y}}\n"
        "                                                   ^\n");
    config_errors_release(&e);
}

static void each_message_shows_the_line_of_its_own_file(void **state)
{
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    assert_int_equal(parse("#\n#\n#\n#\n#\n#\n" NATIVE "- {name: b, endpoints: [{address: x}]}\n",
                           OUTLIER("consecutiveErrors: 1"), &e, &s),
                     CONFIG_INVALID);
    assert_int_equal(e.at[0].line, 10);
    assert_non_null(strstr(show(&e), "    - {name: b, endpoints: [{address: x}]}\n"));
    assert_non_null(
        strstr(show(&e), "      trafficPolicy: {outlierDetection: {consecutiveErrors: 1}}\n"));
    config_errors_release(&e);
}

static void more_files_than_a_configuration_has_are_refused(void **state)
{
    static struct config_source sources[CONFIG_SOURCES_MAX + 1];
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    for (size_t i = 0; i <= CONFIG_SOURCES_MAX; i++)
        sources[i] = (struct config_source){BYTES("f.yaml"), i == 0 ? BYTES(NATIVE) : BYTES_NONE};
    config_errors_init(&e);
    assert_int_equal(config_parse(sources, CONFIG_SOURCES_MAX + 1, NULL, &e, &s), CONFIG_INVALID);
    assert_non_null(strstr(show(&e), "too many files: at most 64"));
    config_errors_release(&e);
    config_errors_init(&e);
    assert_int_equal(config_parse(sources, CONFIG_SOURCES_MAX, NULL, &e, &s), CONFIG_OK);
    config_errors_release(&e);
    snapshot_drop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_documents_are_refused_by_name),
        cmocka_unit_test(a_lost_indentation_is_said),
        cmocka_unit_test(a_rule_must_have_a_host_that_is_there),
        cmocka_unit_test(istios_validation_is_done_in_its_words),
        cmocka_unit_test(subsets_must_have_names_and_labels_that_can_be),
        cmocka_unit_test(what_we_do_not_have_is_refused_by_name),
        cmocka_unit_test(rules_that_contradict_each_other_are_refused),
        cmocka_unit_test(clusters_that_contradict_rules_or_each_other_are_refused),
        cmocka_unit_test(rules_without_a_native_document_are_no_configuration),
        cmocka_unit_test(errors_of_several_files_are_in_the_order_of_the_files),
        cmocka_unit_test(each_message_shows_the_line_of_its_own_file),
        cmocka_unit_test(more_files_than_a_configuration_has_are_refused),
    };

    return cmocka_run_group_tests_name("config_istio_broken", tests, NULL, NULL);
}
