# SPDX-License-Identifier: Apache-2.0
"""Timeouts, connects that fail, connections that break, clients that leave."""
from catalogue import scenario
from upstream import answer, early, held, raw, silent

TIMEOUTS, FAILURES, CLIENTS = "timeouts", "connection failures", "clients"
HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"


@scenario(TIMEOUTS, "no answer within the route's timeout (R5)", timeout=0.1)
def route_timeout(s):
    s.get(silent())
    s.get()


@scenario(TIMEOUTS, "the answer begins in time but does not end", timeout=0.15)
def route_timeout_in_the_body(s):
    s.get(raw(HALF, "quiet"))
    s.get()


@scenario(TIMEOUTS, "the clock starts with the end of the request (R6)", timeout=0.15)
def route_timeout_starts_late(s):
    call = s.start(held(answer()), method="POST", fields={"transfer-encoding": "chunked"})
    call.conn.send("1\r\nx\r\n")
    s.pause(0.4)
    call.conn.send("0\r\n\r\n")
    s.reached(call)
    s.release(call)


@scenario(TIMEOUTS, "nothing moves for the idle timeout, no answer yet", idle_timeout=0.15, timeout=0)
def idle_timeout(s):
    s.get(silent())


@scenario(TIMEOUTS, "nothing moves for the idle timeout in the answer's body", idle_timeout=0.15, timeout=0)
def idle_timeout_in_the_body(s):
    s.get(raw(HALF, "quiet"))


@scenario(TIMEOUTS, "nothing moves for the idle timeout in the request's body", idle_timeout=0.15, timeout=0)
def idle_timeout_in_the_request(s):
    call = s.start(method="POST", fields={"transfer-encoding": "chunked"})
    call.conn.send("1\r\nx\r\n")
    s.finish(call)


@scenario(TIMEOUTS, "a connect that takes too long", connect_timeout=0.15)
def connect_timeout(s):
    s.hosts[0].swallow()
    s.get()


@scenario(TIMEOUTS, "the route's timeout is over before the connect is", connect_timeout=5, timeout=0.15)
def route_timeout_while_connecting(s):
    s.hosts[0].swallow()
    s.get()


@scenario(FAILURES, "the connect is refused")
def connect_refused(s):
    s.hosts[0].refuse()
    s.get()
    s.hosts[0].listen()
    s.get()


@scenario(FAILURES, "refused with a body on its way")
def connect_refused_with_body(s):
    s.hosts[0].refuse()
    s.get(method="POST", body="x" * 100)


@scenario(FAILURES, "reset on a new connection before an answer")
def reset_before_the_answer(s):
    s.get(raw(b"", "reset"))


@scenario(FAILURES, "FIN on a new connection before an answer")
def fin_before_the_answer(s):
    s.get(raw(b"", "finish"))


@scenario(FAILURES, "FIN within the answer's head")
def fin_in_the_head(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\ncontent-le", "finish"))


@scenario(FAILURES, "reset within the answer's head")
def reset_in_the_head(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\ncontent-le", "reset"))


@scenario(FAILURES, "FIN before the content-length is reached (R7)")
def fin_in_the_body(s):
    s.get(raw(HALF, "finish"))


@scenario(FAILURES, "reset before the content-length is reached")
def reset_in_the_body(s):
    s.get(raw(HALF, "reset"))


@scenario(FAILURES, "FIN within a chunked body")
def fin_in_chunks(s):
    s.get(raw(CHUNKED, "finish"))


@scenario(FAILURES, "reset within a chunked body")
def reset_in_chunks(s):
    s.get(raw(CHUNKED, "reset"))


@scenario(FAILURES, "the connection breaks under its second request, a GET")
def second_request_broken(s):
    s.get()
    s.get(raw(b"", "reset"), 200)


@scenario(FAILURES, "the connection breaks under its second request, a POST")
def second_post_broken(s):
    s.get()
    s.get(raw(b"", "finish"), 200, method="POST", body="x")


@scenario(FAILURES, "the host closes an idle connection; the next request finds that out")
def idle_connection_closed(s):
    s.get()
    s.hosts[0].drop_idle()
    s.await_stat(upstream_cx_active=0)
    s.get()


@scenario(FAILURES, "the host closes after each answer without saying so")
def closed_after_the_answer(s):
    for _ in range(3):
        s.get(raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "finish"))
        s.await_stat(upstream_cx_active=0)


@scenario(CLIENTS, "the client leaves before the answer")
def leaves_before_the_answer(s):
    call = s.start(silent())
    s.reached(call)
    s.leave(call)
    s.await_true(call.script.gone.is_set, "the upstream to see it")
    s.get()


@scenario(CLIENTS, "the client leaves within the answer's body")
def leaves_in_the_answer(s):
    call = s.start(raw(HALF, "quiet"))
    s.await_true(lambda: b"abc" in call.conn.buffer or call.conn.more() and b"abc" in call.conn.buffer, "the first bytes")
    s.leave(call)
    s.await_true(call.script.gone.is_set, "the upstream to see it")


@scenario(CLIENTS, "the client leaves while it sends")
def leaves_while_sending(s):
    call = s.start(method="POST", fields={"content-length": "100"})
    call.conn.send("x" * 10)
    s.reached(call)
    s.leave(call)
    s.await_true(call.script.gone.is_set, "the upstream to see it")


@scenario(CLIENTS, "the client leaves while the connect hangs", connect_timeout=5)
def leaves_while_connecting(s):
    s.hosts[0].swallow()
    call = s.start()
    s.await_stat(upstream_rq_pending_active=1)
    s.leave(call)
    s.await_stat(upstream_rq_pending_active=0)
    s.hosts[0].refuse()


@scenario(CLIENTS, "the answer is complete while the request still comes")
def answer_before_the_request_ended(s):
    call = s.start(early(answer(413)), method="POST", fields={"content-length": "100000"})
    call.conn.send("x" * 10)
    s.finish(call)


@scenario(CLIENTS, "an error answer while the request still comes, then its rest")
def error_before_the_request_ended(s):
    call = s.start(early(answer(503)), method="POST", fields={"content-length": "20"})
    call.conn.send("x" * 10)
    s.finish(call)


@scenario(CLIENTS, "bodies both ways: by length and chunked")
def bodies_both_ways(s):
    s.get(method="POST", body="x" * 1000)
    call = s.start(answer(body=b"y" * 100000), method="POST", fields={"transfer-encoding": "chunked"})
    call.conn.send("3e8\r\n" + "x" * 1000 + "\r\n0\r\n\r\n")
    s.finish(call)
    s.get(raw(CHUNKED + b"0\r\n\r\n"))


@scenario(CLIENTS, "two requests in one packet")
def pipelined(s):
    first = s.start(send=False)
    second = s.start(503, conn=first.conn, send=False)
    first.conn.send("".join(f"GET {c.path} HTTP/1.1\r\nhost: test\r\n\r\n" for c in (first, second)))
    s.finish(first)
    s.finish(second)
