/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of clusters. What is below trafficPolicy has Istio's names, units and defaults
 * (reference/envoy-semantics.md 8.2, 8.3); where a block is absent, config_build.c puts ours.
 */
#include "control/config_schema.h"

#define YEAR     (365 * 24 * 3600 * NS_PER_S)
#define HOUR     (3600 * NS_PER_S)
#define INT32_OF 2147483647 /* Istio's integers are int32 */

/* What Linux takes for the three of them (tcp(7), MAX_TCP_KEEPIDLE and so on). */
#define KEEPALIVE_SECONDS_MAX 32767
#define KEEPALIVE_PROBES_MAX  127

#define AT(member) offsetof(struct config_endpoint, member)
static const struct field endpoint_rows[] = {
    {.name = "address",
     .kind = FIELD_TEXT,
     .at = AT(address),
     .required = true,
     .help = "`127.0.0.1:9001`, `[::1]:9001`, `unix:/path`, or `name:9001`: each address of the "
             "name is "
             "a host; it must be known at the start, is looked up again by its time to live, and "
             "keeps its last good addresses where that fails"},
    {.name = "zone",
     .kind = FIELD_TEXT,
     .at = AT(zone),
     .help = "shown beside the host; for subsets the label `topology.kubernetes.io/zone`"},
    {.name = "version",
     .kind = FIELD_TEXT,
     .at = AT(version),
     .help = "shown beside the host; for subsets the label `version`"},
    {.name = "labels",
     .kind = FIELD_LABELS,
     .at = AT(labels),
     .help = "labels of one's own, such as `{track: canary}`: a DestinationRule's subset takes the "
             "endpoints that have all of its labels"},
    {.name = "weight", .kind = FIELD_LATER, .help = "weighted balancing"},
    {.name = NULL},
};
#undef AT

const struct fields config_endpoint_fields = {
    .name = "endpoint",
    .path = "clusters[].endpoints[]",
    .size = sizeof(struct config_endpoint),
    .rows = endpoint_rows,
    .help = "One host.",
};

#define AT(member) offsetof(struct config_keepalive, member)
static const struct field keepalive_rows[] = {
    {.name = "probes",
     .kind = FIELD_COUNT,
     .at = AT(probes),
     .min = 1,
     .max = KEEPALIVE_PROBES_MAX,
     .zero_is_unset = true,
     .preset_text = "the system's (9)",
     .help = "probes without an answer before the connection is dead"},
    {.name = "time",
     .kind = FIELD_SECONDS,
     .at = AT(time_s),
     .min = 1,
     .max = KEEPALIVE_SECONDS_MAX,
     .zero_is_unset = true,
     .preset_text = "the system's (7200s)",
     .help = "idle time before the first probe"},
    {.name = "interval",
     .kind = FIELD_SECONDS,
     .at = AT(interval_s),
     .min = 1,
     .max = KEEPALIVE_SECONDS_MAX,
     .zero_is_unset = true,
     .preset_text = "the system's (75s)",
     .help = "time between probes"},
    {.name = NULL},
};
#undef AT

static const struct fields keepalive_fields = {
    .name = "tcpKeepalive",
    .path = "clusters[].trafficPolicy.connectionPool.tcp.tcpKeepalive",
    .size = sizeof(struct config_keepalive),
    .rows = keepalive_rows,
    .help = "Present, even empty (`{}`): TCP keep-alive is on. Absent: off.",
};

#define AT(member) offsetof(struct config_tcp_pool, member)
static const struct field tcp_rows[] = {
    {.name = "maxConnections",
     .kind = FIELD_COUNT,
     .at = AT(max_connections),
     .max = INT32_OF,
     .preset = LIMIT_NONE,
     .preset_text = "none",
     .zero_is_unset = true,
     .help = "connections to the whole cluster; reached: requests wait (`upstream_cx_overflow`)"},
    {.name = "connectTimeout",
     .kind = FIELD_SPAN,
     .at = AT(connect_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = 10 * NS_PER_S,
     .help = "longest time a connect may take"},
    {.name = "tcpKeepalive",
     .kind = FIELD_OBJECT,
     .at = AT(keepalive),
     .of = &keepalive_fields,
     .preset_text = "off",
     .help = "TCP keep-alive probes"},
    {.name = "maxConnectionDuration",
     .kind = FIELD_SPAN,
     .at = AT(max_connection_duration),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = 0,
     .preset_text = "none",
     .help = "a connection that old gets no further request, and is closed once it has none"},
    {.name = "idleTimeout",
     .kind = FIELD_SPAN,
     .at = AT(idle_timeout),
     .max = YEAR,
     .preset = HOUR,
     .word = "none",
     .word_value = MONO_NEVER,
     .zero_is_word = true,
     .help = "as `http.idleTimeout`, where that is absent; `0s`: never"},
    {.name = NULL},
};
#undef AT

static const struct fields tcp_fields = {
    .name = "connectionPool.tcp",
    .path = "clusters[].trafficPolicy.connectionPool.tcp",
    .size = sizeof(struct config_tcp_pool),
    .rows = tcp_rows,
    .help = "",
};

#define AT(member) offsetof(struct config_http2_keepalive, member)
static const struct field http2_keepalive_rows[] = {
    {.name = "interval",
     .kind = FIELD_SPAN,
     .at = AT(interval),
     .min = NS_PER_MS,
     .max = YEAR,
     .required = true,
     .help = "between two PINGs"},
    {.name = "timeout",
     .kind = FIELD_SPAN,
     .at = AT(timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .required = true,
     .help = "for the answer to one"},
    {.name = NULL},
};
#undef AT

static const struct fields http2_keepalive_fields = {
    .name = "http2KeepAlive",
    .path = "clusters[].trafficPolicy.connectionPool.http.http2KeepAlive",
    .size = sizeof(struct config_http2_keepalive),
    .rows = http2_keepalive_rows,
    .help = "",
};

static const char of_http2[] = "without effect here: hosts are spoken to in HTTP/1.1";
static const char *const upgrades[] = {"DEFAULT", "DO_NOT_UPGRADE", NULL};
static const char *const later_upgrades[] = {"UPGRADE", "HTTP/2", NULL};
static const char *const never[] = {"false", "off", NULL};
static const char *const later_always[] = {"true", "HTTP/2", "on", "HTTP/2", NULL};

#define AT(member) offsetof(struct config_http_pool, member)
static const struct field http_rows[] = {
    {.name = "http1MaxPendingRequests",
     .kind = FIELD_COUNT,
     .at = AT(max_pending),
     .max = INT32_OF,
     .preset = LIMIT_NONE,
     .preset_text = "none",
     .zero_is_unset = true,
     .help =
         "requests that wait for a connection; reached: 503 UO (`upstream_rq_pending_overflow`)"},
    {.name = "http2MaxRequests",
     .kind = FIELD_COUNT,
     .at = AT(max_requests),
     .max = INT32_OF,
     .preset = LIMIT_NONE,
     .preset_text = "none",
     .zero_is_unset = true,
     .help =
         "requests under way, HTTP/1.1 ones too; reached: 503 UO (`upstream_rq_active_overflow`)"},
    {.name = "maxRetries",
     .kind = FIELD_COUNT,
     .at = AT(max_retries),
     .max = INT32_OF,
     .preset = LIMIT_NONE,
     .preset_text = "none",
     .zero_is_unset = true,
     .help =
         "retries at once, those in back-off included; reached: the failure goes to the client, "
         "flag UO (`upstream_rq_retry_overflow`); 3 where no `connectionPool` is written"},
    {.name = "maxRequestsPerConnection",
     .kind = FIELD_COUNT,
     .at = AT(max_requests_per_connection),
     .max = INT32_OF,
     .preset = 0,
     .preset_text = "none",
     .help = "a connection is closed after that many; 0: no limit"},
    {.name = "idleTimeout",
     .kind = FIELD_SPAN,
     .at = AT(idle_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = HOUR,
     .help = "an upstream connection without a request is closed after that"},
    {.name = "h2UpgradePolicy",
     .kind = FIELD_CHOICE,
     .at = AT(upgrade),
     .choices = upgrades,
     .later = later_upgrades,
     .help = "hosts are spoken to in HTTP/1.1"},
    {.name = "useClientProtocol",
     .kind = FIELD_CHOICE,
     .at = AT(client_protocol),
     .choices = never,
     .later = later_always,
     .help = "hosts are spoken to in HTTP/1.1"},
    {.name = "maxConcurrentStreams",
     .kind = FIELD_COUNT,
     .at = AT(max_streams),
     .max = INT32_OF,
     .warning = of_http2,
     .help = "of HTTP/2 only, so without effect here"},
    {.name = "http2KeepAlive",
     .kind = FIELD_OBJECT,
     .at = AT(http2_keepalive),
     .of = &http2_keepalive_fields,
     .warning = of_http2,
     .help = "of HTTP/2 only, so without effect here"},
    {.name = NULL},
};
#undef AT

static const struct fields http_fields = {
    .name = "connectionPool.http",
    .path = "clusters[].trafficPolicy.connectionPool.http",
    .size = sizeof(struct config_http_pool),
    .rows = http_rows,
    .help = "",
};

#define AT(member) offsetof(struct config_pool, member)
static const struct field pool_rows[] = {
    {.name = "tcp", .kind = FIELD_OBJECT, .at = AT(tcp), .of = &tcp_fields, .help = "connections"},
    {.name = "http", .kind = FIELD_OBJECT, .at = AT(http), .of = &http_fields, .help = "requests"},
    {.name = NULL},
};
#undef AT

const struct fields config_pool_fields = {
    .name = "connectionPool",
    .path = "clusters[].trafficPolicy.connectionPool",
    .size = sizeof(struct config_pool),
    .rows = pool_rows,
    .not_empty = "connection pool must have at least one field: tcp or http",
    .help = "Limits, exact over all workers. As in Istio an integer of 0 says the same as leaving "
            "it out.",
};

#define AT(member) offsetof(struct config_outlier, is.member)
static const struct field outlier_rows[] = {
    {.name = "consecutive5xxErrors",
     .kind = FIELD_COUNT,
     .at = AT(consecutive_5xx),
     .preset = 5,
     .help = "answers 5xx in a row that eject a host; 0: off"},
    {.name = "consecutiveGatewayErrors",
     .kind = FIELD_COUNT,
     .at = AT(consecutive_gateway),
     .preset = 0,
     .help = "answers 502, 503 or 504 in a row that eject a host; 0: off"},
    {.name = "consecutiveLocalOriginFailures",
     .kind = FIELD_COUNT,
     .at = AT(consecutive_local_origin),
     .preset = 5,
     .zero_is_unset = true,
     .help = "failed connects, resets and timeouts in a row that eject a host; only with "
             "`splitExternalLocalOriginErrors`"},
    {.name = "splitExternalLocalOriginErrors",
     .kind = FIELD_SWITCH,
     .at = AT(split),
     .preset = 0,
     .help = "count what never got an answer apart from answers; off: it counts as 503 or 504"},
    {.name = "interval",
     .kind = FIELD_SPAN,
     .at = AT(interval),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = 10 * NS_PER_S,
     .help = "how often it is looked who may come back"},
    {.name = "baseEjectionTime",
     .kind = FIELD_SPAN,
     .at = AT(base_ejection),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = 30 * NS_PER_S,
     .help = "length of an ejection, times how often in a row; at most 300s, or this if longer"},
    {.name = "maxEjectionPercent",
     .kind = FIELD_COUNT,
     .at = AT(max_ejection_percent),
     .max = 100,
     .percent = true,
     .preset = 10,
     .zero_is_unset = true,
     .help =
         "most hosts out at once; one of a set of two or more may always go (docs/decisions.md)"},
    {.name = "minHealthPercent",
     .kind = FIELD_COUNT,
     .at = offsetof(struct config_outlier, min_health_percent),
     .max = 100,
     .percent = true,
     .preset = 0,
     .help = "panic where fewer hosts than that are healthy, and fewer than 72 %: who serves then "
             "is `resilience.panic`; 0: never. It keeps nobody from being ejected"},
    {.name = "consecutiveErrors",
     .kind = FIELD_COUNT,
     .at = offsetof(struct config_outlier, errors),
     .warning = "outlier detection consecutive errors is deprecated, use consecutiveGatewayErrors "
                "or consecutive5xxErrors instead",
     .help = "ignored, as Istio does"},
#undef AT
#define AT(member) offsetof(struct config_outlier, member)
    {.name = "outlierDetectionHttpErrorCodes",
     .kind = FIELD_TEXTS,
     .at = AT(error_codes),
     .preset_text = "500 to 599",
     .help = "statuses that are errors, and no others: 100 to 599; below 500 they count as 500"},
    {.name = NULL},
};
#undef AT

const struct fields config_outlier_fields = {
    .name = "outlierDetection",
    .path = "clusters[].trafficPolicy.outlierDetection",
    .size = sizeof(struct config_outlier),
    .rows = outlier_rows,
    .help = "Who is taken out, and for how long.",
};

#define AT(member) offsetof(struct config_policy, member)
static const struct field policy_rows[] = {
    CONFIG_POLICY_BLOCKS(AT),
    {.name = "portLevelSettings",
     .kind = FIELD_OBJECTS,
     .at = AT(ports),
     .of = &config_port_policy_fields,
     .help = "what replaces all of the above for one port"},
    {.name = "retryBudget",
     .kind = FIELD_OBJECT,
     .at = AT(retry_budget),
     .of = &config_retry_share_fields,
     .preset_text = "none",
     .help = "retries at once, as a share"},
    {.name = "tunnel",
     .kind = FIELD_REFUSED,
     .help = "hosts are reached directly, without CONNECT; leave it out, and give the cluster the "
             "addresses that are to be reached"},
    {.name = "proxyProtocol",
     .kind = FIELD_REFUSED,
     .help = "no PROXY header is sent to hosts; leave it out: they learn the client's address from "
             "X-Forwarded-For"},
    {.name = NULL},
};
#undef AT

const struct fields config_policy_fields = {
    .name = "trafficPolicy",
    .path = "clusters[].trafficPolicy",
    .size = sizeof(struct config_policy),
    .rows = policy_rows,
    .not_empty = "traffic policy must have at least one field: connectionPool, outlierDetection, "
                 "loadBalancer, tls or portLevelSettings",
    .help = "Istio's words. A block that is present gets Istio's defaults for what it leaves out; "
            "without the block, the defaults of `firebreak run --to` protect.",
};

static const char *panic_choice(uint32_t i)
{
    return i < PANIC_POLICY_COUNT ? panic_policy_text((enum panic_policy)i) : NULL;
}

#define AT(member) offsetof(struct config_per_host, is.member)
static const struct field per_host_rows[] = {
    {.name = "maxConnections",
     .kind = FIELD_COUNT,
     .at = AT(max_connections),
     .min = 1,
     .max = INT32_OF,
     .preset = LIMIT_NONE,
     .preset_text = "none",
     .help = "connections to one host; reached: another host is taken, or requests wait"},
    {.name = "maxRequests",
     .kind = FIELD_COUNT,
     .at = AT(max_requests),
     .min = 1,
     .max = INT32_OF,
     .preset = LIMIT_NONE,
     .preset_text = "none",
     .help = "requests under way on one host; reached on all: 503 UO "
             "(`upstream_rq_active_overflow`)"},
    {.name = "maxPending",
     .kind = FIELD_COUNT,
     .at = AT(max_pending),
     .min = 1,
     .max = INT32_OF,
     .preset = LIMIT_NONE,
     .preset_text = "none",
     .help = "requests that wait for a connect to one host; reached on all: 503 UO "
             "(`upstream_rq_pending_overflow`)"},
    {.name = NULL},
};
#undef AT

static const struct fields per_host_fields = {
    .name = "perHost",
    .path = "clusters[].resilience.perHost",
    .size = sizeof(struct config_per_host),
    .rows = per_host_rows,
    .help = "Limits for each single host, beside those of the cluster, exact over all workers. A "
            "host at its limit is passed over while another has room.",
};

static const char *mode_choice(uint32_t i)
{
    static const char *const words[] = {"enforce", "observe"};

    return i < sizeof(words) / sizeof(words[0]) ? words[i] : NULL;
}

static const char *profile_choice(uint32_t i)
{
    return i < PROFILE_COUNT ? detection_profile_text((enum detection_profile)i) : NULL;
}

#define AT(member) offsetof(struct config_resilience, member)
static const struct field resilience_rows[] = {
    {.name = "connectFailover",
     .kind = FIELD_SWITCH,
     .at = AT(connect_failover),
     .preset = 1,
     .help = "a connect that fails before anything was sent moves the request to another host at "
             "once, at most once; left out: off where the difference `failedConnectStays` is "
             "Envoy's"},
    {.name = "semantics",
     .kind = FIELD_CHOICE,
     .at = AT(semantics),
     .choices = config_semantics_words,
     .help = "`envoy`: in all of docs/differences.md as Envoy does, its known wrongs included"},
    {.name = "differences",
     .kind = FIELD_OBJECT,
     .at = AT(differences),
     .of = &config_differences_fields,
     .help = "the same for single ones, whatever `semantics` says"},
    {.name = "outlier",
     .kind = FIELD_OBJECT,
     .at = AT(outlier),
     .of = &config_outlier_more_fields,
     .help = "what Envoy's outlier detection has beyond Istio's words"},
    {.name = "accept",
     .kind = FIELD_OBJECTS,
     .at = AT(accept),
     .of = &config_accept_fields,
     .help = "traps of `firebreak check` that are here on purpose"},
    {.name = "panic",
     .kind = FIELD_CHOICE,
     .at = AT(panic),
     .preset = PANIC_SERVE_ALL,
     .choice = panic_choice,
     .help =
         "who serves while fewer hosts are healthy than `minHealthPercent`: `serveAll` (Envoy's "
         "and Istio's) every host, the ejected ones too; `leastBad` the healthy ones and as many "
         "of the ejected as reach the percentage, those out for longest; `failFast` nobody: 503 "
         "UH at once"},
    {.name = "queueTimeout",
     .kind = FIELD_SPAN,
     .at = AT(queue_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = MONO_NEVER,
     .word = "none",
     .word_value = MONO_NEVER,
     .help = "longest time a request waits where `maxConnections` is reached; over it: 503 UO; the "
             "request's own deadline holds in any case"},
    {.name = "perHost",
     .kind = FIELD_OBJECT,
     .at = AT(per_host),
     .of = &per_host_fields,
     .help = "limits for each single host"},
    {.name = "mode",
     .kind = FIELD_CHOICE,
     .at = AT(mode),
     .preset = DETECTION_ENFORCE,
     .choice = mode_choice,
     .help = "`observe`: detection decides, counts and explains, and does nothing"},
    {.name = "profile",
     .kind = FIELD_CHOICE,
     .at = AT(profile),
     .preset = PROFILE_STARTER,
     .choice = profile_choice,
     .help = "`starter`: obvious failures eject, latency only cuts a host's share; `rules`: what "
             "`rules` say ejects; `adaptive`: all evidence against the peers ejects, and a host "
             "that is out is tried soon; left out where there is an `outlierDetection`: detection "
             "only observes"},
    {.name = "detect",
     .kind = FIELD_OBJECT,
     .at = AT(detect),
     .of = &config_detect_fields,
     .help = "what is looked at, and how sure it has to be"},
    {.name = "rules",
     .kind = FIELD_OBJECTS,
     .at = AT(rules),
     .of = &config_detect_rule_fields,
     .preset_text = "the five below",
     .help = "what is bad in words and numbers of your own"},
    {.name = "ejection",
     .kind = FIELD_OBJECT,
     .at = AT(ejection),
     .of = &config_ejection_fields,
     .help = "how many may be out, and for how long at least"},
    {.name = "readmit",
     .kind = FIELD_OBJECT,
     .at = AT(readmit),
     .of = &config_readmit_fields,
     .help = "the way back"},
    {.name = "capacity",
     .kind = FIELD_OBJECT,
     .at = AT(capacity),
     .of = &config_capacity_fields,
     .help = "what the others must be able to carry"},
    {.name = "escalate",
     .kind = FIELD_OBJECT,
     .at = AT(escalate),
     .of = &config_escalate_fields,
     .help = "when a host needs a human"},
    {.name = "retryBudget",
     .kind = FIELD_OBJECT,
     .at = AT(retry_budget),
     .of = &config_retry_budget_fields,
     .help = "what may be sent beyond first attempts"},
    {.name = NULL},
};
#undef AT

static const struct fields resilience_fields = {
    .name = "resilience",
    .path = "clusters[].resilience",
    .size = sizeof(struct config_resilience),
    .rows = resilience_rows,
    .help = "What Istio has no words for.",
};

static const char *lb_choice(uint32_t i)
{
    return i < LB_KIND_COUNT ? lb_kind_text((enum lb_kind)i) : NULL;
}

static const char *const protocols[] = {"http1", NULL};
static const char *const later_protocols[] = {"http2", "HTTP/2", "auto", "HTTP/2", NULL};
static const char *const later_balancers[] = {"ring_hash", "consistent hashing", "maglev",
                                              "consistent hashing", NULL};

#define AT(member) offsetof(struct config_cluster, member)
static const struct field cluster_rows[] = {
    {.name = "name",
     .kind = FIELD_NAME,
     .at = AT(name),
     .required = true,
     .help = "stands in metrics (`cluster.NAME.`, ':' as '_') where there is no `host`; once in "
             "the file"},
    {.name = "host",
     .kind = FIELD_NAME,
     .at = AT(host),
     .max = 253,
     .help = "name of the service as in a DestinationRule's `spec.host`; then the cluster is "
             "`outbound|PORT||HOST` in metrics, pages and logs"},
    {.name = "port",
     .kind = FIELD_COUNT,
     .at = AT(port),
     .min = 1,
     .max = 65535,
     .preset = 80,
     .help = "port of that service: for its name, and for `portLevelSettings`"},
    {.name = "protocol",
     .kind = FIELD_CHOICE,
     .at = AT(protocol),
     .choices = protocols,
     .later = later_protocols,
     .help = "what the hosts speak"},
    {.name = "endpoints",
     .kind = FIELD_OBJECTS,
     .at = AT(endpoints),
     .of = &config_endpoint_fields,
     .required = true,
     .help = "the hosts"},
    {.name = "loadBalancer",
     .kind = FIELD_CHOICE,
     .at = AT(lb),
     .preset = LB_LEAST,
     .choice = lb_choice,
     .later = later_balancers,
     .help =
         "which host gets the next request; `least`: the one with the least requests under way "
         "times what it costs to ask it, answers later than is typical and failures counted, "
         "of all up to 64 and of five drawn ones beyond; `p2c`: the less loaded of two, the one "
         "whose turn it is and one drawn at random; a retry begins with a drawn "
         "one"},
    {.name = "connectTimeout",
     .kind = FIELD_SPAN,
     .at = AT(connect_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = DEFAULT_CONNECT_TIMEOUT,
     .help = "longest time a connect may take; or in trafficPolicy, not both"},
    {.name = "idleTimeout",
     .kind = FIELD_SPAN,
     .at = AT(idle_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = DEFAULT_UPSTREAM_IDLE,
     .help = "an upstream connection without a request is closed after that; or in trafficPolicy"},
    {.name = "maxConnectionAge",
     .kind = FIELD_SPAN,
     .at = AT(max_connection_age),
     .max = YEAR,
     .preset_text = "none",
     .help =
         "an upstream connection takes no more requests after that, less a random tenth at most: "
         "kept-alive connections never pin traffic to a host; `0s`: no limit"},
    {.name = "dnsHold",
     .kind = FIELD_SPAN,
     .at = AT(dns_hold),
     .max = 24 * 3600 * NS_PER_S,
     .help =
         "an address that the answers for a name leave out stays a host until that long after "
         "the last one that had it; for name servers that give a few of many addresses in turn"},
    {.name = "hostDrainTimeout",
     .kind = FIELD_SPAN,
     .at = AT(host_drain_timeout),
     .max = YEAR,
     .preset_text = "none",
     .help = "what is still under way, tunnels included, on a host that long after it left (by "
             "name, by a reload, drained by hand) is broken off; `0s`: no limit"},
    {.name = "trafficPolicy",
     .kind = FIELD_OBJECT,
     .at = AT(policy),
     .of = &config_policy_fields,
     .help = "Istio's limits and outlier detection"},
    {.name = "resilience",
     .kind = FIELD_OBJECT,
     .at = AT(resilience),
     .of = &resilience_fields,
     .help = "what goes beyond them"},
    {.name = "expect",
     .kind = FIELD_OBJECT,
     .at = AT(expect),
     .of = &config_expect_fields,
     .help = "what is known of the answers; a route can say it of its own"},
    {.name = "healthCheck", .kind = FIELD_LATER, .help = "active health checks"},
    {.name = "tls", .kind = FIELD_LATER, .help = "TLS"},
    {.name = NULL},
};
#undef AT

const struct fields config_cluster_fields = {
    .name = "cluster",
    .path = "clusters[]",
    .size = sizeof(struct config_cluster),
    .rows = cluster_rows,
    .help = "A set of hosts of which any can answer.",
};
