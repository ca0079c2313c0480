# SPDX-License-Identifier: Apache-2.0
"""A second reading of RFC 9112: which whole requests stand in some bytes, and how a proxy that is as
strict as ours forwards them. Written from the RFC with regular expressions, not from the C code."""

import dataclasses
import ipaddress
import re

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])\r\n")
FIELD = re.compile(rb"(" + TOKEN + rb"):([\t\x20-\x7e\x80-\xff]*)\r\n")
QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
EXTENSION = rb"(?:[ \t]*;[ \t]*" + TOKEN + rb"(?:[ \t]*=[ \t]*(?:" + TOKEN + rb"|" + QUOTED + rb"))?)"
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})" + EXTENSION + rb"*\r\n")
REG_NAME = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+"
HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|" + REG_NAME + rb")(?::([0-9]{0,5}))?")
ABSOLUTE = re.compile(rb"https?://([^/?]*)([^?]*)(\?.*)?", re.IGNORECASE)

HOP_BY_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade",
              b"http2-settings"}
NOT_NOMINABLE = {b"host", b"content-length", b"x-forwarded-for", b"x-forwarded-proto", b"x-request-id",
                 b"forwarded", b"via", b"max-forwards", b"date"}
# What a proxy writes itself, so that it is compared apart or not at all.
WRITTEN = {b"host", b"content-length", b"expect", b"x-forwarded-for", b"x-forwarded-proto", b"x-request-id"}
NO_TRAILERS = HOP_BY_HOP | NOT_NOMINABLE | WRITTEN | {
    b"trailer", b"proxy-authenticate", b"proxy-authorization", b"sec-websocket-key",
    b"sec-websocket-version", b"authorization", b"cookie", b"set-cookie", b"cache-control"}
# The proxy's limits.
HEAD_MAX = TRAILERS_MAX = 64 * 1024
CHUNK_LINE_MAX = 4096
FIELDS_MAX = 100


class Refused(Exception):
    """These bytes are no request that may pass."""


class Cut(Exception):
    """They may be the start of one."""


@dataclasses.dataclass
class Request:
    method: bytes
    target: bytes
    host: bytes
    fields: list
    body: bytes
    trailers: list
    keep_alive: bool


def elements(values):
    parts = (e.strip(b" \t") for value in values for e in value.split(b","))
    return [e.lower() for e in parts if e]


def is_host(text):
    match = HOST.fullmatch(text)
    if not match or int(match[2] or 0) > 65535:
        return False
    try:
        return match[1] is None or bool(ipaddress.IPv6Address(match[1].decode()))
    except ValueError:
        return False


def normalized(path):
    """RFC 3986 6.2.2 and 5.2.4, then runs of slashes as one."""
    if re.search(rb"%(?![0-9A-Fa-f]{2})", path) or b"%00" in path:
        raise Refused("percent")

    def decode(match):
        byte = bytes([int(match[1], 16)])
        return byte if re.fullmatch(rb"[A-Za-z0-9\-._~]", byte) else match[0].upper()

    if not path.startswith(b"/"):
        return path
    out = []
    segments = re.sub(rb"%([0-9A-Fa-f]{2})", decode, path).split(b"/")[1:]
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment == b"..":
            if not out:
                raise Refused("above the root")
            out.pop()
        if segment not in (b".", b".."):
            out.append(segment)
        elif last:
            out.append(b"")
    return re.sub(rb"/+", b"/", b"/" + b"/".join(out))


def read_lines(data, at):
    """The fields from |at| on, and where they end."""
    fields = []
    while not data.startswith(b"\r\n", at):
        match = FIELD.match(data, at)
        if not match:
            raise Cut() if b"\n" not in data[at:] else Refused("field")
        fields.append((match[1], match[2].strip(b" \t")))
        at = match.end()
    return fields, at + 2


def values_of(fields, name):
    return [v for n, v in fields if n.lower() == name]


def target_of(method, target, hosts):
    """Path with query to forward, and the authority."""
    if method == b"CONNECT" or b"#" in target:
        raise Refused("target")
    if target == b"*":
        if method != b"OPTIONS":
            raise Refused("asterisk")
        return target, hosts[0] if hosts else b""
    if target.startswith(b"/"):
        path, mark, query = target.partition(b"?")
        return normalized(path) + mark + query, hosts[0] if hosts else b""
    match = ABSOLUTE.fullmatch(target)
    if not match or not is_host(match[1]):
        raise Refused("absolute form")
    path, query = match[2], match[3] or b""
    if not path:
        path = b"*" if method == b"OPTIONS" and not query else b"/"
    return normalized(path) + query, match[1]


def length_of(values):
    length = values[0].strip(b" \t")
    if len(values) > 1 or not re.fullmatch(rb"[0-9]+", length) or int(length) > 2**63 - 1:
        raise Refused("length")
    return int(length)


def read_body(data, at, fields, minor):
    """Body, trailers, where they end."""
    lengths = values_of(fields, b"content-length")
    codings = values_of(fields, b"transfer-encoding")
    if codings:
        if lengths or minor == 0 or [c.lower() for c in codings] != [b"chunked"]:
            raise Refused("framing")
        return read_chunks(data, at)
    length = length_of(lengths) if lengths else 0
    if len(data) - at < length:
        raise Cut()
    return data[at:at + length], [], at + length


def read_chunks(data, at):
    body = b""
    while True:
        match = CHUNK_LINE.match(data, at)
        if not match:
            raise Cut() if b"\n" not in data[at:] else Refused("chunk size")
        if match.end() - at > CHUNK_LINE_MAX:
            raise Refused("chunk-size line too long")
        size = int(match[1], 16)
        at = match.end()
        if size == 0:
            break
        if len(data) - at < size + 2:
            raise Cut()
        if data[at + size:at + size + 2] != b"\r\n":
            raise Refused("chunk end")
        body += data[at:at + size]
        at += size + 2
    trailers, end = read_lines(data, at)
    if end - at > TRAILERS_MAX:
        raise Refused("trailers too long")
    at = end
    return body, [(n, v) for n, v in trailers if n.lower() not in NO_TRAILERS], at


def forwarded(fields, options):
    nominated = set(options) - NOT_NOMINABLE
    if len({o for o in options if o not in (b"close", b"keep-alive", b"upgrade")} - HOP_BY_HOP) > 32:
        raise Refused("options")
    return [(n, v) for n, v in fields
            if n.lower() not in HOP_BY_HOP | WRITTEN and n.lower() not in nominated]


def read_request(data, at):
    """The request at |at|, and where it ends."""
    start = at
    for _ in range(2):
        if data.startswith(b"\r\n", at):
            at += 2
    line = REQUEST_LINE.match(data, at)
    if not line:
        raise Cut() if b"\n" not in data[at:] else Refused("request line")
    method, target, major, minor = line[1], line[2], int(line[3]), min(int(line[4]), 1)
    fields, at = read_lines(data, line.end())
    hosts = values_of(fields, b"host")
    options = elements(values_of(fields, b"connection"))
    if major != 1 or len(method) > 32 or len(fields) > FIELDS_MAX or at - start > HEAD_MAX or len(hosts) > 1:
        raise Refused("head")
    if (minor == 1 and not hosts) or not all(is_host(h) for h in hosts):
        raise Refused("host")
    target, host = target_of(method, target, hosts)
    fields_out = forwarded(fields, options)
    body, trailers, at = read_body(data, at, fields, minor)
    keep = b"close" not in options and (minor == 1 or b"keep-alive" in options)
    return Request(method, target, host, fields_out, body, trailers, keep), at


def read_requests(data):
    """All whole requests, and how it ends: "refused" at what follows them, "closed" after the last, or
    "cut": what follows may be the start of one."""
    requests, at = [], 0
    try:
        while at < len(data):
            request, at = read_request(data, at)
            requests.append(request)
            if not request.keep_alive:
                return requests, "closed"
    except Refused:
        return requests, "refused"
    except Cut:
        pass
    return requests, "cut"
