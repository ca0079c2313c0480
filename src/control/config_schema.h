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
    uint32_t format; /* enum log_format */
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

struct config_route {
    struct field_head head;
    struct bytes name;
    struct config_match match;
    struct bytes cluster;
    span_ns timeout;
    span_ns per_try_timeout;
    span_ns idle_timeout;
    struct config_expect expect;
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
    uint32_t trusted_hops;
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
    struct config_keepalive keepalive;
};

struct config_http_pool {
    struct field_head head;
    uint32_t max_pending;
    uint32_t max_requests;
    uint32_t max_requests_per_connection;
    span_ns idle_timeout;
};

struct config_pool {
    struct field_head head;
    struct config_tcp_pool tcp;
    struct config_http_pool http;
};

struct config_outlier {
    struct field_head head;
    struct outlier_config is;
};

struct config_policy {
    struct field_head head;
    struct config_pool pool;
    struct config_outlier outlier;
};

struct config_resilience {
    struct field_head head;
    bool connect_failover;
    struct field_items accept;
};

struct config_cluster {
    struct field_head head;
    struct bytes name;
    uint32_t protocol;
    struct field_items endpoints;
    uint32_t lb; /* enum lb_kind */
    span_ns connect_timeout;
    span_ns idle_timeout;
    struct config_policy policy;
    struct config_resilience resilience;
    struct config_expect expect;
};

struct config_file {
    struct field_head head;
    struct config_admin admin;
    uint32_t workers;
    struct bytes user;
    struct config_access_log access_log;
    uint64_t memory_limit;
    span_ns drain_timeout;
    struct field_items listeners;
    struct field_items clusters;
    struct field_items accept;
};

extern const struct fields config_file_fields;
extern const struct fields config_listener_fields;
extern const struct fields config_route_fields;
extern const struct fields config_cluster_fields;
extern const struct fields config_endpoint_fields;
extern const struct fields config_expect_fields;
extern const struct fields config_accept_fields;

#endif
