/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All metrics, said once. Each list gives the enum, the names (Envoy's) and the help text. A cell
 * has one writer (its worker); a reader adds up over the workers.
 */
#ifndef STATS_METRICS_H
#define STATS_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "stats/histogram.h"
#include "stats/lag.h"
#include "stats/window.h"

enum metric_kind {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_RATIO /* a gauge whose value is in thousandths */
};

struct metric_info {
    const char *name;
    enum metric_kind kind;
    const char *help;
};

/* cluster.<name>.<metric>; written by workers */
#define CLUSTER_METRICS(X)                                                                         \
    X(upstream_cx_total, COUNTER, "upstream connections opened")                                   \
    X(upstream_cx_http1_total, COUNTER, "upstream HTTP/1.1 connections opened")                    \
    X(upstream_cx_active, GAUGE, "upstream connections open")                                      \
    X(upstream_cx_connect_fail, COUNTER, "upstream connects that failed")                          \
    X(upstream_cx_connect_timeout, COUNTER, "upstream connects that took too long")                \
    X(upstream_cx_overflow, COUNTER, "wishes for a connection that maxConnections turned down")    \
    X(upstream_cx_none_healthy, COUNTER, "requests for which no host was healthy")                 \
    X(upstream_cx_protocol_error, COUNTER, "upstream answers that were no HTTP")                   \
    X(upstream_cx_idle_timeout, COUNTER, "upstream connections closed for being idle")             \
    X(upstream_cx_max_requests, COUNTER, "upstream connections closed at their request limit")     \
    X(upstream_cx_max_duration_reached, COUNTER, "upstream connections closed at their age limit") \
    X(upstream_cx_close_notify, COUNTER, "upstream answers that said connection: close")           \
    X(upstream_cx_destroy, COUNTER, "upstream connections closed")                                 \
    X(upstream_cx_destroy_local, COUNTER, "upstream connections closed by the proxy")              \
    X(upstream_cx_destroy_remote, COUNTER, "upstream connections closed by the host")              \
    X(upstream_cx_destroy_with_active_rq, COUNTER, "upstream connections closed under a request")  \
    X(upstream_cx_destroy_local_with_active_rq, COUNTER, "the same, by the proxy")                 \
    X(upstream_cx_destroy_remote_with_active_rq, COUNTER, "the same, by the host")                 \
    X(upstream_cx_rx_bytes_total, COUNTER, "bytes received from hosts")                            \
    X(upstream_cx_tx_bytes_total, COUNTER, "bytes sent to hosts")                                  \
    X(upstream_rq_total, COUNTER, "attempts that got a connection")                                \
    X(upstream_rq_active, GAUGE, "attempts on connections")                                        \
    X(upstream_rq_pending_total, COUNTER, "attempts that waited for a connection")                 \
    X(upstream_rq_pending_active, GAUGE, "attempts waiting for a connection")                      \
    X(upstream_rq_pending_overflow, COUNTER, "requests refused by maxPendingRequests")             \
    X(upstream_rq_active_overflow, COUNTER, "requests refused by maxRequests")                     \
    X(upstream_rq_pending_failure_eject, COUNTER, "waiting attempts whose connect failed")         \
    X(upstream_rq_cancelled, COUNTER, "attempts given up before they got a connection")            \
    X(upstream_rq_timeout, COUNTER, "attempts ended by the route timeout")                         \
    X(upstream_rq_per_try_timeout, COUNTER, "attempts ended by the per-try timeout")               \
    X(upstream_rq_rx_reset, COUNTER, "streams the host reset; over HTTP/1 there are none")         \
    X(upstream_rq_tx_reset, COUNTER, "streams the proxy reset; over HTTP/1 there are none")        \
    X(upstream_rq_retry, COUNTER, "retries sent")                                                  \
    X(upstream_rq_retry_success, COUNTER, "retries that ended in what is not to be retried")       \
    X(upstream_rq_retry_overflow, COUNTER, "retries refused by maxRetries or the retry budget")    \
    X(upstream_rq_retry_limit_exceeded, COUNTER, "failures whose retries were used up")            \
    X(upstream_rq_retry_backoff_exponential, COUNTER, "retries sent after a back-off")             \
    X(retry_or_shadow_abandoned, COUNTER, "requests too large to be kept for a retry")             \
    X(upstream_rq_completed, COUNTER, "requests answered, by the host or locally")                 \
    X(upstream_rq_1xx, COUNTER, "interim answers")                                                 \
    X(upstream_rq_2xx, COUNTER, "final answers 2xx")                                               \
    X(upstream_rq_3xx, COUNTER, "final answers 3xx")                                               \
    X(upstream_rq_4xx, COUNTER, "final answers 4xx")                                               \
    X(upstream_rq_5xx, COUNTER, "final answers 5xx")                                               \
    X(upstream_flow_control_paused_reading_total, COUNTER, "times reading from a host was paused") \
    X(upstream_flow_control_resumed_reading_total, COUNTER, "times it was resumed")                \
    X(lb_healthy_panic, COUNTER, "hosts picked in panic: too few were healthy")                    \
    X(queue_timeout, COUNTER, "firebreak: requests refused after queueTimeout")                    \
    X(connect_failover, COUNTER,                                                                   \
      "firebreak: requests moved to another host after a failed connect")                          \
    X(reuse_resend, COUNTER, "firebreak: requests sent again after a reused connection had died")  \
    X(probe_made_good, COUNTER,                                                                    \
      "firebreak: trials (probes of ejected hosts, requests to suspects with next to no share) "   \
      "that failed or were late; another answered")                                                \
    X(retry_held, COUNTER, "firebreak: retries not sent because the whole fleet is slow")          \
    X(retry_budget_refused, COUNTER,                                                               \
      "firebreak: retries and resends that the rate of resilience.retryBudget refused")            \
    X(retry_places_refused, COUNTER,                                                               \
      "firebreak: retries that maxRetries, or the share of Istio's retryBudget, refused")          \
    X(retry_too_late, COUNTER, "firebreak: retries not begun for want of time")

/* cluster.<name>.retry.<metric>: answers thrown away for a retry; written by workers */
#define RETRY_METRICS(X)                                                                           \
    X(upstream_rq_completed, COUNTER, "answers thrown away for a retry")                           \
    X(upstream_rq_1xx, COUNTER, "of these, 1xx")                                                   \
    X(upstream_rq_2xx, COUNTER, "of these, 2xx")                                                   \
    X(upstream_rq_3xx, COUNTER, "of these, 3xx")                                                   \
    X(upstream_rq_4xx, COUNTER, "of these, 4xx")                                                   \
    X(upstream_rq_5xx, COUNTER, "of these, 5xx")

/* per endpoint, shown in /clusters; written by workers */
#define ENDPOINT_METRICS(X)                                                                        \
    X(cx_active, GAUGE, "connections open")                                                        \
    X(cx_connect_fail, COUNTER, "connects that failed")                                            \
    X(cx_total, COUNTER, "connections opened")                                                     \
    X(rq_active, GAUGE, "attempts under way")                                                      \
    X(rq_error, COUNTER, "attempts that failed or were answered 5xx")                              \
    X(rq_pending_active, GAUGE, "attempts waiting for a connection to it")                         \
    X(rq_success, COUNTER, "attempts answered below 500")                                          \
    X(rq_timeout, COUNTER, "attempts that timed out")                                              \
    X(rq_total, COUNTER, "attempts")

/* cluster.<name>.outlier_detection.<metric>; written by the control thread */
#define OUTLIER_METRICS(X)                                                                         \
    X(ejections_active, GAUGE, "hosts ejected now")                                                \
    X(ejections_enforced_total, COUNTER, "ejections carried out")                                  \
    X(ejections_overflow, COUNTER, "ejections refused by a guard")                                 \
    X(ejections_detected_consecutive_5xx, COUNTER, "runs of 5xx seen")                             \
    X(ejections_enforced_consecutive_5xx, COUNTER, "ejections for runs of 5xx")                    \
    X(ejections_detected_consecutive_gateway_failure, COUNTER, "runs of 502/503/504 seen")         \
    X(ejections_enforced_consecutive_gateway_failure, COUNTER, "ejections for them")               \
    X(ejections_detected_consecutive_local_origin_failure, COUNTER, "runs of local failures seen") \
    X(ejections_enforced_consecutive_local_origin_failure, COUNTER, "ejections for them")          \
    X(ejections_detected_detection, COUNTER, "firebreak: hosts that detection would have ejected") \
    X(ejections_enforced_detection, COUNTER, "firebreak: ejections by detection")                  \
    X(ejections_detected_rules, COUNTER, "firebreak: hosts that a rule speaks against")            \
    X(ejections_enforced_rules, COUNTER, "firebreak: ejections by a rule")                         \
    X(verdict, GAUGE,                                                                              \
      "firebreak: what is wrong: 0 nothing, 1 a node, 2 nodes, 3 a version, 4 a zone, 5 the "      \
      "fleet, 6 a dependency, 7 the caller, 8 the mix of classes, 9 too little capacity")          \
    X(verdict_changes, COUNTER, "firebreak: how often that changed")                               \
    X(accusations_held_by_verdict, COUNTER,                                                        \
      "firebreak: looks at a host that was accused, and whose fault it is not")                    \
    X(accusations, COUNTER, "firebreak: times that a line of evidence passed the threshold")       \
    X(false_alarms, COUNTER, "firebreak: accusations that were not borne out by what came after")  \
    X(false_alarm_rate, RATIO, "firebreak: the same a day, of the last day")                       \
    X(false_alarm_rate_expected, RATIO,                                                            \
      "firebreak: a day, by the threshold, of requests as many as now that do not depend on each " \
      "other")                                                                                     \
    X(drift, RATIO,                                                                                \
      "firebreak: how far hosts wander from their usual place, natural logarithm, mean of all")    \
    X(connections_refreshed, COUNTER,                                                              \
      "firebreak: times a host's connections were given up because a request was late")            \
    X(evidence_void, COUNTER,                                                                      \
      "firebreak: waits and failed connects that say nothing, as the proxy itself was late or "    \
      "cut off")                                                                                   \
    X(ejections_detected_success_rate, COUNTER, "low success rates of answers seen")               \
    X(ejections_enforced_success_rate, COUNTER, "ejections for them")                              \
    X(ejections_detected_local_origin_success_rate, COUNTER, "low success rates of connects seen") \
    X(ejections_enforced_local_origin_success_rate, COUNTER, "ejections for them")                 \
    X(ejections_detected_failure_percentage, COUNTER, "high shares of failed answers seen")        \
    X(ejections_enforced_failure_percentage, COUNTER, "ejections for them")                        \
    X(ejections_detected_local_origin_failure_percentage, COUNTER,                                 \
      "high shares of local failures seen")                                                        \
    X(ejections_enforced_local_origin_failure_percentage, COUNTER, "ejections for them")           \
    X(ejections_detected_degradation, COUNTER, "always 0: hosts are not told degraded")            \
    X(ejections_total, COUNTER,                                                                    \
      "deprecated: runs of 5xx and low success rates that passed the guards")                      \
    X(ejections_consecutive_5xx, COUNTER, "deprecated: runs of 5xx seen")                          \
    X(ejections_success_rate, COUNTER, "deprecated: low success rates seen")

/* cluster.<name>.effect.<metric>; written by the control thread */
#define EFFECT_METRICS(X)                                                                          \
    X(accounts_open, GAUGE, "ejections whose effect is being measured")                            \
    X(helped, COUNTER, "ejections of hosts whose probes were worse than the survivors")            \
    X(useless, COUNTER, "ejections after which the survivors were as bad as the host had been")    \
    X(harmful, COUNTER, "the same, and worse than all hosts had been before; or overloaded")       \
    X(undecided, COUNTER, "ejections of which neither could be said")                              \
    X(undone, COUNTER, "useless and harmful ejections that were undone")                           \
    X(readmitted_for_capacity, COUNTER, "hosts let back because the others could not carry more")  \
    X(cap_lowered, GAUGE, "1: fewer hosts may be out than configured, for want of capacity")       \
    X(thresholds_need_work, COUNTER, "ejections that did not bring timeouts down by 30 %")         \
    X(failures_avoided, GAUGE, "failed attempts spared by ejections, estimated")                   \
    X(slow_avoided, GAUGE, "slow answers spared by ejections, estimated")                          \
    X(p99_ratio, RATIO, "p99 within 5 minutes of ejections to that before, mean of all")           \
    X(timeout_ratio, RATIO, "the same of the share of timeouts")                                   \
    X(false_ejections, COUNTER, "ejected with nothing wrong just before, and nothing after")       \
    X(reejections, COUNTER, "ejections within 10 minutes of a return")                             \
    X(time_out_mean, GAUGE, "milliseconds that hosts were out, mean of all returns")               \
    X(capacity_left, RATIO, "shares of the hosts that serve, to what all of them would have")      \
    X(zone_skew, RATIO, "share of hosts out in the zone with most, less that in all zones")

/* cluster.<name>.<metric>; written by the control thread */
#define DISCOVERY_METRICS(X)                                                                       \
    X(update_attempt, COUNTER, "lookups of the endpoints' names")                                  \
    X(update_success, COUNTER, "lookups answered with addresses")                                  \
    X(update_failure, COUNTER, "lookups that failed: the last good addresses stay")                \
    X(update_empty, COUNTER, "lookups answered without an address: the same")

/* http.<listener>.<metric>; written by workers */
#define HTTP_METRICS(X)                                                                            \
    X(downstream_cx_total, COUNTER, "client connections accepted")                                 \
    X(downstream_cx_http1_total, COUNTER, "client connections speaking HTTP/1")                    \
    X(downstream_cx_active, GAUGE, "client connections open")                                      \
    X(downstream_cx_http1_active, GAUGE, "client connections speaking HTTP/1 open")                \
    X(downstream_cx_upgrades_total, COUNTER, "connections turned into tunnels")                    \
    X(downstream_cx_upgrades_active, GAUGE, "tunnels open")                                        \
    X(downstream_cx_destroy, COUNTER, "client connections closed")                                 \
    X(downstream_cx_destroy_local, COUNTER, "closed by the proxy")                                 \
    X(downstream_cx_destroy_remote, COUNTER, "closed by the client")                               \
    X(downstream_cx_destroy_active_rq, COUNTER, "closed under a request")                          \
    X(downstream_cx_destroy_local_active_rq, COUNTER, "the same, by the proxy")                    \
    X(downstream_cx_destroy_remote_active_rq, COUNTER, "the same, by the client")                  \
    X(downstream_cx_rx_bytes_total, COUNTER, "bytes received from clients")                        \
    X(downstream_cx_tx_bytes_total, COUNTER, "bytes sent to clients")                              \
    X(downstream_cx_drain_close, COUNTER, "connections closed because of draining")                \
    X(downstream_cx_idle_timeout, COUNTER, "connections closed for being idle")                    \
    X(downstream_cx_max_duration_reached, COUNTER, "connections closed for their age")             \
    X(downstream_cx_overflow, COUNTER, "times accepting paused for want of descriptors")           \
    X(downstream_cx_protocol_error, COUNTER, "connections with malformed requests")                \
    X(downstream_rq_total, COUNTER, "requests")                                                    \
    X(downstream_rq_http1_total, COUNTER, "requests over HTTP/1")                                  \
    X(downstream_rq_active, GAUGE, "requests under way")                                           \
    X(downstream_rq_completed, COUNTER, "requests answered")                                       \
    X(downstream_rq_1xx, COUNTER, "interim answers sent")                                          \
    X(downstream_rq_2xx, COUNTER, "answers 2xx")                                                   \
    X(downstream_rq_3xx, COUNTER, "answers 3xx")                                                   \
    X(downstream_rq_4xx, COUNTER, "answers 4xx")                                                   \
    X(downstream_rq_5xx, COUNTER, "answers 5xx")                                                   \
    X(downstream_rq_rx_reset, COUNTER, "requests broken off, by the client or by the proxy")       \
    X(downstream_rq_tx_reset, COUNTER, "answers the proxy broke off")                              \
    X(downstream_rq_timeout, COUNTER, "requests whose body took too long")                         \
    X(downstream_rq_header_timeout, COUNTER, "requests whose head took too long")                  \
    X(downstream_rq_idle_timeout, COUNTER, "requests on which nothing moved for too long")         \
    X(downstream_rq_too_large, COUNTER, "requests larger than allowed")                            \
    X(downstream_rq_response_before_rq_complete, COUNTER, "answers before the request was whole")  \
    X(no_route, COUNTER, "requests for which there was no route")                                  \
    X(no_cluster, COUNTER, "requests whose route names an unknown cluster")                        \
    X(rq_total, COUNTER, "requests routed")                                                        \
    X(rq_overload_refused, COUNTER, "firebreak: requests refused by the bound on the process")

/* firebreak worker <n>; written by that worker */
#define WORKER_METRICS(X)                                                                          \
    X(turns, COUNTER, "turns of the loop")                                                         \
    X(heap_allocations, COUNTER, "heap allocations of the data plane")                             \
    X(records_dropped, COUNTER, "access log records dropped")                                      \
    X(evidence_lost, COUNTER, "ended attempts that detection was not told of: the watch was late") \
    X(accept_paused, COUNTER, "times accepting paused for want of descriptors or memory")

#define X(name, kind, help) CLUSTER_##name,
enum cluster_metric { CLUSTER_METRICS(X) CLUSTER_METRIC_COUNT };
#undef X
#define X(name, kind, help) RETRY_STAT_##name,
enum retry_metric { RETRY_METRICS(X) RETRY_METRIC_COUNT };
#undef X
#define X(name, kind, help) ENDPOINT_##name,
enum endpoint_metric { ENDPOINT_METRICS(X) ENDPOINT_METRIC_COUNT };
#undef X
#define X(name, kind, help) OUTLIER_STAT_##name,
enum outlier_metric { OUTLIER_METRICS(X) OUTLIER_METRIC_COUNT };
#undef X
#define X(name, kind, help) EFFECT_STAT_##name,
enum effect_metric { EFFECT_METRICS(X) EFFECT_METRIC_COUNT };
#undef X
#define X(name, kind, help) DISCOVERY_##name,
enum discovery_metric { DISCOVERY_METRICS(X) DISCOVERY_METRIC_COUNT };
#undef X
#define X(name, kind, help) HTTP_##name,
enum http_metric { HTTP_METRICS(X) HTTP_METRIC_COUNT };
#undef X
#define X(name, kind, help) WORKER_##name,
enum worker_metric { WORKER_METRICS(X) WORKER_METRIC_COUNT };
#undef X

extern const struct metric_info cluster_metric_info[CLUSTER_METRIC_COUNT];
extern const struct metric_info retry_metric_info[RETRY_METRIC_COUNT];
extern const struct metric_info endpoint_metric_info[ENDPOINT_METRIC_COUNT];
extern const struct metric_info outlier_metric_info[OUTLIER_METRIC_COUNT];
extern const struct metric_info effect_metric_info[EFFECT_METRIC_COUNT];
extern const struct metric_info discovery_metric_info[DISCOVERY_METRIC_COUNT];
extern const struct metric_info http_metric_info[HTTP_METRIC_COUNT];
extern const struct metric_info worker_metric_info[WORKER_METRIC_COUNT];

/* Status codes seen, each with its count: a small table, filled as codes appear. */
#define STATUS_SLOTS 32

struct status_cells {
    _Atomic uint32_t code[STATUS_SLOTS]; /* 0: free */
    _Atomic uint64_t count[STATUS_SLOTS];
};

/* By the owner. Codes beyond the table's room are not counted one by one (their class is). */
void status_cells_add(struct status_cells *s, uint32_t code);
/* The same, |n| at once. */
void status_cells_add_many(struct status_cells *s, uint32_t code, uint64_t n);

/* How often each response flag (model/flags.h) was given, by its bit. */
#define FLAG_SLOTS 32

struct flag_cells {
    _Atomic uint64_t at[FLAG_SLOTS];
};

/* By the owner: each of the bits. */
void flag_cells_add(struct flag_cells *f, uint32_t flags);

/* One worker's share of a cluster, an endpoint, a listener, and of the process. */
struct cluster_cells {
    _Alignas(64) _Atomic uint64_t at[CLUSTER_METRIC_COUNT];
    struct status_cells statuses;
    struct flag_cells flags;
    struct window first_attempts; /* begun */
    struct window extra_attempts; /* retries, failovers, resends */
    _Atomic uint64_t retry[RETRY_METRIC_COUNT];
    struct status_cells retry_statuses;
    struct histogram rq_time;    /* upstream_rq_time: end of request to end of response */
    struct histogram connect_ms; /* upstream_cx_connect_ms */
};

/* Its tables of status codes. */
enum status_table { STATUS_FINAL, STATUS_RETRIED, STATUS_TABLE_COUNT };

static inline const struct status_cells *status_table(const struct cluster_cells *c,
                                                      enum status_table which)
{
    return which == STATUS_FINAL ? &c->statuses : &c->retry_statuses;
}

/* By the owner. An answer with |status| is thrown away for a retry. */
void retry_cells_add(struct cluster_cells *c, uint32_t status);

struct endpoint_cells {
    _Alignas(64) _Atomic uint64_t at[ENDPOINT_METRIC_COUNT];
    _Atomic uint64_t held; /* attempts on it that requests still remember, ended ones too */
};

struct http_cells {
    _Alignas(64) _Atomic uint64_t at[HTTP_METRIC_COUNT];
    struct flag_cells flags;
    struct histogram rq_time; /* downstream_rq_time */
};

struct worker_cells {
    _Alignas(64) _Atomic uint64_t at[WORKER_METRIC_COUNT];
    _Atomic uint64_t version; /* of the snapshot the worker has adopted */
    struct lag lag;           /* loop_lag */
};

/* By the owner of the cell only; so a load and a store do, and readers see no torn value. */
static inline void cell_add(_Atomic uint64_t *cell, uint64_t n)
{
    uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);

    atomic_store_explicit(cell, old + n, memory_order_relaxed);
}

/* Gauges go down; a worker's share may be "negative" in two's complement, the sum is not. */
static inline void cell_sub(_Atomic uint64_t *cell, uint64_t n)
{
    uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);

    atomic_store_explicit(cell, old - n, memory_order_relaxed);
}

static inline uint64_t cell_read(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

#endif
