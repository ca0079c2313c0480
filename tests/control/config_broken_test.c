/* SPDX-License-Identifier: Apache-2.0 */
/* Broken configurations, each with what is said about it and where. */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct broken {
    const char *text;
    uint32_t line, column; /* of the first error */
    const char *message;   /* a part of it */
};

/* The smallest good file, around a piece under test. */
#define LISTENER "listeners: [{name: web, listen: 127.0.0.1:80, routes: [{cluster: a}]}]\n"
#define CLUSTER  "clusters: [{name: a, endpoints: [{address: 127.0.0.1:1}]}]\n"
#define GOOD     LISTENER CLUSTER
#define ROUTE(rest)                                                                                \
    "listeners:\n- name: web\n  listen: 127.0.0.1:80\n  routes:\n  - cluster: a\n    " rest        \
    "\n" CLUSTER
#define OF_LISTENER(rest)                                                                          \
    "listeners:\n- name: web\n  listen: 127.0.0.1:80\n  routes: [{cluster: a}]\n  " rest           \
    "\n" CLUSTER
#define OF_CLUSTER(rest)                                                                           \
    LISTENER "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n  " rest "\n"

static char output[64 * 1024];

static const char *show(const struct config_errors *e)
{
    struct text t;

    text_init(&t, output, sizeof(output));
    config_errors_write(&t, e);
    return text_end(&t);
}

static int parse(const char *source, size_t len, struct config_errors *e, struct snapshot **out)
{
    config_errors_init(e);
    return config_parse(&(struct config_source){BYTES("f.yaml"), bytes_from(source, len)}, 1, NULL,
                        e, out);
}

static void check(const struct broken *b)
{
    struct config_errors e;
    struct snapshot *s = NULL;
    int status = parse(b->text, strlen(b->text), &e, &s);
    const char *shown = show(&e);
    char message[1100];

    if (status != CONFIG_INVALID || s != NULL || e.count == 0)
        fail_msg("accepted:\n%s", b->text);
    snprintf(message, sizeof(message), "%.*s", (int)e.at[0].message.len, e.at[0].message.data);
    if (e.at[0].line != b->line || e.at[0].column != b->column ||
        strstr(message, b->message) == NULL)
        fail_msg("of\n%s\nexpected %u:%u: %s\ngot\n%s", b->text, b->line, b->column, b->message,
                 shown);
    config_errors_release(&e);
}

#define CHECK_ALL(rows)                                                                            \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                                  \
    check(&(rows)[i])

static void what_is_no_yaml_is_refused_where_it_goes_wrong(void **state)
{
    static const struct broken rows[] = {
        {"", 1, 1, "nothing in it"},
        {"\n\n", 1, 1, "nothing in it"},
        {"# only a comment\n", 1, 1, "nothing in it"},
        {"---\n---\n", 1, 1, "nothing in it"},
        {"null\n", 1, 1, "nothing in it"},
        {"hello\n", 1, 1, "a configuration is keys and values"},
        {"- a\n- b\n", 1, 1, "a configuration is keys and values"},
        {"a: [1, 2\n", 1, 9, "not valid YAML: did not find expected ',' or ']'"},
        {"a: \"open\n", 1, 9, "found unexpected end of stream"},
        {"a: {b: 1\nc: 2\n", 2, 2, "did not find expected ',' or '}'"},
        {"a: 1\n b: 2\n", 2, 3, "mapping values are not allowed"},
        {"a: 1\n\tb: 2\n", 2, 1, "a tab: YAML is indented with blanks"},
        {"a:\n  b: 1\n\tc: 2\n", 3, 1, "a tab: YAML is indented with blanks"},
        {"a: @b\n", 1, 4, "cannot start any token"},
        {"a: b\x01\n", 1, 5, "a control character (0x01)"},
        {"a: \xff\n", 1, 4, "not valid UTF-8 (0xff)"},
        {"a: \xc3\n", 1, 4, "not valid UTF-8 (0xc3)"},
        {"a: \xc0\xaf\n", 1, 4, "not valid UTF-8 (0xc0)"},     /* overlong */
        {"a: \xed\xa0\x80\n", 1, 4, "not valid UTF-8 (0xed)"}, /* a surrogate */
        {"a: \xf5\x80\x80\x80\n", 1, 4, "not valid UTF-8"},    /* beyond Unicode */
        {"a: \xf4\x90\x80\x80\n", 1, 4, "not valid UTF-8"},
        {"a: \xef\xbf\xbf\n", 1, 4, "not valid UTF-8"}, /* U+FFFF */
        {"a: \xc2\x80\n", 1, 4, "not valid UTF-8"},     /* C1 */
        {"b: \xc3\xa4\nx: \xe2\x82\xac \x7f\n", 2, 6, "a control character (0x7f)"},
        {"a: \xf0\x9f\x98\x80 \xfe\n", 1, 6, "not valid UTF-8 (0xfe)"},
        {"a: &x 1\nb: *x\n", 2, 4, "aliases (*name) are not supported"},
        {"a: !!str x\n", 1, 4, "tags (!name) are not supported"},
        {"a: !t {}\n", 1, 4, "tags (!name) are not supported"},
        {"a: !t []\n", 1, 4, "tags (!name) are not supported"},
        {"%TAG !a! x\n---\na: 1\n", 1, 1, "%TAG is not supported"},
        {"a: 1\r%TAG", 2, 1, "%TAG is not supported"},
        {"a: 1\r\nb: \xff", 2, 4, "not valid UTF-8"},
        {"a: 1\xe2\x80\xa9\xff", 2, 1, "not valid UTF-8"},
        {"? [a]\n: b\n", 1, 3, "a key must be a word"},
        {"? {a: b}\n: b\n", 1, 3, "a key must be a word"},
        {"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n", 1, 35,
         "nested too deeply"},
        {GOOD "---\nadmin: {}\n", 4, 1,
         "a second document in Firebreak's own form: write all in one; the first begins in line "
         "1"},
        {"apiVersion: v1\n", 1, 1, "leave it out: 'v1'"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void unknown_keys_are_refused_with_a_guess(void **state)
{
    static const struct broken rows[] = {
        {GOOD "worker: 2\n", 3, 1, "unknown key 'worker' in the file; did you mean 'workers'?"},
        {GOOD "Admin: {}\n", 3, 1, "did you mean 'admin'?"},
        {GOOD "zzz: 2\n", 3, 1, "unknown key 'zzz' in the file; it has admin, workers, user, "},
        {GOOD "consecutive5xxErrors: 2\n", 3, 1,
         "it belongs in clusters[].trafficPolicy.outlierDetection"},
        {GOOD "<<: 2\n", 3, 1, "unknown key '<<' in the file"},
        {GOOD "? ''\n: 1\n", 3, 3, "unknown key '' in the file"},
        {OF_LISTENER("route: []"), 5, 3, "unknown key 'route' in listener; did you mean 'routes'?"},
        {OF_LISTENER("limits: {headbytes: 1}"), 5, 12,
         "unknown key 'headbytes' in limits; did you mean 'headBytes'?"},
        {OF_LISTENER("memoryLimit: 1GiB"), 5, 3, "it belongs at the top of the file"},
        {ROUTE("match: {prefix: /}"), 6, 13, "in match; did you mean 'pathPrefix'?"},
        {ROUTE("tiemout: 1s"), 6, 5, "did you mean 'timeout'?"},
        {OF_CLUSTER("trafficPolicy: {outlierDetection: {consecutive5xxError: 5}}"), 5, 38,
         "unknown key 'consecutive5xxError' in outlierDetection; did you mean "
         "'consecutive5xxErrors'?"},
        {OF_CLUSTER("trafficPolicy: {connectionPool: {http: {maxPending: 5}}}"), 5, 43,
         "did you mean 'http1MaxPendingRequests'?"},
        {OF_CLUSTER("balancer: random"), 5, 3, "did you mean 'loadBalancer'?"},
        {OF_CLUSTER("\"b\\x1b[31mx\": random"), 5, 3, "unknown key 'b?[31mx' in cluster"},
        {OF_CLUSTER("kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: 1"), 5,
         3, "unknown key 'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...'"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void detection_says_what_to_write_instead(void **state)
{
    static const struct broken rows[] = {
        {OF_CLUSTER("resilience: {detect: {latency: maybe}}"), 5, 34,
         "'latency' must be on or off; not 'maybe'"},
        {OF_CLUSTER("resilience: {detect: {falseAlarms: 3}}"), 5, 38,
         "'falseAlarms' must be so many per day or per week, such as 1 per week; not '3'"},
        {OF_CLUSTER("resilience: {detect: {falseAlarms: 1 per month}}"), 5, 38,
         "not '1 per month'"},
        {OF_CLUSTER("resilience: {detect: {falseAlarms: -1 per day}}"), 5, 38, "not '-1 per day'"},
        {OF_CLUSTER("resilience: {detect: {falseAlarms: 0 per day}}"), 5, 38,
         "'falseAlarms' must be between 1 per week and 100 per day; not '0 per day'"},
        {OF_CLUSTER("resilience: {detect: {falseAlarms: 101 per day}}"), 5, 38, "and 100 per day"},
        {OF_CLUSTER("resilience: {detect: {falseAlarms: 4294967296 per day}}"), 5, 38, "not '"},
        {OF_CLUSTER("resilience: {detect: {error: on}}"), 5, 25, "did you mean 'errors'?"},
        {OF_CLUSTER("resilience: {falseAlarms: 1 per week}"), 5, 16,
         "it belongs in clusters[].resilience.detect"},
        {OF_CLUSTER("resilience: {ejection: {cap: 20}}"), 5, 32,
         "'cap' must be a share with its sign, such as 20% or 12.5%; not '20'"},
        {OF_CLUSTER("resilience: {ejection: {cap: 0%}}"), 5, 32, "must be between 1% and 100%"},
        {OF_CLUSTER("resilience: {ejection: {cap: 101%}}"), 5, 32, "must be between 1% and 100%"},
        {OF_CLUSTER("resilience: {ejection: {cap: 12.5%}}"), 5, 32,
         "'cap' is in whole percent: write 12% or 13%"},
        {OF_CLUSTER("resilience: {ejection: {base: 30}}"), 5, 33, "a number with a unit"},
        {OF_CLUSTER("resilience: {ejection: {base: 60s, max: 59s}}"), 5, 43,
         "'max' may not be less than 'base', which is 1m"},
        {OF_CLUSTER("resilience: {ejection: {max: 29s}}"), 5, 32, "which is 30s"},
        {OF_CLUSTER("trafficPolicy: {outlierDetection: {baseEjectionTime: 90s}}\n"
                    "  resilience: {profile: rules, ejection: {max: 60s}}"),
         6, 48, "which is 1m30s"},
        {OF_CLUSTER("resilience: {readmit: {after: 10ms}}"), 5, 33,
         "'after' must be between 100ms and 1h"},
        {OF_CLUSTER("resilience: {readmit: {probes: 9}}"), 5, 34, "must be between 1 and 8"},
        {OF_CLUSTER("resilience: {readmit: {successes: 0}}"), 5, 37, "must be between 1 and 1000"},
        {OF_CLUSTER("resilience: {readmit: {ramp: slow}}"), 5, 32, "a number with a unit"},
        {OF_CLUSTER("resilience: {capacity: {maxLoad: 9%}}"), 5, 36,
         "must be between 10% and 100%"},
        {OF_CLUSTER("resilience: {capacity: {maxLoad: 0.75}}"), 5, 36, "a share with its sign"},
        {OF_CLUSTER("resilience: {escalate: {timesPerHour: 9}}"), 5, 41,
         "'timesPerHour' must be between 1 and 8, or none; not '9'"},
        {OF_CLUSTER("resilience: {escalate: {repeatedFor: 10ms}}"), 5, 40, ", or none; not '10ms'"},
        {OF_CLUSTER("resilience: {profile: adaptiv}"), 5, 25, "did you mean 'adaptive'?"},
        {ROUTE("largeBody: 0"), 6, 16, "'largeBody' must be at least 1, or none; not '0'"},
        {ROUTE("largeBody: big"), 6, 16, "a number of bytes: 65536, 64KiB, 1MiB, or none"},
        {ROUTE("class: search\n    largeBody: 1MiB"), 7, 5,
         "'largeBody' does nothing beside 'class', which names all requests of the route: leave "
         "one of them out"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void what_does_not_exist_yet_is_said_to_come_later(void **state)
{
    static const struct broken rows[] = {
        {ROUTE("deadline: {}"), 6, 5, "it comes with deadline budgets"},
        {ROUTE("priority: high"), 6, 5, "'priority' is not supported yet"},
        {OF_LISTENER("tls: {}"), 5, 3, "it comes with TLS"},
        {OF_CLUSTER("healthCheck: {}"), 5, 3, "it comes with active health checks"},
        {OF_CLUSTER("protocol: http2"), 5, 13,
         "'http2' is not supported yet: it comes with HTTP/2"},
        {OF_CLUSTER("protocol: auto"), 5, 13, "'auto' is not supported yet: it comes with HTTP/2"},
        {OF_CLUSTER("loadBalancer: maglev"), 5, 17, "it comes with consistent hashing"},
        {OF_CLUSTER("trafficPolicy: {loadBalancer: {consistentHash: {}}}"), 5, 34,
         "'consistentHash' is not supported yet: it comes with consistent hashing; write simple:"},
        {OF_CLUSTER("trafficPolicy: {outlierDetection: {minHealthPercent: 101}}"), 5, 56,
         "'minHealthPercent' must be between 0 and 100"},
        {OF_CLUSTER("resilience: {panic: leastbad}"), 5, 23, "did you mean 'leastBad'?"},
        {ROUTE("retry: {on: [unavailable]}"), 6, 18,
         "'unavailable' is not supported yet: it comes "
         "with gRPC"},
        {OF_CLUSTER("trafficPolicy: {retryBudget: {budgetInterval: 10s}}"), 5, 33,
         "'budgetInterval' is not supported yet"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void retries_that_make_no_sense_are_refused(void **state)
{
    static const struct broken rows[] = {
        {ROUTE("retry: {attempts: 11}"), 6, 23, "'attempts' must be between 0 and 10"},
        {ROUTE("retry: {on: 5xx}"), 6, 17, "'on' must be a list"},
        {ROUTE("retry: {on: [5x]}"), 6, 18, "not '5x'; did you mean '5xx'?"},
        {ROUTE("retry: {on: [connect_failure]}"), 6, 18, "did you mean 'connect-failure'?"},
        {ROUTE("retry: {on: [retriable-status-codes]}"), 6, 18,
         "say which codes: 'statuses: [503]' beside 'retriable-status-codes'"},
        {ROUTE("retry: {on: [retriable-headers]}"), 6, 18, "say which headers"},
        {ROUTE("retry: {statuses: [5xx]}"), 6, 24, "a number from 200 to 599; not '5xx'"},
        {ROUTE("retry: {statuses: [101]}"), 6, 24, "a number from 200 to 599; not '101'"},
        {ROUTE("retry: {methods: [P/ST]}"), 6, 23, "such as POST; not 'P/ST'"},
        {ROUTE("retry: {headers: ['a b']}"), 6, 23, "named by a word; not 'a b'"},
        {ROUTE("retry: {backoff: {base: 1s, max: 10ms}}"), 6, 38, "'max' may not be less"},
        {ROUTE("retry: {perTryTimeout: 1s}"), 6, 13, "it belongs in listeners[].routes[]"},
        {GOOD "drainTimeout: 5s\ndrainWait: 6s\n", 4, 12,
         "'drainWait' is a part of 'drainTimeout' and may not be longer"},
        {GOOD "drainWait: 31s\n", 3, 12, "write a longer 'drainTimeout' as well"},
        {ROUTE("timeout: 0"), 6, 14, "write 0s or none if that is meant"},
        {OF_CLUSTER("resilience: {retryBudget: {ratio: 0.2}}"), 5, 37,
         "'ratio' must be a share with its sign, such as 20% or 12.5%; not '0.2'"},
        {OF_CLUSTER("resilience: {retryBudget: {ratio: 120%}}"), 5, 37,
         "'ratio' must be between 0% and 100%; not '120%'"},
        {OF_CLUSTER("resilience: {retryBudget: {ratio: 1.25%}}"), 5, 37, "not '1.25%'"},
        {OF_CLUSTER("resilience: {retryBudget: {floor: 3}}"), 5, 37,
         "'floor' must be a number a second, such as 3/s; not '3'"},
        {OF_CLUSTER("resilience: {retryBudget: {capacity: 16001}}"), 5, 40,
         "'capacity' must be between 0 and 16000"},
        {OF_CLUSTER("trafficPolicy: {retryBudget: {percent: 20%}}"), 5, 42,
         "'percent' must be a number of percent without a sign"},
        {OF_CLUSTER("trafficPolicy: {retryBudget: {percent: 100.1}}"), 5, 42,
         "'percent' must be between 0 and 100; not '100.1'"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void values_of_the_wrong_kind_or_size_are_refused(void **state)
{
    static const struct broken rows[] = {
        {ROUTE("timeout: soon"), 6, 14,
         "'timeout' must be a number with a unit: 500ms, 15s, 1m, or none; not 'soon'"},
        {ROUTE("timeout: 15"), 6, 14, "must be a number with a unit: 500ms, 15s, 1m"},
        {ROUTE("timeout: -1s"), 6, 14, "must be a number with a unit"},
        {ROUTE("timeout: 1.5us"), 6, 14, "'timeout' must be"},
        {ROUTE("timeout: 1500us"), 6, 14, "'timeout' must be"},
        {ROUTE("timeout: 8761h"), 6, 14, "'timeout' must be between 1ms and 8760h"},
        {ROUTE("timeout: [1s]"), 6, 14, "'timeout' must be a number with a unit"},
        {ROUTE("timeout:"), 6, 13, "'timeout' has no value: write a number with a unit"},
        {ROUTE("timeout: ~"), 6, 14, "'timeout' has no value"},
        {OF_LISTENER("headTimeout: 0s"), 5, 16, "'headTimeout' must be between 1ms and"},
        {OF_LISTENER("headTimeout: none"), 5, 16, "500ms, 15s, 1m; not 'none'"},
        {OF_LISTENER("limits: {headBytes: 1}"), 5, 23,
         "'headBytes' must be between 1KiB and 256KiB; not '1'"},
        {OF_LISTENER("limits: {headBytes: lots}"), 5, 23,
         "must be a number of bytes: 65536, 64KiB, 1MiB; not 'lots'"},
        {OF_LISTENER("limits: {bodyBytes: -1}"), 5, 23, "64KiB, 1MiB, or none; not '-1'"},
        {OF_LISTENER("limits: 5"), 5, 11, "'limits' must be a map of keys and values"},
        {OF_LISTENER("limits:"), 5, 10, "'limits' has no value: a map of keys and values"},
        {OF_LISTENER("trustedHops: 33"), 5, 16, "'trustedHops' must be between 0 and 32; not '33'"},
        {OF_LISTENER("trustedHops: 99999999999999999999"), 5, 16, "must be a whole number"},
        {OF_LISTENER("trustedHops: 1.0"), 5, 16, "must be a whole number; not '1.0'"},
        {OF_LISTENER("via: maybe"), 5, 8, "'via' must be on or off; not 'maybe'"},
        {OF_LISTENER("via: {}"), 5, 8, "'via' must be on or off"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void values_for_the_process_or_a_cluster_that_cannot_be_are_refused(void **state)
{
    static const struct broken rows[] = {
        {GOOD "workers: 0\n", 3, 10, "'workers' must be between 1 and 256, or auto; not '0'"},
        {GOOD "workers: many\n", 3, 10, "must be a whole number, or auto; not 'many'"},
        {GOOD "memoryLimit: 1MiB\n", 3, 14, "'memoryLimit' must be at least 16MiB, or auto"},
        {GOOD "accessLog: {format: xml}\n", 3, 21,
         "'format' must be json, text, envoy, istio, or a line with operators"},
        {GOOD "accessLog: {format: josn}\n", 3, 21, "did you mean 'json'?"},
        {GOOD "accessLog: {format: '%RESPONSE_COD%'}\n", 3, 21,
         "at character 2 of the format: 'RESPONSE_COD': unknown operator; did you mean "
         "'RESPONSE_CODE'?"},
        {GOOD "accessLog: {format: \"100% of %DURATION%\"}\n", 3, 21,
         "at character 4 of the format: an operator ends in '%'; a '%' of its own is written "
         "\"%%\""},
        {GOOD "accessLog: {format: \"%TRAILER(x)%\"}\n", 3, 21, "trailers are not kept"},
        {GOOD "accessLog: {format: \"%REQ(a b)%\"}\n", 3, 21, "no header can be called so"},
        {GOOD "accessLog: {format: \"%DURATION%\\n%DURATION%\"}\n", 3, 21, "one line of text"},
        {GOOD "accessLog: {format: [a]}\n", 3, 21, "one line of text"},
        {GOOD "accessLog: {jsonFormat: {a: '%DURATON%'}}\n", 3, 29, "did you mean 'DURATION'?"},
        {GOOD "accessLog: {jsonFormat: {a: {b: c}}}\n", 3, 29, "one line of text"},
        {GOOD "accessLog: {jsonFormat: {a: x, a: y}}\n", 3, 35, "is given twice"},
        {GOOD "accessLog: {jsonFormat: {}}\n", 3, 25, "names no values"},
        {GOOD "accessLog: {jsonFormat: x}\n", 3, 25, "a map of names to texts"},
        {GOOD "accessLog: {format: istio, jsonFormat: {a: b}}\n", 3, 40, "write one of them"},
        {GOOD "accessLog: {to: ''}\n", 3, 17, "'to' must be text"},
        {GOOD "accessLog: {to: \"a\\0b\"}\n", 3, 17, "'to' may not have control characters"},
        {GOOD "accessLog: {to: \"a\\x85\"}\n", 3, 17, "'to' may not have control characters"},
        {GOOD "admin: {listen: 9901}\n", 3, 17, "write 0.0.0.0:PORT for every interface"},
        {GOOD "admin: {listen: ':9901'}\n", 3, 17, "write 0.0.0.0:PORT for every interface"},
        {GOOD "admin: {listen: 127.0.0.1}\n", 3, 17, "the port is missing"},
        {GOOD "admin: {listen: 127.0.0.1:65536}\n", 3, 17, "the port is missing, or not between"},
        {GOOD "admin: {listen: localhost:9901}\n", 3, 17, "a name cannot stand here"},
        {GOOD "admin: {listen: http://127.0.0.1:9901/}\n", 3, 17, "leave out http://"},
        {GOOD "admin: {listen: 'unix:'}\n", 3, 17, "a unix socket's path has 1 to 107 bytes"},
        {GOOD "admin: []\n", 3, 8, "'admin' must be a map"},
        {OF_CLUSTER("loadBalancer: round-robin"), 5, 17,
         "'loadBalancer' must be round_robin, random, p2c or least; not 'round-robin'; did you "
         "mean "
         "'round_robin'?"},
        {OF_CLUSTER("protocol: h1"), 5, 13, "'protocol' must be http1; not 'h1'"},
        {OF_CLUSTER("trafficPolicy: {outlierDetection: {maxEjectionPercent: 101}}"), 5, 58,
         "'maxEjectionPercent' must be between 0 and 100"},
        {OF_CLUSTER("trafficPolicy: {outlierDetection: {interval: 0s}}"), 5, 48,
         "'interval' must be between 1ms and"},
        {OF_CLUSTER("trafficPolicy: {connectionPool: {tcp: {maxConnections: 2147483648}}}"), 5, 58,
         "'maxConnections' must be between 0 and 2147483647"},
        {OF_CLUSTER("trafficPolicy: {connectionPool: {tcp: {tcpKeepalive: {time: 1500ms}}}}"), 5,
         63, "fractions of a second are not possible here"},
        {OF_CLUSTER("trafficPolicy: {connectionPool: {tcp: {tcpKeepalive: {time: 10h}}}}"), 5, 63,
         "'time' must be between 1s and"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void what_is_missing_or_said_twice_is_refused(void **state)
{
    static const struct broken rows[] = {
        {CLUSTER, 1, 1, "the file has no 'listeners'"},
        {LISTENER, 1, 1, "the file has no 'clusters'"},
        {"listeners: []\n" CLUSTER, 1, 12, "there must be at least one listener"},
        {LISTENER "clusters: []\n", 2, 11, "there must be at least one cluster"},
        {"listeners: {}\n" CLUSTER, 1, 12,
         "'listeners' must be a list, each entry begun with '- '"},
        {"listeners:\n" CLUSTER, 1, 11, "'listeners' has no value: a list"},
        {"listeners: [5]\n" CLUSTER, 1, 13, "'listener' must be a map"},
        {"listeners:\n- listen: 127.0.0.1:80\n  routes: [{cluster: a}]\n" CLUSTER, 2, 3,
         "listener has no 'name'"},
        {"listeners:\n- name: x\n  routes: [{cluster: a}]\n" CLUSTER, 2, 3,
         "listener has no 'listen'"},
        {"listeners:\n- name: x\n  listen: 1.1.1.1:1\n" CLUSTER, 2, 3, "listener has no 'routes'"},
        {"listeners:\n- name: x\n  listen: 1.1.1.1:1\n  routes: []\n" CLUSTER, 4, 11,
         "a listener needs at least one route"},
        {LISTENER "clusters:\n- endpoints: [{address: 1.1.1.1:1}]\n", 3, 3,
         "cluster has no 'name'"},
        {LISTENER "clusters:\n- name: a\n", 3, 3, "cluster has no 'endpoints'"},
        {LISTENER "clusters:\n- name: a\n  endpoints: []\n", 4, 14,
         "a cluster needs at least one endpoint"},
        {LISTENER "clusters: [{name: a, endpoints: [{zone: b}]}]\n", 2, 34,
         "endpoint has no 'address'"},
        {ROUTE("cluster: b"), 6, 5, "'cluster' is given twice: first in line 5"},
        {GOOD "workers: 1\nworkers: 2\n", 4, 1, "'workers' is given twice: first in line 3"},
        {LISTENER "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n"
                  "- name: a\n  endpoints: [{address: 127.0.0.1:2}]\n",
         5, 9, "'a' is given twice: first in line 3"},
        {LISTENER "clusters:\n- {name: a, endpoints: [{address: 127.0.0.1:1}]}\n"
                  "- {name: b_c, endpoints: [{address: 127.0.0.1:1}]}\n"
                  "- {name: 'b:c', endpoints: [{address: 127.0.0.1:1}]}\n",
         5, 10, "'b:c' and 'b_c' would have the same metrics"},
        {"listeners:\n- {name: x, listen: 1.1.1.1:1, routes: [{cluster: a}]}\n"
         "- {name: x, listen: 1.1.1.1:2, routes: [{cluster: a}]}\n" CLUSTER,
         3, 10, "'x' is given twice: first in line 2"},
        {"listeners:\n- {name: x, listen: 1.1.1.1:1, routes: [{cluster: a}]}\n"
         "- {name: y, listen: 1.1.1.1:1, routes: [{cluster: a}]}\n" CLUSTER,
         3, 21, "'1.1.1.1:1' is given twice: first in line 2"},
        {GOOD "admin: {listen: 127.0.0.1:80}\n", 1, 33, "the admin pages listen there already"},
        {OF_CLUSTER(
             "idleTimeout: 1s\n  trafficPolicy: {connectionPool: {http: {idleTimeout: 1s}}}"),
         5, 3, "'idleTimeout' is in trafficPolicy as well, in line 6: keep one of them"},
        {OF_CLUSTER(
             "connectTimeout: 1s\n  trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}}"),
         5, 3, "'connectTimeout' is in trafficPolicy as well, in line 6: keep one of them"},
        {OF_CLUSTER("trafficPolicy: {outlierDetection: {consecutiveLocalOriginFailures: 3}}"), 5,
         38, "only counts with 'splitExternalLocalOriginErrors: on'"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void names_addresses_and_matches_are_checked(void **state)
{
    static const struct broken rows[] = {
        {LISTENER "clusters: [{name: a b, endpoints: [{address: 127.0.0.1:1}]}]\n", 2, 19,
         "'name' may have up to 128 letters"},
        {OF_LISTENER("user: x"), 5, 3, "it belongs at the top of the file"},
        {"listeners: [{name: 'we b', listen: 127.0.0.1:80, routes: [{cluster: a}]}]\n" CLUSTER, 1,
         20, "'name' may have up to 128 letters, digits and"},
        {"listeners: [{name: web, listen: 127.0.0.1:80, routes: [{cluster: aa}]}]\n" CLUSTER, 1, 66,
         "there is no cluster 'aa'"},
        {"listeners: [{name: web, listen: 127.0.0.1:80, routes: [{cluster: zebra}]}]\n" CLUSTER, 1,
         66, "there is no cluster 'zebra'"},
        {ROUTE("match: {pathPrefix: a}"), 6, 25, "a path begins with '/'; not 'a'"},
        {ROUTE("match: {path: '/a?b'}"), 6, 19, "without query and fragment; not '/a?b'"},
        {ROUTE("match: {path: '/a#b'}"), 6, 19, "without query and fragment; not '/a#b'"},
        {ROUTE("match: {path: /a/../b}"), 6, 19, "so nothing can match '/a/../b'"},
        {ROUTE("match: {path: /a/.}"), 6, 19, "so nothing can match '/a/.'"},
        {ROUTE("match: {path: /a//b}"), 6, 19, "so nothing can match '/a//b'"},
        {ROUTE("match: {path: /a, pathPrefix: /}"), 6, 13, "exclude one another"},
        {ROUTE("match: {hosts: a.b}"), 6, 20, "'hosts' must be a list, such as [a, b]"},
        {ROUTE("match: {hosts: [a, [b]]}"), 6, 24, "'hosts' must be a list of words"},
        {ROUTE("match: {hosts: [a b]}"), 6, 21, "a host is 'example.test', '*.example.test' or"},
        {ROUTE("match: {hosts: ['*a']}"), 6, 21, "a host is"},
        {ROUTE("match: {hosts: ['*.']}"), 6, 21, "a host is"},
        {ROUTE("match: {hosts: [a.*]}"), 6, 21, "a host is"},
        {ROUTE("match: {hosts: ['http://a']}"), 6, 21, "a host is"},
        {ROUTE("match: {methods: [get]}"), 6, 23, "a word in capitals, such as GET; not 'get'"},
        {ROUTE("match: {methods: GET}"), 6, 22, "'methods' must be a list"},
        {LISTENER "clusters: [{name: a, endpoints: [{address: 127.0.0.1}]}]\n", 2, 44,
         "an endpoint's address is HOST:PORT"},
        {LISTENER "clusters: [{name: a, endpoints: [{address: 127.0.0.1:0}]}]\n", 2, 44,
         "an endpoint's address is HOST:PORT"},
        {LISTENER "clusters: [{name: a, endpoints: [{address: 'http://a.b/'}]}]\n", 2, 44,
         "leave out http:// and the path"},
        {LISTENER "clusters: [{name: a, endpoints: [{address: 'a b:1'}]}]\n", 2, 44, "HOST:PORT"},
        {LISTENER "clusters: [{name: a, endpoints: [{address: 'b.test:1'}]}]\n", 2, 44,
         "cannot resolve 'b.test': names are not looked up here"},
        {LISTENER "clusters: [{name: a, endpoints: [{address: '127.0.0.1:1'}, {address: "
                  "'127.0.0.1:1'}]}]\n",
         2, 60, "'127.0.0.1:1' is given twice: first in line 2"},
    };
    (void)state;

    CHECK_ALL(rows);
}

static void several_errors_are_shown_in_the_order_of_the_file(void **state)
{
    static const char text[] = "workers: x\n" LISTENER "clusters:\n- name: a\n  zone: b\n"
                               "  endpoints: [{address: 127.0.0.1:1, weight: 2}]\nuser: ''\n";
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    assert_int_equal(parse(text, strlen(text), &e, &s), CONFIG_INVALID);
    assert_int_equal(e.count, 4);
    assert_string_equal(
        show(&e),
        "f.yaml:1:10: 'workers' must be a whole number, or auto; not 'x'\n"
        "    workers: x\n"
        "             ^\n"
        "f.yaml:5:3: unknown key 'zone' in cluster; it belongs in clusters[].endpoints[]\n"
        "      zone: b\n"
        "      ^\n"
        "f.yaml:6:38: 'weight' is not supported yet: it comes with weighted balancing\n"
        "      endpoints: [{address: 127.0.0.1:1, weight: 2}]\n"
        "                                         ^\n"
        "f.yaml:7:7: 'user' must be text; not ''\n"
        "    user: ''\n"
        "          ^\n");
    config_errors_release(&e);
}

static void a_flood_of_errors_is_cut(void **state)
{
    size_t size = 100000 * 9;
    char *text = malloc(size + 16);
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    for (size_t i = 0; i < 100000; i++)
        snprintf(text + i * 9, 10, "k%05zu: \n", i);
    assert_int_equal(parse(text, size, &e, &s), CONFIG_INVALID);
    assert_int_equal(e.count, CONFIG_ERRORS_MAX);
    assert_non_null(strstr(show(&e), "f.yaml:20:1: unknown key 'k00019'"));
    assert_non_null(strstr(show(&e), "only the first errors are shown"));
    config_errors_release(&e);
    free(text);
}

static void the_caret_stands_under_the_place(void **state)
{
    struct config_errors e;
    struct snapshot *s = NULL;
    char text[600] = "x: ";
    (void)state;

    /* Two characters of two bytes before it, and what a terminal would obey. */
    parse("\"\xc3\xa4\xc3\xb6\": {b: 1}\n", 15, &e, &s);
    assert_non_null(strstr(show(&e), "    \"\xc3\xa4\xc3\xb6\": {b: 1}\n    ^\n"));
    config_errors_release(&e);
    parse("a: \xc3\xa4 \xc3\xb6 \x1b\n", 11, &e, &s);
    assert_non_null(strstr(show(&e), "f.yaml:1:8: a control character (0x1b)"));
    assert_non_null(strstr(show(&e), "    a: \xc3\xa4 \xc3\xb6 ?\n           ^\n"));
    config_errors_release(&e);

    /* Of a long line, only what is around the place. */
    memset(text + 3, 'y', 500);
    text[503] = '\x02';
    parse(text, 504, &e, &s);
    assert_int_equal(e.at[0].column, 504);
    assert_int_equal(e.at[0].caret, 60 - 1);
    assert_int_equal(e.at[0].excerpt.len, 60);
    assert_int_equal(e.at[0].excerpt.data[e.at[0].caret], '?');
    config_errors_release(&e);

    /* Carriage returns and Unicode's line ends count as YAML counts them. */
    parse("a: 1\r\nb: 2\rc: 3\xc2\x85"
          "d: 4\xe2\x80\xa8"
          "e: @",
          28, &e, &s);
    assert_int_equal(e.at[0].line, 5);
    assert_non_null(strstr(show(&e), "    e: @\n       ^\n"));
    config_errors_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_yaml_is_refused_where_it_goes_wrong),
        cmocka_unit_test(unknown_keys_are_refused_with_a_guess),
        cmocka_unit_test(detection_says_what_to_write_instead),
        cmocka_unit_test(what_does_not_exist_yet_is_said_to_come_later),
        cmocka_unit_test(retries_that_make_no_sense_are_refused),
        cmocka_unit_test(values_of_the_wrong_kind_or_size_are_refused),
        cmocka_unit_test(values_for_the_process_or_a_cluster_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_missing_or_said_twice_is_refused),
        cmocka_unit_test(names_addresses_and_matches_are_checked),
        cmocka_unit_test(several_errors_are_shown_in_the_order_of_the_file),
        cmocka_unit_test(a_flood_of_errors_is_cut),
        cmocka_unit_test(the_caret_stands_under_the_place),
    };

    return cmocka_run_group_tests_name("config_broken", tests, NULL, NULL);
}
