# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as hosts speak it, well and badly."""
from catalogue import scenario
from upstream import answer, raw

AREA, BAD = "HTTP/1.1 answers", "malformed answers"
END = b"content-length: 2\r\n\r\nok"


@scenario(AREA, "HEAD: a length but no body")
def head(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"), method="HEAD")
    s.get()


@scenario(AREA, "204 and 304 have no body")
def no_body(s):
    s.get_each(204, 304)
    s.get()


@scenario(AREA, "the host says connection: close")
def connection_close(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + END, "finish"))
    s.get()


@scenario(AREA, "the host says connection: close and does not close")
def connection_close_not_done(s):
    s.get(answer(fields=[("connection", "close")]))
    s.get()


@scenario(AREA, "a body that ends with the connection")
def until_close(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\n\r\nall of it", "finish"))
    s.get()


@scenario(AREA, "a body that should end with the connection is reset")
def until_close_reset(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\n\r\nsome of it", "reset"))


@scenario(AREA, "HTTP/1.0 without keep-alive")
def http10(s):
    s.get(raw(b"HTTP/1.0 200 OK\r\n" + END))
    s.get()


@scenario(AREA, "HTTP/1.0 with keep-alive")
def http10_keep_alive(s):
    s.get(raw(b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n" + END))
    s.get()


@scenario(AREA, "100 Continue, then the answer")
def continue_100(s):
    s.get(raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + END), method="POST", body="x", fields={"expect": "100-continue"})


@scenario(AREA, "100 Continue that was not asked for")
def continue_unasked(s):
    s.get(raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + END))


@scenario(AREA, "102 and 103, then the answer")
def interim(s):
    s.get(raw(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n" + END))


@scenario(AREA, "103, then the connection breaks")
def interim_then_reset(s):
    s.get(raw(b"HTTP/1.1 103 Early Hints\r\n\r\n", "reset"))


@scenario(AREA, "redirects, client errors and odd codes pass", )
def all_classes(s):
    s.get_each(*[answer(code) for code in (201, 301, 400, 404, 429, 499, 500, 501, 503, 599)])


@scenario(AREA, "chunks with extensions and trailers")
def chunk_extensions(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nx-t: 1\r\n\r\n"))
    s.get()


@scenario(AREA, "an empty answer in chunks")
def empty_chunks(s):
    s.get(raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"))
    s.get()


def bad(name, says, data, timeout=None):
    """|timeout|: for answers that a proxy may take for the begin of one."""
    def play(s):
        s.get(raw(data))
        s.get()
    play.__name__ = "bad_" + name
    scenario(BAD, says, timeout=timeout)(play)


bad("garbage", "no HTTP at all (R9)", b"garbage\r\n\r\n")
bad("version", "HTTP/3.0", b"HTTP/3.0 200 OK\r\n" + END)
bad("status", "a status of two digits", b"HTTP/1.1 20 OK\r\n" + END)
bad("status_999", "status 999", b"HTTP/1.1 999 Odd\r\n" + END)
bad("status_text", "a status that is no number", b"HTTP/1.1 abc OK\r\n" + END)
bad("two_lengths", "two different lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n" + END)
bad("same_lengths", "the same length twice", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + END)
bad("length_and_chunks", "a length and chunks", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n")
bad("length", "a length that is no number", b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok")
bad("length_sign", "a length with a sign", b"HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok")
bad("encoding", "an unknown transfer encoding", b"HTTP/1.1 200 OK\r\ntransfer-encoding: zip\r\n\r\nok")
bad("chunk_size", "a chunk size that is no number", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nok\r\n0\r\n\r\n")
bad("chunk_end", "a chunk longer than its size", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n", timeout=1)
bad("field_name", "a space in a field's name", b"HTTP/1.1 200 OK\r\nx y: 1\r\n" + END)
bad("field_nul", "a NUL in a field's value", b"HTTP/1.1 200 OK\r\nx: a\0b\r\n" + END)
bad("field_folded", "a folded field", b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\n" + END)
bad("field_no_colon", "a field without a colon", b"HTTP/1.1 200 OK\r\nx\r\n" + END)
bad("head_too_long", "a head of 200 KiB", b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n" + END)
bad("too_many_fields", "300 fields", b"HTTP/1.1 200 OK\r\n" + b"x: 1\r\n" * 300 + END)
bad("more_than_asked", "bytes after the answer", b"HTTP/1.1 200 OK\r\n" + END + b"more")
bad("two_answers", "two answers to one request", (b"HTTP/1.1 200 OK\r\n" + END) * 2)
bad("body_of_204", "a 204 with a body", b"HTTP/1.1 204 No Content\r\n" + END)
bad("bare_lf", "lines that end in LF alone", b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", timeout=1)
bad("switch", "101 that was not asked for", b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", timeout=1)
