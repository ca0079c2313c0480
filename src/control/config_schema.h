/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native form of the configuration, as it is written: every key of the file, typed, with its
 * default. config_build.h turns it into a snapshot. DESIGN.md 4.1 shows the whole of it.
 */
#ifndef CONTROL_CONFIG_SCHEMA_H
#define CONTROL_CONFIG_SCHEMA_H

#include "base/address.h"
#include "base/bytes.h"
#include "base/units.h"
#include "control/config_field.h"
#include "model/snapshot.h"
#include "policy/outlier.h"

struct config_admin {
    struct field_head head;
    struct address listen;
};

struct config_access_log {
    struct field_head head;
    struct bytes to;
    struct field_text format;       /* json, text, envoy, istio, or a line with operators */
    struct field_items json_format; /* of field_text with |key| */
};

struct config_limits {
    struct field_head head;
    struct http_limits is;
};

/* A trap of control/lint.h that is there on purpose. */
struct config_accept {
    struct field_head head;
    uint32_t trap; /* of lint_trap_id */
    struct bytes reason;
};

struct config_expect {
    struct field_head head;
    span_ns p99; /* 0: not said */
};

struct config_match {
    struct field_head head;
    struct field_items hosts;
    struct bytes path_prefix;
    struct bytes path;
    struct field_items methods;
};

struct config_backoff {
    struct field_head head;
    span_ns base;
    span_ns max; /* 0: not given */
};

struct config_retry {
    struct field_head head;
    uint32_t attempts;
    struct field_items on;
    struct field_items statuses;
    struct field_items headers;
    struct field_items methods;
    struct config_backoff backoff;
    uint32_t buffer_bytes;
    bool count_in_answer;
};

struct config_route {
    struct field_head head;
    struct bytes name;
    struct config_match match;
    struct bytes cluster;
    span_ns timeout;
    span_ns per_try_timeout;
    span_ns idle_timeout;
    struct config_retry retry;
    struct config_expect expect;
    struct bytes class;
    uint64_t large_body;
    struct field_items accept;
};

struct config_listener {
    struct field_head head;
    struct bytes name;
    struct address listen;
    struct config_limits limits;
    span_ns head_timeout;
    span_ns body_timeout;
    span_ns idle_timeout;
    span_ns max_connection_age;
    uint32_t trusted_hops;
    bool trust_retry_headers;
    bool via;
    bool forward_normalized;
    bool merge_slashes;
    struct field_items routes;
};

struct config_endpoint {
    struct field_head head;
    struct bytes address;
    struct bytes zone;
    struct bytes version;
    struct field_items labels;
};

struct config_keepalive {
    struct field_head head;
    uint32_t probes;
    uint32_t time_s;
    uint32_t interval_s;
};

struct config_tcp_pool {
    struct field_head head;
    uint32_t max_connections;
    span_ns connect_timeout;
    span_ns max_connection_duration;
    span_ns idle_timeout;
    struct config_keepalive keepalive;
};

struct config_http2_keepalive {
    struct field_head head;
    span_ns interval;
    span_ns timeout;
};

struct config_http_pool {
    struct field_head head;
    uint32_t max_pending;
    uint32_t max_requests;
    uint32_t max_retries;
    uint32_t max_requests_per_connection;
    span_ns idle_timeout;
    uint32_t upgrade; /* only what it says already is accepted, here and below */
    uint32_t client_protocol;
    uint32_t max_streams;
    struct config_http2_keepalive http2_keepalive;
};

struct config_pool {
    struct field_head head;
    struct config_tcp_pool tcp;
    struct config_http_pool http;
};

struct config_outlier {
    struct field_head head;
    struct outlier_config is;
    uint32_t min_health_percent;
    uint32_t errors; /* deprecated, and ignored as Istio does */
    struct field_items error_codes;
};

/* Envoy's words for what Istio has none, below resilience.outlier. */
struct config_success_rate {
    struct field_head head;
    uint32_t enforcing;
    uint32_t enforcing_local;
    uint32_t minimum_hosts;
    uint32_t request_volume;
    uint32_t stdev_factor;
};

struct config_failure_percentage {
    struct field_head head;
    uint32_t threshold;
    uint32_t enforcing;
    uint32_t enforcing_local;
    uint32_t minimum_hosts;
    uint32_t request_volume;
};

struct config_outlier_more {
    struct field_head head;
    struct config_success_rate success_rate;
    struct config_failure_percentage failure_percentage;
    span_ns max_ejection;
    span_ns jitter;
    uint32_t enforcing_5xx;
    uint32_t enforcing_gateway;
    uint32_t enforcing_local;
    bool always_eject_one;
};

enum config_semantics { SEMANTICS_FIREBREAK, SEMANTICS_ENVOY };

struct config_differences {
    struct field_head head;
    uint32_t is[DIFFERENCE_COUNT]; /* enum config_semantics; where the key is there */
};

struct config_retry_share {
    struct field_head head;
    uint32_t permille;
    uint32_t least;
};

struct config_retry_budget {
    struct field_head head;
    struct retry_budget_config is;
};

struct config_locality {
    struct field_head head;
    uint32_t enabled;
};

/* Istio's; the native key of a cluster is config_cluster's |lb|. */
struct config_balancer {
    struct field_head head;
    uint32_t simple;
    struct config_locality locality;
};

struct config_tls {
    struct field_head head;
    uint32_t mode;
};

/*
 * Where a block is absent its head's node is NULL. A block added here is one more for
 * config_resolve.c, which knows what an entry for a port or a subset replaces.
 */
struct config_policy {
    struct field_head head;
    struct config_retry_share retry_budget;
    struct config_pool pool;
    struct config_outlier outlier;
    struct config_balancer balancer;
    struct config_tls tls;
    struct field_items ports; /* of struct config_port_policy */
};

struct config_port {
    struct field_head head;
    uint32_t number;
};

struct config_port_policy {
    struct field_head head;
    struct config_port port;
    struct config_pool pool;
    struct config_outlier outlier;
    struct config_balancer balancer;
    struct config_tls tls;
};

struct config_per_host {
    struct field_head head;
    struct host_limits is;
};

struct config_detect {
    struct field_head head;
    bool latency;
    bool errors;
    bool connections;
    uint32_t false_alarms; /* a week; 0: not said */
};

/* Of resilience.rules. */
struct config_detect_rule {
    struct field_head head;
    uint32_t signal;    /* enum rule_signal */
    uint32_t at_least;  /* 0: not said, here and below */
    struct bytes above; /* what it is depends on the signal */
    span_ns within;
    uint32_t windows;
    uint32_t min_requests;
    uint32_t with; /* from RULE_ERROR on; RULE_SIGNAL_COUNT: none */
};

struct config_ejection {
    struct field_head head;
    uint32_t cap_permille;
    span_ns base;
    span_ns max; /* 0: not said */
};

struct config_readmit {
    struct field_head head;
    span_ns after;
    span_ns gap;
    uint32_t probes;
    uint32_t successes;
    span_ns ramp;
};

struct config_capacity {
    struct field_head head;
    uint32_t max_load_permille;
};

struct config_escalate {
    struct field_head head;
    span_ns repeated_for;
    uint32_t times_per_hour;
};

struct config_resilience {
    struct field_head head;
    struct config_retry_budget retry_budget;
    bool connect_failover;
    struct field_items accept;
    uint32_t panic;     /* enum panic_policy */
    uint32_t mode;      /* enum detection_mode */
    uint32_t profile;   /* enum detection_profile */
    uint32_t semantics; /* enum config_semantics */
    struct config_differences differences;
    struct config_outlier_more outlier;
    struct config_detect detect;
    struct field_items rules; /* of struct config_detect_rule */
    struct config_ejection ejection;
    struct config_readmit readmit;
    struct config_capacity capacity;
    struct config_escalate escalate;
    span_ns queue_timeout;
    struct config_per_host per_host;
};

struct config_rule;
struct config_subset;

struct config_cluster {
    struct field_head head;
    struct bytes name;
    struct bytes host; /* of a DestinationRule */
    uint32_t port;
    uint32_t protocol;
    struct field_items endpoints;
    uint32_t lb; /* enum lb_kind */
    span_ns connect_timeout;
    span_ns idle_timeout;
    span_ns max_connection_age;
    span_ns dns_hold;
    span_ns host_drain_timeout;
    struct config_policy policy;
    struct config_resilience resilience;
    struct config_expect expect;
    /* Not keys, but worked out by config_rules.c. */
    struct bytes shown;                 /* "outbound|80|v2|host"; where there is no host: |name| */
    const struct config_rule *rule;     /* the DestinationRule it was given; NULL: none */
    const struct config_subset *subset; /* the subset that it is; NULL: all of the endpoints */
};

/* A networking.istio.io DestinationRule. */
struct config_subset {
    struct field_head head;
    struct bytes name;
    struct field_items labels;
    struct config_policy policy;
};

struct config_metadata {
    struct field_head head;
    struct bytes name;
    struct bytes namespace;
};

struct config_rule_spec {
    struct field_head head;
    struct bytes host;
    struct config_policy policy;
    struct field_items subsets;
    struct field_items export_to;
};

struct config_rule {
    struct field_head head;
    uint32_t version;
    uint32_t kind;
    struct config_metadata metadata;
    struct config_rule_spec spec;
    struct field_head status;
};

struct config_file {
    struct field_head head;
    struct bytes namespace;
    struct config_admin admin;
    uint32_t workers;
    struct bytes user;
    struct config_access_log access_log;
    struct bytes outlier_event_log;
    struct bytes journal;
    uint64_t memory_limit;
    span_ns drain_wait;
    span_ns drain_timeout;
    struct field_items listeners;
    struct field_items clusters;
    struct field_items accept;
};

extern const struct fields config_file_fields;
extern const struct fields config_listener_fields;
extern const struct fields config_route_fields;
extern const struct fields config_cluster_fields;
extern const struct fields config_retry_fields;
extern const struct fields config_retry_share_fields;
extern const struct fields config_retry_budget_fields;
extern const struct fields config_endpoint_fields;
extern const struct fields config_expect_fields;
extern const struct fields config_accept_fields;
/* Of trafficPolicy, native or Istio's: config_schema_policy.c and config_schema_istio.c. */
extern const struct fields config_policy_fields;
extern const struct fields config_pool_fields;
extern const struct fields config_outlier_fields;
extern const struct fields config_balancer_fields;
extern const struct fields config_tls_fields;
extern const struct fields config_port_policy_fields;
extern const struct fields config_rule_fields;

/* The rows of a policy's blocks, its own or those of one port. |AT_|: where a member is. */
#define CONFIG_POLICY_BLOCKS(AT_)                                                                  \
    {.name = "connectionPool",                                                                     \
     .kind = FIELD_OBJECT,                                                                         \
     .at = AT_(pool),                                                                              \
     .of = &config_pool_fields,                                                                    \
     .help = "limits"},                                                                            \
        {.name = "outlierDetection",                                                               \
         .kind = FIELD_OBJECT,                                                                     \
         .at = AT_(outlier),                                                                       \
         .of = &config_outlier_fields,                                                             \
         .help = "ejection"},                                                                      \
        {.name = "loadBalancer",                                                                   \
         .kind = FIELD_OBJECT,                                                                     \
         .at = AT_(balancer),                                                                      \
         .of = &config_balancer_fields,                                                            \
         .help = "which host gets the next request"},                                              \
    {                                                                                              \
        .name = "tls", .kind = FIELD_OBJECT, .at = AT_(tls), .of = &config_tls_fields,             \
        .help = "towards the hosts"                                                                \
    }

/* Most bytes of a cluster's name: "outbound|65535|", a subset, a host. */
#define CONFIG_CLUSTER_NAME_MAX 340
/* config_schema_detection.c */
extern const struct fields config_detect_fields;
extern const struct fields config_ejection_fields;
extern const struct fields config_readmit_fields;
extern const struct fields config_capacity_fields;
extern const struct fields config_escalate_fields;
/* config_schema_rules.c */
extern const struct fields config_detect_rule_fields;
/* config_schema_outlier.c */
extern const struct fields config_outlier_more_fields;
extern const struct fields config_differences_fields;
extern const char *const config_semantics_words[];

#endif
