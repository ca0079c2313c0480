/* SPDX-License-Identifier: Apache-2.0 */
/* Numeric addresses: RFC 4291 2.2 when read, RFC 5952 when written. Names are not looked up here.
 */
#include "base/address.h"

#define GROUPS   8
#define PORT_MAX 65535

/* One decimal part of an IPv4 address, off the front of |b|: no leading zeros, they look octal. */
static bool take_octet(struct bytes *b, uint8_t *octet)
{
    unsigned value = 0;
    size_t n = 0;

    while (n < b->len && n < 3 && (uint8_t)(b->data[n] - '0') <= 9)
        value = value * 10 + (unsigned)(b->data[n++] - '0');
    if (n == 0 || value > 255 || (n > 1 && b->data[0] == '0'))
        return false;
    *b = bytes_skip(*b, n);
    *octet = (uint8_t)value;
    return true;
}

static bool take_byte(struct bytes *b, uint8_t c)
{
    if (b->len == 0 || b->data[0] != c)
        return false;
    *b = bytes_skip(*b, 1);
    return true;
}

static bool parse_ipv4(struct bytes text, uint8_t *ip)
{
    for (int i = 0; i < 4; i++)
        if ((i > 0 && !take_byte(&text, '.')) || !take_octet(&text, &ip[i]))
            return false;
    return text.len == 0;
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = byte_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to four hex digits off the front of |b|, as two bytes. */
static bool take_group(struct bytes *b, uint8_t *two)
{
    unsigned value = 0;
    size_t n = 0;

    while (n < b->len && n < 4 && hex_value(b->data[n]) >= 0)
        value = value << 4 | (unsigned)hex_value(b->data[n++]);
    if (n == 0)
        return false;
    *b = bytes_skip(*b, n);
    two[0] = (uint8_t)(value >> 8);
    two[1] = (uint8_t)value;
    return true;
}

/* Groups with single colons between, the last two perhaps as IPv4; all of |text|. Bytes, or -1. */
static int parse_groups(struct bytes text, uint8_t *ip)
{
    int used = 0;

    if (text.len == 0)
        return 0;
    for (;;) {
        size_t colon = bytes_find(text, ':');

        if (used > 14)
            return -1;
        if (colon == text.len && used <= 12 && parse_ipv4(text, ip + used))
            return used + 4;
        if (!take_group(&text, ip + used))
            return -1;
        used += 2;
        if (text.len == 0)
            return used;
        if (!take_byte(&text, ':'))
            return -1;
    }
}

/* Index of "::", or |b.len|. */
static size_t find_gap(struct bytes b)
{
    for (size_t i = 0; i + 1 < b.len; i++)
        if (b.data[i] == ':' && b.data[i + 1] == ':')
            return i;
    return b.len;
}

static bool parse_ipv6(struct bytes text, uint8_t *ip)
{
    uint8_t head[16], tail[16];
    size_t gap = find_gap(text);
    struct bytes before = bytes_slice(text, 0, gap);
    int left = parse_groups(before, head);
    int right = parse_groups(bytes_skip(text, gap + 2), tail);

    if (left < 0 || right < 0)
        return false;
    if (gap == text.len ? left != 16 : left + right > 14)
        return false;
    /* An IPv4 part may only end the whole. */
    if (gap < text.len && bytes_find(before, '.') < before.len)
        return false;
    memset(ip, 0, 16);
    memcpy(ip, head, (size_t)left);
    memcpy(ip + 16 - right, tail, (size_t)right);
    return true;
}

bool address_parse_ip(struct bytes text, struct address *out)
{
    struct address found = {.kind = ADDRESS_IPV4};

    if (!parse_ipv4(text, found.ip)) {
        found = (struct address){.kind = ADDRESS_IPV6};
        if (!parse_ipv6(text, found.ip))
            return false;
    }
    *out = found;
    return true;
}

static bool parse_port(struct bytes text, uint16_t *port)
{
    uint64_t value;

    if (text.len > 5 || !bytes_parse_u64(text, &value) || value > PORT_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

static bool is_ipv6(struct bytes text)
{
    struct address ignored;

    return address_parse_ip(text, &ignored) && ignored.kind == ADDRESS_IPV6;
}

/* "[::1]:80" */
static bool split_bracketed(struct bytes text, struct bytes *host, uint16_t *port)
{
    size_t end = bytes_find(text, ']');
    struct bytes inside = bytes_slice(text, 1, end - 1);
    struct bytes rest = bytes_skip(text, end + 1);
    uint16_t number;

    if (end == text.len || !is_ipv6(inside))
        return false;
    if (!take_byte(&rest, ':') || !parse_port(rest, &number))
        return false;
    *host = inside;
    *port = number;
    return true;
}

static bool plausible_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i];

        if (c <= ' ' || c >= 0x7f || c == '[' || c == ']' || c == '/')
            return false;
    }
    return name.len > 0;
}

bool address_split(struct bytes text, struct bytes *host, uint16_t *port)
{
    size_t colon = bytes_find(text, ':');
    struct bytes name = bytes_slice(text, 0, colon);
    uint16_t number;

    if (text.len > 0 && text.data[0] == '[')
        return split_bracketed(text, host, port);
    if (!plausible_name(name) || !parse_port(bytes_skip(text, colon + 1), &number))
        return false;
    *host = name;
    *port = number;
    return true;
}

bool address_parse(struct bytes text, struct address *out)
{
    struct bytes host;
    uint16_t port;

    if (!address_split(text, &host, &port) || !address_parse_ip(host, out))
        return false;
    out->port = port;
    return true;
}

static void write_ipv4(struct text *t, const uint8_t *ip)
{
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            text_char(t, '.');
        text_u64(t, ip[i]);
    }
}

static unsigned group_of(const uint8_t *ip, unsigned i)
{
    return (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
}

/* The longest run of two or more zero groups, the first of equal ones; none: |*length| is 0. */
static unsigned longest_zeros(const uint8_t *ip, unsigned *length)
{
    unsigned best = 0;

    *length = 0;
    for (unsigned from = 0; from < GROUPS; from++) {
        unsigned run = 0;

        while (from + run < GROUPS && group_of(ip, from + run) == 0)
            run++;
        if (run >= 2 && run > *length) {
            best = from;
            *length = run;
        }
    }
    return best;
}

static void write_group(struct text *t, unsigned group)
{
    unsigned digits = 1;

    while (digits < 4 && group >> (4 * digits) != 0)
        digits++;
    text_hex(t, group, digits);
}

static bool is_mapped(const uint8_t *ip)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(ip, prefix, sizeof(prefix)) == 0;
}

static void write_ipv6(struct text *t, const uint8_t *ip)
{
    unsigned length;
    unsigned gap = longest_zeros(ip, &length);
    unsigned i = 0;

    if (is_mapped(ip)) {
        text_str(t, "::ffff:");
        write_ipv4(t, ip + 12);
        return;
    }
    while (i < GROUPS) {
        if (length > 0 && i == gap) {
            text_str(t, "::");
            i += length;
            continue;
        }
        if (i > 0 && (length == 0 || i != gap + length))
            text_char(t, ':');
        write_group(t, group_of(ip, i++));
    }
}

static void write_port(struct text *t, const struct address *a)
{
    text_char(t, ':');
    text_u64(t, a->port);
}

void address_write(struct text *t, const struct address *a)
{
    if (a->kind == ADDRESS_IPV6)
        text_char(t, '[');
    if (a->kind == ADDRESS_UNIX)
        text_str(t, "unix:");
    address_write_ip(t, a);
    if (a->kind == ADDRESS_IPV6)
        text_char(t, ']');
    if (a->kind == ADDRESS_IPV4 || a->kind == ADDRESS_IPV6)
        write_port(t, a);
}

void address_write_ip(struct text *t, const struct address *a)
{
    switch (a->kind) {
    case ADDRESS_NONE:
        text_char(t, '-');
        break;
    case ADDRESS_IPV4:
        write_ipv4(t, a->ip);
        break;
    case ADDRESS_IPV6:
        write_ipv6(t, a->ip);
        break;
    case ADDRESS_UNIX:
        text_str(t, a->path);
        break;
    }
}

bool address_equal(const struct address *a, const struct address *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ADDRESS_NONE:
        return true;
    case ADDRESS_IPV4:
        return a->port == b->port && memcmp(a->ip, b->ip, 4) == 0;
    case ADDRESS_IPV6:
        return a->port == b->port && memcmp(a->ip, b->ip, 16) == 0;
    case ADDRESS_UNIX:
        return bytes_equal(bytes_of(a->path), bytes_of(b->path));
    }
    return false;
}

bool address_is_loopback(const struct address *a)
{
    static const uint8_t one[16] = {[15] = 1};

    switch (a->kind) {
    case ADDRESS_NONE:
        return false;
    case ADDRESS_IPV4:
        return a->ip[0] == 127;
    case ADDRESS_IPV6:
        return memcmp(a->ip, one, sizeof(one)) == 0 || (is_mapped(a->ip) && a->ip[12] == 127);
    case ADDRESS_UNIX:
        return true;
    }
    return false;
}
