/* SPDX-License-Identifier: Apache-2.0 */
/* Each trap just sprung and just not, and nothing else beside it. */
#include "lint_world.h"

static void a_careful_configuration_has_no_trap(void **state)
{
    static const struct border rows[] = {
        {"", {.hosts = 4}},
        {"", {.hosts = 4, .outlier = "maxEjectionPercent: 25"}},
        {"",
         {.hosts = 10,
          .cluster = "",
          .pool = "tcp: {maxConnections: 100, connectTimeout: 300ms}, "
                  "http: {http1MaxPendingRequests: 1000, http2MaxRequests: 1000}",
          .outlier = "consecutive5xxErrors: 7, consecutiveGatewayErrors: 5, interval: 30s, "
                     "baseEjectionTime: 30s, maxEjectionPercent: 20"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void caps(void **state)
{
    static const struct border rows[] = {
        /* 10 % of 9 is 0.9 of a host, of 10 it is one. */
        {"cap-rounds-to-nobody", {.hosts = 9, .outlier = ""}},
        {"", {.hosts = 10, .outlier = ""}},
        {"cap-rounds-to-nobody", {.hosts = 4, .outlier = "maxEjectionPercent: 24"}},
        {"", {.hosts = 4, .outlier = "maxEjectionPercent: 25"}},
        /* Half of three or fewer, and half of four. */
        {"cap-half-of-few",
         {.hosts = 3, .pool = "http: {http2MaxRequests: 9}", .outlier = "maxEjectionPercent: 50"}},
        {"",
         {.hosts = 3, .pool = "http: {http2MaxRequests: 9}", .outlier = "maxEjectionPercent: 49"}},
        {"",
         {.hosts = 4, .pool = "http: {http2MaxRequests: 9}", .outlier = "maxEjectionPercent: 50"}},
        /* More than a quarter needs a limit on what is under way. */
        {"cap-without-limit", {.hosts = 10, .outlier = "maxEjectionPercent: 26"}},
        {"", {.hosts = 10, .outlier = "maxEjectionPercent: 25"}},
        {"",
         {.hosts = 10, .pool = "http: {http2MaxRequests: 9}", .outlier = "maxEjectionPercent: 26"}},
        {"",
         {.hosts = 10,
          .outlier = "maxEjectionPercent: 26",
          .resilience = "perHost: {maxRequests: 9}"}},
        {"cap-without-limit",
         {.hosts = 10,
          .outlier = "maxEjectionPercent: 26",
          .resilience = "perHost: {maxConnections: 9}"}},
        {"zero-cap", {.hosts = 10, .outlier = "maxEjectionPercent: 0"}},
        {"", {.hosts = 100, .outlier = "maxEjectionPercent: 1"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void caps_of_those_who_follow_envoy(void **state)
{
    static const struct border rows[] = {
        {"cap-rounds-to-nobody", {.hosts = 9, .outlier = "", .resilience = "semantics: envoy"}},
        {"", {.hosts = 10, .outlier = "", .resilience = "semantics: envoy"}},
        /* All of them, and nobody serves: only where Envoy is followed, and panic is off. */
        {"cap-empties-cluster",
         {.hosts = 4,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 100",
          .resilience = "semantics: envoy"}},
        {"",
         {.hosts = 4,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 99",
          .resilience = "semantics: envoy"}},
        {"",
         {.hosts = 4,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 100, minHealthPercent: 50",
          .resilience = "semantics: envoy"}},
        {"cap-empties-cluster",
         {.hosts = 4,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 100, minHealthPercent: 50",
          .resilience = "semantics: envoy, panic: failFast"}},
        {"few-peers cap-empties-cluster",
         {.hosts = 2,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 100",
          .resilience = "semantics: envoy"}},
        {"",
         {.hosts = 4, .pool = "http: {http2MaxRequests: 9}", .outlier = "maxEjectionPercent: 100"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void rates(void **state)
{
    static const struct border rows[] = {
        {"rates-too-few-hosts",
         {.hosts = 4, .resilience = "outlier: {successRate: {enforcing: 100}}"}},
        {"", {.hosts = 5, .resilience = "outlier: {successRate: {enforcing: 100}}"}},
        {"",
         {.hosts = 4,
          .resilience =
              "outlier: {successRate: {minimumHosts: 9, enforcing: 0, enforcingLocalOrigin: 0}}"}},
        {"rates-too-few-hosts",
         {.hosts = 4, .resilience = "outlier: {failurePercentage: {enforcing: 1}}"}},
        {"", {.hosts = 5, .resilience = "outlier: {failurePercentage: {enforcing: 1}}"}},
        /* One of four is sqrt(3) = 1.732 standard deviations from the mean, one of five 2. */
        {"success-rate-blind",
         {.hosts = 4, .resilience = "outlier: {successRate: {enforcing: 100, minimumHosts: 3}}"}},
        {"",
         {.hosts = 4,
          .resilience =
              "outlier: {successRate: {enforcing: 100, minimumHosts: 3, stdevFactor: 1731}}"}},
        {"success-rate-blind",
         {.hosts = 5, .resilience = "outlier: {successRate: {enforcing: 100, stdevFactor: 2000}}"}},
        {"",
         {.hosts = 5, .resilience = "outlier: {successRate: {enforcing: 100, stdevFactor: 1999}}"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void panic(void **state)
{
    static const struct border rows[] = {
        {"min-health-zero", {.hosts = 10, .outlier = "minHealthPercent: 0"}},
        /* 20 % of ten leave eight healthy: no panic from 71.43 % on, whatever is asked for. */
        {"min-health-cannot-act",
         {.hosts = 10, .outlier = "maxEjectionPercent: 20, minHealthPercent: 90"}},
        /* Half of ten leave five: fewer than 50 % they are not, fewer than 51 % they are. */
        {"min-health-cannot-act",
         {.hosts = 10,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 50, minHealthPercent: 50"}},
        {"",
         {.hosts = 10,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 50, minHealthPercent: 51"}},
        /* Panic begins at seven of ten healthy: 71 % says so, 81 % means eight. */
        {"min-health-late",
         {.hosts = 10,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 50, minHealthPercent: 81"}},
        {"",
         {.hosts = 10,
          .pool = "http: {http2MaxRequests: 9}",
          .outlier = "maxEjectionPercent: 50, minHealthPercent: 80"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void peers(void **state)
{
    static const struct border rows[] = {
        {"few-peers", {.hosts = 1}},
        {"few-peers", {.hosts = 2}},
        {"", {.hosts = 3}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void lengths_of_ejections(void **state)
{
    static const struct border rows[] = {
        {"ejection-never-grows", {.hosts = 10, .outlier = "baseEjectionTime: 5m"}},
        {"ejection-never-grows", {.hosts = 10, .outlier = "baseEjectionTime: 301s"}},
        {"", {.hosts = 10, .outlier = "baseEjectionTime: 299s"}},
        {"interval-over-ejection", {.hosts = 10, .outlier = "interval: 30001ms"}},
        {"", {.hosts = 10, .outlier = "interval: 30s"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void rules_that_do_not_see_or_see_too_much(void **state)
{
    static const struct border rows[] = {
        {"gateway-blind",
         {.hosts = 10,
          .outlier = "consecutiveGatewayErrors: 3, splitExternalLocalOriginErrors: on"}},
        {"gateway-blind",
         {.hosts = 10,
          .outlier = "consecutiveGatewayErrors: 3, splitExternalLocalOriginErrors: on, "
                     "consecutiveLocalOriginFailures: 4"}},
        {"",
         {.hosts = 10,
          .outlier = "consecutiveGatewayErrors: 3, splitExternalLocalOriginErrors: on, "
                     "consecutiveLocalOriginFailures: 3"}},
        {"", {.hosts = 10, .outlier = "consecutiveGatewayErrors: 3"}},
        {"gateway-never-first", {.hosts = 10, .outlier = "consecutiveGatewayErrors: 6"}},
        {"", {.hosts = 10, .outlier = "consecutiveGatewayErrors: 5"}},
        {"", {.hosts = 10, .outlier = "consecutive5xxErrors: 0, consecutiveGatewayErrors: 6"}},
        {"only-local-ejects",
         {.hosts = 10, .outlier = "consecutive5xxErrors: 0, splitExternalLocalOriginErrors: on"}},
        {"local-origin-escaped",
         {.hosts = 10,
          .outlier = "splitExternalLocalOriginErrors: on",
          .resilience = "semantics: envoy"}},
        {"local-origin-escaped",
         {.hosts = 10,
          .outlier = "splitExternalLocalOriginErrors: on",
          .resilience = "differences: {connectEndsLocalRun: envoy}"}},
        {"",
         {.hosts = 10,
          .outlier = "splitExternalLocalOriginErrors: on",
          .resilience = "semantics: envoy, differences: {connectEndsLocalRun: firebreak}"}},
        {"", {.hosts = 10, .outlier = "", .resilience = "semantics: envoy"}},
        {"no-rule", {.hosts = 10, .outlier = "consecutive5xxErrors: 0"}},
        {"one-error-ejects", {.hosts = 10, .outlier = "consecutive5xxErrors: 1"}},
        {"", {.hosts = 10, .outlier = "consecutive5xxErrors: 2"}},
        {"one-error-ejects", {.hosts = 10, .outlier = "consecutiveGatewayErrors: 1"}},
        {"one-error-ejects",
         {.hosts = 10,
          .outlier = "splitExternalLocalOriginErrors: on, consecutiveLocalOriginFailures: 1"}},
        {"zero-local-origin",
         {.hosts = 10,
          .outlier = "splitExternalLocalOriginErrors: on, consecutiveLocalOriginFailures: 0"}},
        {"", {.hosts = 10, .outlier = "consecutiveLocalOriginFailures: 0"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void limits(void **state)
{
    static const struct border rows[] = {
        {"connections-not-requests",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}, "
                  "http: {http1MaxPendingRequests: 9}",
          .cluster = ""}},
        {"connections-not-requests waiting-unbounded",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}", .cluster = ""}},
        {"",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}, "
                  "http: {http1MaxPendingRequests: 9, http2MaxRequests: 9}",
          .cluster = ""}},
        {"",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}",
          .cluster = "",
          .resilience = "perHost: {maxRequests: 9}, queueTimeout: 1s"}},
        {"queue-timeout-never-fires",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}, http: {http2MaxRequests: 9}",
          .cluster = "",
          .resilience = "queueTimeout: 2s"}},
        {"",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}, http: {http2MaxRequests: 9}",
          .cluster = "",
          .resilience = "queueTimeout: 1999ms"}},
        /* Without maxConnections a connect takes a place among the pending: one a host. */
        {"queue-below-connections",
         {.hosts = 4, .pool = "http: {http1MaxPendingRequests: 3, http2MaxRequests: 9}"}},
        {"", {.hosts = 4, .pool = "http: {http1MaxPendingRequests: 4, http2MaxRequests: 9}"}},
        {"",
         {.hosts = 4,
          .pool = "tcp: {maxConnections: 9, connectTimeout: 1s}, "
                  "http: {http1MaxPendingRequests: 3, http2MaxRequests: 9}",
          .cluster = ""}},
        /* As Envoy does it, a connect takes a place with maxConnections as well. */
        {"queue-below-connections",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}, "
                  "http: {http1MaxPendingRequests: 8, http2MaxRequests: 9}",
          .cluster = "",
          .resilience = "semantics: envoy"}},
        {"",
         {.pool = "tcp: {maxConnections: 9, connectTimeout: 1s}, "
                  "http: {http1MaxPendingRequests: 9, http2MaxRequests: 9}",
          .cluster = "",
          .resilience = "semantics: envoy"}},
        {"no-keep-alive", {.pool = "http: {maxRequestsPerConnection: 1}"}},
        {"", {.pool = "http: {maxRequestsPerConnection: 2}"}},
        {"", {.pool = "http: {maxRequestsPerConnection: 0}"}},
        {"zero-limit", {.pool = "tcp: {maxConnections: 0}"}},
        {"zero-limit", {.pool = "http: {http1MaxPendingRequests: 0}"}},
        {"zero-limit", {.pool = "http: {http2MaxRequests: 0}"}},
        {"", {.pool = "http: {http2MaxRequests: 1}"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void timeouts(void **state)
{
    static const struct border rows[] = {
        {"timeout-absent", {.route = ""}},
        {"timeout-none", {.route = "timeout: none"}},
        {"timeout-none", {.route = "timeout: 0s"}},
        {"timeout-over-p99", {.route = "timeout: 601ms, expect: {p99: 300ms}"}},
        {"", {.route = "timeout: 600ms, expect: {p99: 300ms}"}},
        {"timeout-over-p99", {.cluster = "connectTimeout: 300ms\n  expect: {p99: 999ms}"}},
        {"", {.cluster = "connectTimeout: 300ms\n  expect: {p99: 1s}"}},
        {"",
         {.route = "timeout: 2s, expect: {p99: 1s}",
          .cluster = "connectTimeout: 300ms\n  expect: {p99: 1ms}"}},
        {"timeout-under-p99", {.route = "timeout: 999ms, expect: {p99: 1s}"}},
        {"", {.route = "timeout: 1s, expect: {p99: 1s}"}},
        {"per-try-never-fires", {.route = "timeout: 1s, perTryTimeout: 1s"}},
        {"", {.route = "timeout: 1s, perTryTimeout: 999ms"}},
        {"connect-never-fires", {.route = "timeout: 300ms"}},
        {"", {.route = "timeout: 301ms"}},
        {"connect-never-fires", {.route = "timeout: 5s", .cluster = ""}},
        {"", {.route = "timeout: 5001ms", .cluster = ""}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void the_file(void **state)
{
    static const struct border rows[] = {
        {"admin-exposed", {.file = "admin: {listen: 0.0.0.0:9901}"}},
        {"admin-exposed", {.file = "admin: {listen: '[::]:9901'}"}},
        {"", {.file = "admin: {listen: 127.0.0.1:9901}"}},
        {"", {.file = "admin: {listen: '[::1]:9901'}"}},
        {"", {.file = "admin: {listen: 'unix:/run/a'}"}},
        {"", {.file = "admin: {listen: off}"}},
        {"cluster-unused",
         {.cluster = "connectTimeout: 300ms\n- name: b\n  endpoints: [{address: 127.0.1.1:1}, "
                     "{address: 127.0.1.1:2}, {address: 127.0.1.1:3}]"}},
        {"route-never-reached",
         {.route = "timeout: 2s}\n  - {cluster: a, timeout: 2s, match: {pathPrefix: /a}"}},
        {"route-never-reached",
         {.route = "timeout: 2s, match: {pathPrefix: /a}}\n  - {cluster: a, timeout: 2s, match: "
                   "{path: /ab, methods: [GET]}"}},
        {"route-never-reached",
         {.route =
              "timeout: 2s, match: {path: /a}}\n  - {cluster: a, timeout: 2s, match: {path: /a}"}},
        {"",
         {.route = "timeout: 2s, match: {path: /a}}\n  - {cluster: a, timeout: 2s, match: "
                   "{pathPrefix: /a}"}},
        {"", {.route = "timeout: 2s, match: {pathPrefix: /a}}\n  - {cluster: a, timeout: 2s"}},
        {"", {.route = "timeout: 2s, match: {methods: [GET]}}\n  - {cluster: a, timeout: 2s"}},
        {"", {.route = "timeout: 2s, match: {hosts: [a.test]}}\n  - {cluster: a, timeout: 2s"}},
        {"",
         {.route = "timeout: 2s, match: {methods: [GET]}}\n  - {cluster: a, timeout: 2s, match: "
                   "{methods: [GET, PUT]}"}},
        {"route-never-reached",
         {.route = "timeout: 2s, match: {methods: [GET, PUT]}}\n  - {cluster: a, timeout: 2s, "
                   "match: {methods: [PUT]}"}},
        {"",
         {.route = "timeout: 2s, match: {hosts: [a.test]}}\n  - {cluster: a, timeout: 2s, match: "
                   "{hosts: [b.test]}"}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void a_trap_says_where_why_and_what_to_write(void **state)
{
    const struct parts parts = {
        .hosts = 3, .pool = "http: {http2MaxRequests: 9}", .outlier = "maxEjectionPercent: 67"};
    const struct lint_finding *f;
    struct looked_at w;
    char shown[2048];
    struct text t;
    (void)state;

    look_at(&w, write_yaml(&parts), NULL);
    f = find(&w, "cap-half-of-few");
    assert_non_null(f);
    assert_int_equal(f->place.line, 13);
    assert_int_equal(f->place.column, 24);
    assert_true(bytes_equal(f->about, BYTES("cluster 'a'")));
    text_init(&t, shown, sizeof(shown));
    lint_write_finding(&t, f, LINT_PLAIN);
    assert_string_equal(
        text_end(&t),
        "f.yaml:13:24: danger: maxEjectionPercent 67 of 3 hosts is 2: the 1 left carries 300 % of "
        "the usual load, just when something is wrong [cap-half-of-few]\n"
        "        outlierDetection: {maxEjectionPercent: 67}\n"
        "                           ^\n"
        "    write at least 4 endpoints, so that 25 % is a whole host and the others carry a third "
        "more at most; with 3, maxEjectionPercent: 34 lets one go\n");
    look_away(&w);
}

static void an_absent_key_is_shown_where_it_would_be(void **state)
{
    const struct parts parts = {.hosts = 9, .outlier = "interval: 10s"};
    struct looked_at w;
    (void)state;

    look_at(&w, write_yaml(&parts), NULL);
    assert_int_equal(find(&w, "cap-rounds-to-nobody")->place.line, 12);
    assert_int_equal(find(&w, "cap-rounds-to-nobody")->place.column, 5);
    look_away(&w);
}

static void check_accepted(const struct parts *parts, const char *trap, const char *reason)
{
    const struct lint_finding *f;
    struct looked_at w;

    look_at(&w, write_yaml(parts), NULL);
    assert_int_equal(lint_count(&w.lint), 0);
    assert_int_equal(w.lint.accepted, 1);
    assert_string_equal(names(&w), trap);
    f = &w.lint.findings[0];
    assert_true(f->accepted);
    assert_true(bytes_equal(f->reason, bytes_of(reason)));
    look_away(&w);
}

static void what_is_accepted_is_listed_but_not_counted(void **state)
{
    const struct parts of_cluster = {
        .hosts = 2, .resilience = "accept: [{trap: few-peers, reason: two racks}]"};
    const struct parts of_route = {
        .route = "timeout: none, accept: [{trap: timeout-none, reason: streams}]"};
    const struct parts of_file = {.hosts = 2,
                                  .file = "accept: [{trap: few-peers, reason: small site}]"};
    const struct parts nearest = {.hosts = 2,
                                  .file = "accept: [{trap: few-peers, reason: small site}]",
                                  .resilience = "accept: [{trap: few-peers, reason: two racks}]"};
    (void)state;

    check_accepted(&of_cluster, "few-peers", "two racks");
    check_accepted(&of_route, "timeout-none", "streams");
    check_accepted(&of_file, "few-peers", "small site");
    check_accepted(&nearest, "few-peers", "two racks");
}

static void one_acceptance_is_for_one_trap(void **state)
{
    const struct parts parts = {
        .hosts = 2, .route = "", .resilience = "accept: [{trap: few-peers, reason: two racks}]"};
    struct looked_at w;
    (void)state;

    look_at(&w, write_yaml(&parts), NULL);
    assert_string_equal(names(&w), "timeout-absent few-peers");
    assert_int_equal(lint_count(&w.lint), 1);
    look_away(&w);
}

/* --- as many as there can be --- */

/* Two traps each. To be freed. */
static char *write_clusters(unsigned count)
{
    char *text = malloc(1 << 20);
    size_t at = 0;

    assert_non_null(text);
    at += (size_t)sprintf(text + at, "listeners: [{name: web, listen: 127.0.0.1:80, routes: [");
    for (unsigned i = 0; i < count; i++)
        at += (size_t)sprintf(text + at, "%s{cluster: c%u, match: {path: /%u}}", i > 0 ? ", " : "",
                              i, i);
    at += (size_t)sprintf(text + at, "]}]\nclusters:\n");
    for (unsigned i = 0; i < count; i++)
        at += (size_t)sprintf(text + at, "- {name: c%u, endpoints: [{address: 127.0.0.1:%u}]}\n", i,
                              i + 1);
    return text;
}

static void more_than_can_be_kept_are_counted(void **state)
{
    char *text = write_clusters(300);
    struct looked_at w;
    (void)state;

    look_at(&w, text, NULL);
    assert_int_equal(w.lint.kept, LINT_FINDINGS_MAX);
    assert_int_equal(w.lint.counts[LINT_WARNING], 300);
    assert_int_equal(w.lint.counts[LINT_ADVICE], 300);
    look_away(&w);
    free(text);
}

/* --- the log --- */

struct heard {
    struct log log;
    unsigned lines;
    char last[2048];
};

__attribute__((format(printf, 4, 0))) static void
hear(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    struct heard *h = (struct heard *)l;
    (void)level;

    assert_string_equal(event, "config.trap");
    h->lines++;
    vsnprintf(h->last, sizeof(h->last), format, args);
}

static void the_log_gets_a_line_each_but_of_what_is_accepted(void **state)
{
    const struct parts parts = {.hosts = 2,
                                .route = "",
                                .outlier = "maxEjectionPercent: 50",
                                .pool = "http: {http2MaxRequests: 9}",
                                .resilience =
                                    "accept: [{trap: cap-half-of-few, reason: two racks}]"};
    struct heard heard = {.log = {.write = hear}};
    struct looked_at w;
    (void)state;

    look_at(&w, write_yaml(&parts), NULL);
    lint_log(&w.lint, &heard.log);
    assert_int_equal(heard.lines, 2);
    assert_non_null(strstr(heard.last, "[few-peers]; `firebreak check` says what to write"));
    assert_null(strchr(heard.last, '\n'));
    look_away(&w);
}

/* A second time only what is new: another trap, the same of another cluster, with other numbers. */
static void the_log_gets_only_what_the_running_configuration_had_not(void **state)
{
    struct parts parts = {.hosts = 2, .route = "", .pool = "http: {http2MaxRequests: 9}"};
    struct heard heard = {.log = {.write = hear}};
    struct looked_at first, same, other;
    (void)state;

    look_at(&first, write_yaml(&parts), NULL);
    lint_log(&first.lint, &heard.log);
    assert_int_equal(heard.lines, 2); /* timeout-absent, few-peers */
    lint_remember(&first.lint, first.snapshot);
    look_at(&same, write_yaml(&parts), first.snapshot);
    lint_log(&same.lint, &heard.log);
    assert_int_equal(heard.lines, 2);
    assert_int_equal(lint_count(&same.lint), 2); /* it is there all the same */
    lint_remember(&same.lint, same.snapshot);
    parts.hosts = 1;
    look_at(&other, write_yaml(&parts), same.snapshot);
    lint_log(&other.lint, &heard.log);
    assert_int_equal(heard.lines, 3);
    assert_non_null(strstr(heard.last, "[few-peers]"));
    look_away(&first);
    look_away(&same);
    look_away(&other);
}

static void log_of(unsigned clusters, unsigned before, struct heard *heard)
{
    char *text = write_clusters(clusters), *old = write_clusters(before);
    struct looked_at now, then;

    *heard = (struct heard){.log = {.write = hear}};
    look_at(&then, old, NULL);
    lint_remember(&then.lint, then.snapshot);
    look_at(&now, text, before > 0 ? then.snapshot : NULL);
    lint_log(&now.lint, &heard->log);
    look_away(&now);
    look_away(&then);
    free(text);
    free(old);
}

static void many_are_not_all_logged(void **state)
{
    struct heard heard;
    (void)state;

    log_of(10, 1, &heard); /* one cluster's are known */
    assert_int_equal(heard.lines, 18);
    log_of(11, 1, &heard);
    assert_int_equal(heard.lines, LINT_LOGGED_MAX);
    log_of(13, 2, &heard);
    assert_int_equal(heard.lines, LINT_LOGGED_MAX + 1);
    assert_string_equal(heard.last, "2 more; `firebreak check` shows them all");
    log_of(300, 1, &heard); /* with those that were not kept, all of clusters */
    assert_int_equal(heard.lines, LINT_LOGGED_MAX + 1);
    assert_string_equal(heard.last, "579 more; `firebreak check` shows them all");
}

static void what_is_no_longer_accepted_is_logged(void **state)
{
    struct parts parts = {.hosts = 2,
                          .pool = "http: {http2MaxRequests: 9}",
                          .resilience = "accept: [{trap: few-peers, reason: two racks}]"};
    struct heard heard = {.log = {.write = hear}};
    struct looked_at first, second;
    (void)state;

    look_at(&first, write_yaml(&parts), NULL);
    lint_remember(&first.lint, first.snapshot);
    parts.resilience = NULL;
    look_at(&second, write_yaml(&parts), first.snapshot);
    lint_log(&second.lint, &heard.log);
    assert_int_equal(heard.lines, 1);
    assert_non_null(strstr(heard.last, "[few-peers]"));
    look_away(&first);
    look_away(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_careful_configuration_has_no_trap),
        cmocka_unit_test(caps),
        cmocka_unit_test(caps_of_those_who_follow_envoy),
        cmocka_unit_test(rates),
        cmocka_unit_test(panic),
        cmocka_unit_test(peers),
        cmocka_unit_test(lengths_of_ejections),
        cmocka_unit_test(rules_that_do_not_see_or_see_too_much),
        cmocka_unit_test(limits),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(the_file),
        cmocka_unit_test(a_trap_says_where_why_and_what_to_write),
        cmocka_unit_test(an_absent_key_is_shown_where_it_would_be),
        cmocka_unit_test(what_is_accepted_is_listed_but_not_counted),
        cmocka_unit_test(one_acceptance_is_for_one_trap),
        cmocka_unit_test(more_than_can_be_kept_are_counted),
        cmocka_unit_test(the_log_gets_a_line_each_but_of_what_is_accepted),
        cmocka_unit_test(the_log_gets_only_what_the_running_configuration_had_not),
        cmocka_unit_test(many_are_not_all_logged),
        cmocka_unit_test(what_is_no_longer_accepted_is_logged),
    };

    return cmocka_run_group_tests_name("lint", tests, NULL, NULL);
}
