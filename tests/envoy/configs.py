# SPDX-License-Identifier: Apache-2.0
"""One description of a cluster and its route, and what each proxy is told of it.

Words and defaults are Envoy's (snake case); durations are seconds.
"""
import dataclasses
import json

UNLIMITED = 4294967295


@dataclasses.dataclass
class Setup:
    hosts: int = 1
    outlier: dict | None = None  # fields of OutlierDetection
    limits: dict | None = None  # of the thresholds of priority DEFAULT
    panic: int | None = None  # healthy_panic_threshold
    connect_timeout: float = 5
    max_requests_per_connection: int | None = None
    upstream_idle_timeout: float | None = None
    max_connection_duration: float | None = None
    timeout: float | None = None  # of the route
    idle_timeout: float | None = None  # of the route
    retry: dict | None = None  # of RetryPolicy; per_try_timeout, base, max in seconds


def seconds(value):
    return f"{value:g}s" if value == int(value) else f"{value:.3f}s"


def milliseconds(value):
    return f"{round(value * 1000)}ms"


DURATIONS = ("interval", "base_ejection_time", "max_ejection_time", "max_ejection_time_jitter")

LOG = {"path": "%REQ(:PATH)%", "code": "%RESPONSE_CODE%", "flags": "%RESPONSE_FLAGS%",
       "details": "%RESPONSE_CODE_DETAILS%", "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
       "received": "%BYTES_RECEIVED%", "sent": "%BYTES_SENT%", "host": "%UPSTREAM_HOST%"}


# Envoy


def envoy_cluster(name, setup, addresses):
    common = {}
    if setup.max_requests_per_connection is not None:
        common["max_requests_per_connection"] = setup.max_requests_per_connection
    if setup.upstream_idle_timeout is not None:
        common["idle_timeout"] = seconds(setup.upstream_idle_timeout)
    if setup.max_connection_duration is not None:
        common["max_connection_duration"] = seconds(setup.max_connection_duration)
    lb = {"update_merge_window": "0s"}
    if setup.panic is not None:
        lb["healthy_panic_threshold"] = {"value": setup.panic}
    limits = {"max_connections": UNLIMITED, "max_pending_requests": UNLIMITED,
              "max_requests": UNLIMITED, "max_retries": UNLIMITED, "track_remaining": True,
              **(setup.limits or {})}
    if "retry_budget" in limits:
        budget = dict(limits["retry_budget"])
        if "budget_percent" in budget:
            budget["budget_percent"] = {"value": budget["budget_percent"]}
        if "budget_interval" in budget:
            budget["budget_interval"] = seconds(budget["budget_interval"])
        limits["retry_budget"] = budget
    cluster = {
        "name": name, "type": "STATIC", "connect_timeout": seconds(setup.connect_timeout),
        "lb_policy": "ROUND_ROBIN", "common_lb_config": lb,
        "circuit_breakers": {"thresholds": [limits]},
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [
            {"endpoint": {"address": socket_address(a)}} for a in addresses]}]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http_protocol_options": {}},
                "common_http_protocol_options": common}}}
    if setup.outlier is not None:
        cluster["outlier_detection"] = {
            k: seconds(v) if k in DURATIONS else v for k, v in setup.outlier.items()}
    return cluster


def socket_address(address):
    return {"socket_address": {"address": address[0], "port_value": address[1]}}


def envoy_retry(retry):
    policy = {k: v for k, v in retry.items() if k not in ("base", "max", "per_try_timeout")}
    if "per_try_timeout" in retry:
        policy["per_try_timeout"] = seconds(retry["per_try_timeout"])
    if "base" in retry:
        policy["retry_back_off"] = {"base_interval": seconds(retry["base"]),
                                    "max_interval": seconds(retry.get("max", retry["base"] * 10))}
    if "previous_hosts" in policy:
        del policy["previous_hosts"]
        policy["retry_host_predicate"] = [{
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": {"@type": "type.googleapis.com/envoy.extensions.retry.host."
                                      "previous_hosts.v3.PreviousHostsPredicate"}}]
        policy["host_selection_retry_max_attempts"] = 10
    return policy


def envoy_listener(name, setup, log):
    route = {"cluster": name}
    if setup.timeout is not None:
        route["timeout"] = seconds(setup.timeout)
    if setup.idle_timeout is not None:
        route["idle_timeout"] = seconds(setup.idle_timeout)
    if setup.retry is not None:
        route["retry_policy"] = envoy_retry(setup.retry)
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
                 "HttpConnectionManager",
        "stat_prefix": name, "codec_type": "HTTP1",
        "route_config": {"name": name, "virtual_hosts": [
            {"name": name, "domains": ["*"], "include_request_attempt_count": True,
             "routes": [{"match": {"prefix": f"/{name}/"}, "route": route}]}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
        "access_log": [{"name": "envoy.access_loggers.file", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": log, "log_format": {"json_format": LOG}}}]}
    return {"name": name, "address": socket_address(("127.0.0.1", 0)),
            "filter_chains": [{"filters": [{
                "name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}


def envoy(setups, addresses, directory):
    """|setups|: {name: Setup}, |addresses|: {name: [(host, port)]}."""
    return json.dumps({
        "admin": {"address": socket_address(("127.0.0.1", 0))},
        "cluster_manager": {"outlier_detection": {"event_log_path": f"{directory}/envoy.events"}},
        "static_resources": {
            "listeners": [envoy_listener(n, s, f"{directory}/envoy.log")
                          for n, s in setups.items()],
            "clusters": [envoy_cluster(n, s, addresses[n]) for n, s in setups.items()]}}, indent=1)


# Firebreak

ISTIO_OUTLIER = {
    "consecutive_5xx": "consecutive5xxErrors",
    "consecutive_gateway_failure": "consecutiveGatewayErrors",
    "consecutive_local_origin_failure": "consecutiveLocalOriginFailures",
    "split_external_local_origin_errors": "splitExternalLocalOriginErrors",
    "interval": "interval",
    "base_ejection_time": "baseEjectionTime",
    "max_ejection_percent": "maxEjectionPercent",
}
MORE_OUTLIER = {
    "max_ejection_time": "maxEjectionTime",
    "max_ejection_time_jitter": "maxEjectionTimeJitter",
    "enforcing_consecutive_5xx": "enforcingConsecutive5xx",
    "enforcing_consecutive_gateway_failure": "enforcingConsecutiveGatewayFailure",
    "enforcing_consecutive_local_origin_failure": "enforcingConsecutiveLocalOriginFailure",
    "always_eject_one_host": "alwaysEjectOneHost",
}
SUCCESS_RATE = {
    "enforcing_success_rate": "enforcing",
    "enforcing_local_origin_success_rate": "enforcingLocalOrigin",
    "success_rate_minimum_hosts": "minimumHosts",
    "success_rate_request_volume": "requestVolume",
    "success_rate_stdev_factor": "stdevFactor",
}
FAILURE_PERCENTAGE = {
    "enforcing_failure_percentage": "enforcing",
    "enforcing_failure_percentage_local_origin": "enforcingLocalOrigin",
    "failure_percentage_threshold": "threshold",
    "failure_percentage_minimum_hosts": "minimumHosts",
    "failure_percentage_request_volume": "requestVolume",
}


def translated(given, words):
    return {words[k]: milliseconds(v) if k in DURATIONS else v for k, v in given.items() if k in words}


def firebreak_outlier(setup):
    """(trafficPolicy.outlierDetection, resilience.outlier)."""
    if setup.outlier is None:  # off; without the block Firebreak would protect
        return {"consecutive5xxErrors": 0, "consecutiveGatewayErrors": 0}, {}
    block = translated(setup.outlier, ISTIO_OUTLIER)
    more = translated(setup.outlier, MORE_OUTLIER)
    for name, words in (("successRate", SUCCESS_RATE), ("failurePercentage", FAILURE_PERCENTAGE)):
        part = translated(setup.outlier, words)
        if part:
            more[name] = part
    if setup.panic:
        block["minHealthPercent"] = setup.panic
    return block, more


POOL = {"max_connections": ("tcp", "maxConnections"), "max_pending_requests": ("http", "http1MaxPendingRequests"),
        "max_requests": ("http", "http2MaxRequests"), "max_retries": ("http", "maxRetries")}


def firebreak_pool(setup):
    pool = {"tcp": {"connectTimeout": milliseconds(setup.connect_timeout)}, "http": {}}
    for key, value in (setup.limits or {}).items():
        if key in POOL:
            block, word = POOL[key]
            pool[block][word] = value
    if setup.max_requests_per_connection is not None:
        pool["http"]["maxRequestsPerConnection"] = setup.max_requests_per_connection
    if setup.upstream_idle_timeout is not None:
        pool["http"]["idleTimeout"] = milliseconds(setup.upstream_idle_timeout)
    if setup.max_connection_duration is not None:
        pool["tcp"]["maxConnectionDuration"] = milliseconds(setup.max_connection_duration)
    return pool


def firebreak_cluster(name, setup, addresses):
    block, more = firebreak_outlier(setup)
    policy = {"connectionPool": firebreak_pool(setup), "outlierDetection": block}
    budget = (setup.limits or {}).get("retry_budget")
    if budget is not None:
        policy["retryBudget"] = {"percent": budget.get("budget_percent", 20),
                                 "minRetryConcurrency": budget.get("min_retry_concurrency", 3)}
    # update_merge_window is 0 for Envoy, so that its second ejection is not up to a second late.
    resilience = {"semantics": "envoy", "differences": {"reejectionSlower": "firebreak",
                                                        "ejectedStillPicked": "firebreak"}}
    if setup.retry is not None:  # Envoy has no such budget
        resilience["retryBudget"] = {"ratio": "100%", "floor": "10000/s", "capacity": 1000}
    if more:
        resilience["outlier"] = more
    return {"name": name, "loadBalancer": "round_robin",
            "endpoints": [{"address": f"{host}:{port}"} for host, port in addresses],
            "trafficPolicy": policy, "resilience": resilience}


def firebreak_retry(retry):
    block = {"attempts": retry.get("num_retries", 1),
             "on": retry["retry_on"].split(","), "methods": ["POST", "PATCH"]}
    if "retriable_status_codes" in retry:
        block["statuses"] = retry["retriable_status_codes"]
    if "retriable_headers" in retry:
        block["headers"] = [h["name"] for h in retry["retriable_headers"]]
    if "base" in retry:
        block["backoff"] = {"base": milliseconds(retry["base"]), "max": milliseconds(retry.get("max", retry["base"] * 10))}
    return block


def firebreak_listener(name, setup):
    route = {"match": {"pathPrefix": f"/{name}/"}, "cluster": name}
    if setup.timeout is not None:
        route["timeout"] = milliseconds(setup.timeout) if setup.timeout else "none"
    if setup.idle_timeout is not None:
        route["idleTimeout"] = milliseconds(setup.idle_timeout)
    if setup.retry is not None:
        route["retry"] = firebreak_retry(setup.retry)
        if "per_try_timeout" in setup.retry:
            route["perTryTimeout"] = milliseconds(setup.retry["per_try_timeout"])
    return {"name": name, "listen": "127.0.0.1:0", "routes": [route]}


def firebreak(setups, addresses, directory):
    """The same for Firebreak: JSON, which is YAML."""
    return json.dumps({
        "admin": {"listen": "127.0.0.1:0"}, "workers": 1,
        "accessLog": {"to": f"{directory}/firebreak.log"},
        "outlierEventLog": f"{directory}/firebreak.events",
        "listeners": [firebreak_listener(n, s) for n, s in setups.items()],
        "clusters": [firebreak_cluster(n, s, addresses[n]) for n, s in setups.items()]}, indent=1)
