/* SPDX-License-Identifier: Apache-2.0 */
/* Where a peer is: an IP address and port, or a unix socket path. No system headers here. */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"

enum address_kind { ADDRESS_NONE, ADDRESS_IPV4, ADDRESS_IPV6, ADDRESS_UNIX };

struct address {
    enum address_kind kind;
    uint16_t port;
    uint8_t ip[16];   /* IPv4: the first four */
    const char *path; /* ADDRESS_UNIX; owned by whoever made the address */
};

#define ADDRESS_TEXT_MAX 128 /* enough for any but a unix path */

/* "127.0.0.1:80", "[::1]:80". Numeric only; false for names and for anything else. */
bool address_parse(struct bytes text, struct address *out);

/*
 * Splits "name:80" or "[::1]:80" or "127.0.0.1:80" into host (without brackets) and port. False for
 * anything else, "::1:80" included; a name is checked for visible ASCII only.
 */
bool address_split(struct bytes text, struct bytes *host, uint16_t *port);

/* Numeric IP without port: "127.0.0.1", "::1" (RFC 5952 form when written). */
bool address_parse_ip(struct bytes text, struct address *out);

/* With port: "127.0.0.1:80", "[::1]:80", "unix:PATH". */
void address_write(struct text *t, const struct address *a);

/* Without port and brackets. */
void address_write_ip(struct text *t, const struct address *a);

bool address_equal(const struct address *a, const struct address *b);
/* 127.0.0.0/8, also as mapped into IPv6, ::1, and every unix socket. */
bool address_is_loopback(const struct address *a);

#endif
