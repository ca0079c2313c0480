# SPDX-License-Identifier: Apache-2.0
"""Circuit breakers and what a connection pool does at its limits, with answers held back."""
import functools

import catalogue
from upstream import answer, held

AREA = "limits"
scenario = functools.partial(catalogue.scenario, timeout=0)  # held answers take as long as the machine likes


def hold(s, count):
    """Starts requests one after the other, each once the one before is where it stays."""
    calls = []
    for _ in range(count):
        before = s.stat("http.downstream_rq_total")
        calls.append(s.start(held(answer())))
        s.await_stat(http__downstream_rq_total=before + 1)
        s.quiet()
    return calls


def release_in_order(s, calls):
    for call in calls:
        s.reached(call)
        s.release(call)
        s.quiet()


@scenario(AREA, "maxConnections 2, pending 1000, six held: all answered, in three waves",
          limits={"max_connections": 2, "max_pending_requests": 1000})
def connections_make_wait(s):
    calls = hold(s, 6)
    s.await_stat(upstream_rq_pending_active=4, upstream_rq_active=2)
    s.observe("at rest", s.gauges())
    release_in_order(s, calls)


@scenario(AREA, "maxConnections 2, pending 3, eight held: five answered, three refused",
          limits={"max_connections": 2, "max_pending_requests": 3})
def pending_refuses(s):
    calls = hold(s, 5)
    s.observe("full", s.gauges())
    for _ in range(3):
        s.get()
    release_in_order(s, calls)


@scenario(AREA, "one connection, one waiter, the third is refused (C1)",
          limits={"max_connections": 1, "max_pending_requests": 1})
def one_and_one(s):
    calls = hold(s, 2)
    s.get()
    release_in_order(s, calls)


@scenario(AREA, "no connection yet: the first takes the only pending slot while it connects (C1b)", connect_timeout=3,
          limits={"max_connections": 1, "max_pending_requests": 1})
def pending_while_connecting(s):
    s.hosts[0].swallow()
    call = s.start()
    s.await_stat(upstream_rq_pending_active=1)
    s.get()
    s.finish(call)


@scenario(AREA, "max_requests 2 holds for HTTP/1 too: the third is refused", limits={"max_requests": 2})
def requests_refuse(s):
    calls = hold(s, 2)
    s.observe("full", s.gauges())
    s.get()
    release_in_order(s, calls)
    s.get()


@scenario(AREA, "a waiting request's client leaves", limits={"max_connections": 1})
def waiter_leaves(s):
    calls = hold(s, 2)
    s.leave(calls[1])
    s.await_stat(upstream_rq_pending_active=0)
    release_in_order(s, calls[:1])
    s.get()


@catalogue.scenario(AREA, "a waiting request's time is over: 504 UT, and its place is free again", timeout=1.5,
          limits={"max_connections": 1, "max_pending_requests": 1})
def waiter_times_out(s):
    first = s.start(held(answer()), method="POST", fields={"transfer-encoding": "chunked"})
    first.conn.send("1\r\nx\r\n")  # its clock does not run: the request is not complete
    s.await_stat(upstream_rq_active=1)
    second = s.start()
    s.await_stat(upstream_rq_pending_active=1)
    s.finish(second)
    s.await_stat(upstream_rq_pending_active=0)
    first.conn.send("0\r\n\r\n")
    s.reached(first)
    s.release(first)


@scenario(AREA, "the connection closes: the waiter gets a new one", limits={"max_connections": 1})
def waiter_gets_a_new_connection(s):
    first = s.start(held(answer(fields=[("connection", "close")])))
    s.reached(first)
    second = s.start()
    s.await_stat(upstream_rq_pending_active=1)
    s.release(first)
    s.finish(second)


@scenario(AREA, "the connect fails: all three that wait for it fail", connect_timeout=0.3, limits={"max_connections": 1})
def waiters_fail_with_the_connect(s):
    s.hosts[0].swallow()
    calls = [s.start() for _ in range(3)]
    for call in calls:
        s.finish(call)


@scenario(AREA, "connections are used again, one after the other")
def connections_are_used_again(s):
    s.get_each(200, 200, 500, 200)
    calls = hold(s, 2)
    release_in_order(s, calls)
    s.get_each(200, 200)


@scenario(AREA, "max_requests_per_connection 2: a new connection for the third", max_requests_per_connection=2)
def requests_per_connection(s):
    s.get_each(200, 200, 200, 200, 200)


@scenario(AREA, "a connection that has had its requests ends, and two wait: the second is turned down twice",
          limits={"max_connections": 1}, max_requests_per_connection=1)
def last_request_with_waiters(s):
    release_in_order(s, hold(s, 4))


@scenario(AREA, "max_requests_per_connection 1: one each", max_requests_per_connection=1)
def one_request_per_connection(s):
    s.get_each(200, 200)


@scenario(AREA, "an upstream connection is idle for too long", upstream_idle_timeout=0.2)
def idle_upstream_connection(s):
    s.get()
    s.await_stat(upstream_cx_idle_timeout=1)
    s.get()


@scenario(AREA, "no limit is near: gauges of what remains", limits={"max_connections": 10, "max_pending_requests": 20, "max_requests": 30})
def what_remains(s):
    calls = hold(s, 3)
    s.observe("three held", s.gauges())
    release_in_order(s, calls)


@scenario(AREA, "two hosts share maxConnections; a host without any connection may open one all the same", hosts=2,
          limits={"max_connections": 1})
def host_without_a_connection(s):
    calls = hold(s, 2)
    s.observe("two held", s.gauges())
    release_in_order(s, calls)
