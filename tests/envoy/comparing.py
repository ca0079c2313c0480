# SPDX-License-Identifier: Apache-2.0
"""What was observed on each side of a scenario, as one flat table, and how the two differ."""
import dataclasses
import re
import time

import harness

CALL_KEYS = ("status", "whole", "body", "overloaded", "close", "interim", "code", "flags", "details",
             "sent", "attempts", "hosts")

# Histograms aside, what /stats shows under a cluster or listener and is not compared: numbers of bytes,
# which depend on the names of header fields; what belongs to Envoy's discovery; the gauges of a
# limit on pools, which Firebreak does not have; what only Firebreak counts.
LEFT_OUT = re.compile(
    r"(http\.)?(upstream|downstream)_cx_[rt]x_bytes_\w+|max_host_weight|default\.total_match_count"
    r"|assignment_\w+|bind_errors|version|http\.tracing\..*|warming_state"
    r"|circuit_breakers\.default\.remaining_cx_pools"
    r"|(http\.)?response_flags\..*|reuse_resend|probe_made_good|connect_failover|retry_budget_\w+|retry_places_refused"
    r"|retry_too_late|amplification|in_panic")


def wait_idle(run):
    """Until nothing of the scenario is under way and its connections from clients are closed."""
    def idle():
        stats = run.side.stats(run.name)
        return all(stats.get(k, 0) == 0 for k in (
            "upstream_rq_active", "upstream_rq_pending_active", "http.downstream_rq_active",
            "http.downstream_cx_active"))
    harness.wait_for(idle, f"{run.side.name} to end what it does in {run.name}", 15)


def call_table(run, call, names):
    line = harness.wait_for(lambda: run.side.log_line(call.path),
                            f"the access log line of {call.path} by {run.side.name}", 10)
    record = {**call.record, **line, "attempts": len(call.script.seen),
              "hosts": [names[h] for h, _, _ in call.script.seen]}
    return {key: record.get(key) for key in CALL_KEYS}


def call_tables(run, names):
    """One row a call and key; of a group, how often each outcome came."""
    table, groups = {}, {}
    for number, call in enumerate(run.calls):
        row = call_table(run, call, names)
        if call.group is None:
            table.update({f"call {number} {key}": value for key, value in row.items()})
        else:
            outcome = f"{row['status']} {row['flags']} {row['details']}"
            counts = groups.setdefault(f"calls {call.group}", {})
            counts[outcome] = counts.get(outcome, 0) + 1
    table.update(groups)
    return table


HOST_STATS = ("cx_total", "cx_active", "cx_connect_fail", "rq_total", "rq_active", "rq_error",
              "rq_success", "rq_timeout", "rq_pending_active")


def host_table(run, names):
    """Sums over the hosts, and who is out."""
    answer = run.side.page("/clusters?format=json").json()
    hosts = [c for c in answer["cluster_statuses"] if c["name"] == run.name][0]["host_statuses"]
    sums = dict.fromkeys(HOST_STATS, 0)
    out = []
    addresses = {h.address[1]: names[h.index] for h in run.hosts}
    for host in hosts:
        for stat in host["stats"]:
            if stat["name"] in sums:
                sums[stat["name"]] += int(stat.get("value", 0))
        if host["health_status"].get("failed_outlier_check"):
            out.append(addresses[host["address"]["socket_address"]["port_value"]])
    return {**{f"hosts {k}": v for k, v in sums.items()}, "hosts out": sorted(out)}


def name_hosts(run):
    """Hosts in the order of their first request, so that the balancer's starting point is no matter;
    those that got none follow as they stand in the file."""
    order = []
    for call in run.calls:
        for host, _, _ in call.script.seen:
            if host not in order:
                order.append(host)
    order += [h.index for h in run.hosts if h.index not in order]
    return {index: "ABCDEFGHIJKLMNOP"[at] for at, index in enumerate(order)}


def event_table(run, names):
    events = run.side.events(run.name)
    by_address = {f"{h.address[0]}:{h.address[1]}": names[h.index] for h in run.hosts}
    return {"events": [" ".join(map(str, (
        e["action"], by_address[e["upstream_url"]], e["type"], f"enforced={e['enforced']}",
        f"ejections={e['num_ejections']}"))) for e in events]}


def observed(run):
    """{what: value}."""
    if run.trouble:
        return {"driver": run.trouble}
    names = name_hosts(run)
    table = {}
    table.update(call_tables(run, names))
    table.update(host_table(run, names))
    table.update(event_table(run, names))
    table.update({f"seen {k}": v for k, v in run.seen.items()})
    for name, value in run.side.stats(run.name).items():
        if not LEFT_OUT.fullmatch(name):
            table[name] = value
    return table


@dataclasses.dataclass(frozen=True)
class Difference:
    what: str
    envoy: object
    firebreak: object


def compare(envoy, firebreak):
    if "driver" in envoy or "driver" in firebreak:
        return [Difference("driver", envoy.get("driver"), firebreak.get("driver"))]
    found = []
    for what in sorted({*envoy, *firebreak}):
        e, f = envoy.get(what), firebreak.get(what)
        # A counter that is not there counts nothing.
        if what not in envoy and f == 0 or what not in firebreak and e == 0:
            continue
        if e != f:
            found.append(Difference(what, e, f))
    return found


def settled(envoy, firebreak, unexpected, patience=2.0):
    """The differences once both have come to rest: counters may follow the answer by a moment.
    |unexpected|: tells whether they are others than those listed."""
    end = time.monotonic() + patience
    while True:
        found = compare(observed(envoy), observed(firebreak))
        if not unexpected(found) or time.monotonic() > end:
            return found
        time.sleep(0.05)
